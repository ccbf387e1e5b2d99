package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestVMEmulatedLink(t *testing.T) {
	slow := probe.LinkOfGen(1, 1)
	vm := func(vendor string, l probe.PCIeLink) *host {
		h := (&host{}).guest()
		h.numa(1)
		h.bridge("0000:10:01.0", "", vendor, 0, l)
		h.gpu("0000:11:00.0", "0000:10:01.0", "10de:2330", 90, 0, gen5)
		return h
	}
	stated := func(h *host) {
		h.claims("topo.xml", func(c *host) {
			c.pci("0000:10:01.0", "", "104c:8232", probe.ClassBridgePCI, 0, gen5)
			c.dev("0000:10:01.0").Origins = []probe.Origin{{Source: probe.SourceNCCLXML, Where: "topo.xml:3"}}
		})
	}
	metal := vm("104c:8232", slow).with(func(h *host) { h.inv.Settings.Guest = nil; h.dev("0000:11:00.0").Max = gen3 })
	testRule(t, "vm-emulated-link", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "QEMU's switch", host: vm("104c:8232", slow), want: []string{"warning sure pci:0000:10:01.0"}, says: []string{"NCCL_TOPO_FILE"}},
		{name: "QEMU's root port at Gen2", host: vm("1b36:000c", probe.LinkOfGen(2, 16)), want: []string{"warning sure pci:0000:10:01.0"}},
		{name: "QEMU's root port at Gen4", host: vm("1b36:000c", probe.LinkOfGen(4, 32))},
		{name: "hardware passed through", host: vm("1000:c030", slow)},
		{name: "a file states it", host: vm("104c:8232", slow).with(stated)},
		{name: "the chip itself, on bare metal", host: metal},
		{name: "above no GPU", host: vm("104c:8232", slow).with(func(h *host) { h.inv.GPUs = nil })},
	})
}
