package search

import (
	"math"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
)

// mbs is a bandwidth in units of 0.001 GB/s: NCCL rounds what is left of a link
// to that.
type mbs int64

func toMBs(gbs float64) mbs { return mbs(math.Round(gbs * 1000)) }

func (m mbs) gbs() float64 { return float64(m) / 1000 }

// use is a link that a path charges, with its share of the channel's bandwidth.
type use struct {
	link  int
	share mbs // of wholeShare
}

// Shares are in fortieths, in which all of NCCL's factors are whole.
const (
	wholeShare = 40
	// Through the root complex of an Intel processor GPUs reach each other in
	// packets of 64 bytes; NCCL charges PCIe links 6/5 (INTEL_P2P_OVERHEAD,
	// NCCL 2.30.7 topo.h:39, search.cc:65-172).
	intelPCIShare = wholeShare * 6 / 5
	// What a GPU older than Ampere receives from anything but a GPU costs 1/8 on
	// its way back (search.cc:65-172).
	oldGPUBackPart = 8
)

// uses lists what a path charges. start is the kind of node that it leaves.
func uses(v *graph.NCCLView, start graph.NCCLKind, p graph.NCCLPath) []use {
	out := make([]use, 0, len(p.Links))
	intel := v.Processor.Intel && start == graph.NCCLGPU && p.Class == graph.PHB
	for _, i := range p.Links {
		l := &v.Links[i]
		share := mbs(wholeShare)
		if intel && l.Type == graph.NCCLLinkPCI {
			share = intelPCIShare
		}
		out = append(out, use{i, share})
		switch to := &v.Nodes[l.To]; {
		case to.Kind == graph.NCCLGPU && start != graph.NCCLGPU && to.CC.Or(0) < 80:
			out = append(out, use{v.Reverse(i), share / oldGPUBackPart})
		case to.Kind == graph.NCCLCPU && l.Type == graph.NCCLLinkNVL && strings.HasPrefix(v.Processor.Arch, "ppc64"):
			out = append(out, use{v.Reverse(i), share})
		}
	}
	return out
}

// route is a path of NCCL's graph, ready to be charged.
type route struct {
	class graph.PathClass
	back  graph.PathClass // of the way back
	hops  int
	gbs   float64
	uses  []use
}

func newRoute(v *graph.NCCLView, start graph.NCCLKind, p, back graph.NCCLPath) route {
	return route{p.Class, back.Class, p.Hops, p.GBs, uses(v, start, p)}
}

// take charges a route to what is left of the links; it takes nothing where one
// of them has not enough left.
func (r *route) take(room []mbs, speed mbs) bool {
	for i, u := range r.uses {
		cost := speed * u.share / wholeShare
		if room[u.link] < cost {
			r.giveBackFirst(room, speed, i)
			return false
		}
		room[u.link] -= cost
	}
	return true
}

func (r *route) giveBack(room []mbs, speed mbs) { r.giveBackFirst(room, speed, len(r.uses)) }

func (r *route) giveBackFirst(room []mbs, speed mbs, n int) {
	for _, u := range r.uses[:n] {
		room[u.link] += speed * u.share / wholeShare
	}
}
