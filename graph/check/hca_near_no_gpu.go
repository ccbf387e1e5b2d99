package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var hcaNearNoGPU = Rule{
	ID:    "hca-near-no-gpu",
	Title: "HCA is near no GPU while others are",
	Doc: `Fires for usable HCAs that share a PCIe switch with no GPU, where at least two other HCAs
do, or where one does and this one differs from it in model, link layer or rate: storage
and management adapters, which are no rails.

info; warning where a job's output shows that NCCL uses it.

Silent where no HCA is near a GPU, and for an HCA that NCCL_IB_HCA leaves out.`,
	Run: runHCANearNoGPU,
}

func runHCANearNoGPU(p *Pass) {
	if len(p.Guest()) > 0 {
		return // distances are the hypervisor's claims
	}
	var near, far []*graph.Node
	for h, n := range p.facts.hcas {
		if usability(n.HCA) == no {
			continue
		}
		known, close := true, false
		for g := range p.facts.gpus {
			c := p.facts.class[g][h]
			known, close = known && c != graph.Unknown, close || c.Near() || c == graph.P2C
		}
		switch {
		case close:
			near = append(near, n)
		case known:
			far = append(far, n)
		}
	}
	if len(near) == 0 {
		return
	}
	list, _ := p.value("NCCL_IB_HCA")
	allowed := ncclenv.ParseDevices(list)
	severity := Info
	var odd []*graph.Node
	var proof []Evidence
	for _, n := range far {
		differs := differences(n, near[0])
		if len(near) < 2 && differs == "" || !allowed.Allows(n.HCA.Name, probe.Opt[int]{}) {
			continue
		}
		odd = append(odd, n)
		if n.PCI != nil && n.Home != nil {
			proof = append(proof, placeEvidence(n))
		}
		if differs != "" {
			proof = append(proof, evidence(n.HCA.Origins, "ports", "", "%s differs from %s: %s", n.Label, near[0].Label, differs))
		}
		if used := p.adapterSeen(n.HCA.Name); used != nil {
			severity = Warning
			proof = append(proof, evidence(used.Origins, "", "", "NCCL uses %s", used.Name))
		}
	}
	if len(odd) == 0 {
		return
	}
	for _, n := range odd {
		if r, ok := p.someRelation(n); ok {
			proof = append(proof, evidence(r.Origins, "code", "", "%s %s %s", r.A, r.Code, r.B))
		}
	}
	names := make([]string, len(odd))
	for i, n := range odd {
		names[i] = n.HCA.Name
	}
	p.Report(Finding{
		Severity: severity,
		Subjects: keys(odd),
		Expected: fmt.Sprintf("only HCAs behind a GPU's PCIe switch, as %s are", labels(near)),
		Observed: fmt.Sprintf("%s near no GPU", labels(odd)),
		Evidence: proof,
		Fix:      fmt.Sprintf("whoever starts the jobs: keep them out of NCCL with NCCL_IB_HCA=^=%s, unless they are rails on purpose", strings.Join(names, ",")),
	})
}

// adapterSeen returns the line of a job that lists an adapter.
func (p *Pass) adapterSeen(name string) *probe.Adapter {
	for i, a := range p.Job.Adapters {
		if p.Here(a.Host) && slices.Contains(strings.Split(a.Name, "+"), name) {
			return &p.Job.Adapters[i]
		}
	}
	return nil
}

// someRelation returns a cell of topo -m of an HCA and a GPU, where the bus was
// not seen.
func (p *Pass) someRelation(hca *graph.Node) (probe.Relation, bool) {
	for _, g := range p.facts.gpus {
		if r, ok := p.Topo.Relation(g, hca); ok && hca.PCI == nil {
			return r, true
		}
	}
	return probe.Relation{}, false
}

// differences says how an HCA differs from another in what makes a rail; "" where
// nothing known does.
func differences(a, b *graph.Node) string {
	var out []string
	x, okX := pciID(a.PCI)
	y, okY := pciID(b.PCI)
	if okX && okY && x != y {
		out = append(out, fmt.Sprintf("PCI id %s, not %s", x, y))
	}
	pa, okA := fastestPort(a)
	pb, okB := fastestPort(b)
	if okA && okB {
		if pa.LinkLayer != pb.LinkLayer && pa.LinkLayer != "" && pb.LinkLayer != "" {
			out = append(out, pa.LinkLayer+", not "+pb.LinkLayer)
		}
		if pa.Rate != pb.Rate {
			out = append(out, pa.Rate.Or(0).Gbps()+", not "+pb.Rate.Or(0).Gbps())
		}
	}
	return strings.Join(out, "; ")
}
