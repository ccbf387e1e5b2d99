package expect

import (
	"cmp"
	"fmt"
	"math"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// Link is what joins the GPUs of a node.
type Link string

// The links.
const (
	NVLink     Link = "NVLink"
	PCIe       Link = "PCIe"        // GPUs reach each other's memory
	HostMemory Link = "host memory" // they do not, and data is staged there
)

// Networks between nodes, whose latencies differ.
const (
	Verbs = "verbs" // InfiniBand and RoCE
	EFA   = "EFA"
	TCPXO = "TCPXO"
	// Sockets: nothing of them was fitted.
	Sockets = "sockets"
)

func (m *Machine) fabric() string { return cmp.Or(m.Fabric, Verbs) }

// Launches of ranks, which decide what starting an operation costs.
const (
	PerGPU = "per-gpu" // one process per GPU
	Single = "single"  // one process for all
)

// Machine is what the form looks at of a communicator. Rates in GB/s, one
// direction; 0 is unknown.
type Machine struct {
	CC                       int // compute capability ×10
	Ranks, Nodes, LocalRanks int
	Link                     Link
	LinkGBs                  float64 // NVLink: data-sheet rate of a GPU's links; else what NCCL's ring gets
	LinkName                 string  // the link that holds it back, for people
	NetGBs                   float64 // of the network ports that a node's rings use
	Fabric                   string  // Verbs, EFA, …; "" is Verbs
	Launch                   string
}

// MachineOf takes a machine from a search. What the sources do not tell stays
// unknown: a network that NCCL only assumes has no rate.
func MachineOf(r *search.Result, launch string) Machine {
	m := Machine{CC: r.MinCC, Ranks: r.Ranks, Nodes: r.Nodes, Launch: launch}
	ring, ok := r.Graph(search.Ring)
	if !ok || len(r.Members) == 0 {
		return m
	}
	for i := range r.Members {
		m.LocalRanks = max(m.LocalRanks, len(r.Members[i].Ranks))
	}
	v := r.Members[0].View
	m.Link = linkOf(v, &ring)
	m.LinkGBs = float64(ring.Channels) * ring.BWIntra
	m.LinkName = fmt.Sprintf("%s between GPUs, as NCCL's search finds it", m.Link)
	if m.Link == NVLink {
		if gbs, links := nvlinks(v); gbs > 0 {
			m.LinkGBs, m.LinkName = gbs, fmt.Sprintf("%d NVLinks of each GPU", links)
		}
	}
	if !r.NetAssumed {
		m.NetGBs, m.Fabric = network(v, &ring)
	}
	return m
}

// linkOf is the worst that a ring crosses within a node.
func linkOf(v *graph.NCCLView, ring *search.Graph) Link {
	at := map[int]int{}
	for i := range v.GPUs {
		at[v.Dev(i)] = i
	}
	link := NVLink
	for _, devs := range ring.Rings {
		for i, dev := range devs {
			next := devs[(i+1)%len(devs)]
			if dev == next {
				continue
			}
			switch p := v.Path(at[dev], at[next]); {
			case !p.P2P:
				return HostMemory
			case p.Class > graph.NVB && p.Class != graph.C2C:
				link = PCIe
			}
		}
	}
	return link
}

// nvlinks is what the NVLinks of a GPU carry in all, of the GPU that has least; 0
// where some rate is not known.
func nvlinks(v *graph.NCCLView) (gbs float64, links int) {
	least := math.Inf(1)
	for _, g := range v.GPUs {
		sum, n := 0.0, 0
		for _, l := range v.Links {
			if l.From != g || l.Type != graph.NCCLLinkNVL {
				continue
			}
			for _, p := range l.Physical {
				rate, ok := p.Max.Get()
				if set, what := p.Set.Get(); what {
					rate, ok = set, true
				}
				switch {
				case p.State == probe.LinkDown:
				case !ok:
					return 0, 0
				default:
					sum, n = sum+rate.GBs(), n+1
				}
			}
		}
		if sum < least {
			least, links = sum, n
		}
	}
	if math.IsInf(least, 1) {
		return 0, 0
	}
	return least, links
}

// amazon is the PCI vendor of EFA adapters.
const amazon = 0x1d0f

// network adds up the ports that the rings of a node leave by; 0 where NCCL assumes
// one of them.
func network(v *graph.NCCLView, ring *search.Graph) (gbs float64, fabric string) {
	used := map[int]bool{}
	for _, n := range ring.Nets {
		used[n[1]] = true
	}
	for _, n := range v.Nets {
		port := &v.Nodes[n]
		switch {
		case !used[port.ID]:
			continue
		case port.Net.Assumed:
			return 0, ""
		case port.Node != nil && port.Node.Kind == graph.KindNet:
			fabric = Sockets
		case port.Node != nil && port.Node.PCI != nil && port.Node.PCI.Vendor.Or(0) == amazon:
			fabric = EFA
		}
		gbs += port.Net.GBs
	}
	return gbs, fabric
}
