package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// xidEvent is a line of the kernel log.
func xidEvent(code int, subject, on, text string) func(*host) {
	return func(h *host) {
		h.inv.Events = append(h.inv.Events, probe.Event{Kind: probe.EventXid, Code: probe.Some(code), Subject: subject, Host: on, Text: text,
			Origins: []probe.Origin{{Source: probe.SourceKernLog, Where: "dmesg:7"}}})
	}
}

func TestGPUFaulted(t *testing.T) {
	gpu := func(change func(*probe.GPU)) func(*host) { return func(h *host) { change(&h.inv.GPUs[2]) } }
	errors := func(n uint64) func(*host) {
		return gpu(func(g *probe.GPU) {
			g.ECC = &probe.ECC{VolatileUncorrected: probe.Some(n), VolatileCorrected: probe.Some[uint64](9)}
		})
	}
	pci := "pci:" + gpuAt(2)
	testRule(t, "gpu-faulted", []ruleCase{
		{name: "healthy", host: h100x8().with(errors(0)).with(gpu(func(g *probe.GPU) { g.Recovery, g.Remapped = "none", &probe.RemappedRows{Uncorrected: 1} }))},
		{name: "off the bus", host: h100x8().with(xidEvent(79, pci, "gx07", "GPU has fallen off the bus.")), want: []string{"critical sure " + gpuKey(2)}, says: []string{"Xid 79, fell off the bus", "power-cycle"}},
		{name: "on another host", host: h100x8().with(xidEvent(79, pci, "gx08", "GPU has fallen off the bus."))},
		{name: "of the application", host: h100x8().with(xidEvent(31, pci, "", "MMU fault")).with(xidEvent(43, pci, "", "stopped")).with(xidEvent(45, pci, "", "cleanup")).with(xidEvent(13, pci, "", "exception"))},
		{name: "fabric, fatal", host: h100x8().with(xidEvent(149, pci, "", "NETIR Link Fatal XC0")), want: []string{"critical sure " + gpuKey(2)}, says: []string{"reboot"}},
		{name: "fabric, nonfatal", host: h100x8().with(xidEvent(149, pci, "", "NETIR Link Nonfatal XC0")), want: []string{"warning sure " + gpuKey(2)}},
		{name: "of a GPU that no source lists", host: h100x8().with(xidEvent(79, "pci:0000:f7:00.0", "", "off the bus")), want: []string{"critical sure gpu:0000:f7:00.0"}},
		{name: "without an address", host: h100x8().with(xidEvent(48, "", "", "DBE")), want: []string{"critical sure host:gx07"}},
		{name: "uncorrected errors", host: h100x8().with(errors(1)), want: []string{"critical sure " + gpuKey(2)}},
		{name: "remapping pending", host: h100x8().with(gpu(func(g *probe.GPU) { g.Remapped = &probe.RemappedRows{Pending: true} })), want: []string{"warning sure " + gpuKey(2)}},
		{name: "remapping failed", host: h100x8().with(gpu(func(g *probe.GPU) { g.Remapped = &probe.RemappedRows{Failure: true} })), want: []string{"critical sure " + gpuKey(2)}},
		{name: "drain P2P", host: h100x8().with(gpu(func(g *probe.GPU) { g.Recovery = "drain P2P" })), want: []string{"critical sure " + gpuKey(2)}, says: []string{"NVLink is in trouble"}},
		{name: "several signs, one finding", host: h100x8().with(errors(1)).with(xidEvent(48, pci, "", "DBE")), want: []string{"critical sure " + gpuKey(2)}},
	})
}

func TestGPUMissing(t *testing.T) {
	gone := func(h *host) {
		h.inv.GPUs[5] = probe.GPU{Addr: probe.Some(bdf(gpuAt(5))), Origins: h.dev(gpuAt(5)).Origins}
	}
	testRule(t, "gpu-missing", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "one does not answer", host: h100x8().with(gone), want: []string{"critical sure " + gpuKey(5) + " host:gx07"}, says: []string{"8 GPUs in the driver's list", "7; " + gpuAt(5)}},
		{name: "container", host: h100x8().with(gone).with(func(h *host) { h.inv.Settings.Container = []probe.Mark{{What: "docker"}} })},
		{name: "given to a guest", host: h100x8().with(gone).with(func(h *host) { h.dev(gpuAt(5)).Driver = "vfio-pci" })},
		{name: "sysfs alone", host: h100x8().sysfsOnly()},
		{name: "explained by its Xid", host: h100x8().with(gone).with(xidEvent(79, "pci:"+gpuAt(5), "", "off the bus"))},
	})
}

func TestGPUThrottled(t *testing.T) {
	events := func(bits uint64) func(*host) {
		return func(h *host) { h.inv.GPUs[1].Events = probe.Some(bits) }
	}
	testRule(t, "gpu-throttled", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "idle, power cap, application clocks, sync boost", host: h100x8().with(events(0x1 | 0x4 | 0x2 | 0x10))},
		{name: "software thermal slowdown", host: h100x8().with(events(0x20))},
		{name: "thermal", host: h100x8().with(events(0x48)), want: []string{"warning sure " + gpuKey(1)}, says: []string{"hardware thermal slowdown"}},
		{name: "power brake", host: h100x8().with(events(0x80)), want: []string{"warning sure " + gpuKey(1)}},
		{name: "while measuring", host: h100x8().with(events(0x08)).with(func(h *host) {
			h.inv.Samples = []probe.Sample{{Collective: "AllReduce", Bytes: 1 << 30, Ranks: probe.Some(8), Nodes: probe.Some(1), TimeUS: 4000, AlgBW: 268, BusBW: 470, Origins: []probe.Origin{{Source: probe.SourceNCCLTests, Where: "run.txt:9"}}}}
		}), want: []string{"critical sure " + gpuKey(1)}},
		{name: "not asked", host: h100x8().with(func(h *host) { h.inv.GPUs[1].Events = probe.Opt[uint64]{} }), gap: "not in the sources"},
	})
}

func TestGPUModeRestrictive(t *testing.T) {
	mode := func(m string) func(*host) { return func(h *host) { h.inv.GPUs[0].ComputeMode = m } }
	ranks := func(gpus ...int) func(*host) {
		return func(h *host) {
			c := probe.Comm{ID: "0x1", Ranks: len(gpus)}
			for r, g := range gpus {
				c.Members = append(c.Members, probe.Member{Rank: r, Addr: probe.Some(bdf(gpuAt(g)))})
			}
			h.inv.Comms = []probe.Comm{c}
		}
	}
	testRule(t, "gpu-mode-restrictive", []ruleCase{
		{name: "healthy", host: h100x8().with(mode("default"))},
		{name: "prohibited", host: h100x8().with(mode("prohibited")), want: []string{"critical sure " + gpuKey(0)}},
		{name: "exclusive, a rank each", host: h100x8().with(mode("exclusive process")).with(ranks(0, 1))},
		{name: "exclusive, two ranks", host: h100x8().with(mode("exclusive process")).with(ranks(0, 0)), want: []string{"warning sure " + gpuKey(0)}},
		{name: "MIG on two", host: h100x8().with(func(h *host) { h.inv.GPUs[3].MIG, h.inv.GPUs[4].MIG = probe.Some(true), probe.Some(true) }), want: []string{"warning sure " + gpuKey(3) + " " + gpuKey(4)}},
		{name: "confidential computing", host: l40s(1).with(func(h *host) { h.inv.Settings.CC = probe.Some(true) }), want: []string{"warning sure gpu:0000:11:00.0"}},
	})
}

func TestGPUModelsMixed(t *testing.T) {
	other := func(id string, cc int) func(*host) {
		return func(h *host) { h.gpu(rootChild(9), h.onRoot(9, 0), id, cc, 0, gen4) }
	}
	all := "gpu:0000:11:00.0 gpu:0000:21:00.0 gpu:0000:a1:00.0"
	testRule(t, "gpu-models-mixed", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "one capability", host: l40s(2).with(other("10de:26b5", 89)), want: []string{"info sure " + all}, says: []string{"2 × L40S, 1 × L40"}},
		{name: "two capabilities", host: l40s(2).with(other("10de:2204", 86)), want: []string{"warning sure " + all}},
		{name: "the job leaves it out", host: l40s(2).with(other("10de:2204", 86)).with(func(h *host) {
			h.inv.Comms = []probe.Comm{{ID: "0x1", Ranks: 2, Members: []probe.Member{{Addr: probe.Some(bdf(rootChild(0)))}, {Rank: 1, Addr: probe.Some(bdf(rootChild(1)))}}}}
		})},
	})
}
