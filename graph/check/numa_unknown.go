package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
)

var numaUnknown = Rule{
	ID:    "numa-unknown",
	Title: "NUMA node of a GPU or HCA is unknown",
	Doc: `Fires because the platform does not say: numa_node is -1 (sysfs; numaid="-1" in an NCCL
topology file) for GPUs or HCAs although the host has more than one NUMA node, or is a
guest. NCCL then builds one CPU node -1 and sets no CPU affinity. A NUMA node that no
source states is a gap.

info; warning when there are HCAs and a path between GPU and HCA leaves the PCIe
switches, so that its class depends on the NUMA node.

Silent on bare metal with one NUMA node, and for a device whose bridge has a node.`,
	Run: runNUMAUnknown,
}

func runNUMAUnknown(p *Pass) {
	nodes := 0
	for _, n := range p.Inv.NUMA {
		if n.CPUs != "" {
			nodes++ // GPU memory is a node without CPUs on Grace
		}
	}
	if nodes == 0 {
		nodes = len(p.Inv.NUMA)
	}
	var lost []*graph.Node
	var unseen []string
	for _, list := range [][]*graph.Node{p.facts.gpus, p.facts.hcas} {
		for _, n := range list {
			switch {
			case n.PCI != nil && n.Home != nil && !n.Home.Hidden:
			case n.PCI == nil || !n.PCI.NUMANone:
				unseen = append(unseen, n.Key)
			default:
				lost = append(lost, n)
			}
		}
	}
	p.Gap("NUMA node not in the sources", readLive, unseen...)
	if len(lost) == 0 {
		return
	}
	if len(p.Guest()) == 0 {
		switch {
		case nodes == 1:
			return
		case nodes == 0:
			p.Gap("how many NUMA nodes the host has is not in the sources", readLive, keys(lost)...)
			return
		}
	}
	severity := Info
	observed := fmt.Sprintf("numa_node is -1 for %s", countKinds(keys(lost)))
	if p.needsNUMA(lost) {
		severity = Warning
		observed += ", and the distance between GPUs and HCAs depends on it"
	}
	var proof []Evidence
	for _, n := range lost {
		proof = append(proof, evidence(n.PCI.Origins, "numa", "numa_node", "numa_node -1 of %s", n.Label))
	}
	fix := "administrator: set the NUMA affinity of the PCI slots in the BIOS or ACPI tables, or give NCCL a topology file (NCCL_TOPO_FILE) that puts each device under its <cpu>"
	if marks := p.Guest(); len(marks) > 0 {
		proof = append(proof, marks[0])
		fix = "operator of the hypervisor: expose the host's NUMA nodes to the guest (one virtual root bus per node). Until then give NCCL a topology file (NCCL_TOPO_FILE) that puts each device under its <cpu>"
	}
	p.Report(Finding{
		Severity: severity,
		Subjects: keys(lost),
		Expected: "a NUMA node for every GPU and HCA",
		Observed: observed + "; NCCL puts them under one CPU node -1 and sets no CPU affinity",
		Evidence: proof,
		Fix:      fix,
	})
}

// needsNUMA reports that the class of some pair of GPU and HCA cannot be told
// without the NUMA node of one of the given devices.
func (p *Pass) needsNUMA(lost []*graph.Node) bool {
	isLost := map[*graph.Node]bool{}
	for _, n := range lost {
		isLost[n] = true
	}
	for g, gpu := range p.facts.gpus {
		for h, hca := range p.facts.hcas {
			if (isLost[gpu] || isLost[hca]) && !p.facts.class[g][h].Near() {
				return true
			}
		}
	}
	return false
}
