package search

// Rings returns the communicator's rings: per channel all ranks in the order in
// which data goes round, beginning with rank 0 (NCCL 2.30.7 connect.cc:20-113,
// 401-414). Nodes follow each other in rank order.
func (r *Result) Rings() [][]int {
	if len(r.Graphs) == 0 {
		return nil
	}
	g := r.Graphs[0]
	out := make([][]int, r.Channels)
	for c := range out {
		if base := c % g.Channels; c == base {
			out[c] = r.ring(g, base)
		} else {
			out[c] = out[base] // further channels repeat the first
		}
	}
	return out
}

func (r *Result) ring(g Graph, channel int) []int {
	ring := make([]int, 0, r.Ranks)
	for i := range r.Members {
		m := &r.Members[i]
		own, _ := m.Graph(Ring)
		c := channel
		// Where rings leave by another NIC than they came from, every other node swaps
		// neighbouring channels: so each stays on its rail.
		if g.CrossNIC != 0 && r.o.crossNIC() == 2 && g.Channels%2 == 0 && i%2 == 1 {
			c ^= 1
		}
		for _, gpu := range own.orders[c] {
			ring = append(ring, m.Ranks[gpu])
		}
	}
	for i, rank := range ring {
		if rank == 0 {
			return append(ring[i:len(ring):len(ring)], ring[:i]...)
		}
	}
	return ring
}
