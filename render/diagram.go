package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/render/dot"
	"github.com/ncclmap/ncclmap/render/text"
)

// Ink of the diagram. Colour is never the only sign: a degraded link is also
// thicker and says why in words.
const (
	inkText     = "#1f2933"
	inkQuiet    = "#5f6b76"
	inkPCIe     = "#5f6b76"
	inkNVLink   = "#4f8a10"
	inkC2C      = "#7b4fa3"
	inkWarning  = "#c77700"
	inkCritical = "#c62828"
)

// fills by kind of node: background, border.
var fills = map[graph.Kind][2]string{
	graph.KindNUMA:     {"#eceff3", "#8a95a1"},
	graph.KindSwitch:   {"#f7f8fa", "#8a95a1"},
	graph.KindGPU:      {"#e9f4dc", "#6a9a1f"},
	graph.KindHCA:      {"#dfecf8", "#3a78b0"},
	graph.KindNet:      {"#eef3f8", "#7d9bb5"},
	graph.KindNVSwitch: {"#f1f8e6", "#6a9a1f"},
}

// WriteDOT draws the topology as a Graphviz document: a box per NUMA node and
// PCIe switch, one edge per PCIe link and per bundle of NVLinks, each with
// current and maximum rate; what findings of warning or worse name is drawn in
// their colour with the reason.
func WriteDOT(w io.Writer, t *graph.Topology, findings []check.Finding) error {
	d := diagram{t: t, marks: marks(findings)}
	doc := dot.Graph{
		Name: "ncclmap",
		Attrs: dot.Of("rankdir", "LR", "fontname", "Helvetica", "fontsize", "14", "fontcolor", inkText,
			"nodesep", "0.18", "ranksep", "1.1", "pad", "0.3", "labelloc", "t", "labeljust", "l",
			"splines", "true").Add("label", dot.HTML(title(t))),
		NodeAttrs: dot.Of("fontname", "Helvetica", "fontsize", "11", "fontcolor", inkText, "shape", "box", "style", "rounded,filled", "margin", "0.12,0.06"),
		EdgeAttrs: dot.Of("fontname", "Helvetica", "fontsize", "9", "fontcolor", inkQuiet, "color", inkPCIe),
	}
	for _, n := range t.Of(graph.KindNUMA) {
		if c, ok := d.numaCluster(n); ok {
			// Graphviz stacks sibling clusters of the top level from the bottom.
			doc.Clusters = append([]dot.Cluster{c}, doc.Clusters...)
			d.numaDrawn++
		}
	}
	for _, k := range []graph.Kind{graph.KindSwitch, graph.KindGPU, graph.KindHCA, graph.KindNet} {
		for _, n := range t.Of(k) {
			if n.Home == nil {
				doc.Nodes = append(doc.Nodes, d.node(n))
			}
		}
	}
	for _, group := range d.switchGroups() {
		doc.Nodes = append(doc.Nodes, d.nvswitch(group))
	}
	doc.Clusters = append(doc.Clusters, d.legend())
	d.edges(&doc)
	return doc.Write(w)
}

type diagram struct {
	t         *graph.Topology
	marks     map[string][]check.Finding
	numaDrawn int
	switchBox map[*graph.Node]string // the box that stands for an NVSwitch
}

// marks maps each subject to its findings of warning or worse, worst first.
func marks(findings []check.Finding) map[string][]check.Finding {
	out := map[string][]check.Finding{}
	for _, f := range findings {
		if f.Severity < check.Warning {
			continue
		}
		for _, s := range f.Subjects {
			out[s] = append(out[s], f)
		}
	}
	for _, fs := range out {
		slices.SortStableFunc(fs, func(a, b check.Finding) int { return int(b.Severity) - int(a.Severity) })
	}
	return out
}

func title(t *graph.Topology) string {
	inv := t.Inv
	head := "host " + inv.Host.Name
	if inv.Host.Name == "" {
		head = "host (name unknown)"
	}
	var parts []string
	if gpus := t.Of(graph.KindGPU); len(gpus) > 0 {
		name := gpus[0].GPU.Name
		if name == "" || slices.ContainsFunc(gpus, func(n *graph.Node) bool { return n.GPU.Name != name }) {
			name = "GPU"
		}
		parts = append(parts, fmt.Sprintf("%d × %s", len(gpus), name))
	}
	if hcas := t.Of(graph.KindHCA); len(hcas) > 0 {
		parts = append(parts, fmt.Sprintf("%d × HCA", len(hcas)))
	}
	if p := strings.TrimSpace(inv.Product.Vendor + " " + inv.Product.Name); p != "" {
		parts = append(parts, p)
	}
	if inv.Runtime.Driver != "" {
		parts = append(parts, "driver "+inv.Runtime.Driver)
	}
	if len(check.GuestMarks(t)) > 0 {
		parts = append(parts, "virtual machine: the PCI tree is what the hypervisor shows")
	}
	if len(inv.PCI) == 0 && len(inv.Relations) > 0 {
		parts = append(parts, "from topo -m alone: where devices hang on PCIe is in its matrix, not here")
	}
	return `<b>` + dot.EscapeHTML(head) + `</b>  <font point-size="11" color="` + inkQuiet + `">` + dot.EscapeHTML(strings.Join(parts, " · ")) + `</font>`
}

// numaCluster boxes everything that hangs on a NUMA node; one without devices
// is not drawn.
func (d *diagram) numaCluster(n *graph.Node) (dot.Cluster, bool) {
	var own []dot.Node
	var switches []*graph.Node
	devices := 0
	for _, k := range []graph.Kind{graph.KindSwitch, graph.KindGPU, graph.KindHCA, graph.KindNet} {
		for _, c := range d.t.Of(k) {
			if c.Home != n {
				continue
			}
			devices++
			if c.Up != n && c.Up != nil {
				continue // drawn with its switch
			}
			if k == graph.KindSwitch {
				switches = append(switches, c)
				continue
			}
			own = append(own, d.node(c))
		}
	}
	if devices == 0 {
		return dot.Cluster{}, false
	}
	slices.Reverse(own) // Graphviz stacks the nodes of a cluster from the bottom
	own = append([]dot.Node{d.node(n)}, own...)
	c := dot.Cluster{ID: n.Key, Attrs: dot.Of("label", "", "style", "rounded", "color", "#b6bec7", "margin", "12"), Nodes: own}
	for _, s := range switches {
		c.Clusters = append(c.Clusters, d.switchCluster(s))
	}
	return c, true
}

func (d *diagram) switchCluster(s *graph.Node) dot.Cluster {
	c := dot.Cluster{ID: s.Key, Attrs: dot.Of("label", "", "style", "rounded,dashed", "color", "#c4cad1", "margin", "8"), Nodes: []dot.Node{d.node(s)}}
	var own []dot.Node
	for _, k := range []graph.Kind{graph.KindGPU, graph.KindHCA, graph.KindNet, graph.KindSwitch} {
		for _, n := range d.t.Of(k) {
			switch {
			case n.Up != s:
			case k == graph.KindSwitch:
				c.Clusters = append(c.Clusters, d.switchCluster(n))
			default:
				own = append(own, d.node(n))
			}
		}
	}
	slices.Reverse(own) // Graphviz stacks them from the bottom: GPUs on top
	c.Nodes = append(c.Nodes, own...)
	return c
}

func (d *diagram) node(n *graph.Node) dot.Node {
	return box(n.Key, n.Kind, n.Hidden, nodeLines(n), d.nodeMarks(n))
}

// box draws a node: a bold first line, quiet further ones, and the rules that
// found something in their colour.
func box(id string, kind graph.Kind, hidden bool, lines []string, found []check.Finding) dot.Node {
	border, width, style := fills[kind][1], "1", "rounded,filled"
	label := "<b>" + dot.EscapeHTML(lines[0]) + "</b>"
	for _, l := range lines[1:] {
		label += `<br/>` + small(inkQuiet, l)
	}
	for _, f := range found {
		label += `<br/>` + small(inkOf(f.Severity), f.Rule)
	}
	if len(found) > 0 {
		border, width = inkOf(found[0].Severity), "2.2"
	}
	if hidden {
		style += ",dashed"
	}
	return dot.Node{ID: id, Attrs: dot.Of("id", id, "tooltip", id, "fillcolor", fills[kind][0], "color", border, "penwidth", width, "style", style).Add("label", dot.HTML(label))}
}

func small(ink, s string) string {
	return `<font point-size="9" color="` + ink + `">` + dot.EscapeHTML(s) + `</font>`
}

// nodeMarks lists the findings to print on a node, each rule once: those that
// are about it or its ports, not those that merely touch it.
func (d *diagram) nodeMarks(n *graph.Node) []check.Finding {
	keys := []string{n.Key}
	if n.HCA != nil {
		for _, p := range n.HCA.Ports {
			keys = append(keys, fmt.Sprintf("port:%s/%d", n.HCA.Name, p.Port))
		}
	}
	var found []check.Finding
	for _, k := range keys {
		for _, f := range d.marks[k] {
			if about(f, k) && !slices.ContainsFunc(found, func(g check.Finding) bool { return g.Rule == f.Rule }) {
				found = append(found, f)
			}
		}
	}
	return found
}

// about reports whether a subject is of the kind that the finding is about: that
// of its first subject.
func about(f check.Finding, key string) bool {
	kind, _, _ := strings.Cut(key, ":")
	first, _, _ := strings.Cut(f.Subjects[0], ":")
	return kind == first
}

func nodeLines(n *graph.Node) []string {
	var lines []string
	add := func(s string) {
		if s != "" {
			lines = append(lines, s)
		}
	}
	switch n.Kind {
	case graph.KindNUMA:
		add(n.Label)
		if n.NUMA != nil && n.NUMA.CPUs != "" {
			add("CPUs " + string(n.NUMA.CPUs))
		}
	case graph.KindSwitch:
		add("PCIe switch")
		add(n.PCI.Addr.String())
	case graph.KindGPU:
		add(n.Label)
		add(strings.TrimPrefix(n.GPU.Name, "NVIDIA "))
		if a, ok := n.GPU.Addr.Get(); ok {
			add(a.String())
		}
	case graph.KindHCA:
		add(n.Label)
		add(text.PortsText(n.HCA))
		if a, ok := n.HCA.Addr.Get(); ok {
			add(a.String())
		}
	case graph.KindNet:
		add(n.Label)
		if r, ok := n.NetDev.Speed.Get(); ok {
			add(r.Gbps())
		}
		if a, ok := n.NetDev.Addr.Get(); ok {
			add(a.String())
		}
	}
	return lines
}

// switchGroups gathers NVSwitches that share a GPU: its traffic spreads over all
// of them, and each group is one box.
func (d *diagram) switchGroups() [][]*graph.Node {
	group := map[*graph.Node]int{}
	var out [][]*graph.Node
	for _, sw := range d.t.Of(graph.KindNVSwitch) {
		group[sw] = len(out)
		out = append(out, []*graph.Node{sw})
	}
	for _, gpu := range d.t.Of(graph.KindGPU) {
		for _, b := range d.t.NVLinks(gpu) {
			for _, sw := range b.Nodes[1:] {
				into, from := group[b.Nodes[0]], group[sw]
				if sw.Kind != graph.KindNVSwitch || into == from {
					continue
				}
				for _, x := range out[from] {
					group[x] = into
				}
				out[into] = append(out[into], out[from]...)
				out[from] = nil
			}
		}
	}
	out = slices.DeleteFunc(out, func(g []*graph.Node) bool { return len(g) == 0 })
	d.switchBox = map[*graph.Node]string{}
	for _, g := range out {
		slices.SortFunc(g, func(a, b *graph.Node) int { return int(a.ID() - b.ID()) })
		for _, sw := range g {
			d.switchBox[sw] = g[0].Key
		}
	}
	return out
}

// nvswitch is one box for a group of NVSwitches.
func (d *diagram) nvswitch(sw []*graph.Node) dot.Node {
	lines := []string{"NVSwitch", "identity not visible here"}
	var found []check.Finding
	if !sw[0].Hidden {
		lines = []string{fmt.Sprintf("NVSwitch × %d", len(sw))}
		for _, s := range sw {
			lines = append(lines, strings.TrimPrefix(s.Key, "nvswitch:"))
			found = append(found, d.nodeMarks(s)...)
		}
	}
	return box(sw[0].Key, graph.KindNVSwitch, sw[0].Hidden, lines, found)
}

func (d *diagram) edges(doc *dot.Graph) {
	drawn := map[string]bool{}
	for _, c := range doc.Clusters {
		collect(c, drawn)
	}
	for _, n := range doc.Nodes {
		drawn[n.ID] = true
	}
	for _, l := range d.t.Links {
		switch {
		case l.Kind == graph.PCIe && drawn[l.B.Key]:
			doc.Edges = append(doc.Edges, d.pcie(l))
		case l.Kind == graph.SMP && d.numaDrawn == 2 && drawn[l.A.Key] && drawn[l.B.Key]:
			doc.Edges = append(doc.Edges, dot.Edge{From: l.A.Key, To: l.B.Key, Attrs: dot.Of("id", l.Key(), "style", "dashed", "color", "#8a95a1", "constraint", "false").Add("label", edgeLabel(inkQuiet, "socket link", "rate not visible"))})
		case l.Kind == graph.C2CLink && l.Number == 0: // the first stands for all
			links := slices.DeleteFunc(d.t.Between(l.A, l.B), func(x *graph.Link) bool { return x.Kind != graph.C2CLink })
			doc.Edges = append(doc.Edges, dot.Edge{From: l.B.Key, To: l.A.Key, Attrs: dot.Of("id", l.Key(), "color", inkC2C, "penwidth", "2").
				Add("label", edgeLabel(inkQuiet, fmt.Sprintf("%d × C2C", len(links)), (l.Max.Or(0)*probe.Rate(len(links))).String()))})
		}
	}
	for _, n := range d.t.Of(graph.KindGPU) {
		for _, b := range d.t.NVLinks(n) {
			switch peer := b.Nodes[0]; peer.Kind {
			case graph.KindNVSwitch:
				doc.Edges = append(doc.Edges, d.nvlink(n.Key, d.switchBox[peer], n, b, true))
			case graph.KindGPU:
				if n.ID() < peer.ID() { // the other end's view is the same bundle
					d.bridge(doc, n, peer, b)
				}
			default:
				doc.Edges = append(doc.Edges, d.nvlink(peer.Key, n.Key, n, b, true))
			}
		}
	}
}

// bridge draws the NVLinks between two GPUs as a box with a line to each: the
// GPUs stand in one column, where Graphviz cannot label a line between them.
func (d *diagram) bridge(doc *dot.Graph, n, peer *graph.Node, b graph.NVLinkBundle) {
	f, bad := d.nvlinkMark(n, b)
	lines := []string{n.Label + " – " + peer.Label, text.NVLinkCount(b) + ", " + text.NVLinkRate(b)}
	var found []check.Finding
	if bad {
		found = append(found, f)
	}
	id := n.Key + "--" + peer.Key
	doc.Nodes = append(doc.Nodes, box(id, graph.KindNVSwitch, false, lines, found))
	for _, end := range []*graph.Node{n, peer} {
		doc.Edges = append(doc.Edges, d.nvlink(end.Key, id, n, b, false))
	}
}

func collect(c dot.Cluster, into map[string]bool) {
	for _, n := range c.Nodes {
		into[n.ID] = true
	}
	for _, cc := range c.Clusters {
		collect(cc, into)
	}
}

func (d *diagram) pcie(l *graph.Link) dot.Edge {
	lines := strings.SplitN(text.PCIeText(l), ", ", 2)
	if r, ok := l.Max.Get(); ok && len(lines) == 1 {
		lines = []string{strings.TrimSuffix(lines[0], " "+r.String()), r.String()}
	}
	ink, label, width := inkPCIe, inkQuiet, "1.2"
	if f, ok := d.linkMark(l); ok {
		ink, label, width = inkOf(f.Severity), inkOf(f.Severity), "3"
		lines = append(lines, f.Rule)
	}
	return dot.Edge{From: l.B.Key, To: l.A.Key, Attrs: dot.Of("id", l.Key(), "color", ink, "penwidth", width).Add("label", edgeLabel(label, lines...))}
}

// edgeLabel is text on a white ground, so that no line runs through it.
func edgeLabel(ink string, lines ...string) dot.HTML {
	for i, l := range lines {
		lines[i] = dot.EscapeHTML(l)
	}
	return dot.HTML(`<table border="0" cellborder="0" cellspacing="0" cellpadding="1" bgcolor="white"><tr><td><font color="` + ink + `">` + strings.Join(lines, "<br/>") + `</font></td></tr></table>`)
}

// linkMark returns the worst finding about a PCIe link: one that names the link
// itself, or the device or port at its lower end.
func (d *diagram) linkMark(l *graph.Link) (check.Finding, bool) {
	keys := []string{l.Key(), l.B.Key + "--" + l.A.Key, l.A.Key}
	if l.FuncA != nil {
		keys = append(keys, "pci:"+l.FuncA.Addr.String())
	}
	if l.FuncB != nil && l.B.Kind != graph.KindGPU {
		keys = append(keys, "pci:"+l.FuncB.Addr.String())
	}
	for _, k := range keys {
		for _, f := range d.marks[k] {
			if strings.HasPrefix(f.Rule, "pcie-") {
				return f, true
			}
		}
	}
	return check.Finding{}, false
}

// nvlink is the edge of a bundle of GPU n. Links that are down are a fault only
// if a rule says so: some boards use fewer links than their chip has.
func (d *diagram) nvlink(from, to string, n *graph.Node, b graph.NVLinkBundle, labelled bool) dot.Edge {
	lines := []string{text.NVLinkCount(b), text.NVLinkRate(b)}
	ink, label, width := inkNVLink, inkQuiet, "2.2"
	if f, ok := d.nvlinkMark(n, b); ok {
		ink, label, width = inkOf(f.Severity), inkOf(f.Severity), "3.5"
		lines = append(lines, fmt.Sprintf("%d down: %s", b.All-b.Up, f.Rule))
	}
	attrs := dot.Of("id", from+"--"+to, "color", ink, "penwidth", width)
	if labelled {
		attrs = attrs.Add("label", edgeLabel(label, lines...))
	}
	return dot.Edge{From: from, To: to, Attrs: attrs}
}

// nvlinkMark returns the finding about a bundle that has links down.
func (d *diagram) nvlinkMark(n *graph.Node, b graph.NVLinkBundle) (check.Finding, bool) {
	if b.Up == b.All {
		return check.Finding{}, false
	}
	for _, f := range d.marks[n.Key] {
		if strings.HasPrefix(f.Rule, "nvlink-") {
			return f, true
		}
	}
	return check.Finding{}, false
}

func inkOf(s check.Severity) string {
	if s >= check.Critical {
		return inkCritical
	}
	return inkWarning
}

// legend explains what this drawing shows.
func (d *diagram) legend() dot.Cluster {
	has := func(k graph.LinkKind) bool {
		return slices.ContainsFunc(d.t.Links, func(l *graph.Link) bool { return l.Kind == k })
	}
	row := func(ink, sign, what string) string {
		return `<tr><td align="left"><font color="` + ink + `"><b>` + sign + `</b></font></td><td align="left">` + dot.EscapeHTML(what) + `</td></tr>`
	}
	rows := ""
	if has(graph.PCIe) {
		rows += row(inkPCIe, "━━", "PCIe: link and rate after line coding; “now of maximum” where they differ")
	}
	if has(graph.NVLink) {
		rows += row(inkNVLink, "━━", "NVLink: links × generation, payload rate as in data sheets")
	}
	if has(graph.C2CLink) {
		rows += row(inkC2C, "━━", "NVLink-C2C between GPU and CPU")
	}
	switch {
	case d.numaDrawn == 2 && has(graph.SMP):
		rows += row("#8a95a1", "╌╌", "between NUMA nodes")
	case d.numaDrawn > 2 && has(graph.SMP):
		rows += row("#8a95a1", "⋯", "all NUMA nodes of the host are joined; those links are not drawn")
	}
	rows += row(inkWarning, "━━", "degraded: warning, with the rule that says so")
	rows += row(inkCritical, "━━", "degraded: critical, with the rule that says so")
	label := `<table border="0" cellborder="0" cellspacing="1"><tr><td colspan="2" align="left"><b>Rates are GB/s (10⁹ bytes/s) in one direction</b></td></tr>` + rows + `</table>`
	return dot.Cluster{ID: "legend", Attrs: dot.Of("label", "", "style", "rounded", "color", "#d5dae0"), Nodes: []dot.Node{
		{ID: "legend", Attrs: dot.Of("shape", "plain", "style", "", "fontsize", "9").Add("label", dot.HTML(label))},
	}}
}

// treeMarks says, for the text tree, what each node's findings are.
func treeMarks(t *graph.Topology, findings []check.Finding) map[string]string {
	d := diagram{t: t, marks: marks(findings)}
	out := map[string]string{}
	for _, n := range t.Nodes {
		var rules []string
		for _, f := range d.nodeMarks(n) {
			rules = append(rules, fmt.Sprintf("%s (%s)", f.Rule, f.Severity))
		}
		out[n.Key] = strings.Join(rules, ", ")
	}
	return out
}
