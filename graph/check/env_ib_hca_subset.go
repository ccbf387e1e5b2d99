package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envIBHCASubset = Rule{
	ID:    "env-ib-hca-subset",
	Title: "NCCL_IB_HCA leaves data HCAs unused",
	Doc: `Compares the HCAs that NCCL_IB_HCA lets NCCL use with the data HCAs of each host: those
that are ACTIVE, near a GPU and of the model that most of them are. Fires where some of
these are left out. Warning; critical when half or fewer are used.
Silent: what is left out is for storage (another model, rate or link layer), down, or far
from every GPU; ranks of one host that name different HCAs (env-differs speaks).`,
	Across: runEnvIBHCASubset,
}

func runEnvIBHCASubset(a *Across) {
	a.judgeHCAs(func(m meeting, list ncclenv.DeviceList) {
		data := m.facts.dataHCAs()
		if len(data) == 0 {
			m.gap("which HCAs carry data is not known", readLive)
			return
		}
		var out []*graph.Node
		for _, n := range data {
			if !a.usedOn(m.topo, n.HCA) {
				out = append(out, n)
			}
		}
		used := len(data) - len(out)
		if len(out) == 0 || used == 0 && !slices.ContainsFunc(m.facts.hcas, func(n *graph.Node) bool { return allows(list, n.HCA) }) {
			return // of an empty choice env-ib-hca-missing speaks
		}
		f := Finding{Severity: Warning, Certainty: Sure, Subjects: keys(out),
			Expected: fmt.Sprintf("all %d data HCAs: %s", len(data), nodeNames(data)),
			Observed: fmt.Sprintf("%s uses %d of them and leaves out %s", m.setting, used, nodeNames(out)),
			Fix:      "whoever wrote it: delete it, or list all data HCAs"}
		if 2*used <= len(data) {
			f.Severity = Critical
		}
		if r := portRate(out[0]); r > 0 {
			f.Observed += fmt.Sprintf("; the ceiling between hosts falls from %s to %s", (r * probe.Rate(len(data))).Gbps(), (r * probe.Rate(used)).Gbps())
			f.Evidence = append(f.Evidence, rateEvidence(out[0].HCA, mustPort(out[0])))
		}
		m.report(f)
	})
}

func mustPort(n *graph.Node) probe.HCAPort {
	p, _ := fastestPort(n)
	return p
}

// usedOn reports an HCA that some value of NCCL_IB_HCA on the host allows: ranks
// may have their own.
func (a *Across) usedOn(t *graph.Topology, h *probe.HCA) bool {
	return slices.ContainsFunc(a.settings("NCCL_IB_HCA"), func(s setting) bool {
		return slices.Contains(a.hostsOf(s), t) && allows(ncclenv.ParseDevices(s.value), h)
	})
}
