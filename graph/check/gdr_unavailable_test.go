package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestGDRUnavailable(t *testing.T) {
	facts := func(kernel string, open probe.Opt[bool], peers probe.Opt[[]string], modules ...string) func(*host) {
		return func(h *host) {
			h.inv.Host.Kernel = kernel
			h.inv.Host.Origins = []probe.Origin{{Source: probe.SourceSysfs, Where: "proc/sys/kernel"}}
			h.inv.Settings.OpenModule, h.inv.Settings.PeerMemory, h.inv.Settings.Modules = open, peers, nil
			for _, m := range modules {
				h.inv.Settings.Modules = append(h.inv.Settings.Modules, probe.Module{Name: m})
			}
		}
	}
	none, nvMem := probe.Some([]string{}), probe.Some([]string{"nv_mem_nc"})
	closed, opened := probe.Some(false), probe.Some(true)
	unread := probe.Opt[[]string]{}
	testRule(t, "gdr-unavailable", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "no module, closed driver", host: h100x8().with(facts("5.4.0-150-generic", closed, none, "nvidia")), want: []string{"critical sure host:gx07"},
			says: []string{"modprobe nvidia-peermem", "closed ones"}},
		{name: "no module, open driver, old kernel", host: h100x8().with(facts("5.4.0", opened, none, "nvidia")), want: []string{"critical sure host:gx07"}, says: []string{"Linux 5.12, and this is 5.4.0"}},
		{name: "loaded, not registered", host: h100x8().with(facts("5.15.0", closed, none, "nvidia", "nvidia_peermem")), want: []string{"critical likely host:gx07"}},
		{name: "other name of the module", host: h100x8().with(facts("5.4.0", closed, nvMem, "nvidia"))},
		{name: "loaded, peers not recorded", host: h100x8().with(facts("5.4.0", closed, unread, "nvidia", "nvidia_peermem"))},
		{name: "DMA-BUF possible", host: h100x8().with(facts("6.8.0", opened, none, "nvidia")), gap: "possible, but not proven"},
		{name: "driver's kind not known", host: h100x8().with(facts("6.8.0", probe.Opt[bool]{}, none, "nvidia")), gap: "whether DMA-BUF is possible"},
		{name: "nothing recorded", host: h100x8().with(facts("5.4.0", closed, unread)), gap: "is not in the sources"},
		{name: "no HCA", host: h100x8().with(facts("5.4.0", closed, none, "nvidia")).with(func(h *host) { h.inv.HCAs = nil })},
		{name: "no port ACTIVE", host: h100x8().with(facts("5.4.0", closed, none, "nvidia")).with(func(h *host) {
			for i := range h.inv.HCAs {
				h.down(i, "DOWN", "Disabled")
			}
		})},
		{name: "EFA", host: h100x8().with(facts("5.4.0", closed, none, "nvidia")).with(func(h *host) {
			for n := range 8 {
				h.dev(hcaAt(n)).Vendor = probe.Some(probe.PCIID(0x1d0f))
			}
		})},
		{name: "GB10", host: h100x8().with(facts("5.4.0", closed, none, "nvidia")).with(func(h *host) { h.dev(gpuAt(0)).Device = idOf(0x2e12) })},
	})
}
