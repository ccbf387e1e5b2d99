package probe

// Schema is the "schema" member of an inventory document.
const Schema = "ncclmap.inventory/v1"

// Inventory is what was seen of one host: plain values in a fixed order, each
// with its origin, each possibly unknown. It holds facts only; what follows
// from them is the business of graph and later packages.
type Inventory struct {
	Schema     string      `json:"schema"`
	Host       Host        `json:"host"`
	Product    Product     `json:"product"`
	CPUs       []CPU       `json:"cpus"`
	Memory     *Memory     `json:"memory,omitempty"`
	NUMA       []NUMANode  `json:"numa"`
	PCI        []PCIDevice `json:"pci"`
	GPUs       []GPU       `json:"gpus"`
	NVSwitches []NVSwitch  `json:"nvswitches"`
	HCAs       []HCA       `json:"hcas"`
	NetDevs    []NetDev    `json:"netdevs"`
	Relations  []Relation  `json:"relations"`
	Settings   Settings    `json:"settings"`
	Runtime    Runtime     `json:"runtime"`
	// TopoFile is what a topology file claims about a host of which better
	// sources exist. It is never merged into what was seen.
	TopoFile *TopoFile `json:"topo_file,omitempty"`
	// Job is what NCCL jobs on this host show of themselves. Where several hosts
	// are at hand, it stands with the Cluster.
	Job
	Conflicts []Conflict `json:"conflicts,omitempty"`
	Gaps      []Gap      `json:"gaps"`
	// Refused is what NCCL itself would refuse, or read differently, in the
	// topology file that the facts come from.
	Refused []FileFault `json:"refused,omitempty"`
}

// Host identifies the machine.
type Host struct {
	Name    string   `json:"name"`
	Hash    string   `json:"hash,omitempty"` // NCCL's host_hash, in a topology file
	Kernel  string   `json:"kernel,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
}

// Product is the machine's DMI identity (sys/class/dmi/id).
type Product struct {
	Vendor  string   `json:"vendor,omitempty"`  // sys_vendor
	Name    string   `json:"name,omitempty"`    // product_name
	Board   string   `json:"board,omitempty"`   // board_name
	Origins []Origin `json:"origins,omitempty"` //
}

// CPU is one processor package (socket).
type CPU struct {
	Package int      `json:"package"`
	Arch    string   `json:"arch"`              // x86_64, arm64, ppc64
	Vendor  string   `json:"vendor,omitempty"`  // CPUID string, e.g. GenuineIntel
	Family  Opt[int] `json:"family,omitzero"`   // base + extended<<4 as NCCL writes it
	Model   Opt[int] `json:"model,omitzero"`    // base + extended<<4
	Name    string   `json:"name,omitempty"`    // model name
	Origins []Origin `json:"origins,omitempty"` //
}

// Memory is the host's main memory.
type Memory struct {
	Bytes   Opt[int64] `json:"bytes"`             // fitted, as far as the firmware says; else usable
	Modules []string   `json:"modules,omitempty"` // "16 × 64 GiB Samsung"
	Origins []Origin   `json:"origins,omitempty"`
}

// NUMANode is one NUMA node (sys/devices/system/node/nodeN).
type NUMANode struct {
	ID        int      `json:"id"`
	CPUs      CPUSet   `json:"cpus"`
	Distances []int    `json:"distances,omitempty"` // to each online node, 10 = itself
	Package   Opt[int] `json:"package,omitzero"`    // physical_package_id of its first CPU
	Extra     []Attr   `json:"extra,omitempty"`
	Origins   []Origin `json:"origins,omitempty"`
}

// PCIDevice is one PCI function. Field comments name the sysfs file below
// sys/bus/pci/devices/ADDR.
type PCIDevice struct {
	Addr      BDF           `json:"addr"`
	Parent    Opt[BDF]      `json:"parent"`               // bridge directly above; unknown on a root bus
	Root      string        `json:"root,omitempty"`       // root bus, "pci0000:14"; "" = not seen
	Class     Opt[PCIClass] `json:"class"`                // class
	Vendor    Opt[PCIID]    `json:"vendor"`               // vendor
	Device    Opt[PCIID]    `json:"device"`               // device
	SubVendor Opt[PCIID]    `json:"subvendor,omitzero"`   // subsystem_vendor
	SubDevice Opt[PCIID]    `json:"subdevice,omitzero"`   // subsystem_device
	NUMA      Opt[int]      `json:"numa"`                 // numa_node
	NUMANone  bool          `json:"numa_none,omitempty"`  // numa_node is -1: the platform does not say
	CPUs      CPUSet        `json:"cpus,omitempty"`       // local_cpulist
	Current   PCIeLink      `json:"current_link"`         // current_link_speed, current_link_width
	Max       PCIeLink      `json:"max_link"`             // max_link_speed, max_link_width
	Driver    string        `json:"driver,omitempty"`     // driver -> …/NAME
	Runtime   string        `json:"runtime_pm,omitempty"` // power/runtime_status
	PhysFn    Opt[BDF]      `json:"physfn,omitzero"`      // physfn -> ADDR: this is a virtual function
	IOMMU     string        `json:"iommu_type,omitempty"` // iommu_group/type
	ACS       Opt[uint16]   `json:"acs_control,omitzero"` // config, ACS control register (ACS…); 0 where there is no such capability
	ATS       Opt[bool]     `json:"ats,omitzero"`         // config, address translation service enabled
	Errors    *PCIeCounters `json:"aer,omitempty"`        // aer_dev_correctable, aer_dev_nonfatal, aer_dev_fatal
	Extra     []Attr        `json:"extra,omitempty"`
	Origins   []Origin      `json:"origins,omitempty"`
}

// Bits of PCIDevice.ACS (PCI Express Base Specification, ACS Control Register).
const (
	ACSRequestRedirect    = 1 << 2 // requests between devices below take the way over the root complex
	ACSCompletionRedirect = 1 << 3 // their answers too
	ACSDirectTranslated   = 1 << 6 // except requests whose address ATS has translated
)

// GPU is one NVIDIA GPU, as its driver or a topology source names it.
type GPU struct {
	Index       Opt[int]      `json:"index"` // NVML index, which is NCCL's dev
	UUID        string        `json:"uuid,omitempty"`
	Addr        Opt[BDF]      `json:"addr"`
	Name        string        `json:"name,omitempty"`
	Device      Opt[PCIID]    `json:"pci_device,omitzero"` // PCI device id, where the driver states it
	CC          Opt[int]      `json:"compute_capability"`  // ×10: 90 is sm_90
	PState      Opt[int]      `json:"pstate"`              // 0 = maximum performance
	Utilization Opt[int]      `json:"utilization"`         // percent
	Events      Opt[uint64]   `json:"clocks_event_reasons,omitzero"`
	Current     PCIeLink      `json:"current_link"`            // as the GPU's driver reports it
	Max         PCIeLink      `json:"max_link"`                // device and system together
	BoardMax    PCIeLink      `json:"board_max_link,omitzero"` // the board alone
	NVLinks     Opt[[]NVLink] `json:"nvlinks"`                 // known and empty: it has none
	Fabric      *Fabric       `json:"fabric,omitempty"`        // NVSwitch fabric registration
	MIG         Opt[bool]     `json:"mig"`                     //
	ModuleID    Opt[int]      `json:"module_id,omitzero"`      // socket on the base board
	Replays     Opt[uint64]   `json:"pcie_replays,omitzero"`   // lifetime total
	PCIe        *PCIeCounters `json:"pcie_counters,omitempty"` // errors and bytes on its PCIe link
	BAR1        Opt[int64]    `json:"bar1_bytes,omitzero"`     // the part of its memory that others can address
	ComputeMode string        `json:"compute_mode,omitempty"`  // default, exclusive process, prohibited; "" = unknown
	Persistence Opt[bool]     `json:"persistence_mode,omitzero"`
	ECC         *ECC          `json:"ecc,omitempty"`
	Remapped    *RemappedRows `json:"remapped_rows,omitempty"`
	Recovery    string        `json:"recovery_action,omitempty"` // what the driver asks for: none, reset, reboot, drain P2P, …
	LinkCounts  *NVLinkCounts `json:"nvlink_counters,omitempty"`
	Peers       PeerList      `json:"peers,omitempty"` // driver's P2P status per peer
	GDR         Opt[bool]     `json:"gdr,omitzero"`    // GPUDirect RDMA, as a topology file claims it
	Rank        Opt[int]      `json:"rank,omitzero"`   // communicator rank in a topology dump
	C2C         *C2C          `json:"c2c,omitempty"`   // chip-to-chip link to the CPU

	// The CPUs near the GPU that the asking process may use, and their NUMA
	// node, as the driver reports them.
	CPUAffinity  CPUSet   `json:"cpu_affinity,omitempty"`
	NUMAAffinity Opt[int] `json:"numa_affinity,omitzero"`

	Extra   []Attr   `json:"extra,omitempty"`
	Origins []Origin `json:"origins,omitempty"`
}

// ClockEventIdle is the bit of GPU.Events that says nothing runs
// (NVML nvmlClocksEventReasonGpuIdle).
const ClockEventIdle = 1

// Bits of GPU.Events that say hardware holds the clocks down (NVML
// nvmlClocksEventReason…): a fault of power or cooling. HWSlowdown is set with
// either of the other two and for reasons of its own.
const (
	ClockEventHWSlowdown   = 0x08
	ClockEventHWThermal    = 0x40
	ClockEventHWPowerBrake = 0x80
)

// Busy reports whether the GPU is known to be at work: P0 with utilisation or
// without the idle reason. A GPU whose load is not known is not busy.
func (g GPU) Busy() bool {
	p, ok := g.PState.Get()
	if !ok || p != 0 {
		return false
	}
	ev, evKnown := g.Events.Get()
	return g.Utilization.Or(0) > 0 || evKnown && ev&ClockEventIdle == 0
}

// NVLink is one NVLink port of a GPU.
type NVLink struct {
	Link       int       `json:"link"`                        // NVML's link number; the ordinal where a source only counts links
	State      string    `json:"state"`                       // LinkUp or LinkDown
	Generation Opt[int]  `json:"generation"`                  // 1 to 6
	Signal     Opt[Rate] `json:"signal_bytes_per_s,omitzero"` // raw signalling rate, one direction
	RemoteKind string    `json:"remote"`                      // RemoteGPU, RemoteSwitch, RemoteCPU; "" = unknown
	Remote     Opt[BDF]  `json:"remote_addr"`                 // unknown where a hypervisor hides it
	Caps       Opt[int]  `json:"caps,omitzero"`               // LinkCap… added up
}

// States and remote kinds of an NVLink.
const (
	LinkUp       = "up"
	LinkDown     = "down"
	RemoteGPU    = "gpu"
	RemoteSwitch = "nvswitch"
	RemoteCPU    = "cpu"
)

// Bits of NVLink.Caps (NVML_NVLINK_CAP_*): what the link may carry, and whether
// the board uses it at all.
const (
	LinkCapP2P           = 1 << iota // traffic between GPUs; NCCL skips a link without it
	LinkCapSysmem                    // access to system memory
	LinkCapP2PAtomics                //
	LinkCapSysmemAtomics             //
	LinkCapSLI                       //
	LinkCapValid                     // the link is supported on this device
)

// NVLinkCounts holds what a GPU counts on its NVLinks, one column for each
// counter; one that the GPU does not have is an empty column. All are totals, so
// only a difference between two readings says that something happens now.
type NVLinkCounts struct {
	// NVLink 1 to 4, since the driver was loaded.
	Replay   LinkColumn `json:"replay,omitempty"`
	Recovery LinkColumn `json:"recovery,omitempty"`
	CRCFlit  LinkColumn `json:"crc_flit,omitempty"`
	CRCData  LinkColumn `json:"crc_data,omitempty"`

	// NVLink 5, packets unless the name says otherwise.
	Malformed        LinkColumn `json:"malformed,omitempty"`
	BufferOverrun    LinkColumn `json:"buffer_overrun,omitempty"`
	RcvErrors        LinkColumn `json:"rcv_errors,omitempty"`
	RcvRemoteErrors  LinkColumn `json:"rcv_remote_errors,omitempty"`
	RcvGeneralErrors LinkColumn `json:"rcv_general_errors,omitempty"`
	IntegrityErrors  LinkColumn `json:"local_integrity_errors,omitempty"` // times over the threshold
	XmitDiscards     LinkColumn `json:"xmit_discards,omitempty"`
	Recovered        LinkColumn `json:"recovery_successful,omitempty"` // events
	RecoveryFailed   LinkColumn `json:"recovery_failed,omitempty"`     // events, each a link that went down
	EffectiveErrors  LinkColumn `json:"effective_errors,omitempty"`    // errors left after correction
	EffectiveBER     LinkColumn `json:"effective_ber,omitempty"`       // as NVML packs it, see NVLinkBER
	SymbolErrors     LinkColumn `json:"symbol_errors,omitempty"`
	SymbolBER        LinkColumn `json:"symbol_ber,omitempty"` // as NVML packs it, see NVLinkBER

	// KiB carried, by direction as the GPU sees it; raw includes the protocol.
	DataTX LinkColumn `json:"data_tx_kib,omitempty"`
	DataRX LinkColumn `json:"data_rx_kib,omitempty"`
	RawTX  LinkColumn `json:"raw_tx_kib,omitempty"`
	RawRX  LinkColumn `json:"raw_rx_kib,omitempty"`
}

// LinkColumn is one counter of all NVLinks of a GPU: element i belongs to link
// number i, and a single element to every link. See [LinkColumn.At].
type LinkColumn []Opt[uint64]

// ECC is a GPU's memory protection and what it has caught in all memories
// together. Volatile totals count since the driver was loaded, aggregate ones
// over the GPU's life.
type ECC struct {
	Enabled              Opt[bool]   `json:"enabled"`
	Pending              Opt[bool]   `json:"pending,omitzero"` // mode after the next reboot, if it differs
	VolatileCorrected    Opt[uint64] `json:"volatile_corrected,omitzero"`
	VolatileUncorrected  Opt[uint64] `json:"volatile_uncorrected,omitzero"`
	AggregateCorrected   Opt[uint64] `json:"aggregate_corrected,omitzero"`
	AggregateUncorrected Opt[uint64] `json:"aggregate_uncorrected,omitzero"`
}

// RemappedRows are rows of a GPU's memory that were replaced by spare ones, by
// the kind of error that condemned them.
type RemappedRows struct {
	Corrected   int  `json:"corrected"`
	Uncorrected int  `json:"uncorrected"`
	Pending     bool `json:"pending"` // done at the next reset
	Failure     bool `json:"failure"` // a row could not be replaced
}

// PCIeCounters is what a function, or a GPU's driver, counts on its PCIe link.
type PCIeCounters struct {
	// Errors since boot. Those of sysfs leave out what enumeration causes:
	// unsupported requests, and the advisory errors that stand for them.
	Correctable Opt[uint64] `json:"correctable,omitzero"`
	NonFatal    Opt[uint64] `json:"nonfatal,omitzero"`
	Fatal       Opt[uint64] `json:"fatal,omitzero"`
	// GPUs: bytes modulo 2³²: a fast link wraps them within 80 ms.
	TX Opt[uint64] `json:"tx_bytes,omitzero"`
	RX Opt[uint64] `json:"rx_bytes,omitzero"`
}

// C2C is NVLink-C2C between a GPU and its CPU.
type C2C struct {
	Links   int  `json:"links"`
	PerLink Rate `json:"per_link_bytes_per_s"`
}

// Fabric is a GPU's registration with the NVSwitch fabric.
type Fabric struct {
	State       string      `json:"state"`  // not supported, not started, in progress, completed
	Status      Opt[int]    `json:"status"` // NVML return code of the registration, 0 = success
	ClusterUUID string      `json:"cluster_uuid,omitempty"`
	CliqueID    Opt[uint32] `json:"clique_id,omitzero"`
	HealthMask  Opt[uint32] `json:"health_mask,omitzero"`
	Health      string      `json:"health,omitempty"` // the driver's summary: healthy, unhealthy, limited capacity
}

// PeerAccess is the driver's P2P status between this GPU and another.
type PeerAccess struct {
	GPU        int    `json:"gpu"`        // index of the other GPU
	Capability string `json:"capability"` // read, write, nvlink, atomics, pci
	Status     string `json:"status"`     // ok, or the driver's reason
}

// NVSwitch is one NVSwitch chip that the host can see.
type NVSwitch struct {
	Addr    BDF      `json:"addr"`
	Origins []Origin `json:"origins,omitempty"`
}

// HCA is one RDMA device (sys/class/infiniband/NAME).
type HCA struct {
	Name         string    `json:"name"`
	Addr         Opt[BDF]  `json:"addr"`
	NodeGUID     string    `json:"node_guid,omitempty"`      // node_guid
	SysImageGUID string    `json:"sys_image_guid,omitempty"` // sys_image_guid: one per adapter
	Board        string    `json:"board,omitempty"`          // board_id
	Firmware     string    `json:"firmware,omitempty"`       // fw_ver
	Ports        []HCAPort `json:"ports"`
	NetDevs      []string  `json:"netdevs,omitempty"`
	NCCLDev      Opt[int]  `json:"nccl_dev,omitzero"` // plugin index in a topology file
	GDR          Opt[bool] `json:"gdr,omitzero"`      // GPUDirect RDMA, as a topology file claims it
	Extra        []Attr    `json:"extra,omitempty"`
	Origins      []Origin  `json:"origins,omitempty"`
}

// HCAPort is one port (sys/class/infiniband/NAME/ports/N).
type HCAPort struct {
	Port      int       `json:"port"`
	LinkLayer string    `json:"link_layer,omitempty"` // InfiniBand or Ethernet
	State     string    `json:"state,omitempty"`      // ACTIVE, DOWN, INIT, …; "" = unknown
	PhysState string    `json:"phys_state,omitempty"` // LinkUp, Polling, Disabled, …
	Rate      Opt[Rate] `json:"rate_bytes_per_s"`     // 400 Gb/sec is 50e9; means nothing unless ACTIVE
	RateText  string    `json:"rate_text,omitempty"`  // as the kernel prints it
	LID       string    `json:"lid,omitempty"`
	GIDs      []GID     `json:"gids,omitempty"` // entries that are not empty
	// Counters are the error counters among counters/ and hw_counters/, by name;
	// totals since the driver was loaded.
	Counters []Counter `json:"counters,omitempty"`
}

// Counter is one counter under its own name.
type Counter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// Active reports a port whose state is known and ACTIVE.
func (p HCAPort) Active() bool { return p.State == PortActive }

// PortActive is the state of a port that carries traffic.
const PortActive = "ACTIVE"

// GID is one entry of a port's GID table.
type GID struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type,omitempty"`   // IB/RoCE v1, RoCE v2
	NetDev string `json:"netdev,omitempty"` // gid_attrs/ndevs
}

// NetDev is one network interface (sys/class/net/NAME).
type NetDev struct {
	Name    string    `json:"name"`
	Addr    Opt[BDF]  `json:"addr"`              // PCI function below it, if any
	Virtual bool      `json:"virtual,omitempty"` // no device behind it: lo, docker0, veth…
	State   string    `json:"state,omitempty"`   // operstate
	Carrier Opt[bool] `json:"carrier,omitzero"`  // carrier
	Speed   Opt[Rate] `json:"speed_bytes_per_s"` // speed, Mb/s
	MTU     Opt[int]  `json:"mtu,omitzero"`      // mtu
	Bond    *Bond     `json:"bond,omitempty"`    // bonding/: it joins other interfaces
	NCCLDev Opt[int]  `json:"nccl_dev,omitzero"` // plugin index in a topology file
	Extra   []Attr    `json:"extra,omitempty"`   //
	Origins []Origin  `json:"origins,omitempty"` //
}

// Bond is how an interface joins others (sys/class/net/NAME/bonding).
type Bond struct {
	Mode   string   `json:"mode"` // 802.3ad, balance-xor, active-backup, …
	Slaves []string `json:"slaves"`
}

// Relation is one cell of nvidia-smi topo -m. A and B are GPU0, GPU1, … or an
// HCA's name.
type Relation struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	Code    string   `json:"code"` // NV18, PIX, PXB, PHB, NODE, SYS
	Origins []Origin `json:"origins,omitempty"`
}

// Settings are facts about the system that are no device.
type Settings struct {
	Cmdline string    `json:"cmdline,omitempty"` // proc/cmdline
	IOMMU   Opt[bool] `json:"iommu_active"`      // sys/class/iommu has entries
	CC      Opt[bool] `json:"confidential_computing,omitzero"`
	Modules []Module  `json:"modules,omitempty"`
	// OpenModule: the NVIDIA kernel modules are the open ones (proc/driver/nvidia/version).
	OpenModule Opt[bool] `json:"open_kernel_module,omitzero"`
	// PeerMemory names the kernel modules that give RDMA adapters access to GPU
	// memory (sys/kernel/mm/memory_peers); known and empty: none.
	PeerMemory Opt[[]string] `json:"peer_memory,omitzero"`
	// CPUs are those that this process, or its control group, may use.
	CPUs      CPUSet   `json:"allowed_cpus,omitempty"`
	Guest     []Mark   `json:"guest_marks,omitempty"`     // signs of a hypervisor
	Container []Mark   `json:"container_marks,omitempty"` // signs of a container
	Origins   []Origin `json:"origins,omitempty"`
}

// Module is a kernel module (sys/module/NAME/version).
type Module struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Mark is a sign of a guest or a container, with the place where it stands.
type Mark struct {
	What   string `json:"what"`
	Origin Origin `json:"origin"`
}

// Runtime is the software that NCCL meets.
type Runtime struct {
	Driver  string   `json:"driver,omitempty"` // NVIDIA driver version
	NVML    string   `json:"nvml,omitempty"`   // NVML version
	NCCL    string   `json:"nccl,omitempty"`   // NCCL version, where a source states it
	Origins []Origin `json:"origins,omitempty"`
}

// TopoFile is what a topology file (a candidate for NCCL_TOPO_FILE) claims.
type TopoFile struct {
	File   string     `json:"file"`
	Claims *Inventory `json:"claims"`
}

// FileFault is a place in a topology file that NCCL does not read as it is meant.
type FileFault struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Msg  string `json:"msg"`
	// Assumes is what NCCL takes instead; "" = it refuses the file.
	Assumes string `json:"assumes,omitempty"`
}

// Attr is an attribute that a reader met and does not know; it is kept.
type Attr struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
