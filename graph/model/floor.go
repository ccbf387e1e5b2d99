package model

import (
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// Floor is the least time that the links themselves allow, whatever NCCL makes of
// them: the bytes that must cross them, and no latency. The zero value knows none.
type Floor struct {
	gbs [len(collectiveNames)]probe.Opt[float64] // bytes of the result over time
	// Why there is none; "" where there is.
	Why string
}

// FloorOf takes the floor of a communicator from what the links of the host
// allow. p may be of more GPUs than the communicator has: then only what holds for
// single GPUs counts.
func FloorOf(p search.Physical, r *search.Result) Floor {
	hosts := 0
	for _, m := range r.Members {
		hosts = max(hosts, m.Host+1)
	}
	gpus := 0
	for _, m := range r.Members {
		gpus += len(m.Ranks)
	}
	switch {
	case r.Ranks < 2:
		return Floor{Why: "one GPU has nobody to talk to"}
	case r.View.Hosts > 1:
		return Floor{Why: "what NVLinks between hosts allow is not modelled"}
	case r.Nodes > hosts:
		return Floor{Why: "NCCL takes one host for several nodes and uses the network between them, whose ways within a host are not modelled"}
	case !p.Broadcast.Known():
		return Floor{Why: "the rates of the links are not known"}
	}
	n := float64(r.Ranks)
	cut := p.Broadcast
	partly := probe.Some(cut.Or(0) * n / (n - 1)) // a GPU has its own part
	f := Floor{}
	f.gbs[allReduce], f.gbs[allGather] = cut, partly
	if whole := gpus == p.GPUs; whole {
		f.gbs[allGather] = p.AllGather
		if _, reducesInSwitch := r.Graph(search.NVLS); !reducesInSwitch {
			f.gbs[allReduce] = p.AllReduce
		}
	}
	f.gbs[reduceScatter] = f.gbs[allGather]
	f.gbs[broadcast], f.gbs[reduce], f.gbs[sendRecv] = cut, cut, cut
	f.gbs[allToAll] = partly
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
