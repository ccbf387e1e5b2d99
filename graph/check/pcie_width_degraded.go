package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var pcieWidthDegraded = Rule{
	ID:    "pcie-width-degraded",
	Title: "PCIe link runs with fewer lanes than both ends can",
	Doc: `Fires for a GPU, HCA or switch whose link runs narrower than the lower of the
two maxima of its ends (sysfs current_link_width and max_link_width of the device
and of the port above it; NVML's current and maximum width).

warning; critical at half the lanes or less when an HCA's port rate no longer
fits, or when the GPU has no NVLink.

Silent in a guest, for virtual functions, for a width of 0 or 255 (not readable),
for GPUs that reach their CPU over a chip-to-chip link, and for boards or slots
built narrower: their maximum says so.

NCCL plans with the maximum of NICs and switches, so its model does not show it.`,
	Replaces: []string{"pcie-path-bottleneck", "pcie-shared-uplink"},
	Run:      runPCIeWidthDegraded,
}

func runPCIeWidthDegraded(p *Pass) {
	for _, s := range p.facts.slots {
		if s.token() {
			continue
		}
		if len(p.Guest()) > 0 {
			p.Gap(inGuest, onHost, keys(s.nodes)...)
			continue
		}
		if d := s.asleep(); d != nil {
			p.Gap("the device is powered down", "read it while the device is in use", keys(s.nodes)...)
			continue
		}
		now, ok := s.cur.Width.Get()
		if !ok {
			p.Gap(noLiveLink, readLive, keys(s.nodes)...)
			continue
		}
		can, known := s.max.Width.Get()
		if !known || !s.bothWidths {
			if known && now >= can {
				continue // as wide as the end that is known allows
			}
			p.Gap(s.unknownMax("width", func(l probe.PCIeLink) bool { return l.Width.Known() }), readLive, keys(s.nodes)...)
			continue
		}
		if now >= can {
			continue
		}
		left := probe.PCIeLink{Speed: s.max.Speed, Width: s.cur.Width}
		severity := Warning
		var why string
		if 2*now <= can {
			if why = p.tooNarrow(s, left); why != "" {
				severity = Critical
			}
		}
		p.Report(Finding{
			Severity: severity,
			Subjects: s.subjects(),
			Expected: fmt.Sprintf("width x%d, which both ends can do (%s)", can, linkText(probe.PCIeLink{Speed: s.max.Speed, Width: s.max.Width})),
			Observed: fmt.Sprintf("width x%d (at most %s)%s", now, linkText(left), why),
			Evidence: s.widthEvidence(),
			Fix: fmt.Sprintf("hardware service: drain the host and power it off, reseat %s, then try another slot, riser or retimer. After a power cycle read both ends again: current_link_width in /sys/bus/pci/devices. No NCCL variable repairs this",
				s.where()),
		})
	}
}

// tooNarrow says why a link of the given rate is too narrow for what lies below
// it; empty when nothing known needs more.
func (p *Pass) tooNarrow(s slot, left probe.PCIeLink) string {
	rate, ok := left.Encoded().Get()
	for h, n := range p.facts.hcas {
		if !ok || !s.carries(p, h) {
			continue
		}
		if port, known := fastestPort(n); known && float64(rate) < enough*float64(port.Rate.Or(0)) {
			return fmt.Sprintf("; the %s port of %s does not fit", port.Rate.Or(0).Gbps(), n.Label)
		}
	}
	for _, n := range p.facts.gpus {
		if s.above(n) && p.nvlinkCount(n).none(n) {
			return fmt.Sprintf("; %s has no NVLink, all its traffic goes this way", n.Label)
		}
	}
	return ""
}

// above reports that a device hangs below this link.
func (s slot) above(n *graph.Node) bool {
	for ; n != nil; n = n.Up {
		for _, m := range s.nodes {
			if m == n {
				return true
			}
		}
	}
	return false
}

// carries reports that the traffic of an HCA to its nearest GPU, or to the root
// when none is below the same root, passes this link.
func (s slot) carries(p *Pass, hca int) bool {
	for _, l := range p.hcaPath(hca) {
		for _, own := range s.links {
			if own == l {
				return true
			}
		}
	}
	return false
}
