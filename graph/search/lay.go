package search

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

// shape is the way of a channel through a node, by NCCL's number of the pattern
// (NCCL 2.30.7 graph.h:160-169).
type shape int

const (
	balanced shape = 1 // tree: the NIC serves the first two GPUs by half
	split    shape = 2 // tree: the first GPU receives, the second sends
	chain    shape = 3 // tree: the first GPU receives and sends
	ring     shape = 4
	nvls     shape = 5
)

func (s shape) tree() bool { return s == balanced || s == split || s == chain }

// leg is one step of a channel's way.
type leg int

const (
	hop       leg = iota // to another GPU
	leave                // to the NIC
	leaveHalf            // to the NIC with half of the bandwidth
	home                 // back to the first GPU
	spread               // to all GPUs by the NVSwitches, and back
	rest                 // nothing; NCCL counts a step
)

// way lists the legs of a shape after its first GPU (NCCL 2.30.7
// search.cc:445-619).
func way(s shape, gpus int, inter bool) []leg {
	hops := slices.Repeat([]leg{hop}, gpus-1)
	switch {
	case s == nvls && inter:
		return []leg{leave, spread}
	case s == nvls:
		return []leg{spread}
	case s == ring && inter:
		return append(hops, leave, rest)
	case s == ring:
		return append(hops, home)
	case inter && s == balanced:
		hops = slices.Insert(hops, 1, leaveHalf)
		hops = slices.Insert(hops, 0, leaveHalf)
	case inter && s == split:
		hops = slices.Insert(hops, 1, leave)
	case inter:
		hops = slices.Insert(hops, 0, leave)
	}
	return append(hops, rest)
}

// setting is what one search looks for.
type setting struct {
	shape     shape
	same      bool // all channels in one order
	intra     mbs  // per channel, between GPUs
	inter     mbs  // per channel, to and from NICs
	typeIntra graph.PathClass
	typeInter graph.PathClass
	cross     int // 0: channels leave by the NIC that they came from; 1: or another; 2: as 1, and two rings go opposite ways
	min, max  int // channels
}

// found is a set of channels.
type found struct {
	setting
	orders [][]int  // per channel: GPUs in order; for NVLS the one that reads
	nets   [][2]int // per channel: NETs that it enters and leaves by
	hops   int
	cut    bool // a budget ended the search; more may fit
	// fallback: nothing fits; the GPUs in order.
	fallback bool
}

func (f *found) channels() int { return len(f.orders) }

// better reports whether NCCL prefers what is laid to what was found (NCCL 2.30.7
// search.cc:445-468).
func (l *layer) better(f *found) bool {
	n := len(l.orders)
	if n < l.min {
		return false
	}
	was, now := mbs(f.channels()), mbs(n)
	if l.shape == nvls {
		return n > f.channels() && n <= l.n.gpus || now*l.inter > was*f.inter
	}
	if a, b := now*l.intra, was*f.intra; a != b {
		return a > b
	}
	return l.shape == f.shape && l.cross == f.cross && l.hops < f.hops
}

// order says where a channel's GPUs come from.
type order int

const (
	free   order = iota // any that fits
	bus                 // as they stand in NCCL's graph
	repeat              // as in the channel before
)

// layer lays channels, one beside the other, and keeps the best set. It tries in
// NCCL's order and takes back what leads nowhere.
type layer struct {
	setting
	n     *node
	legs  []leg
	room  []mbs     // what is left of links
	left  []float64 // and of NETs
	hops  int       // of what is laid
	steps int       // that may still be taken
	done  bool      // nothing better can be found
	best  *found

	orders [][]int
	nets   [][2]int
	used   [][]bool // per channel: GPUs in it
}

func newLayer(n *node, s setting, best *found, steps int) *layer {
	l := &layer{setting: s, n: n, legs: way(s.shape, n.gpus, n.inter), steps: steps, best: best, room: make([]mbs, len(n.v.Links))}
	for i, x := range n.v.Links {
		l.room[i] = toMBs(x.GBs)
	}
	for _, p := range n.nets {
		l.left = append(l.left, p.gbs)
	}
	return l
}

// step counts one step; false ends the search.
func (l *layer) step() bool {
	if l.done || l.steps <= 0 {
		return false
	}
	l.steps--
	return true
}

// try charges a route, goes on, and takes the charge back. Between GPUs and
// NVSwitches the class and speed are those inside the node.
func (l *layer) try(r *route, inside bool, speed mbs, onward func()) {
	worst := l.typeInter
	if inside {
		worst = l.typeIntra
	}
	if r.class > worst || l.shape.tree() && r.back > worst || !r.take(l.room, speed) {
		return
	}
	l.hops += r.hops
	onward()
	l.hops -= r.hops
	r.giveBack(l.room, speed)
}

// channel lays the next channel.
func (l *layer) channel() {
	l.orders = append(l.orders, make([]int, 0, l.n.gpus))
	l.nets = append(l.nets, [2]int{-1, -1})
	l.used = append(l.used, make([]bool, l.n.gpus))
	if l.n.inter {
		l.fromNets()
	} else {
		l.fromGPUs()
	}
	last := len(l.orders) - 1
	l.orders, l.nets, l.used = l.orders[:last], l.nets[:last], l.used[:last]
}

// begin puts the first GPU into the channel.
func (l *layer) begin(gpu int, o order) {
	l.put(gpu, func() { l.leg(0, gpu, o) })
}

func (l *layer) put(gpu int, onward func()) {
	c := len(l.orders) - 1
	l.used[c][gpu] = true
	l.orders[c] = append(l.orders[c], gpu)
	onward()
	l.orders[c] = l.orders[c][:len(l.orders[c])-1]
	l.used[c][gpu] = false
}

// fromGPUs starts a channel of a single node.
func (l *layer) fromGPUs() {
	c := len(l.orders) - 1
	switch {
	case l.shape == nvls:
		if c < l.n.gpus {
			l.begin(c, free)
		}
		return
	case c == 0:
		l.begin(0, bus)
	default:
		l.begin(l.orders[c-1][0], repeat)
	}
	if !l.same || c == 0 {
		for g := range l.n.gpus {
			l.begin(g, free)
		}
	}
}

// fromNets starts a channel at a NIC. NICs are charged in whole GB/s.
func (l *layer) fromNets() {
	n, c := l.n, len(l.orders)-1
	speed := float64(l.inter / 1000)
	nets := n.usable(-1, l.typeInter)
	for i := range nets {
		k := nets[(c+i)%len(nets)]
		if l.left[k] < speed || l.cross == 2 && l.shape == ring && c%2 == 1 && k != l.nets[c-1][1] {
			continue
		}
		l.nets[c][0] = k
		for _, o := range n.nets[k].same {
			l.left[o] -= speed
		}
		started := l.fromNet(k, c, len(nets))
		for _, o := range n.nets[k].same {
			l.left[o] += speed
		}
		if started && l.shape == nvls {
			return
		}
	}
}

// fromNet starts a channel at one NIC; started tells whether it came to that.
func (l *layer) fromNet(k, c, nets int) (started bool) {
	enter := func(gpu int, o order) {
		l.try(&l.n.netGPU[k*l.n.gpus+gpu], false, l.inter, func() { l.begin(gpu, o) })
	}
	switch {
	case l.shape == nvls:
		gpu := l.n.owner[k]
		if c >= nets || gpu < 0 || slices.ContainsFunc(l.orders[:c], func(o []int) bool { return o[0] == gpu }) {
			return false
		}
		enter(gpu, free)
		return true
	case c > 0 && l.same:
		enter(l.orders[c-1][0], repeat)
		return true
	case c == 0 && l.n.v.NVS < 0:
		// The order on the bus first, with steps of its own.
		steps := l.steps
		l.steps = busSteps
		enter(0, bus)
		l.steps = steps
	}
	for _, gpu := range l.n.nearest(k, c) {
		enter(gpu, free)
	}
	return true
}

// leg lays the channel's next leg from a GPU.
func (l *layer) leg(i, gpu int, o order) {
	if !l.step() {
		return
	}
	if i == len(l.legs) {
		l.finish()
		return
	}
	onward := func() { l.leg(i+1, gpu, o) }
	switch l.legs[i] {
	case hop:
		l.hop(i, gpu, o)
	case leave:
		l.leave(gpu, l.inter, onward)
	case leaveHalf:
		l.leave(gpu, l.inter/2, onward)
	case home:
		l.try(&l.n.gpuGPU[gpu*l.n.gpus+l.orders[len(l.orders)-1][0]], true, l.intra, onward)
	case spread:
		l.spread(gpu, 0, onward)
	case rest:
		onward()
	}
}

func (l *layer) hop(i, gpu int, o order) {
	c := len(l.orders) - 1
	var few [16]int
	next := few[:0]
	switch o {
	case bus:
		next = append(next, len(l.orders[c]))
	case repeat:
		next = append(next, l.orders[c-1][len(l.orders[c])])
	default:
		to := noNIC
		if rest := l.legs[i+1:]; slices.Contains(rest, leave) || slices.Contains(rest, leaveHalf) {
			to = laterNIC
			if rest[0] != hop {
				to = nowNIC
			}
		}
		next = l.n.next(l.shape, gpu, l.nets[c][0], to, l.used[c], next)
	}
	for _, g := range next {
		l.try(&l.n.gpuGPU[gpu*l.n.gpus+g], true, l.intra, func() { l.put(g, func() { l.leg(i+1, g, o) }) })
	}
}

// leave goes from a GPU to the NICs that the channel may leave by (NCCL 2.30.7
// search.cc:593-619).
func (l *layer) leave(gpu int, speed mbs, onward func()) {
	n, c := l.n, len(l.orders)-1
	start := l.nets[c][0]
	second := len(l.orders[c]) > 1
	for _, k := range n.usable(gpu, l.typeInter) {
		switch {
		case l.shape == chain && k != start:
			continue
		case l.shape == ring && l.cross == 2:
			if c%2 == 1 && k != l.nets[c-1][0] {
				continue
			}
		case l.cross == 0 && !slices.Contains(n.nets[start].same, k):
			continue
		}
		if l.shape == balanced && second && k != l.nets[c][1] {
			continue
		}
		before := l.nets[c][1]
		l.try(&n.gpuNet[gpu*len(n.nets)+k], false, speed, func() {
			l.nets[c][1] = k
			onward()
		})
		l.nets[c][1] = before
	}
}

// spread charges what one GPU reads from all others by the NVSwitches and sends
// back to them: twice on its own links.
func (l *layer) spread(head, i int, onward func()) {
	n := l.n
	if i == 2*n.gpus {
		onward()
		return
	}
	r, gpu := &n.nvsGPU[i%n.gpus], i%n.gpus
	if i >= n.gpus {
		r = &n.gpuNVS[gpu]
	}
	speed := l.intra
	if gpu == head {
		speed *= 2
		l.hops += r.hops
	}
	l.try(r, true, speed, func() { l.spread(head, i+1, onward) })
	if gpu == head {
		l.hops -= r.hops
	}
}

// finish weighs the channels that are laid and goes on with the next one.
func (l *layer) finish() {
	if l.better(l.best) {
		*l.best = found{setting: l.setting, hops: l.hops, nets: slices.Clone(l.nets), cut: l.best.cut}
		for _, o := range l.orders {
			l.best.orders = append(l.best.orders, slices.Clone(o))
		}
		l.done = l.done || len(l.orders) == l.max
	}
	if len(l.orders) < l.max {
		l.channel()
	}
}
