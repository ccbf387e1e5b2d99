package graph

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

// NVLinkBundle is all NVLinks of a node to one neighbour, or to all NVSwitches.
type NVLinkBundle struct {
	To         string
	Nodes      []*Node
	Up, All    int
	Generation probe.Opt[int]
	Current    probe.Opt[probe.Rate] // of those that are up, one direction
	Max        probe.Opt[probe.Rate]
}

// NVLinks groups a GPU's NVLinks by neighbour; all NVSwitches are one
// neighbour, as traffic spreads over them.
func (t *Topology) NVLinks(n *Node) []NVLinkBundle {
	if n.Kind != KindGPU {
		return nil
	}
	var out []NVLinkBundle
	at := map[string]int{}
	for _, l := range t.LinksOf(n) {
		if l.Kind != NVLink {
			continue
		}
		o := l.Other(n)
		key := o.Key
		if o.Kind == KindNVSwitch {
			key = "nvswitch"
		}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, NVLinkBundle{To: o.Label, Generation: l.Generation, Current: probe.Some(probe.Rate(0)), Max: probe.Some(probe.Rate(0))})
		}
		b := &out[i]
		if len(b.Nodes) == 0 || b.Nodes[len(b.Nodes)-1] != o {
			b.Nodes = append(b.Nodes, o)
		}
		b.All++
		if l.State != probe.LinkDown {
			b.Up++
		}
		b.Current, b.Max = addRate(b.Current, l.Current), addRate(b.Max, l.Max)
	}
	for i := range out {
		if out[i].Nodes[0].Kind == KindNVSwitch {
			out[i].To = switchesText(out[i].Nodes)
		}
	}
	return out
}

func switchesText(nodes []*Node) string {
	if nodes[0].Hidden {
		return "NVSwitch (identity not visible)"
	}
	if len(nodes) == 1 {
		return nodes[0].Label
	}
	return fmt.Sprintf("%d NVSwitches", len(nodes))
}

func addRate(sum, r probe.Opt[probe.Rate]) probe.Opt[probe.Rate] {
	a, aok := sum.Get()
	b, bok := r.Get()
	if !aok || !bok {
		return probe.Opt[probe.Rate]{}
	}
	return probe.Some(a + b)
}
