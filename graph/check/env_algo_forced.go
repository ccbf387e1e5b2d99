package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envAlgoForced = Rule{
	ID:    "env-algo-forced",
	Title: "an algorithm or protocol is forced",
	Doc: `Reads NCCL_ALGO and NCCL_PROTO as that NCCL does. Fires for any value that no
measurement among the sources speaks for: NCCL chooses for each size, a fixed choice does
not. Warning; critical from NCCL 2.24 on where a collective is left without an algorithm
that it has (Tree or NVLS for Broadcast …): its calls then fail. Before, NCCL fell back
to Ring.
Silent: protocols of which env-risky (LL128) and env-disables-transport (^LL128, Simple)
speak; a variable that measured-alternative-better speaks for.`,
	Across: runEnvAlgoForced,
}

// algorithmsOf are the algorithms that a collective has (graph/tuning.cc).
var algorithmsOf = map[string][]string{
	"Broadcast":     {"Ring"},
	"Reduce":        {"Ring"},
	"AllGather":     {"Ring", "CollNetDirect", "NVLS", "PAT"},
	"ReduceScatter": {"Ring", "CollNetDirect", "NVLS", "PAT"},
	"AllReduce":     {"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"},
}

func runEnvAlgoForced(a *Across) {
	for _, s := range a.settings("NCCL_ALGO", "NCCL_PROTO") {
		if s.value == "" || s.effect.Fails || a.measured(s.name) || s.forcesLL128() || s.withoutLL128() {
			continue
		}
		rows, _, err := s.variable.Selections(s.value, s.nccl)
		if err != nil {
			continue
		}
		f := Finding{Severity: Warning, Certainty: Sure, Expected: "unset: NCCL chooses for each collective and size",
			Observed: fmt.Sprintf("%s: forced for every size, and no measurement here speaks for it", s),
			Fix:      "whoever wrote it: delete it, or measure both and set the collective alone (allreduce:tree, NCCL 2.24 and later) or a tuner file"}
		if lost := a.withoutAlgorithm(s, rows); len(lost) > 0 {
			f.Observed = fmt.Sprintf("%s leaves no algorithm for %s: ", s, strings.Join(lost, ", "))
			switch {
			case ncclFrom(s.nccl, 2, 24):
				f.Severity = Critical
				f.Observed += "their calls fail"
			case s.nccl == "":
				f.Observed += "their calls fail from NCCL 2.24 on; before, NCCL fell back to Ring"
			default:
				f.Observed += "NCCL " + s.nccl + " falls back to Ring"
				if NCCLBefore(s.nccl, 2, 22) {
					f.Observed += ", and NCCL_PROTO is lost for them"
				}
			}
		}
		a.reportSetting(s, f)
	}
}

// measured reports a variable that a measurement among the sources speaks for.
func (a *Across) measured(name string) bool {
	return slices.ContainsFunc(a.out.Findings, func(f Finding) bool {
		return f.Rule == "measured-alternative-better" && slices.Contains(f.Subjects, "env:"+name)
	})
}

// withoutAlgorithm lists the collectives that a value of NCCL_ALGO leaves without
// one; where the job shows which it uses, only of these.
func (a *Across) withoutAlgorithm(s setting, rows []ncclenv.Selection) []string {
	used := map[string]bool{}
	for _, c := range a.Job.Choices {
		used[c.Collective] = c.Collective != ""
	}
	for _, c := range a.Job.Samples {
		used[c.Collective] = true
	}
	var out []string
	for _, r := range rows {
		has := func(w string) bool { return slices.Contains(r.Allowed, w) }
		if s.name == "NCCL_ALGO" && r.Set && !slices.ContainsFunc(algorithmsOf[r.Function], has) && (len(used) == 0 || used[r.Function]) {
			out = append(out, r.Function)
		}
	}
	return out
}
