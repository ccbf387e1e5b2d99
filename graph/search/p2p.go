package search

import (
	"math"
	"math/bits"

	"github.com/ncclmap/ncclmap/graph"
)

// netChannelGBs is what NCCL expects one channel to move over the network (NCCL
// 2.30.7 paths.cc:918-1010).
const netChannelGBs = 14

// countP2P finds the channels of point-to-point traffic and how many of them
// serve one peer: the least that any pair of ranks asks for (NCCL 2.30.7
// paths.cc:918-1010; before 2.29 two for each peer over the network).
func (r *Result) countP2P() {
	n := r.Channels
	if r.o.MaxP2P > 0 {
		n = min(n, r.o.MaxP2P)
	}
	r.P2PChannels = ceilPow2(max(n, r.o.MinP2P))
	per := r.P2PChannels
	seen := map[*graph.NCCLView]bool{}
	for _, m := range r.Members {
		if !seen[m.View] {
			seen[m.View] = true
			per = min(per, m.perPeer(r))
		}
	}
	per = ceilPow2(per)
	if r.Nodes > 1 {
		channels, peers := r.P2PChannels, (r.Ranks+7)/8
		if !r.version().AtLeast(29, 0) {
			channels, peers = r.Channels, (r.Ranks+3)/4
		}
		for per > 1 && per*peers > channels {
			per /= 2
		}
	}
	r.PerPeer = min(per, r.P2PChannels)
}

func ceilPow2(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// perPeer is the least that a GPU of the node asks for.
func (m *Member) perPeer(r *Result) int {
	n, least := m.node, math.MaxInt32
	for i := range n.gpus {
		for j := range n.gpus {
			if i == j {
				continue
			}
			want := 2
			if rt := n.gpuGPU[i*n.gpus+j]; rt.class == graph.NVL || rt.class == graph.NVB {
				per := graph.NCCLNVLinkGBs(m.View.Nodes[m.View.GPUs[i]].CC.Or(0), r.version())
				want = 2 * max(1, int(rt.gbs/per))
			}
			least = min(least, want)
		}
		if r.Nodes > 1 {
			least = min(least, n.perNetPeer(i, r))
		}
	}
	return least
}

func (n *node) perNetPeer(gpu int, r *Result) int {
	switch {
	case r.o.PerNetPeer > 0:
		return r.o.PerNetPeer
	case !r.version().AtLeast(29, 0):
		return 2
	}
	local := local(n, gpu)
	if local == 0 {
		return 2
	}
	best := 0.0
	for k := range n.nets {
		best = max(best, n.gpuNet[gpu*len(n.nets)+k].gbs)
	}
	nics := min(local, int(math.Ceil(n.pciGBs[gpu]/best)))
	return max(nics, int(math.Ceil(best/netChannelGBs)))
}

// local counts the NETs nearest to a GPU.
func local(n *node, gpu int) int {
	count, best := 0, route{class: graph.DIS}
	for k := range n.nets {
		switch rt := n.gpuNet[gpu*len(n.nets)+k]; {
		case rt.gbs > best.gbs || rt.gbs == best.gbs && rt.class < best.class:
			best, count = rt, 1
		case rt.gbs == best.gbs && rt.class == best.class && rt.gbs > 0:
			count++
		}
	}
	return count
}
