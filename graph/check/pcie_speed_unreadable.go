package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var pcieSpeedUnreadable = Rule{
	ID:    "pcie-speed-unreadable",
	Title: "NCCL cannot read the PCIe speed and assumes Gen3",
	Doc: `Fires, because something is unknown, for GPUs and HCAs whose link speed the kernel or the
topology file gives as "Unknown" or empty: NCCL then takes Gen3 x16, 12 GB/s in its model.

warning for Gen4 and newer devices (GPUs from compute capability 8.0 on, HCAs of 200 Gb/s
and more); info otherwise.

Silent where only the width is unknown (NCCL's x16 is right), and where a topology file
beside the host states the speed.`,
	Run: runPCIeSpeedUnreadable,
}

func runPCIeSpeedUnreadable(p *Pass) {
	c, ok := p.claims()
	beside := ok && c.beside
	var blind []*graph.Node
	var proof []Evidence
	severity := Info
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		if n.PCI == nil || n.PCI.Max.Speed.Known() {
			continue
		}
		i := slices.IndexFunc(n.PCI.Extra, func(a probe.Attr) bool { return a.Name == "link_speed" || a.Name == "max_link_speed" })
		if i < 0 || beside && c.at[n.PCI.Addr] != nil && c.at[n.PCI.Addr].Max.Speed.Known() {
			continue
		}
		if gen4OrNewer(n) {
			severity = Warning
		}
		a := n.PCI.Extra[i]
		blind = append(blind, n)
		proof = append(proof, evidence(n.PCI.Origins, "max_link.speed_gts", a.Name, "%s of %s is %q", a.Name, n.Label, a.Value))
	}
	if len(blind) == 0 {
		return
	}
	p.Report(Finding{
		Severity: severity,
		Subjects: keys(blind),
		Expected: "link speeds that NCCL can read, such as 32.0 GT/s PCIe",
		Observed: fmt.Sprintf("no speed for %s: NCCL assumes Gen3 x16 (12 GB/s)", labels(blind)),
		Evidence: proof,
		Fix:      "whoever starts the jobs: give NCCL a topology file (NCCL_TOPO_FILE) with the true link_speed and link_width; administrator: a newer kernel reads newer speeds",
	})
}

// gen4OrNewer reports devices whose PCIe interface is Gen4 or newer.
func gen4OrNewer(n *graph.Node) bool {
	gen4, _ := probe.PCIeSpeedOfGen(4)
	if n.PCI.Current.Speed.Or(0) >= gen4 {
		return true
	}
	if n.GPU != nil {
		return n.GPU.CC.Or(0) >= 80
	}
	a, ok := AdapterOf(n.PCI)
	return ok && a.Fastest >= probe.Mbps(200e3)
}
