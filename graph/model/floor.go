package model

import (
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// Floor is the least time that the links themselves allow, whatever NCCL makes of
// them: the bytes that must cross them, and no latency. The zero value knows none.
type Floor struct {
	gbs [len(collectiveNames)]probe.Opt[float64] // bytes of the result over time
	// Basis says what it stands on, or why there is none.
	Basis string
}

// FloorOf takes the floor of a communicator from what the links of the host
// allow. p may be of more GPUs than the communicator has: then only what holds for
// single GPUs counts.
func FloorOf(p search.Physical, r *search.Result) Floor {
	if r.Ranks < 2 {
		return Floor{Basis: "none: one GPU has nobody to talk to"}
	}
	hosts, gpus := 0, 0
	for _, m := range r.Members {
		hosts, gpus = max(hosts, m.Host+1), gpus+len(m.Ranks)
	}
	f := Floor{Basis: "the bytes that must cross the links of the machine over their rate, without any latency"}
	cut := p.Broadcast
	only := ""
	switch {
	case r.View.Hosts > 1:
		only = "what NVLinks between hosts allow in all is not modelled"
	case r.Nodes > hosts:
		only = "NCCL takes one host for several nodes, and what the network adds between them is not modelled"
	case cut.Or(0) <= 0:
		only = "the network between the hosts is not known"
	}
	if only != "" {
		cut = p.OwnLinks
		f.Basis = "the bytes that must enter a GPU over the rate of its own links, without any latency; " + only
	}
	if !cut.Known() {
		return Floor{Basis: "none: the rates of the links are not known"}
	}
	n := float64(r.Ranks)
	partly := probe.Some(cut.Or(0) * n / (n - 1)) // a GPU has its own part
	for i := range f.gbs {
		f.gbs[i] = cut
	}
	for _, i := range []int{allGather, reduceScatter, allToAll} {
		f.gbs[i] = partly
	}
	if whole := gpus == p.GPUs; whole && only == "" {
		f.gbs[allGather], f.gbs[reduceScatter] = p.AllGather, p.AllGather
		if _, inSwitch := r.Graph(search.NVLS); !inSwitch {
			f.gbs[allReduce] = p.AllReduce
		}
	}
	return f
}

// timeUS is the floor of one operation.
func (f *Floor) timeUS(coll int, bytes int64) probe.Opt[float64] {
	gbs, ok := f.gbs[coll].Get()
	if !ok || gbs <= 0 {
		return probe.Opt[float64]{}
	}
	return probe.Some(tidy(float64(bytes) / (1000 * gbs)))
}
