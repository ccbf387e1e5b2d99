package model

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
)

// Comm is what NCCL's cost model looks at of a communicator.
type Comm struct {
	Version      graph.NCCLVersion
	Ranks, Nodes int
	LocalRanks   int // on the node that has most
	Channels     int
	NVLSChannels int
	MinCC, MaxCC int  // compute capability ×10
	AMD          bool // processors of AMD on all nodes (x86)
	MixedVendors bool // of processors
	X86, POWER   bool
	NVSwitch     bool
	// The graphs that the nodes agree on; without channels where there is none.
	Ring, Tree, NVLS, CollNetDirect, CollNetChain search.Graph
	CollNet                                       CollNet
}

// CollNet is what a network plugin offers to reduce in switches; the zero value is
// none.
type CollNet struct {
	Heads                    int // GPUs of a node that have a NIC of their own
	AllGather, ReduceScatter bool
}

// CommOf takes what the model needs from a search.
func CommOf(r *search.Result) (Comm, error) {
	c := Comm{
		Version: r.View.Options.Version, Ranks: r.Ranks, Nodes: r.Nodes, Channels: r.Channels, NVLSChannels: r.NVLSChannels, MinCC: r.MinCC, MaxCC: r.MaxCC,
		AMD: true,
	}
	if c.Ranks == 1 {
		return c, nil
	}
	var ok, okTree bool
	c.Ring, ok = r.Graph(search.Ring)
	c.Tree, okTree = r.Graph(search.Tree)
	if !ok || !okTree {
		return c, fmt.Errorf("model: no ring and tree graph in the search result")
	}
	c.NVLS, _ = r.Graph(search.NVLS)
	first := r.Members[0].View.Processor
	c.X86, c.POWER = first.Intel || first.AMD || first.Arch == "x86_64", first.Name == "POWER"
	for _, m := range r.Members {
		p := m.View.Processor
		c.LocalRanks = max(c.LocalRanks, len(m.Ranks))
		c.AMD = c.AMD && p.AMD
		c.MixedVendors = c.MixedVendors || p.AMD != first.AMD || p.Intel != first.Intel
		c.NVSwitch = c.NVSwitch || m.View.NVS >= 0
	}
	return c, nil
}

// graph returns the graph that an algorithm runs over: PAT takes the tree's.
func (c *Comm) graph(algo int) *search.Graph {
	return [nAlgorithms]*search.Graph{
		tree: &c.Tree, ring: &c.Ring, collNetDirect: &c.CollNetDirect, collNetChain: &c.CollNetChain, nvls: &c.NVLS, nvlsTree: &c.NVLS, pat: &c.Tree,
	}[algo]
}

// perNode is the mean of ranks on a node.
func (c *Comm) perNode() float64 { return float64(c.Ranks) / float64(c.Nodes) }

// scale is the column of a ceiling.
func (c *Comm) scale() int { return min(c.Nodes, 3) - 1 }

// intra is the kind of link that NCCL takes an algorithm's steps within a node to
// cross. As NVLink it counts only what is NVL throughout; NVB and C2C are not.
func (c *Comm) intra(algo int) int {
	if c.graph(algo).TypeIntra == graph.NVL {
		return overNVLink
	}
	return overPCI
}
