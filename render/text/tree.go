package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// Tree prints the host as a tree over PCIe, as lstopo does, each device with
// its link: current rate of maximum where they differ. NVLinks follow their GPU.
func Tree(w io.Writer, t *graph.Topology, marks map[string]string) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, HostLine(t))
	children := map[*graph.Node][]*graph.Node{}
	var tops []*graph.Node
	for _, k := range []graph.Kind{graph.KindNUMA, graph.KindSwitch, graph.KindGPU, graph.KindHCA, graph.KindNet} {
		for _, n := range t.Of(k) {
			if n.Up != nil {
				children[n.Up] = append(children[n.Up], n)
			} else {
				tops = append(tops, n)
			}
		}
	}
	p := treePrinter{out: out, t: t, children: children, marks: marks}
	for i, n := range tops {
		p.node(n, "", i == len(tops)-1)
	}
	return out.Flush()
}

// HostLine is the host in one line.
func HostLine(t *graph.Topology) string {
	inv := t.Inv
	parts := []string{"host"}
	if inv.Host.Name != "" {
		parts = append(parts, inv.Host.Name)
	} else {
		parts = append(parts, "(name unknown)")
	}
	if p := strings.TrimSpace(inv.Product.Vendor + " " + inv.Product.Name); p != "" {
		parts = append(parts, "·", p)
	}
	if inv.Runtime.Driver != "" {
		parts = append(parts, "· driver", inv.Runtime.Driver)
	}
	if len(check.GuestMarks(t)) > 0 {
		parts = append(parts, "· virtual machine")
	}
	return strings.Join(parts, " ")
}

type treePrinter struct {
	out      *bufio.Writer
	t        *graph.Topology
	children map[*graph.Node][]*graph.Node
	marks    map[string]string
}

func (p *treePrinter) node(n *graph.Node, indent string, last bool) {
	branch, below := "├─ ", "│  "
	if last {
		branch, below = "└─ ", "   "
	}
	line := indent + branch + describe(n)
	for _, l := range p.t.LinksOf(n) {
		if l.Kind == graph.PCIe && l.A == n {
			line += "  " + PCIeText(l)
		}
	}
	if m := p.marks[n.Key]; m != "" {
		line += "  ← " + m
	}
	fmt.Fprintln(p.out, line)
	kids := p.children[n]
	links := linkLines(p.t, n)
	for i, l := range links {
		b2 := "├─ "
		if i == len(links)-1 && len(kids) == 0 {
			b2 = "└─ "
		}
		fmt.Fprintln(p.out, indent+below+b2+l)
	}
	for i, c := range kids {
		p.node(c, indent+below, i == len(kids)-1)
	}
}

// linkLines lists a GPU's links that are no PCIe, a bundle a line.
func linkLines(t *graph.Topology, n *graph.Node) []string {
	var out []string
	if n.Kind == graph.KindGPU && n.GPU.C2C != nil {
		c := n.GPU.C2C
		out = append(out, fmt.Sprintf("%d × C2C to its CPU, %s", c.Links, c.PerLink*probe.Rate(c.Links)))
	}
	for _, b := range t.NVLinks(n) {
		out = append(out, NVLinkText(b))
	}
	return out
}

// describe is a node in a few words.
func describe(n *graph.Node) string {
	switch n.Kind {
	case graph.KindNUMA:
		if n.NUMA != nil && n.NUMA.CPUs != "" {
			return n.Label + "  CPUs " + string(n.NUMA.CPUs)
		}
		return n.Label
	case graph.KindGPU:
		return strings.Join(nonEmpty(n.Label, n.GPU.Name, addr(n.GPU.Addr)), "  ")
	case graph.KindHCA:
		return strings.Join(nonEmpty(n.Label, addr(n.HCA.Addr), PortsText(n.HCA)), "  ")
	case graph.KindNet:
		speed := ""
		if r, ok := n.NetDev.Speed.Get(); ok {
			speed = r.Gbps()
		}
		return strings.Join(nonEmpty(n.Label, addr(n.NetDev.Addr), speed), "  ")
	}
	return n.Label
}

func addr(a probe.Opt[probe.BDF]) string {
	if v, ok := a.Get(); ok {
		return v.String()
	}
	return ""
}

func nonEmpty(s ...string) []string {
	var out []string
	for _, x := range s {
		if x != "" {
			out = append(out, x)
		}
	}
	return out
}
