package search

import "github.com/ncclmap/ncclmap/graph"

// agree makes one graph of the nodes' graphs: the least of counts and bandwidths,
// the worst of classes (NCCL 2.30.7 init.cc:1435-1451). One bad node lowers what
// NCCL plans for the whole job.
func (r *Result) agree() {
	for _, g := range r.Members[0].Graphs {
		all := true
		for i := 1; i < len(r.Members) && all; i++ {
			m := &r.Members[i]
			if m.View == r.Members[0].View {
				continue
			}
			var other Graph
			if other, all = m.Graph(g.Pattern); all {
				g.Channels = min(g.Channels, other.Channels)
				g.SameChannels = min(g.SameChannels, other.SameChannels)
				g.BWIntra, g.BWInter = min(g.BWIntra, other.BWIntra), min(g.BWInter, other.BWInter)
				g.TypeIntra, g.TypeInter = max(g.TypeIntra, other.TypeIntra), max(g.TypeInter, other.TypeInter)
				g.CrossNIC = max(g.CrossNIC, other.CrossNIC)
				g.CutShort, g.Fallback = g.CutShort || other.CutShort, g.Fallback || other.Fallback
				if r.version().AtLeast(26, 0) {
					g.Number = max(g.Number, other.Number)
				}
			}
		}
		if all {
			r.Graphs = append(r.Graphs, g)
		}
	}
	// Ring and tree share their channels.
	n := min(r.Graphs[0].Channels, r.Graphs[1].Channels)
	for i := range r.Graphs {
		g := &r.Graphs[i]
		if g.Pattern != NVLS {
			g.Channels = n
		}
		g.Rings, g.orders = g.Rings[:g.Channels], g.orders[:g.Channels]
		if g.Nets != nil {
			g.Nets, g.nets = g.Nets[:g.Channels], g.nets[:g.Channels]
		}
	}
}

func (r *Result) version() graph.NCCLVersion { return r.View.Options.Version }

// count finds the communicator's channels (NCCL 2.30.7 connect.cc:380-536).
func (r *Result) count() {
	most := maxChannels(r.version())
	ring := r.Graphs[0]
	n := min(2*ring.Channels, most)
	if r.MinCC >= 90 && r.Nodes > 1 && ring.BWIntra > 45 && n < 16 {
		n = min(2*n, most)
	}
	if r.o.MaxChannels > 0 {
		n = min(n, r.o.MaxChannels)
	}
	r.Channels = min(max(n, r.o.MinChannels), most)
	r.NVLSChannels = r.nvlsChannels()
	r.countP2P()
	r.AllNVLink = true
	for _, m := range r.Members {
		for _, rt := range m.node.gpuGPU {
			r.AllNVLink = r.AllNVLink && rt.class < graph.PIX
		}
		r.NetAssumed = r.NetAssumed || r.Nodes > 1 && len(m.View.Nets) > 0 && m.View.Nodes[m.View.Nets[0]].Net.Assumed
	}
}

// nvlsChannels is how many channels NVLS runs on (NCCL 2.30.7
// transport/nvls.cc:155-246): 16, and since 2.25 more on Blackwell. What NCCL 2.30
// makes of fast NICs there is not modelled.
func (r *Result) nvlsChannels() int {
	if _, ok := r.Graph(NVLS); !ok {
		return 0
	}
	n := 16
	if r.MinCC >= 100 && r.version().AtLeast(25, 0) {
		n = 24
		if r.Nodes > 1 {
			n = 32
		}
	}
	if r.o.NVLSCount > 0 {
		n = r.o.NVLSCount
	}
	if r.o.MaxChannels > 0 {
		n = min(n, r.o.MaxChannels)
	}
	return min(max(n, r.o.MinChannels), maxChannels(r.version()))
}
