package probe

import (
	"cmp"
	"slices"
	"strings"
)

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
	Env        []EnvSetting `json:"env,omitempty"`
	Choices    []Choice     `json:"choices,omitempty"`
	Events     []Event      `json:"events,omitempty"`
	Samples    []Sample     `json:"samples,omitempty"`
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
	Ranks    int      `json:"ranks"`
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
	Rank    int      `json:"rank"`
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
	Origins  []Origin   `json:"origins,omitempty"`
}

// How far the initialisation of a rank got.
const (
	InitStarted   = "started"
	InitCompleted = "completed"
	InitAborted   = "aborted"
	InitDestroyed = "destroyed" // completed, and the communicator ended well
)

// States of a rank that a running job reports.
const (
	RankMissing  = "missing" // its process does not answer
	RankError    = "async error"
	RankAborting = "aborting"
	RankFinished = "finalized"
)

// Timing is a duration of initialisation.
type Timing struct {
	What    string  `json:"what"`
	Seconds float64 `json:"s"`
}

// Progress is how many operations of one kind a rank has issued and finished.
type Progress struct {
	Collective string     `json:"collective"`
	Issued     int64      `json:"issued"`
	Finished   Opt[int64] `json:"finished,omitzero"`
}

// Graph is the result of one of NCCL's searches.
type Graph struct {
	Pattern   string   `json:"pattern"` // ring, balanced tree, split tree, tree, nvls, collnet direct
	Channels  int      `json:"channels"`
	BWIntra   float64  `json:"bw_intra_gbs"`
	BWInter   float64  `json:"bw_inter_gbs"`
	TypeIntra string   `json:"type_intra"`
	TypeInter string   `json:"type_inter"`
	CrossNIC  int      `json:"cross_nic"`
	NoPath    bool     `json:"no_path,omitempty"` // the search failed and took the simple order
	Orders    []string `json:"orders,omitempty"`  // per channel, as printed: NET/0 GPU/0-60 GPU/0-70 NET/0
	Origins   []Origin `json:"origins,omitempty"`
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
	Class   string   `json:"class,omitempty"` // of a note: plugin, network, nvls, …
	Code    Opt[int] `json:"code,omitzero"`
	Subject string   `json:"subject,omitempty"` // node key: gpu:…, pci:…
	Host    string   `json:"host,omitempty"`
	Rank    Opt[int] `json:"rank,omitzero"`
	Comm    string   `json:"comm,omitempty"`
	Text    string   `json:"text"`
	Count   int64    `json:"count,omitempty"` // 0 counts as 1
	Origins []Origin `json:"origins,omitempty"`
}

// Sample is one measured point of a collective.
type Sample struct {
	Collective string   `json:"collective"` // AllReduce, AllGather, …
	Bytes      int64    `json:"bytes"`      // the total, also for AllGather and ReduceScatter
	Ranks      int      `json:"ranks"`
	Nodes      int      `json:"nodes"`
	Algorithm  string   `json:"algo,omitempty"`
	Protocol   string   `json:"proto,omitempty"`
	Channels   Opt[int] `json:"channels,omitzero"`
	Launch     string   `json:"launch,omitempty"` // per-gpu or single
	TimeUS     float64  `json:"time_us"`
	AlgBW      float64  `json:"algbw_gbs"`
	BusBW      float64  `json:"busbw_gbs"`
	Origins    []Origin `json:"origins,omitempty"`
}

// NoJob reports that nothing is known of any job.
func (j *Job) NoJob() bool {
	return len(j.Logs)+len(j.Comms)+len(j.Versions)+len(j.Networks)+len(j.Adapters)+len(j.Interfaces)+len(j.GDRPairs)+
		len(j.Fabrics)+len(j.Systems)+len(j.Env)+len(j.Choices)+len(j.Events)+len(j.Samples) == 0
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
	slices.SortFunc(out, CompareNames)
	return slices.Compact(out)
}

// AddJob takes in what another source says of jobs. Communicators with the same id
// are one: each rank printed its part into a file of its own.
func (j *Job) AddJob(o *Job) {
	j.Logs = append(j.Logs, o.Logs...)
	j.Versions = append(j.Versions, o.Versions...)
	j.Networks = append(j.Networks, o.Networks...)
	j.Adapters = append(j.Adapters, o.Adapters...)
	j.Interfaces = append(j.Interfaces, o.Interfaces...)
	j.GDRPairs = append(j.GDRPairs, o.GDRPairs...)
	j.Fabrics = append(j.Fabrics, o.Fabrics...)
	j.Systems = append(j.Systems, o.Systems...)
	j.Env = append(j.Env, o.Env...)
	j.Choices = append(j.Choices, o.Choices...)
	j.Events = append(j.Events, o.Events...)
	j.Samples = append(j.Samples, o.Samples...)
	at := make(map[string]int, len(j.Comms))
	for i, c := range j.Comms {
		at[c.ID] = i
	}
	for _, c := range o.Comms {
		i, known := at[c.ID]
		if c.ID == "" || !known || j.Comms[i].Ranks != c.Ranks {
			at[c.ID] = len(j.Comms)
			j.Comms = append(j.Comms, c)
			continue
		}
		j.Comms[i].join(c)
	}
}

// join takes in what another source shows of the same communicator. What both
// know differently stays as it was first seen.
func (c *Comm) join(o Comm) {
	if c.NCCL == "" {
		c.NCCL = o.NCCL
	}
	if c.Name == "" {
		c.Name = o.Name
	}
	fill(&c.Nodes, o.Nodes)
	fill(&c.Channels, o.Channels)
	c.Members = joinBy(c.Members, o.Members, func(m Member) int { return m.Rank }, (*Member).join)
	c.Rings = joinBy(c.Rings, o.Rings, func(r Ring) int { return r.Channel }, nil)
	c.Trees = joinBy(c.Trees, o.Trees, func(t TreeNode) [2]int { return [2]int{t.Channel, t.Rank} }, nil)
	c.Graphs = joinBy(c.Graphs, o.Graphs, Graph.key, nil)
	c.Tuning = joinBy(c.Tuning, o.Tuning, func(t TuningCell) [3]string { return [3]string{t.Collective, t.Algorithm, t.Protocol} }, nil)
	c.Conns = append(slices.Clip(c.Conns), o.Conns...)
	c.Origins = append(slices.Clip(c.Origins), o.Origins...)
}

type graphKey struct {
	pattern, typeIntra, typeInter string
	channels, crossNIC            int
	bwIntra, bwInter              float64
}

// key is what makes two print-outs the same search result: ranks print their own
// orders.
func (g Graph) key() graphKey {
	return graphKey{g.Pattern, g.TypeIntra, g.TypeInter, g.Channels, g.CrossNIC, g.BWIntra, g.BWInter}
}

// join fills in what another source knows of the same rank.
func (m *Member) join(o Member) {
	if m.Host == "" {
		m.Host = o.Host
	}
	if m.UUID == "" {
		m.UUID = o.UUID
	}
	if m.NCCL == "" {
		m.NCCL = o.NCCL
	}
	if m.State == "" {
		m.State = o.State
	}
	if m.Init == "" || m.Init == InitStarted && o.Init != "" {
		m.Init = o.Init
	}
	if m.Seconds == nil {
		m.Seconds = o.Seconds
	}
	fill(&m.PID, o.PID)
	fill(&m.GPU, o.GPU)
	fill(&m.CUDADev, o.CUDADev)
	fill(&m.Addr, o.Addr)
	m.Progress = joinBy(m.Progress, o.Progress, func(p Progress) string { return p.Collective }, nil)
	m.Origins = append(slices.Clip(m.Origins), o.Origins...)
}

func fill[T any](dst *Opt[T], src Opt[T]) {
	if !dst.Known() {
		*dst = src
	}
}

// joinBy adds the elements of src whose key dst lacks, and gives the others to
// join (nil: the first stays).
func joinBy[T any, K comparable](dst, src []T, key func(T) K, join func(*T, T)) []T {
	at := make(map[K]int, len(dst))
	for i, d := range dst {
		at[key(d)] = i
	}
	dst = slices.Clip(dst)
	for _, s := range src {
		i, known := at[key(s)]
		switch {
		case !known:
			at[key(s)] = len(dst)
			dst = append(dst, s)
		case join != nil:
			join(&dst[i], s)
		}
	}
	return dst
}

// normalize sorts what has a key of its own; the rest stays in the order in which
// it happened.
func (j *Job) normalizeJob() {
	for i := range j.Comms {
		c := &j.Comms[i]
		c.Members = sortedOrNil(c.Members, func(a, b Member) int { return cmp.Compare(a.Rank, b.Rank) })
		c.Rings = sortedOrNil(c.Rings, func(a, b Ring) int { return cmp.Compare(a.Channel, b.Channel) })
		c.Trees = sortedOrNil(c.Trees, func(a, b TreeNode) int { return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Rank, b.Rank)) })
		c.Conns = sortedOrNil(c.Conns, func(a, b Connection) int {
			return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), strings.Compare(a.Via, b.Via), strings.Compare(a.Side, b.Side))
		})
	}
}
