package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// placed puts a topology file beside the host that places its functions as they
// are; change alters the file.
func placed(change func(c *host)) func(*host) {
	return func(h *host) {
		h.claims("topo.xml", func(c *host) {
			for i, d := range h.inv.PCI {
				d.Origins = []probe.Origin{{Source: probe.SourceNCCLXML, Where: fmt.Sprintf("topo.xml:%d", i+2)}}
				c.inv.PCI = append(c.inv.PCI, d)
			}
			for _, g := range h.inv.GPUs {
				c.inv.GPUs = append(c.inv.GPUs, probe.GPU{Addr: g.Addr, Origins: c.inv.PCI[0].Origins})
			}
			change(c)
		})
	}
}

func drop(addrs ...string) func(*host) {
	return func(c *host) {
		for _, a := range addrs {
			for i := range c.inv.PCI {
				if c.inv.PCI[i].Addr == bdf(a) {
					c.inv.PCI = append(c.inv.PCI[:i:i], c.inv.PCI[i+1:]...)
					break
				}
			}
		}
	}
}

func TestTopoNUMAWrong(t *testing.T) {
	move := func(addr string, numa int) func(*host) {
		return placed(func(c *host) { c.dev(addr).NUMA = probe.Some(numa) })
	}
	sockets := func(pkgs ...int) func(*host) {
		return func(h *host) {
			for i := range h.inv.NUMA {
				h.inv.NUMA[i].Package = probe.Some(pkgs[i])
			}
		}
	}
	testRule(t, "topo-numa-wrong", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "the right file", host: h100x8().with(placed(func(*host) {}))},
		{name: "other socket", host: h100x8().with(sockets(0, 1)).with(move(gpuAt(0), 1)), want: []string{"critical sure " + gpuKey(0) + " file:topo.xml"},
			says: []string{"1 device under <cpu> 1 and on node 0"}},
		{name: "sockets not known", host: h100x8().with(move(hcaAt(0), 1)), want: []string{"critical sure hca:mlx5_0 file:topo.xml"}},
		{name: "same socket, sub-NUMA", host: h100x8().with(sockets(0, 0)).with(move(gpuAt(0), 1)), want: []string{"info sure " + gpuKey(0) + " file:topo.xml"}},
		{name: "a bridge", host: h100x8().with(move(upAt(0), 1))},
		{name: "numa_node -1", host: h100x8().with(move(gpuAt(0), 1)).with(func(h *host) { h.dev(gpuAt(0)).NUMA = probe.Opt[int]{} })},
	})
}

func TestTopoDeviceUnplaced(t *testing.T) {
	lost := func(h *host) {
		for at := hcaAt(0); at != ""; {
			d := h.dev(at)
			d.NUMA, d.NUMANone = probe.Opt[int]{}, true
			at = ""
			if p, ok := d.Parent.Get(); ok {
				at = p.String()
			}
		}
	}
	without := placed(drop(hcaAt(0), downAt(0, 16), upAt(0), rootAt(0), downAt(0, 0), gpuAt(0)))
	testRule(t, "topo-device-unplaced", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "placed", host: h100x8().with(lost).with(placed(func(*host) {}))},
		{name: "left out", host: h100x8().with(lost).with(func(h *host) { h.inv.GPUs = h.inv.GPUs[1:] }).with(without),
			want: []string{"critical sure hca:mlx5_0 pci:" + hcaAt(0) + " file:topo.xml"}, says: []string{"<pci busid=", "a CPU of its own"}},
		{name: "its bridge is placed", host: h100x8().with(lost).with(placed(drop(hcaAt(0))))},
		{name: "NUMA node known", host: h100x8().with(placed(drop(hcaAt(0))))},
		{name: "file of nothing here", host: h100x8().with(lost).with(func(h *host) { h.claims("topo.xml", func(*host) {}) })},
		{name: "EFA without RDMA device", host: l40s(2).with(func(h *host) { h.pci("0000:00:0c.0", "", "1d0f:efa1", 0x020000, -1, gen4) }).with(placed(drop("0000:00:0c.0"))),
			want: []string{"critical sure pci:0000:00:0c.0 file:topo.xml"}},
		{name: "ENA", host: l40s(2).with(func(h *host) { h.pci("0000:00:05.0", "", "1d0f:ec20", 0x020000, -1, gen4) }).with(placed(drop("0000:00:05.0")))},
	})
}

func TestTopoFileMismatch(t *testing.T) {
	foreign := func(c *host) { c.pci("0000:f1:00.0", "", "10de:2330", 0x030200, 0, gen5) }
	testRule(t, "topo-file-mismatch", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "the right file", host: h100x8().with(placed(func(*host) {}))},
		{name: "a GPU left out", host: h100x8().with(placed(drop(gpuAt(3)))), want: []string{"warning sure " + gpuKey(3) + " file:topo.xml"}, says: []string{"leaves out " + gpuAt(3)}},
		{name: "a GPU that the host lacks", host: h100x8().with(placed(foreign)), want: []string{"warning sure pci:0000:f1:00.0 file:topo.xml"}},
		{name: "the same in a container", host: h100x8().with(placed(foreign)).with(func(h *host) { h.inv.Settings.Container = []probe.Mark{{What: "docker"}} })},
		{name: "invented bridges", host: h100x8().with(placed(func(c *host) { c.bridge("ffff:ff:01.0", "", "1000:c030", 0, gen5) }))},
		{name: "no GPU matches", host: l40s(2).with(placed(func(c *host) { drop(rootChild(0), rootChild(1))(c); foreign(c) })),
			want: []string{"critical sure gpu:" + rootChild(0) + " gpu:" + rootChild(1) + " pci:0000:f1:00.0 file:topo.xml"}},
		{name: "skeleton", host: h100x8().with(func(h *host) {
			h.claims("topo.xml", func(c *host) { c.bridge("ffff:ff:01.0", "", "1000:c030", 0, gen5) })
		})},
		{name: "HCA that NCCL cannot use", host: h100x8().with(func(h *host) { h.down(0, "DOWN", "Disabled") }).with(placed(drop(hcaAt(0))))},
	})
}

func TestTopoInvalid(t *testing.T) {
	refused := func(assumes string) func(*host) {
		return placed(func(c *host) {
			c.inv.Refused = []probe.FileFault{{File: "topo.xml", Line: 1, Msg: "an XML declaration", Assumes: assumes}}
		})
	}
	invented := func(change func(*probe.PCIDevice)) func(*host) {
		return placed(func(c *host) {
			c.bridge("ffff:ff:01.0", "", "1000:c030", 0, gen5)
			d := c.dev("ffff:ff:01.0")
			d.SubVendor, d.SubDevice = idOf(0x1000), idOf(0x100b)
			d.Origins = []probe.Origin{{Source: probe.SourceNCCLXML, Where: "topo.xml:9"}}
			change(d)
		})
	}
	noClass := func(d *probe.PCIDevice) { d.Class = probe.Opt[probe.PCIClass]{} }
	noVendor := func(d *probe.PCIDevice) { d.Vendor = probe.Opt[probe.PCIID]{} }
	version := func(v string) func(*host) { return func(h *host) { h.runs(v) } }
	testRule(t, "topo-invalid", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "the right file", host: h100x8().with(placed(func(*host) {}))},
		{name: "refused", host: h100x8().with(refused("")), want: []string{"critical sure file:topo.xml"}, says: []string{"topo.xml:1: an XML declaration"}},
		{name: "read differently", host: h100x8().with(refused("Gen3")), want: []string{"warning sure file:topo.xml"}, says: []string{"NCCL takes Gen3"}},
		{name: "invented id with a class", host: h100x8().with(invented(func(*probe.PCIDevice) {}))},
		{name: "invented id without a class", host: h100x8().with(invented(noClass)), want: []string{"critical sure file:topo.xml"}},
		{name: "real id without a class", host: h100x8().with(placed(func(c *host) { noClass(c.dev(upAt(0))) }))},
		{name: "invented id without vendor, NCCL 2.9.6", host: h100x8().with(version("2.9.6")).with(invented(noVendor)), want: []string{"critical sure file:topo.xml"}},
		{name: "invented id without vendor, later", host: h100x8().with(version("2.9.8")).with(invented(noVendor))},
	})
}

func TestTopoNVLinkTarget(t *testing.T) {
	pair := func(a, b string, ab, ba int) *host {
		h := (&host{}).with(func(h *host) {
			h.numa(1)
			h.gpu(rootChild(0), "", "10de:1db5", 70, 0, gen3, toGPU(a, 0, ab)...)
			h.gpu(rootChild(1), "", "10de:1db5", 70, 0, gen3, toGPU(b, 0, ba)...)
		})
		return h.asFile()
	}
	zero, one := rootChild(0), rootChild(1)
	testRule(t, "topo-nvlink-target", []ruleCase{
		{name: "healthy", host: h100x8().asFile()},
		{name: "a pair", host: pair(one, zero, 6, 6)},
		{name: "to itself", host: pair(zero, zero, 2, 2), want: []string{"warning sure gpu:" + zero + " gpu:" + one + " file:topo.xml"}, says: []string{"leads to the GPU itself"}},
		{name: "unequal", host: pair(one, zero, 6, 5), want: []string{"warning sure gpu:" + zero + " gpu:" + one + " file:topo.xml"}, says: []string{"with 6 links, which names it with 5"}},
		{name: "nowhere", host: pair("0000:aa:00.0", zero, 6, 6), want: []string{"warning sure gpu:" + zero + " gpu:" + one + " file:topo.xml"}, says: []string{"0000:aa:00.0, which the file does not have"}},
		{name: "the other end lists none", host: pair(one, zero, 6, 0)},
		{name: "seen by the driver, no file", host: pair(zero, zero, 2, 2).with(func(h *host) {
			for i := range h.inv.GPUs {
				h.inv.GPUs[i].Origins = []probe.Origin{{Source: probe.SourceNVML}}
			}
			for i := range h.inv.PCI {
				h.inv.PCI[i].Origins = []probe.Origin{{Source: probe.SourceSysfs}}
			}
		})},
	})
}

func TestTopoNetAttributes(t *testing.T) {
	file := func(change func(i int, h *probe.HCA)) *host {
		return h100x8().asFile().with(func(h *host) {
			for i := range h.inv.HCAs {
				n := &h.inv.HCAs[i]
				n.SysImageGUID, n.GDR = fmt.Sprintf("9803:9b03:00aa:%04x", i), probe.Some(true)
				change(i, n)
			}
		})
	}
	testRule(t, "topo-net-attributes", []ruleCase{
		{name: "healthy", host: file(func(int, *probe.HCA) {})},
		{name: "no speed", host: file(func(i int, h *probe.HCA) {
			if i == 2 {
				h.Ports[0].Rate = probe.Opt[probe.Rate]{}
			}
		}), want: []string{"warning sure hca:mlx5_2 file:topo.xml"}, says: []string{"10 Gb/s"}},
		{name: "faster than the adapter", host: file(func(i int, h *probe.HCA) {
			if i == 2 {
				h.Ports[0].Rate = probe.Some(probe.Mbps(800e3))
			}
		}), want: []string{"warning sure hca:mlx5_2 file:topo.xml"}, says: []string{"800 Gb/s"}},
		{name: "gdr missing on one", host: file(func(i int, h *probe.HCA) {
			if i == 7 {
				h.GDR = probe.Opt[bool]{}
			}
		}), want: []string{"warning sure hca:mlx5_7 file:topo.xml"}},
		{name: "gdr on none", host: file(func(_ int, h *probe.HCA) { h.GDR = probe.Opt[bool]{} })},
		{name: "guid missing on one", host: file(func(i int, h *probe.HCA) {
			if i == 7 {
				h.SysImageGUID = ""
			}
		}), want: []string{"warning sure hca:mlx5_7 file:topo.xml"}},
		{name: "one guid on three", host: file(func(i int, h *probe.HCA) {
			if i < 3 {
				h.SysImageGUID = "0100:0000:0000:0000"
			}
		}), want: []string{"critical sure hca:mlx5_0 hca:mlx5_1 hca:mlx5_2 file:topo.xml"}, says: []string{"takes them for one"}},
		{name: "two functions of one adapter", host: file(func(i int, h *probe.HCA) {
			if i < 2 {
				h.SysImageGUID = "0100:0000:0000:0000"
			}
		})},
		{name: "names only", host: file(func(_ int, h *probe.HCA) {
			*h = probe.HCA{Name: h.Name, Addr: h.Addr, Ports: []probe.HCAPort{{}}, Origins: h.Origins}
		})},
		{name: "seen by the kernel", host: h100x8()},
	})
}
