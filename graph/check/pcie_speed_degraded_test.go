package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestPCIeSpeedDegraded(t *testing.T) {
	gpu0 := gpuKey(0) + " " + gpuKey(0) + belowSwitch(0) + " pci:" + downAt(0, 0)
	hca3 := "hca:mlx5_3 hca:mlx5_3" + belowSwitch(3) + " pci:" + downAt(3, 16)
	testRule(t, "pcie-speed-degraded", []ruleCase{
		{name: "busy GPU one generation low", host: h100x8().with(func(h *host) { h.speed(gpuAt(0), 4) }),
			want: []string{"warning sure " + gpu0},
			says: []string{"32.0 GT/s, which both ends can do (Gen5 x16, 63.02 GB/s)", "16.0 GT/s, 1 generation lower (Gen4 x16, 31.51 GB/s) at 97 % utilisation", "Auto or Gen5"}},
		{name: "busy GPU four generations low", host: h100x8().with(func(h *host) { h.speed(gpuAt(0), 1) }), want: []string{"critical sure " + gpu0}},
		{name: "in P0 and not idle, utilisation not known", host: h100x8().with(func(h *host) {
			h.speed(gpuAt(0), 3)
			h.inv.GPUs[0].Utilization = probe.Opt[int]{}
		}), want: []string{"critical sure " + gpu0}},
		{name: "HCA", host: h100x8().with(func(h *host) { h.speed(hcaAt(3), 4) }), want: []string{"warning sure " + hca3}},
		{name: "HCA two generations low", host: h100x8().with(func(h *host) { h.speed(hcaAt(3), 3) }), want: []string{"critical sure " + hca3}},
		{name: "switch uplink", host: h100x8().with(func(h *host) { h.speed(upAt(6), 4) }),
			want: []string{"warning sure " + switchKey(6) + " " + switchKey(6) + "--numa:1 pci:" + rootAt(6)}},
		{name: "idle GPUs at 2.5 GT/s", host: h100x8().idle(), gap: "the GPU is idle"},
		{name: "in P0 without a job", host: h100x8().with(func(h *host) {
			h.speed(gpuAt(0), 1)
			h.inv.GPUs[0].Utilization, h.inv.GPUs[0].Events = probe.Some(0), probe.Some(uint64(probe.ClockEventIdle))
		}), gap: "the GPU is idle"},
		{name: "sysfs alone: load not known", host: h100x8().idle().sysfsOnly(), gap: "load is not known"},
		{name: "sysfs was read while the GPU was idle, the driver later", host: h100x8().with(func(h *host) {
			h.speed(gpuAt(0), 1)
			h.inv.GPUs[0].Current = gen5
		})},
		{name: "older host: the port can do no more", host: h100x8().with(func(h *host) {
			h.speed(gpuAt(0), 4)
			h.dev(downAt(0, 0)).Max = gen4
		})},
		{name: "own maximum not known", host: h100x8().with(func(h *host) {
			h.speed(hcaAt(0), 4)
			h.dev(hcaAt(0)).Max = probe.PCIeLink{}
			h.inv.HCAs[0].Ports[0].Rate = probe.Some(probe.Mbps(100e3))
		}), gap: "the device's own maximum speed is not known"},
		{name: "powered down", host: h100x8().with(func(h *host) {
			h.speed(hcaAt(3), 1)
			h.dev(hcaAt(3)).Runtime = "suspended"
			h.inv.HCAs[3].Ports[0].State = "DOWN"
		}), gap: "powered down"},
		{name: "guest", host: h100x8().guest().with(func(h *host) { h.speed(hcaAt(3), 1) }), gap: "hypervisor"},
		{name: "topology file", host: h100x8().asFile(), gap: "current PCIe link"},
		{name: "token link of a superchip", host: (&host{}).with(func(h *host) {
			h.numa(1)
			h.gpu(rootChild(0), h.onRoot(0, 0), "10de:2941", 100, 0, gen5)
			h.speed(rootChild(0), 1)
		})},
	})
}
