package check

import (
	"github.com/ncclmap/ncclmap/probe"
)

var measuredAlternativeBetter = Rule{
	ID:    "measured-alternative-better",
	Title: "a setting was measured to be faster",
	Doc: `Compares runs of one test on the same hosts and GPUs with the same NCCL that differ in
one NCCL_ variable, as NCCL's own lines in the same output or the environment in its
JSON show. Fires where one value is faster by more than 5 % and by more than twice the
spread of equal runs (repeated, or in and out of place) at three sizes of 64 MiB or
more, or at all sizes of 1 GiB or more. Info; ncclmap tune sets the variable.
Silent: a single size with less than 10 %; a value that is slower at another judged
size; NCCL's default wins; output that does not show the settings.`,
	Across: func(a *Across) {
		for _, alt := range Alternatives(a.Job) {
			a.Report(Finding{
				Severity:  Info,
				Certainty: Sure,
				Subjects:  []string{"env:" + alt.Variable},
				Expected:  "NCCL's own choice to be the fastest",
				Observed:  alt.String(),
				Evidence:  alt.Evidence(),
				Fix:       "ncclmap tune with the same sources sets it, with the measured gain; measure again after a change of NCCL, driver or firmware",
			})
		}
	},
}

// ranksText says how large a run was.
func ranksText(s *probe.Sweep) string {
	ranks, nodes := "an unknown number of ranks", ""
	if n, ok := s.Ranks.Get(); ok {
		ranks = count(n, "rank", "ranks")
	}
	if n, ok := s.Nodes.Get(); ok {
		nodes = " on " + count(n, "host", "hosts")
	}
	return ranks + nodes
}
