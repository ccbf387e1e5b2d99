package ncclxml

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// graphDump is what NCCL 2.30 writes of a ring over two hosts and a search that
// found nothing.
const graphDump = `<graphs version="1">
  <graph id="0" pattern="4" crossnic="2" nchannels="2" speedintra="30" speedinter="17.5" latencyinter="0" typeintra="NVL" typeinter="PXB" samechannels="0">
    <channel>
      <net dev="0x1"/>
      <gpu dev="0" rank="8"/>
      <gpu dev="0xb" rank="9"/>
      <net dev="0x1"/>
    </channel>
    <channel>
      <net dev="0"/>
      <gpu dev="0xb" rank="9"/>
      <gpu dev="0x100000000000000" rank="10"/>
      <net dev="0"/>
    </channel>
  </graph>
  <graph id="2" pattern="3" crossnic="0" nchannels="0" speedintra="0" speedinter="0" latencyinter="0" typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>
`

func TestGraphs(t *testing.T) {
	inv, err := DecodeGraphs("graph.xml", strings.NewReader(graphDump))
	if err != nil {
		t.Fatal(err)
	}
	at := func(line int) []probe.Origin {
		return []probe.Origin{probe.LineOf(probe.SourceNCCLXML, "graph.xml", line)}
	}
	want := []probe.GraphFile{{File: "graph.xml", Graphs: []probe.Graph{
		{
			ID: probe.Some(0), Pattern: "ring", Channels: 2, BWIntra: 30, BWInter: 17.5, TypeIntra: "NVL", TypeInter: "PXB", CrossNIC: 2, SameChannels: probe.Some(false),
			Orders: []string{"NET/1 GPU/0[rank=8] GPU/11[rank=9] NET/1", "NET/0 GPU/11[rank=9] GPU/1-0[rank=10] NET/0"}, Origins: at(2),
		},
		{ID: probe.Some(2), Pattern: "tree", TypeIntra: "LOC", TypeInter: "LOC", SameChannels: probe.Some(false), Origins: at(16)},
	}}}
	if d := cmp.Diff(want, inv.Graphs, cmp.AllowUnexported(probe.Opt[int]{}, probe.Opt[bool]{})); d != "" {
		t.Error(d)
	}
	if len(inv.Gaps) > 0 || inv.NoJob() || len(inv.GPUs) > 0 {
		t.Errorf("%+v", inv)
	}
	// It survives being written and read.
	var b bytes.Buffer
	if err := inv.Encode(&b); err != nil {
		t.Fatal(err)
	}
	again, err := probe.Decode("x", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(inv.Graphs, again.Graphs, cmp.AllowUnexported(probe.Opt[int]{}, probe.Opt[bool]{})); d != "" {
		t.Error(d)
	}
}

// Without 0x a number is decimal, as NCCL wrote it before 2.21; what later
// versions would make of it is said.
func TestGraphsDecimal(t *testing.T) {
	inv, err := DecodeGraphs("g", strings.NewReader(strings.ReplaceAll(graphDump, `"0xb"`, `"11"`)))
	if err != nil || !strings.HasPrefix(inv.Graphs[0].Graphs[0].Orders[0], "NET/1 GPU/0[rank=8] GPU/11[rank=9]") {
		t.Fatal(err)
	}
	if len(inv.Gaps) != 2 || !strings.Contains(inv.Gaps[0].Why, `line 11: dev "11", which NCCL before 2.21 wrote in decimal`) {
		t.Errorf("%+v", inv.Gaps)
	}
}

func TestGraphsRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{graphDump, "", "g: empty: no <graphs> element"},
		{graphDump, dump, "g:1:1: an NCCL topology file"},
		{` nchannels="2"`, ``, "g:2: <graph> has no nchannels"},
		{` nchannels="2"`, ` nchannels="3"`, "g:2: <graph> nchannels is 3, and there are 2 <channel>"},
		{` nchannels="2"`, ` nchannels="-2"`, `g:2:3: <graph> nchannels "-2": not between 0 and 128`},
		{`pattern="4"`, `pattern="x"`, `g:2:3: <graph> pattern "x": not a whole number`},
		{`typeintra="NVL"`, `typeintra="C2C"`, `g:2:3: <graph> typeintra "C2C": none of the path types that NCCL reads`},
		{`speedinter="17.5"`, `speedinter="NaN"`, `g:2:3: <graph> speedinter "NaN": not a number`},
		{`speedintra="30"`, `speedintra="-30"`, `g:2: <graph> of a negative speed`},
		{`<gpu dev="0" rank="8"/>`, `<gpu rank="8"/>`, "g:5: <gpu> has no dev"},
		{`<gpu dev="0" rank="8"/>`, `<gpu dev="0x" rank="8"/>`, `g:5:7: <gpu> dev "0x": not the number of a device`},
		{`<gpu dev="0" rank="8"/>`, `<gpu dev="0xb" rank="9"/>`, `g:6: <gpu> dev "0xb" stands twice in the channel`},
		{`<gpu dev="0" rank="8"/>`, `<gpu dev="0"/><net dev="0"/>`, "g:5: <net> between the <gpu> of a channel"},
		{`<gpu dev="0" rank="8"/>`, `<nic/>`, "g:5: <nic> in <channel>, want <gpu> or <net>"},
		{"  <graph id=\"2\"", "  <channel/>\n  <graph id=\"2\"", "g:16: <channel> in <graphs>, want <graph>"},
		{"</graphs>", "", "the document is cut off inside <graphs> of line 1"},
	} {
		if !strings.Contains(graphDump, c.old) {
			t.Fatalf("%q is not in the text", c.old)
		}
		inv, err := DecodeGraphs("g", strings.NewReader(strings.Replace(graphDump, c.old, c.new, 1)))
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v\nwant %s", c.new, err, c.want)
		}
	}
}

// The recorded machine and published files.
func TestGraphsShared(t *testing.T) {
	for file, want := range map[string]string{
		"captures/2xh200-vm/graph-dump.xml":          "ring 12 30 GPU/0 GPU/1; balanced tree 12 60 GPU/0 GPU/1; collnet direct 0 0 ; tree 0 0 ; nvls 0 0 ; ",
		"corpus/topo-xml/azure-ncv4-graph.xml":       "ring 2 12 GPU/0 GPU/1 GPU/2 GPU/3; balanced tree 4 12 GPU/0 GPU/1 GPU/2 GPU/3; tree 4 12 GPU/0 GPU/1 GPU/2 GPU/3; ",
		"corpus/topo-xml/panlichen-8x3090-graph.xml": "ring 1 4 NET/0 GPU/0 GPU/1 GPU/2 GPU/3 GPU/4 GPU/5 GPU/6 GPU/7 NET/0; balanced tree 1 4 NET/0 GPU/0 GPU/1 GPU/2 GPU/3 GPU/4 GPU/5 GPU/6 GPU/7 NET/0; tree 0 0 ; nvls 0 0 ; ",
	} {
		raw, err := os.ReadFile(filepath.Join(shared, file))
		if err != nil {
			t.Skip("../shared is not here")
		}
		inv, err := DecodeGraphs(filepath.Base(file), bytes.NewReader(raw))
		if err != nil {
			t.Error(err)
			continue
		}
		var b strings.Builder
		for _, g := range inv.Graphs[0].Graphs {
			first := ""
			if len(g.Orders) > 0 {
				first = g.Orders[0]
			}
			b.WriteString(strings.Join([]string{g.Pattern, strconv.Itoa(g.Channels), strconv.Itoa(int(g.BWIntra)), first}, " ") + "; ")
		}
		if b.String() != want || len(inv.Gaps) > 0 {
			t.Errorf("%s: %s, gaps %v", file, b.String(), inv.Gaps)
		}
	}
}

func FuzzGraphs(f *testing.F) {
	f.Add([]byte(graphDump))
	f.Fuzz(func(t *testing.T, text []byte) {
		SniffGraphs(text)
		inv, err := DecodeGraphs("f", bytes.NewReader(text))
		if (err == nil) != (inv != nil) {
			t.Fatalf("inventory %v with error %v", inv, err)
		}
		if err == nil {
			var b bytes.Buffer
			if err := inv.Encode(&b); err != nil {
				t.Fatal(err)
			}
		}
	})
}
