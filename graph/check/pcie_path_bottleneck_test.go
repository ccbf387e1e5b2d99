package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestPCIePathBottleneck(t *testing.T) {
	// One HCA and one GPU on root ports of their own.
	pair := func(id string, l probe.PCIeLink, gbps float64) *host {
		h := &host{}
		h.numa(1)
		h.gpu(rootChild(0), h.onRoot(0, 0), "10de:26b9", 89, 0, gen4)
		rp := h.onRoot(1, 0)
		h.dev(rp).Current, h.dev(rp).Max = l, l
		h.hca("mlx5_0", rootChild(1), rp, id, 0, l, gbps)
		return h
	}
	const hcaLink = "hca:mlx5_0--numa:0"
	// GPU and HCA behind one switch whose links are of the given generation.
	island := func(hcaL, gpuL probe.PCIeLink, gbps float64) *host {
		h := &host{}
		h.numa(1)
		up := h.bridge("0000:16:00.0", h.bridge("0000:15:01.0", "", "8086:352a", 0, gen5), "1000:c030", 0, gen5)
		h.gpu("0000:18:00.0", h.bridge("0000:17:00.0", up, "1000:c030", 0, gpuL), "10de:1db6", 70, 0, gpuL)
		h.hca("mlx5_0", "0000:19:00.0", h.bridge("0000:17:10.0", up, "1000:c030", 0, hcaL), "15b3:1021", 0, hcaL, gbps)
		return h
	}
	testRule(t, "pcie-path-bottleneck", []ruleCase{
		{name: "200 Gb/s in a Gen3 slot", host: pair("15b3:101b", gen3, 200),
			want: []string{"warning sure " + hcaLink + " hca:mlx5_0"},
			says: []string{"at least 25 GB/s for the 200 Gb/s port of mlx5_0 (Gen4 x16)", "Gen3 x16, 15.75 GB/s, 63 % of the port rate",
				"max_link_* of 0000:21:00.0 and the port above it, 0000:20:01.0 in /sys/bus/pci/devices", "move mlx5_0 to a Gen4 x16 slot"}},
		{name: "400 Gb/s in a Gen5 x4 slot", host: pair("15b3:1021", probe.LinkOfGen(5, 4), 400), want: []string{"critical sure " + hcaLink + " hca:mlx5_0"}},
		{name: "100 Gb/s in Gen3 x16", host: pair("15b3:1017", gen3, 100)},
		{name: "100 Gb/s in Gen4 x8: both 12.5 and 15.75", host: pair("15b3:101d", probe.LinkOfGen(4, 8), 100)},
		{name: "200 Gb/s in Gen4 x16", host: pair("15b3:101b", gen4, 200)},
		{name: "400 Gb/s in Gen5 x16", host: pair("15b3:1021", gen5, 400)},
		{name: "Gen2 x16 carries 8 GB/s, 64 Gb/s need 8: no step", host: pair("15b3:1013", probe.LinkOfGen(2, 16), 100).with(func(h *host) {
			h.inv.HCAs[0].Ports[0].Rate = probe.Some(probe.Mbps(66e3)) // 8.25 GB/s, 3 % more
		})},
		{name: "the nearest GPU's link is the narrow one", host: island(gen4, gen3, 200),
			want: []string{"warning sure gpu:0000:18:00.0--pci:0000:16:00.0 hca:mlx5_0"}},
		{name: "two such GPUs share the port", host: island(gen4, gen3, 200).with(func(h *host) {
			h.gpu("0000:1a:00.0", h.bridge("0000:17:08.0", "0000:16:00.0", "1000:c030", 0, gen3), "10de:1db6", 70, 0, gen3)
		})},
		{name: "two such GPUs are too slow together", host: island(gen5, gen3, 400).with(func(h *host) {
			h.gpu("0000:1a:00.0", h.bridge("0000:17:08.0", "0000:16:00.0", "1000:c030", 0, gen3), "10de:1db6", 70, 0, gen3)
		}), want: []string{"warning sure gpu:0000:18:00.0--pci:0000:16:00.0 hca:mlx5_0"}, says: []string{"Gen3 x16 on each of 2 GPUs, together 31.51 GB/s, 63 %", "nothing to repair"}},
		{name: "both narrow: one finding, at the HCA", host: island(gen3, gen3, 200),
			want: []string{"warning sure hca:mlx5_0--pci:0000:16:00.0 hca:mlx5_0"}},
		{name: "uplink does not count below a common switch", host: island(gen5, gen5, 400).with(func(h *host) {
			l := probe.LinkOfGen(4, 8)
			h.dev("0000:16:00.0").Current, h.dev("0000:16:00.0").Max = l, l
			h.dev("0000:15:01.0").Current, h.dev("0000:15:01.0").Max = l, l
		})},
		{name: "uplink counts when no GPU is below", host: island(gen5, gen5, 400).with(func(h *host) {
			l := probe.LinkOfGen(4, 8)
			h.dev("0000:16:00.0").Current, h.dev("0000:16:00.0").Max = l, l
			h.dev("0000:15:01.0").Current, h.dev("0000:15:01.0").Max = l, l
			h.inv.GPUs = nil
		}), want: []string{"critical sure pci:0000:16:00.0--numa:0 hca:mlx5_0"}},
		{name: "idle GPU at 2.5 GT/s", host: h100x8().idle()},
		{name: "a link that trained low is that rule's", host: h100x8().with(func(h *host) { h.width(hcaAt(5), 8) })},
		{name: "port DOWN", host: pair("15b3:101b", gen3, 200).with(func(h *host) { h.down(0, "DOWN", "Polling") })},
		{name: "port state not known", host: pair("15b3:101b", gen3, 200).with(func(h *host) { h.inv.HCAs[0].Ports[0].State = "" }), gap: "port state"},
		{name: "port rate not known", host: pair("15b3:101b", gen3, 200).with(func(h *host) {
			h.inv.HCAs[0].Ports[0].Rate = probe.Opt[probe.Rate]{}
		}), gap: "port rate"},
		{name: "port rate not believable", host: pair("15b3:101b", gen4, 400), gap: "no port of a ConnectX-6 does more than 200 Gb/s"},
		{name: "PCIe figure not known", host: pair("15b3:101b", probe.PCIeLink{}, 200), gap: "speed or width"},
		{name: "guest", host: pair("15b3:101b", gen3, 200).guest(), gap: "hypervisor"},
		{name: "topology file", host: pair("15b3:101b", gen3, 200).asFile(), want: []string{"warning likely " + hcaLink + " hca:mlx5_0"}},
		{name: "topology file, healthy", host: h100x8().asFile()},
		{name: "GB10: 200 Gb/s at Gen5 x4", host: (&host{}).with(func(h *host) {
			h.numa(1)
			h.gpu(rootChild(0), h.onRoot(0, 0), "10de:2e12", 121, 0, probe.LinkOfGen(1, 16))
			h.hca("rocep1s0f0", rootChild(1), h.onRoot(1, 0), "15b3:1021", 0, probe.LinkOfGen(5, 4), 200)
		}), want: []string{"warning sure hca:rocep1s0f0--numa:0 hca:rocep1s0f0"}, says: []string{"part of the board", "plan with 15.75 GB/s instead of 25 GB/s"}},
		{name: "GB10 as NCCL writes it: no class, id or NUMA node, C2C", host: (&host{}).with(func(h *host) {
			h.gpu("000f:01:00.0", "", "10de:2e12", 121, -1, probe.LinkOfGen(1, 16))
			h.hca("rocep1s0f0", "0000:01:00.0", "", "15b3:1021", -1, probe.LinkOfGen(5, 4), 200)
			h.asFile()
			h.inv.GPUs[0].C2C = &probe.C2C{Links: 8, PerLink: probe.Rate(43125e6)}
			forPCI(&h.inv, func(d *probe.PCIDevice) {
				d.NUMANone, d.Class, d.Vendor, d.Device = false, probe.Opt[probe.PCIClass]{}, probe.Opt[probe.PCIID]{}, probe.Opt[probe.PCIID]{}
			})
		}), want: []string{"warning likely hca:rocep1s0f0--numa:unknown hca:rocep1s0f0"}, says: []string{"part of the board"}},
		{name: "board of a superchip: below a switch it may be a card", host: island(gen3, gen4, 200).with(func(h *host) {
			h.dev("0000:18:00.0").Device = idOf(0x2342)
			h.dev("0000:16:00.0").Current, h.dev("0000:16:00.0").Max = gen5, gen5
		}), want: []string{"warning sure hca:mlx5_0--pci:0000:16:00.0 hca:mlx5_0"}, says: []string{"Gen4 x16 slot"}},
	})
}

func TestTrainedLowTakesTheBottleneckIn(t *testing.T) {
	res := Run(h100x8().with(func(h *host) { h.speed(hcaAt(3), 4) }).topology(t), All())
	if got := brief(res); len(got) != 1 || res.Findings[0].Rule != "pcie-speed-degraded" {
		t.Fatalf("%q", got)
	}
	last := res.Findings[0].Evidence[len(res.Findings[0].Evidence)-1]
	if last.Where != "pcie-path-bottleneck" {
		t.Errorf("%+v", last)
	}
}

func TestSlotFor(t *testing.T) {
	for gbps, want := range map[float64]string{100: "Gen3 x16", 200: "Gen4 x16", 400: "Gen5 x16", 800: "Gen6 x16", 1600: "faster"} {
		if got := slotFor(probe.Mbps(1000 * gbps)); got != want {
			t.Errorf("%v Gb/s: %s, want %s", gbps, got, want)
		}
	}
}
