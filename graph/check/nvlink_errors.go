package check

import (
	"fmt"
	"math"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var nvlinkErrors = Rule{
	ID:    "nvlink-errors",
	Title: "NVLink has a high error rate or signals at the wrong speed",
	Doc: `Fires for NVLinks whose effective bit error rate is worse than 1e-12 (NVLink 5), and for
links that signal at another rate than their generation does (25.781, 26.562, 53.125 GB/s).

Between two readings (ncclmap check --since) also for one more replay, recovery, packet
error or failed recovery, and for CRC errors each second.

critical for errors; warning for the speed, recoveries that succeeded, and CRC errors
below 100 each second.

Totals of one reading say nothing about now: where they are not zero, a gap says so, and
where a counter went backwards. Silent for a bit error rate of 15e-255, which stands for
none.`,
	Run: runNVLinkErrors,
}

// worstBER is the effective bit error rate that a link may have (DCGM, NVIDIA's
// health validation).
const worstBER = 1e-12

// signals holds what a link of a generation signals at, in one direction, as the
// driver prints it (docs.nvidia.com/health-validation); 0 = not judged.
var signals = []probe.Rate{2: 25.781e9, 3: 25.781e9, 4: 26.562e9, 5: 53.125e9}

func runNVLinkErrors(p *Pass) {
	for _, n := range p.facts.gpus {
		links, _ := n.GPU.NVLinks.Get()
		if len(links) == 0 {
			continue
		}
		counts := n.GPU.LinkCounts
		if counts == nil && !fromTopoFile(n.GPU.Origins) {
			p.Gap(noCounters, askDriver, n.Key)
		}
		for _, l := range links {
			if l.State != probe.LinkUp {
				continue
			}
			if counts != nil {
				p.judgeBER(n, l, counts)
			}
			signal, known := l.Signal.Get()
			gen, genKnown := l.Generation.Get()
			var want probe.Rate
			if genKnown && gen < len(signals) {
				want = signals[gen]
			}
			if known && want > 0 && math.Abs(float64(signal-want)) > 0.01*float64(want) {
				p.Report(Finding{
					Severity: Warning,
					Subjects: []string{linkSubject(n, l)},
					Expected: fmt.Sprintf("%.3f GB/s, as NVLink %d signals", float64(want)/1e9, gen),
					Observed: fmt.Sprintf("link %d signals at %.3f GB/s", l.Link, float64(signal)/1e9),
					Evidence: []Evidence{evidence(n.GPU.Origins, "nvlinks", "", "signalling rate %.3f GB/s of link %d", float64(signal)/1e9, l.Link)},
					Fix:      "administrator: reset the GPU and read it again under load; if it stays, field diagnostic, then replace the board",
				})
			}
		}
		switch {
		case counts == nil:
		case p.before != nil:
			p.nvlinkGrowth(n, links)
		case anyNVLinkError(counts):
			p.Gap("error counters of one reading: totals since boot say nothing about now", "read them twice under load and compare", n.Key)
		}
	}
}

func (p *Pass) judgeBER(n *graph.Node, l probe.NVLink, counts *probe.NVLinkCounts) {
	packed, ok := counts.EffectiveBER.At(l.Link).Get()
	mantissa, exponent, figure := probe.NVLinkBER(packed)
	if !ok || !figure || float64(mantissa)*math.Pow10(-exponent) <= worstBER {
		return
	}
	p.Report(Finding{
		Severity: Critical,
		Subjects: []string{linkSubject(n, l)},
		Expected: "an effective bit error rate of 1e-12 or better",
		Observed: fmt.Sprintf("%de-%d on link %d", mantissa, exponent, l.Link),
		Evidence: []Evidence{evidence(n.GPU.Origins, "nvlink_counters", "", "effective bit error rate %de-%d of link %d", mantissa, exponent, l.Link)},
		Fix:      "administrator: drain the host and run the field diagnostic; replace the cable or board that it names",
	})
}

// linkSubject is the key of an NVLink: both ends, as far as they are known.
func linkSubject(n *graph.Node, l probe.NVLink) string {
	remote, ok := l.Remote.Get()
	switch {
	case !ok:
		return n.Key
	case l.RemoteKind == probe.RemoteSwitch:
		return n.Key + "--nvswitch:" + remote.String()
	case l.RemoteKind == probe.RemoteGPU:
		return n.Key + "--gpu:" + remote.String()
	}
	return n.Key
}

// anyNVLinkError reports an error counter that is not zero.
func anyNVLinkError(c *probe.NVLinkCounts) bool {
	for _, column := range []probe.LinkColumn{
		c.Replay, c.Recovery, c.CRCFlit, c.CRCData, c.Malformed, c.BufferOverrun, c.RcvErrors, c.RcvRemoteErrors,
		c.RcvGeneralErrors, c.IntegrityErrors, c.Recovered, c.RecoveryFailed, c.EffectiveErrors,
	} {
		for _, v := range column {
			if v.Or(0) > 0 {
				return true
			}
		}
	}
	return false
}
