package nccllog

import (
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

// Log is what an NCCL log says. Lists are in the order of first appearance.
type Log struct {
	Name    string // of the input
	Lines   int64  // physical lines
	Records int64  // NCCL records; 0 = this is no NCCL log
	Unread  int64  // records of kinds that say nothing about topology or health
	Torn    int64  // records of a known kind that are incomplete
	CutLong int64  // lines over probe.MaxLine, of which only the head was read

	Procs      []Proc
	Versions   []Version
	Networks   []Network
	IBLists    []IBList
	IBDevices  []IBDevice
	Interfaces []Interface
	GDR        []GDR
	GDRPairs   []GDRPair
	Env        []Env
	Matrix     []string // "Enabled NCCL Func/Proto/Algo Matrix", verbatim
	Topologies []Topology
	Fabrics    []Fabric
	Comms      []Comm
	Loose      Comm // rings, trees and connections that no communicator line claims
	Choices    []Choice
	Calls      []Call
	Warnings   []Warning
	Unwinds    []Unwind
	Notes      []Note
	Dropped    []Drop // caps that were reached
}

// Seen says where a fact stands: lines from 1, and how often it was repeated.
// Procs are indexes into Log.Procs.
type Seen struct {
	Host  string // as NCCL prints it; "" = the line does not say
	Procs []int
	First int64
	Last  int64
	Count int64
}

// Drop is a cap that was reached.
type Drop struct {
	What string
	N    int64 // facts that were not kept
}

// Proc is one process that printed.
type Proc struct {
	Host       string
	PID        int
	First      int64 // line
	NCCL       string
	CUDA       string         // that NCCL was built with
	CUDADriver probe.Opt[int] // 1000 × major + 10 × minor
	Network    string         // Using network …
	IBLists    []int          // indexes into Log.IBLists
}

// Version is a version line. At level VERSION it has no host.
type Version struct {
	NCCL string // 2.28.3
	CUDA string // 13.0, that NCCL was built with
	Seen
}

// Network is a network transport or plugin and what became of it.
type Network struct {
	Name  string // IB, Socket, AWS Libfabric, …
	State string // probe.NetUsed, …
	Seen
}

// IBList is one "NET/IB : Using" line: the HCAs after NCCL_IB_HCA filtered them.
type IBList struct {
	Ports           []IBPort
	RelaxedOrdering bool
	Seen
}

// IBPort is one entry of an IBList.
type IBPort struct {
	Index     int
	Device    string
	Port      probe.Opt[int]
	LinkLayer string // IB or RoCE
	Rail      string // "rail:plane" where printed
}

// IBDevice is one detailed NET/IB line, of a port or of a fused device.
type IBDevice struct {
	Index     int
	Name      string
	Verbs     string
	Port      probe.Opt[int]
	LinkLayer string
	Provider  string
	Speed     probe.Opt[probe.Rate]
	PCIPath   string
	Adaptive  probe.Opt[bool] // adaptive routing
	Virtual   bool            // made of several
	Seen
}

// Interface is an IP interface and its use: bootstrap, socket or oob.
type Interface struct {
	Use  string
	Name string
	Addr string // without the port
	Seen
}

// GDR says whether a network can do GPUDirect RDMA on a device at all.
type GDR struct {
	Network string
	Index   int
	Device  string
	Enabled bool
	Seen
}

// GDRPair says whether GPUDirect RDMA is used between a GPU and a device.
type GDRPair struct {
	GPU      string // as printed: a bus id, or sys-bus id
	HCA      string
	Enabled  bool
	Distance int
	Limit    int
	Seen
}

// Env is a setting as NCCL confirms it.
type Env struct {
	Name  string
	Value string
	How   string // probe.EnvVariable, …
	Seen
}

// Topology is one print-out of NCCL's system tree. Equal ones of a host are one.
type Topology struct {
	MaxBW   probe.Opt[float64] // GB/s
	TotalBW probe.Opt[float64] // GB/s
	Nodes   []TopoNode
	Paths   []TopoPath
	Seen
}

// TopoNode is one line of the tree.
type TopoNode struct {
	Depth int
	Link  string  // PCI, NVL, NET, SYS, C2C; "" at a root
	GBs   float64 // of the link
	Name  string  // GPU/0-60
	Note  string  // in brackets: rank, arch/vendor/model, or GUID/port/speed
	Line  int64
}

// TopoPath is one entry of a path line.
type TopoPath struct {
	From, To string
	Hops     int
	GBs      float64
	Class    string // LOC, NVL, PIX, …
}

// Fabric is one MNNVL line: a GPU's registration with the NVLink fabric.
type Fabric struct {
	BusID      uint64
	UUID       string
	CliqueID   uint64
	State      int // 3 = completed
	HealthMask uint64
	Seen
}

// Comm is one communicator: all ranks whose lines carry one commId.
type Comm struct {
	ID      string // 0x…; "" = not printed, as before NCCL 2.16
	Guessed bool   // without an ID, ranks were put together by size and rank number
	NCCL    string
	Ranks   int // 0 = unknown, only in Log.Loose
	Nodes   probe.Opt[int]
	MNNVL   probe.Opt[bool]
	Counts  ChannelCounts // on which all members agree
	Members []Member
	Graphs  []Graph
	Rings   []Ring
	Trees   []TreeNode
	Conns   []Connection
	Tuning  []Cell
	First   int64
	Last    int64
}

// Member is one rank of a communicator. A line number of 0 is: not seen.
type Member struct {
	Rank       int
	Host       string
	PID        int
	Proc       int    // index into Log.Procs, -1 = not kept
	Pointer    uint64 // of the communicator in that process
	API        string // ncclCommInitRankConfig, …
	CUDADev    probe.Opt[int]
	NVMLDev    probe.Opt[int]
	BusID      probe.Opt[uint64] // as NCCL packs it, see probe.BDFOfBusID
	Nodes      probe.Opt[int]
	LocalRank  probe.Opt[int]
	LocalRanks probe.Opt[int]
	MNNVL      probe.Opt[bool]
	Parent     probe.Opt[uint64] // pointer of the communicator that was split
	Counts     ChannelCounts
	Timings    []Timing
	Started    int64
	Completed  int64
	Aborted    int64
	Destroyed  int64
	Rings      int64 // Connected all rings
	RingPXN    probe.Opt[bool]
	RingGDR    probe.Opt[bool]
}

// ChannelCounts are the final numbers of channels.
type ChannelCounts struct {
	Coll, CollNet, NVLS, P2P, P2PPerPeer probe.Opt[int]
}

// Timing is one part of "Init timings"; the first is "total".
type Timing struct {
	What    string
	Seconds float64
}

// Graph is the result of one search. Ranks that print the same are one.
type Graph struct {
	Pattern   int // 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNetDirect
	CrossNIC  int
	Channels  int
	BWIntra   float64 // GB/s per channel
	BWInter   float64
	TypeIntra string
	TypeInter string
	SameChans bool
	Orders    []string // per channel: NET/0 GPU/0-60 GPU/0-70 NET/0
	NoPath    bool     // the search failed and took the simple order
	Ranks     []int    // that printed it
	Seen
}

// PatternName names a graph pattern; "" for one that is not known.
func PatternName(p int) string { return probe.PatternName(p) }

// Ring is the order of one ring channel.
type Ring struct {
	Channel int
	Of      probe.Opt[int] // number of channels
	Ranks   []int
	Cut     bool // NCCL shortened the line
	Joined  bool // put together from every rank's prev and next
	Line    int64
}

// TreeNode is a rank's place in the tree of one channel; -1 = none.
type TreeNode struct {
	Channel int
	Rank    int
	Up      int
	Down    [3]int
	Line    int64
}

// Directions of a connection.
const (
	DirSend    = "send"
	DirReceive = "receive"
)

// Connection is the transport between two ranks over a set of channels.
type Connection struct {
	From, To Peer
	Conn     probe.Opt[int] // 0 = ring and tree, 1 = send/receive
	Channels []int          // empty = the line lost them
	Dir      string         // the side that printed it, where the transport says
	Via      Transport
	Seen
}

// Peer is one end of a connection.
type Peer struct {
	Rank  int
	Label string            // in brackets: the NVML index, before 2.18.5 the bus id
	NVML  probe.Opt[int]    // where the label is known to be an index
	BusID probe.Opt[uint64] // where the label is known to be a bus id
}

// Transport is the part of a connection line after "via".
type Transport struct {
	Text    string // verbatim
	Kind    string // P2P, SHM, NET, COLLNET
	Variant string // P2P: direct pointer, CUMEM, MNNVL, IPC, indirect; SHM: direct/direct
	Network string // NET: IB, Socket, AWS Libfabric
	NetDev  probe.Opt[int]
	Proxy   probe.Opt[int] // PXN: the rank that drives the NIC; P2P/indirect: through this rank
	GDR     bool
	GDRPCI  bool // GDR forced through PCI
	Shared  bool
	Read    bool
	CE      bool
}

// Cell is one entry of NCCL's tuning table. A bandwidth of 0 is: not offered.
type Cell struct {
	Func      string
	Algo      string
	Proto     string
	LatencyUS float64
	GBs       float64
	Line      int64
}

// Choice is what NCCL chose for an operation of one size.
type Choice struct {
	Func   string // "" up to 2.22
	Bytes  int64  // as printed, see the version
	Algo   string // Ring, Tree, …; a number where the version's meaning is unknown
	Proto  string
	Lo, Hi probe.Opt[int]     // channels
	TimeUS probe.Opt[float64] // predicted, 2.12 to 2.23
	Kernel string             // symmetric kernels
	Seen
}

// Call is one kind of API call.
type Call struct {
	Func     string
	Count    int64 // elements
	DataType int   // ncclDataType_t
	RedOp    int   // ncclRedOp_t
	Root     int
	Ranks    int
	CommID   string // "" = unknown
	Seen
}

// Warning is a WARN record, verbatim.
type Warning struct {
	File string
	Line int // in File
	Func string
	Text string
	Time string         // stamp in front of the first one
	Dev  probe.Opt[int] // current CUDA device of the thread
	Rank probe.Opt[int] // where the thread is known to serve one
	Comm string         // its commId
	Seen
}

// Unwind is one call level of an error on its way up. Only a warning before it
// names the cause.
type Unwind struct {
	File  string
	Line  int
	Code  int // ncclResult_t
	Async bool
	Seen
}

// Classes of a Note.
const (
	NotePlugin   = "plugin"
	NoteNetwork  = "network"
	NoteOFI      = "ofi"
	NoteTopology = "topology"
	NoteNVLS     = "nvls"
	NoteMNNVL    = "mnnvl"
	NoteP2P      = "p2p"
	NoteAffinity = "affinity"
	NoteMemory   = "memory"
	NoteInit     = "init"
	NoteDiag     = "diag"
	NoteHint     = "hint"
)

// Note is a record that is kept as it stands.
type Note struct {
	Class string
	Text  string
	Seen
}

func hexID(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }
