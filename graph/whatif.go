package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// WhatIf changes a topology from what was seen to what might be. Subjects are
// keys or labels of nodes (gpu:0000:17:00.0, GPU0, mlx5_0) and, for links, two of
// them: GPU0--numa:0 is all links between the two.
type WhatIf struct {
	Without []string   // nodes and links that are gone
	Rates   []LinkRate // links that run at another rate
}

// LinkRate is the rate of all links between two nodes together.
type LinkRate struct {
	Link string
	Rate probe.Rate // bytes/s, one direction
}

// Lines says what is changed, a line each.
func (w WhatIf) Lines() (out []string) {
	for _, s := range w.Without {
		out = append(out, "without "+s)
	}
	for _, r := range w.Rates {
		out = append(out, fmt.Sprintf("link %s at %g GB/s", r.Link, r.Rate.GBs()))
	}
	return out
}

// BuildWhatIf makes the topology of one host as it would be after changes.
func BuildWhatIf(inv *probe.Inventory, w WhatIf) (*Topology, error) {
	b, err := newBuilder(inv)
	if err != nil {
		return nil, err
	}
	for _, subject := range w.Without {
		if err := b.without(subject); err != nil {
			return nil, fmt.Errorf("without %s: %w", subject, err)
		}
	}
	for _, r := range w.Rates {
		if err := b.setRate(r); err != nil {
			return nil, fmt.Errorf("set link %s: %w", r.Link, err)
		}
	}
	b.finish()
	return b.t, nil
}

// node finds a node by key or label.
func (b *builder) node(name string) (*Node, error) {
	if n := b.t.byKey[name]; n != nil {
		return n, nil
	}
	var found []*Node
	for _, n := range b.t.Nodes {
		if strings.EqualFold(n.Label, name) {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("the host has no %q", probe.Excerpt(name))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%q is the name of %d things; use the key of one, such as %s", probe.Excerpt(name), len(found), found[0].Key)
}

// between finds the links that a subject A--B names.
func (b *builder) between(subject string) ([]*Link, error) {
	x, y, ok := strings.Cut(subject, "--")
	if !ok {
		return nil, fmt.Errorf("a link is named by both ends: A--B")
	}
	from, err := b.node(x)
	to, other := b.node(y)
	switch {
	case err != nil && other != nil:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; of %s: %s", err, to.Key, b.linksOf(to))
	case other != nil:
		return nil, fmt.Errorf("%w; of %s: %s", other, from.Key, b.linksOf(from))
	}
	var out []*Link
	for _, l := range b.t.Links {
		if l.A == from && l.B == to || l.A == to && l.B == from {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no link joins %s and %s; of the first: %s", from.Key, to.Key, b.linksOf(from))
	}
	return out, nil
}

// linksOf tells the links of a node by the names that a what-if takes.
func (b *builder) linksOf(n *Node) string {
	var names []string
	for _, l := range b.t.Links {
		if l.A == n || l.B == n {
			names = append(names, l.Key())
		}
	}
	if len(names) == 0 {
		return "no links"
	}
	slices.Sort(names)
	return "links " + strings.Join(slices.Compact(names), ", ")
}

func (b *builder) without(subject string) error {
	if strings.Contains(subject, "--") {
		gone, err := b.between(subject)
		if err != nil {
			return err
		}
		for _, l := range gone {
			l.Set = probe.Some(probe.Rate(0))
		}
		return nil
	}
	n, err := b.node(subject)
	if err != nil {
		return err
	}
	gone := map[*Node]bool{n: true}
	// What hangs on it goes with it.
	for more := true; more; {
		more = false
		for _, x := range b.t.Nodes {
			if !gone[x] && x.Up != nil && gone[x.Up] {
				gone[x], more = true, true
			}
		}
	}
	b.t.Nodes = slices.DeleteFunc(b.t.Nodes, func(x *Node) bool { return gone[x] })
	for x := range gone {
		delete(b.t.byKey, x.Key)
	}
	b.t.Links = slices.DeleteFunc(b.t.Links, func(l *Link) bool { return gone[l.A] || gone[l.B] })
	return nil
}

func (b *builder) setRate(r LinkRate) error {
	links, err := b.between(r.Link)
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Set.Known() {
			return fmt.Errorf("this link is changed already")
		}
		if !l.Max.Known() && !l.Current.Known() {
			return fmt.Errorf("the rate that it has is unknown, so the model cannot scale it")
		}
		l.Set = probe.Some(r.Rate / probe.Rate(len(links)))
	}
	return nil
}

// Share is what a what-if leaves of the link's rate: 1 where it leaves it alone.
func (l *Link) Share() float64 {
	set, ok := l.Set.Get()
	if !ok {
		return 1
	}
	now := l.Max
	if !now.Known() {
		now = l.Current
	}
	if has := now.Or(0); has > 0 {
		return float64(set) / float64(has)
	}
	return 0
}
