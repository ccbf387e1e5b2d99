package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
)

// Options are the settings that change NCCL's channels. Zero values are NCCL's
// defaults.
type Options struct {
	MinChannels int // NCCL_MIN_NCHANNELS
	MaxChannels int // NCCL_MAX_NCHANNELS
}

// NCCL's limits (MAXCHANNELS and MAXCHANNELS/2, NCCL 2.30.7 init.cc:1171-1218).
const (
	maxCommChannels = 64
	maxRingChannels = maxCommChannels / 2
)

// Bounds of our own search, in GPUs put into a ring. NCCL's are 2^8 with one
// order for all channels, 2^14 else, 2^19 for a graph (search.cc:20-54); ours
// are as large in all, so that what costs NCCL little is found here too.
const (
	sameSteps  = 1 << 12
	packSteps  = 1 << 14
	totalSteps = 1 << 19
)

// speeds are the bandwidths per channel that NCCL tries on one node, by lowest
// compute capability ×10 (NCCL 2.30.7 search.cc:1051-1067).
var speeds = []struct {
	fromCC int
	gbs    []float64
}{
	{100, []float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}},
	{90, []float64{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}},
	{0, []float64{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}},
}

func speedsFor(cc int) []float64 {
	for _, s := range speeds {
		if cc >= s.fromCC {
			return s.gbs
		}
	}
	return nil
}

// SplitError says that NCCL takes the host's GPUs for several nodes: between the
// groups (NCCL dev numbers) the network is faster than the way through the host.
type SplitError struct{ Groups [][]int }

func (e *SplitError) Error() string {
	groups := make([]string, len(e.Groups))
	for i, g := range e.Groups {
		devs := make([]string, len(g))
		for j, d := range g {
			devs[j] = strconv.Itoa(d)
		}
		groups[i] = "GPU " + strings.Join(devs, " ")
	}
	return fmt.Sprintf("NCCL treats the GPUs of this host as %d nodes (%s), since each reaches a NIC faster than the others; channels over the network are not computed", len(e.Groups), strings.Join(groups, "; "))
}

// Compute predicts the channels of a communicator over all GPUs of the view. It
// fails where the view lacks what NCCL would know: then there is no prediction.
func Compute(v *graph.NCCLView, o Options) (*Result, error) {
	n := len(v.GPUs)
	if n == 0 {
		return nil, fmt.Errorf("search channels: no GPU")
	}
	r := &Result{View: v, Ranks: n, Nodes: 1, Graphs: []Graph{}, ChannelsFrom: []Pattern{}}
	if n == 1 {
		r.MinCC, r.MaxCC, _ = v.CC()
		return r, nil
	}
	for i, g := range v.GPUs {
		if !v.Nodes[g].CC.Known() {
			return nil, fmt.Errorf("search channels: GPU %d: its compute capability is unknown, by which NCCL chooses speeds and NVLink bandwidth", v.Dev(i))
		}
	}
	r.MinCC, r.MaxCC, _ = v.CC()
	for i := range n {
		for j := range i {
			if v.Path(i, j).Class == graph.DIS || v.Path(j, i).Class == graph.DIS {
				return nil, fmt.Errorf("search channels: GPU %d and GPU %d: neither NVLinks between them nor the places of both on the PCI tree are known", v.Dev(j), v.Dev(i))
			}
		}
	}
	if len(v.Groups) > 1 {
		e := &SplitError{}
		for _, g := range v.Groups {
			devs := []int{}
			for _, i := range g {
				devs = append(devs, v.Dev(i))
			}
			e.Groups = append(e.Groups, devs)
		}
		return nil, e
	}
	ring := newSearch(v, v.Groups[0], r.MinCC).ring()
	r.Graphs = append(r.Graphs, ring)
	r.ChannelsFrom = append(r.ChannelsFrom, Ring)
	r.Channels = finalChannels(ring.Channels, o)
	return r, nil
}

// finalChannels is the communicator's count from the lowest of its graphs, on
// one node: doubled, then held to the settings (NCCL 2.30.7 connect.cc:380-536).
func finalChannels(searched int, o Options) int {
	n := min(2*searched, maxCommChannels)
	if o.MaxChannels > 0 {
		n = min(n, o.MaxChannels)
	}
	return min(max(n, o.MinChannels), maxCommChannels)
}

// search is NCCL's search on one node.
type search struct {
	v       *graph.NCCLView
	devs    []int // dev numbers of the node's GPUs
	minCC   int
	paths   *paths
	classes []graph.PathClass // between its GPUs, best first
	speeds  []float64
	maxGBs  float64 // NCCL's maxBw: best path between two GPUs
	allGBs  float64 // NCCL's totalBw: most that leaves one GPU
	steps   int     // left of totalSteps
	cut     bool
}

func newSearch(v *graph.NCCLView, gpus []int, minCC int) *search {
	s := &search{v: v, minCC: minCC, paths: newPaths(v, gpus), speeds: speedsFor(minCC), steps: totalSteps}
	for _, i := range gpus {
		s.devs = append(s.devs, v.Dev(i))
		s.allGBs = max(s.allGBs, egress(v, v.GPUs[i]))
		for _, j := range gpus {
			if i == j {
				continue
			}
			p := v.Path(i, j)
			s.maxGBs = max(s.maxGBs, p.GBs)
			if !slices.Contains(s.classes, p.Class) {
				s.classes = append(s.classes, p.Class)
			}
		}
	}
	slices.Sort(s.classes)
	return s
}

// egress is what leaves a GPU by its PCIe link or by all its NVLinks, whichever
// is more (NCCL 2.30.7 search.cc:20-54).
func egress(v *graph.NCCLView, node int) float64 {
	pci, nvl := 0.0, 0.0
	for _, l := range v.Links {
		switch {
		case l.From != node:
		case l.Type == graph.NCCLLinkPCI:
			pci = l.GBs
		case l.Type == graph.NCCLLinkNVL:
			nvl += l.GBs
		}
	}
	return max(pci, nvl)
}

// found is a set of rings at one speed.
type found struct {
	rings [][]int // GPUs by position
	gbs   float64
	class graph.PathClass // worst that was allowed
	same  int
	hops  int
}

func (f *found) total() mbs { return mbs(len(f.rings)) * toMBs(f.gbs) }

// better: more bandwidth in all, then fewer hops (NCCL 2.30.7 search.cc:445-468).
func (f *found) better(o *found) bool {
	if f.total() != o.total() {
		return f.total() > o.total()
	}
	return len(f.rings) > 0 && f.hops < o.hops
}

// at searches one setting for at least atLeast rings that carry more than best.
// none says that not even one ring fits, in whatever order.
func (s *search) at(gbs float64, class graph.PathClass, same, atLeast int, best *found) (f found, none bool) {
	f = found{gbs: gbs, class: class, same: same}
	speed := toMBs(gbs)
	r := newRings(s.paths, speed, class)
	bound := min(maxRingChannels, r.bound(same == 0))
	if bound < atLeast || mbs(bound)*speed <= best.total() {
		return f, bound == 0 // at equal bandwidth the fewer, faster channels have fewer hops
	}
	switch same {
	case 1:
		r.steps = min(sameSteps, s.steps)
		s.steps -= r.steps
		ring, times := r.same(maxRingChannels)
		if times >= atLeast {
			for range times {
				f.rings = append(f.rings, ring)
			}
		}
		none = times == 0 && !r.spent
		r.spent = r.spent && times < bound
	default:
		r.steps = min(packSteps, s.steps)
		s.steps -= r.steps
		f.rings = r.pack(max(atLeast, int(best.total()/speed)+1), maxRingChannels)
	}
	s.steps += r.steps
	s.cut = s.cut || r.spent
	for _, ring := range f.rings {
		f.hops += r.hops(ring)
	}
	return f, none
}

// ring searches as NCCL does: from the highest speed downwards; at each speed
// the nearest path class first; within it one order for all channels, then
// different ones (NCCL 2.30.7 search.cc:1162-1287).
func (s *search) ring() Graph {
	best := found{}
	first := slices.IndexFunc(s.speeds, func(x float64) bool { return x <= s.maxGBs && x <= s.allGBs })
	if first >= 0 {
		best = s.firstPass(s.speeds[first:])
	}
	if len(best.rings) == 0 {
		return s.fallback()
	}
	best = duplicate(best, s.minCC)
	// Second pass: as many channels, each faster.
	for i := len(s.speeds) - 1; i >= 0; i-- {
		if s.speeds[i] <= best.gbs {
			continue
		}
		f, _ := s.at(s.speeds[i], best.class, best.same, len(best.rings), &best)
		if f.better(&best) {
			best = f
		}
	}
	return s.graph(best)
}

func (s *search) firstPass(speeds []float64) found {
	best := found{}
	for _, gbs := range speeds {
		// Below about half of what is found NCCL looks no further.
		if len(best.rings) > 0 && gbs/best.gbs <= 0.49 {
			break
		}
		for _, class := range s.classes {
			if len(best.rings) > 0 && class > best.class {
				break
			}
			for _, same := range []int{1, 0} {
				if same == 0 && s.v.Processor.AMD && class == graph.SYS {
					continue // NCCL does not try it across AMD sockets
				}
				f, none := s.at(gbs, class, same, 1, &best)
				if none {
					break
				}
				if f.better(&best) {
					best = f
				}
				if len(best.rings) > 0 && (len(best.rings) == maxRingChannels || best.total() >= toMBs(s.allGBs) || s.steps == 0) {
					return best
				}
			}
		}
	}
	return best
}

// duplicate splits fast channels in two (NCCL 2.30.7 search.cc:1036-1049).
func duplicate(f found, minCC int) found {
	if f.gbs < 25 || minCC > 80 && f.gbs < 50 && len(f.rings) > 4 {
		return f
	}
	n := len(f.rings)
	twice := min(2*n, maxRingChannels)
	f.gbs /= float64((twice + n - 1) / n)
	f.rings = append(slices.Clone(f.rings), f.rings[:twice-n]...)
	return f
}

// fallback is what NCCL does without any channel: "falling back to simple
// order" (search.cc:1177-1287).
func (s *search) fallback() Graph {
	order := make([]int, len(s.devs))
	for i := range order {
		order[i] = i
	}
	g := s.graph(found{rings: [][]int{order}, gbs: 0.1, class: graph.SYS, same: 1})
	g.Fallback = true
	return g
}

func (s *search) graph(f found) Graph {
	g := Graph{
		Pattern: Ring, Channels: len(f.rings), BWIntra: f.gbs, BWInter: f.gbs, TypeIntra: f.class, TypeInter: graph.PIX,
		SameChannels: f.same, Hops: f.hops, CutShort: s.cut,
	}
	for _, ring := range f.rings {
		devs := make([]int, len(ring))
		for i, p := range ring {
			devs[i] = s.devs[p]
		}
		g.Rings = append(g.Rings, devs)
	}
	return g
}
