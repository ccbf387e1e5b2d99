package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

var hcaSharedByGPUs = Rule{
	ID:    "hca-shared-by-gpus",
	Title: "One HCA serves more GPUs than its share while another serves none",
	Doc: `Fires for an HCA that is the nearest of more GPUs than there are GPUs per data HCA
(rounded up), while another data HCA is the nearest of none. Data HCAs are the usable
ones that share a PCIe switch with a GPU (all, where none does), of the model, link layer
and rate that most have. GPUs with several nearest HCAs spread evenly over them.

warning.

Silent in a guest, and where the numbers divide so: two GPUs for each HCA when there are
half as many HCAs.`,
	Run: runHCASharedByGPUs,
}

func runHCASharedByGPUs(p *Pass) {
	if len(p.Guest()) > 0 || len(p.facts.gpus) < 2 {
		return
	}
	data := p.dataHCAs()
	if len(data) < 2 {
		return
	}
	share := (len(p.facts.gpus) + len(data) - 1) / len(data)
	served := make([][]*graph.Node, len(p.facts.hcas))
	type tie struct {
		hcas []int
		gpus []*graph.Node
	}
	var ties []tie
	for g, n := range p.facts.gpus {
		class, near := p.nearest(g, func(h int) bool { return slices.Contains(data, h) })
		if !class.Near() && class != graph.PHB && class != graph.P2C {
			return // far or unknown: rule hca-far-from-gpu
		}
		i := slices.IndexFunc(ties, func(t tie) bool { return slices.Equal(t.hcas, near) })
		if i < 0 {
			i = len(ties)
			ties = append(ties, tie{hcas: near})
		}
		ties[i].gpus = append(ties[i].gpus, n)
	}
	for _, t := range ties {
		for i, n := range t.gpus {
			h := t.hcas[i%len(t.hcas)]
			served[h] = append(served[h], n)
		}
	}
	var idle []*graph.Node
	for _, h := range data {
		if len(served[h]) == 0 {
			idle = append(idle, p.facts.hcas[h])
		}
	}
	if len(idle) == 0 {
		return
	}
	for _, h := range data {
		if len(served[h]) <= share {
			continue
		}
		n := p.facts.hcas[h]
		proof := p.distanceEvidence(served[h][0], n)
		proof = append(proof, p.distanceEvidence(served[h][0], idle[0])...)
		p.Report(Finding{
			Severity: Warning,
			Subjects: append([]string{n.Key}, keys(served[h])...),
			Expected: fmt.Sprintf("at most %s for each of %s", count(share, "GPU", "GPUs"), count(len(data), "HCA", "HCAs")),
			Observed: fmt.Sprintf("%s is the nearest of %s; %s of none", n.Label, labels(served[h]), labels(idle)),
			Evidence: proof,
			Fix:      "administrator: compare the tree with that of a host that works well; the order of virtual bridges in the switch's firmware may differ. If the topology file is wrong and not the hardware, correct it (NCCL_TOPO_FILE)",
		})
	}
}

// dataHCAs lists, by position, the usable HCAs near a GPU, or where none is near
// all, of the most frequent kind.
func (p *Pass) dataHCAs() []int {
	near := func(h int) bool {
		return slices.ContainsFunc(p.facts.class, func(row []graph.PathClass) bool { return row[h].Near() })
	}
	someNear := false
	for h := range p.facts.hcas {
		someNear = someNear || near(h)
	}
	var groups [][]int
	for h, n := range p.facts.hcas {
		if usability(n.HCA) != yes || someNear && !near(h) {
			continue
		}
		i := slices.IndexFunc(groups, func(g []int) bool { return differences(p.facts.hcas[g[0]], n) == "" })
		if i < 0 {
			groups = append(groups, []int{h})
			continue
		}
		groups[i] = append(groups[i], h)
	}
	var most []int
	for _, g := range groups {
		if len(g) > len(most) {
			most = g
		}
	}
	return most
}
