package check

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// smallestJudged is the size from which rates are judged: below it latency and the
// choice of protocol decide, and runs of one machine differ by half.
const smallestJudged = 64 << 20

// ofMeasured begins the ids of the rules that compare runs.
const ofMeasured = "measured-"

// RunMeasured applies the rules to hosts and runs: those that compare runs to all
// together, the others about jobs to each run with its own settings.
func RunMeasured(m probe.Measured, rules []Rule) (Result, error) {
	var together, each []Rule
	for _, r := range rules {
		if r.Across != nil && !strings.HasPrefix(r.ID, ofMeasured) {
			each = append(each, Rule{ID: r.ID, Replaces: r.Replaces, Across: r.Across})
			r.Across = nil
		}
		together = append(together, r)
	}
	out, err := RunCluster(m.All, together)
	if err != nil {
		return out, err
	}
	for _, job := range m.Jobs {
		res, err := RunCluster(job, each)
		if err != nil {
			return out, err
		}
		for _, f := range res.Findings {
			same := func(g Finding) bool {
				return f.Rule == g.Rule && f.Observed == g.Observed && slices.Equal(f.Subjects, g.Subjects)
			}
			if !slices.ContainsFunc(out.Findings, same) {
				out.Findings = append(out.Findings, f)
			}
		}
		out.Gaps = append(out.Gaps, res.Gaps...)
	}
	out.finish(rules)
	return out, nil
}

// tests are the sweeps of benchmarks. What a job at work measured of itself waits for
// its slowest rank and shares the links: no rule judges it.
func tests(job *probe.Job) []probe.Sweep {
	return slices.DeleteFunc(job.Sweeps(), func(s probe.Sweep) bool { return s.OfJob })
}

// sweepKeys are the subjects of a finding about one collective in one file.
func sweepKeys(s *probe.Sweep) []string {
	return []string{"collective:" + s.Collective, "file:" + s.Run.File}
}

// sampleEvidence is the evidence for one measured point.
func sampleEvidence(s probe.Sample) Evidence {
	fact := fmt.Sprintf("%s of %s: %s µs, busbw %.4g GB/s", s.Collective, probe.SizeText(s.Bytes), timeText(s.TimeUS), s.BusBW)
	if in, ok := s.InPlaceBusBW(); ok {
		fact += fmt.Sprintf("; in place %.4g GB/s", in)
	}
	return evidence(s.Origins, "", "", "%s", fact)
}

// timeText prints microseconds with at most two decimals.
func timeText(us float64) string { return strconv.FormatFloat(math.Round(us*100)/100, 'f', -1, 64) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
