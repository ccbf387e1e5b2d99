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

// use is a link that a path charges, with its share of the channel's bandwidth.
type use struct {
	link  int
	share int // of wholeShare
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
		share := wholeShare
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

// route is a path between two GPUs ready to be charged at one speed.
type route struct {
	class   graph.PathClass
	hops    int
	charges []charge
}

type charge struct {
	link int
	cost mbs
}

// fits returns how often the route can be charged to what is left.
func (r *route) fits(room []mbs) int {
	n := math.MaxInt32
	for _, c := range r.charges {
		n = min(n, int(room[c.link]/c.cost))
	}
	return n
}

func (r *route) take(room []mbs) {
	for _, c := range r.charges {
		room[c.link] -= c.cost
	}
}

func (r *route) giveBack(room []mbs) {
	for _, c := range r.charges {
		room[c.link] += c.cost
	}
}

// paths is the part of a view that the search of one node works on: its GPUs
// are numbered 0…n-1.
type paths struct {
	n     int
	room  []mbs // of every link of the view
	class []graph.PathClass
	hops  []int
	uses  [][]use // per pair: from*n + to
}

func newPaths(v *graph.NCCLView, gpus []int) *paths {
	n := len(gpus)
	p := &paths{n: n, room: make([]mbs, len(v.Links)), class: make([]graph.PathClass, n*n), hops: make([]int, n*n), uses: make([][]use, n*n)}
	for i, l := range v.Links {
		p.room[i] = toMBs(l.GBs)
	}
	for i, from := range gpus {
		for j, to := range gpus {
			path := v.Path(from, to)
			p.class[i*n+j], p.hops[i*n+j] = path.Class, path.Hops
			if i != j {
				p.uses[i*n+j] = uses(v, graph.NCCLGPU, path)
			}
		}
	}
	return p
}

// routes prepares all pairs whose class is allowed for a channel of the given
// speed; others have no charges and class 0.
func (p *paths) routes(speed mbs, worst graph.PathClass) []route {
	out := make([]route, p.n*p.n)
	total := 0
	for _, u := range p.uses {
		total += len(u)
	}
	all := make([]charge, 0, total)
	for i, us := range p.uses {
		if len(us) == 0 || p.class[i] > worst {
			continue
		}
		first := len(all)
		for _, u := range us {
			all = append(all, charge{u.link, max(1, speed*mbs(u.share)/wholeShare)})
		}
		out[i] = route{p.class[i], p.hops[i], all[first:len(all):len(all)]}
	}
	return out
}
