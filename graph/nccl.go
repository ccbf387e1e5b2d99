package graph

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// NCCLOptions are the version and the settings that change what NCCL sees of a
// host. Zero values are NCCL's defaults.
type NCCLOptions struct {
	Version NCCLVersion // whose model
	GPUs    []int       // NCCL dev numbers that the job sees; empty: all
	NoP2P   bool        // the driver refuses peer access between GPUs, as for GeForce boards

	P2PLevel   PathClass          // NCCL_P2P_LEVEL; LOC is NCCL_P2P_DISABLE=1
	NoSHM      bool               // NCCL_SHM_DISABLE=1
	NoNetIntra bool               // NCCL_NET_DISABLE_INTRA=1
	NoNVB      bool               // NCCL_NVB_DISABLE=1
	GDRLevel   PathClass          // NCCL_NET_GDR_LEVEL
	GDRRead    probe.Opt[bool]    // NCCL_NET_GDR_READ
	NoGDRC2C   bool               // NCCL_NET_GDR_C2C=0
	NoPXN      bool               // NCCL_PXN_DISABLE=1
	NoPXNC2C   bool               // NCCL_PXN_C2C=0
	HCAs       ncclenv.DeviceList // NCCL_IB_HCA
	MergeLevel PathClass          // NCCL_NET_MERGE_LEVEL; LOC: adapters are never joined
	NetsPerGPU int                // NCCL_NETDEVS_POLICY: MAX:N, or -1 for ALL
	NoMNNVL    bool               // NCCL_MNNVL_ENABLE=0: each host of an NVLink domain by itself
}

// NCCLKind is a type of node in NCCL's own graph (NCCL 2.30.7 topo.h:41-51).
type NCCLKind string

// The types of node. NCCL 2.30.7 splits a GPU into the device and one node per
// rank on it; here it is one node, and [NCCLPath.Hops] counts as NCCL does.
const (
	NCCLGPU NCCLKind = "GPU"
	NCCLPCI NCCLKind = "PCI" // a PCIe switch
	NCCLNVS NCCLKind = "NVS" // all NVSwitches together
	NCCLCPU NCCLKind = "CPU" // a NUMA node; all functions of unknown NUMA node share CPU -1
	NCCLNIC NCCLKind = "NIC" // a network adapter
	NCCLNET NCCLKind = "NET" // one port of it
)

// NCCLNode is a node of NCCL's graph.
type NCCLNode struct {
	Kind NCCLKind
	ID   int            // of a GPU or NET its NCCL dev, counted on from host to host; NUMA node of a CPU (-1 unknown); else an ordinal
	Dev  int            // NCCL dev on its host, of a GPU or NET
	Host int            // 0, 1, … in a domain of several hosts
	CC   probe.Opt[int] // compute capability ×10, of a GPU
	Node *Node          // the thing it stands for; nil for NVS and CPU -1
	Net  *NCCLNet       // of a NET

	out []int // links that leave it, in the order in which NCCL tries them
}

// NCCLNet is what NCCL knows of a port, or of ports that it joined.
type NCCLNet struct {
	Name    string
	Adapter string // ports of one adapter share it, and with Port their bandwidth
	Port    int
	GBs     float64 // of the port
	GDR     bool    // GPUDirect RDMA
	Joined  []*Node // the adapters, where NCCL joined more than one
	Assumed bool    // no network is known; NCCL always finds one
}

func (n *NCCLNode) String() string { return fmt.Sprintf("%s %d", n.Kind, n.ID) }

// NCCLLinkType is a type of link (NCCL 2.30.7 topo.h:55-66).
type NCCLLinkType string

// The types of link.
const (
	NCCLLinkLOC NCCLLinkType = "LOC"
	NCCLLinkNVL NCCLLinkType = "NVL"
	NCCLLinkC2C NCCLLinkType = "C2C"
	NCCLLinkPCI NCCLLinkType = "PCI"
	NCCLLinkSYS NCCLLinkType = "SYS"
	NCCLLinkNET NCCLLinkType = "NET"
)

// NCCLLink is one direction of what NCCL takes for one link: parallel links of
// one type between two nodes are added up.
type NCCLLink struct {
	From, To int // indexes of NCCLView.Nodes
	Type     NCCLLinkType
	GBs      float64 // what NCCL's model gives it, GB/s
	Physical []*Link // empty where NCCL invents the link
}

// NCCLPath is the way that NCCL takes from A to B: NCCL dev numbers of GPUs, or
// of a GPU and a NET.
type NCCLPath struct {
	A     int       `json:"a"`
	B     int       `json:"b"`
	Class PathClass `json:"class"`
	GBs   float64   `json:"bw_gbs"` // the slowest link's
	Hops  int       `json:"hops"`   // as NCCL counts; from 2.30 on one more at each GPU than links
	Links []int     `json:"-"`      // indexes of NCCLView.Links, from A to B
	P2P   bool      `json:"-"`      // between GPUs; false: through host memory
}

// NCCLAssumption is a value that was taken because no source states it.
type NCCLAssumption struct {
	Subject string `json:"subject"` // node key, or "host"
	Text    string `json:"text"`
}

func (a NCCLAssumption) String() string { return a.Subject + ": " + a.Text }

// NCCLProcessor is how NCCL classes the host's processors, which decides what a
// link between two NUMA nodes is worth.
type NCCLProcessor struct {
	Name  string // "Intel Sapphire Rapids", "AMD", "Arm"
	Arch  string // x86_64, arm64, ppc64; "" unknown
	Intel bool   // x86 of Intel
	AMD   bool   // x86 of AMD
	GBs   float64
}

// NCCLView is the host, or the hosts of one NVLink domain, as NCCL's model sees
// them: GB/s as NCCL counts them, one
// direction. It is immutable.
type NCCLView struct {
	Nodes []NCCLNode
	Links []NCCLLink // both directions side by side: Links[i^1] is the reverse of Links[i]
	GPUs  []int      // node indexes, in the order of NCCL's graph, which its search follows
	Nets  []int      // node indexes, likewise
	NVS   int        // node index of the NVSwitches; -1: none
	Hosts int        // more than one: the hosts of one NVLink domain
	Name  string     // of the host, of several the first; "" unknown
	// Groups holds the positions in GPUs that NCCL takes for one node. More than
	// one group: between them the network is faster than the way through the
	// host, and NCCL treats the groups as different nodes.
	Groups      [][]int
	Processor   NCCLProcessor
	Options     NCCLOptions
	Assumptions []NCCLAssumption

	paths   [][]NCCLPath // from, to: positions in GPUs
	toNet   [][]NCCLPath // position in GPUs, position in Nets
	fromNet [][]NCCLPath // position in Nets, position in GPUs
	toNVS   []NCCLPath   // by position in GPUs
	fromNVS []NCCLPath
	parts   []*NCCLView // per group
}

// Part returns the view of one node of Groups: NCCL's graph after the GPUs of
// other nodes were dropped. Links keep their indexes.
func (v *NCCLView) Part(group int) *NCCLView { return v.parts[group] }

// Path returns the path between two GPUs, given by their positions in v.GPUs.
// Its class is DIS where nothing is known to join them.
func (v *NCCLView) Path(from, to int) NCCLPath { return v.paths[from][to] }

// PathToNet returns the path from a GPU to a NET, given by their positions.
func (v *NCCLView) PathToNet(gpu, net int) NCCLPath { return v.toNet[gpu][net] }

// PathFromNet returns the path from a NET to a GPU. It may differ from the way
// back: NCCL relays over another GPU (PXN) only what is sent.
func (v *NCCLView) PathFromNet(net, gpu int) NCCLPath { return v.fromNet[net][gpu] }

// PathsNVS returns the paths from a GPU to the NVSwitches and back; DIS without
// any.
func (v *NCCLView) PathsNVS(gpu int) (to, from NCCLPath) { return v.toNVS[gpu], v.fromNVS[gpu] }

// Paths returns all paths between different GPUs, by dev numbers.
func (v *NCCLView) Paths() []NCCLPath {
	out := make([]NCCLPath, 0, len(v.GPUs)*len(v.GPUs))
	for i, row := range v.paths {
		out = append(append(out, row[:i]...), row[i+1:]...)
	}
	sortPaths(out)
	return out
}

// NetPaths returns all paths from GPUs to NETs, by dev numbers.
func (v *NCCLView) NetPaths() []NCCLPath {
	out := slices.Concat(v.toNet...)
	sortPaths(out)
	return out
}

func sortPaths(paths []NCCLPath) {
	slices.SortStableFunc(paths, func(x, y NCCLPath) int { return cmp.Or(cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B)) })
}

// Dev returns the NCCL dev number of the GPU at a position of v.GPUs. In a domain
// of several hosts the numbers go on from host to host.
func (v *NCCLView) Dev(pos int) int { return v.Nodes[v.GPUs[pos]].ID }

// Reverse returns the index of the opposite direction of a link.
func (v *NCCLView) Reverse(link int) int { return link ^ 1 }

// CC returns the lowest and highest compute capability (×10) of the GPUs; ok is
// false when one is unknown or there is none.
func (v *NCCLView) CC() (lowest, highest int, ok bool) {
	for i, g := range v.GPUs {
		cc, known := v.Nodes[g].CC.Get()
		if !known {
			return 0, 0, false
		}
		if i == 0 || cc < lowest {
			lowest = cc
		}
		highest = max(highest, cc)
	}
	return lowest, highest, len(v.GPUs) > 0
}
