package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

var pcieSpeedDegraded = Rule{
	ID:    "pcie-speed-degraded",
	Title: "PCIe link runs at a lower generation than both ends can",
	Doc: `Fires for a GPU, HCA or switch whose link signals slower than the lower of the two
maxima of its ends while the device is at work. A GPU is at work in P0 with
utilisation above 0 or without the idle reason; HCAs and switches always are.

warning for one generation, critical for two or more.

Silent for a GPU that is idle (it lowers its link to save power) or whose load is
not known, for a device that is powered down, in a guest, and for GPUs that reach
their CPU over a chip-to-chip link.`,
	Replaces: []string{"pcie-path-bottleneck", "pcie-shared-uplink"},
	Run:      runPCIeSpeedDegraded,
}

func runPCIeSpeedDegraded(p *Pass) {
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
		now, ok := s.cur.Speed.Get()
		if !ok {
			p.Gap(noLiveLink, readLive, keys(s.nodes)...)
			continue
		}
		can, known := s.max.Speed.Get()
		if known && now >= can {
			continue
		}
		if s.gpu != nil && !s.gpu.Busy() {
			reason := "the GPU is idle, and an idle GPU lowers its link speed"
			if !s.gpu.PState.Known() || !s.gpu.Utilization.Known() && !s.gpu.Events.Known() {
				reason = "the GPU's load is not known, and an idle GPU lowers its link speed"
			}
			p.Gap(reason, "run ncclmap check on the host itself (it asks the driver) while a job keeps the GPUs busy", keys(s.nodes)...)
			continue
		}
		if !known || !s.bothSpeeds {
			p.Gap(s.unknownMax("speed", func(l probe.PCIeLink) bool { return l.Speed.Known() }), readLive, keys(s.nodes)...)
			continue
		}
		steps := can.Gen() - now.Gen()
		severity := Warning
		if steps >= 2 {
			severity = Critical
		}
		width := s.cur.Width
		if !width.Known() {
			width = s.max.Width
		}
		p.Report(Finding{
			Severity: severity,
			Subjects: s.subjects(),
			Expected: fmt.Sprintf("%s, which both ends can do (%s)", can, linkText(probe.PCIeLink{Speed: s.max.Speed, Width: width})),
			Observed: fmt.Sprintf("%s, %s lower (%s)%s", now, count(steps, "generation", "generations"), linkText(probe.PCIeLink{Speed: s.cur.Speed, Width: width}), s.load()),
			Evidence: append(s.speedEvidence(), s.loadEvidence()...),
			Fix: fmt.Sprintf("administrator: read the speed of %s again under load; then set the slot's link speed to Auto or Gen%d in the BIOS and look for a \"hardware autonomous speed disable\" or target speed left set (lspci -vv, LnkCtl2). Hardware service: retimer, riser, reseat. No NCCL variable repairs this",
				s.where(), can.Gen()),
		})
	}
}

// load is the GPU's load in words, for an observation.
func (s slot) load() string {
	if s.gpu == nil {
		return ""
	}
	if u, ok := s.gpu.Utilization.Get(); ok && u > 0 {
		return fmt.Sprintf(" at %d %% utilisation", u)
	}
	return " while the GPU is not idle"
}

func (s slot) loadEvidence() []Evidence {
	if s.gpu == nil {
		return nil
	}
	out := []Evidence{evidence(s.gpu.Origins, "pstate", "", "performance state P%d", s.gpu.PState.Or(0))}
	if u, ok := s.gpu.Utilization.Get(); ok {
		out = append(out, evidence(s.gpu.Origins, "utilization", "", "utilisation %d %%", u))
	}
	if e, ok := s.gpu.Events.Get(); ok {
		out = append(out, evidence(s.gpu.Origins, "clocks_event_reasons", "", "clock event reasons %#x", e))
	}
	return out
}
