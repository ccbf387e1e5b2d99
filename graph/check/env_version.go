package check

import (
	"cmp"
	"fmt"

	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envVersion = Rule{
	ID:    "env-version",
	Title: "a setting that this NCCL does not read",
	Doc: `Compares the variables that are set with those that the NCCL version of the sources
reads. Fires for one that was removed before it (NCCL_IB_CUDA_SUPPORT, NCCL_MNNVL,
NCCL_LL_THRESHOLD …) or came after it. Warning; info where the version is not known and
the newest does not read it.
Silent: the version is not known and the name is current; a log in which NCCL says that
it read the variable.`,
	Across: runEnvVersion,
}

func runEnvVersion(a *Across) {
	for _, s := range a.settings() {
		if s.variable.Name == "" || s.confirmed {
			continue
		}
		read, known := s.variable.ReadBy(s.nccl)
		assumed := s.nccl == ""
		switch {
		case read:
		case !known && !assumed:
			a.Gap(fmt.Sprintf("whether NCCL %s reads the variable is not known", s.nccl), "give the version with its patch level, as in a log", a.keysFor(s.name, s.hosts)...)
		default:
			f := Finding{Severity: Warning, Expected: "a variable that NCCL " + cmp.Or(s.nccl, ncclenv.Newest) + " reads",
				Observed: fmt.Sprintf("%s: only read by %s", s, s.variable.Versions()), Fix: "whoever wrote it: delete it"}
			if s.variable.Successor != "" {
				f.Fix += "; what to set instead, if at all, is " + s.variable.Successor
			}
			if assumed {
				f.Severity, f.Certainty = Info, Likely
				f.Fix += ". The NCCL in use is not known; the newest is assumed"
			}
			a.reportSetting(s, f)
		}
	}
}
