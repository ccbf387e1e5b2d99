package render

import (
	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// document is the topology as JSON: what the diagram shows, for other programs.
type document struct {
	Schema string      `json:"schema"`
	Host   string      `json:"host"`
	Nodes  []nodeDoc   `json:"nodes"`
	Links  []linkDoc   `json:"links"`
	Paths  []pathDoc   `json:"paths"`
	Gaps   []probe.Gap `json:"gaps"`
}

type nodeDoc struct {
	Key   string     `json:"key"`
	Kind  graph.Kind `json:"kind"`
	Label string     `json:"label"`
	Home  string     `json:"numa,omitempty"` // key of its NUMA node
	Up    string     `json:"up,omitempty"`   // key of the next node towards the host bridge
}

type linkDoc struct {
	A        string                `json:"a"`
	B        string                `json:"b"`
	Kind     graph.LinkKind        `json:"kind"`
	Max      probe.Opt[probe.Rate] `json:"max_bytes_per_s"`
	Current  probe.Opt[probe.Rate] `json:"current_bytes_per_s"`
	Measured probe.Opt[probe.Rate] `json:"measured_bytes_per_s"`
	State    string                `json:"state,omitempty"`
}

// pathDoc is one unordered pair of devices.
type pathDoc struct {
	A     string                `json:"a"`
	B     string                `json:"b"`
	Class graph.PathClass       `json:"class"`
	Code  string                `json:"smi_code"`
	Rate  probe.Opt[probe.Rate] `json:"max_bytes_per_s"`
}

func topologyDoc(t *graph.Topology) document {
	d := document{Schema: "ncclmap.topology/v1", Host: t.Inv.Host.Name, Gaps: append([]probe.Gap{}, t.Gaps...)}
	for _, n := range t.Nodes {
		nd := nodeDoc{Key: n.Key, Kind: n.Kind, Label: n.Label}
		if n.Home != nil {
			nd.Home = n.Home.Key
		}
		if n.Up != nil {
			nd.Up = n.Up.Key
		}
		d.Nodes = append(d.Nodes, nd)
	}
	for _, l := range t.Links {
		d.Links = append(d.Links, linkDoc{l.A.Key, l.B.Key, l.Kind, l.Max, l.Current, l.Measured, l.State})
	}
	devices := append(t.Of(graph.KindGPU), t.Of(graph.KindHCA)...)
	for i, a := range devices {
		for _, b := range devices[i+1:] {
			p := t.Path(a, b)
			d.Paths = append(d.Paths, pathDoc{a.Key, b.Key, p.Class, t.SMICode(a, b), p.Rate})
		}
	}
	return d
}
