package check

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// hypervisorVendors are the DMI vendors of virtual machines, matched as
// prefixes ("VMware, Inc.").
var hypervisorVendors = []string{"QEMU", "KVM", "VMware", "Xen", "Amazon EC2", "Google", "Microsoft Corporation", "Nebius"}

// firstHiddenNVSwitch is the compute capability from which NVSwitches are no
// PCI functions of a bare-metal host either (NVSwitch 4 is managed outside it),
// so that a hidden NVLink target says nothing about a hypervisor.
const firstHiddenNVSwitch = 100

// GuestMarks collects the signs that a host is a virtual machine: those that a
// source noted, and those that follow from PCI ids and NVLink targets. There are
// none on bare metal.
func GuestMarks(t *graph.Topology) []Evidence {
	inv := t.Inv
	var out []Evidence
	for _, m := range inv.Settings.Guest {
		out = append(out, Evidence{Source: m.Origin.Source, Where: m.Origin.Where, Fact: m.What})
	}
	noted := len(out) > 0 // sysfs notes the vendor and the PCI ids itself
	metal := strings.Contains(strings.ToLower(inv.Product.Name), "metal")
	if !noted && !metal && slices.ContainsFunc(hypervisorVendors, func(v string) bool { return strings.HasPrefix(inv.Product.Vendor, v) }) {
		out = append(out, evidence(inv.Product.Origins, "vendor", "sys_vendor", "system vendor %s", inv.Product.Vendor))
	}
	for _, v := range []probe.PCIID{probe.VendorRedHat, probe.VendorMicrosoft, probe.VendorVirtio} {
		i := slices.IndexFunc(inv.PCI, func(d probe.PCIDevice) bool { return d.Vendor == probe.Some(v) })
		if i >= 0 && !noted {
			out = append(out, evidence(inv.PCI[i].Origins, "vendor", "vendor", "PCI vendor %s, which makes virtual devices only", v))
		}
	}
	if d := emulatedSwitch(inv); d != nil && !noted {
		out = append(out, evidence(d.Origins, "device", "device", "switch 104c:8232, Gen1 in silicon, above a Gen4 or newer device: emulated"))
	}
	for _, n := range t.Of(graph.KindGPU) {
		if hiddenTarget(n) {
			out = append(out, evidence(n.GPU.Origins, "nvlinks", "", "the NVSwitch at the other end of %s's NVLinks is hidden", n.Label))
			break
		}
	}
	return out
}

// emulatedSwitch returns a TI XIO3130 switch (104c:8232) with a Gen4 or newer
// function below it: the chip is Gen1 x1, so the switch is QEMU's imitation.
func emulatedSwitch(inv *probe.Inventory) *probe.PCIDevice {
	isSwitch := func(d probe.PCIDevice) bool {
		return d.Vendor == probe.Some(probe.VendorTI) && d.Device == probe.Some(probe.PCIID(0x8232))
	}
	if !slices.ContainsFunc(inv.PCI, isSwitch) {
		return nil
	}
	at := make(map[probe.BDF]*probe.PCIDevice, len(inv.PCI))
	for i := range inv.PCI {
		at[inv.PCI[i].Addr] = &inv.PCI[i]
	}
	gen4, _ := probe.PCIeSpeedOfGen(4)
	for _, d := range inv.PCI {
		if d.Max.Speed.Or(0) < gen4 {
			continue
		}
		for up, ok := d.Parent.Get(); ok; {
			bridge := at[up]
			if bridge == nil {
				break
			}
			if isSwitch(*bridge) {
				return bridge
			}
			up, ok = bridge.Parent.Get()
		}
	}
	return nil
}

// hiddenTarget reports NVLinks that lead to an NVSwitch without an address on a
// board whose switches show on bare metal.
func hiddenTarget(n *graph.Node) bool {
	if n.GPU.CC.Or(0) >= firstHiddenNVSwitch || onChip(n) {
		return false
	}
	links, _ := n.GPU.NVLinks.Get()
	return slices.ContainsFunc(links, func(l probe.NVLink) bool {
		return l.State == probe.LinkUp && l.RemoteKind == probe.RemoteSwitch && !l.Remote.Known()
	})
}

// markText is the marks in a few words.
func markText(marks []Evidence) string {
	const most = 2
	var words []string
	for _, m := range marks[:min(most, len(marks))] {
		words = append(words, m.Fact)
	}
	if n := len(marks) - most; n > 0 {
		words = append(words, count(n, "more sign", "more signs"))
	}
	return strings.Join(words, ", ")
}
