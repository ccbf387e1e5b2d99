package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var envGIDIndex = Rule{
	ID:    "env-gid-index",
	Title: "NCCL_IB_GID_INDEX stops NCCL's own choice",
	Doc: `From 2.21 on NCCL chooses the GID of a RoCE port itself. Fires for NCCL_IB_GID_INDEX
set on such a version: info; warning if hosts have different values, or the entry is not
the one that NCCL would take (the first RoCE v2 entry with an IPv4 address). Info on
hosts with InfiniBand only, where it has no effect.
Silent: NCCL before 2.21, where the index is needed; -1. Without the version it is a gap.`,
	Across: runEnvGIDIndex,
}

func runEnvGIDIndex(a *Across) {
	all := slices.DeleteFunc(a.settings("NCCL_IB_GID_INDEX"), func(s setting) bool { n, ok := s.number(); return !ok || n < 0 })
	for _, s := range all {
		switch {
		case NCCLBefore(s.nccl, 2, 21):
			continue
		case s.nccl == "":
			a.Gap("whether NCCL chooses the GID itself (2.21 and later) is not known", "add a log of the job, which states the NCCL version", a.keysFor(s.name, s.hosts)...)
			continue
		}
		f := Finding{Severity: Info, Expected: "unset: NCCL " + s.nccl + " chooses the entry itself", Observed: s.String() + " stops NCCL's own choice of the GID",
			Fix: "whoever wrote it: delete it; if several entries fit, choose with NCCL_IB_ADDR_RANGE"}
		if i := slices.IndexFunc(all, func(o setting) bool { return o.value != s.value && o.confirmed && s.confirmed }); i >= 0 {
			f.Severity = Warning
			f.Observed += fmt.Sprintf("; on %s it is %s", someNames(all[i].hosts), all[i].value)
		}
		if wrong, ev := a.otherGID(s); wrong != "" {
			f.Severity = Warning
			f.Observed += "; " + wrong
			f.Evidence = append(f.Evidence, ev)
		}
		if a.onlyInfiniBand(s) {
			f.Severity, f.Observed = Info, s.String()+": InfiniBand has no GID to choose, so it has no effect here"
		}
		a.reportSetting(s, f)
	}
}

// otherGID finds a RoCE port of which NCCL itself would take another entry.
func (a *Across) otherGID(s setting) (what string, ev Evidence) {
	index, _ := s.number()
	for _, t := range s.known() {
		for _, h := range t.Inv.HCAs {
			for _, p := range h.Ports {
				g, ok := RoutableGID(p)
				if p.LinkLayer != "Ethernet" || !p.Active() || !ok || int64(g.Index) == index {
					continue
				}
				return fmt.Sprintf("port %d of %s has its RoCE v2 IPv4 address at index %d", p.Port, h.Name, g.Index),
					evidence(h.Origins, "ports", fmt.Sprintf("ports/%d/gids/%d", p.Port, g.Index), "%s, %s", g.GID, g.Type)
			}
		}
	}
	return "", Evidence{}
}

// RoutableGID returns the entry of a RoCE port that NCCL takes by itself: the first
// RoCE v2 one with an IPv4 address.
func RoutableGID(p probe.HCAPort) (g probe.GID, ok bool) {
	i := slices.IndexFunc(p.GIDs, func(g probe.GID) bool { return routable(g, "") })
	if i < 0 {
		return probe.GID{}, false
	}
	return p.GIDs[i], true
}

func (a *Across) onlyInfiniBand(s setting) bool {
	ports := 0
	for _, t := range s.known() {
		for _, n := range t.Of(graph.KindHCA) {
			for _, p := range n.HCA.Ports {
				if ports++; p.LinkLayer != "InfiniBand" {
					return false
				}
			}
		}
	}
	return ports > 0
}
