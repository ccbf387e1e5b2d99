package graph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// ncclPort is a port that NCCL would use, or several that it joins to one.
type ncclPort struct {
	node   *Node
	dev    int
	net    NCCLNet
	layer  string // InfiniBand, Ethernet, "" unknown
	others []ncclPort
}

// ncclDefaultNet is the speed of a port that states none (NCCL 2.30.7
// topo.cc:418: 10000 Mb/s).
const ncclDefaultNet = probe.Rate(1.25e9)

// ports lists what NCCL would use: the ports of RDMA adapters, else network
// interfaces. A topology file lists only what NCCL uses. A host without any known
// network still has one: a port without node.
func (b *ncclBuilder) ports() []ncclPort {
	var out []ncclPort
	add := func(p ncclPort, dev probe.Opt[int], rate probe.Opt[probe.Rate]) {
		if p.node.Up == nil && (p.node.Kind != KindNet || len(b.t.Of(KindNUMA)) == 0) {
			b.assume(p.node.Key, "its place on the PCI tree is not known: left out of NCCL's view")
			return
		}
		if rate.Or(0) <= 0 {
			b.assume(p.node.Key, "port speed unknown: NCCL takes 10 Gb/s")
			rate = probe.Some(ncclDefaultNet)
		}
		p.dev, p.net.GBs = dev.Or(len(out)), rate.Or(0).GBs()
		out = append(out, p)
	}
	denied := false
	for _, n := range b.t.Of(KindHCA) {
		if slices.Contains(n.HCA.Extra, probe.Attr{Name: "net", Value: "0"}) {
			continue // joined with another to a virtual NIC
		}
		for i, p := range n.HCA.Ports {
			if !p.Active() && p.State != "" {
				continue
			}
			if !b.v.Options.HCAs.Allows(n.HCA.Name, probe.Some(p.Port)) {
				denied = true
				continue
			}
			if p.State == "" && !n.HCA.NCCLDev.Known() {
				b.assume(n.Key, "state of port %d unknown: taken as active", p.Port)
			}
			dev := n.HCA.NCCLDev
			if i > 0 {
				dev = probe.Opt[int]{}
			}
			net := NCCLNet{Name: n.HCA.Name, Adapter: cmp.Or(n.HCA.SysImageGUID, n.Key), Port: p.Port, GDR: b.netGDR(n)}
			add(ncclPort{node: n, net: net, layer: p.LinkLayer}, dev, p.Rate)
		}
	}
	if len(out) == 0 {
		if denied {
			b.assume("host", "NCCL_IB_HCA leaves no adapter: NCCL takes network interfaces")
		}
		for _, n := range b.interfaces() {
			// NCCL's socket transport gives all interfaces the adapter 0 and port 0.
			add(ncclPort{node: n, net: NCCLNet{Name: n.NetDev.Name, Adapter: "0", GDR: attrIs(n.NetDev.Extra, "gdr", "1")}}, n.NetDev.NCCLDev, n.NetDev.Speed)
		}
	}
	if len(out) == 0 {
		return []ncclPort{{net: NCCLNet{Name: "eth0", Adapter: "0", GBs: ncclDefaultNet.GBs(), Assumed: true}}}
	}
	return out
}

// interfaces lists the network interfaces that NCCL would use.
func (b *ncclBuilder) interfaces() (out []*Node) {
	all := b.t.Of(KindNet)
	listed := slices.ContainsFunc(all, func(n *Node) bool { return n.NetDev.NCCLDev.Known() })
	for _, n := range all {
		if listed == n.NetDev.NCCLDev.Known() && (listed || n.NetDev.State == "up") {
			out = append(out, n)
		}
	}
	return out
}

func attrIs(attrs []probe.Attr, name, value string) bool {
	return slices.Contains(attrs, probe.Attr{Name: name, Value: value})
}

func (b *ncclBuilder) netGDR(n *Node) bool {
	gdr, ok := n.HCA.GDR.Get()
	if !ok {
		b.assume("host", "whether adapters and driver offer GPUDirect RDMA is unknown: taken as offered")
	}
	return gdr || !ok
}

// join makes one port of those that NCCL joins: since 2.24, without a setting
// those of one card, up to four (NCCL 2.30.7 topo.cc:1311-1747). What is joined
// gets a number after all others.
func (b *ncclBuilder) join(ports []ncclPort) []ncclPort {
	level := b.v.Options.MergeLevel
	if level == LOC || !b.v.Options.Version.AtLeast(24, 0) {
		return ports
	}
	const most = 4
	next := 0
	for _, p := range ports {
		next = max(next, p.dev+1)
	}
	var out []ncclPort
	done := make([]bool, len(ports))
	for i, p := range ports {
		if done[i] {
			continue
		}
		for j := i + 1; j < len(ports) && len(p.others)+1 < most; j++ {
			if q := ports[j]; !done[j] && q.layer == p.layer && b.joins(p.node, q.node, level) {
				done[j] = true
				p.others = append(p.others, q)
				p.net.Name += "+" + q.net.Name
				p.net.GBs = tidy(p.net.GBs + q.net.GBs)
				p.net.GDR = p.net.GDR && q.net.GDR
			}
		}
		if len(p.others) > 0 {
			p.dev = next
			next++
			p.net.Joined = []*Node{p.node}
			for _, q := range p.others {
				p.net.Joined = append(p.net.Joined, q.node)
			}
		}
		out = append(out, p)
	}
	return out
}

// joins reports whether two adapters are near enough to be joined: functions of
// one card always.
func (b *ncclBuilder) joins(x, y *Node, level PathClass) bool {
	if x.Kind != KindHCA || y.Kind != KindHCA {
		return false // NCCL's socket transport joins none
	}
	if x == y {
		return true
	}
	if x.PCI == nil || y.PCI == nil || x.Up == nil || y.Up == nil || x.Home != y.Home {
		return false
	}
	card := func(n *Node) probe.BDF {
		a := n.PCI.Addr
		a.Fn = 0
		return a
	}
	if card(x) == card(y) {
		return true
	}
	if level == Unknown {
		return false
	}
	c := b.t.Class(x, y)
	return c != Unknown && c <= level
}

// placeNets puts the ports into the graph.
func (b *ncclBuilder) placeNets(ports []ncclPort, before func(x, y *Node) int) {
	slices.SortStableFunc(ports, func(x, y ncclPort) int { return before(x.node, y.node) })
	for i, p := range ports {
		nic, ok := b.nodes[p.node]
		if !ok || len(p.others) > 0 {
			nic = b.add(NCCLNode{Kind: NCCLNIC, ID: i, Node: p.node})
			if !b.attachNIC(nic, p) {
				continue
			}
		}
		net := b.add(NCCLNode{Kind: NCCLNET, ID: b.netBase + p.dev, Dev: p.dev, Net: &p.net})
		b.v.Nodes[net].Node = p.node
		b.v.Nets = append(b.v.Nets, net)
		b.link(nic, net, NCCLLinkNET, p.net.GBs, p.net.GBs)
	}
}

// attachNIC hangs an adapter on what is above it. Joined adapters get the links
// of all their cards together, at most what the switch above them has.
func (b *ncclBuilder) attachNIC(at int, p ncclPort) bool {
	if p.node == nil || p.node.Up == nil { // NCCL hangs an interface without a PCI function on the first CPU
		if numa := b.t.Of(KindNUMA); len(b.cpus) == 0 && len(numa) > 0 {
			b.cpu(numa[0])
		}
		ids := b.numaIDs()
		if len(ids) == 0 {
			return false
		}
		b.link(at, b.cpus[ids[0]], NCCLLinkLOC, NCCLLocalGBs, NCCLLocalGBs)
		return true
	}
	if len(p.others) == 0 {
		return b.attach(at, p.node)
	}
	above := b.above(p.node)
	var gbs float64
	var physical []*Link
	cards := map[string]bool{}
	for _, q := range append([]ncclPort{p}, p.others...) {
		card, _, _ := strings.Cut(q.node.PCI.Addr.String(), ".")
		for _, l := range b.t.Between(q.node, q.node.Up) {
			if l.Kind == PCIe && !slices.Contains(physical, l) {
				physical = append(physical, l)
				if !cards[card] {
					gbs += b.pcieGBs(q.node, l)
				}
			}
		}
		cards[card] = true
	}
	for _, l := range b.v.Links {
		if l.From == above && l.Type == NCCLLinkPCI && b.v.Nodes[l.To].Kind == NCCLCPU {
			gbs = min(gbs, l.GBs)
		}
	}
	b.link(at, above, NCCLLinkPCI, gbs, gbs, physical...)
	return true
}
