package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestIOMMUTranslates(t *testing.T) {
	kind := func(name string) func(*host) {
		return func(h *host) {
			h.inv.Settings.Origins = []probe.Origin{{Source: probe.SourceSysfs, Where: "sys"}}
			h.inv.Settings.IOMMU = probe.Some(true)
			forPCI(&h.inv, func(d *probe.PCIDevice) { d.IOMMU = name })
		}
	}
	cmdline := func(s string) func(*host) { return func(h *host) { h.inv.Settings.Cmdline = s } }
	cpu := func(vendor string) func(*host) {
		return func(h *host) { h.inv.CPUs = []probe.CPU{{Arch: "x86_64", Vendor: vendor}} }
	}
	both := "gpu:0000:11:00.0 gpu:0000:21:00.0"
	testRule(t, "iommu-translates", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "type DMA-FQ, GPUs over PCIe", host: l40s(2).with(kind("DMA-FQ")), want: []string{"critical sure " + both}, says: []string{"iommu=pt"}},
		{name: "type DMA, one GPU", host: l40s(1).with(kind("DMA")), want: []string{"warning sure gpu:0000:11:00.0"}},
		{name: "identity", host: l40s(2).with(kind("identity"))},
		{name: "passthrough on the command line", host: l40s(2).with(kind("DMA")).with(cmdline("ro iommu=pt"))},
		{name: "passthrough, new spelling", host: l40s(2).with(kind("DMA")).with(cmdline("ro iommu.passthrough=1"))},
		{name: "no IOMMU", host: l40s(2).with(kind("")).with(func(h *host) { h.inv.Settings.IOMMU = probe.Some(false) })},
		{name: "guest", host: l40s(2).with(kind("DMA")).guest()},
		{name: "old kernel, Intel on", host: l40s(2).with(kind("")).with(cmdline("ro intel_iommu=on,sm_on")).with(cpu("GenuineIntel")), want: []string{"critical likely " + both}},
		{name: "old kernel, AMD", host: l40s(2).with(kind("")).with(cmdline("ro quiet")).with(cpu("AuthenticAMD")), want: []string{"critical likely " + both}},
		{name: "old kernel, Intel not said", host: l40s(2).with(kind("")).with(cmdline("ro quiet")).with(cpu("GenuineIntel")), gap: "does not say whether it translates"},
		{name: "no command line", host: l40s(2).with(kind("")).with(cpu("AuthenticAMD")), gap: "command line is not in the sources"},
		{name: "nothing known", host: l40s(2).with(kind("")).with(func(h *host) { h.inv.Settings = probe.Settings{} }), gap: "whether an IOMMU translates"},
	})
}
