package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var gpuMissing = Rule{
	ID:    "gpu-missing",
	Title: "GPU on the bus does not answer the driver",
	Doc: `Fires for NVIDIA display functions on the PCI bus that are no GPU of the driver's list
(NVML, nvidia-smi -q), though the driver holds them.

critical.

Silent in a container, which may be given a part of the GPUs, for functions that another
driver holds (vfio-pci for a guest), for virtual functions, and for display adapters of
other vendors.`,
	Run: runGPUMissing,
}

func runGPUMissing(p *Pass) {
	answers := map[probe.BDF]bool{}
	any := false
	for _, g := range p.Inv.GPUs {
		if !driverSaw(g) {
			continue
		}
		any = true
		addr, ok := g.Addr.Get()
		if !ok {
			return // which function it is, nobody says
		}
		answers[addr] = true
	}
	if !any || len(p.Inv.Settings.Container) > 0 {
		return
	}
	f := Finding{Severity: Critical}
	var lost []string
	onBus := 0
	for i := range p.Inv.PCI {
		d := &p.Inv.PCI[i]
		if d.Vendor != probe.Some(probe.VendorNVIDIA) || !d.Class.Or(0).IsGPU() || d.Driver != "nvidia" && d.Driver != "" || d.PhysFn.Known() {
			continue
		}
		onBus++
		if answers[d.Addr] {
			continue
		}
		lost = append(lost, d.Addr.String())
		f.Subjects = append(f.Subjects, p.keyOf(d.Addr))
		f.Evidence = append(f.Evidence, evidence(d.Origins, "class", "class", "NVIDIA display function %s", d.Addr))
	}
	if len(lost) == 0 {
		return
	}
	f.Subjects = append(f.Subjects, p.Host())
	f.Expected = fmt.Sprintf("%s in the driver's list, as on the bus", count(onBus, "GPU", "GPUs"))
	f.Observed = fmt.Sprintf("%d; %s is missing", onBus-len(lost), strings.Join(lost, ", "))
	f.Fix = "administrator: look for Xid 79 and NVRM lines of these addresses in the kernel log, and power-cycle the host; then reseat or replace the board. If the GPUs were taken from the driver on purpose, nothing"
	p.Report(f)
}

// driverSaw reports a GPU of the driver's own list.
func driverSaw(g probe.GPU) bool {
	for _, o := range g.Origins {
		if o.Source == probe.SourceNVML || o.Source == probe.SourceSMIQuery {
			return true
		}
	}
	return false
}
