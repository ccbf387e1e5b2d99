package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestPCIeWidthDegraded(t *testing.T) {
	root := func(id string, cc int, links ...probe.NVLink) *host {
		h := &host{}
		h.numa(1)
		h.gpu(rootChild(0), h.onRoot(0, 0), id, cc, 0, gen4, links...)
		return h
	}
	testRule(t, "pcie-width-degraded", []ruleCase{
		{name: "GPU at x8: its HCA's port does not fit", host: h100x8().with(func(h *host) { h.width(gpuAt(2), 8) }),
			want: []string{"critical sure " + gpuKey(2) + " " + gpuKey(2) + belowSwitch(2) + " pci:" + downAt(2, 0)},
			says: []string{"width x16", "Gen5 x16, 63.02 GB/s", "width x8 (at most Gen5 x8, 31.51 GB/s); the 400 Gb/s port of mlx5_2 does not fit", "reseat GPU2 (" + gpuAt(2) + ", below port " + downAt(2, 0) + ")"}},
		{name: "idle GPU at x8: width does not change when idle; NVLink carries the rest", host: h100x8().with(func(h *host) {
			h.width(gpuAt(2), 8)
			h.inv.HCAs = nil
		}).idle(),
			want: []string{"warning sure " + gpuKey(2) + " " + gpuKey(2) + belowSwitch(2) + " pci:" + downAt(2, 0)},
			says: []string{"31.51 GB/s"}},
		{name: "GPU without NVLink at half", host: root("10de:26b9", 89).with(func(h *host) { h.width(rootChild(0), 8) }),
			want: []string{"critical sure gpu:0000:11:00.0 gpu:0000:11:00.0--numa:0 pci:0000:10:01.0"}, says: []string{"has no NVLink"}},
		{name: "GPU without NVLink at three quarters", host: root("10de:26b9", 89).with(func(h *host) { h.width(rootChild(0), 12) }),
			want: []string{"warning sure gpu:0000:11:00.0 gpu:0000:11:00.0--numa:0 pci:0000:10:01.0"}},
		{name: "HCA at x8: the 400 Gb/s port does not fit", host: h100x8().with(func(h *host) { h.width(hcaAt(5), 8) }),
			want: []string{"critical sure hca:mlx5_5 hca:mlx5_5" + belowSwitch(5) + " pci:" + downAt(5, 16)},
			says: []string{"400 Gb/s port of mlx5_5 does not fit"}},
		{name: "HCA at x8 of Gen5 with a 200 Gb/s port: it still fits", host: h100x8().with(func(h *host) {
			h.width(hcaAt(5), 8)
			h.inv.HCAs[5].Ports[0].Rate = probe.Some(probe.Mbps(200e3))
		}), want: []string{"warning sure hca:mlx5_5 hca:mlx5_5" + belowSwitch(5) + " pci:" + downAt(5, 16)}},
		{name: "uplink at x4: GPU and HCA turn round below", host: h100x8().with(func(h *host) { h.width(upAt(0), 4) }),
			want: []string{"warning sure " + switchKey(0) + " " + switchKey(0) + "--numa:0 pci:" + rootAt(0)}},
		{name: "two functions of one card are one link", host: h100x8().with(func(h *host) {
			h.hca("mlx5_9", "0000:19:00.1", downAt(0, 16), "15b3:1021", 0, gen5, 400)
			h.width("0000:19:00.1", 4)
			h.width(hcaAt(0), 4)
		}), want: []string{"critical sure hca:mlx5_0 hca:mlx5_9 hca:mlx5_0" + belowSwitch(0) + " hca:mlx5_9" + belowSwitch(0) + " pci:" + downAt(0, 16)}},
		{name: "narrow slot: the port can do no more", host: h100x8().with(func(h *host) {
			h.width(gpuAt(2), 8)
			h.dev(downAt(2, 0)).Max.Width = probe.Some(8)
		})},
		{name: "board built narrower", host: h100x8().with(func(h *host) {
			h.width(hcaAt(2), 8)
			h.dev(hcaAt(2)).Max.Width = probe.Some(8)
			h.inv.HCAs[2].Ports[0].Rate = probe.Some(probe.Mbps(200e3))
		})},
		{name: "driver alone, x8 of x16", host: &host{inv: probe.Inventory{GPUs: []probe.GPU{{Index: probe.Some(0), Addr: probe.Some(bdf("0000:01:00.0")),
			Current: probe.LinkOfGen(4, 8), Max: gen4, Origins: []probe.Origin{{Source: probe.SourceNVML, Where: "device 0"}}}}}},
			want: []string{"warning sure gpu:0000:01:00.0"}},
		{name: "width 0 is not readable", host: h100x8().with(func(h *host) {
			h.dev(gpuAt(0)).Current.Width, h.dev(downAt(0, 0)).Current.Width = probe.Opt[int]{}, probe.Opt[int]{}
			h.inv.GPUs[0].Current.Width = probe.Opt[int]{}
		}), gap: "current PCIe link"},
		{name: "port above out of sight", host: h100x8().with(func(h *host) {
			h.width(hcaAt(0), 8)
			h.dev(downAt(0, 16)).Max = probe.PCIeLink{}
			h.inv.HCAs[0].Ports[0].Rate = probe.Some(probe.Mbps(100e3))
		}), gap: "the maximum width of the port above is not known"},
		{name: "own maximum not known", host: h100x8().with(func(h *host) {
			h.width(hcaAt(0), 8)
			h.dev(hcaAt(0)).Max = probe.PCIeLink{}
			h.inv.HCAs[0].Ports[0].Rate = probe.Some(probe.Mbps(100e3))
		}), gap: "the device's own maximum width is not known"},
		{name: "neither maximum known", host: h100x8().with(func(h *host) {
			h.dev(hcaAt(0)).Max, h.dev(downAt(0, 16)).Max = probe.PCIeLink{}, probe.PCIeLink{}
		}), gap: "known of neither end"},
		{name: "no port above", host: h100x8().with(func(h *host) {
			h.width(hcaAt(0), 8)
			h.dev(hcaAt(0)).Parent = probe.Opt[probe.BDF]{}
			h.inv.HCAs[0].Ports[0].Rate = probe.Some(probe.Mbps(100e3))
		}), gap: "the port above is not visible"},
		{name: "virtual function", host: h100x8().with(func(h *host) {
			h.dev(hcaAt(0)).PhysFn = probe.Some(bdf(hcaAt(0)))
			h.width(hcaAt(0), 4)
		})},
		{name: "token link of a superchip", host: root("10de:2342", 90).with(func(h *host) { h.width(rootChild(0), 1) })},
		{name: "C2C as a source states it", host: root("10de:ffff", 90).with(func(h *host) {
			h.width(rootChild(0), 1)
			h.inv.GPUs[0].C2C = &probe.C2C{Links: 10, PerLink: probe.GBs(45)}
		})},
		{name: "POWER: data goes over NVLink to the CPU", host: root("10de:1db1", 70, probe.NVLink{State: probe.LinkUp, RemoteKind: probe.RemoteCPU}).with(func(h *host) {
			h.width(rootChild(0), 2)
		})},
		{name: "powered down", host: h100x8().with(func(h *host) {
			h.width(hcaAt(0), 1)
			h.dev(hcaAt(0)).Runtime = "suspended"
			h.inv.HCAs[0].Ports[0].State = "DOWN"
		}), gap: "powered down"},
		{name: "guest", host: h100x8().guest().with(func(h *host) { h.width(gpuAt(0), 1) }), gap: "hypervisor"},
		{name: "topology file: one figure", host: h100x8().asFile(), gap: "current PCIe link"},
	})
}
