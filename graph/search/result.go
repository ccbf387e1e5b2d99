package search

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

// Pattern is the shape of a channel.
type Pattern string

// Ring is the pattern in which each GPU sends to the next and the last to the
// first (NCCL's pattern 4).
const Ring Pattern = "ring"

// Graph is the outcome of NCCL's search for one pattern on one node.
type Graph struct {
	Pattern      Pattern         `json:"pattern"`
	Channels     int             `json:"channels"`      // as searched, before the communicator doubles them
	BWIntra      float64         `json:"bw_intra_gbs"`  // per channel, between GPUs
	BWInter      float64         `json:"bw_inter_gbs"`  // per channel, to and from NICs
	TypeIntra    graph.PathClass `json:"type_intra"`    // worst class that was allowed between GPUs
	TypeInter    graph.PathClass `json:"type_inter"`    // the same to NICs; NCCL says PIX on one node
	CrossNIC     int             `json:"cross_nic"`     //
	SameChannels int             `json:"same_channels"` // 1: all channels have one order, as NCCL prints it
	Rings        [][]int         `json:"rings"`         // per channel: NCCL dev numbers in ring order
	Hops         int             `json:"-"`             // of all channels before fast ones are split, as NCCL counts
	// Fallback: no channel was found at any speed that NCCL tries; it then takes
	// the GPUs in order and 0.1 GB/s.
	Fallback bool `json:"fallback,omitempty"`
	// CutShort: a budget ended the search. There may be more channels, and NCCL,
	// which has a budget too, may have found others.
	CutShort bool `json:"cut_short,omitempty"`
}

// Result is what NCCL's searches give for a communicator over one node.
type Result struct {
	View  *graph.NCCLView `json:"-"`
	Ranks int             `json:"ranks"`
	Nodes int             `json:"nodes"`
	// Graphs holds one entry per pattern; empty for a single GPU, which has
	// nobody to send to.
	Graphs []Graph `json:"graphs"`
	// Channels is the communicator's final count; 0 for a single GPU.
	Channels int `json:"channels"`
	// ChannelsFrom names the patterns whose counts went into Channels. NCCL takes
	// the lowest of ring and tree; with the ring alone the count is what the ring
	// allows.
	ChannelsFrom []Pattern `json:"channels_from"`
	MinCC        int       `json:"-"` // lowest compute capability ×10
	MaxCC        int       `json:"-"` // highest
}

// Graph returns the graph of a pattern; ok is false when there is none.
func (r *Result) Graph(p Pattern) (g Graph, ok bool) {
	i := slices.IndexFunc(r.Graphs, func(g Graph) bool { return g.Pattern == p })
	if i < 0 {
		return Graph{}, false
	}
	return r.Graphs[i], true
}

// Load is what a graph's channels put on one direction of a link, in NCCL's
// model.
type Load struct {
	Link     int     // index of View.Links
	Channels int     // that cross it; one that crosses twice counts twice
	GBs      float64 // charged
	Of       float64 // the link's bandwidth, GB/s
}

// Loads returns the loads of all links that the graph uses, by link index. What
// is left of the fullest one is less than one more channel needs.
func (r *Result) Loads(g Graph) []Load {
	v := r.View
	pos := map[int]int{}
	for i := range v.GPUs {
		pos[v.Dev(i)] = i
	}
	loads := make([]Load, len(v.Links))
	for _, ring := range g.Rings {
		for k, dev := range ring {
			from, to := pos[dev], pos[ring[(k+1)%len(ring)]]
			if from == to {
				continue
			}
			for _, u := range uses(v, graph.NCCLGPU, v.Path(from, to)) {
				l := &loads[u.link]
				l.Channels++
				l.GBs += g.BWIntra * float64(u.share) / wholeShare
			}
		}
	}
	out := []Load{}
	for i, l := range loads {
		if l.Channels > 0 {
			l.Link, l.Of = i, v.Links[i].GBs
			out = append(out, l)
		}
	}
	return out
}
