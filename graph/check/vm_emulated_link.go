package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var vmEmulatedLink = Rule{
	ID:    "vm-emulated-link",
	Title: "Emulated PCIe switch claims a speed that no hardware has",
	Doc: `Fires in a guest for emulated bridges (PCI vendor 1b36, 1414 or 1af4, QEMU's 104c:8232)
above a GPU or HCA that claim 5 GT/s or less, or one lane. Data does not pass them, but
NCCL's model takes the figure: width × rate ÷ 80, for 2.5 GT/s x1 0.19 GB/s.

warning.

Silent where a topology file beside the host states true figures for the bridge or the
device. It is never a degraded link.`,
	Replaces: []string{"pcie-speed-unreadable"},
	Run:      runVMEmulatedLink,
}

func runVMEmulatedLink(p *Pass) {
	if len(p.Guest()) == 0 {
		return
	}
	gen2, _ := probe.PCIeSpeedOfGen(2)
	gen4, _ := probe.PCIeSpeedOfGen(4)
	stated := func(*probe.PCIDevice) bool { return false }
	if c, ok := p.claims(); ok && c.beside {
		stated = func(d *probe.PCIDevice) bool { return c.at[d.Addr] != nil && c.at[d.Addr].Max.Speed.Or(0) >= gen4 }
	}
	slow := map[*probe.PCIDevice]bool{}
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		if n.PCI == nil || stated(n.PCI) {
			continue
		}
		for _, b := range p.bridgesAbove(n.PCI) {
			speed, okSpeed := b.Max.Speed.Get()
			width, okWidth := b.Max.Width.Get()
			if emulated(b) && !stated(b) && (okSpeed && speed <= gen2 || okWidth && width <= 1) {
				slow[b] = true
			}
		}
	}
	if len(slow) == 0 {
		return
	}
	f := Finding{
		Severity: Warning,
		Expected: "the speed of the hardware behind the guest's PCIe tree, or none",
		Fix:      "operator of the hypervisor, or whoever starts the job: give NCCL a topology file (NCCL_TOPO_FILE) that states the true link_speed and link_width of these bridges, as the bare-metal host shows them",
	}
	var observed []string
	for i := range p.Inv.PCI { // in address order
		b := &p.Inv.PCI[i]
		if !slow[b] {
			continue
		}
		f.Subjects = append(f.Subjects, "pci:"+b.Addr.String())
		observed = append(observed, fmt.Sprintf("%s %s", b.Addr, b.Max))
		f.Evidence = append(f.Evidence, evidence(b.Origins, "max_link.speed_gts", "max_link_speed", "emulated bridge %s claims %s", b.Addr, b.Max))
	}
	f.Evidence = append(f.Evidence, p.Guest()[0])
	f.Observed = strings.Join(observed, ", ") + "; NCCL's model takes these figures for the way to everything below"
	p.Report(f)
}

// emulated reports a bridge that a hypervisor made.
func emulated(d *probe.PCIDevice) bool {
	switch d.Vendor.Or(0) {
	case probe.VendorRedHat, probe.VendorMicrosoft, probe.VendorVirtio:
		return true
	case probe.VendorTI:
		return d.Device.Or(0) == 0x8232
	}
	return false
}
