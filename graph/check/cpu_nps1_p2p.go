package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var cpuNPS1P2P = Rule{
	ID:    "cpu-nps1-p2p",
	Title: "One NUMA node for each AMD socket, and GPUs talk over it",
	Doc: `Fires for a host with AMD CPUs in NPS1 mode (one NUMA node for each socket) and four or more
GPUs on root ports of their own, without a switch or NVLink between them: NPS4 raises the
bandwidth of shared memory and of P2P through the CPU.

info.

Silent for NPS2 and NPS4, in a guest, and with switches or NVLink.`,
	Run: runCPUNPS1P2P,
}

const fewestNPSGPUs = 4

func runCPUNPS1P2P(p *Pass) {
	amd := slices.IndexFunc(p.Inv.CPUs, func(c probe.CPU) bool { return c.Vendor == "AuthenticAMD" })
	if amd < 0 || len(p.Guest()) > 0 {
		return
	}
	nodes := map[int]int{}
	for _, n := range p.Inv.NUMA {
		pkg, ok := n.Package.Get()
		if !ok {
			return
		}
		nodes[pkg]++
	}
	for _, n := range nodes {
		if n > 1 {
			return
		}
	}
	var gpus []*graph.Node
	for _, n := range p.facts.gpus {
		if n.PCI != nil && n.PCI.Root != "" && n.Up != nil && n.Up.Kind == graph.KindNUMA && p.nvlinkCount(n).none(n) {
			gpus = append(gpus, n)
		}
	}
	if len(gpus) < fewestNPSGPUs || len(nodes) == 0 {
		return
	}
	c := p.Inv.CPUs[amd]
	p.Report(Finding{
		Severity: Info,
		Subjects: []string{p.Host()},
		Expected: "NPS4, or a measurement that shows NPS1 to be better here",
		Observed: fmt.Sprintf("%s, %s and %s on root ports", c.Name, count(len(p.Inv.NUMA), "NUMA node", "NUMA nodes"), count(len(gpus), "GPU", "GPUs")),
		Evidence: []Evidence{
			evidence(c.Origins, "vendor", "", "CPU vendor %s", c.Vendor),
			evidence(p.Inv.NUMA[0].Origins, "package", "", "one NUMA node for each socket"),
			evidence(gpus[0].PCI.Origins, "parent", "", "%s on a root port", gpus[0].Label),
		},
		Fix: "administrator: set NPS4 in the BIOS and measure both; it raises the bandwidth of shared memory and P2P between such GPUs",
	})
}
