package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

// rings looks for rings at one speed within one path class. A ring starts at
// GPU 0: where one begins does not matter to it.
type rings struct {
	n      int
	routes []route // from*n + to; class 0: not allowed
	room   []mbs   // what is left of each link
	near   [][]int // per GPU: where to go next, fewest hops first, then in order
	forced []mbs   // least that any ring charges to each link
	steps  int     // that may still be taken
	spent  bool    // a search ended because steps ran out

	used []bool
	ring []int
}

func newRings(p *paths, speed mbs, worst graph.PathClass) *rings {
	r := &rings{
		n: p.n, routes: p.routes(speed, worst), room: slices.Clone(p.room), near: make([][]int, p.n),
		used: make([]bool, p.n), ring: make([]int, 0, p.n),
	}
	near := make([]int, 0, p.n*p.n)
	for i := range r.near {
		r.near[i] = near[i*p.n : i*p.n : (i+1)*p.n]
		for d := 1; d < p.n; d++ {
			if j := (i + d) % p.n; r.route(i, j).class != 0 {
				r.near[i] = append(r.near[i], j)
			}
		}
		slices.SortStableFunc(r.near[i], func(x, y int) int { return cmp.Compare(r.route(i, x).hops, r.route(i, y).hops) })
	}
	r.force()
	return r
}

// force finds what every ring must charge: to a link that all ways out of a GPU
// cross, such as the uplink of its switch; and to a link without which some GPUs
// cannot reach the others, such as the one between two sockets.
func (r *rings) force() {
	r.forced = make([]mbs, len(r.room))
	sum, least, count := make([]mbs, len(r.room)), make([]mbs, len(r.room)), make([]int, len(r.room))
	cheapest := make([]mbs, len(r.room)) // of all routes
	for _, enter := range []bool{false, true} {
		clear(sum)
		for g := range r.n {
			clear(count)
			ways := 0
			for x := range r.n {
				rt := r.route(g, x)
				if enter {
					rt = r.route(x, g)
				}
				if rt.class == 0 {
					continue
				}
				ways++
				for _, c := range rt.charges {
					if count[c.link]++; count[c.link] == 1 || c.cost < least[c.link] {
						least[c.link] = c.cost
					}
				}
			}
			for l, k := range count {
				if k > 0 && k == ways {
					sum[l] += least[l]
				}
				if k > 0 && (cheapest[l] == 0 || least[l] < cheapest[l]) {
					cheapest[l] = least[l]
				}
			}
		}
		for l := range sum {
			r.forced[l] = max(r.forced[l], sum[l])
		}
	}
	if r.n > maxCubic {
		return
	}
	seen, queue := make([]bool, r.n), make([]int, 0, r.n)
	for l, cost := range cheapest {
		if cost > r.forced[l] && !(r.joinedWithout(l, false, seen, queue) && r.joinedWithout(l, true, seen, queue)) {
			r.forced[l] = cost
		}
	}
}

// joinedWithout reports whether GPU 0 reaches all others, or is reached by them,
// on routes that do not cross a link.
func (r *rings) joinedWithout(link int, back bool, seen []bool, queue []int) bool {
	clear(seen)
	seen[0] = true
	queue = append(queue[:0], 0)
	for k := 0; k < len(queue); k++ {
		for x := range r.n {
			if seen[x] {
				continue
			}
			rt := r.route(queue[k], x)
			if back {
				rt = r.route(x, queue[k])
			}
			if rt.class != 0 && !slices.ContainsFunc(rt.charges, func(c charge) bool { return c.link == link }) {
				seen[x] = true
				queue = append(queue, x)
			}
		}
	}
	return len(queue) == r.n
}

func (r *rings) route(from, to int) *route { return &r.routes[from*r.n+to] }

// step counts one GPU put into a ring; false ends the search.
func (r *rings) step() bool {
	if r.steps <= 0 {
		r.spent = true
		return false
	}
	r.steps--
	return true
}

// hops counts a ring's hops.
func (r *rings) hops(ring []int) int {
	n := 0
	for i, g := range ring {
		n += r.route(g, ring[(i+1)%len(ring)]).hops
	}
	return n
}

// bound is the most rings that every GPU, and every link that rings cannot
// avoid, can carry, each for itself. apart: rings may differ; else all take the
// same way.
func (r *rings) bound(apart bool) int {
	least := math.MaxInt32
	for l, f := range r.forced {
		if f > 0 {
			least = min(least, int(r.room[l]/f))
		}
	}
	for g := range r.n {
		least = min(least, r.slots(g, apart, false), r.slots(g, apart, true))
		if least == 0 {
			break
		}
	}
	return least
}

// slots is how many rings can leave a GPU, or enter it.
func (r *rings) slots(g int, apart, enter bool) int {
	best := 0
	type port struct {
		link  int
		cost  mbs
		slots int
	}
	var ports [64]port // first links out, or last links in; more than 64 do not occur on a GPU
	n := 0
	for x := range r.n {
		rt := r.route(g, x)
		if enter {
			rt = r.route(x, g)
		}
		if rt.class == 0 {
			continue
		}
		fit := rt.fits(r.room)
		if !apart {
			best = max(best, fit)
			continue
		}
		c := rt.charges[0]
		if enter {
			c = rt.charges[len(rt.charges)-1]
		}
		i := 0
		for i < n && ports[i].link != c.link {
			i++
		}
		switch {
		case i < n:
			ports[i].slots += fit
			ports[i].cost = min(ports[i].cost, c.cost)
		case n < len(ports):
			ports[n] = port{c.link, c.cost, fit}
			n++
		default:
			return math.MaxInt32
		}
	}
	for _, p := range ports[:n] {
		best += min(p.slots, int(r.room[p.link]/p.cost))
	}
	return best
}

// same finds the ring that fits most often on top of itself, with the fewest
// hops among those it meets, and how often that is, at most limit.
func (r *rings) same(limit int) (ring []int, times int) {
	s := sameSearch{rings: r, limit: min(limit, r.bound(false)), load: make([]mbs, len(r.room)), alike: r.alike()}
	if s.limit == 0 {
		return nil, 0
	}
	r.start()
	s.extend(s.limit, 0)
	return s.best, s.times
}

func (r *rings) start() {
	clear(r.used)
	r.used[0] = true
	r.ring = append(r.ring[:0], 0)
}

type sameSearch struct {
	*rings
	limit int
	load  []mbs // of one ring on each link
	alike []int // per GPU: the first GPU that can stand for it

	best  []int
	times int
	hops  int
}

// add charges a route to the ring and returns how often the ring so far fits.
func (s *sameSearch) add(rt *route, times int) int {
	for _, c := range rt.charges {
		s.load[c.link] += c.cost
		times = min(times, int(s.room[c.link]/s.load[c.link]))
	}
	return times
}

func (s *sameSearch) remove(rt *route) {
	for _, c := range rt.charges {
		s.load[c.link] -= c.cost
	}
}

// extend puts the next GPU into the ring; done ends the search.
func (s *sameSearch) extend(times, hops int) (done bool) {
	last := s.ring[len(s.ring)-1]
	if len(s.ring) == s.n {
		rt := s.route(last, 0)
		if s.n > 1 && rt.class == 0 {
			return false
		}
		times = s.add(rt, times)
		hops += rt.hops
		if times > s.times || times > 0 && times == s.times && hops < s.hops {
			s.best, s.times, s.hops = slices.Clone(s.ring), times, hops
		}
		s.remove(rt)
		return s.times == s.limit
	}
	tried := make([]bool, s.n)
	for _, g := range s.near[last] {
		if s.used[g] || tried[s.alike[g]] {
			continue
		}
		tried[s.alike[g]] = true
		if !s.step() {
			return true
		}
		rt := s.route(last, g)
		t := s.add(rt, times)
		if t > s.times || t > 0 && t == s.times && hops+rt.hops < s.hops {
			s.used[g] = true
			s.ring = append(s.ring, g)
			done = s.extend(t, hops+rt.hops)
			s.ring = s.ring[:len(s.ring)-1]
			s.used[g] = false
		}
		s.remove(rt)
		if done {
			return true
		}
	}
	return false
}

// alike tells which GPUs can stand for one another: exchanging the two changes
// nothing but which of two equal links is charged. Of such GPUs a search needs
// to try only one at a place. GPU 0 starts every ring and is alike to none.
func (r *rings) alike() []int {
	out := make([]int, r.n)
	for g := range out {
		out[g] = g
	}
	if r.n > maxCubic {
		return out
	}
	// Links that belong to the routes of one GPU only.
	owner := make([]int, len(r.room))
	const none, shared = -1, -2
	for i := range owner {
		owner[i] = none
	}
	for x := range r.n {
		for y := range r.n {
			for k, c := range r.route(x, y).charges {
				// The first half of a route can be x's own, the second y's.
				g := x
				if 2*k >= len(r.route(x, y).charges) {
					g = y
				}
				switch owner[c.link] {
				case none:
					owner[c.link] = g
				case g:
				default:
					owner[c.link] = shared
				}
			}
		}
	}
	equal := func(a, b *route, x, y int) bool {
		if a.class != b.class || a.hops != b.hops || len(a.charges) != len(b.charges) {
			return false
		}
		for k, c := range a.charges {
			d := b.charges[k]
			switch {
			case c.cost != d.cost:
				return false
			case c.link == d.link && owner[c.link] != x && owner[c.link] != y:
			case owner[c.link] == x && owner[d.link] == y || owner[c.link] == y && owner[d.link] == x:
				if r.room[c.link] != r.room[d.link] {
					return false
				}
			default:
				return false
			}
		}
		return true
	}
	same := func(x, y int) bool {
		if !equal(r.route(x, y), r.route(y, x), x, y) {
			return false
		}
		for z := range r.n {
			if z != x && z != y && !(equal(r.route(x, z), r.route(y, z), x, y) && equal(r.route(z, x), r.route(z, y), x, y)) {
				return false
			}
		}
		return true
	}
	for y := 2; y < r.n; y++ {
		for x := 1; x < y; x++ {
			if out[x] == x && same(x, y) {
				out[y] = x
				break
			}
		}
	}
	return out
}

// maxCubic is the most GPUs for which work that grows with their cube is done.
const maxCubic = 64

// pack looks for the most rings, at least atLeast and at most atMost, that fit
// beside each other; they may differ in order. It returns the most that it met,
// nil if those are fewer than atLeast.
func (r *rings) pack(atLeast, atMost int) [][]int {
	top := min(atMost, r.bound(true))
	var best [][]int
	budget, alike := r.steps, r.alike()
	for want := top; want >= atLeast && want > len(best) && budget > 0; want-- {
		// First lay every ring in both directions, which is how symmetric
		// wiring fills; then each by itself.
		for _, both := range []bool{true, false} {
			r.steps = (budget + 1) / 2
			budget -= r.steps
			s := packSearch{rings: r, want: want, both: both, alike: alike}
			r.start()
			done := s.extend()
			budget += r.steps
			if len(s.best) > len(best) {
				best = s.best
			}
			if done && len(best) >= want {
				r.spent = false
				break
			}
		}
	}
	r.steps = budget
	if len(best) < atLeast {
		return nil
	}
	return best
}

type packSearch struct {
	*rings
	want  int
	both  bool
	alike []int
	laid  [][]int
	best  [][]int
}

// option is a GPU that could come next, and how often the way to it still fits.
type option struct{ gpu, fit int }

// leaves reports whether a route just taken leaves enough of its links for the
// rings that are still wanted after this one.
func (s *packSearch) leaves(rt *route) bool {
	rest := mbs(s.want - len(s.laid) - 1)
	for _, c := range rt.charges {
		if s.room[c.link] < rest*s.forced[c.link] {
			return false
		}
	}
	return true
}

// extend puts the next GPU into the ring, or begins the next ring; done ends the
// search.
func (s *packSearch) extend() (done bool) {
	last := s.ring[len(s.ring)-1]
	if len(s.ring) == s.n {
		return s.finish(last)
	}
	// Where most is left first: it keeps all ways open longest.
	var few [16]option
	next := few[:0]
	for _, g := range s.near[last] {
		if s.used[g] {
			continue
		}
		if fit := s.route(last, g).fits(s.room); fit > 0 {
			next = append(next, option{g, fit})
			for i := len(next) - 1; i > 0 && next[i-1].fit < next[i].fit; i-- {
				next[i-1], next[i] = next[i], next[i-1]
			}
		}
	}
	var tried []bool // only in the first ring is everything still as it was
	if len(s.laid) == 0 {
		tried = make([]bool, s.n)
	}
	for _, o := range next {
		g := o.gpu
		if tried != nil {
			if tried[s.alike[g]] {
				continue
			}
			tried[s.alike[g]] = true
		}
		if !s.step() {
			return true
		}
		rt := s.route(last, g)
		rt.take(s.room)
		if s.leaves(rt) {
			s.used[g] = true
			s.ring = append(s.ring, g)
			done = s.extend()
			s.ring = s.ring[:len(s.ring)-1]
			s.used[g] = false
		}
		rt.giveBack(s.room)
		if done {
			return true
		}
	}
	return false
}

// finish closes the ring and goes on with the next one.
func (s *packSearch) finish(last int) (done bool) {
	home := s.route(last, 0)
	if home.class == 0 || home.fits(s.room) == 0 {
		return false
	}
	home.take(s.room)
	ring := slices.Clone(s.ring)
	s.laid = append(s.laid, ring)
	back := s.both && len(s.laid) < s.want && s.layBack(ring)
	if len(s.laid) > len(s.best) {
		s.best = slices.Clone(s.laid)
	}
	done = len(s.laid) >= s.want
	if !done && len(s.laid)+s.bound(true) >= s.want {
		used, partial := slices.Clone(s.used), s.ring
		s.ring = make([]int, 0, s.n)
		s.start()
		done = s.extend()
		s.used, s.ring = used, partial
	}
	if back {
		s.liftBack(ring)
		s.laid = s.laid[:len(s.laid)-1]
	}
	s.laid = s.laid[:len(s.laid)-1]
	home.giveBack(s.room)
	return done
}

// layBack lays the ring the other way round if it fits.
func (s *packSearch) layBack(ring []int) bool {
	for k, g := range ring {
		rt := s.route(ring[(k+1)%s.n], g)
		if rt.class == 0 || rt.fits(s.room) == 0 {
			for k--; k >= 0; k-- {
				s.route(ring[(k+1)%s.n], ring[k]).giveBack(s.room)
			}
			return false
		}
		rt.take(s.room)
	}
	reversed := slices.Clone(ring)
	slices.Reverse(reversed[1:])
	s.laid = append(s.laid, reversed)
	return true
}

func (s *packSearch) liftBack(ring []int) {
	for k, g := range ring {
		s.route(ring[(k+1)%s.n], g).giveBack(s.room)
	}
}
