package graph

import (
	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/multi"

	"github.com/ncclmap/ncclmap/probe"
)

// Kind is the kind of a node.
type Kind string

// The kinds of node.
const (
	KindNUMA     Kind = "numa"     // a NUMA node, or a root complex whose NUMA node is unknown
	KindSwitch   Kind = "switch"   // a PCIe switch, keyed by its upstream port
	KindGPU      Kind = "gpu"      //
	KindHCA      Kind = "hca"      // an RDMA device
	KindNet      Kind = "net"      // a physical network interface without RDMA
	KindNVSwitch Kind = "nvswitch" // an NVSwitch chip, or the hidden switch of a guest
)

// Node is one thing. Its pointers lead into the inventory and are nil where
// they do not apply; treat them as read-only.
type Node struct {
	id     int64
	Key    string // "gpu:0000:17:00.0": the subject of findings
	Kind   Kind
	Label  string           // short name for people: "GPU0", "mlx5_0", "NUMA 0"
	Hidden bool             // what it is or where it sits is not visible here
	GPU    *probe.GPU       // KindGPU
	HCA    *probe.HCA       // KindHCA
	NetDev *probe.NetDev    // KindNet
	NUMA   *probe.NUMANode  // KindNUMA, where the host describes it
	PCI    *probe.PCIDevice // the PCI function: device, or a switch's upstream port
	Home   *Node            // the KindNUMA node it belongs to; nil for KindNUMA and KindNVSwitch
	Up     *Node            // next node towards the host bridge over PCIe; nil where there is none
}

// ID is the node's index in Topology.Nodes, 0…n-1 in key order.
func (n *Node) ID() int64 { return n.id }

// LinkKind is the kind of a link.
type LinkKind string

// The kinds of link.
const (
	PCIe    LinkKind = "pcie"
	NVLink  LinkKind = "nvlink"
	C2CLink LinkKind = "c2c"
	SMP     LinkKind = "smp" // between NUMA nodes; its rate is not visible in sysfs
)

// Link is one physical link between two nodes. Rates are one direction; PCIe
// rates are after line coding (63 GB/s for Gen5 x16), NVLink rates are the data
// sheet's (25 GB/s for one NVLink4), so they add up to what reviews quote.
type Link struct {
	id       int64
	A, B     *Node // A is the device or the GPU, B what it hangs on; peers in key order
	Kind     LinkKind
	Max      probe.Opt[probe.Rate] // what both ends can do
	Current  probe.Opt[probe.Rate] // what they do now; 0 when down
	Measured probe.Opt[probe.Rate] // what a run got out of it
	Set      probe.Opt[probe.Rate] // what a what-if makes of it; 0: it is gone
	State    string                // probe.LinkUp, probe.LinkDown or ""

	// PCIe: the functions at A's and B's end (B's is the port above; nil where a
	// topology file leaves it out), and the link as both ends report it.
	FuncA, FuncB         *probe.PCIDevice
	PCIeMax, PCIeCurrent probe.PCIeLink
	// NVLink: the link number at A's end and the generation. C2C: an ordinal.
	Number     int
	Generation probe.Opt[int]

	Origins []probe.Origin
}

// Key names the link by its ends: "gpu:0000:17:00.0--pci:0000:15:00.0".
func (l *Link) Key() string { return l.A.Key + "--" + l.B.Key }

// The methods of gonum's graph.Line.
func (l *Link) From() gonum.Node { return l.A }
func (l *Link) To() gonum.Node   { return l.B }
func (l *Link) ID() int64        { return l.id }

// ReversedLine returns the link itself: it is undirected, and A and B keep
// their meaning.
func (l *Link) ReversedLine() gonum.Line { return l }

// Other returns the end of the link that is not n.
func (l *Link) Other(n *Node) *Node {
	if l.A == n {
		return l.B
	}
	return l.A
}

// Topology is an immutable graph of one host. Nodes are in key order, links in
// the order of their ends.
type Topology struct {
	Inv   *probe.Inventory
	Nodes []*Node
	Links []*Link
	Gaps  []probe.Gap // what could not be placed, and why

	byKey map[string]*Node
	adj   [][]bundle // per node, sorted by the other end's id
	multi *multi.UndirectedGraph
	paths map[int64][]label // per device, computed by Build
}

// bundle is all links of one kind between two nodes.
type bundle struct {
	to    *Node
	kind  LinkKind
	links []*Link
}

// Node returns the node of a key, nil when there is none.
func (t *Topology) Node(key string) *Node { return t.byKey[key] }

// Of returns the nodes of a kind in presentation order: GPUs by index, HCAs and
// interfaces by name, others by key.
func (t *Topology) Of(kind Kind) []*Node {
	var out []*Node
	for _, n := range t.Nodes {
		if n.Kind == kind {
			out = append(out, n)
		}
	}
	sortForPeople(out)
	return out
}

// Between returns the links between two nodes, in order.
func (t *Topology) Between(a, b *Node) []*Link {
	var out []*Link
	for _, bd := range t.adj[a.id] {
		if bd.to == b {
			out = append(out, bd.links...)
		}
	}
	return out
}

// LinksOf returns all links of a node.
func (t *Topology) LinksOf(n *Node) []*Link {
	var out []*Link
	for _, b := range t.adj[n.id] {
		out = append(out, b.links...)
	}
	return out
}

// Multigraph returns the topology as a gonum multigraph with one line per
// physical link. It must not be modified.
func (t *Topology) Multigraph() gonum.UndirectedMultigraph { return t.multi }
