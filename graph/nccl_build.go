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

// NCCL returns the topology as NCCL would model it.
func (t *Topology) NCCL(o NCCLOptions) (*NCCLView, error) { return NCCLDomain([]*Topology{t}, o) }

// NCCLDomain returns the hosts of one NVLink domain as NCCL would model them
// together (MNNVL): NVLink joins their GPUs, nothing else joins the hosts.
// o.GPUs holds for each host.
func NCCLDomain(hosts []*Topology, o NCCLOptions) (*NCCLView, error) {
	b := ncclBuilder{v: &NCCLView{Options: o, NVS: -1, Hosts: len(hosts)}, nodes: map[*Node]int{}}
	for host, t := range hosts {
		b.t, b.host, b.cpus, b.first = t, host, map[int]int{}, len(b.v.GPUs)
		if err := b.gpus(); err != nil {
			return nil, err
		}
		b.processor()
		ports := b.join(b.ports())
		before := b.treeOrder(ports)
		b.placeGPUs(before)
		b.nvlinks()
		b.placeNets(ports, before)
		b.mesh()
		b.countOn()
	}
	b.order()
	b.paths(b.v)
	b.group()
	return b.v, nil
}

type ncclBuilder struct {
	v        *NCCLView
	nodes    map[*Node]int
	switches int

	// Of the host that is being added.
	t     *Topology
	host  int
	first int           // its first place in v.GPUs
	found []*Node       // its GPUs, by dev number
	devs  map[*Node]int // of its GPUs
	cpus  map[int]int   // by NUMA node
	cpu0  NCCLProcessor

	gpuBase, netBase int // what its dev numbers are counted on from
}

// countOn sets where the numbers of the next host begin.
func (b *ncclBuilder) countOn() {
	for _, n := range b.v.Nodes {
		switch n.Kind {
		case NCCLGPU:
			b.gpuBase = max(b.gpuBase, n.ID+1)
		case NCCLNET:
			b.netBase = max(b.netBase, n.ID+1)
		}
	}
}

func (b *ncclBuilder) assume(subject, format string, args ...any) {
	a := NCCLAssumption{subject, fmt.Sprintf(format, args...)}
	if !slices.Contains(b.v.Assumptions, a) {
		b.v.Assumptions = append(b.v.Assumptions, a)
	}
}

func (b *ncclBuilder) add(n NCCLNode) int {
	n.Host = b.host
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
	b.found, b.devs = nil, map[*Node]int{}
	for _, dev := range devs {
		b.found = append(b.found, byDev[dev])
		b.devs[byDev[dev]] = dev
	}
	return nil
}

// placeGPUs puts the GPUs into the graph, and what they hang on.
func (b *ncclBuilder) placeGPUs(before func(x, y *Node) int) {
	order := slices.Clone(b.found)
	slices.SortStableFunc(order, before)
	for _, n := range order {
		b.v.GPUs = append(b.v.GPUs, b.add(NCCLNode{Kind: NCCLGPU, ID: b.gpuBase + b.devs[n], Dev: b.devs[n], CC: n.GPU.CC, Node: n}))
	}
	for _, g := range b.v.GPUs[b.first:] {
		b.attach(g, b.v.Nodes[g].Node)
	}
}

// processor classes the host's processors. NCCL asks each NUMA node; on real
// hosts they are alike.
func (b *ncclBuilder) processor() {
	var assumed string
	cpus := b.t.Inv.CPUs
	if len(cpus) == 0 {
		cpus = []probe.CPU{{}}
	}
	b.cpu0, assumed = ncclProcessor(cpus[0], b.v.Options.Version)
	if b.host == 0 {
		b.v.Processor = b.cpu0
	}
	if assumed != "" {
		b.assume("host", "%s", assumed)
	}
	for _, c := range cpus[1:] {
		if p, _ := ncclProcessor(c, b.v.Options.Version); p != b.cpu0 {
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
	above := b.above(n)
	for _, l := range b.t.Between(n, n.Up) {
		if l.Kind == PCIe && l.Share() > 0 {
			gbs := b.pcieGBs(n, l)
			b.link(at, above, NCCLLinkPCI, gbs, gbs, l)
		}
	}
	for _, l := range b.t.LinksOf(n) {
		if l.Kind == C2CLink && l.Share() > 0 {
			gbs := l.Max.Or(0).GBs() * l.Share()
			b.link(at, b.cpu(l.Other(n)), NCCLLinkC2C, gbs, gbs, l)
		}
	}
	return true
}

// above returns the switch or NUMA node that a device or switch hangs on.
func (b *ncclBuilder) above(n *Node) int {
	up := n.Up
	for up.Kind == KindSwitch && up.Up != nil && up.Up.Kind == KindSwitch && oneBroadcomSwitch(up.Up, up) {
		up = up.Up
	}
	if up.Kind == KindNUMA {
		return b.cpu(up)
	}
	above, known := b.nodes[up]
	if !known {
		above = b.add(NCCLNode{Kind: NCCLPCI, ID: b.switches, Node: up})
		b.switches++
		b.attach(above, up)
	}
	return above
}

func (b *ncclBuilder) pcieGBs(n *Node, l *Link) float64 {
	gbs, assumed := NCCLPCIeGBs(b.pcie(n, l))
	if assumed != "" {
		b.assume(n.Key, "%s", assumed)
	}
	return gbs * l.Share()
}

// pcie is the link that NCCL plans with: the lower maximum of both ends, and from
// 2.30.7 on for GPUs the current link (NCCL 2.30.7 xml.cc:663-728). A GPU that
// idles has lowered its speed, not its width; NCCL asks when the job has woken it.
func (b *ncclBuilder) pcie(n *Node, l *Link) probe.PCIeLink {
	link := l.PCIeMax
	if n.Kind != KindGPU || !b.v.Options.Version.AtLeast(30, 7) {
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

// mesh joins all NUMA nodes with each other: NCCL knows neither the links
// between sockets nor nodes within one (NCCL 2.30.7 topo.cc:270-283).
func (b *ncclBuilder) mesh() {
	ids := b.numaIDs()
	gbs := b.cpu0.GBs
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
