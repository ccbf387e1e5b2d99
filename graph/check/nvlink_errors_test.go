package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNVLinkErrors(t *testing.T) {
	signal := func(rate probe.Rate) func(*host) {
		return func(h *host) {
			links, _ := h.inv.GPUs[0].NVLinks.Get()
			links[3].Signal = probe.Some(rate)
		}
	}
	counts := func(c probe.NVLinkCounts) func(*host) { return func(h *host) { h.inv.GPUs[0].LinkCounts = &c } }
	ber := func(mantissa, exponent uint64) probe.NVLinkCounts {
		column := make(probe.LinkColumn, 18)
		column[3] = probe.Some(mantissa<<8 | exponent)
		return probe.NVLinkCounts{EffectiveBER: column}
	}
	link := gpuKey(0) + "--nvswitch:0000:08:00.0"
	testRule(t, "nvlink-errors", []ruleCase{
		{name: "healthy", host: h100x8().with(signal(26.562e9))},
		{name: "signals too slowly", host: h100x8().with(signal(25.781e9)), want: []string{"warning sure " + link}, says: []string{"26.562 GB/s, as NVLink 4 signals", "25.781"}},
		{name: "bit errors", host: h100x8().with(counts(ber(3, 11))), want: []string{"critical sure " + link}, says: []string{"3e-11 on link 3"}},
		{name: "bit errors as they may be", host: h100x8().with(counts(ber(1, 12)))},
		{name: "no figure", host: h100x8().with(counts(ber(15, 255)))},
		{name: "totals of one reading", host: h100x8().with(counts(probe.NVLinkCounts{Replay: probe.LinkColumn{probe.Some[uint64](7)}})), gap: "one reading"},
		{name: "no counters", host: h100x8().with(func(h *host) { h.inv.GPUs[0].LinkCounts = nil }), gap: "not in the sources"},
		{name: "a link that is down", host: h100x8().with(signal(1e9)).linksDown(0, 3)},
	})
}
