package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envIBHCAPrefix = Rule{
	ID:    "env-ib-hca-prefix",
	Title: "an entry of NCCL_IB_HCA fits more devices than it names",
	Doc: `Applies NCCL_IB_HCA to the HCAs of each host. Without = in front, an entry stands for
all names that begin with it. Fires where an entry is the name of one HCA and the
beginning of another that the list does not name (mlx5_1 and mlx5_10). Warning.
Silent: = in front; entries that are no whole name (mlx5); hosts without such names.`,
	Across: func(a *Across) { a.judgeHCAs(runEnvIBHCAPrefix) },
}

func runEnvIBHCAPrefix(m meeting, list ncclenv.DeviceList) {
	if list.Exact {
		return
	}
	named := func(name string) bool {
		return slices.ContainsFunc(list.Devices, func(d ncclenv.Device) bool { return d.Name == name })
	}
	var more []*graph.Node
	var entries []string
	for _, d := range list.Devices {
		if !slices.ContainsFunc(m.facts.hcas, func(n *graph.Node) bool { return n.HCA.Name == d.Name }) {
			continue
		}
		for _, n := range m.facts.hcas {
			if fits(list, d, n.HCA.Name) && !named(n.HCA.Name) && !slices.Contains(more, n) {
				more = append(more, n)
				entries = append(entries, d.Name)
			}
		}
	}
	if len(more) == 0 {
		return
	}
	does, sign := "takes", "="
	if list.Exclude {
		does, sign = "leaves out", "^="
	}
	m.report(Finding{Severity: Warning, Certainty: Sure, Subjects: keys(more),
		Expected: fmt.Sprintf("whole names: NCCL_IB_HCA=%s%s", sign, strings.TrimLeft(m.value, "^")),
		Observed: fmt.Sprintf("%s also %s %s, whose names begin with %s", m.setting, does, nodeNames(more), strings.Join(slices.Compact(entries), ", ")),
		Fix:      fmt.Sprintf("whoever wrote it: write %s%s (in nccl.conf NCCL_IB_HCA=%[1]s%[2]s)", sign, strings.TrimLeft(m.value, "^"))})
}
