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
	done := map[*graph.Topology]bool{} // of ranks with lists of their own, one finding
	a.judgeHCAs(func(m meeting, list ncclenv.DeviceList) {
		lists := []ncclenv.DeviceList{list}
		if m.confirmed {
			if done[m.topo] {
				return
			}
			done[m.topo], lists = true, a.confirmedLists(m.topo)
		}
		m.subset(lists)
	})
}

// confirmedLists are the lists that ranks of a host read: each may have its own.
func (a *Across) confirmedLists(t *graph.Topology) (lists []ncclenv.DeviceList) {
	for _, s := range a.settings("NCCL_IB_HCA") {
		if s.confirmed && slices.Contains(s.on, t) {
			lists = append(lists, ncclenv.ParseDevices(s.value))
		}
	}
	return lists
}

// subset judges the lists of one host together.
func (m meeting) subset(lists []ncclenv.DeviceList) {
	data := m.facts.dataHCAs()
	if len(data) == 0 {
		m.gap("which HCAs carry data is not known", readLive)
		return
	}
	used := func(n *graph.Node) bool {
		return slices.ContainsFunc(lists, func(l ncclenv.DeviceList) bool { return allows(l, n.HCA) })
	}
	out := slices.DeleteFunc(slices.Clone(data), used)
	if len(out) == 0 || !slices.ContainsFunc(m.facts.hcas, used) {
		return // of an empty choice env-ib-hca-missing speaks
	}
	left := len(data) - len(out)
	f := Finding{Severity: Warning, Certainty: Sure, Subjects: keys(out),
		Expected: fmt.Sprintf("all %d data HCAs: %s", len(data), nodeNames(data)),
		Observed: fmt.Sprintf("%s uses %d of them and leaves out %s", m.setting, left, nodeNames(out)),
		Fix:      "whoever wrote it: delete it, or list all data HCAs"}
	if 2*left <= len(data) {
		f.Severity = Critical
	}
	if p, ok := fastestPort(out[0]); ok {
		r := p.Rate.Or(0)
		f.Observed += fmt.Sprintf("; the ceiling between hosts falls from %s to %s", (r * probe.Rate(len(data))).Gbps(), (r * probe.Rate(left)).Gbps())
		f.Evidence = append(f.Evidence, rateEvidence(out[0].HCA, p))
	}
	m.report(f)
}
