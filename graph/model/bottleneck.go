package model

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
)

// Bottleneck is the link that the channels of a graph load most, for its share of
// what NCCL's model gives the link: what keeps more or faster channels away. GB/s,
// one direction.
type Bottleneck struct {
	Pattern  search.Pattern `json:"pattern"`
	From     string         `json:"from"` // "GPU 3", "NVS 0", "CPU 1", "NET 2"
	To       string         `json:"to"`
	Type     string         `json:"type"` // NVL, PCI, SYS, …
	UsedGBs  float64        `json:"used_gbs"`
	GBs      float64        `json:"gbs"`
	Channels int            `json:"channels"`
}

func (b Bottleneck) String() string {
	what := "1 channel uses"
	if b.Channels > 1 {
		what = fmt.Sprintf("%d channels use", b.Channels)
	}
	return fmt.Sprintf("%s to %s (%s): %s %.4g of %.4g GB/s", b.From, b.To, b.Type, what, b.UsedGBs, b.GBs)
}

// Bottlenecks returns the bottleneck of each graph on the first node. Over an
// Intel host bridge NCCL charges links a fifth more than is counted here.
func Bottlenecks(r *search.Result) []Bottleneck {
	var out []Bottleneck
	for _, g := range r.Graphs {
		if b, ok := bottleneck(r.Members[0].View, g, r.Nodes > 1); ok {
			out = append(out, b)
		}
	}
	return out
}

func bottleneck(v *graph.NCCLView, g search.Graph, inter bool) (b Bottleneck, ok bool) {
	used := make([]float64, len(v.Links))
	channels, last := make([]int, len(v.Links)), make([]int, len(v.Links)) // last: channel seen, from 1
	for c, devs := range g.Rings {
		for _, s := range stretches(v, g, c, devs, inter) {
			for _, link := range s.path.Links {
				used[link] += s.gbs
				if last[link] != c+1 {
					last[link], channels[link] = c+1, channels[link]+1
				}
			}
		}
	}
	worst := -1
	for i, l := range v.Links {
		if used[i] > 0 && l.GBs > 0 && (worst < 0 || used[i]/l.GBs > used[worst]/v.Links[worst].GBs) {
			worst = i
		}
	}
	if worst < 0 {
		return b, false
	}
	l := v.Links[worst]
	return Bottleneck{g.Pattern, v.Nodes[l.From].String(), v.Nodes[l.To].String(), string(l.Type), tidy(used[worst]), l.GBs, channels[worst]}, true
}

// stretch is one way that a channel takes.
type stretch struct {
	path graph.NCCLPath
	gbs  float64
}

// stretches are the ways of one channel as the search charges them: around the
// ring, along the chain of a tree in one direction, to the NVSwitches and back; over
// several nodes in from a NET and out to one.
func stretches(v *graph.NCCLView, g search.Graph, channel int, devs []int, inter bool) (out []stretch) {
	at := map[int]int{}
	for i := range v.GPUs {
		at[v.Dev(i)] = i
	}
	between := func(a, b int) { out = append(out, stretch{v.Path(at[a], at[b]), g.BWIntra}) }
	if g.Pattern == search.NVLS {
		for i := range v.GPUs {
			to, from := v.PathsNVS(i)
			out = append(out, stretch{to, g.BWIntra}, stretch{from, g.BWIntra})
		}
	} else {
		for i := 1; i < len(devs); i++ {
			between(devs[i-1], devs[i])
		}
	}
	last := len(devs) - 1
	switch {
	case !inter && g.Pattern == search.Ring:
		between(devs[last], devs[0])
	case inter && channel < len(g.Nets):
		send := []int{devs[last]}
		switch g.Number {
		case 1: // both first GPUs of a balanced tree, half each
			send = []int{devs[0], devs[min(1, last)]}
		case 2:
			send = []int{devs[min(1, last)]}
		case 3:
			send = []int{devs[0]}
		}
		for k, net := range v.Nets {
			if v.Nodes[net].ID == g.Nets[channel][0] {
				out = append(out, stretch{v.PathFromNet(k, at[devs[0]]), g.BWInter})
			}
			if v.Nodes[net].ID == g.Nets[channel][1] {
				for _, dev := range send {
					out = append(out, stretch{v.PathToNet(at[dev], k), g.BWInter / float64(len(send))})
				}
			}
		}
	}
	return out
}
