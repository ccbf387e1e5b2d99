package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph/multi"

	"github.com/ncclmap/ncclmap/probe"
)

// Build makes the topology of one host. The inventory must be valid (Build
// checks) and must not be changed afterwards. What cannot be placed becomes a
// gap, never a guess.
func Build(inv *probe.Inventory) (*Topology, error) { return BuildWhatIf(inv, WhatIf{}) }

// newBuilder places everything; finish is left to do.
func newBuilder(inv *probe.Inventory) (*builder, error) {
	if err := inv.Validate(); err != nil {
		return nil, err
	}
	b := &builder{
		t:    &Topology{Inv: inv, byKey: map[string]*Node{}},
		pci:  make(map[probe.BDF]*probe.PCIDevice, len(inv.PCI)),
		gpus: map[probe.BDF]*Node{},
	}
	for i := range inv.PCI {
		b.pci[inv.PCI[i].Addr] = &inv.PCI[i]
	}
	b.numaNodes()
	b.devices()
	b.nvlinks()
	b.relations()
	b.smp()
	return b, nil
}

type builder struct {
	t    *Topology
	pci  map[probe.BDF]*probe.PCIDevice
	gpus map[probe.BDF]*Node
}

func (b *builder) add(n *Node) *Node {
	if old := b.t.byKey[n.Key]; old != nil {
		return old
	}
	b.t.byKey[n.Key] = n
	b.t.Nodes = append(b.t.Nodes, n)
	return n
}

func (b *builder) link(l *Link) { b.t.Links = append(b.t.Links, l) }

func (b *builder) gap(what, why, how string, origins []probe.Origin) {
	b.t.Gaps = append(b.t.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: probe.OriginOf(origins, "")})
}

func (b *builder) numaNodes() {
	for i := range b.t.Inv.NUMA {
		n := &b.t.Inv.NUMA[i]
		b.add(&Node{Key: fmt.Sprintf("numa:%d", n.ID), Kind: KindNUMA, Label: fmt.Sprintf("NUMA %d", n.ID), NUMA: n})
	}
}

// numa returns the node that a function's host bridge belongs to. Functions of
// unknown NUMA node share one only if they share a root complex: two root
// complexes may sit on different sockets.
func (b *builder) numa(d *probe.PCIDevice) *Node {
	for at := d; at != nil; at = b.parent(at) {
		if id, ok := at.NUMA.Get(); ok {
			return b.add(&Node{Key: fmt.Sprintf("numa:%d", id), Kind: KindNUMA, Label: fmt.Sprintf("NUMA %d", id)})
		}
	}
	if d.Root == "" {
		return b.add(&Node{Key: "numa:unknown", Kind: KindNUMA, Label: "NUMA node unknown", Hidden: true})
	}
	return b.add(&Node{Key: "numa:unknown@" + d.Root, Kind: KindNUMA, Label: "PCI root " + strings.TrimPrefix(d.Root, "pci") + ", NUMA node unknown", Hidden: true})
}

func (b *builder) parent(d *probe.PCIDevice) *probe.PCIDevice {
	p, ok := d.Parent.Get()
	if !ok {
		return nil
	}
	return b.pci[p]
}

// devices places GPUs, HCAs and physical network interfaces, and the switches
// above them.
func (b *builder) devices() {
	inv := b.t.Inv
	for i := range inv.GPUs {
		g := &inv.GPUs[i]
		key := fmt.Sprintf("gpu:%d", g.Index.Or(i))
		if a, ok := g.Addr.Get(); ok {
			key = "gpu:" + a.String()
		}
		label := fmt.Sprintf("GPU%d", g.Index.Or(0))
		if !g.Index.Known() {
			label = "GPU " + g.Addr.String()
		}
		n := b.add(&Node{Key: key, Kind: KindGPU, Label: label, GPU: g})
		if a, ok := g.Addr.Get(); ok {
			b.gpus[a] = n
		}
		b.place(n, g.Addr, g.Current, g.Max)
		if g.C2C != nil && n.Home != nil {
			for k := range g.C2C.Links {
				b.link(&Link{A: n, B: n.Home, Kind: C2CLink, Number: k, Max: probe.Some(g.C2C.PerLink), Origins: g.Origins})
			}
		}
	}
	rdmaNet := map[string]bool{}
	for i := range inv.HCAs {
		h := &inv.HCAs[i]
		for _, n := range h.NetDevs {
			rdmaNet[n] = true
		}
		b.place(b.add(&Node{Key: "hca:" + h.Name, Kind: KindHCA, Label: h.Name, HCA: h}), h.Addr, probe.PCIeLink{}, probe.PCIeLink{})
	}
	for i := range inv.NetDevs {
		n := &inv.NetDevs[i]
		if n.Virtual || rdmaNet[n.Name] {
			continue
		}
		b.place(b.add(&Node{Key: "net:" + n.Name, Kind: KindNet, Label: n.Name, NetDev: n}), n.Addr, probe.PCIeLink{}, probe.PCIeLink{})
	}
}

// place hangs a device on its switch or host bridge. ownNow and ownMax are the
// link as the device's own driver reports it, used where the bus does not say.
func (b *builder) place(n *Node, addr probe.Opt[probe.BDF], ownNow, ownMax probe.PCIeLink) {
	a, ok := addr.Get()
	if !ok {
		return
	}
	d := b.pci[a]
	if d == nil {
		if len(b.pci) > 0 {
			b.gap(n.Key, "its PCI function is not among those seen", "run on the host, or give the container /sys", nil)
		}
		return
	}
	n.PCI = d
	port := b.parent(d)
	n.Home = b.numa(d)
	n.Up = b.above(d)
	b.pcieLink(n, n.Up, d, port, ownNow, ownMax)
}

// above returns the node that a function hangs on: the switch whose port is its
// parent, or the NUMA node of its host bridge.
func (b *builder) above(d *probe.PCIDevice) *Node {
	port := b.parent(d)
	if port == nil {
		return b.numa(d)
	}
	if d.Root == "" {
		// A topology file has one entry per switch and leaves root ports out.
		return b.switchNode(port)
	}
	// In sysfs bridges alternate: root port, then upstream and downstream port
	// of each switch.
	switch depth := b.depth(port); {
	case depth == 0:
		return b.numa(d)
	case depth%2 == 1:
		return b.switchNode(port) // behind the upstream port itself
	default:
		return b.switchNode(b.parent(port))
	}
}

// depth counts the bridges above d.
func (b *builder) depth(d *probe.PCIDevice) int {
	n := 0
	for p := b.parent(d); p != nil; p = b.parent(p) {
		n++
	}
	return n
}

// switchNode returns the switch of an upstream port and links it upwards.
func (b *builder) switchNode(upstream *probe.PCIDevice) *Node {
	key := "pci:" + upstream.Addr.String()
	if n := b.t.byKey[key]; n != nil {
		return n
	}
	n := b.add(&Node{Key: key, Kind: KindSwitch, Label: "PCIe switch " + upstream.Addr.String(), PCI: upstream, Home: b.numa(upstream)})
	n.Up = b.above(upstream)
	b.pcieLink(n, n.Up, upstream, b.parent(upstream), probe.PCIeLink{}, probe.PCIeLink{})
	return n
}

func (b *builder) pcieLink(n, up *Node, d, port *probe.PCIDevice, ownNow, ownMax probe.PCIeLink) {
	l := &Link{A: n, B: up, Kind: PCIe, FuncA: d, PCIeMax: d.Max, PCIeCurrent: d.Current, Origins: d.Origins}
	l.PCIeMax = orLink(l.PCIeMax, ownMax)
	// The driver reads link and load together, so its speed counts; a width is
	// narrow if either of the two saw it so.
	l.PCIeCurrent = probe.PCIeLink{Speed: ownNow.Speed, Width: l.PCIeCurrent.Min(ownNow).Width}
	l.PCIeCurrent = orLink(l.PCIeCurrent, d.Current)
	// A port reports the link below it. In a topology file the parent entry is
	// the switch's upstream link, which says nothing about this one.
	if port != nil && d.Root != "" {
		l.FuncB = port
		l.PCIeMax = l.PCIeMax.Min(port.Max)
		l.PCIeCurrent = l.PCIeCurrent.Min(port.Current)
	}
	l.Max, l.Current = l.PCIeMax.Encoded(), l.PCIeCurrent.Encoded()
	b.link(l)
}

func orLink(l, fallback probe.PCIeLink) probe.PCIeLink {
	if !l.Speed.Known() {
		l.Speed = fallback.Speed
	}
	if !l.Width.Known() {
		l.Width = fallback.Width
	}
	return l
}

// nvlinks adds one link per physical NVLink. A link between two GPUs is seen
// from both; the k-th from one side is the k-th from the other.
func (b *builder) nvlinks() {
	inv := b.t.Inv
	for i := range inv.NVSwitches {
		b.nvswitch(inv.NVSwitches[i].Addr)
	}
	type pair struct{ a, b *Node }
	seen := map[pair][]*Link{} // GPU–GPU links in the order of the lower key's numbers
	taken := map[pair]int{}
	for _, n := range b.t.Nodes {
		if n.Kind != KindGPU {
			continue
		}
		links, _ := n.GPU.NVLinks.Get()
		for _, p := range links {
			l := &Link{A: n, Kind: NVLink, State: p.State, Number: p.Link, Generation: p.Generation, Origins: n.GPU.Origins}
			l.Max = probe.NVLinkRate(p.Generation, n.GPU.CC)
			l.Current = l.Max
			if p.State == probe.LinkDown {
				l.Current = probe.Some(probe.Rate(0))
			}
			remote, known := p.Remote.Get()
			switch {
			case p.RemoteKind == probe.RemoteSwitch && known:
				l.B = b.nvswitch(remote)
			case p.RemoteKind == probe.RemoteSwitch:
				l.B = b.add(&Node{Key: "nvswitch:hidden", Kind: KindNVSwitch, Label: "NVSwitch, identity not visible", Hidden: true})
			case p.RemoteKind == probe.RemoteCPU && n.Home != nil:
				l.B = n.Home
			case p.RemoteKind == probe.RemoteGPU && known && b.gpus[remote] == n:
				b.gap(n.Key, fmt.Sprintf("NVLink %d leads to the GPU itself", p.Link), "correct the source", n.GPU.Origins)
				continue
			case p.RemoteKind == probe.RemoteGPU && known && b.gpus[remote] != nil:
				peer := b.gpus[remote]
				l.B = peer
				back := pair{peer, n}
				if k := taken[back]; k < len(seen[back]) {
					first := seen[back][k]
					taken[back]++
					if p.State == probe.LinkDown {
						first.State, first.Current = l.State, l.Current
					}
					continue
				}
				seen[pair{n, peer}] = append(seen[pair{n, peer}], l)
			default:
				if p.State == probe.LinkUp {
					b.gap(n.Key, fmt.Sprintf("the other end of NVLink %d is not visible here", p.Link), "read it on the bare-metal host", n.GPU.Origins)
				}
				continue
			}
			b.link(l)
		}
	}
}

func (b *builder) nvswitch(a probe.BDF) *Node {
	return b.add(&Node{Key: "nvswitch:" + a.String(), Kind: KindNVSwitch, Label: "NVSwitch " + a.String(), PCI: b.pci[a]})
}

// mostNVLinks is the largest number of NVLinks any GPU has (Rubin, announced).
const mostNVLinks = 36

// relations adds NVLinks that only topo -m shows. If a GPU's cells sum to more
// links than any GPU has, they run through switches; else they are direct.
func (b *builder) relations() {
	byName := map[string]*Node{}
	for _, n := range b.t.Nodes {
		if n.Kind == KindGPU {
			byName[relationName(n)] = n
		}
	}
	var direct []probe.Relation
	total := map[*Node]int{}
	widest := map[*Node]int{}
	for _, r := range b.t.Inv.Relations {
		x, y := byName[r.A], byName[r.B]
		if x == nil || y == nil || x.GPU.NVLinks.Known() || y.GPU.NVLinks.Known() {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(r.Code, "NV%d", &n); err != nil {
			continue
		}
		direct = append(direct, r)
		for _, g := range []*Node{x, y} {
			total[g] += n
			widest[g] = max(widest[g], n)
		}
	}
	switched := func(n *Node) bool { return total[n] > mostNVLinks }
	for _, r := range direct {
		x, y := byName[r.A], byName[r.B]
		if switched(x) && switched(y) {
			continue
		}
		var n int
		fmt.Sscanf(r.Code, "NV%d", &n)
		for k := range n {
			b.link(&Link{A: x, B: y, Kind: NVLink, State: probe.LinkUp, Number: k, Origins: r.Origins})
		}
	}
	for _, g := range slices.Clone(b.t.Nodes) {
		if g.Kind != KindGPU || !switched(g) {
			continue
		}
		sw := b.add(&Node{Key: "nvswitch:hidden", Kind: KindNVSwitch, Label: "NVSwitch, identity not visible", Hidden: true})
		for k := range widest[g] {
			b.link(&Link{A: g, B: sw, Kind: NVLink, State: probe.LinkUp, Number: k, Origins: g.GPU.Origins})
		}
	}
}

// unreachable is the distance by which firmware says that two NUMA nodes are not
// joined (ACPI, System Locality Information Table).
const unreachable = 255

// smp joins the NUMA nodes of the host with each other. Which sockets and links
// lie between is not visible in sysfs, nor are their rates. Nodes that are only
// memory (a Grace host shows that of its GPUs as such) join nothing.
func (b *builder) smp() {
	used := map[*Node]bool{}
	for _, n := range b.t.Nodes {
		used[n.Home] = true
	}
	var numa []*Node
	for _, n := range b.t.Nodes {
		if n.Kind == KindNUMA && !n.Hidden && (used[n] || n.NUMA == nil || n.NUMA.CPUs != "") {
			numa = append(numa, n)
		}
	}
	for i, x := range numa {
		for _, y := range numa[i+1:] {
			if b.distance(x, y) == unreachable {
				continue
			}
			var origins []probe.Origin
			if x.NUMA != nil {
				origins = x.NUMA.Origins
			}
			b.link(&Link{A: x, B: y, Kind: SMP, Origins: origins})
		}
	}
}

// distance is what the host states between two NUMA nodes, 0 where it does not.
func (b *builder) distance(x, y *Node) int {
	if x.NUMA == nil || y.NUMA == nil {
		return 0
	}
	at := slices.IndexFunc(b.t.Inv.NUMA, func(n probe.NUMANode) bool { return n.ID == y.NUMA.ID })
	if at < 0 || at >= len(x.NUMA.Distances) {
		return 0
	}
	return x.NUMA.Distances[at]
}

// finish sorts, numbers, indexes and computes the paths.
func (b *builder) finish() {
	t := b.t
	slices.SortFunc(t.Nodes, func(x, y *Node) int { return cmp.Compare(x.Key, y.Key) })
	t.multi = multi.NewUndirectedGraph()
	for i, n := range t.Nodes {
		n.id = int64(i)
		t.multi.AddNode(n)
	}
	slices.SortStableFunc(t.Links, func(x, y *Link) int {
		return cmp.Or(cmp.Compare(x.A.id, y.A.id), cmp.Compare(x.B.id, y.B.id), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Number, y.Number))
	})
	t.adj = make([][]bundle, len(t.Nodes))
	for i, l := range t.Links {
		l.id = int64(i)
		t.multi.SetLine(l)
		for _, n := range []*Node{l.A, l.B} {
			t.bundleOf(n, l).links = append(t.bundleOf(n, l).links, l)
		}
	}
	for _, bs := range t.adj {
		slices.SortFunc(bs, func(x, y bundle) int {
			return cmp.Or(cmp.Compare(x.to.id, y.to.id), cmp.Compare(x.kind, y.kind))
		})
	}
	t.computePaths()
}

func (t *Topology) bundleOf(n *Node, l *Link) *bundle {
	to := l.Other(n)
	for i := range t.adj[n.id] {
		if b := &t.adj[n.id][i]; b.to == to && b.kind == l.Kind {
			return b
		}
	}
	t.adj[n.id] = append(t.adj[n.id], bundle{to: to, kind: l.Kind})
	return &t.adj[n.id][len(t.adj[n.id])-1]
}

// sortForPeople orders GPUs by index, they and switches else by address, others
// by name.
func sortForPeople(nodes []*Node) {
	slices.SortStableFunc(nodes, func(x, y *Node) int {
		if x.Kind == KindGPU && y.Kind == KindGPU {
			i, iok := x.GPU.Index.Get()
			j, jok := y.GPU.Index.Get()
			if iok && jok {
				return cmp.Compare(i, j)
			}
		}
		if x.Kind == y.Kind && x.PCI != nil && y.PCI != nil && x.Kind != KindHCA && x.Kind != KindNet {
			return x.PCI.Addr.Compare(y.PCI.Addr)
		}
		return probe.CompareNames(x.Label, y.Label)
	})
}
