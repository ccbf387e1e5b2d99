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
// paths.cc:918-1010).
func (r *Result) countP2P() {
	n := r.Channels
	if r.o.MaxP2P > 0 {
		n = min(n, r.o.MaxP2P)
	}
	n = max(n, r.o.MinP2P)
	r.P2PChannels = ceilPow2(n)
	per := r.P2PChannels
	seen := map[*graph.NCCLView]bool{}
	for _, m := range r.Members {
		if !seen[m.View] {
			seen[m.View] = true
			per = min(per, m.perPeer(r, n))
		}
	}
	per = ceilPow2(per)
	if r.Nodes > 1 && r.version().AtLeast(29, 0) {
		for peers := (r.Ranks + 7) / 8; per > 1 && per*peers > r.P2PChannels; per /= 2 {
		}
	}
	r.PerPeer = min(per, r.P2PChannels)
}

func ceilPow2(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// perPeer is the least that a GPU of the node asks for, of so many channels.
func (m *Member) perPeer(r *Result, channels int) int {
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
			least = min(least, n.perNetPeer(i, r, channels))
		}
	}
	return least
}

// perNetPeer is what a GPU asks for towards a peer over the network: as many as
// it needs NICs to fill its way to the CPU, and enough to fill them; until 2.28
// two, or one where that makes too many of the channels.
func (n *node) perNetPeer(gpu int, r *Result, channels int) int {
	if r.o.PerNetPeer > 0 {
		return r.o.PerNetPeer
	}
	local, gbs := n.localNets(gpu)
	old := !r.version().AtLeast(29, 0)
	if local == 0 && !old {
		return 2
	}
	want := 2
	switch {
	case !old:
		want = int(math.Ceil(gbs / netChannelGBs))
	case want*r.Ranks > 4*channels:
		want = 1
	}
	if local > 0 {
		want = max(want, min(local, int(math.Ceil(n.cpuGBs[gpu]/gbs))))
	}
	return want
}

// localNets counts the NETs nearest to a GPU; gbs is the bandwidth of the way to
// one.
func (n *node) localNets(gpu int) (count int, gbs float64) {
	best := route{class: graph.DIS}
	for k := range n.nets {
		switch rt := n.gpuNet[gpu*len(n.nets)+k]; {
		case rt.gbs > best.gbs || rt.gbs == best.gbs && rt.class < best.class:
			best, count = rt, 1
		case rt.gbs == best.gbs && rt.class == best.class && rt.gbs > 0:
			count++
		}
	}
	return count, best.gbs
}
