package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var hcaErrors = Rule{
	ID:    "hca-errors",
	Title: "Link of an HCA port went down again and again",
	Doc: `Fires for a port whose link_downed counter says five times or more while the other
ports of the host's same adapter model say once at most (one reading is enough for that).

Between two readings (ncclmap check --since) it fires for growth instead: of link_downed
and acknowledgement timeouts, and of symbol, recovery, integrity and receive errors.

critical; warning for the errors that growth alone shows.

Totals of one reading say nothing about now: where they are not zero, a gap says so, and
where a counter went backwards. Silent for totals alike on all ports; for out_of_sequence,
which adaptive routing counts too.`,
	Run: runHCAErrors,
}

// Bounds of link_downed between a port and its siblings.
const (
	manyDowns = 5
	fewDowns  = 1
)

const linkFix = "network operator: clean or replace the cable or its optics, then try another switch port; look at the counters of the switch's end too (ibqueryerrors, mlxlink)"

func runHCAErrors(p *Pass) {
	type reading struct {
		node  *graph.Node
		port  probe.HCAPort
		downs probe.Opt[uint64]
	}
	var all []reading
	for _, n := range p.facts.hcas {
		for _, port := range n.HCA.Ports {
			if !port.Active() {
				continue
			}
			if len(port.Counters) == 0 {
				p.Gap(noCounters, "run ncclmap on the host itself, or record counters and hw_counters of the ports too", portKey(n.HCA, port))
				continue
			}
			if p.before != nil {
				p.portGrowth(n, port)
				continue
			}
			all = append(all, reading{n, port, counterOf(port, "link_downed")})
		}
	}
	for i, r := range all {
		downs, ok := r.downs.Get()
		siblings, calm := 0, 0
		for j, o := range all {
			other, known := o.downs.Get()
			if i == j || !known || !sameAdapter(o.node, r.node) {
				continue
			}
			siblings++
			if other <= fewDowns {
				calm++
			}
		}
		if !ok || downs < manyDowns || siblings == 0 || calm < siblings {
			if slices.ContainsFunc(r.port.Counters, func(c probe.Counter) bool { return c.Value > 0 }) {
				p.Gap("error counters of one reading: totals since boot say nothing about now", "read them twice under load and compare", portKey(r.node.HCA, r.port))
			}
			continue
		}
		p.Report(Finding{
			Severity: Critical,
			Subjects: []string{portKey(r.node.HCA, r.port), r.node.Key},
			Expected: fmt.Sprintf("at most %d, as the %s of this host", fewDowns, count(siblings, "other port", "other ports")),
			Observed: fmt.Sprintf("the link went down %d times since boot", downs),
			Evidence: []Evidence{evidence(r.node.HCA.Origins, "ports", fmt.Sprintf("ports/%d/counters/link_downed", r.port.Port), "link_downed %d", downs)},
			Fix:      linkFix,
		})
	}
}

// sameAdapter reports two HCAs that are known to be of one model.
func sameAdapter(a, b *graph.Node) bool {
	x, ok := pciID(a.PCI)
	y, _ := pciID(b.PCI)
	return ok && x == y
}

func counterOf(p probe.HCAPort, name string) probe.Opt[uint64] {
	for _, c := range p.Counters {
		if c.Name == name {
			return probe.Some(c.Value)
		}
	}
	return probe.Opt[uint64]{}
}
