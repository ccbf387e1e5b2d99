package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

// node is one node of the communicator, as its ranks search it. GPUs and NETs
// are numbered as in the view.
type node struct {
	v      *graph.NCCLView
	inter  bool // the communicator spans several nodes
	gpus   int
	minCC  int
	speeds []mbs

	gpuGPU  []route // from*gpus + to
	gpuNet  []route // gpu*len(nets) + net
	netGPU  []route // net*gpus + gpu
	gpuNVS  []route
	nvsGPU  []route
	nets    []port
	prefers [][]int   // per GPU: NETs that it prefers
	near    [][]int   // per NET: the GPUs nearest to it
	owner   []int     // per NET: the GPU that prefers it; -1: none
	pciGBs  []float64 // per GPU: of its PCIe link
	outGBs  []float64 // per GPU: of its PCIe link or all its NVLinks

	maxGBs float64 // NCCL's maxBw: the best path of a GPU
	allGBs float64 // NCCL's totalBw: the most that leaves a GPU

	nextOf map[nextKey][]int
	netsOf map[netsKey][]int
}

// port is a NET. Those of one adapter and port share their bandwidth.
type port struct {
	dev  int
	same []int // the NETs that share, itself among them
	gbs  float64
}

func newNode(v *graph.NCCLView, inter bool) *node {
	n := &node{v: v, inter: inter, gpus: len(v.GPUs), nextOf: map[nextKey][]int{}, netsOf: map[netsKey][]int{}}
	n.minCC, _, _ = v.CC()
	n.speeds = speedsFor(n.minCC, v.Options.Version, inter)
	for i := range v.GPUs {
		for j := range v.GPUs {
			n.gpuGPU = append(n.gpuGPU, newRoute(v, graph.NCCLGPU, v.Path(i, j), v.Path(j, i)))
		}
		to, from := v.PathsNVS(i)
		n.gpuNVS = append(n.gpuNVS, newRoute(v, graph.NCCLGPU, to, from))
		n.nvsGPU = append(n.nvsGPU, newRoute(v, graph.NCCLNVS, from, to))
	}
	if inter {
		n.addNets()
	}
	n.limits()
	return n
}

func (n *node) addNets() {
	v := n.v
	for i := range v.GPUs {
		for k := range v.Nets {
			n.gpuNet = append(n.gpuNet, newRoute(v, graph.NCCLGPU, v.PathToNet(i, k), v.PathFromNet(k, i)))
		}
		n.prefers = append(n.prefers, v.NetsOf(i))
	}
	for k, at := range v.Nets {
		for i := range v.GPUs {
			n.netGPU = append(n.netGPU, newRoute(v, graph.NCCLNET, v.PathFromNet(k, i), v.PathToNet(i, k)))
		}
		net := v.Nodes[at].Net
		p := port{dev: v.Nodes[at].ID, gbs: net.GBs}
		for o, other := range v.Nets {
			if x := v.Nodes[other].Net; x.Adapter == net.Adapter && x.Port == net.Port {
				p.same = append(p.same, o)
			}
		}
		n.nets = append(n.nets, p)
		n.near = append(n.near, v.LocalGPUs(k))
		owner, ok := v.LocalGPU(k)
		if !ok {
			owner = -1
		}
		n.owner = append(n.owner, owner)
	}
}

// limits finds what bounds the speeds that are tried (NCCL 2.30.7
// search.cc:20-54).
func (n *node) limits() {
	n.pciGBs, n.outGBs = make([]float64, n.gpus), make([]float64, n.gpus)
	nvl := make([]float64, n.gpus)
	for i, g := range n.v.GPUs {
		for _, l := range n.v.Links {
			switch {
			case l.From != g:
			case l.Type == graph.NCCLLinkPCI:
				n.pciGBs[i] = l.GBs
			case l.Type == graph.NCCLLinkNVL:
				nvl[i] += l.GBs
			}
		}
		n.outGBs[i] = max(n.pciGBs[i], nvl[i])
		n.allGBs = max(n.allGBs, n.outGBs[i])
	}
	routes := n.gpuGPU
	if n.inter {
		routes = n.gpuNet
	}
	for _, r := range routes {
		if r.hops > 0 {
			n.maxGBs = max(n.maxGBs, r.gbs)
		}
	}
	if n.gpus == 1 && !n.inter {
		n.maxGBs, n.allGBs = graph.NCCLLocalGBs, graph.NCCLLocalGBs
	}
}

// classes returns the best and the worst class of routes between different
// things.
func classes(routes []route) (best, worst graph.PathClass) {
	best, worst = graph.DIS, graph.LOC
	for _, r := range routes {
		if r.hops > 0 || r.class == graph.DIS {
			best, worst = min(best, r.class), max(worst, r.class)
		}
	}
	return best, worst
}

type netsKey struct {
	gpu   int // -1: all
	worst graph.PathClass
}

// usable lists the NETs that a GPU, or any, may use within a path class: first
// those that it prefers, then by class (NCCL 2.30.7 search.cc:540-619).
func (n *node) usable(gpu int, worst graph.PathClass) []int {
	key := netsKey{gpu, worst}
	if out, ok := n.netsOf[key]; ok {
		return out
	}
	gpus := []int{gpu}
	if gpu < 0 {
		gpus = gpus[:0]
		for g := range n.gpus {
			gpus = append(gpus, g)
		}
	}
	var out []int
	add := func(k int) {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	if n.v.Hosts > 1 {
		// Over the hosts of a domain each GPU's first NET comes before any second one.
		for c := range n.nets {
			for _, g := range gpus {
				if c < len(n.prefers[g]) {
					add(n.prefers[g][c])
				}
			}
		}
	}
	for _, g := range gpus {
		for _, k := range n.prefers[g] {
			add(k)
		}
	}
	for class := graph.LOC; class <= worst; class++ {
		for _, g := range gpus {
			for k := range n.nets {
				if n.gpuNet[g*len(n.nets)+k].class == class {
					add(k)
				}
			}
		}
	}
	n.netsOf[key] = out
	return out
}

// nearest lists the GPUs nearest to a NET in the order in which a channel tries
// them. Until 2.23 each channel began with the GPU of its own number.
func (n *node) nearest(net, channel int) []int {
	if n.v.Options.Version.AtLeast(24, 0) {
		return n.near[net]
	}
	out := slices.Clone(n.near[net])
	slices.SortStableFunc(out, func(x, y int) int {
		return cmp.Compare((x-channel%n.gpus+n.gpus)%n.gpus, (y-channel%n.gpus+n.gpus)%n.gpus)
	})
	return out
}

// toward says how the way to the NIC bears on which GPU comes next.
type toward int

const (
	noNIC    toward = iota // the channel does not go back to a NIC, or has been there
	laterNIC               // it goes back later: keep the GPUs near the NIC
	nowNIC                 // the next GPU sends to the NIC
)

type nextKey struct {
	gpu int
	net int // -1: none
}

// next lists the GPUs to try after a GPU: near the NIC that the channel came
// from, where it matters, then near the GPU, then in order (NCCL 2.30.7
// search.cc:65-172). With NVSwitches only the neighbours by number are tried.
func (n *node) next(shape shape, gpu, net int, to toward, used []bool, out []int) []int {
	if n.v.NVS >= 0 {
		return n.neighbours(shape, gpu, used, out)
	}
	if to == noNIC {
		net = -1
	}
	for _, g := range n.sorted(gpu, net) {
		if !used[g] {
			out = append(out, g)
		}
	}
	if to == laterNIC && n.alike(gpu, out) {
		slices.Reverse(out)
	}
	return out
}

func (n *node) neighbours(shape shape, gpu int, used []bool, out []int) []int {
	after, before := (gpu+1)%n.gpus, (gpu-1+n.gpus)%n.gpus
	order := [2]int{before, after}
	switch shape {
	case ring:
	case balanced, split:
		order = [2]int{after, before}
	default:
		order[0], order[1] = after, after
	}
	for i, g := range order {
		if !used[g] && n.gpuGPU[gpu*n.gpus+g].hops > 0 && (i == 0 || g != order[0]) {
			out = append(out, g)
		}
	}
	return out
}

// sorted lists all GPUs that are joined to one, best first. NCCL compares whole
// GB/s.
func (n *node) sorted(gpu, net int) []int {
	key := nextKey{gpu, net}
	if out, ok := n.nextOf[key]; ok {
		return out
	}
	var out []int
	for d := 1; d < n.gpus; d++ {
		if g := (gpu + d) % n.gpus; n.gpuGPU[gpu*n.gpus+g].hops > 0 {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(x, y int) int {
		if net >= 0 {
			a, b := &n.netGPU[net*n.gpus+x], &n.netGPU[net*n.gpus+y]
			if c := cmp.Or(cmp.Compare(whole(b.gbs), whole(a.gbs)), cmp.Compare(whole(n.pciGBs[y]), whole(n.pciGBs[x])), cmp.Compare(a.hops, b.hops)); c != 0 {
				return c
			}
		}
		a, b := &n.gpuGPU[gpu*n.gpus+x], &n.gpuGPU[gpu*n.gpus+y]
		return cmp.Or(cmp.Compare(whole(b.gbs), whole(a.gbs)), cmp.Compare(a.hops, b.hops))
	})
	n.nextOf[key] = out
	return out
}

func whole(gbs float64) int { return int(math.Trunc(gbs)) }

// alike reports that all GPUs are as near to one.
func (n *node) alike(gpu int, others []int) bool {
	for _, g := range others {
		a, b := &n.gpuGPU[gpu*n.gpus+g], &n.gpuGPU[gpu*n.gpus+others[0]]
		if whole(a.gbs) != whole(b.gbs) || a.hops != b.hops {
			return false
		}
	}
	return true
}
