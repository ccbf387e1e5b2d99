package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var hcaRateLow = Rule{
	ID:    "hca-rate-low",
	Title: "HCA port runs below its siblings or below its adapter",
	Doc: `Compares the rate of ACTIVE ports of one adapter model (PCI id, board and link layer)
in one host. Fires for a port that is slower than the fastest of them; and, for the
model nearest to the GPUs, when all ports are alike but below what the adapter can.

warning below the siblings, critical at half their rate or less; info when all are
alike (the adapter may be sold with a slower port).

Silent for ports that are not ACTIVE (a port that is DOWN shows 10 Gb/sec (4X SDR)),
for virtual functions, and for adapters of another model such as storage and
management. Two rates are not believed and compare with nothing: SDR on an ACTIVE port,
which the kernel prints for a speed that it does not know, and more than any port of the
adapter does.`,
	Run: runHCARateLow,
}

// ratedPort is an ACTIVE port whose rate can be compared.
type ratedPort struct {
	hca  int
	node *graph.Node
	port probe.HCAPort
	rate probe.Rate
}

func runHCARateLow(p *Pass) {
	near, distances := p.nearSomeGPU()
	distances = distances && len(p.Guest()) == 0
	groups := p.ratedPorts()
	var fastest probe.Rate
	for _, group := range groups {
		fastest = max(fastest, fastestOf(group).rate)
	}
	for _, group := range groups {
		best := fastestOf(group)
		alike, rail := true, false
		for _, m := range group {
			alike = alike && m.rate == best.rate
			// Without distances the fastest adapters are taken for the rails.
			rail = rail || len(p.facts.gpus) > 0 && (near[m.hca] || !distances && m.rate == fastest)
		}
		if !alike {
			p.slowerPorts(group, best)
			continue
		}
		adapter, ok := AdapterOf(best.node.PCI)
		switch {
		case !ok:
			p.Gap("the adapter is not in the table of port rates", "compare the rate with the adapter's data sheet", portKey(best.node.HCA, best.port))
		case rail && adapter.Fastest > 0 && best.rate < adapter.Fastest:
			p.slowerThanAdapter(group, adapter)
		}
	}
}

// ratedPorts groups the ports that can be compared by adapter model and link
// layer, in the order of their first port.
func (p *Pass) ratedPorts() [][]ratedPort {
	var groups [][]ratedPort
	at := map[string]int{}
	for h, n := range p.facts.hcas {
		if isVF(n.PCI) {
			continue
		}
		if len(n.HCA.Ports) == 0 {
			p.Gap("port state not known", readLive, n.Key)
		}
		id, identified := pciID(n.PCI)
		for _, pt := range n.HCA.Ports {
			key := portKey(n.HCA, pt)
			rate, known := pt.Rate.Get()
			switch {
			case pt.State == "":
				p.Gap("port state not known", readLive, key)
				continue
			case !pt.Active():
				continue
			case !identified:
				p.Gap("the adapter's PCI id is not known, so no port can be compared", readLive, key)
				continue
			case !known || rate <= 0:
				p.Gap("port rate not known", readLive, key)
				continue
			case readsSDR(pt):
				p.Gap("the port is ACTIVE and reads SDR, which the kernel prints for a speed that it does not know", readRate, key)
				continue
			case notBelievable(n, pt) != "":
				p.Gap(notBelievable(n, pt), readRate, key)
				continue
			}
			model := strings.Join([]string{id, boardID(n), pt.LinkLayer}, " ")
			i, ok := at[model]
			if !ok {
				i = len(groups)
				at[model] = i
				groups = append(groups, nil)
			}
			groups[i] = append(groups[i], ratedPort{h, n, pt, rate})
		}
	}
	return groups
}

func fastestOf(group []ratedPort) ratedPort {
	return slices.MaxFunc(group, func(a, b ratedPort) int { return cmp.Compare(a.rate, b.rate) })
}

func (p *Pass) slowerPorts(group []ratedPort, best ratedPort) {
	for _, m := range group {
		if m.rate == best.rate {
			continue
		}
		severity := Warning
		if 2*m.rate <= best.rate {
			severity = Critical
		}
		p.Report(Finding{
			Severity: severity,
			Subjects: []string{portKey(m.node.HCA, m.port), m.node.Key},
			Expected: fmt.Sprintf("%s, as %s of the same model", best.rate.Gbps(), best.node.Label),
			Observed: m.rate.Gbps() + rateSuffix(m.port),
			Evidence: []Evidence{rateEvidence(m.node.HCA, m.port), rateEvidence(best.node.HCA, best.port)},
			Fix:      fmt.Sprintf("network administrator: check the cable and the switch port's speed and width of %s port %d (mlxlink or ibportstate at both ends); a lane that is lost halves the rate and keeps the name", m.node.Label, m.port.Port),
		})
	}
}

func (p *Pass) slowerThanAdapter(group []ratedPort, adapter Adapter) {
	var subjects []string
	var proof []Evidence
	for _, m := range group {
		subjects = append(subjects, portKey(m.node.HCA, m.port))
		proof = append(proof, rateEvidence(m.node.HCA, m.port))
	}
	first := group[0]
	id, _ := pciID(first.node.PCI)
	proof = append(proof, evidence(first.node.PCI.Origins, "device", "device", "PCI id %s: %s", id, adapter.Name))
	p.Report(Finding{
		Severity:  Info,
		Certainty: Possible,
		Subjects:  subjects,
		Expected:  fmt.Sprintf("up to %s, the fastest port of a %s", adapter.Fastest.Gbps(), adapter.Name),
		Observed:  fmt.Sprintf("%s on %s%s", first.rate.Gbps(), count(len(group), "port", "ports, all alike"), rateSuffix(first.port)),
		Evidence:  proof,
		Fix:       "network administrator: if the adapter was bought for the higher rate, check cable and switch port speed. A model with slower ports is right as it is: plan with the rate observed",
	})
}

// readsSDR reports the name that the kernel prints for a speed that it does not
// know (drivers/infiniband/core/sysfs.c, rate_show); older kernels leave it out.
func readsSDR(p probe.HCAPort) bool {
	return strings.Contains(p.RateText, "SDR") || strings.Contains(p.RateText, "(4X)")
}

func rateSuffix(p probe.HCAPort) string {
	if p.RateText == "" {
		return ""
	}
	return " (" + p.RateText + ")"
}

// boardID tells models of one PCI id apart: by board_id, else by subsystem.
func boardID(n *graph.Node) string {
	if n.HCA.Board != "" {
		return n.HCA.Board
	}
	return n.PCI.SubVendor.String() + ":" + n.PCI.SubDevice.String()
}
