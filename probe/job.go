package probe

import "slices"

// Job is what NCCL jobs show of themselves: in logs, test output, and the state
// of running processes. A job may span hosts, so each fact names its host; ""
// means that the source does not say.
type Job struct {
	Logs       []LogFile    `json:"logs,omitempty"`
	Comms      []Comm       `json:"comms,omitempty"`
	Versions   []NCCLSeen   `json:"nccl_versions,omitempty"`
	Networks   []Network    `json:"networks,omitempty"`
	Adapters   []Adapter    `json:"adapters,omitempty"`
	Interfaces []Interface  `json:"interfaces,omitempty"`
	GDRPairs   []GDRPair    `json:"gdr_pairs,omitempty"`
	Fabrics    []FabricSeen `json:"fabrics,omitempty"`
	Systems    []SystemTree `json:"systems,omitempty"`
	Products   []GPUProduct `json:"gpu_products,omitempty"`
	Env        []EnvSetting `json:"env,omitempty"`
	Graphs     []GraphFile  `json:"graph_files,omitempty"`
	Choices    []Choice     `json:"choices,omitempty"`
	Events     []Event      `json:"events,omitempty"`
	Runs       []Run        `json:"runs,omitempty"`
	Samples    []Sample     `json:"samples,omitempty"`
	Summaries  []RunSummary `json:"run_summaries,omitempty"`
}

// LogFile says how much of one NCCL log was understood.
type LogFile struct {
	File     string   `json:"file"`
	Lines    int64    `json:"lines"`
	Records  int64    `json:"records"`
	Torn     int64    `json:"incomplete_records"`
	Commless int64    `json:"connections_without_communicator,omitempty"`
	Hosts    []string `json:"hosts"`
}

// NCCLSeen is an NCCL library that a process loaded.
type NCCLSeen struct {
	NCCL    string   `json:"nccl_version"`
	CUDA    string   `json:"cuda_version,omitempty"` // that NCCL was built with
	Driver  Opt[int] `json:"cuda_driver,omitzero"`   // the driver's CUDA version, 1000 × major + 10 × minor
	Host    string   `json:"host,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
}

// States of a Network.
const (
	NetUsed        = "used"        // the one that carries the traffic
	NetInitialized = "initialized" //
	NetAssigned    = "assigned"    // to a communicator
	NetFailed      = "failed"      // could not be initialised
	NetNoDevice    = "no device"   // found none to use
)

// Network is a network transport or plugin and what became of it.
type Network struct {
	Name    string   `json:"name"` // IB, Socket, AWS Libfabric, …
	State   string   `json:"state"`
	Host    string   `json:"host,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
}

// Adapter is one port that a network uses, as NCCL lists it after its filters.
type Adapter struct {
	Network   string    `json:"network"` // IB
	Index     int       `json:"index"`   // the number in "via NET/IB/N"
	Name      string    `json:"name"`    // of the HCA; "a+b" where NCCL fused two
	Port      Opt[int]  `json:"port,omitzero"`
	LinkLayer string    `json:"link_layer,omitempty"` // InfiniBand or Ethernet
	Rate      Opt[Rate] `json:"rate_bytes_per_s,omitzero"`
	GDR       Opt[bool] `json:"gdr,omitzero"` // GPUDirect RDMA is possible at all
	Host      string    `json:"host,omitempty"`
	Origins   []Origin  `json:"origins,omitempty"`
}

// Uses of an Interface.
const (
	UseBootstrap = "bootstrap"
	UseSocket    = "socket"
	UseOOB       = "oob" // out of band, for the set-up of an RDMA network
)

// Interface is an IP interface that NCCL chose.
type Interface struct {
	Use     string   `json:"use"`
	Name    string   `json:"name"`
	Addr    string   `json:"addr,omitempty"` // without the port
	Host    string   `json:"host,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
}

// GDRPair says whether GPUDirect RDMA is used between a GPU and an adapter, and
// the distance that decided it, both as NCCL prints them.
type GDRPair struct {
	GPU      string   `json:"gpu"` // as printed: a bus id, an index
	HCA      string   `json:"hca"`
	Enabled  bool     `json:"enabled"`
	Distance int      `json:"distance"`
	Limit    int      `json:"limit"`
	Host     string   `json:"host,omitempty"`
	Origins  []Origin `json:"origins,omitempty"`
}

// FabricSeen is a GPU's registration with the NVLink fabric as NCCL read it.
type FabricSeen struct {
	GPU        Opt[BDF] `json:"gpu"`
	UUID       string   `json:"cluster_uuid"`
	CliqueID   uint64   `json:"clique_id"`
	State      int      `json:"state"` // 3 = completed
	HealthMask uint64   `json:"health_mask"`
	Host       string   `json:"host,omitempty"`
	Origins    []Origin `json:"origins,omitempty"`
}

// SystemTree is one print-out of NCCL's own view of a host. Ranks of one host
// that print the same are one.
type SystemTree struct {
	MaxGBs   Opt[float64] `json:"max_gbs"`
	TotalGBs Opt[float64] `json:"total_gbs"`
	Nodes    []SystemNode `json:"nodes"`
	Paths    []SystemPath `json:"paths,omitempty"`
	Host     string       `json:"host,omitempty"`
	Origins  []Origin     `json:"origins,omitempty"`
}

// SystemNode is one line of the tree.
type SystemNode struct {
	Depth int     `json:"depth"`
	Link  string  `json:"link,omitempty"` // PCI, NVL, NET, SYS, C2C, by which it hangs on the node above; "" at a root
	GBs   float64 `json:"gbs,omitempty"`  // of that link
	Name  string  `json:"name"`           // GPU/0-60
	Note  string  `json:"note,omitempty"` // in brackets: rank, or GUID/port/speed
	Line  int64   `json:"line"`
}

// SystemPath is one cell of NCCL's path matrix.
type SystemPath struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Hops  int     `json:"hops"`
	GBs   float64 `json:"gbs"`
	Class string  `json:"class"` // LOC, NVL, PIX, …
}

// GPUProduct is a model of GPU that a job used on a host. Which of the host's GPUs
// it is, the output need not say.
type GPUProduct struct {
	Name    string   `json:"name"`
	Host    string   `json:"host,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
}

// How a setting came to be.
const (
	EnvVariable = "environment" // NCCL confirms that it read the variable
	EnvConfig   = "config"      // set by the application through ncclConfig_t
	EnvReset    = "reset"       // the environment overrode the application
	EnvInvalid  = "invalid"     // refused, the default holds
	EnvFile     = "file"        // written in a file; whether a job reads it is not known
	EnvProcess  = "process"     // in the environment that this program runs in
)

// EnvSetting is one NCCL setting and where it was seen.
type EnvSetting struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`
	How     string   `json:"how"`
	Dialect string   `json:"dialect,omitempty"` // of the file
	Raw     string   `json:"raw,omitempty"`     // as written in the file, where it differs
	Marks   []string `json:"marks,omitempty"`   // what readers of the file treat differently: quotes, blanks, …
	Host    string   `json:"host,omitempty"`
	PIDs    []int    `json:"pids,omitempty"` // processes that confirm it, as far as they are known
	Origins []Origin `json:"origins,omitempty"`
}

// Choice is what NCCL chose for an operation of one size.
type Choice struct {
	Collective string       `json:"collective,omitempty"` // "" = not printed
	Bytes      int64        `json:"bytes"`                // as that version prints it
	Algorithm  string       `json:"algo"`
	Protocol   string       `json:"proto"`
	Kernel     string       `json:"kernel,omitempty"` // symmetric kernels
	Channels   Opt[int]     `json:"channels,omitzero"`
	TimeUS     Opt[float64] `json:"predicted_us,omitzero"`
	Count      int64        `json:"count"`
	Origins    []Origin     `json:"origins,omitempty"`
}

// Comm is one NCCL communicator.
type Comm struct {
	ID       string   `json:"id"` // 0x…; "" = not printed
	Name     string   `json:"name,omitempty"`
	NCCL     string   `json:"nccl_version,omitempty"`
	Ranks    int      `json:"ranks"` // 0 = not printed: what no line of a communicator claims
	Nodes    Opt[int] `json:"nodes"` // as NCCL counts them
	Channels Opt[int] `json:"channels"`
	// Members are the ranks that the sources show, by rank; fewer than Ranks
	// where a rank did not print.
	Members []Member     `json:"members,omitempty"`
	Graphs  []Graph      `json:"graphs,omitempty"`
	Rings   []Ring       `json:"rings,omitempty"`
	Trees   []TreeNode   `json:"trees,omitempty"`
	Conns   []Connection `json:"connections,omitempty"`
	Tuning  []TuningCell `json:"tuning,omitempty"`
	Origins []Origin     `json:"origins,omitempty"`
}

// Member is one rank of a communicator.
type Member struct {
	Rank    int      `json:"rank"`                 // UnknownRank = the source does not say which
	Global  Opt[int] `json:"global_rank,omitzero"` // in the whole job
	Host    string   `json:"host,omitempty"`
	PID     Opt[int] `json:"pid,omitzero"`
	GPU     Opt[int] `json:"gpu"`                  // NVML index
	CUDADev Opt[int] `json:"cuda_device,omitzero"` // index in its process
	Addr    Opt[BDF] `json:"addr,omitzero"`
	UUID    string   `json:"uuid,omitempty"`
	NCCL    string   `json:"nccl_version,omitempty"`
	Init    string   `json:"init,omitempty"` // InitStarted, …; "" = unknown
	// Seconds are the parts of the rank's initialisation, "total" first.
	Seconds []Timing `json:"init_seconds,omitempty"`
	// Progress is what a running or stuck rank had done, by collective.
	Progress []Progress `json:"progress,omitempty"`
	State    string     `json:"state,omitempty"` // RankMissing, …; "" = nothing is known to be wrong
	Error    string     `json:"error,omitempty"` // of State RankError, in NCCL's words
	At       string     `json:"at,omitempty"`    // when State was seen, see TimeLayout
	Origins  []Origin   `json:"origins,omitempty"`
}

// UnknownRank is the rank of a process that does not tell it.
const UnknownRank = -1

// TimeLayout is how times of a running job are written, by the clock of its
// source; their order is that of the texts.
const TimeLayout = "2006-01-02 15:04:05"

// How far the initialisation of a rank got.
const (
	InitStarted   = "started"
	InitCompleted = "completed"
	InitAborted   = "aborted"
	InitDestroyed = "destroyed" // completed, and the communicator ended well
)

// States of a rank that a running job reports.
const (
	RankMissing  = "missing"      // its process does not answer
	RankDead     = "dead"         // its process has not answered for so long that nobody asks it again
	RankError    = "error"        // its communicator is broken, see Error
	RankTimedOut = "timed out"    // an operation took longer than the application allows
	RankInit     = "initializing" // and not ready yet
	RankAborting = "aborting"
	RankFinished = "finalized"
	RankGone     = "no member" // its process runs and does not know the communicator: not yet, or no longer
)

// Timing is a duration of initialisation.
type Timing struct {
	What    string  `json:"what"`
	Seconds float64 `json:"s"`
}

// Progress is how many operations of one kind a rank has issued and finished.
type Progress struct {
	Collective string     `json:"collective"` // AllReduce, …, or AllCollectives
	Issued     int64      `json:"issued"`
	Finished   Opt[int64] `json:"finished,omitzero"`
	Since      string     `json:"since,omitempty"` // when the first operation that is not finished was issued, see TimeLayout
	At         string     `json:"at,omitempty"`    // when this was so, see TimeLayout
}

// AllCollectives is the Progress of all collectives of a communicator counted
// together.
const AllCollectives = "collectives"

// Graph is the result of one of NCCL's searches.
type Graph struct {
	Pattern   string  `json:"pattern"` // see PatternName
	Channels  int     `json:"channels"`
	BWIntra   float64 `json:"bw_intra_gbs"`
	BWInter   float64 `json:"bw_inter_gbs"`
	TypeIntra string  `json:"type_intra"`
	TypeInter string  `json:"type_inter"`
	CrossNIC  int     `json:"cross_nic"`
	NoPath    bool    `json:"no_path,omitempty"` // the search failed and took the simple order
	// Only graph files say: the search's number (0 ring, 1 tree, 2 collnet chain, 3
	// nvls, 4 collnet direct), and whether all channels have the same order.
	ID           Opt[int]  `json:"id,omitzero"`
	SameChannels Opt[bool] `json:"same_channels,omitzero"`
	Orders       []string  `json:"orders,omitempty"` // per channel, as printed: NET/0 GPU/0-60 GPU/0-70 NET/0
	Origins      []Origin  `json:"origins,omitempty"`
}

// Ring is the order of ranks on one ring channel.
type Ring struct {
	Channel int   `json:"channel"`
	Ranks   []int `json:"ranks"`
	Cut     bool  `json:"cut,omitempty"` // NCCL shortened the line
}

// TreeNode is a rank's place in the tree of one channel; -1 = none.
type TreeNode struct {
	Channel int    `json:"channel"`
	Rank    int    `json:"rank"`
	Up      int    `json:"up"`
	Down    [3]int `json:"down"`
}

// Kinds of transport.
const (
	ViaP2P     = "P2P"
	ViaSHM     = "SHM"
	ViaNET     = "NET"
	ViaCollNet = "COLLNET"
)

// Connection is the transport from one rank to another, over a number of
// channels. NCCL prints network connections on both sides.
type Connection struct {
	From     int       `json:"from"`
	To       int       `json:"to"`
	Via      string    `json:"via"`               // ViaP2P, …
	Variant  string    `json:"variant,omitempty"` // P2P: direct pointer, CUMEM, MNNVL, IPC, indirect
	Network  string    `json:"network,omitempty"` // NET: IB, Socket, AWS Libfabric
	Device   Opt[int]  `json:"device,omitzero"`   // NET: index of the adapter
	GDR      Opt[bool] `json:"gdr,omitzero"`      // NET: with GPUDirect RDMA; unknown for all others
	Proxy    Opt[int]  `json:"proxy,omitzero"`    // rank whose NIC (PXN) or GPU (indirect) it goes through
	SendRecv bool      `json:"send_recv,omitempty"`
	Side     string    `json:"side,omitempty"` // send or receive: who printed it, for networks
	Channels int       `json:"channels"`
	Origins  []Origin  `json:"origins,omitempty"`
}

// Sides of a network connection.
const (
	SideSend    = "send"
	SideReceive = "receive"
)

// TuningCell is one entry of NCCL's own model. A bandwidth of 0 is: not offered.
type TuningCell struct {
	Collective string  `json:"collective"`
	Algorithm  string  `json:"algo"`
	Protocol   string  `json:"proto"`
	GBs        float64 `json:"bw_gbs"`
	LatencyUS  float64 `json:"latency_us"`
}

// Kinds of Event.
const (
	EventXid         = "xid"
	EventWarning     = "warning" // a WARN line of NCCL
	EventNote        = "note"    // an INFO line of NCCL that is kept as it stands
	EventWrongData   = "wrong-data"
	EventTestFailure = "test-failure"
)

// Event is something that happened: an Xid, a line of NCCL.
type Event struct {
	Kind    string   `json:"kind"`
	Class   string   `json:"class,omitempty"` // of a note: plugin, network, nvls, …; of wrong data: the collective
	Code    Opt[int] `json:"code,omitzero"`
	Subject string   `json:"subject,omitempty"` // node key: gpu:…, pci:…
	Host    string   `json:"host,omitempty"`
	Rank    Opt[int] `json:"rank,omitzero"`
	Comm    string   `json:"comm,omitempty"`
	Site    string   `json:"site,omitempty"` // file:line of NCCL's source that printed a warning
	Text    string   `json:"text"`
	Count   int64    `json:"count,omitempty"` // 0 counts as 1
	Origins []Origin `json:"origins,omitempty"`
}

// Run is one launch of a test program, as far as its samples share data type and
// operation. Samples name it.
type Run struct {
	ID       string    `json:"id"`   // unique in the job: file:line of the first sample
	File     string    `json:"file"` // base name; #2 behind it where another file of that name was there first
	Program  string    `json:"program,omitempty"`
	NCCL     string    `json:"nccl_version,omitempty"`
	DataType string    `json:"datatype,omitempty"`
	Op       string    `json:"op,omitempty"` // sum, …; "" = the collective has none, or not printed
	Hosts    []RunHost `json:"hosts,omitempty"`
	// Settings are the NCCL_ variables that the output shows to be set. They are
	// unknown where it shows neither NCCL's own lines nor the environment.
	Settings Opt[[]EnvSetting] `json:"settings"`
	Origins  []Origin          `json:"origins,omitempty"`
}

// RunHost is a host of a run and the GPUs that its ranks use there.
type RunHost struct {
	Name  string   `json:"name"`
	Ranks int      `json:"ranks"`
	GPUs  []string `json:"gpus,omitempty"` // addresses as printed: 0000:1b:00, or the bus alone: 0x1b
}

// Sample is one measured point of a collective.
type Sample struct {
	Run        string       `json:"run,omitempty"` // ID of a Run
	Collective string       `json:"collective"`    // AllReduce, AllGather, …
	Bytes      int64        `json:"bytes"`         // the total, also for AllGather and ReduceScatter
	Ranks      Opt[int]     `json:"ranks"`
	Nodes      Opt[int]     `json:"nodes"` // hosts
	Algorithm  string       `json:"algo,omitempty"`
	Protocol   string       `json:"proto,omitempty"`
	Channels   Opt[int]     `json:"channels,omitzero"`
	Launch     string       `json:"launch,omitempty"` // per-gpu or single
	TimeUS     float64      `json:"time_us"`          // out of place; the median where Count operations are condensed
	MinUS      float64      `json:"min_us,omitempty"` // the shortest of Count operations
	Count      int64        `json:"count,omitempty"`  // of operations of a job; 0 = measured by a benchmark
	AlgBW      float64      `json:"algbw_gbs"`
	BusBW      float64      `json:"busbw_gbs"`
	InPlaceUS  Opt[float64] `json:"in_place_us,omitzero"` // the same in place
	Origins    []Origin     `json:"origins,omitempty"`
}

// BusFactor is busbw divided by algbw for a collective of n ranks (nccl-tests,
// doc/PERFORMANCE.md).
func BusFactor(collective string, ranks int) (factor float64, ok bool) {
	n := float64(ranks)
	switch collective {
	case "AllReduce":
		factor = 2 * (n - 1) / n
	case "AllGather", "ReduceScatter", "AllToAll", "AllToAllV", "Gather", "Scatter":
		factor = (n - 1) / n
	case "Broadcast", "Reduce", "SendRecv", "HyperCube":
		factor = 1
	default:
		return 0, false
	}
	return factor, ranks > 0
}

// NoJob reports that nothing is known of any job.
func (j *Job) NoJob() bool {
	return len(j.Logs)+len(j.Comms)+len(j.Versions)+len(j.Networks)+len(j.Adapters)+len(j.Interfaces)+len(j.GDRPairs)+
		len(j.Fabrics)+len(j.Systems)+len(j.Products)+len(j.Env)+len(j.Graphs)+len(j.Choices)+len(j.Events)+len(j.Runs)+len(j.Samples)+len(j.Summaries) == 0
}

// JobHosts returns the names of the hosts that the job's facts name, sorted.
func (j *Job) JobHosts() []string {
	var out []string
	add := func(h string) {
		if h != "" {
			out = append(out, h)
		}
	}
	for _, l := range j.Logs {
		for _, h := range l.Hosts {
			add(h)
		}
	}
	for _, c := range j.Comms {
		for _, m := range c.Members {
			add(m.Host)
		}
	}
	for _, e := range j.Events {
		add(e.Host)
	}
	for _, e := range j.Env {
		add(e.Host)
	}
	for _, r := range j.Runs {
		for _, h := range r.Hosts {
			add(h.Name)
		}
	}
	slices.SortFunc(out, CompareNames)
	return slices.Compact(out)
}
