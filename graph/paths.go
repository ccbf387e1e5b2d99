package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// Path is the best way between two devices: lowest class, then highest rate,
// then fewest hops, as NCCL chooses (class wins over bandwidth).
type Path struct {
	Class PathClass
	// Hops holds the links of each hop from the first device to the second;
	// parallel links of one kind are one hop.
	Hops [][]*Link
	// Rate is the lowest maximum rate among the hops, one direction; unknown if
	// any hop's is unknown.
	Rate probe.Opt[probe.Rate]
}

// label is the best known way to a node from a source.
type label struct {
	class PathClass // 0 = not reached
	rate  float64   // bytes/s, +Inf while unknown hops do not bound it
	hops  int
	via   *bundle // last hop
	prev  *Node   // node before the last hop
	mid   *Node   // GPU that the path passed through (NVB)
}

func (l label) better(o label) bool {
	return o.class == 0 || cmp.Or(cmp.Compare(l.class, o.class), cmp.Compare(o.rate, l.rate), cmp.Compare(l.hops, o.hops)) < 0
}

// extend returns the label of going on over b from node at, which carries l;
// ok is false where no path may go.
func extend(src, at *Node, l label, b *bundle) (next label, ok bool) {
	through := at != src
	mid := l.mid
	if through {
		switch at.Kind {
		case KindHCA, KindNet:
			return label{}, false
		case KindGPU:
			// Only NVLink–GPU–NVLink to another GPU, once.
			if mid != nil || b.kind != NVLink || b.to.Kind != KindGPU || l.class != NVL || l.hops != 1 {
				return label{}, false
			}
			mid = at
		}
	}
	if b.to.Kind == KindNVSwitch && src.Kind != KindGPU {
		return label{}, false
	}
	if at.Kind == KindNVSwitch && b.to.Kind != KindGPU {
		return label{}, false
	}
	class := hopClass(at, b)
	switch {
	case mid != nil:
		class = NVB
	case class == PHB && l.class == C2C && (b.to.Kind == KindHCA || b.to.Kind == KindNet || b.to.Kind == KindSwitch):
		class = P2C
	case l.class == P2C && class.Near():
		class = P2C
	}
	return label{
		class: max(l.class, class), rate: math.Min(l.rate, bundleRate(b)), hops: l.hops + 1,
		via: b, prev: at, mid: mid,
	}, true
}

func hopClass(at *Node, b *bundle) PathClass {
	switch b.kind {
	case NVLink:
		return NVL
	case C2CLink:
		return C2C
	case SMP:
		return SYS
	}
	switch {
	case at.Kind == KindNUMA || b.to.Kind == KindNUMA:
		return PHB
	case at.Kind == KindSwitch && b.to.Kind == KindSwitch:
		return PXB
	}
	return PIX
}

// bundleRate sums the maximum rates of parallel links that are up; a link of
// unknown rate does not bound the path.
func bundleRate(b *bundle) float64 { return linksRate(b.links) }

func linksRate(links []*Link) float64 {
	var sum float64
	for _, l := range links {
		if l.State == probe.LinkDown {
			continue
		}
		r, ok := l.Max.Get()
		if !ok {
			return math.Inf(1)
		}
		sum += float64(r)
	}
	return sum
}

// computePaths runs a label-correcting search from every device. Labels only
// ever improve in a total order over finite values, so it ends.
func (t *Topology) computePaths() {
	t.paths = map[int64][]label{}
	for _, src := range t.Nodes {
		if src.Kind != KindGPU && src.Kind != KindHCA && src.Kind != KindNet {
			continue
		}
		labels := make([]label, len(t.Nodes))
		labels[src.id] = label{class: LOC, rate: math.Inf(1)}
		queue := []*Node{src}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for i := range t.adj[at.id] {
				b := &t.adj[at.id][i]
				next, ok := extend(src, at, labels[at.id], b)
				if ok && b.to != src && bundleRate(b) > 0 && next.better(labels[b.to.id]) {
					labels[b.to.id] = next
					queue = append(queue, b.to)
				}
			}
		}
		t.paths[src.id] = labels
	}
}

// Path returns the best path from device a to device b. Its class is Unknown
// where the facts do not tell: one of them could not be placed, or both hang on
// root complexes of unknown NUMA node, or they are GPUs whose NVLinks nobody
// states; then a cell of topo -m, if there is one, decides the class.
func (t *Topology) Path(a, b *Node) Path {
	if a == b {
		return Path{Class: LOC}
	}
	labels := t.paths[a.id]
	if labels == nil || labels[b.id].class == 0 {
		return Path{Class: t.relationClass(a, b)}
	}
	if labels[b.id].class > NVB && t.nvlinkMayJoin(a, b) {
		return Path{Class: Unknown}
	}
	p := Path{Class: labels[b.id].class}
	rate := labels[b.id].rate
	for at := b; at != a; at = labels[at.id].prev {
		p.Hops = append(p.Hops, labels[at.id].via.links)
		if math.IsInf(bundleRate(labels[at.id].via), 1) {
			rate = math.Inf(1)
		}
	}
	slices.Reverse(p.Hops)
	if p.Class == NVL && len(p.Hops) == 2 && p.Hops[0][0].B.Kind == KindNVSwitch {
		// Traffic spreads over all switches, whichever one the search took.
		out, in := t.switchLinks(a), t.switchLinks(b)
		p.Hops = [][]*Link{out, in}
		rate = math.Min(linksRate(out), linksRate(in))
	}
	if !math.IsInf(rate, 1) {
		p.Rate = probe.Some(probe.Rate(rate))
	}
	return p
}

// nvlinkMayJoin reports two GPUs of which no source says whether NVLinks join
// them: the way over PCIe may not be the one that counts.
func (t *Topology) nvlinkMayJoin(a, b *Node) bool {
	if a.Kind != KindGPU || b.Kind != KindGPU || a.GPU.NVLinks.Known() || b.GPU.NVLinks.Known() {
		return false
	}
	_, told := t.Relation(a, b)
	return !told
}

// Class is the class of Path(a, b).
func (t *Topology) Class(a, b *Node) PathClass { return t.Path(a, b).Class }

// relationClass reads the class from topo -m, where the tree does not give it.
func (t *Topology) relationClass(a, b *Node) PathClass {
	r, ok := t.Relation(a, b)
	if !ok {
		return Unknown
	}
	switch r.Code {
	case "NODE":
		return PHB
	case "PIX":
		return PIX
	case "PXB":
		return PXB
	case "PHB":
		return PHB
	case "SYS":
		return SYS
	}
	return NVL
}

// Relation returns the cell of topo -m for two devices.
func (t *Topology) Relation(a, b *Node) (probe.Relation, bool) {
	x, y := relationName(a), relationName(b)
	if x == "" || y == "" {
		return probe.Relation{}, false
	}
	for _, r := range t.Inv.Relations {
		if r.A == x && r.B == y || r.A == y && r.B == x {
			return r, true
		}
	}
	return probe.Relation{}, false
}

func relationName(n *Node) string {
	switch n.Kind {
	case KindGPU:
		if i, ok := n.GPU.Index.Get(); ok {
			return fmt.Sprintf("GPU%d", i)
		}
	case KindHCA:
		return n.HCA.Name
	}
	return ""
}

// SMICode returns the pair's cell as nvidia-smi topo -m writes it: NV18 counts
// the NVLinks that are up, NODE is PHB across host bridges of one NUMA node.
func (t *Topology) SMICode(a, b *Node) string {
	p := t.Path(a, b)
	switch p.Class {
	case LOC:
		return "X"
	case NVL:
		if r, ok := t.Relation(a, b); ok && len(p.Hops) == 0 {
			return r.Code
		}
		return fmt.Sprintf("NV%d", t.nvlinks(p))
	case PHB, P2C:
		if r, ok := t.Relation(a, b); ok && len(p.Hops) == 0 {
			return r.Code
		}
		if a.PCI != nil && b.PCI != nil && a.PCI.Root != b.PCI.Root && a.PCI.Root != "" && b.PCI.Root != "" {
			return "NODE"
		}
		return "PHB"
	}
	return p.Class.String()
}

// nvlinks counts the NVLinks of an NVL path: the lowest number up on any hop.
func (t *Topology) nvlinks(p Path) int {
	n := up(p.Hops[0])
	for _, hop := range p.Hops[1:] {
		n = min(n, up(hop))
	}
	return n
}

// switchLinks returns a GPU's links to NVSwitches.
func (t *Topology) switchLinks(gpu *Node) []*Link {
	var out []*Link
	for _, b := range t.adj[gpu.id] {
		if b.to.Kind == KindNVSwitch {
			out = append(out, b.links...)
		}
	}
	return out
}

func up(links []*Link) int {
	n := 0
	for _, l := range links {
		if l.State != probe.LinkDown {
			n++
		}
	}
	return n
}
