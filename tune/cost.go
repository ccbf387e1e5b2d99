package tune

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// LinkCost is what a link that runs below its maximum costs: what NCCL plans with it
// as it is and as it would be repaired, and what of that the link can carry.
type LinkCost struct {
	Host     string      `json:"host"`
	Rule     string      `json:"rule"`     // whose finding it is
	Subjects []string    `json:"subjects"` // of the finding
	Observed string      `json:"observed"`
	CanGBs   float64     `json:"can_gbs"` // what it carries as it is, GB/s in one direction
	MaxGBs   float64     `json:"max_gbs"` // and repaired
	Seen     bool        `json:"seen"`    // NCCL plans otherwise because of it
	Graphs   []GraphCost `json:"graphs"`
	Unknown  string      `json:"unknown,omitempty"` // why it is not known what NCCL would plan
}

// GraphCost is the part of one graph in it.
type GraphCost struct {
	Pattern  search.Pattern `json:"pattern"`
	Is       GraphPlan      `json:"is"`
	Repaired GraphPlan      `json:"repaired"`
	Crossing []int          `json:"crossing"`    // channels that cross the link
	Planned  float64        `json:"planned_gbs"` // what they put on it, in the direction that gets more
}

// GraphPlan is what NCCL plans: channels, and GB/s of each.
type GraphPlan struct {
	Channels int     `json:"channels"`
	BWIntra  float64 `json:"bw_intra_gbs"`
	BWInter  float64 `json:"bw_inter_gbs"`
}

// Share is the part of what the channels put on the link that it can carry.
func (c *LinkCost) Share(g GraphCost) float64 {
	if g.Planned <= c.CanGBs {
		return 1
	}
	return c.CanGBs / g.Planned
}

// mostCosts bounds how many faults are looked at: each takes a prediction.
const mostCosts = 64

// linkRules find links below their maximum. They know when that is no fault: idle
// GPUs, guests, narrow slots.
var linkRules = []string{"nvlink-down", "pcie-speed-degraded", "pcie-width-degraded"}

// Costs tells what the links below their maximum cost; left is how many more there
// are than were looked at.
func (p *Prediction) Costs() (costs []LinkCost, left int) {
	if p.Search == nil || p.Search.Ranks < 2 {
		return nil, 0
	}
	rules := slices.DeleteFunc(check.All(), func(r check.Rule) bool { return !slices.Contains(linkRules, r.ID) })
	for i, t := range p.topos {
		if i > 0 && p.domain != "" {
			break // they are like the first
		}
		for _, f := range check.Run(t, rules).Findings {
			if len(costs) == mostCosts {
				left++
				continue
			}
			costs = append(costs, p.cost(i, f))
		}
	}
	return costs, left
}

func (p *Prediction) cost(host int, f check.Finding) LinkCost {
	t := p.topos[host]
	c := LinkCost{Host: t.Inv.Host.Name, Rule: f.Rule, Subjects: f.Subjects, Observed: f.Observed, Graphs: []GraphCost{}}
	topos := slices.Clone(p.topos)
	for i := range topos {
		if i != host && p.domain == "" {
			continue
		}
		inv, ok := repaired(topos[i], f)
		if !ok {
			c.Unknown = "where the NVLinks of these GPUs lead is not known"
			return c
		}
		var err error
		if topos[i], err = graph.BuildWhatIf(inv, p.Options.WhatIf); err != nil {
			c.Unknown = err.Error()
			return c
		}
	}
	after := predict(topos, p.Options)
	if after.Unknown != nil {
		c.Unknown = after.Unknown.Error()
		return c
	}
	links := linksOf(t, f)
	c.CanGBs, c.MaxGBs = carried(links), carried(linksOf(topos[host], f))
	for _, g := range p.Search.Graphs {
		r, _ := after.Search.Graph(g.Pattern)
		x := GraphCost{Pattern: g.Pattern, Is: planOf(g), Repaired: planOf(r)}
		x.Crossing, x.Planned = p.crossing(g, links)
		c.Seen = c.Seen || x.Is != x.Repaired
		c.Graphs = append(c.Graphs, x)
	}
	return c
}

func planOf(g search.Graph) GraphPlan { return GraphPlan{g.Channels, g.BWIntra, g.BWInter} }

// linksOf are the links that a finding is about: those that it names by both ends,
// and the NVLinks of GPUs that it names.
func linksOf(t *graph.Topology, f check.Finding) (out []*graph.Link) {
	for _, l := range t.Links {
		gpu := l.Kind == graph.NVLink && (l.A.Kind == graph.KindGPU && slices.Contains(f.Subjects, l.A.Key) || l.B.Kind == graph.KindGPU && slices.Contains(f.Subjects, l.B.Key))
		if f.Rule == "nvlink-down" && gpu || l.Kind == graph.PCIe && slices.Contains(f.Subjects, l.Key()) {
			out = append(out, l)
		}
	}
	return out
}

// carried is what links carry together now.
func carried(links []*graph.Link) (gbs float64) {
	for _, l := range links {
		if l.State == probe.LinkDown {
			continue
		}
		rate := l.Current
		if !rate.Known() {
			rate = l.Max
		}
		gbs += rate.Or(0).GBs()
	}
	return gbs
}

// crossing finds the channels of a graph that cross some of the links.
func (p *Prediction) crossing(g search.Graph, links []*graph.Link) (channels []int, planned float64) {
	channels = []int{}
	for i := range p.Search.Members {
		m := &p.Search.Members[i]
		own, ok := m.Graph(g.Pattern)
		if !ok || !slices.ContainsFunc(m.View.Links, func(l graph.NCCLLink) bool { return shares(l.Physical, links) }) {
			continue
		}
		own.BWIntra, own.BWInter = g.BWIntra, g.BWInter
		loads := map[int]float64{}
		for c := range min(own.Channels, g.Channels) {
			for _, l := range m.Channel(own, c) {
				if !shares(m.Physical(l), links) {
					continue
				}
				loads[l.Link] += l.GBs
				planned = max(planned, loads[l.Link])
				if len(channels) == 0 || channels[len(channels)-1] != c {
					channels = append(channels, c)
				}
			}
		}
		break // members of one view load it alike
	}
	return channels, planned
}

func shares(some, links []*graph.Link) bool {
	return slices.ContainsFunc(some, func(l *graph.Link) bool { return slices.Contains(links, l) })
}

// repaired is a host as it would be without the fault; ok is false where that is
// not known.
func repaired(t *graph.Topology, f check.Finding) (inv *probe.Inventory, ok bool) {
	whole := *t.Inv
	whole.PCI, whole.GPUs = slices.Clone(whole.PCI), slices.Clone(whole.GPUs)
	for _, l := range linksOf(t, f) {
		if l.Kind != graph.PCIe {
			continue
		}
		for i := range whole.PCI {
			if d := &whole.PCI[i]; d.Addr == l.FuncA.Addr || l.FuncB != nil && d.Addr == l.FuncB.Addr {
				d.Current = l.PCIeMax
			}
		}
		for i := range whole.GPUs {
			if gpu := &whole.GPUs[i]; l.A.GPU != nil && gpu.Addr == l.A.GPU.Addr {
				gpu.Current = l.PCIeMax
			}
		}
	}
	if f.Rule != "nvlink-down" {
		return &whole, true
	}
	for i := range whole.GPUs {
		gpu := &whole.GPUs[i]
		n := t.Node("gpu:" + gpu.Addr.Or(probe.BDF{}).String())
		if n == nil || !slices.Contains(f.Subjects, n.Key) {
			continue
		}
		board, _ := check.BoardOfGPU(n)
		links, all := wholeNVLinks(gpu, board.NVLinks)
		if !all {
			return nil, false
		}
		gpu.NVLinks, ok = probe.Some(links), true
	}
	return &whole, ok
}

// wholeNVLinks are a GPU's NVLinks with all n up; known is false where it is not
// known whereto those lead that are down.
func wholeNVLinks(gpu *probe.GPU, n int) (links []probe.NVLink, known bool) {
	links, _ = gpu.NVLinks.Get()
	links = slices.Clone(links)
	up := slices.IndexFunc(links, func(l probe.NVLink) bool { return l.State == probe.LinkUp })
	if up < 0 {
		return nil, false
	}
	switched := !slices.ContainsFunc(links, func(l probe.NVLink) bool {
		return l.State == probe.LinkUp && l.RemoteKind != probe.RemoteSwitch
	})
	for len(links) < n {
		links = append(links, probe.NVLink{Link: len(links), State: probe.LinkDown})
	}
	for i := range links {
		l := &links[i]
		switch {
		case l.State == probe.LinkUp && l.RemoteKind != "":
		case l.State == probe.LinkUp:
			return nil, false
		case switched:
			like := links[up]
			like.Link = l.Link
			*l = like
		case l.Remote.Known() && l.RemoteKind != "":
			l.State = probe.LinkUp
		default:
			return nil, false
		}
	}
	return links, true
}

// Subject is the thing that has the fault, as its finding names it first.
func (c *LinkCost) Subject() string { return strings.TrimSpace(c.Host + " " + c.Subjects[0]) }
