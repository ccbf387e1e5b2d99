package graph

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// NCCLOptions are the settings that change what NCCL sees of a host.
type NCCLOptions struct {
	GPUs     []int     // NCCL dev numbers that the job sees; empty: all
	NoP2P    bool      // the driver refuses peer access between GPUs, as for GeForce boards
	P2PLevel PathClass // NCCL_P2P_LEVEL; LOC is NCCL_P2P_DISABLE=1, Unknown is NCCL's default
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
	ID   int            // NCCL dev of a GPU or NET, NUMA node of a CPU (-1 unknown), else an ordinal
	CC   probe.Opt[int] // compute capability ×10, of a GPU
	Node *Node          // the thing it stands for; nil for NVS and CPU -1

	out []int // links that leave it, in the order in which NCCL tries them
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

// NCCLPath is the way that NCCL takes from GPU A to GPU B (NCCL dev numbers).
type NCCLPath struct {
	A     int       `json:"a"`
	B     int       `json:"b"`
	Class PathClass `json:"class"`
	GBs   float64   `json:"bw_gbs"` // the slowest link's
	Hops  int       `json:"hops"`   // as NCCL 2.30.7 counts: one more at each end than links
	Links []int     `json:"-"`      // indexes of NCCLView.Links, from A to B
	P2P   bool      `json:"-"`      // false: through host memory
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

// NCCLView is the host as NCCL's model sees it: GB/s as NCCL counts them, one
// direction. It is immutable.
type NCCLView struct {
	Nodes []NCCLNode
	Links []NCCLLink // both directions side by side: Links[i^1] is the reverse of Links[i]
	GPUs  []int      // node indexes, by NCCL dev number
	Nets  []int      // node indexes, by NCCL dev number
	// Groups holds the positions in GPUs that NCCL takes for one node. More than
	// one group: between them the network is faster than the way through the
	// host, and NCCL treats the groups as different nodes.
	Groups      [][]int
	Processor   NCCLProcessor
	Options     NCCLOptions
	Assumptions []NCCLAssumption

	paths [][]NCCLPath // from, to: positions in GPUs
}

// Path returns the path between two GPUs, given by their positions in v.GPUs.
// Its class is DIS where nothing is known to join them.
func (v *NCCLView) Path(from, to int) NCCLPath { return v.paths[from][to] }

// Paths returns all paths between different GPUs, in order.
func (v *NCCLView) Paths() []NCCLPath {
	out := make([]NCCLPath, 0, len(v.GPUs)*len(v.GPUs))
	for i, row := range v.paths {
		out = append(append(out, row[:i]...), row[i+1:]...)
	}
	return out
}

// Dev returns the NCCL dev number of the GPU at a position of v.GPUs.
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

// NCCLLocalGBs is the bandwidth of what costs nothing: a GPU to itself, a
// virtual NIC to its CPU (LOC_BW, NCCL 2.30.7 topo.h:17).
const NCCLLocalGBs = 5000

// ncclPCIeLane is NCCL's figure per lane in units of 1/80 GB/s, by PCIe
// generation (kvDictPciGen, NCCL 2.30.7 topo.cc:545-557): about 80 % of the
// encoded rate.
var ncclPCIeLane = [...]float64{1: 15, 2: 30, 3: 60, 4: 120, 5: 240, 6: 480}

// What NCCL takes where speed or width are not known (topo.cc:545-557, 656).
const (
	ncclDefaultGen   = 3
	ncclDefaultWidth = 16
)

// NCCLPCIeGBs is NCCL's bandwidth of a PCIe link in GB/s: width × lane / 80
// (NCCL 2.30.7 topo.cc:656). assumed names what was not known and replaced by
// NCCL's default, "" if nothing.
func NCCLPCIeGBs(l probe.PCIeLink) (gbs float64, assumed string) {
	var what []string
	gen := l.Speed.Or(0).Gen()
	if gen == 0 {
		gen = ncclDefaultGen
		what = append(what, fmt.Sprintf("link speed unknown: NCCL takes Gen%d", gen))
	}
	width := l.Width.Or(0)
	if width <= 0 {
		width = ncclDefaultWidth
		what = append(what, fmt.Sprintf("link width unknown: NCCL takes x%d", width))
	}
	return float64(width) * ncclPCIeLane[gen] / 80, strings.Join(what, "; ")
}

// NCCLNVLinkGBs is NCCL's bandwidth of one NVLink in GB/s by compute capability
// ×10 (NCCL 2.30.7 topo.h:17-39): about 80 % of the data sheet's.
func NCCLNVLinkGBs(cc int) float64 {
	switch {
	case cc >= 100:
		return 40.1
	case cc >= 90:
		return 20.6
	case cc == 86:
		return 12.0
	case cc >= 70:
		return 20.0
	case cc >= 60:
		return 18.0
	}
	return 20.0 // below sm_60 NCCL falls through to its sm_80 value
}

// nvlinkCC stands for an unknown compute capability: one whose NVLinks are of
// the generation.
var nvlinkCC = [...]int{1: 60, 2: 70, 3: 80, 4: 90, 5: 100, 6: 100}

// ncclProcessor classes a processor (constants NCCL 2.30.7 topo.h:17-39, Intel
// and Zhaoxin models topo.cc:744-751). assumed says what was not known.
func ncclProcessor(c probe.CPU) (p NCCLProcessor, assumed string) {
	p.Arch = c.Arch
	family, model := c.Family.Or(0), c.Model.Or(0)
	switch {
	case c.Arch == "arm64" || c.Arch == "aarch64":
		p.Name, p.GBs = "Arm", 6
	case strings.HasPrefix(c.Arch, "ppc64"):
		p.Name, p.GBs = "POWER", 32
	case c.Vendor == "GenuineIntel":
		p.Intel = true
		p.Name, p.GBs = "Intel Broadwell or older", 6
		switch {
		case !c.Family.Known() || !c.Model.Known():
			assumed = "processor family or model unknown: NCCL's lowest Intel class, 6 GB/s between NUMA nodes, is taken"
			p.Name = "Intel"
		case family != 6:
		case model >= 0xcf:
			p.Name, p.GBs = "Intel Emerald Rapids or newer", 40
		case model >= 0x8f:
			p.Name, p.GBs = "Intel Sapphire Rapids", 22
		case model >= 0x55:
			p.Name, p.GBs = "Intel Skylake to Ice Lake", 10
		}
	case c.Vendor == "AuthenticAMD":
		p.AMD = true
		p.Name, p.GBs = "AMD", 16
	case c.Vendor == "CentaurHauls" || strings.TrimSpace(c.Vendor) == "Shanghai":
		p.Name, p.GBs = "Zhaoxin", 6
		if family == 7 && model == 0x5b {
			p.Name, p.GBs = "Zhaoxin Yongfeng", 9
		}
	case c.Vendor == "":
		p.Name, p.GBs = "unknown", 6
		assumed = "processor vendor unknown: 6 GB/s between NUMA nodes, the least that NCCL gives any, is taken"
	default:
		p.Name, p.GBs = c.Vendor, NCCLLocalGBs // NCCL does not bound other x86 vendors
	}
	return p, assumed
}

// NCCL returns the topology as NCCL 2.30.7 would model it.
func (t *Topology) NCCL(o NCCLOptions) (*NCCLView, error) {
	b := ncclBuilder{t: t, v: &NCCLView{Options: o}, nodes: map[*Node]int{}, cpus: map[int]int{}, nvs: -1}
	if err := b.gpus(); err != nil {
		return nil, err
	}
	b.processor()
	for _, g := range b.v.GPUs {
		b.attach(g, b.v.Nodes[g].Node)
	}
	b.nvlinks()
	b.nets()
	b.mesh()
	b.order()
	b.paths()
	return b.v, nil
}

type ncclBuilder struct {
	t        *Topology
	v        *NCCLView
	nodes    map[*Node]int
	cpus     map[int]int // by NUMA node
	nvs      int         // -1: none yet
	switches int
}

func (b *ncclBuilder) assume(subject, format string, args ...any) {
	a := NCCLAssumption{subject, fmt.Sprintf(format, args...)}
	if !slices.Contains(b.v.Assumptions, a) {
		b.v.Assumptions = append(b.v.Assumptions, a)
	}
}

func (b *ncclBuilder) add(n NCCLNode) int {
	b.v.Nodes = append(b.v.Nodes, n)
	if n.Node != nil {
		b.nodes[n.Node] = len(b.v.Nodes) - 1
	}
	return len(b.v.Nodes) - 1
}

// link joins two nodes in both directions; what joins them already is added to.
func (b *ncclBuilder) link(from, to int, kind NCCLLinkType, there, back float64, physical ...*Link) {
	for i := range b.v.Links {
		if l := &b.v.Links[i]; l.From == from && l.To == to && l.Type == kind {
			r := &b.v.Links[i^1]
			l.GBs, r.GBs = tidy(l.GBs+there), tidy(r.GBs+back)
			l.Physical = append(l.Physical, physical...)
			r.Physical = l.Physical
			return
		}
	}
	b.v.Links = append(b.v.Links,
		NCCLLink{From: from, To: to, Type: kind, GBs: tidy(there), Physical: physical},
		NCCLLink{From: to, To: from, Type: kind, GBs: tidy(back), Physical: physical})
}

// tidy drops what adding up decimal fractions leaves: 18 × 20.6 is 370.8.
func tidy(gbs float64) float64 { return math.Round(gbs*1e6) / 1e6 }

// gpus numbers the GPUs by NVML index, which is NCCL's dev. Those without one
// take the free numbers in presentation order.
func (b *ncclBuilder) gpus() error {
	byDev := map[int]*Node{}
	var rest []*Node
	for _, n := range b.t.Of(KindGPU) {
		dev, ok := n.GPU.Index.Get()
		if !ok || byDev[dev] != nil {
			rest = append(rest, n)
			continue
		}
		byDev[dev] = n
	}
	next := 0
	for _, n := range rest {
		for byDev[next] != nil {
			next++
		}
		byDev[next] = n
		b.assume(n.Key, "dev number unknown: %d is taken, by its place in the list", next)
	}
	devs := slices.Sorted(maps.Keys(byDev))
	if want := b.v.Options.GPUs; len(want) > 0 {
		want = slices.Compact(slices.Sorted(slices.Values(want)))
		for _, dev := range want {
			if byDev[dev] == nil {
				return fmt.Errorf("GPU %d: the host has no GPU of this number, only %v", dev, devs)
			}
		}
		devs = want
	}
	for _, dev := range devs {
		n := byDev[dev]
		b.v.GPUs = append(b.v.GPUs, b.add(NCCLNode{Kind: NCCLGPU, ID: dev, CC: n.GPU.CC, Node: n}))
	}
	return nil
}

// processor classes the host's processors. NCCL asks each NUMA node; on real
// hosts they are alike.
func (b *ncclBuilder) processor() {
	var assumed string
	cpus := b.t.Inv.CPUs
	if len(cpus) == 0 {
		cpus = []probe.CPU{{}}
	}
	b.v.Processor, assumed = ncclProcessor(cpus[0])
	if assumed != "" {
		b.assume("host", "%s", assumed)
	}
	for _, c := range cpus[1:] {
		if p, _ := ncclProcessor(c); p != b.v.Processor {
			b.assume("host", "processors of different kind: all links between NUMA nodes are taken as those of package %d", cpus[0].Package)
			return
		}
	}
}

// cpu returns the node of a NUMA node. Where it is unknown NCCL has one CPU -1
// for the whole host, however many there are.
func (b *ncclBuilder) cpu(n *Node) int {
	id, err := strconv.Atoi(strings.TrimPrefix(n.Key, "numa:"))
	if err != nil {
		id = -1
		n = nil
		b.assume("host", "NUMA node of PCI functions unknown: NCCL puts them on one node (CPU -1)")
	}
	at, ok := b.cpus[id]
	if !ok {
		at = b.add(NCCLNode{Kind: NCCLCPU, ID: id, Node: n})
		b.cpus[id] = at
	}
	return at
}

// attach hangs a device or switch on the switch or NUMA node above it.
func (b *ncclBuilder) attach(at int, n *Node) bool {
	if n.Up == nil {
		return false
	}
	up := n.Up
	for up.Kind == KindSwitch && up.Up != nil && up.Up.Kind == KindSwitch && oneBroadcomSwitch(up.Up, up) {
		up = up.Up
	}
	above, known := b.nodes[up]
	switch {
	case up.Kind == KindNUMA:
		above = b.cpu(up)
	case !known:
		above = b.add(NCCLNode{Kind: NCCLPCI, ID: b.switches, Node: up})
		b.switches++
		b.attach(above, up)
	}
	for _, l := range b.t.Between(n, n.Up) {
		if l.Kind != PCIe {
			continue
		}
		gbs, assumed := NCCLPCIeGBs(b.pcie(n, l))
		if assumed != "" {
			b.assume(n.Key, "%s", assumed)
		}
		b.link(at, above, NCCLLinkPCI, gbs, gbs, l)
	}
	for _, l := range b.t.LinksOf(n) {
		if l.Kind == C2CLink {
			gbs := l.Max.Or(0).GBs()
			b.link(at, b.cpu(l.Other(n)), NCCLLinkC2C, gbs, gbs, l)
		}
	}
	return true
}

// pcie is the link that NCCL plans with: the lower maximum of both ends, and for
// GPUs the current link (NCCL 2.30.7 xml.cc:663-728). A GPU that idles has
// lowered its speed, not its width; NCCL asks when the job has woken it.
func (b *ncclBuilder) pcie(n *Node, l *Link) probe.PCIeLink {
	link := l.PCIeMax
	if n.Kind != KindGPU {
		return link
	}
	link.Width = l.PCIeMax.Min(l.PCIeCurrent).Width
	now, ok := l.PCIeCurrent.Speed.Get()
	top, known := l.PCIeMax.Speed.Get()
	switch {
	case !ok || known && now >= top:
	case !known:
		link.Speed = l.PCIeCurrent.Speed
		b.assume(n.Key, "maximum link speed unknown: the current one is taken, Gen%d", now.Gen())
	case n.GPU.Busy():
		link.Speed = l.PCIeCurrent.Speed
	default:
		b.assume(n.Key, "its link runs at Gen%d of Gen%d and it is not known to be at work: Gen%d is taken, NCCL reads the speed of the moment", now.Gen(), top.Gen(), top.Gen())
	}
	return link
}

// oneBroadcomSwitch recognises the two levels that some Broadcom switches show
// for one chip; NCCL makes them one (NCCL 2.30.7 topo.cc:195-268).
func oneBroadcomSwitch(upper, lower *Node) bool {
	generation := func(n *Node, level uint64) int {
		p := n.PCI
		if p == nil || !p.Vendor.Known() || !p.Device.Known() || !p.SubVendor.Known() || !p.SubDevice.Known() {
			return 0
		}
		id := uint64(p.Vendor.Or(0))<<48 | uint64(p.Device.Or(0))<<32 | uint64(p.SubVendor.Or(0))<<16 | uint64(p.SubDevice.Or(0))
		switch id &^ 0xfff {
		case 0x1000c0101000a000:
			return 4
		case 0x1000c03010000000 | level<<12:
			return 5
		}
		return 0
	}
	g := generation(upper, 0)
	return g != 0 && g == generation(lower, 1)
}

// nvlinks adds what is up. A link whose other end a hypervisor hides leads to an
// NVSwitch, NCCL assumes (xml.cc: class 0x068000 for an unreadable target).
func (b *ncclBuilder) nvlinks() {
	for _, at := range b.v.GPUs {
		n := b.v.Nodes[at].Node
		per := b.perNVLink(n)
		for _, l := range b.t.LinksOf(n) {
			if l.Kind != NVLink || l.State == probe.LinkDown {
				continue
			}
			switch peer := l.Other(n); peer.Kind {
			case KindNVSwitch:
				b.link(at, b.nvSwitch(), NCCLLinkNVL, per, per, l)
			case KindNUMA:
				b.link(at, b.cpu(peer), NCCLLinkNVL, per, per, l)
			case KindGPU:
				other, ok := b.nodes[peer]
				if ok && at < other { // seen from both ends
					b.link(at, other, NCCLLinkNVL, per, b.perNVLink(peer), l)
				}
			}
		}
		b.hiddenNVLinks(at, n, per)
	}
}

func (b *ncclBuilder) hiddenNVLinks(at int, n *Node, per float64) {
	links, _ := n.GPU.NVLinks.Get()
	hidden, foreign := 0, 0
	for _, l := range links {
		if l.State != probe.LinkUp || l.RemoteKind == probe.RemoteSwitch || l.RemoteKind == probe.RemoteCPU {
			continue
		}
		remote, ok := l.Remote.Get()
		switch {
		case l.RemoteKind == probe.RemoteGPU && ok && b.t.Node("gpu:"+remote.String()) != nil:
		case l.RemoteKind == probe.RemoteGPU && ok:
			foreign++
		default:
			hidden++
		}
	}
	if hidden > 0 {
		b.assume(n.Key, "the other end of %d NVLinks is not visible: NCCL takes an NVSwitch", hidden)
		b.link(at, b.nvSwitch(), NCCLLinkNVL, float64(hidden)*per, float64(hidden)*per)
	}
	if foreign > 0 {
		b.assume(n.Key, "%d NVLinks lead to GPUs that are not among those seen: NCCL leaves them out", foreign)
	}
}

func (b *ncclBuilder) perNVLink(n *Node) float64 {
	cc, ok := n.GPU.CC.Get()
	if ok {
		return NCCLNVLinkGBs(cc)
	}
	links, _ := n.GPU.NVLinks.Get()
	for _, l := range links {
		if g := l.Generation.Or(0); g > 0 && g < len(nvlinkCC) {
			b.assume(n.Key, "compute capability unknown: its NVLinks are taken as generation %d", g)
			return NCCLNVLinkGBs(nvlinkCC[g])
		}
	}
	return NCCLNVLinkGBs(80)
}

func (b *ncclBuilder) nvSwitch() int {
	if b.nvs < 0 {
		b.nvs = b.add(NCCLNode{Kind: NCCLNVS})
	}
	return b.nvs
}

// nets adds the ports that NCCL would use: those of RDMA adapters, else of
// network interfaces. A topology file lists only what NCCL uses.
func (b *ncclBuilder) nets() {
	for _, n := range b.t.Of(KindHCA) {
		if slices.Contains(n.HCA.Extra, probe.Attr{Name: "net", Value: "0"}) {
			continue // joined with another to a virtual NIC
		}
		for i, p := range n.HCA.Ports {
			if !p.Active() && p.State != "" {
				continue
			}
			if p.State == "" && !n.HCA.NCCLDev.Known() {
				b.assume(n.Key, "state of port %d unknown: taken as active", p.Port)
			}
			dev := n.HCA.NCCLDev
			if i > 0 {
				dev = probe.Opt[int]{}
			}
			b.net(n, dev, p.Rate)
		}
	}
	if len(b.v.Nets) == 0 {
		all := b.t.Of(KindNet)
		listed := slices.ContainsFunc(all, func(n *Node) bool { return n.NetDev.NCCLDev.Known() })
		for _, n := range all {
			if listed == n.NetDev.NCCLDev.Known() && (listed || n.NetDev.State == "up") {
				b.net(n, n.NetDev.NCCLDev, n.NetDev.Speed)
			}
		}
	}
	slices.SortStableFunc(b.v.Nets, func(x, y int) int { return cmp.Compare(b.v.Nodes[x].ID, b.v.Nodes[y].ID) })
}

// ncclDefaultNet is the speed of a port that states none (NCCL 2.30.7
// topo.cc:418: 10000 Mb/s).
const ncclDefaultNet = probe.Rate(1.25e9)

func (b *ncclBuilder) net(n *Node, dev probe.Opt[int], rate probe.Opt[probe.Rate]) {
	at, ok := b.nodes[n]
	if !ok {
		at = b.add(NCCLNode{Kind: NCCLNIC, ID: len(b.v.Nets), Node: n})
		if !b.attach(at, n) {
			if n.Kind != KindNet || len(b.cpus) == 0 {
				b.assume(n.Key, "its place on the PCI tree is not known: left out of NCCL's view")
				return
			}
			// NCCL hangs an interface without a PCI function on the first CPU.
			first := b.cpus[b.numaIDs()[0]]
			b.link(at, first, NCCLLinkLOC, NCCLLocalGBs, NCCLLocalGBs)
		}
	}
	if rate.Or(0) <= 0 {
		b.assume(n.Key, "port speed unknown: NCCL takes 10 Gb/s")
		rate = probe.Some(ncclDefaultNet)
	}
	gbs := rate.Or(0).GBs()
	net := b.add(NCCLNode{Kind: NCCLNET, ID: dev.Or(len(b.v.Nets))})
	b.v.Nodes[net].Node = n
	b.v.Nets = append(b.v.Nets, net)
	b.link(at, net, NCCLLinkNET, gbs, gbs)
}

// mesh joins all NUMA nodes with each other: NCCL knows neither the links
// between sockets nor nodes within one (NCCL 2.30.7 topo.cc:270-283).
func (b *ncclBuilder) mesh() {
	ids := b.numaIDs()
	gbs := b.v.Processor.GBs
	for i, x := range ids {
		for _, y := range ids[i+1:] {
			b.link(b.cpus[x], b.cpus[y], NCCLLinkSYS, gbs, gbs)
		}
	}
}

func (b *ncclBuilder) numaIDs() []int { return slices.Sorted(maps.Keys(b.cpus)) }

// order sorts each node's links as NCCL does: fastest first, the PCIe link
// towards the CPU last (NCCL 2.30.7 topo.cc:168-193, 345-375). It decides
// between paths that are equal otherwise.
func (b *ncclBuilder) order() {
	v := b.v
	for i, l := range v.Links {
		v.Nodes[l.From].out = append(v.Nodes[l.From].out, i)
	}
	for i := range v.Nodes {
		up := func(l int) bool { return l&1 == 0 && v.Links[l].Type == NCCLLinkPCI } // attach links upwards first
		slices.SortStableFunc(v.Nodes[i].out, func(x, y int) int {
			return cmp.Or(cmp.Compare(btoi(up(x)), btoi(up(y))), cmp.Compare(v.Links[y].GBs, v.Links[x].GBs))
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ncclLabel is the best known way from a node to the base of a search.
type ncclLabel struct {
	class PathClass
	gbs   float64
	hops  int
	link  int        // first link of the way, leaves the node
	rest  *ncclLabel // the way from that link's other end; nil at the base
}

// better: class wins over bandwidth, bandwidth over hops (NCCL 2.30.7
// paths.cc:38-130).
func (l *ncclLabel) better(o *ncclLabel) bool {
	return o == nil || cmp.Or(cmp.Compare(l.class, o.class), cmp.Compare(o.gbs, l.gbs), cmp.Compare(l.hops, o.hops)) < 0
}

func (l *ncclLabel) links() []int {
	var out []int
	for ; l.rest != nil; l = l.rest {
		out = append(out, l.link)
	}
	return out
}

// waysTo finds the best way from every node to base.
func (v *NCCLView) waysTo(base int) []*ncclLabel {
	labels := make([]*ncclLabel, len(v.Nodes))
	labels[base] = &ncclLabel{class: LOC, gbs: NCCLLocalGBs}
	queue := []int{base}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, out := range v.Nodes[at].out {
			back := &v.Links[out^1] // the way is walked from the far end
			if back.From == base || back.GBs <= 0 {
				continue
			}
			way := labels[at]
			through := at != base && v.Nodes[at].Kind == NCCLGPU
			// A GPU relays only between two GPUs on NVLink, and only once.
			if through && (back.Type != NCCLLinkNVL || v.Nodes[back.From].Kind != NCCLGPU || way.hops > 1 || way.class != NVL) {
				continue
			}
			class := v.linkClass(back)
			if through {
				class = NVB
			}
			next := &ncclLabel{class: max(way.class, class), gbs: min(way.gbs, back.GBs), hops: way.hops + 1, link: out ^ 1, rest: way}
			if next.better(labels[back.From]) {
				labels[back.From] = next
				queue = append(queue, back.From)
			}
		}
	}
	return labels
}

func (v *NCCLView) linkClass(l *NCCLLink) PathClass {
	switch l.Type {
	case NCCLLinkNVL:
		return NVL
	case NCCLLinkC2C:
		return C2C
	case NCCLLinkSYS:
		return SYS
	case NCCLLinkPCI:
		from, to := v.Nodes[l.From].Kind, v.Nodes[l.To].Kind
		switch {
		case from == NCCLCPU || to == NCCLCPU:
			return PHB
		case from == NCCLPCI && to == NCCLPCI:
			return PXB
		}
		return PIX
	}
	return LOC
}

// paths finds the way between all GPUs, diverts pairs without peer access
// through host memory, and groups the GPUs.
func (b *ncclBuilder) paths() {
	v := b.v
	n := len(v.GPUs)
	v.paths = make([][]NCCLPath, n)
	toGPU := make([][]*ncclLabel, n)
	for j, g := range v.GPUs {
		toGPU[j] = v.waysTo(g)
	}
	toCPU := map[int][]*ncclLabel{}
	for _, c := range b.cpus {
		toCPU[c] = v.waysTo(c)
	}
	level := v.p2pLevel()
	for i, g := range v.GPUs {
		v.paths[i] = make([]NCCLPath, n)
		for j := range v.GPUs {
			p := NCCLPath{A: v.Dev(i), B: v.Dev(j), Class: DIS}
			switch way := toGPU[j][g]; {
			case i == j:
				p = NCCLPath{A: p.A, B: p.B, Class: LOC, GBs: NCCLLocalGBs, P2P: true}
			case way != nil && way.class <= level && b.peers(i, j):
				p.Class, p.GBs, p.Links, p.P2P = way.class, way.gbs, way.links(), true
			default:
				// GPU, the CPU next to its peer, peer (paths.cc:721-865).
				if cpu, ok := v.localCPU(j, toCPU); ok && toCPU[cpu][g] != nil {
					up, down := toCPU[cpu][g], toGPU[j][cpu]
					p.Class, p.GBs = max(up.class, down.class), min(up.gbs, down.gbs)
					p.Links = append(up.links(), down.links()...)
				}
			}
			if len(p.Links) > 0 {
				p.Hops = len(p.Links) + 2 // GPU to device and device to GPU
			}
			v.paths[i][j] = p
		}
	}
	v.group()
}

// p2pLevel is the worst class over which NCCL lets GPUs address each other's
// memory (NCCL 2.30.7 paths.cc:298-434).
func (v *NCCLView) p2pLevel() PathClass {
	switch {
	case v.Options.P2PLevel != Unknown:
		return v.Options.P2PLevel
	case v.Processor.AMD && len(v.GPUs) <= 2:
		return SYS
	}
	return PXB
}

// peers reports whether the driver lets two GPUs address each other's memory.
// What is unknown is allowed, as it is on all but GeForce boards.
func (b *ncclBuilder) peers(i, j int) bool {
	if b.v.Options.NoP2P {
		return false
	}
	x, y := b.v.Nodes[b.v.GPUs[i]].Node.GPU, b.v.Nodes[b.v.GPUs[j]].Node.GPU
	known := false
	for _, side := range []struct {
		of   *probe.GPU
		peer int
	}{{x, b.v.Dev(j)}, {y, b.v.Dev(i)}} {
		for _, p := range side.of.Peers {
			if p.GPU != side.peer || p.Capability != "read" && p.Capability != "write" {
				continue
			}
			known = true
			if p.Status != "ok" {
				return false
			}
		}
	}
	if !known {
		b.assume("host", "whether the driver allows peer access between the GPUs is unknown: taken as allowed")
	}
	return true
}

// localCPU is the CPU node next to a GPU: the most bandwidth, then the best
// class (NCCL 2.30.7 topo.cc:1943-1972).
func (v *NCCLView) localCPU(pos int, toCPU map[int][]*ncclLabel) (cpu int, ok bool) {
	var best *ncclLabel
	for c := range v.Nodes {
		if v.Nodes[c].Kind != NCCLCPU {
			continue
		}
		l := toCPU[c][v.GPUs[pos]]
		if l != nil && (best == nil || cmp.Or(cmp.Compare(best.gbs, l.gbs), cmp.Compare(l.class, best.class)) < 0) {
			best, cpu = l, c
		}
	}
	return cpu, best != nil
}

// group marks pairs whose way through the host is slower than each one's way to
// a NIC of its own: NCCL sends their data over the network (class NET) and takes
// them for GPUs of different nodes (NCCL 2.30.7 paths.cc:298-434, 867-911).
func (v *NCCLView) group() {
	n := len(v.GPUs)
	fastest := make([]float64, n) // way to a NIC that is PXB or nearer
	for _, net := range v.Nets {
		ways := v.waysTo(net)
		for i, g := range v.GPUs {
			if w := ways[g]; w != nil && w.class <= PXB {
				fastest[i] = max(fastest[i], w.gbs)
			}
		}
	}
	group := make([]int, n)
	for i := range group {
		group[i] = i
	}
	for i := range n {
		for j := range n {
			p := &v.paths[i][j]
			if i != j && p.GBs > 0 && fastest[i] > p.GBs && fastest[j] > p.GBs {
				p.Class, p.P2P = NET, false
			}
		}
	}
	for i := range n {
		for j := range i {
			// What nothing is known to join stays in one group: the host's wiring
			// is unknown, not its being one host.
			if p := v.paths[i][j]; p.Class != NET && group[i] != group[j] {
				from, to := max(group[i], group[j]), min(group[i], group[j])
				for k := range group {
					if group[k] == from {
						group[k] = to
					}
				}
			}
		}
	}
	for first := range n {
		var members []int
		for k, g := range group {
			if g == first {
				members = append(members, k)
			}
		}
		if members != nil {
			v.Groups = append(v.Groups, members)
		}
	}
}
