package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var hcaPortDown = Rule{
	ID:    "hca-port-down",
	Title: "HCA port is not ACTIVE",
	Doc: `Fires for a port whose state is known and not ACTIVE (sysfs ports/N/state and
phys_state). Its rate means nothing meanwhile.

The GPUs that have no other HCA as near are named beside it.

critical when ports of the same adapter model are ACTIVE and no HCA is closer to
some GPU; warning in INIT or ARMED (on InfiniBand: no subnet manager has configured
it) and for other ports near a GPU; info when it is disabled, when another port of
the same card is ACTIVE and no sibling card uses both, and for an HCA near no GPU.

Silent for virtual functions, for a disabled port near no GPU, and for a disabled
port of a card that has an ACTIVE one.`,
	Replaces: []string{"hca-far-from-gpu"},
	Run:      runHCAPortDown,
}

func runHCAPortDown(p *Pass) {
	near, distances := p.nearSomeGPU()
	distances = distances && len(p.Guest()) == 0
	for h, n := range p.facts.hcas {
		if isVF(n.PCI) {
			continue
		}
		if len(n.HCA.Ports) == 0 {
			p.Gap("port state not known", readLive, n.Key)
		}
		for _, pt := range n.HCA.Ports {
			key := portKey(n.HCA, pt)
			switch pt.State {
			case probe.PortActive:
				continue
			case "":
				p.Gap("port state not known", readLive, key)
				continue
			}
			disabled := pt.PhysState == "Disabled"
			spare := p.spare(n, pt)
			if disabled && (spare || distances && !near[h]) {
				continue
			}
			siblings := p.activeSiblings(n)
			var severity Severity
			switch waiting := pt.State == "INIT" || pt.State == "ARMED"; {
			case disabled, spare:
				severity = Info
			case waiting:
				severity = Warning
			case distances && !near[h]:
				severity = Info
			case distances && siblings > 0:
				severity = Critical
			default:
				severity = Warning
			}
			expected := "state ACTIVE, LinkUp"
			if siblings > 0 {
				expected += fmt.Sprintf(", as on %s of the same model", count(siblings, "other port", "other ports"))
			}
			proof := []Evidence{evidence(n.HCA.Origins, "ports", fmt.Sprintf("ports/%d/state", pt.Port), "state %s", pt.State)}
			if pt.PhysState != "" {
				proof = append(proof, evidence(n.HCA.Origins, "ports", fmt.Sprintf("ports/%d/phys_state", pt.Port), "phys_state %s", pt.PhysState))
			}
			observed := fmt.Sprintf("state %s%s; its rate means nothing meanwhile", pt.State, physText(pt))
			var left []*graph.Node
			if distances {
				left = p.leftWithout(h)
			}
			if len(left) > 0 {
				observed += fmt.Sprintf("; no other usable HCA is as near to %s", labels(left))
			}
			p.Report(Finding{
				Severity: severity,
				Subjects: append([]string{key, n.Key}, keys(left)...),
				Expected: expected,
				Observed: observed,
				Evidence: proof,
				Fix:      portFix(n, pt),
			})
		}
	}
}

func portKey(h *probe.HCA, p probe.HCAPort) string { return fmt.Sprintf("port:%s/%d", h.Name, p.Port) }

func physText(p probe.HCAPort) string {
	if p.PhysState == "" {
		return ""
	}
	return ", phys_state " + p.PhysState
}

func portFix(n *graph.Node, p probe.HCAPort) string {
	name := fmt.Sprintf("%s port %d", n.Label, p.Port)
	switch {
	case p.PhysState == "Disabled":
		return fmt.Sprintf("network administrator: if %s should carry traffic, enable it (ibportstate on InfiniBand, ip link set up on Ethernet); else leave it out of NCCL_IB_HCA", name)
	case (p.State == "INIT" || p.State == "ARMED") && p.LinkLayer != "Ethernet":
		return fmt.Sprintf("network administrator: the cable is fine, no subnet manager has configured %s. Check with sminfo that one runs on this subnet (opensm or the switch's own), then read the state again with ibstat", name)
	}
	return fmt.Sprintf("network administrator: check cable, optics and switch port of %s (ibstat, ibdiagnet; ethtool on Ethernet), then the subnet manager", name)
}

// leftWithout lists the GPUs to which HCA h is nearest, if it is out of use and
// no HCA that may be usable is as near.
func (p *Pass) leftWithout(h int) []*graph.Node {
	may := func(i int) bool { return usability(p.facts.hcas[i].HCA) != no }
	if may(h) {
		return nil
	}
	var out []*graph.Node
	for g, n := range p.facts.gpus {
		class, hcas := p.nearest(g, func(int) bool { return true })
		if rest, _ := p.nearest(g, may); slices.Contains(hcas, h) && rest != class {
			out = append(out, n)
		}
	}
	return out
}

// activeSiblings counts the ACTIVE ports of other HCAs with the same PCI id.
func (p *Pass) activeSiblings(n *graph.Node) int {
	id, ok := pciID(n.PCI)
	if !ok {
		return 0
	}
	var count int
	for _, m := range p.facts.hcas {
		if other, known := pciID(m.PCI); m == n || !known || other != id {
			continue
		}
		for _, pt := range m.HCA.Ports {
			if pt.Active() {
				count++
			}
		}
	}
	return count
}

// place is a port's position on its card: cards give each port a PCI function
// (mlx5) or number the ports of one function (mlx4).
type place struct {
	fn   uint8
	port int
}

// spare reports a port that a card has beside an ACTIVE one and that no card of
// the same model uses: by design one cable a card.
func (p *Pass) spare(n *graph.Node, pt probe.HCAPort) bool {
	at := place{port: pt.Port}
	if n.PCI != nil {
		at.fn = n.PCI.Addr.Fn
	}
	var beside, used bool
	id, known := pciID(n.PCI)
	for _, m := range p.facts.hcas {
		same := m == n || sameCard(n, m)
		for _, o := range m.HCA.Ports {
			if !o.Active() {
				continue
			}
			beside = beside || same
			other, ok := pciID(m.PCI)
			if !same && known && ok && other == id && m.PCI.Addr.Fn == at.fn && o.Port == at.port {
				used = true
			}
		}
	}
	return beside && !used
}

// sameCard reports two HCAs of one adapter.
func sameCard(a, b *graph.Node) bool {
	if a.HCA.SysImageGUID != "" && b.HCA.SysImageGUID != "" {
		return a.HCA.SysImageGUID == b.HCA.SysImageGUID
	}
	if a.PCI == nil || b.PCI == nil {
		return false
	}
	x, y := a.PCI.Addr, b.PCI.Addr
	return x.Domain == y.Domain && x.Bus == y.Bus && x.Dev == y.Dev
}
