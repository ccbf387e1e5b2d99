package search

// bound is the most bandwidth that channels of r.try can have in all, as far as
// single GPUs, NICs and links that no channel can avoid tell.
func (r *relaxation) bound() mbs {
	n, speed := r.n, r.try.intra
	most := mbs(r.try.max)
	for _, gbs := range n.outGBs {
		if out := toMBs(gbs); out > 0 {
			most = min(most, out/speed)
		}
	}
	if n.inter {
		var nets mbs
		for _, p := range n.nets {
			nets += toMBs(p.gbs) / r.try.inter
		}
		most = min(most, nets)
	}
	for link, l := range n.v.Links {
		if cost := r.least(link); cost > 0 {
			most = min(most, toMBs(l.GBs)/cost)
		}
	}
	return most * speed
}

// least is what every channel charges to a link at least: for each GPU that
// cannot be left, or entered, without crossing it; and once where some GPUs cannot
// reach the others without it.
func (r *relaxation) least(link int) mbs {
	n := r.n
	closed := r.try.shape == ring && !n.inter // else one GPU is not left, and one not entered
	var least, cheapest mbs
	for _, enter := range []bool{false, true} {
		var sum, largest mbs
		for g := range n.gpus {
			var own mbs
			avoidable := false
			for x := range n.gpus {
				i := g*n.gpus + x
				if enter {
					i = x*n.gpus + g
				}
				if x == g || n.gpuGPU[i].class > r.try.typeIntra {
					continue
				}
				cost := n.gpuGPU[i].charges(link, r.try.intra)
				if cost == 0 {
					avoidable = true
				} else if own == 0 || cost < own {
					own = cost
				}
			}
			if own > 0 && (cheapest == 0 || own < cheapest) {
				cheapest = own
			}
			if !avoidable {
				sum, largest = sum+own, max(largest, own)
			}
		}
		if !closed {
			sum -= largest
		}
		least = max(least, sum)
	}
	if cheapest > least && !n.inter && r.unavoidable(link) {
		return cheapest
	}
	return least
}

// unavoidable reports that every channel of a single node crosses a link: without
// it some GPU does not reach all others, or is not reached by them.
func (r *relaxation) unavoidable(link int) bool {
	n := r.n
	reached := func(back bool) int {
		seen, queue := make([]bool, n.gpus), []int{0}
		seen[0] = true
		for k := 0; k < len(queue); k++ {
			for x := range n.gpus {
				i := queue[k]*n.gpus + x
				if back {
					i = x*n.gpus + queue[k]
				}
				if rt := &n.gpuGPU[i]; !seen[x] && rt.class <= r.try.typeIntra && rt.charges(link, r.try.intra) == 0 {
					seen[x] = true
					queue = append(queue, x)
				}
			}
		}
		return len(queue)
	}
	return r.try.shape == ring && (reached(false) < n.gpus || reached(true) < n.gpus)
}

// charges is what the route takes from a link.
func (r *route) charges(link int, speed mbs) (cost mbs) {
	for _, u := range r.uses {
		if u.link == link {
			cost += speed * u.share / wholeShare
		}
	}
	return cost
}
