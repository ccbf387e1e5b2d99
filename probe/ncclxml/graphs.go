package ncclxml

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// graphs is the form of NCCL_GRAPH_DUMP_FILE and NCCL_GRAPH_FILE, by NCCL 2.30.7
// src/graph/search.cc. Upper bounds are ours.
var graphs = form{
	root:   "graphs",
	others: map[string]string{"system": "an NCCL topology file (NCCL_TOPO_FILE), not a graph file"},
	attributes: []attribute{
		{"graphs", "version", whole, 0, anyInt, false},

		{"graph", "id", whole, 0, 63, false},
		{"graph", "pattern", whole, 1, 63, false},
		{"graph", "crossnic", whole, 0, 2, false},
		{"graph", "nchannels", whole, 0, maxChannels, false},
		{"graph", "speedintra", decimal, 0, 0, false},
		{"graph", "speedinter", decimal, 0, 0, false},
		{"graph", "latencyinter", decimal, 0, 0, false},
		{"graph", "typeintra", pathType, 0, 0, false},
		{"graph", "typeinter", pathType, 0, 0, false},
		{"graph", "samechannels", whole, 0, 1, false},

		{"gpu", "dev", device, 0, 0, false},
		{"gpu", "rank", whole, 0, anyInt, false},
		{"net", "dev", device, 0, 0, false},
	},
}

// maxChannels is twice NCCL's MAXCHANNELS.
const maxChannels = 128

// pathTypes are the names that NCCL reads and writes; a graph over C2C cannot be
// dumped.
var pathTypes = []string{"LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}

// SniffGraphs reports whether a file that starts with head is an NCCL graph file.
func SniffGraphs(head []byte) bool { return probe.XMLStarts(head, graphs.root, "") }

// DecodeGraphs reads a graph file. name is its base name. The inventory holds
// nothing but the file's graphs: it says neither of which host they are nor of
// which communicator. Faults in the text are *probe.SyntaxError with the line; an
// input over probe.MaxInput is probe.ErrTooLarge.
func DecodeGraphs(name string, r io.Reader) (*probe.Inventory, error) {
	d := decoder{form: &graphs, doc: &Document{Name: name}}
	if err := d.read(r); err != nil {
		return nil, err
	}
	file := probe.GraphFile{File: name, Graphs: []probe.Graph{}}
	inv := &probe.Inventory{Schema: probe.Schema}
	for _, e := range d.doc.Root.Children {
		if e.Name != "graph" {
			return nil, d.fault(e.Line, 0, "<%s> in <graphs>, want <graph>", probe.Excerpt(e.Name))
		}
		g, err := d.graph(e)
		if err != nil {
			return nil, err
		}
		file.Graphs = append(file.Graphs, g)
	}
	inv.Graphs = []probe.GraphFile{file}
	for _, i := range d.doc.Refused {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: name + " as NCCL_GRAPH_FILE", Why: fmt.Sprintf("NCCL would not read it as ncclmap does: line %d: %s", i.Line, i.Msg),
			Origin: probe.LineOf(probe.SourceNCCLXML, name, i.Line),
		})
	}
	inv.Normalize()
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return inv, nil
}

func (d *decoder) graph(e *Element) (probe.Graph, error) {
	for _, name := range []string{"id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter", "typeintra", "typeinter", "samechannels"} {
		if _, ok := e.Text(name); !ok {
			return probe.Graph{}, d.fault(e.Line, 0, "<graph> has no %s, without which NCCL refuses the file", name)
		}
	}
	speed := func(name string) float64 {
		return typed(e, name, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }).Or(0)
	}
	pattern := e.Int("pattern").Or(0)
	g := probe.Graph{
		ID: e.Int("id"), Pattern: probe.PatternName(pattern), Channels: e.Int("nchannels").Or(0), BWIntra: speed("speedintra"), BWInter: speed("speedinter"),
		CrossNIC: e.Int("crossnic").Or(0), SameChannels: flag(e.Int("samechannels")), Origins: []probe.Origin{probe.LineOf(probe.SourceNCCLXML, d.doc.Name, e.Line)},
	}
	if g.Pattern == "" {
		g.Pattern = fmt.Sprintf("pattern %d", pattern)
	}
	g.TypeIntra, _ = e.Text("typeintra")
	g.TypeInter, _ = e.Text("typeinter")
	if g.BWIntra < 0 || g.BWInter < 0 {
		return probe.Graph{}, d.fault(e.Line, 0, "<graph> of a negative speed")
	}
	for _, c := range e.Children {
		if c.Name != "channel" {
			return probe.Graph{}, d.fault(c.Line, 0, "<%s> in <graph>, want <channel>", probe.Excerpt(c.Name))
		}
		order, err := d.channel(c)
		if err != nil {
			return probe.Graph{}, err
		}
		g.Orders = append(g.Orders, order)
	}
	if len(g.Orders) != g.Channels {
		return probe.Graph{}, d.fault(e.Line, 0, "<graph> nchannels is %d, and there are %d <channel>", g.Channels, len(g.Orders))
	}
	return g, nil
}

// channel returns the order of one channel: GPUs, between two adapters where the
// communicator leaves its host.
func (d *decoder) channel(e *Element) (string, error) {
	var words []string
	gpus := 0
	for i, c := range e.Children {
		switch {
		case c.Name == "gpu":
			gpus++
		case c.Name == "net" && (i == 0 || i == len(e.Children)-1):
		case c.Name == "net":
			return "", d.fault(c.Line, 0, "<net> between the <gpu> of a channel, want it first and last")
		default:
			return "", d.fault(c.Line, 0, "<%s> in <channel>, want <gpu> or <net>", probe.Excerpt(c.Name))
		}
		s, ok := c.Text("dev")
		if !ok {
			return "", d.fault(c.Line, 0, "<%s> has no dev", c.Name)
		}
		host, dev, _ := parseDevice(s)
		if dev > 9 && !isHex(s) {
			d.refuse(c.Line, "dev %q, which NCCL before 2.21 wrote in decimal and later ones read in hexadecimal", s)
		}
		word := fmt.Sprintf("%s/%d", strings.ToUpper(c.Name), dev)
		if host > 0 {
			word = fmt.Sprintf("%s/%d-%d", strings.ToUpper(c.Name), host, dev)
		}
		if rank, ok := c.Int("rank").Get(); ok {
			word += fmt.Sprintf("[rank=%d]", rank)
		}
		if c.Name == "gpu" && slices.Contains(words, word) {
			return "", d.fault(c.Line, 0, "<gpu> dev %q stands twice in the channel", s)
		}
		words = append(words, word)
	}
	if gpus == 0 {
		return "", d.fault(e.Line, 0, "<channel> without a <gpu>")
	}
	return strings.Join(words, " "), nil
}

func isHex(s string) bool { return strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") }

// parseDevice reads the number of a GPU or of a network device: hexadecimal with
// 0x since 2.21, the number of its host in the top byte; decimal before.
func parseDevice(s string) (host, dev uint64, err error) {
	base, digits := 10, s
	if isHex(s) {
		base, digits = 16, s[2:]
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, 0, err
	}
	return v >> 56, v & (1<<56 - 1), nil
}
