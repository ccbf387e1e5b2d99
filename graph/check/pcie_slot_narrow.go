package check

import (
	"fmt"
)

var pcieSlotNarrow = Rule{
	ID:    "pcie-slot-narrow",
	Title: "Card can do more than the slot that it sits in",
	Doc: `Fires for a GPU or HCA whose own maximum width or speed is higher than that of the port
above it: the slot, riser or bifurcation is built narrower than the card.

info; warning where an HCA's port rate does not fit through the port.

Silent in a guest, and for GPUs whose siblings of the same model all sit so: a newer GPU in
an older host.`,
	Replaces: []string{"pcie-path-bottleneck", "pcie-shared-uplink"},
	Run:      runPCIeSlotNarrow,
}

func runPCIeSlotNarrow(p *Pass) {
	if len(p.Guest()) > 0 {
		return
	}
	narrow := map[string]int{} // GPUs in a slot that is narrower than they are, by model
	gpus := map[string]int{}
	for _, s := range p.facts.slots {
		if s.gpu != nil {
			gpus[model(s.nodes[0])]++
			if s.narrower() {
				narrow[model(s.nodes[0])]++
			}
		}
	}
	for _, s := range p.facts.slots {
		if s.token() || !s.narrower() || s.gpu == nil && s.nodes[0].HCA == nil {
			continue
		}
		if m := model(s.nodes[0]); s.gpu != nil && narrow[m] == gpus[m] && gpus[m] > 1 {
			continue
		}
		own := s.dev.Max
		left := own.Min(s.port.Max)
		severity, why := Info, ""
		for h, n := range p.facts.hcas {
			rate, known := left.Encoded().Get()
			if pt, ok := fastestPort(n); ok && known && s.carries(p, h) && float64(rate) < enough*float64(pt.Rate.Or(0)) {
				severity, why = Warning, fmt.Sprintf("; the %s port of %s does not fit", pt.Rate.Or(0).Gbps(), n.Label)
			}
		}
		p.Report(Finding{
			Severity: severity,
			Subjects: s.subjects(),
			Expected: fmt.Sprintf("a port that can do %s, as the card", linkText(own)),
			Observed: fmt.Sprintf("the port above can do %s%s", linkText(s.port.Max), why),
			Evidence: append(s.widthEvidence(), s.speedEvidence()...),
			Fix:      fmt.Sprintf("hardware service: move %s to a full slot, and check the slot's bifurcation in the BIOS; nothing if the host has no faster one. No NCCL variable lifts it", s.where()),
		})
	}
}

// narrower reports a port that can do less than the device below it.
func (s slot) narrower() bool {
	if s.dev == nil || s.port == nil {
		return false
	}
	width, okW := s.dev.Max.Width.Get()
	speed, okS := s.dev.Max.Speed.Get()
	portWidth, okPW := s.port.Max.Width.Get()
	portSpeed, okPS := s.port.Max.Speed.Get()
	return okW && okPW && portWidth < width || okS && okPS && portSpeed < speed
}
