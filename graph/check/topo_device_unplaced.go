package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var topoDeviceUnplaced = Rule{
	ID:    "topo-device-unplaced",
	Title: "Topology file leaves out a device of unknown NUMA node",
	Doc: `Fires for GPUs and RDMA adapters whose numa_node is -1 and that an NCCL topology file
puts under no <cpu>, while it places other functions of this host. NCCL then makes a
second CPU node -1 that nothing joins to the first, and crashes at initialisation.

critical.

Silent for network functions without RDMA.`,
	Run: runTopoDeviceUnplaced,
}

func runTopoDeviceUnplaced(p *Pass) {
	c, ok := p.claims()
	if !ok || !c.beside {
		return
	}
	lost := p.unplaced(c)
	if len(lost) == 0 {
		return
	}
	f := Finding{
		Severity: Critical,
		Expected: "every GPU and RDMA adapter under a <cpu> of " + c.file,
		Observed: fmt.Sprintf("%s places %s of this host, and not", c.file, count(len(c.leaves()), "device", "devices")),
		Fix:      fmt.Sprintf("whoever keeps %s: add each device as <pci busid=…/> under the <cpu> that it belongs to", c.file),
	}
	for i, d := range lost {
		key := p.keyOf(d.Addr)
		f.Subjects = append(f.Subjects, key)
		if own := "pci:" + d.Addr.String(); own != key {
			f.Subjects = append(f.Subjects, own)
		}
		f.Observed += map[bool]string{true: " ", false: ", "}[i == 0] + d.Addr.String()
		f.Evidence = append(f.Evidence, evidence(d.Origins, "numa", "numa_node", "numa_node -1 of %s", d.Addr))
	}
	f.Observed += "; its NUMA node is unknown (-1), so NCCL gives it a CPU of its own"
	f.Subjects = append(f.Subjects, c.key())
	p.Report(f)
}

// unplaced lists the devices that a file leaves without a CPU.
func (p *Pass) unplaced(c *claims) []*probe.PCIDevice {
	if !slices.ContainsFunc(c.PCI, func(d probe.PCIDevice) bool { return p.facts.pci[d.Addr] != nil && d.NUMA.Known() }) {
		return nil
	}
	var out []*probe.PCIDevice
	for i := range p.Inv.PCI {
		d := &p.Inv.PCI[i]
		rdma := !strings.HasPrefix(p.keyOf(d.Addr), "pci:") || isEFAFunction(d)
		if rdma && d.NUMANone && c.at[d.Addr] == nil && !slices.ContainsFunc(p.bridgesAbove(d), func(b *probe.PCIDevice) bool { return b.NUMA.Known() || c.at[b.Addr] != nil }) {
			out = append(out, d)
		}
	}
	return out
}

// isEFAFunction reports Amazon's Elastic Fabric Adapter by its PCI id (pci.ids:
// 1d0f:efa0 and up).
func isEFAFunction(d *probe.PCIDevice) bool {
	return d.Vendor.Or(0) == 0x1d0f && d.Device.Or(0)&0xfff0 == 0xefa0
}
