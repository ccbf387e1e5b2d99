package search

import "github.com/ncclmap/ncclmap/graph"

// Load is what channels put on one direction of a link, in NCCL's model: of a
// tree the way up, which the way down mirrors.
type Load struct {
	Link     int     // index of View.Links, whose Physical links carry it
	Channels int     // that cross it; one that crosses twice counts twice
	GBs      float64 // charged
	Of       float64 // the link's bandwidth, GB/s
}

// Channel returns what one channel of a node's graph puts on each link that it
// uses, by link index.
func (m *Member) Channel(g Graph, channel int) []Load { return m.loads(g, channel, channel+1) }

// Loads returns what all channels of a graph put on each link of the node that
// they use, by link index.
func (m *Member) Loads(g Graph) []Load { return m.loads(g, 0, g.Channels) }

func (m *Member) loads(g Graph, first, end int) []Load {
	loads := make([]Load, len(m.View.Links))
	add := func(r *route, gbs float64) {
		for _, u := range r.uses {
			loads[u.link].Channels++
			loads[u.link].GBs += gbs * float64(u.share) / wholeShare
		}
	}
	for c := first; c < end; c++ {
		m.node.walk(g, c, add)
	}
	out := []Load{}
	for i, l := range loads {
		if l.Channels > 0 {
			l.Link, l.Of = i, m.View.Links[i].GBs
			out = append(out, l)
		}
	}
	return out
}

// walk visits the routes of one channel.
func (n *node) walk(g Graph, channel int, add func(r *route, gbs float64)) {
	order := g.orders[channel]
	between := func(a, b int) *route { return &n.gpuGPU[a*n.gpus+b] }
	if g.Pattern == NVLS {
		for gpu := range n.gpus {
			gbs := g.BWIntra
			if gpu == order[0] {
				gbs *= 2
			}
			add(&n.nvsGPU[gpu], gbs)
			add(&n.gpuNVS[gpu], gbs)
		}
	}
	for i := 1; i < len(order); i++ {
		add(between(order[i-1], order[i]), g.BWIntra)
	}
	if len(g.nets) == 0 {
		if g.Pattern == Ring && !n.inter {
			add(between(order[len(order)-1], order[0]), g.BWIntra)
		}
		return
	}
	in, out := g.nets[channel][0], g.nets[channel][1]
	add(&n.netGPU[in*n.gpus+order[0]], g.BWInter)
	send := func(gpu int, gbs float64) { add(&n.gpuNet[gpu*len(n.nets)+out], gbs) }
	switch shape(g.Number) {
	case ring:
		send(order[len(order)-1], g.BWInter)
	case balanced:
		send(order[0], g.BWInter/2)
		send(order[1], g.BWInter/2)
	case split:
		send(order[1], g.BWInter)
	default:
		send(order[0], g.BWInter)
	}
}

// Physical returns the links of the topology that a load stands for.
func (m *Member) Physical(l Load) []*graph.Link { return m.View.Links[l.Link].Physical }
