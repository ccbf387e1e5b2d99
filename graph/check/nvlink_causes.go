package check

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// shortfall is a GPU with fewer NVLinks up than its board has.
type shortfall struct {
	node  *graph.Node
	board Board
	nvlinks
	lost int
	ends map[string]int // how many of the lost links lead to which node, as far as known
}

// nvlinkCause is what takes links from one or more GPUs.
type nvlinkCause struct {
	sw        *graph.Node // where all lost links lead, nil if that is no one NVSwitch
	certainty Certainty
	gpus      []shortfall // the one that all others share first
	mutual    bool        // several GPUs whose lost links lead to each other
}

// lostEnds counts the links that are not up by the node key of their far end,
// where the source gives it.
func lostEnds(g *probe.GPU) map[string]int {
	out := map[string]int{}
	links, _ := g.NVLinks.Get()
	for _, l := range links {
		if l.State == probe.LinkUp {
			continue
		}
		remote, known := l.Remote.Get()
		switch {
		case l.RemoteKind == probe.RemoteCPU:
			out["numa:"]++
		case known && l.RemoteKind == probe.RemoteSwitch:
			out["nvswitch:"+remote.String()]++
		case known:
			out["gpu:"+remote.String()]++
		}
	}
	return out
}

// lostSwitch returns the NVSwitch to which all lost links of a GPU lead; nil
// where they lead to several or it is not known.
func (p *Pass) lostSwitch(s shortfall) (*graph.Node, Certainty) {
	told := 0
	for _, n := range s.ends {
		told += n
	}
	if len(s.ends) == 1 && told >= s.lost {
		for key := range s.ends {
			if n := p.Topo.Node(key); n != nil && n.Kind == graph.KindNVSwitch {
				return n, Sure
			}
		}
	}
	// All its links to one switch are gone, and so many are lost as lead to another.
	var bare []*graph.Node
	fewest := s.board.NVLinks
	for _, sw := range p.Topo.Of(graph.KindNVSwitch) {
		up := 0
		for _, l := range p.Topo.Between(s.node, sw) {
			if l.State == probe.LinkUp {
				up++
			}
		}
		switch {
		case up > 0:
			fewest = min(fewest, up)
		case !sw.Hidden:
			bare = append(bare, sw)
		}
	}
	if len(bare) != 1 || s.lost < fewest || len(s.ends) > 1 || len(s.ends) == 1 && s.ends[bare[0].Key] == 0 {
		return nil, Sure
	}
	return bare[0], Likely
}

// meshCauses puts GPUs that are joined directly together where their lost links
// lead to each other.
func (p *Pass) meshCauses(short []shortfall) []nvlinkCause {
	group := make([]int, len(short)) // the number of each GPU's group
	rest := make([]int, len(short))  // its lost links of unknown end
	for i, s := range short {
		group[i] = i
		if !s.direct && s.up > 0 {
			continue // to what, the source does not say
		}
		rest[i] = s.lost
		for _, n := range s.ends {
			rest[i] = max(0, rest[i]-n)
		}
	}
	join := func(i, j int) {
		from, to := group[j], group[i]
		for k := range group {
			if group[k] == from {
				group[k] = to
			}
		}
	}
	for i, s := range short {
		for j, o := range short {
			if s.ends[o.node.Key] > 0 {
				join(min(i, j), max(i, j))
			}
		}
	}
	// A link that is lost is lost at both ends, so the numbers of an island add
	// up in pairs unless some lead elsewhere.
	seen := make([]bool, len(short))
	for i := range short {
		var island []int
		sum, most := 0, 0
		for j := i; j < len(short); j++ {
			if !seen[j] && rest[j] > 0 && (i == j || p.oneIsland(short[i], short[j])) {
				seen[j] = true
				island = append(island, j)
				sum, most = sum+rest[j], max(most, rest[j])
			}
		}
		if sum%2 == 0 && 2*most <= sum {
			for _, j := range island {
				join(island[0], j)
			}
		}
	}
	var out []nvlinkCause
	for g := range short {
		c := nvlinkCause{}
		lost, up := 0, 0
		for i, s := range short {
			if group[i] == g {
				c.gpus = append(c.gpus, s)
				lost, up = lost+s.lost, up+s.up
			}
		}
		if up == 0 {
			continue // no GPU, or none with a link
		}
		c.mutual = len(c.gpus) > 1
		if i := slices.IndexFunc(c.gpus, func(s shortfall) bool { return 2*s.lost == lost }); i > 0 {
			hub := c.gpus[i]
			c.gpus = slices.Insert(slices.Delete(c.gpus, i, i+1), 0, hub)
		}
		out = append(out, c)
	}
	return out
}

// oneIsland reports boards that NVLinks may join: modules of one base board, or
// cards that bridges join now.
func (p *Pass) oneIsland(a, b shortfall) bool {
	if !sameBoard(a.node, b.node) {
		return false
	}
	class := p.Topo.Class(a.node, b.node)
	return a.board.Form == FormSXM || class == graph.NVL || class == graph.NVB
}
