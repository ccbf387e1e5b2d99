package graph

import (
	"cmp"
	"slices"
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

// waysTo finds the best way from every node to base. GPUs of other nodes are no
// more relays, except that NCCL 2.30 keeps their devices.
func (v *NCCLView) waysTo(base int) []*ncclLabel {
	relay := func(n int) bool {
		return !v.Options.NoNVB && (v.Options.Version.AtLeast(30, 0) || slices.Contains(v.GPUs, n))
	}
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
			if through && (!relay(at) || back.Type != NCCLLinkNVL || v.Nodes[back.From].Kind != NCCLGPU || way.hops > 1 || way.class != NVL) {
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
		if !v.Options.Version.AtLeast(26, 0) {
			return PHB // no class of its own before
		}
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

// ncclPather finds the paths of one view.
type ncclPather struct {
	b    *ncclBuilder
	v    *NCCLView
	ways [][]*ncclLabel // by the node that they lead to; nil: not asked for yet
}

func (p *ncclPather) way(from, to int) *ncclLabel {
	if p.ways[to] == nil {
		p.ways[to] = p.v.waysTo(to)
	}
	return p.ways[to][from]
}

// path is the best way between two nodes, DIS where there is none.
func (p *ncclPather) path(from, to int) NCCLPath {
	out := NCCLPath{A: p.v.Nodes[from].ID, B: p.v.Nodes[to].ID, Class: DIS}
	switch way := p.way(from, to); {
	case from == to:
		out.Class, out.GBs, out.P2P = LOC, NCCLLocalGBs, true
	case way != nil:
		out.Class, out.GBs, out.Links = way.class, way.gbs, way.links()
		out.Hops = len(out.Links) + p.v.deviceHops(from) + p.v.deviceHops(to)
	}
	return out
}

// deviceHops is 1 for a GPU since 2.30, which counts the hop from the GPU to its
// device.
func (v *NCCLView) deviceHops(node int) int {
	if v.Nodes[node].Kind == NCCLGPU && v.Options.Version.AtLeast(30, 0) {
		return 1
	}
	return 0
}

// join makes one path of two that meet at a node.
func (p *ncclPather) join(first, second NCCLPath) NCCLPath {
	return NCCLPath{
		A: first.A, B: second.B, Class: max(first.Class, second.Class), GBs: min(first.GBs, second.GBs),
		Hops: first.Hops + second.Hops, Links: append(slices.Clip(first.Links), second.Links...),
	}
}

// paths finds the paths between all GPUs and NETs of a view, and diverts those
// that NCCL does not use (NCCL 2.30.7 paths.cc:721-865).
func (b *ncclBuilder) paths(v *NCCLView) {
	p := &ncclPather{b, v, make([][]*ncclLabel, len(v.Nodes))}
	between := func(from, to []int) [][]NCCLPath {
		out := make([][]NCCLPath, len(from))
		for i, x := range from {
			out[i] = make([]NCCLPath, len(to))
			for j, y := range to {
				out[i][j] = p.path(x, y)
			}
		}
		return out
	}
	v.paths, v.toNet, v.fromNet = between(v.GPUs, v.GPUs), between(v.GPUs, v.Nets), between(v.Nets, v.GPUs)
	v.toNVS, v.fromNVS = make([]NCCLPath, len(v.GPUs)), make([]NCCLPath, len(v.GPUs))
	for i, g := range v.GPUs {
		v.toNVS[i], v.fromNVS[i] = NCCLPath{Class: DIS}, NCCLPath{Class: DIS}
		if v.NVS >= 0 {
			v.toNVS[i], v.fromNVS[i] = p.path(g, v.NVS), p.path(v.NVS, g)
		}
	}
	p.peers()
	p.acrossC2C()
	p.toNets()
}

// localCPU is the CPU node next to a GPU: the fewest hops.
func (p *ncclPather) localCPU(gpu int) (cpu int, ok bool) {
	var best *ncclLabel
	for c := range p.v.Nodes {
		if p.v.Nodes[c].Kind != NCCLCPU {
			continue
		}
		if way := p.way(gpu, c); way != nil && (best == nil || way.hops < best.hops) {
			best, cpu = way, c
		}
	}
	return cpu, best != nil
}

// throughCPU is the way from one node to another by the CPU next to a GPU.
func (p *ncclPather) throughCPU(gpu, from, to int) (NCCLPath, bool) {
	cpu, ok := p.localCPU(gpu)
	if !ok {
		return NCCLPath{}, false
	}
	up, down := p.path(from, cpu), p.path(cpu, to)
	if up.Class == DIS || down.Class == DIS {
		return NCCLPath{}, false
	}
	return p.join(up, down), true
}
