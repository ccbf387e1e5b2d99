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
	to    []toward  // per leg, of hops
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

// begin makes the layer ready for a search. Searches follow each other by the
// hundred, so they share their memory.
func (l *layer) begin(s setting, best *found, steps, hops int) {
	if l.legs == nil || s.shape != l.shape {
		l.legs = way(s.shape, l.n.gpus, l.n.inter)
		l.to = l.to[:0]
		for i := range l.legs {
			l.to = append(l.to, towardNIC(l.legs[i+1:]))
		}
	}
	if cap(l.orders) < s.max {
		l.orders, l.used = make([][]int, s.max), make([][]bool, s.max)
		for c := range s.max {
			l.orders[c], l.used[c] = make([]int, 0, l.n.gpus), make([]bool, l.n.gpus)
		}
		l.orders, l.used = l.orders[:0], l.used[:0]
	}
	l.setting, l.best, l.steps, l.hops, l.done = s, best, steps, hops, false
	l.room, l.left = append(l.room[:0], l.n.room...), l.left[:0]
	for _, p := range l.n.nets {
		l.left = append(l.left, p.gbs)
	}
}

// step counts one step; false ends the search.
func (l *layer) step() bool {
	if l.done || l.steps <= 0 {
		return false
	}
	l.steps--
	return true
}

// take charges a route where it may be used; giveBack takes that back. Between
// GPUs and NVSwitches the class and speed are those inside the node.
func (l *layer) take(r *route, worst graph.PathClass, speed mbs) bool {
	if r.class > worst || l.shape.tree() && r.back > worst || !r.take(l.room, speed) {
		return false
	}
	l.hops += r.hops
	return true
}

func (l *layer) giveBack(r *route, speed mbs) {
	l.hops -= r.hops
	r.giveBack(l.room, speed)
}

// channel lays the next channel.
func (l *layer) channel() {
	c := len(l.orders)
	l.orders, l.used, l.nets = l.orders[:c+1], l.used[:c+1], append(l.nets, [2]int{-1, -1})
	if l.n.inter {
		l.fromNets()
	} else {
		l.fromGPUs()
	}
	l.orders, l.nets, l.used = l.orders[:c], l.nets[:c], l.used[:c]
}

// put puts a GPU into the channel and goes on with the legs after it.
func (l *layer) put(next, gpu int, o order) {
	c := len(l.orders) - 1
	l.used[c][gpu] = true
	l.orders[c] = append(l.orders[c], gpu)
	l.leg(next, gpu, o)
	l.orders[c] = l.orders[c][:len(l.orders[c])-1]
	l.used[c][gpu] = false
}

// fromGPUs starts a channel of a single node.
func (l *layer) fromGPUs() {
	c := len(l.orders) - 1
	switch {
	case l.shape == nvls:
		if c < l.n.gpus {
			l.put(0, c, free)
		}
		return
	case c == 0:
		l.put(0, 0, bus)
	default:
		l.put(0, l.orders[c-1][0], repeat)
	}
	if !l.same || c == 0 {
		for g := range l.n.gpus {
			l.put(0, g, free)
		}
	}
}

// fromNets starts a channel at a NIC. NICs are charged in whole GB/s.
func (l *layer) fromNets() {
	n, c := l.n, len(l.orders)-1
	speed := float64(l.inter / 1000)
	nets := n.usable(-1, l.typeInter)
	for i := range nets {
		at := c%len(nets) + i
		if at >= len(nets) {
			at -= len(nets)
		}
		k := nets[at]
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
	old := !l.n.v.Options.Version.AtLeast(24, 0)
	switch {
	case l.shape == nvls:
		gpu := l.n.owner[k]
		if c >= nets || gpu < 0 || slices.ContainsFunc(l.orders[:c], func(o []int) bool { return o[0] == gpu }) {
			return false
		}
		l.enter(k, gpu, free)
		return true
	case c > 0 && (l.same || old):
		// The order of the channel before; until 2.23 also where orders may differ.
		l.enter(k, l.orders[c-1][0], repeat)
		if l.same {
			return true
		}
	case c == 0 && l.n.v.NVS < 0:
		// The order on the bus first, with steps of its own.
		steps := l.steps
		l.steps = busSteps
		l.enter(k, 0, bus)
		l.steps = steps
	}
	for _, gpu := range l.n.nearest(k, c) {
		l.enter(k, gpu, free)
	}
	return true
}

// enter goes from a NIC to the channel's first GPU.
func (l *layer) enter(net, gpu int, o order) {
	r := &l.n.netGPU[net*l.n.gpus+gpu]
	if l.take(r, l.typeInter, l.inter) {
		l.put(0, gpu, o)
		l.giveBack(r, l.inter)
	}
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
	switch l.legs[i] {
	case hop:
		l.hop(i, gpu, o)
	case leave:
		l.leave(i, gpu, o, l.inter)
	case leaveHalf:
		l.leave(i, gpu, o, l.inter/2)
	case home:
		if r := &l.n.gpuGPU[gpu*l.n.gpus+l.orders[len(l.orders)-1][0]]; l.take(r, l.typeIntra, l.intra) {
			l.leg(i+1, gpu, o)
			l.giveBack(r, l.intra)
		}
	case spread:
		l.spread(i, gpu, 0)
	case rest:
		l.leg(i+1, gpu, o)
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
		next = l.next(gpu, l.to[i], next)
	}
	for _, g := range next {
		if r := &l.n.gpuGPU[gpu*l.n.gpus+g]; l.take(r, l.typeIntra, l.intra) {
			l.put(i+1, g, o)
			l.giveBack(r, l.intra)
		}
	}
}

// leave goes from a GPU to the NICs that the channel may leave by (NCCL 2.30.7
// search.cc:593-619).
func (l *layer) leave(i, gpu int, o order, speed mbs) {
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
		if r := &n.gpuNet[gpu*len(n.nets)+k]; l.take(r, l.typeInter, speed) {
			l.nets[c][1] = k
			l.leg(i+1, gpu, o)
			l.giveBack(r, speed)
		}
		l.nets[c][1] = before
	}
}

// spread charges what one GPU reads from all others by the NVSwitches and sends
// back to them: twice on its own links. It goes on after k of these ways.
func (l *layer) spread(i, head, k int) {
	n := l.n
	if k == 2*n.gpus {
		l.leg(i+1, head, free)
		return
	}
	r, gpu := &n.nvsGPU[k%n.gpus], k%n.gpus
	if k >= n.gpus {
		r = &n.gpuNVS[gpu]
	}
	speed := l.intra
	if gpu == head {
		speed *= 2
		l.hops += r.hops
	}
	if l.take(r, l.typeIntra, speed) {
		l.spread(i, head, k+1)
		l.giveBack(r, speed)
	}
	if gpu == head {
		l.hops -= r.hops
	}
}

// finish weighs the channels that are laid and goes on with the next one.
func (l *layer) finish() {
	if l.better(l.best) {
		l.keep()
		l.done = l.done || len(l.orders) == l.max
	}
	if len(l.orders) < l.max {
		l.channel()
	}
}

// keep writes down what is laid.
func (l *layer) keep() {
	b := l.best
	*b = found{setting: l.setting, hops: l.hops, nets: append(b.nets[:0], l.nets...), cut: b.cut, orders: b.orders[:0]}
	for c, o := range l.orders {
		if c < cap(b.orders) {
			b.orders = b.orders[:c+1]
			b.orders[c] = append(b.orders[c][:0], o...)
		} else {
			b.orders = append(b.orders, slices.Clone(o))
		}
	}
}
