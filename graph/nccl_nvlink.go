package graph

import "github.com/ncclmap/ncclmap/probe"

// nvlinks adds what is up. A link whose other end a hypervisor hides leads to an
// NVSwitch, NCCL assumes (xml.cc: class 0x068000 for an unreadable target).
func (b *ncclBuilder) nvlinks() {
	for _, at := range b.v.GPUs[b.first:] {
		n := b.v.Nodes[at].Node
		per := b.perNVLink(n)
		for _, l := range b.t.LinksOf(n) {
			if l.Kind != NVLink || l.State == probe.LinkDown || l.Share() == 0 {
				continue
			}
			switch peer := l.Other(n); peer.Kind {
			case KindNVSwitch:
				b.link(at, b.nvSwitch(), NCCLLinkNVL, per*l.Share(), per*l.Share(), l)
			case KindNUMA:
				b.link(at, b.cpu(peer), NCCLLinkNVL, per*l.Share(), per*l.Share(), l)
			case KindGPU:
				other, ok := b.nodes[peer]
				if ok && at < other { // seen from both ends
					b.link(at, other, NCCLLinkNVL, per*l.Share(), b.perNVLink(peer)*l.Share(), l)
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
		return NCCLNVLinkGBs(cc, b.v.Options.Version)
	}
	links, _ := n.GPU.NVLinks.Get()
	for _, l := range links {
		if g := l.Generation.Or(0); g > 0 && g < len(nvlinkCC) {
			b.assume(n.Key, "compute capability unknown: its NVLinks are taken as generation %d", g)
			return NCCLNVLinkGBs(nvlinkCC[g], b.v.Options.Version)
		}
	}
	return NCCLNVLinkGBs(80, b.v.Options.Version)
}

func (b *ncclBuilder) nvSwitch() int {
	if b.v.NVS < 0 {
		b.v.NVS = b.add(NCCLNode{Kind: NCCLNVS})
	}
	return b.v.NVS
}
