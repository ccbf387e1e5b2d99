package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var iommuTranslates = Rule{
	ID:    "iommu-translates",
	Title: "IOMMU translates the addresses of GPUs or HCAs",
	Doc: `Fires for GPUs and HCAs whose IOMMU group is of type DMA or DMA-FQ. Where the kernel
shows no type: an IOMMU is active, the kernel command line has neither iommu=pt nor
iommu.passthrough=1, and it says intel_iommu=on or the IOMMU is AMD's (likely).

critical where GPUs talk over PCIe or an HCA sits below a GPU's switch: transfers
between devices are slow, hang or corrupt data; warning otherwise.

Silent for type identity, for passthrough on the command line, in a guest, and where no
IOMMU is active.`,
	Run: runIOMMUTranslates,
}

func runIOMMUTranslates(p *Pass) {
	s := &p.Inv.Settings
	if len(p.Guest()) > 0 || s.IOMMU == probe.Some(false) || passthrough(s.Cmdline) {
		return
	}
	var devices, unread []*graph.Node
	var proof []Evidence
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		switch {
		case n.PCI == nil || n.PCI.IOMMU == "":
			unread = append(unread, n)
		case n.PCI.IOMMU == "DMA" || n.PCI.IOMMU == "DMA-FQ":
			devices = append(devices, n)
			proof = append(proof, evidence(n.PCI.Origins, "iommu_type", "iommu_group/type", "IOMMU group of %s is of type %s", n.Label, n.PCI.IOMMU))
		}
	}
	certainty := Sure
	switch {
	case len(devices) > 0 || len(unread) == 0:
	case !s.IOMMU.Known():
		p.Gap("whether an IOMMU translates is not in the sources", readLive, p.Host())
	case s.Cmdline == "":
		p.Gap("an IOMMU is active, and the kernel command line is not in the sources", "record proc/cmdline too", p.Host())
	default:
		why := p.translatesByDefault()
		if why == "" {
			p.Gap("an IOMMU is active, and this kernel does not say whether it translates", "read the type of the groups below /sys/kernel/iommu_groups (Linux 5.11 and later)", p.Host())
			return
		}
		certainty = Likely
		devices = unread
		proof = append(proof,
			evidence(s.Origins, "iommu_active", "", "an IOMMU is active"),
			evidence(s.Origins, "cmdline", "", "%s, without iommu=pt", why))
	}
	if len(devices) == 0 {
		return
	}
	severity := Warning
	if len(p.peerPairs()) > 0 {
		severity = Critical
	}
	p.Report(Finding{
		Severity:  severity,
		Certainty: certainty,
		Subjects:  keys(devices),
		Expected:  "IOMMU in passthrough (groups of type identity), or off",
		Observed:  fmt.Sprintf("the IOMMU translates the addresses of %s", labels(devices)),
		Evidence:  proof,
		Fix:       "administrator: boot with iommu=pt on the kernel command line, or turn the IOMMU off in the BIOS (VT-d, AMD-Vi); this removes the protection of memory against devices. Until then corrupt data is possible, not only slowness",
	})
}

func passthrough(cmdline string) bool {
	return slices.ContainsFunc(strings.Fields(cmdline), func(w string) bool {
		return w == "iommu=pt" || w == "iommu.passthrough=1" || w == "iommu=off" || w == "intel_iommu=off" || w == "amd_iommu=off"
	})
}

// translatesByDefault says what makes an active IOMMU translate.
func (p *Pass) translatesByDefault() string {
	for _, w := range strings.Fields(p.Inv.Settings.Cmdline) {
		if option, ok := strings.CutPrefix(w, "intel_iommu="); ok && strings.HasPrefix(option, "on") {
			return w
		}
	}
	if slices.ContainsFunc(p.Inv.CPUs, func(c probe.CPU) bool { return c.Vendor == "AuthenticAMD" }) {
		return "AMD's IOMMU"
	}
	return ""
}
