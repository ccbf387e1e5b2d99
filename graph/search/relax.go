package search

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

// NCCL's budgets in steps (NCCL 2.30.7 search.cc:20-54).
const (
	sameSteps  = 1 << 8  // one order for all channels
	apartSteps = 1 << 14 // different orders
	busSteps   = 1 << 10 // the order on the bus, on top of the others
	totalSteps = 1 << 19 // first pass in all
)

// relaxation is NCCL's search for one shape: from the highest speed downwards,
// at each speed with ever fewer demands; then again upwards with the channels
// that were found (NCCL 2.30.7 search.cc:1162-1287).
type relaxation struct {
	n    *node
	want shape
	try  setting
	best found

	bestIntra, worstIntra graph.PathClass
	bestInter, worstInter graph.PathClass
	crossings             []int         // of NICs, in the order in which they are tried
	steps                 int           // left of totalSteps
	tried                 map[trial]int // steps that a search took
	ranOut                []setting     // what searches that ran out of steps looked for
}

// trial names a search by what its outcome depends on.
type trial struct {
	shape                shape
	same                 bool
	cross                int
	speed                mbs
	typeIntra, typeInter graph.PathClass // the worst that occur and are allowed
}

// search finds the channels of one shape, at least lowest and at most highest.
func (n *node) search(want shape, lowest, highest int, o Options) found {
	if n.gpus == 1 && want != ring {
		want = chain
	}
	r := &relaxation{n: n, want: want, steps: totalSteps, tried: map[trial]int{}, crossings: []int{0}, bestIntra: graph.LOC, bestInter: graph.PIX, worstIntra: graph.LOC, worstInter: graph.PIX}
	r.try = setting{shape: want, min: lowest, max: highest}
	if n.gpus > 1 {
		r.bestIntra, r.worstIntra = classes(n.gpuGPU)
	}
	if n.inter {
		r.bestInter, r.worstInter = classes(n.gpuNet)
		if n.minCC < 90 {
			r.worstInter = graph.SYS
		}
		if len(n.nets) > 1 && (want == ring || want == balanced) {
			r.crossings = map[int][]int{0: {0}, 1: {1}, 2: {0, 2}}[o.crossNIC()]
		}
	}
	if !n.v.Options.Version.AtLeast(24, 0) {
		// Before, the demands began and ended at the same classes on all hosts.
		r.bestInter, r.worstInter, r.worstIntra = graph.PIX, graph.SYS, graph.SYS
		if n.gpus > 1 {
			r.bestIntra = graph.NVL
		}
	}
	r.descend()
	// The bound is rough; where one order for all channels won, nothing hints at
	// more.
	r.best.cut = !r.best.same && slices.ContainsFunc(r.ranOut, r.mightHold)
	r.best.duplicate(n.minCC, highest)
	r.raise()
	if r.none() && want != nvls {
		r.fallback()
	}
	return r.best
}

// fallback is what NCCL takes without any channel: "falling back to simple
// order" (NCCL 2.30.7 search.cc:1177-1287).
func (r *relaxation) fallback() {
	one := make([]int, r.n.gpus)
	for i := range one {
		one[i] = i
	}
	r.best.setting = setting{shape: r.want, same: true, intra: fallbackSpeed, inter: fallbackSpeed, typeIntra: graph.SYS, typeInter: graph.SYS}
	if len(r.n.v.Nets) == 0 {
		r.best.typeInter = graph.DIS
	}
	r.best.orders, r.best.nets, r.best.fallback = [][]int{one}, [][2]int{{0, 0}}, true
}

const fallbackSpeed mbs = 100

// run searches with the demands of r.try. perfect: nothing better can be found.
func (r *relaxation) run(hops int) (taken int, perfect bool) {
	budget := apartSteps
	if r.try.same {
		budget = sameSteps
	}
	l := newLayer(r.n, r.try, &r.best, budget)
	l.hops = hops
	l.channel()
	if l.steps <= 0 && !l.done && !r.try.same {
		r.ranOut = append(r.ranOut, r.try)
	}
	return budget - l.steps, l.done
}

func (r *relaxation) none() bool { return r.best.channels() == 0 }

// enough reports that what was found fills what leaves a GPU.
func (r *relaxation) enough() bool {
	return !r.none() && mbs(r.best.channels())*r.best.inter >= toMBs(r.n.allGBs)
}

// firstSpeed is the fastest that one channel can have with as many channels as
// are wanted at least.
func (r *relaxation) firstSpeed() int {
	all := r.n.allGBs
	if r.n.gpus > 1 && r.want != ring {
		all *= float64(r.n.gpus) / float64(r.n.gpus-1)
	}
	last := len(r.n.speeds) - 1
	for i, s := range r.n.speeds[:last] {
		if s <= toMBs(r.n.maxGBs) && s*mbs(r.try.min) <= toMBs(all) {
			return i
		}
	}
	return last
}

// descend is the first pass. Each level ends the pass as soon as the level below
// it does.
func (r *relaxation) descend() {
	speeds := r.n.speeds
	for i := r.firstSpeed(); ; i++ {
		r.try.intra, r.try.inter = speeds[i], speeds[i]
		if r.cross() {
			return
		}
		// Below about half of what was found NCCL looks no further.
		if i == len(speeds)-1 || !r.none() && float64(speeds[i+1])/float64(r.best.inter) <= 0.49 {
			return
		}
	}
}

// cross keeps channels on one NIC, then lets them leave by another.
func (r *relaxation) cross() (done bool) {
	for _, r.try.cross = range r.crossings {
		if r.interClasses() {
			return true
		}
	}
	return false
}

func (r *relaxation) interClasses() (done bool) {
	for c := r.bestInter; ; c++ {
		r.try.typeInter = c
		if r.intraClasses() {
			return true
		}
		if !r.n.inter || c >= r.worstInter || !r.none() && c >= r.best.typeInter && c >= graph.PXN {
			return false
		}
	}
}

func (r *relaxation) intraClasses() (done bool) {
	worst := r.worstIntra
	if r.n.inter {
		worst = r.try.typeInter
	}
	worst = min(worst, graph.SYS)
	for c := r.bestIntra; ; c++ {
		r.try.typeIntra = c
		if r.shapes() {
			return true
		}
		if c >= worst || !r.none() && c >= r.best.typeIntra {
			return false
		}
	}
}

// shapes tries a chain where a balanced tree is wanted, from Hopper on.
func (r *relaxation) shapes() (done bool) {
	r.try.shape = r.want
	if r.sameThenApart() {
		return true
	}
	if r.want != balanced || r.n.minCC < 90 {
		return false
	}
	r.try.shape = chain
	return r.sameThenApart()
}

// sameThenApart tries one order for all channels, then different ones, which
// NCCL leaves out across the sockets of AMD processors.
func (r *relaxation) sameThenApart() (done bool) {
	if r.want != nvls {
		r.try.same = true
		if r.once() {
			return true
		}
		if r.n.v.Processor.AMD && r.try.typeIntra == graph.SYS {
			return r.spent()
		}
		r.steps -= sameSteps - r.tried[r.trial()] // what the first leaves is not given back
	}
	r.try.same = false
	return r.once() || r.spent()
}

func (r *relaxation) spent() bool {
	if r.steps < 0 && !r.none() {
		r.ranOut = append(r.ranOut, r.try)
		return true
	}
	return false
}

func (r *relaxation) trial() trial {
	occurs := func(routes []route, worst graph.PathClass) graph.PathClass {
		best := graph.LOC
		for i := range routes {
			if c := routes[i].class; c <= worst {
				best = max(best, c)
			}
			if c := routes[i].back; c <= worst {
				best = max(best, c)
			}
		}
		return best
	}
	t := r.try
	return trial{t.shape, t.same, t.cross, t.intra, occurs(r.n.gpuGPU, t.typeIntra), occurs(r.n.gpuNet, t.typeInter)}
}

// once runs the search of r.try, unless it ran with other names for the same
// demands: then it would find the same again, and costs NCCL the same steps.
func (r *relaxation) once() (done bool) {
	t := r.trial()
	taken, known := r.tried[t]
	if !known {
		var perfect bool
		if taken, perfect = r.run(0); perfect {
			return true
		}
		r.tried[t] = taken
	}
	r.steps -= taken
	return r.enough()
}

// duplicate splits fast channels in two (NCCL 2.30.7 search.cc:1036-1049).
func (f *found) duplicate(minCC, highest int) {
	n := f.channels()
	if n == 0 || f.shape == nvls || f.intra < 25000 || minCC > 80 && f.intra < 50000 && n > 4 {
		return
	}
	twice := min(2*n, highest)
	parts := mbs((twice + n - 1) / n)
	f.intra, f.inter = f.intra/parts, f.inter/parts
	f.orders = append(f.orders, slices.Clone(f.orders[:twice-n])...)
	f.nets = append(f.nets, f.nets[:twice-n]...)
}

// raise is the second pass: as many channels as were found, faster.
func (r *relaxation) raise() {
	if r.none() {
		return
	}
	speeds := r.n.speeds
	i := slices.IndexFunc(speeds, func(s mbs) bool { return s <= r.best.inter })
	if i < 0 {
		i = len(speeds) - 1
	}
	r.try = r.best.setting
	r.try.min = r.best.channels()
	r.try.intra, r.try.inter = speeds[i], speeds[i]
	hops := r.best.hops // NCCL goes on counting
	for i--; i >= 0; i-- {
		switch {
		case r.want == ring:
			r.try.intra, r.try.inter = speeds[i], speeds[i]
		case r.want == nvls && r.try.inter == r.best.inter && r.try.inter < 2*r.try.intra:
			r.try.max = r.try.min
			r.try.inter = speeds[i]
		case r.want != nvls && r.try.intra == r.best.intra && r.try.intra < 2*r.try.inter:
			r.try.intra = speeds[i]
		default:
			return
		}
		taken, perfect := r.run(hops)
		if !perfect && taken == sameSteps && r.try.same || taken == apartSteps && !r.try.same {
			return
		}
	}
}
