package search

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/simple"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Physical is what no collective over the host's links can exceed, whatever
// channels it runs, in GB/s of algorithm bandwidth (bytes of the result per
// second). NCCL's choice stands far below it where its paths or channels leave
// links unused.
type Physical struct {
	GPUs int `json:"gpus"` // that have links, on all hosts
	// AllReduce holds where GPUs do all reducing. Every byte of the result must
	// leave any part of the GPUs once, and all GPUs together must receive it
	// 2(n-1) times.
	AllReduce probe.Opt[float64] `json:"all_reduce_gbs"`
	// InSwitch holds where NVSwitches reduce and multiply (NVLS); unknown where
	// there are none that can.
	InSwitch probe.Opt[float64] `json:"all_reduce_in_switch_gbs"`
	// AllGather, and reduce-scatter likewise, where every GPU has its part to
	// bring to all others.
	AllGather probe.Opt[float64] `json:"all_gather_gbs"`
	// Broadcast, reduce likewise, and all-reduce wherever it is reduced: every byte of
	// the result must enter every GPU.
	Broadcast probe.Opt[float64] `json:"broadcast_gbs"`
	// OwnLinks is what the links of a GPU carry in all, of the GPU that has least.
	OwnLinks probe.Opt[float64] `json:"gpu_links_gbs"`
	// Open lists links whose rate is not known; they are taken to carry anything.
	Open []string `json:"open"`
}

// unbounded stands for a rate that is not known, GB/s.
const unbounded = 1e6

// ComputePhysical bounds collectives over the GPUs of a host, or of several hosts
// like it that their network ports join. It takes each link at what both ends can
// do, unless it is down, and leaves out GPUs without any link.
func ComputePhysical(t *graph.Topology, hosts int) Physical {
	f := newFlows(t, hosts > 1)
	p := Physical{GPUs: len(f.gpus) * max(1, hosts), Open: f.open}
	n := float64(p.GPUs)
	if n < 2 {
		return p
	}
	into := make([]float64, len(f.ends))
	for i := range f.ends {
		into[i] = f.into(i)
	}
	cut := slices.Min(into)
	all := 0.0
	for i := range f.gpus {
		all += into[i]
	}
	all *= float64(max(1, hosts))
	p.OwnLinks, p.Broadcast = known(f.own), known(cut)
	p.AllReduce = known(min(cut, all/(2*(n-1))))
	if f.reduces {
		p.InSwitch = known(cut)
	}
	p.AllGather = known(f.gather(into, max(1, hosts)))
	return p
}

func known(gbs float64) probe.Opt[float64] {
	if gbs >= unbounded/2 {
		return probe.Opt[float64]{}
	}
	return probe.Some(tidy(gbs))
}

func tidy(x float64) float64 { return math.Round(x*1e3) / 1e3 }

// flows is a host as a network of capacities, GB/s in each direction. Its ends are
// the GPUs and, with more hosts, all of them as one.
type flows struct {
	caps    map[[2]int64]float64
	nodes   int64
	gpus    []int64
	ends    []int64
	own     float64 // least of what a GPU's links carry
	reduces bool
	open    []string
}

func newFlows(t *graph.Topology, more bool) *flows {
	f := &flows{caps: map[[2]int64]float64{}, nodes: int64(len(t.Nodes)), own: unbounded, open: []string{}}
	for _, l := range t.Links {
		if !more && (l.A.Kind == graph.KindHCA || l.A.Kind == graph.KindNet) {
			continue // leads nowhere
		}
		gbs, ok := rate(l)
		if !ok {
			gbs = unbounded
			f.open = append(f.open, l.Key())
		}
		f.join(l.A.ID(), l.B.ID(), gbs)
	}
	for _, n := range t.Of(graph.KindGPU) {
		if len(t.LinksOf(n)) > 0 {
			f.gpus = append(f.gpus, n.ID())
			own := 0.0
			for _, l := range t.LinksOf(n) {
				gbs, ok := rate(l)
				if !ok {
					gbs = unbounded
				}
				own += gbs
			}
			f.own = min(f.own, own)
			f.reduces = f.reduces || n.GPU.CC.Or(0) >= 90 && slices.ContainsFunc(t.LinksOf(n), func(l *graph.Link) bool { return l.Other(n).Kind == graph.KindNVSwitch })
		}
	}
	f.ends = f.gpus
	if more {
		rest := f.nodes
		f.nodes++
		f.ends = append(slices.Clone(f.gpus), rest)
		f.reduces = false
		for _, n := range t.Of(graph.KindHCA) {
			for _, p := range n.HCA.Ports {
				if p.Active() || p.State == "" {
					f.join(n.ID(), rest, p.Rate.Or(0).GBs())
				}
			}
		}
	}
	slices.Sort(f.open)
	f.open = slices.Compact(f.open)
	return f
}

// rate is what a link carries in one direction at most. GPUs that idle have
// lowered their speed, not their width.
func rate(l *graph.Link) (gbs float64, ok bool) {
	if set, what := l.Set.Get(); what {
		return set.GBs(), true
	}
	if l.State == probe.LinkDown {
		return 0, true
	}
	r := l.Max
	if l.Kind == graph.PCIe {
		link := l.PCIeMax
		link.Width = l.PCIeMax.Min(l.PCIeCurrent).Width
		r = link.Encoded()
	}
	v, ok := r.Get()
	return v.GBs(), ok
}

func (f *flows) join(a, b int64, gbs float64) {
	f.caps[[2]int64{a, b}] += gbs
	f.caps[[2]int64{b, a}] += gbs
}

func (f *flows) graph(extra map[int64]float64) *simple.WeightedDirectedGraph {
	g := simple.NewWeightedDirectedGraph(0, 0)
	for i := range f.nodes + 1 {
		g.AddNode(simple.Node(i))
	}
	for k, c := range f.caps {
		if c > 0 && k[0] != k[1] {
			g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(k[0]), T: simple.Node(k[1]), W: c})
		}
	}
	for to, c := range extra {
		g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(f.nodes), T: simple.Node(to), W: c})
	}
	return g
}

// flow is the most that reaches an end from a source that feeds other ends.
func (f *flows) flow(end int, feed map[int64]float64) float64 {
	return network.MaxFlowDinic(f.graph(feed), simple.Node(f.nodes), simple.Node(f.ends[end]), 1e-9)
}

// into is the most that all other ends can send to one.
func (f *flows) into(end int) float64 {
	feed := map[int64]float64{}
	for i, e := range f.ends {
		if i != end {
			feed[e] = 10 * unbounded
		}
	}
	return f.flow(end, feed)
}

// gather is the most that all ends can bring to all others at once: each its part
// of the result. That is possible where for each end what all others feed in
// arrives (Edmonds' branchings: as many trees fit as every cut carries).
func (f *flows) gather(into []float64, hosts int) float64 {
	weight := make([]float64, len(f.ends))
	total := 0.0
	for i := range f.ends {
		weight[i] = 1
		if i >= len(f.gpus) {
			weight[i] = float64((hosts - 1) * len(f.gpus))
		}
		total += weight[i]
	}
	hi := math.Inf(1) // of one part
	for i := range f.ends {
		hi = min(hi, into[i]/(total-weight[i]))
	}
	fits := func(part float64) bool {
		for end := range f.ends {
			feed := map[int64]float64{}
			want := 0.0
			for i, e := range f.ends {
				if i != end {
					feed[e] = part * weight[i]
					want += part * weight[i]
				}
			}
			if f.flow(end, feed) < want*(1-1e-6) {
				return false
			}
		}
		return true
	}
	if fits(hi) {
		return hi * total
	}
	lo := 0.0
	for hi-lo > hi*1e-4 {
		if mid := (lo + hi) / 2; fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi * total // never below what is possible
}
