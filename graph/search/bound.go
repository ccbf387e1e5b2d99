package search

// mightHold reports that channels of a demand might carry more than was found, as
// far as single GPUs, NICs and links that no channel can avoid tell.
func (r *relaxation) mightHold(d setting) bool {
	n, most := r.n, mbs(d.max)
	for _, gbs := range n.outGBs {
		if out := toMBs(gbs); out > 0 {
			most = min(most, out/d.intra)
		}
	}
	if n.inter {
		var nets mbs
		for _, p := range n.nets {
			nets += toMBs(p.gbs) / d.inter
		}
		most = min(most, nets)
	}
	has := mbs(r.best.channels()) * r.best.intra
	if most*d.intra <= has {
		return false
	}
	for link, cost := range r.least(d) {
		if cost > 0 {
			most = min(most, toMBs(n.v.Links[link].GBs)/cost)
		}
	}
	return most*d.intra > has
}

// least is what every channel charges to each link at least: for each GPU that
// cannot be left, or entered, without crossing it; and once where some GPUs cannot
// reach the others without it.
func (r *relaxation) least(d setting) []mbs {
	n := r.n
	links := len(n.v.Links)
	least, cheapest := make([]mbs, links), make([]mbs, links)
	for _, enter := range []bool{false, true} {
		sum, largest := make([]mbs, links), make([]mbs, links)
		for g := range n.gpus {
			own, crossing, ways := make([]mbs, links), make([]int, links), 0
			for x := range n.gpus {
				i := g*n.gpus + x
				if enter {
					i = x*n.gpus + g
				}
				rt := &n.gpuGPU[i]
				if x == g || rt.class > d.typeIntra {
					continue
				}
				ways++
				for _, u := range rt.uses {
					cost := d.intra * u.share / wholeShare
					if crossing[u.link]++; crossing[u.link] == 1 || cost < own[u.link] {
						own[u.link] = cost
					}
				}
			}
			for l, cost := range own {
				if cost > 0 && (cheapest[l] == 0 || cost < cheapest[l]) {
					cheapest[l] = cost
				}
				if crossing[l] == ways {
					sum[l] += cost
					largest[l] = max(largest[l], cost)
				}
			}
		}
		for l := range sum {
			if d.shape != ring || n.inter {
				sum[l] -= largest[l] // one GPU is not left, and one not entered
			}
			least[l] = max(least[l], sum[l])
		}
	}
	if d.shape == ring && !n.inter {
		for l, cost := range cheapest {
			if cost > least[l] && toMBs(n.v.Links[l].GBs)/cost < mbs(d.max) && r.unavoidable(l, d) {
				least[l] = cost
			}
		}
	}
	return least
}

// unavoidable reports that without a link some GPU does not reach all others, or
// is not reached by them.
func (r *relaxation) unavoidable(link int, d setting) bool {
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
				if rt := &n.gpuGPU[i]; !seen[x] && rt.class <= d.typeIntra && !rt.crosses(link) {
					seen[x] = true
					queue = append(queue, x)
				}
			}
		}
		return len(queue)
	}
	return reached(false) < n.gpus || reached(true) < n.gpus
}

func (r *route) crosses(link int) bool {
	for _, u := range r.uses {
		if u.link == link {
			return true
		}
	}
	return false
}
