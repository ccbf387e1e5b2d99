package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// InventoryGaps stands in Gap.Rule for what no rule can judge because the device
// itself, or a part of it, was not read: a PCI function or RDMA device that could
// not be read, a GPU that did not answer its driver, a GPU or RDMA adapter on the
// bus that no source lists as such, an event in a log. [Run] adds these gaps whatever the rules.
const InventoryGaps = "inventory"

func runInventory(p *Pass) {
	p.unreadDevices()
	p.functionsWithoutGPU()
	p.functionsWithoutHCA()
}

// unreadDevices passes on what the sources could not read of PCI functions, and
// the GPUs and RDMA devices that are missing for that reason.
func (p *Pass) unreadDevices() {
	for _, g := range p.Inv.Gaps {
		how := g.How
		if how == "" {
			how = "read it as root on the host itself, or record the device's folder too"
		}
		if i, ok := gpuOfGap(g); ok {
			known := slices.ContainsFunc(p.Inv.GPUs, func(x probe.GPU) bool { return x.Index == probe.Some(i) })
			if !known { // else the rules say what they lack
				p.Gap("the GPU was not read: "+g.Why, how, fmt.Sprintf("gpu:%d", i))
			}
			continue
		}
		if name, ok := strings.CutPrefix(g.What, "hca "); ok && g.Origin.Source == probe.SourceSysfs && !strings.Contains(name, " ") {
			if key := "hca:" + name; p.Topo.Node(key) == nil {
				p.Gap("the RDMA device was not read: "+g.Why, how, key)
			}
			continue
		}
		addr, what, ok := functionOfGap(g)
		switch {
		case !ok, what == "link": // asleep: the PCIe rules say so for what they judge
			continue
		case what == "":
			what = "the PCI function"
		}
		p.Gap(what+" was not read: "+g.Why, how, p.keyOf(addr))
	}
}

// functionOfGap returns the PCI function that a gap names and what of it is
// missing: "pci 0000:17:00.0 class" of sysfs, "pci:0000:17:00.0 max_link.width"
// of a topology file.
func functionOfGap(g probe.Gap) (addr probe.BDF, what string, ok bool) {
	rest, ok := strings.CutPrefix(g.What, "pci")
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != ':' {
		return addr, "", false
	}
	name, what, _ := strings.Cut(rest[1:], " ")
	addr, err := probe.ParseBDF(name)
	return addr, what, err == nil
}

// gpuOfGap returns the GPU that a gap of the driver names, "gpu 3 handle".
func gpuOfGap(g probe.Gap) (index int, ok bool) {
	if g.Origin.Source != probe.SourceNVML {
		return 0, false
	}
	n, err := fmt.Sscanf(g.What, "gpu %d ", &index)
	return index, n == 1 && err == nil
}

// keyOf returns the node key of a PCI function: that of its GPU or HCA where
// there is one.
func (p *Pass) keyOf(addr probe.BDF) string {
	for _, n := range p.facts.gpus {
		if n.GPU.Addr == probe.Some(addr) {
			return n.Key
		}
	}
	for _, n := range p.facts.hcas {
		if n.HCA.Addr == probe.Some(addr) {
			return n.Key
		}
	}
	return "pci:" + addr.String()
}

// functionsWithoutGPU looks for NVIDIA display functions that are no GPU of the
// inventory. Those that another driver holds, such as vfio-pci for a guest, and
// virtual functions are not this host's.
func (p *Pass) functionsWithoutGPU() {
	for _, d := range p.Inv.PCI {
		if d.Vendor != probe.Some(probe.VendorNVIDIA) || !d.Class.Or(0).IsGPU() || d.Driver != "nvidia" && d.Driver != "" || d.PhysFn.Known() {
			continue
		}
		if key := p.keyOf(d.Addr); !strings.HasPrefix(key, "gpu:") && p.allAddressed() {
			p.Gap("the function is there, but no source lists the GPU", "look for NVRM and Xid lines in the kernel log, and compare with nvidia-smi -L", key)
		}
	}
}

// allAddressed reports GPUs whose functions are all known: else the one in
// question may be a GPU that only has an index.
func (p *Pass) allAddressed() bool {
	return !slices.ContainsFunc(p.facts.gpus, func(n *graph.Node) bool { return !n.GPU.Addr.Known() })
}

// functionsWithoutHCA looks for network functions that should have an RDMA
// device where the RDMA devices were read. A port of a bond has none of its own.
func (p *Pass) functionsWithoutHCA() {
	for i := range p.Inv.PCI {
		d := &p.Inv.PCI[i]
		if !rdmaCapable(d) || !p.rdmaRead(d) || !strings.HasPrefix(p.keyOf(d.Addr), "pci:") || p.inBond(d.Addr) {
			continue
		}
		p.Gap("the function is there, but no RDMA device", "load its RDMA driver (mlx5_ib, bnxt_re, irdma) if NCCL should use it; else nothing", "pci:"+d.Addr.String())
	}
}

// rdmaCapable reports a network function that can have an RDMA device on this
// host: by driver, class or PCI id.
func rdmaCapable(d *probe.PCIDevice) bool {
	switch {
	case d.PhysFn.Known(), d.Class.Known() && !d.Class.Or(0).IsNIC(), strings.HasPrefix(d.Driver, "vfio"):
		return false
	case d.Driver == "mlx5_core", d.Class.Or(0)>>8 == classInfiniBand:
		return true
	}
	_, ok := AdapterOf(d)
	return ok
}

const classInfiniBand = 0x0207

// rdmaRead reports that the source of a function also says which RDMA devices
// there are. A recording without that folder has a gap at its path.
func (p *Pass) rdmaRead(d *probe.PCIDevice) bool {
	fromSysfs := slices.ContainsFunc(d.Origins, func(o probe.Origin) bool { return o.Source == probe.SourceSysfs })
	return fromSysfs && !slices.ContainsFunc(p.Inv.Gaps, func(g probe.Gap) bool {
		return g.Origin.Source == probe.SourceSysfs && strings.HasPrefix(g.Origin.Where, "sys/class/infiniband")
	})
}

// inBond reports a function whose card has an RDMA device for a bond, which
// stands for all of its ports.
func (p *Pass) inBond(a probe.BDF) bool {
	bond := func(name string) bool { return strings.Contains(name, "bond") }
	return slices.ContainsFunc(p.facts.hcas, func(n *graph.Node) bool {
		b, ok := n.HCA.Addr.Get()
		return ok && b.Domain == a.Domain && b.Bus == a.Bus && b.Dev == a.Dev && (bond(n.HCA.Name) || slices.ContainsFunc(n.HCA.NetDevs, bond))
	})
}
