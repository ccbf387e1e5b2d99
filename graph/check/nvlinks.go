package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Gaps of the NVLink rules.
const (
	noNVLinks   = "state of the NVLinks not in the sources"
	readNVLinks = "run ncclmap on the host itself (it asks the driver), or add a recording of the driver's answers"
	cutShort    = "the topo -m table was cut short"
	wholeTable  = "give the whole output of nvidia-smi topo -m"
)

// nvlinks is what the sources say about one GPU's NVLinks.
type nvlinks struct {
	known    bool
	up       int
	down     []int // numbers of links that are listed and not up
	switched bool  // through NVSwitch
	direct   bool  // to a GPU
	matrix   bool  // from topo -m, which shows only what the visible GPUs share
	cut      bool  // matrix without a cell for some pair
	proof    []Evidence
}

// none reports a GPU that is known to have no NVLink.
func (l nvlinks) none(n *graph.Node) bool {
	if l.known && !l.matrix {
		return l.up == 0
	}
	b, ok := BoardOfGPU(n)
	return ok && b.NVLinks == 0
}

// nvlinkCount counts a GPU's NVLinks: the driver's list or a topology file's
// counts, else the row of topo -m as graph reads it.
func (p *Pass) nvlinkCount(n *graph.Node) nvlinks {
	l, ok := p.facts.nvlinks[n]
	if !ok {
		l = p.countNVLinks(n)
		p.facts.nvlinks[n] = l
	}
	return l
}

func (p *Pass) countNVLinks(n *graph.Node) nvlinks {
	if links, ok := n.GPU.NVLinks.Get(); ok {
		out := nvlinks{known: true}
		for _, l := range links {
			if l.State != probe.LinkUp {
				out.down = append(out.down, l.Link)
				continue
			}
			out.up++
			out.switched = out.switched || l.RemoteKind == probe.RemoteSwitch
			out.direct = out.direct || l.RemoteKind == probe.RemoteGPU
		}
		fact := fmt.Sprintf("%s of %s", count(out.up, "NVLink up", "NVLinks up"), n.Label)
		if len(out.down) > 0 {
			fact += ", down: " + numbers(out.down)
		}
		out.proof = []Evidence{evidence(n.GPU.Origins, "nvlinks", "", "%s", fact)}
		return out
	}
	out := nvlinks{matrix: true}
	var row []string
	var origins []probe.Origin
	for _, m := range p.facts.gpus {
		if m == n {
			continue
		}
		r, ok := p.Topo.Relation(n, m)
		if !ok {
			out.cut = true
			continue
		}
		out.known = true
		row = append(row, r.Code)
		origins = append(origins, r.Origins...)
	}
	if !out.known {
		return nvlinks{}
	}
	out.proof = []Evidence{evidence(origins, "code", "", "row of %s: %s", n.Label, strings.Join(row, " "))}
	for _, l := range p.Topo.LinksOf(n) {
		if l.Kind == graph.NVLink && l.State == probe.LinkUp {
			out.up++
			out.switched = out.switched || l.B.Kind == graph.KindNVSwitch
			out.direct = out.direct || l.B.Kind == graph.KindGPU
		}
	}
	return out
}

// numbers prints link numbers, "3, 7, 8".
func numbers(list []int) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = fmt.Sprint(n)
	}
	return strings.Join(out, ", ")
}

// nvlinkPeers lists the GPUs that a GPU reaches over NVLink without a relay.
func (p *Pass) nvlinkPeers(n *graph.Node) []*graph.Node {
	var out []*graph.Node
	for _, m := range p.facts.gpus {
		if m != n && p.Topo.Class(n, m) == graph.NVL {
			out = append(out, m)
		}
	}
	return out
}

// notComparable says why the links of a GPU say nothing now; empty when they do.
func notComparable(g *probe.GPU) string {
	switch {
	case g.MIG.Or(false):
		return "MIG is on, which turns NVLink off"
	case g.Fabric != nil && g.Fabric.State == fabricInProgress:
		return "the NVSwitch fabric is still being set up"
	}
	return ""
}

const fabricInProgress = "in progress"

// isolated reports signs that part of the host's GPUs may not be visible here.
func (p *Pass) isolated() bool {
	return len(p.Guest()) > 0 || len(p.Inv.Settings.Container) > 0
}

// model names what GPUs must share to be compared; empty where no source names
// a model.
func model(n *graph.Node) string {
	if id, ok := pciID(n.PCI); ok {
		return id
	}
	return n.GPU.Name
}
