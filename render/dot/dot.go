package dot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Graph is an undirected graph; parallel edges stay apart.
type Graph struct {
	Name      string // the drawing's title; may be empty
	Attrs     Attrs  // of the drawing as a whole
	NodeAttrs Attrs  // defaults for every node
	EdgeAttrs Attrs  // defaults for every edge
	Clusters  []Cluster
	Nodes     []Node // outside all clusters
	Edges     []Edge
}

// Cluster is a box around nodes and further clusters, at least one node in all.
type Cluster struct {
	ID       string // unique in the graph; its DOT name is ClusterName(ID)
	Attrs    Attrs
	Clusters []Cluster
	Nodes    []Node
}

// Node is one box of the drawing, in exactly one place of the graph.
type Node struct {
	ID    string // unique in the graph; the label unless Attrs has one
	Attrs Attrs
}

// Edge joins two nodes by their IDs.
type Edge struct {
	From, To string
	Attrs    Attrs
}

// ClusterName is the name under which lhead and ltail refer to a cluster.
// Graphviz draws a subgraph as a cluster only if its name begins so.
func ClusterName(id string) string { return "cluster_" + id }

// Write checks g and writes it in one piece; on error it has written nothing
// unless w itself failed.
func (g *Graph) Write(w io.Writer) error {
	p := printer{nodes: map[string]bool{}, clusters: map[string]bool{}}
	if err := p.graph(g); err != nil {
		return fmt.Errorf("graph %q: %w", g.Name, err)
	}
	if _, err := w.Write(p.out.Bytes()); err != nil {
		return fmt.Errorf("graph %q: write: %w", g.Name, err)
	}
	return nil
}

// printer collects the document. Nodes and clusters are remembered by their
// spelling in DOT, which is what Graphviz tells them apart by.
type printer struct {
	out             bytes.Buffer
	depth           int
	nodes, clusters map[string]bool
}

func (p *printer) graph(g *Graph) error {
	name := ""
	if g.Name != "" {
		name = quote(g.Name, `\n`) + " "
	}
	p.line("graph %s{", name)
	p.depth++
	for _, d := range []struct {
		kind  string
		attrs Attrs
	}{{"graph", g.Attrs}, {"node", nonEmptyLabel(g.NodeAttrs)}, {"edge", g.EdgeAttrs}} {
		if err := p.defaults(d.kind, d.attrs); err != nil {
			return fmt.Errorf("%s defaults: %w", d.kind, err)
		}
	}
	if err := p.members(g.Attrs, g.Clusters, g.Nodes); err != nil {
		return err
	}
	for _, e := range g.Edges {
		if err := p.edge(e); err != nil {
			return fmt.Errorf("edge %q to %q: %w", e.From, e.To, err)
		}
	}
	p.depth--
	p.line("}")
	return nil
}

// members writes what a graph or cluster with the given attributes holds.
func (p *printer) members(parent Attrs, clusters []Cluster, nodes []Node) error {
	for _, c := range clusters {
		if err := p.cluster(parent, c); err != nil {
			return fmt.Errorf("cluster %q: %w", c.ID, err)
		}
	}
	for _, n := range nodes {
		if err := p.node(n); err != nil {
			return fmt.Errorf("node %q: %w", n.ID, err)
		}
	}
	return nil
}

func (p *printer) cluster(parent Attrs, c Cluster) error {
	name := quote(ClusterName(c.ID), `\n`)
	switch {
	case c.ID == "":
		return errors.New("empty id")
	case p.clusters[name]:
		return errors.New("id used twice")
	}
	p.clusters[name] = true
	p.line("subgraph %s {", name)
	p.depth++
	if err := p.defaults("graph", disinherit(parent, c.Attrs)); err != nil {
		return err
	}
	before := len(p.nodes)
	if err := p.members(c.Attrs, c.Clusters, c.Nodes); err != nil {
		return err
	}
	if len(p.nodes) == before {
		return errors.New("no node in it, so Graphviz would leave it out")
	}
	p.depth--
	p.line("}")
	return nil
}

func (p *printer) node(n Node) error {
	name := quote(n.ID, `\n`)
	switch {
	case n.ID == "":
		return errors.New("empty id")
	case p.nodes[name]:
		return errors.New("id used twice")
	}
	p.nodes[name] = true
	attrs, err := nonEmptyLabel(n.Attrs).spell()
	if err != nil {
		return err
	}
	p.line("%s%s;", name, attrs)
	return nil
}

func (p *printer) edge(e Edge) error {
	from, to := quote(e.From, `\n`), quote(e.To, `\n`)
	// Graphviz would create a node for a name it does not know.
	switch {
	case !p.nodes[from]:
		return fmt.Errorf("no node %q", e.From)
	case !p.nodes[to]:
		return fmt.Errorf("no node %q", e.To)
	}
	attrs, err := e.Attrs.spell()
	if err != nil {
		return err
	}
	p.line("%s -- %s%s;", from, to, attrs)
	return nil
}

func (p *printer) defaults(kind string, a Attrs) error {
	attrs, err := a.spell()
	if err != nil {
		return err
	}
	if attrs != "" {
		p.line("%s%s;", kind, attrs)
	}
	return nil
}

func (p *printer) line(format string, args ...any) {
	p.out.WriteString(strings.Repeat("  ", p.depth))
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// disinherit clears in a cluster what describes only the graph or cluster
// around it: Graphviz hands every attribute down, so that a cluster without a
// label would repeat the title and one without an id would repeat that id.
func disinherit(parent, own Attrs) Attrs {
	for _, name := range []string{"label", "id", "tooltip", "URL", "href"} {
		if parent.has(name) && !own.has(name) {
			own = own.Add(name, Text(""))
		}
	}
	return own
}

// nonEmptyLabel puts a blank for an empty node label, which go-graphviz would
// replace by the node's name.
func nonEmptyLabel(a Attrs) Attrs {
	i := slices.Index(a, Attr{"label", Text("")})
	if i < 0 {
		return a
	}
	a = slices.Clone(a)
	a[i].Value = Text(" ")
	return a
}
