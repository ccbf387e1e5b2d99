package search

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

// Pattern is the shape of a channel in the words of the output.
type Pattern string

// The patterns.
const (
	Ring Pattern = "ring" // each GPU sends to the next and the last to the first
	Tree Pattern = "tree" // a chain of GPUs, on several nodes joined by double binary trees
	NVLS Pattern = "nvls" // NVSwitches reduce and multiply; each channel is one GPU's part
)

// Graph is the outcome of NCCL's search for one pattern.
type Graph struct {
	Pattern      Pattern         `json:"pattern"`
	Number       int             `json:"nccl_pattern"`   // NCCL's: 1 balanced tree, 2 split tree, 3 chain, 4 ring, 5 NVLS
	Channels     int             `json:"channels"`       // as searched, before the communicator doubles them
	BWIntra      float64         `json:"bw_intra_gbs"`   // per channel, between GPUs
	BWInter      float64         `json:"bw_inter_gbs"`   // per channel, to and from NICs
	TypeIntra    graph.PathClass `json:"type_intra"`     // worst class that was allowed between GPUs
	TypeInter    graph.PathClass `json:"type_inter"`     // the same to NICs; NCCL says PIX on one node
	CrossNIC     int             `json:"cross_nic"`      // 2: a ring may leave by another NIC than it came from
	SameChannels int             `json:"same_channels"`  // 1: all channels have one order, as NCCL prints it
	Rings        [][]int         `json:"rings"`          // per channel: NCCL dev numbers in order; of NVLS the GPU whose part it is
	Nets         [][2]int        `json:"nets,omitempty"` // per channel: NCCL dev numbers of the NETs that it enters and leaves by
	Hops         int             `json:"-"`              // as NCCL counts them
	// Fallback: no channel was found at any speed that NCCL tries; it then takes
	// the GPUs in order and 0.1 GB/s.
	Fallback bool `json:"fallback,omitempty"`
	// CutShort: a budget ended the search, which is NCCL's too. There may be more
	// channels.
	CutShort bool `json:"cut_short,omitempty"`

	orders [][]int  // Rings by position in the view
	nets   [][2]int // Nets by position
}

// Member is one node of the communicator, as NCCL counts nodes.
type Member struct {
	Host   int             // 0, 1, …
	View   *graph.NCCLView // of the node
	Ranks  []int           // by position of the GPU in View
	Graphs []Graph         // the node's own search, before the nodes agree

	node *node
}

// Graph returns the node's own graph of a pattern; ok is false when there is
// none.
func (m *Member) Graph(p Pattern) (g Graph, ok bool) { return ofPattern(m.Graphs, p) }

func ofPattern(graphs []Graph, p Pattern) (g Graph, ok bool) {
	i := slices.IndexFunc(graphs, func(g Graph) bool { return g.Pattern == p })
	if i < 0 {
		return Graph{}, false
	}
	return graphs[i], true
}

// Result is what NCCL's searches give for a communicator.
type Result struct {
	View    *graph.NCCLView // of the first host
	Ranks   int
	Nodes   int
	Members []Member // the nodes
	// Graphs holds what the nodes agree on, with the orders of the first. A single
	// GPU, which has nobody to send to, has graphs too where its compute capability
	// is known.
	Graphs []Graph
	// Channels is the communicator's final count; 0 without graphs.
	Channels int
	// NVLSChannels run NVLS beside them; 0: none.
	NVLSChannels int
	// P2PChannels carry point-to-point traffic, PerPeer of them to one peer.
	P2PChannels, PerPeer int
	MinCC                int // lowest compute capability ×10
	MaxCC                int // highest
	// AllNVLink: all GPUs of each node are joined by NVLink.
	AllNVLink bool
	// NetAssumed: no network is known, and NCCL's channels stand on the one that it
	// is taken to find.
	NetAssumed bool

	o Options
}

// Graph returns the graph of a pattern; ok is false when there is none.
func (r *Result) Graph(p Pattern) (g Graph, ok bool) { return ofPattern(r.Graphs, p) }
