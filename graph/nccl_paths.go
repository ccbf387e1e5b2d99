package graph

import (
	"cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// ncclLabel is the best known way from a node to the base of a search.
type ncclLabel struct {
	class PathClass
	gbs   float64
	hops  int
	link  int        // first link of the way, leaves the node
	rest  *ncclLabel // the way from that link's other end; nil at the base
}

// better: class wins over bandwidth, bandwidth over hops (NCCL 2.30.7
// paths.cc:38-130).
func (l *ncclLabel) better(o *ncclLabel) bool {
	return o == nil || cmp.Or(cmp.Compare(l.class, o.class), cmp.Compare(o.gbs, l.gbs), cmp.Compare(l.hops, o.hops)) < 0
}

func (l *ncclLabel) links() []int {
	var out []int
	for ; l.rest != nil; l = l.rest {
		out = append(out, l.link)
	}
	return out
}

// waysTo finds the best way from every node to base.
func (v *NCCLView) waysTo(base int) []*ncclLabel {
	labels := make([]*ncclLabel, len(v.Nodes))
	labels[base] = &ncclLabel{class: LOC, gbs: NCCLLocalGBs}
	queue := []int{base}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, out := range v.Nodes[at].out {
			back := &v.Links[out^1] // the way is walked from the far end
			if back.From == base || back.GBs <= 0 {
				continue
			}
			way := labels[at]
			through := at != base && v.Nodes[at].Kind == NCCLGPU
			// A GPU relays only between two GPUs on NVLink, and only once.
			if through && (back.Type != NCCLLinkNVL || v.Nodes[back.From].Kind != NCCLGPU || way.hops > 1 || way.class != NVL) {
				continue
			}
			class := v.linkClass(back)
			if through {
				class = NVB
			}
			next := &ncclLabel{class: max(way.class, class), gbs: min(way.gbs, back.GBs), hops: way.hops + 1, link: out ^ 1, rest: way}
			if next.better(labels[back.From]) {
				labels[back.From] = next
				queue = append(queue, back.From)
			}
		}
	}
	return labels
}

func (v *NCCLView) linkClass(l *NCCLLink) PathClass {
	switch l.Type {
	case NCCLLinkNVL:
		return NVL
	case NCCLLinkC2C:
		return C2C
	case NCCLLinkSYS:
		return SYS
	case NCCLLinkPCI:
		from, to := v.Nodes[l.From].Kind, v.Nodes[l.To].Kind
		switch {
		case from == NCCLCPU || to == NCCLCPU:
			return PHB
		case from == NCCLPCI && to == NCCLPCI:
			return PXB
		}
		return PIX
	}
	return LOC
}

// paths finds the way between all GPUs, diverts pairs without peer access
// through host memory, and groups the GPUs.
func (b *ncclBuilder) paths() {
	v := b.v
	n := len(v.GPUs)
	v.paths = make([][]NCCLPath, n)
	toGPU := make([][]*ncclLabel, n)
	for j, g := range v.GPUs {
		toGPU[j] = v.waysTo(g)
	}
	toCPU := map[int][]*ncclLabel{}
	for _, c := range b.cpus {
		toCPU[c] = v.waysTo(c)
	}
	level := v.p2pLevel()
	for i, g := range v.GPUs {
		v.paths[i] = make([]NCCLPath, n)
		for j := range v.GPUs {
			p := NCCLPath{A: v.Dev(i), B: v.Dev(j), Class: DIS}
			switch way := toGPU[j][g]; {
			case i == j:
				p = NCCLPath{A: p.A, B: p.B, Class: LOC, GBs: NCCLLocalGBs, P2P: true}
			case way != nil && way.class <= level && b.peers(i, j):
				p.Class, p.GBs, p.Links, p.P2P = way.class, way.gbs, way.links(), true
			default:
				// GPU, the CPU next to its peer, peer (paths.cc:721-865).
				if cpu, ok := v.localCPU(j, toCPU); ok && toCPU[cpu][g] != nil {
					up, down := toCPU[cpu][g], toGPU[j][cpu]
					p.Class, p.GBs = max(up.class, down.class), min(up.gbs, down.gbs)
					p.Links = append(up.links(), down.links()...)
				}
			}
			if len(p.Links) > 0 {
				p.Hops = len(p.Links) + 2 // GPU to device and device to GPU
			}
			v.paths[i][j] = p
		}
	}
	v.group()
}

// p2pLevel is the worst class over which NCCL lets GPUs address each other's
// memory (NCCL 2.30.7 paths.cc:298-434).
func (v *NCCLView) p2pLevel() PathClass {
	switch {
	case v.Options.P2PLevel != Unknown:
		return v.Options.P2PLevel
	case v.Processor.AMD && len(v.GPUs) <= 2:
		return SYS
	}
	return PXB
}

// peers reports whether the driver lets two GPUs address each other's memory.
// What is unknown is allowed, as it is on all but GeForce boards.
func (b *ncclBuilder) peers(i, j int) bool {
	if b.v.Options.NoP2P {
		return false
	}
	x, y := b.v.Nodes[b.v.GPUs[i]].Node.GPU, b.v.Nodes[b.v.GPUs[j]].Node.GPU
	known := false
	for _, side := range []struct {
		of   *probe.GPU
		peer int
	}{{x, b.v.Dev(j)}, {y, b.v.Dev(i)}} {
		for _, p := range side.of.Peers {
			if p.GPU != side.peer || p.Capability != "read" && p.Capability != "write" {
				continue
			}
			known = true
			if p.Status != "ok" {
				return false
			}
		}
	}
	if !known {
		b.assume("host", "whether the driver allows peer access between the GPUs is unknown: taken as allowed")
	}
	return true
}

// localCPU is the CPU node next to a GPU: the most bandwidth, then the best
// class (NCCL 2.30.7 topo.cc:1943-1972).
func (v *NCCLView) localCPU(pos int, toCPU map[int][]*ncclLabel) (cpu int, ok bool) {
	var best *ncclLabel
	for c := range v.Nodes {
		if v.Nodes[c].Kind != NCCLCPU {
			continue
		}
		l := toCPU[c][v.GPUs[pos]]
		if l != nil && (best == nil || cmp.Or(cmp.Compare(best.gbs, l.gbs), cmp.Compare(l.class, best.class)) < 0) {
			best, cpu = l, c
		}
	}
	return cpu, best != nil
}

// group marks pairs whose way through the host is slower than each one's way to
// a NIC of its own: NCCL sends their data over the network (class NET) and takes
// them for GPUs of different nodes (NCCL 2.30.7 paths.cc:298-434, 867-911).
func (v *NCCLView) group() {
	n := len(v.GPUs)
	fastest := make([]float64, n) // way to a NIC that is PXB or nearer
	for _, net := range v.Nets {
		ways := v.waysTo(net)
		for i, g := range v.GPUs {
			if w := ways[g]; w != nil && w.class <= PXB {
				fastest[i] = max(fastest[i], w.gbs)
			}
		}
	}
	group := make([]int, n)
	for i := range group {
		group[i] = i
	}
	for i := range n {
		for j := range n {
			p := &v.paths[i][j]
			if i != j && p.GBs > 0 && fastest[i] > p.GBs && fastest[j] > p.GBs {
				p.Class, p.P2P = NET, false
			}
		}
	}
	// A GPU joins the lowest group of those before it that it reaches; NCCL does
	// not go back to join groups that meet later. What nothing is known to join
	// stays in one group: the host's wiring is unknown, not its being one host.
	for i := range n {
		for j := range i {
			if v.paths[i][j].Class != NET {
				group[i] = min(group[i], group[j])
			}
		}
	}
	for first := range n {
		var members []int
		for k, g := range group {
			if g == first {
				members = append(members, k)
			}
		}
		if members != nil {
			v.Groups = append(v.Groups, members)
		}
	}
}
