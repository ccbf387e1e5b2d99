package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envUnknown = Rule{
	ID:    "env-unknown",
	Title: "a setting that no NCCL reads",
	Doc: `Compares names of settings with all variables that NCCL has ever read, and with those
of known plugins and tools. Fires for a name with NCCL_ in front that nobody knows, and
for one that is one letter away from it (CCL_NET_GDR_LEVEL). Warning, with the nearest
name. Info for names that only PyTorch before 2.2 read (NCCL_BLOCKING_WAIT).
Silent: variables of plugins, tools, builds and images; names in a log, which NCCL
itself printed.`,
	Across: runEnvUnknown,
}

func runEnvUnknown(a *Across) {
	for _, s := range a.settings() {
		if s.confirmed {
			continue
		}
		switch ncclenv.Kind(s.name) {
		case ncclenv.KindUnknown:
			f := Finding{Severity: Warning, Expected: "a variable that some NCCL, plugin or tool reads",
				Observed: s.String() + ": no NCCL up to " + ncclenv.Newest + " reads such a name, nor does a known plugin",
				Fix:      "whoever wrote it: delete it, or look the name up with ncclmap explain"}
			if near, ok := ncclenv.Nearest(s.name); ok {
				f.Fix = fmt.Sprintf("whoever wrote it: write %s if that was meant, else delete it", near)
			}
			a.reportSetting(s, f)
		case ncclenv.KindFramework:
			if by, _ := ncclenv.ReadElsewhere(s.name); strings.HasPrefix(s.name, "NCCL_") {
				a.reportSetting(s, Finding{Severity: Info, Expected: "the name that current versions read",
					Observed: s.String() + ": NCCL does not read it; it is of " + by, Fix: "whoever wrote it: write TORCH_" + s.name})
			}
		}
	}
}
