package search

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ncclmap/ncclmap/graph"
)

// Compute predicts the channels of a communicator over all GPUs of a host, or of
// o.Hosts hosts like it. It fails where the view lacks what NCCL would know: then
// there is no prediction.
func Compute(v *graph.NCCLView, o Options) (*Result, error) {
	return ComputeHosts(slices.Repeat([]*graph.NCCLView{v}, o.hosts()), o)
}

// ComputeHosts predicts the channels of a communicator over all GPUs of several
// hosts; ranks are numbered host by host. o.Hosts does not count.
func ComputeHosts(views []*graph.NCCLView, o Options) (*Result, error) {
	if len(views) == 0 {
		return nil, fmt.Errorf("search channels: no host")
	}
	r := &Result{View: views[0], Graphs: []Graph{}, o: o}
	checked := map[*graph.NCCLView]bool{}
	for host, v := range views {
		if !checked[v] {
			if err := check(v); err != nil {
				return nil, err
			}
			checked[v] = true
		}
		r.addHost(host, v)
	}
	r.Nodes = len(r.Members)
	if r.MinCC == 0 {
		return r, nil // a single GPU, of which nothing is known
	}
	r.search()
	r.agree()
	r.count()
	return r, nil
}

// check refuses a view that lacks what NCCL would know.
func check(v *graph.NCCLView) error {
	if len(v.GPUs) == 0 {
		return fmt.Errorf("search channels: no GPU")
	}
	if len(v.GPUs) > 1 || v.Nodes[v.GPUs[0]].CC.Known() {
		for i, g := range v.GPUs {
			if !v.Nodes[g].CC.Known() {
				return fmt.Errorf("search channels: GPU %d: its compute capability is unknown, by which NCCL chooses speeds and NVLink bandwidth", v.Dev(i))
			}
		}
	}
	for i := range v.GPUs {
		for j := range i {
			if v.Path(i, j).Class == graph.DIS || v.Path(j, i).Class == graph.DIS {
				a, b := min(v.Dev(i), v.Dev(j)), max(v.Dev(i), v.Dev(j))
				return fmt.Errorf("search channels: GPU %d and GPU %d: neither NVLinks between them nor the places of both on the PCI tree are known", a, b)
			}
		}
	}
	return nil
}

// addHost adds the nodes that NCCL makes of a host. Ranks follow the GPUs' dev
// numbers, nodes their first rank.
func (r *Result) addHost(host int, v *graph.NCCLView) {
	byDev := make([]int, len(v.GPUs))
	for i := range byDev {
		byDev[i] = i
	}
	slices.SortFunc(byDev, func(x, y int) int { return cmp.Compare(v.Dev(x), v.Dev(y)) })
	rank := make([]int, len(v.GPUs))
	for k, i := range byDev {
		rank[i] = r.Ranks + k
	}
	first := len(r.Members)
	for k, group := range v.Groups {
		m := Member{Host: host, View: v.Part(k)}
		for _, i := range group {
			m.Ranks = append(m.Ranks, rank[i])
		}
		r.Members = append(r.Members, m)
	}
	slices.SortStableFunc(r.Members[first:], func(x, y Member) int { return cmp.Compare(slices.Min(x.Ranks), slices.Min(y.Ranks)) })
	r.Ranks += len(v.GPUs)
	if low, high, ok := v.CC(); ok {
		r.MaxCC = max(r.MaxCC, high)
		if r.MinCC == 0 || low < r.MinCC {
			r.MinCC = low
		}
	}
}

// search runs each node's searches, once per view.
func (r *Result) search() {
	first := map[*graph.NCCLView]*Member{}
	var distinct []*Member
	for i := range r.Members {
		if m := &r.Members[i]; first[m.View] == nil {
			first[m.View] = m
			distinct = append(distinct, m)
		}
	}
	var wait sync.WaitGroup
	next := atomic.Int64{}
	for range min(runtime.GOMAXPROCS(0), len(distinct)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(distinct); i = next.Add(1) - 1 {
				m := distinct[i]
				m.node = newNode(m.View, r.Nodes > 1)
				m.Graphs = m.node.graphs(r.o)
			}
		})
	}
	wait.Wait()
	for i := range r.Members {
		m := &r.Members[i]
		m.node, m.Graphs = first[m.View].node, first[m.View].Graphs
	}
}

// maxChannels is NCCL's MAXCHANNELS.
func maxChannels(v graph.NCCLVersion) int {
	if v.AtLeast(25, 0) {
		return 64
	}
	return 32
}

// graphs searches ring, tree and NVLS as one node's ranks do (NCCL 2.30.7
// init.cc:1171-1218).
func (n *node) graphs(o Options) []Graph {
	v := n.v
	lowest := 1
	if n.twoIslands() {
		lowest = 2 // a tree needs them, and has as many as the ring
	}
	r := n.graph(n.search(ring, lowest, maxChannels(v.Options.Version)/2, o))
	t := n.graph(n.search(balanced, r.Channels, r.Channels, o))
	graphs := []Graph{r, t}
	if v.NVS >= 0 && n.minCC >= 90 && !o.NoNVLS && n.gpus > 1 {
		highest := min(32, n.gpus)
		lowest := 1
		if !n.inter {
			lowest = highest
		}
		if f := n.search(nvls, lowest, highest, o); f.channels() > 0 {
			graphs = append(graphs, n.graph(f))
		}
	}
	return graphs
}

// twoIslands reports that the GPUs form exactly two groups that NVLink joins
// within and not between.
func (n *node) twoIslands() bool {
	island := make([]int, n.gpus)
	size := make([]int, n.gpus)
	count := 0
	for i := range island {
		island[i] = i
		for j := range i {
			if island[j] == j && n.gpuGPU[j*n.gpus+i].class == graph.NVL {
				island[i] = j
				break
			}
		}
		if size[island[i]]++; size[island[i]] == 2 {
			count++
		}
	}
	return count == 2
}

// graph writes down what a search found. Without any channel NCCL falls back to
// the GPUs in order (search.cc:1177-1287).
func (n *node) graph(f found) Graph {
	g := Graph{
		Pattern: map[shape]Pattern{ring: Ring, nvls: NVLS}[f.shape], Number: int(f.shape), Channels: f.channels(), BWIntra: f.intra.gbs(), BWInter: f.inter.gbs(),
		TypeIntra: f.typeIntra, TypeInter: f.typeInter, CrossNIC: f.cross, Hops: f.hops, CutShort: f.cut, Fallback: f.fallback, orders: f.orders,
	}
	if f.shape.tree() {
		g.Pattern = Tree
	}
	if f.cross == 2 && !n.v.Options.Version.AtLeast(23, 0) {
		g.CrossNIC = 1 // as NCCL numbered it then
	}
	if f.same {
		g.SameChannels = 1
	}
	for _, o := range f.orders {
		devs := make([]int, len(o))
		for i, gpu := range o {
			devs[i] = n.v.Dev(gpu)
		}
		g.Rings = append(g.Rings, devs)
	}
	if len(n.nets) > 0 {
		g.nets = f.nets
		for _, pair := range f.nets {
			g.Nets = append(g.Nets, [2]int{n.nets[pair[0]].dev, n.nets[pair[1]].dev})
		}
	}
	return g
}
