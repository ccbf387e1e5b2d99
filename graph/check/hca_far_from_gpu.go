package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

var hcaFarFromGPU = Rule{
	ID:    "hca-far-from-gpu",
	Title: "GPU's nearest HCA is far away",
	Doc: `Looks at the path class between each GPU and its nearest ACTIVE HCA (sysfs tree, NCCL
topology file, topo -m). Fires for a GPU that reaches every HCA only between NUMA
nodes (SYS), and for one that goes through the host bridge (PHB, NODE) while another
GPU of the host has an HCA at PIX or PXB.

warning for SYS; info for PHB and NODE, and for SYS when the GPU reaches an HCA at PIX
or PXB over NVLink (PXN, NCCL 2.12 and later).

Silent in a guest, for GPUs that reach their CPU over a chip-to-chip link, and for PHB
and NODE with PXN: two GPUs per HCA are a common design. HCAs that an NCCL topology
file lists count as ACTIVE.`,
	Run: runHCAFarFromGPU,
}

func runHCAFarFromGPU(p *Pass) {
	if len(p.facts.hcas) == 0 {
		return
	}
	if len(p.Guest()) > 0 {
		p.Gap(inGuest, onHost, keys(p.facts.gpus)...)
		return
	}
	state := make([]usable, len(p.facts.hcas))
	for h, n := range p.facts.hcas {
		state[h] = usability(n.HCA)
	}
	maybe := func(h int) bool { return state[h] != no }
	class := make([]graph.PathClass, len(p.facts.gpus))
	hcas := make([][]int, len(p.facts.gpus))
	someNear := false
	for g := range p.facts.gpus {
		class[g], hcas[g] = p.nearest(g, maybe)
		someNear = someNear || class[g].Near()
	}

	// GPUs of one class, severity and set of nearest HCAs have one cause.
	type far struct {
		severity  Severity
		certainty Certainty
		class     graph.PathClass
		hcas      []int
		gpus      []int
		over      *graph.Node // GPU with a near HCA, reached over NVLink
	}
	var found []far
	for g, n := range p.facts.gpus {
		if onChip(n) {
			continue
		}
		blind := false
		for h := range p.facts.hcas {
			blind = blind || maybe(h) && p.facts.class[g][h] == graph.Unknown
		}
		if class[g] == graph.Unknown {
			if blind {
				p.Gap("the distance between GPU and HCA is not known", readLive, n.Key)
			}
			continue
		}
		isFar := class[g] == graph.SYS || class[g] == graph.PHB && someNear
		if isFar && blind {
			p.Gap("the distance to some HCA is not known", readLive, n.Key)
			continue
		}
		sure := slices.ContainsFunc(hcas[g], func(h int) bool { return state[h] == yes })
		if !isFar {
			if !sure {
				p.Gap("port state not known", readLive, keysOf(p.facts.hcas, hcas[g])...)
			}
			continue
		}
		f := far{severity: Warning, class: class[g], hcas: hcas[g], gpus: []int{g}}
		if class[g] != graph.SYS {
			f.severity = Info
		}
		if !sure {
			// Whichever HCA is ACTIVE, none is nearer.
			f.certainty = Likely
		}
		if f.over = p.viaNVLink(n, class); f.over != nil {
			if class[g] != graph.SYS {
				continue
			}
			f.severity = Info
		}
		i := slices.IndexFunc(found, func(o far) bool {
			return o.severity == f.severity && o.certainty == f.certainty && o.class == f.class && (o.over == nil) == (f.over == nil) && slices.Equal(o.hcas, f.hcas)
		})
		if i < 0 {
			found = append(found, f)
			continue
		}
		found[i].gpus = append(found[i].gpus, g)
	}
	for _, f := range found {
		gpus, near := pick(p.facts.gpus, f.gpus), pick(p.facts.hcas, f.hcas)
		expected := "an ACTIVE HCA on the GPU's own NUMA node"
		if someNear {
			expected = "an ACTIVE HCA behind the GPU's PCIe switch (PIX or PXB), as other GPUs of this host have"
		}
		observed := fmt.Sprintf("nearest HCA of %s is %s away: %s (%s)", labels(gpus), p.Topo.SMICode(gpus[0], near[0]), labels(near), f.class.Doc())
		if f.over != nil {
			observed += fmt.Sprintf("; over NVLink it reaches the HCA of %s (PXN)", f.over.Label)
		}
		p.Report(Finding{
			Severity:  f.severity,
			Certainty: f.certainty,
			Subjects:  append(keys(gpus), keys(near)...),
			Expected:  expected,
			Observed:  observed,
			Evidence:  p.distanceEvidence(gpus[0], near[0]),
			Fix: fmt.Sprintf("hardware service: move an HCA to the socket, better the PCIe switch, of %s. Until then whoever starts jobs: place ranks that talk between hosts on GPUs near an HCA. No NCCL variable repairs it",
				labels(gpus)),
		})
	}
}

// viaNVLink returns a GPU with an HCA at PIX or PXB that n reaches over NVLink.
// NCCL uses such HCAs (PXN) from 2.12 on.
func (p *Pass) viaNVLink(n *graph.Node, class []graph.PathClass) *graph.Node {
	if NCCLBefore(p.Inv.Runtime.NCCL, 2, 12) {
		return nil
	}
	for g, m := range p.facts.gpus {
		if m != n && class[g].Near() && p.Topo.Class(n, m) == graph.NVL {
			return m
		}
	}
	return nil
}

// distanceEvidence says where GPU and HCA sit.
func (p *Pass) distanceEvidence(gpu, hca *graph.Node) []Evidence {
	var out []Evidence
	for _, n := range []*graph.Node{gpu, hca} {
		if n.PCI == nil || n.Home == nil {
			continue
		}
		out = append(out, placeEvidence(n))
	}
	if r, ok := p.Topo.Relation(gpu, hca); ok {
		out = append(out, evidence(r.Origins, "code", "", "%s %s %s", r.A, r.Code, r.B))
	}
	return out
}

// placeEvidence says where a device sits that the bus shows.
func placeEvidence(n *graph.Node) Evidence {
	fact := fmt.Sprintf("%s on %s", n.Label, n.Home.Label)
	if n.Up != nil && n.Up.Kind == graph.KindSwitch {
		fact += ", behind " + n.Up.Label
	}
	return evidence(n.PCI.Origins, "numa", "numa_node", "%s", fact)
}

func pick(nodes []*graph.Node, at []int) []*graph.Node {
	out := make([]*graph.Node, len(at))
	for i, n := range at {
		out[i] = nodes[n]
	}
	return out
}

func keysOf(nodes []*graph.Node, at []int) []string { return keys(pick(nodes, at)) }
