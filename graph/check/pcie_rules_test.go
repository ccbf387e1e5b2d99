package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestPCIeSharedUplink(t *testing.T) {
	// shared puts two HCAs behind one switch, without a GPU.
	shared := func(gbps float64, up probe.PCIeLink) *host {
		h := &host{}
		h.numa(1)
		rp := h.onRoot(0, 0)
		sw := h.bridge("0000:11:00.0", rp, "1000:c030", 0, up)
		for n := range 2 {
			down := h.bridge([]string{"0000:12:00.0", "0000:12:01.0"}[n], sw, "1000:c030", 0, gen5)
			h.hca([]string{"mlx5_0", "mlx5_1"}[n], []string{"0000:13:00.0", "0000:14:00.0"}[n], down, "15b3:101b", 0, gen4, gbps)
		}
		h.gpu(rootChild(3), h.onRoot(3, 0), "10de:26b9", 89, 0, gen4)
		return h
	}
	dual := func(gbps float64) *host {
		h := l40s(1)
		port := h.onRoot(3, 0)
		for n := range 2 {
			h.hca([]string{"mlx5_0", "mlx5_1"}[n], []string{"0000:41:00.0", "0000:41:00.1"}[n], port, "15b3:1017", 0, gen3, gbps)
			h.inv.HCAs[n].SysImageGUID = "9803:9b03:00aa:bb01"
		}
		return h
	}
	near := shared(200, gen4).with(func(h *host) {
		h.gpu("0000:15:00.0", h.bridge("0000:12:02.0", "0000:11:00.0", "1000:c030", 0, gen5), "10de:26b9", 89, 0, gen4)
	})
	want := []string{"warning sure pci:0000:11:00.0--numa:0 pci:0000:11:00.0 hca:mlx5_0 hca:mlx5_1"}
	testRule(t, "pcie-shared-uplink", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "two HDR behind one Gen4 x16", host: shared(200, gen4), want: want, says: []string{"50 GB/s for the ports of mlx5_0, mlx5_1", "63 % of it"}},
		{name: "two EDR behind one Gen4 x16", host: shared(100, gen4)},
		{name: "two HDR behind one Gen5 x16", host: shared(200, gen5)},
		{name: "one port down", host: shared(200, gen4).with(func(h *host) { h.down(1, "DOWN", "Polling") })},
		{name: "a GPU behind the same switch", host: near},
		{name: "two functions for one port", host: shared(200, gen4).with(func(h *host) {
			h.inv.HCAs[0].SysImageGUID, h.inv.HCAs[1].SysImageGUID = "9803:9b03:00aa:bb01", "9803:9b03:00aa:bb01"
		})},
		{name: "guest", host: shared(200, gen4).guest()},
		{name: "two EDR ports of one card in Gen3 x16", host: dual(100), want: []string{"warning sure hca:mlx5_0--numa:0 pci:0000:41:00.0 hca:mlx5_0 hca:mlx5_1"}},
	})
}

func TestPCIeSlotNarrow(t *testing.T) {
	slot := func(n, gen, width int) func(*host) {
		return func(h *host) {
			l := probe.LinkOfGen(gen, width)
			port := h.dev(h.dev(rootChild(n)).Parent.Or(probe.BDF{}).String())
			port.Max, port.Current = l, l
			h.dev(rootChild(n)).Current = h.dev(rootChild(n)).Max.Min(l)
		}
	}
	nic := func(h *host) { h.hca("mlx5_0", rootChild(6), h.onRoot(6, 0), "15b3:101b", 0, gen4, 200) }
	testRule(t, "pcie-slot-narrow", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "one GPU of four in an x8 slot", host: l40s(4).with(slot(1, 5, 8)), want: []string{"info sure gpu:0000:21:00.0 gpu:0000:21:00.0--numa:0 pci:0000:20:01.0"}, says: []string{"bifurcation"}},
		{name: "all GPUs in Gen3 slots", host: l40s(2).with(slot(0, 3, 16)).with(slot(1, 3, 16))},
		{name: "the only GPU", host: l40s(1).with(slot(0, 3, 16)), want: []string{"info sure gpu:0000:11:00.0 gpu:0000:11:00.0--numa:0 pci:0000:10:01.0"}},
		{name: "HCA whose port fits", host: l40s(1).with(nic).with(slot(6, 5, 8)).with(func(h *host) { h.inv.HCAs[0].Ports[0].Rate = probe.Some(probe.Mbps(100e3)) }),
			want: []string{"info sure hca:mlx5_0 hca:mlx5_0--numa:0 pci:0000:70:01.0"}},
		{name: "HCA whose port does not fit", host: l40s(1).with(nic).with(slot(6, 4, 8)), want: []string{"warning sure hca:mlx5_0 hca:mlx5_0--numa:0 pci:0000:70:01.0"}, says: []string{"200 Gb/s port of mlx5_0 does not fit"}},
		{name: "slot wider than the card", host: l40s(1).with(slot(0, 6, 32))},
		{name: "guest", host: l40s(1).with(slot(0, 3, 16)).guest()},
		{name: "topology file", host: l40s(1).with(slot(0, 3, 16)).asFile()},
	})
}

func TestPCIeUneven(t *testing.T) {
	low := func(gen int, gpus ...int) func(*host) {
		return func(h *host) {
			for _, n := range gpus {
				h.dev(rootChild(n)).Max = probe.LinkOfGen(gen, 16)
			}
		}
	}
	hwloc := func(h *host) {
		for n := range 4 {
			h.hca([]string{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}[n], rootChild(8 + n)[:8]+"01.0", "", "15b3:101b", 0, probe.PCIeLink{}, 200)
			d := h.dev(rootChild(8 + n)[:8] + "01.0")
			d.Extra = []probe.Attr{{Name: "pci_link_speed", Value: []string{"31.5", "31.5", "7.9", "31.5"}[n]}}
		}
	}
	testRule(t, "pcie-uneven", []ruleCase{
		{name: "healthy", host: h100x8().asFile()},
		{name: "one generation lower", host: l40s(4).with(low(3, 2)).asFile(), want: []string{"warning likely gpu:0000:31:00.0"}, says: []string{"Gen3 x16", "3 of 4 devices alike"}},
		{name: "two generations lower", host: l40s(4).with(low(2, 2)).asFile(), want: []string{"critical likely gpu:0000:31:00.0"}},
		{name: "two of a kind", host: l40s(2).with(low(2, 1)).asFile()},
		{name: "sysfs tells both ends", host: l40s(4).with(low(3, 2))},
		{name: "guest", host: l40s(4).with(low(3, 2)).asFile().guest()},
		{name: "another kind of slot", host: l40s(4).with(low(3, 2)).asFile().with(func(h *host) {
			h.bridge("0000:30:01.0", "", "1000:c030", 0, gen4)
			h.dev("0000:30:01.0").Root = ""
			h.dev("0000:30:01.0").Origins = h.dev(rootChild(0)).Origins
			h.dev(rootChild(2)).Parent = probe.Some(bdf("0000:30:01.0"))
		})},
		{name: "hwloc", host: (&host{}).with(hwloc), want: []string{"critical likely hca:mlx5_2"}},
	})
}

func TestPCIeSpeedUnreadable(t *testing.T) {
	unknown := func(name, text string) func(*host) {
		return func(h *host) {
			d := h.dev(rootChild(0))
			d.Max.Speed, d.Current = probe.Opt[probe.PCIeSpeed]{}, probe.PCIeLink{}
			if name != "" {
				d.Extra = []probe.Attr{{Name: name, Value: text}}
			}
		}
	}
	testRule(t, "pcie-speed-unreadable", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "kernel says Unknown", host: l40s(1).with(unknown("max_link_speed", "Unknown speed")), want: []string{"warning sure gpu:0000:11:00.0"}, says: []string{"Gen3 x16 (12 GB/s)"}},
		{name: "empty in a file", host: l40s(1).with(unknown("link_speed", "")).asFile(), want: []string{"warning sure gpu:0000:11:00.0"}},
		{name: "older GPU", host: l40s(1).with(unknown("link_speed", "")).with(func(h *host) { h.inv.GPUs[0].CC = probe.Some(70) }), want: []string{"info sure gpu:0000:11:00.0"}},
		{name: "not in the sources", host: l40s(1).with(unknown("", ""))},
		{name: "a file beside states it", host: l40s(1).with(placed(func(*host) {})).with(unknown("max_link_speed", "Unknown"))},
		{name: "only the width is unknown", host: l40s(1).with(func(h *host) { h.dev(rootChild(0)).Max.Width = probe.Opt[int]{} })},
	})
}

func TestPCIeErrors(t *testing.T) {
	count := func(at string, c, n, f uint64) func(*host) {
		return func(h *host) {
			h.dev(at).Errors = &probe.PCIeCounters{Correctable: probe.Some(c), NonFatal: probe.Some(n), Fatal: probe.Some(f)}
		}
	}
	replays := func(n uint64) func(*host) { return func(h *host) { h.inv.GPUs[0].Replays = probe.Some(n) } }
	subjects := "gpu:0000:11:00.0 gpu:0000:11:00.0--numa:0 pci:0000:10:01.0"
	testRule(t, "pcie-errors", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "fatal", host: l40s(1).with(count(rootChild(0), 0, 0, 1)), want: []string{"critical sure " + subjects}, says: []string{"1 fatal errors at 0000:11:00.0"}},
		{name: "nonfatal at the port above", host: l40s(1).with(count("0000:10:01.0", 0, 2, 0)), want: []string{"warning sure " + subjects}, says: []string{"at 0000:10:01.0"}},
		{name: "correctable within a minute's budget", host: l40s(1).with(count(rootChild(0), 16, 0, 0))},
		{name: "correctable beyond it", host: l40s(1).with(count(rootChild(0), 17, 0, 0)), want: []string{"info sure " + subjects}, says: []string{"read the counters twice"}},
		{name: "Gen5 x16 may have 32", host: h100x8().with(count(gpuAt(0), 32, 0, 0))},
		{name: "replays within the budget of Gen4 x16", host: l40s(1).with(replays(16))},
		{name: "replays beyond it", host: l40s(1).with(replays(17)), want: []string{"info sure " + subjects}},
		{name: "driver's counters", host: l40s(1).with(func(h *host) { h.inv.GPUs[0].PCIe = &probe.PCIeCounters{Fatal: probe.Some[uint64](3)} }), want: []string{"critical sure " + subjects}},
		{name: "guest", host: l40s(1).with(count(rootChild(0), 0, 0, 1)).guest()},
		{name: "no counters", host: l40s(1).with(func(h *host) { h.dev(rootChild(0)).Errors = nil })},
	})
}
