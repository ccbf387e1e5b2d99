package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestVMFlatPCI(t *testing.T) {
	// GPUs and HCAs each alone in a PCI domain, as Azure shows them.
	domains := func() *host {
		h := &host{}
		h.numa(2)
		for n := range 2 {
			h.gpu([]string{"0031:00:00.0", "0039:00:00.0"}[n], "", "10de:2330", 90, n, probe.PCIeLink{}, toSwitches(18)...)
			h.hca([]string{"mlx5_0", "mlx5_1"}[n], []string{"0431:00:00.0", "0439:00:00.0"}[n], "", "15b3:101e", n, probe.PCIeLink{}, 400)
		}
		h.inv.Product = probe.Product{Vendor: "Microsoft Corporation", Name: "Virtual Machine", Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/dmi/id"}}}
		return h
	}
	onRoots := func() *host {
		h := &host{}
		h.numa(1)
		h.gpu(rootChild(0), h.onRoot(0, 0), "10de:26b9", 89, 0, gen4)
		h.hca("mlx5_0", rootChild(1), h.onRoot(1, 0), "15b3:101b", 0, gen4, 200)
		return h
	}
	testRule(t, "vm-flat-pci", []ruleCase{
		{name: "two GPUs on bus 0", host: flatVM(), want: []string{"info sure host:localhost"},
			says: []string{"2 GPUs directly on a root bus, no bridge above any; guest: system vendor QEMU, the NVSwitch", "NCCL_TOPO_FILE", "ACS"}},
		{name: "one domain each, with HCAs", host: domains(), want: []string{"warning sure host:localhost"}, says: []string{"2 GPUs and 2 HCAs", "Microsoft Corporation"}},
		{name: "no mark, yet no bridge", host: flatVM().with(func(h *host) {
			h.inv.Settings = probe.Settings{}
			h.inv.GPUs[0].NVLinks, h.inv.GPUs[1].NVLinks = toNothing, toNothing
		}), want: []string{"info likely host:localhost"}},
		{name: "named host", host: flatVM().with(func(h *host) { h.inv.Host.Name = "vm3" }), want: []string{"info sure host:vm3"}},
		{name: "topology file, numaid -1", host: flatVM().asFile(), want: []string{"info sure host:localhost"}, says: []string{"hidden"}},
		{name: "topology file, numaid -1 is the only sign", host: onRoots().with(func(h *host) {
			for i := range h.inv.PCI {
				h.inv.PCI[i].NUMA, h.inv.PCI[i].NUMANone = probe.Opt[int]{}, true
			}
		}).asFile(), want: []string{"warning likely host:localhost"}},
		{name: "topology file, link_speed not readable", host: onRoots().with(func(h *host) { h.dev(rootChild(0)).Max.Speed = probe.Opt[probe.PCIeSpeed]{} }).asFile(),
			want: []string{"warning likely host:localhost"}},
		{name: "topology file of a bare-metal host with GPUs on root ports", host: onRoots().asFile()},
		{name: "bare metal with GPUs on root ports", host: onRoots()},
		{name: "guest whose GPUs sit below bridges", host: h100x8().guest()},
		{name: "the cloud's topology file is given", host: domains().with(func(h *host) {
			h.claims("ndv5-topo.xml", func(c *host) {
				up := c.bridge("ffff:ff:01.0", "", "1000:c030", 0, gen5) // invented, as is right
				c.pci("0031:00:00.0", up, "10de:2330", 0x030200, 0, gen5)
			})
		})},
		{name: "a topology file that is as flat", host: domains().with(func(h *host) {
			h.claims("flat.xml", func(c *host) { c.pci("0031:00:00.0", "", "10de:2330", 0x030200, 0, gen5) })
		}), want: []string{"warning sure host:localhost"}, says: []string{"flat.xml shows no bridge above them either"}},
		{name: "a topology file with host bridges only", host: domains().with(func(h *host) {
			h.claims("flat.xml", func(c *host) {
				c.pci("ffff:ff:01.0", "", "8086:09a2", probe.ClassBridgeHost, 0, gen5)
				c.pci("0031:00:00.0", "ffff:ff:01.0", "10de:2330", 0x030200, 0, gen5)
			})
		}), want: []string{"warning sure host:localhost"}},
		{name: "the topology file of another machine", host: domains().with(func(h *host) {
			h.claims("other.xml", func(c *host) {
				c.pci("0000:17:00.0", c.bridge("0000:16:00.0", "", "1000:c030", 0, gen5), "10de:2330", 0x030200, 0, gen5)
			})
		}), want: []string{"warning sure host:localhost"}},
		{name: "numaid not written: no sign", host: onRoots().with(func(h *host) {
			for i := range h.inv.PCI {
				h.inv.PCI[i].NUMA = probe.Opt[int]{}
			}
		}).asFile()},
		{name: "superchip in a file", host: (&host{}).with(func(h *host) {
			h.gpu(rootChild(0), h.onRoot(0, -1), "10de:2941", 100, -1, gen5)
		}).asFile()},
		{name: "bus not seen", host: matrix(2, nil, "X PIX", "- X"), gap: "PCI tree"},
		{name: "addresses from the driver only", host: flatVM().with(func(h *host) {
			for i := range h.inv.PCI {
				h.inv.PCI[i].Root, h.inv.PCI[i].Origins = "", []probe.Origin{{Source: "smiquery", Where: "smi.xml"}}
			}
		}), gap: "PCI tree"},
		{name: "no GPU", host: flatVM().with(func(h *host) { h.inv.GPUs = nil })},
	})
}
