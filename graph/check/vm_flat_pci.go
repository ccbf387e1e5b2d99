package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var vmFlatPCI = Rule{
	ID:    "vm-flat-pci",
	Title: "PCI tree is flat: the hypervisor hides switches and sockets",
	Doc: `Fires for a host whose GPUs and HCAs hang directly on a root bus, with no bridge or
root port above any of them (sysfs); or, in an NCCL topology file, directly under
<cpu> or a host bridge, with numaid -1, an unreadable link_speed or a hidden NVSwitch
(target fffffff:ff:ff.0) beside it.

warning with HCAs, info without: path classes below are not evidence then, and NCCL
takes every pair for PHB.

Silent when bridges are visible above a GPU or HCA, on bare metal with GPUs on root
ports, and when a topology file beside the host (the cloud's) puts one of its GPUs or
HCAs below a bridge.`,
	Replaces: []string{"hca-far-from-gpu", "pcie-width-degraded", "pcie-speed-degraded", "pcie-uneven"},
	Run:      runVMFlatPCI,
}

func runVMFlatPCI(p *Pass) {
	if len(p.facts.gpus) == 0 || p.fileHasTree() {
		return
	}
	marks := p.Guest()
	var signs []Evidence
	var gpus, seen int
	file := false
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		d := n.PCI
		switch {
		case d == nil || d.Root == "" && !fromTopoFile(d.Origins):
			continue // where it hangs was not seen
		case d.Root != "" && !onRootBus(d), d.Root == "" && !underCPU(p.Topo, n):
			return
		}
		seen++
		if n.Kind == graph.KindGPU {
			gpus++
			if onChip(n) {
				return
			}
		}
		if d.Root != "" {
			continue
		}
		file = true
		switch {
		case len(signs) > 0:
		case d.NUMANone:
			signs = append(signs, evidence(d.Origins, "numa", "", `%s under <cpu numaid="-1">`, n.Label))
		case !d.Max.Speed.Known():
			signs = append(signs, evidence(d.Origins, "max_link.speed_gts", "", "link_speed of %s is not readable", n.Label))
		}
	}
	if gpus == 0 {
		p.Gap("the PCI tree above the GPUs is not in the sources", readLive, p.Host())
		return
	}
	if file && len(signs) == 0 && len(marks) == 0 {
		return // GPUs on root ports of a bare-metal host look the same in a file
	}
	severity, certainty := Info, Sure
	if len(p.facts.hcas) > 0 {
		severity = Warning
	}
	if len(marks) == 0 {
		certainty = Likely
	}
	observed := fmt.Sprintf("%s, no bridge above any", flatText(p.facts.gpus, p.facts.hcas))
	if len(marks) > 0 {
		observed += "; guest: " + markText(marks)
	}
	if f := p.Inv.TopoFile; f != nil {
		observed += fmt.Sprintf("; %s shows no bridge above them either", f.File)
	}
	proof := append([]Evidence{}, marks...)
	proof = append(proof, signs...)
	for _, n := range p.facts.gpus {
		if n.PCI != nil {
			proof = append(proof, evidence(n.PCI.Origins, "parent", "", "%s has no bridge above it", n.PCI.Addr))
			break
		}
	}
	p.Report(Finding{
		Severity:  severity,
		Certainty: certainty,
		Subjects:  []string{p.Host()},
		Expected:  "GPUs and HCAs below PCIe switches or root ports, as the hardware has them",
		Observed:  observed + ". Path classes below the CPU are not evidence; NCCL takes every pair for PHB",
		Evidence:  proof,
		Fix:       "operator of the hypervisor: give the guest the bare-metal tree as NCCL_TOPO_FILE, with this guest's bus ids (switch ids may be invented); expose NUMA nodes; keep ACS and ATS on. On a cloud, use the provider's topology file for this instance type",
	})
}

// fileHasTree reports a topology file beside the host that is not flat itself: it
// puts a GPU or HCA of this host below a bridge.
func (p *Pass) fileHasTree() bool {
	if p.Inv.TopoFile == nil || p.Inv.TopoFile.Claims == nil {
		return false
	}
	claims := map[probe.BDF]*probe.PCIDevice{}
	for i, d := range p.Inv.TopoFile.Claims.PCI {
		claims[d.Addr] = &p.Inv.TopoFile.Claims.PCI[i]
	}
	return slices.ContainsFunc(slices.Concat(p.facts.gpus, p.facts.hcas), func(n *graph.Node) bool {
		if n.PCI == nil || claims[n.PCI.Addr] == nil {
			return false
		}
		up, ok := claims[n.PCI.Addr].Parent.Get()
		return ok && claims[up] != nil && claims[up].Class != probe.Some(probe.ClassBridgeHost)
	})
}

// onRootBus reports a function directly on a root bus of sysfs' tree. A
// discrete GPU or HCA of a bare-metal host has at least a root port above it.
func onRootBus(d *probe.PCIDevice) bool {
	return !d.Parent.Known() && d.Root == fmt.Sprintf("pci%04x:%02x", d.Addr.Domain, d.Addr.Bus)
}

// underCPU reports a function of a topology file that hangs on <cpu> itself or
// on a host bridge. Such files leave root ports out.
func underCPU(t *graph.Topology, n *graph.Node) bool {
	if n.Up == nil || n.Up.Kind == graph.KindNUMA {
		return true
	}
	return n.Up.PCI != nil && n.Up.PCI.Class == probe.Some(probe.ClassBridgeHost) && (n.Up.Up == nil || n.Up.Up.Kind == graph.KindNUMA)
}

func flatText(gpus, hcas []*graph.Node) string {
	text := count(len(gpus), "GPU", "GPUs")
	if len(hcas) > 0 {
		text += " and " + count(len(hcas), "HCA", "HCAs")
	}
	return text + " directly on a root bus"
}
