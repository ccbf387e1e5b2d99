package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var envLevelForced = Rule{
	ID:    "env-level-forced",
	Title: "a distance for P2P or GPUDirect RDMA is forced",
	Doc: `Reads NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL and NCCL_NET_GDR_C2C. Fires for a P2P level of
PHB or SYS (as numbers 3 and more) where GPU pairs then cross an Intel CPU, or any CPU on
a host of more than two GPUs; for a GDR level of PHB or SYS, or GDR over C2C turned off,
on NCCL 2.27 and later, which reaches over C2C itself; and for a level written as a
number, whose meaning is not what it seems (1 is PIX). Warning; info for numbers that
change nothing else.
Silent: AMD hosts with at most two GPUs; hosts where all pairs have NVLink; the default;
a variable that measured-alternative-better speaks for.`,
	Across: runEnvLevelForced,
}

func crossesCPU(s setting) bool { return s.effect.Value == "PHB" || s.effect.Value == "SYS" }

func runEnvLevelForced(a *Across) {
	for _, s := range a.settings("NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_C2C") {
		if a.measured(s.name) {
			continue
		}
		switch {
		case s.name == "NCCL_P2P_LEVEL" && crossesCPU(s):
			a.meet(s, meeting.p2pLevel)
		case s.name == "NCCL_NET_GDR_LEVEL" && crossesCPU(s), s.name == "NCCL_NET_GDR_C2C" && s.is(0):
			a.gdrLevel(s)
		}
		if crossesCPU(s) && s.name == "NCCL_P2P_LEVEL" || s.effect.Fix == "" || s.effect.Fix != s.effect.Value {
			continue
		}
		a.reportSetting(s, Finding{Severity: Info, Certainty: Sure, Expected: "the path class in capitals",
			Observed: fmt.Sprintf("%s: an old number, which NCCL reads as %s", s, s.effect.Value), Fix: "whoever wrote it: delete it, or write " + s.name + "=" + s.effect.Fix})
	}
}

// p2pLevel judges a level at which pairs cross the CPU.
func (m meeting) p2pLevel() {
	gpus := m.facts.gpus
	var far [2]*graph.Node
	blind := len(gpus) < 2
	for i, g := range gpus {
		for _, h := range gpus[i+1:] {
			switch c := m.topo.Class(g, h); {
			case c == graph.Unknown:
				blind = true
			case far[0] == nil && (c == graph.PHB || c == graph.SYS):
				far = [2]*graph.Node{g, h}
			}
		}
	}
	intel := slices.ContainsFunc(m.topo.Inv.CPUs, func(c probe.CPU) bool { return c.Vendor == "GenuineIntel" })
	switch {
	case far[0] == nil && blind:
		m.gap("the paths between GPUs are not known", readLive)
		return
	case far[0] == nil:
		return
	case !intel && len(gpus) <= 2:
		if len(m.topo.Inv.CPUs) == 0 {
			m.gap("the processor is not known", readLive)
		}
		return
	}
	c := m.topo.Class(far[0], far[1])
	m.report(Finding{Severity: Warning, Certainty: Likely, Subjects: []string{far[0].Key, far[1].Key}, Expected: "unset: P2P up to PXB, and host memory beyond",
		Observed: fmt.Sprintf("%s lets %s and %s write to each other through the CPU (%s), which is often slower than host memory and can hang", m.setting, far[0].Label, far[1].Label, c),
		Evidence: pairEvidence(m.topo, far[0], far[1]), Fix: "whoever wrote it: delete it, unless a measurement on this machine shows a gain"})
}

func (a *Across) gdrLevel(s setting) {
	switch {
	case s.nccl == "":
		a.Gap("whether NCCL is 2.27 or later is not known", "add a log of the job, which states the NCCL version", a.keysFor(s.name, s.hosts)...)
	case ncclFrom(s.nccl, 2, 27):
		a.reportSetting(s, Finding{Severity: Warning, Certainty: Likely, Expected: "unset: NCCL 2.27 and later take P2C, and PXB without C2C",
			Observed: fmt.Sprintf("%s on NCCL %s: a workaround for older versions that keeps NCCL from its own choice of the way to the NIC", s, s.nccl),
			Fix:      "whoever wrote it: delete it, unless a measurement on this machine shows a gain"})
	}
}
