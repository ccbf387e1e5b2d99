package dot

import (
	"errors"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	gonumdot "gonum.org/v1/gonum/graph/formats/dot"
	"gonum.org/v1/gonum/graph/formats/dot/ast"
)

func TestWrite(t *testing.T) {
	for _, tc := range []struct {
		name  string
		graph Graph
		want  string
	}{
		{name: "empty", want: "graph {\n}\n"},
		{
			name: "whole",
			graph: Graph{
				Name:      "h100-8",
				Attrs:     Of("fontname", "Helvetica", "label", "host"),
				NodeAttrs: Of("shape", "box"),
				EdgeAttrs: Of("color", "#76b900"),
				Clusters: []Cluster{{
					ID:    "numa0",
					Attrs: Of("label", "NUMA 0", "style", "rounded"),
					Clusters: []Cluster{{
						ID:    "sw0",
						Nodes: []Node{{ID: "0000:17:00.0", Attrs: Attrs{{"label", HTML("<B>GPU 0</B>")}}}},
					}},
					Nodes: []Node{{ID: "cpu0"}},
				}},
				Nodes: []Node{{ID: "gpu1", Attrs: Attrs{{"label", Left("GPU 1\n80 GiB")}}}},
				Edges: []Edge{
					{From: "0000:17:00.0", To: "gpu1", Attrs: Of("label", "NV18")},
					{From: "0000:17:00.0", To: "gpu1", Attrs: Of("label", "NV18")},
					{From: "cpu0", To: "gpu1"},
				},
			},
			want: `graph "h100-8" {
  graph [fontname="Helvetica", label="host"];
  node [shape="box"];
  edge [color="#76b900"];
  subgraph "cluster_numa0" {
    graph [label="NUMA 0", style="rounded"];
    subgraph "cluster_sw0" {
      graph [label=""];
      "0000:17:00.0" [label=<<B>GPU 0</B>>];
    }
    "cpu0";
  }
  "gpu1" [label="GPU 1\l80 GiB\l"];
  "0000:17:00.0" -- "gpu1" [label="NV18"];
  "0000:17:00.0" -- "gpu1" [label="NV18"];
  "cpu0" -- "gpu1";
}
`,
		},
		{
			name: "what describes the parent is not handed down",
			graph: Graph{
				Attrs:    Of("id", "top", "tooltip", "t", "URL", "u", "color", "red"),
				Clusters: []Cluster{{ID: "a", Clusters: []Cluster{{ID: "b", Nodes: []Node{{ID: "n"}}}}}},
			},
			want: `graph {
  graph [id="top", tooltip="t", URL="u", color="red"];
  subgraph "cluster_a" {
    graph [id="", tooltip="", URL=""];
    subgraph "cluster_b" {
      "n";
    }
  }
}
`,
		},
		{
			name: "escaping",
			graph: Graph{
				Name: `a "b" \N`,
				Nodes: []Node{
					{ID: `back\slash`},
					{ID: `ends in \`},
					{ID: `say "hi"`},
					{ID: "two\nlines"},
					{ID: "two\r\nlines\t."},
					{ID: `two\nlines`},
					{ID: "größe 大 😀"},
					{ID: "<b>&amp;", Attrs: Of("label", "")},
					{ID: "bad \xff \x00 \u0085 \uffff \ufffd"},
					{ID: "node"},
				},
				Edges: []Edge{{From: "<b>&amp;", To: `ends in \`}},
			},
			want: `graph "a \"b\" \\N" {
  "back\\slash";
  "ends in \\";
  "say \"hi\"";
  "two\nlines";
  "two\nlines .";
  "two\\nlines";
  "größe 大 😀";
  "<b>&amp;amp;" [label=" "];
  "bad &#65533; &#65533; &#65533; &#65533; &#65533;";
  "node";
  "<b>&amp;amp;" -- "ends in \\";
}
`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got strings.Builder
			if err := tc.graph.Write(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			checkCounts(t, &tc.graph, got.String())
		})
	}
}

func TestWriteErrors(t *testing.T) {
	label := func(v Value) Graph { return Graph{Nodes: []Node{{ID: "a", Attrs: Attrs{{"label", v}}}}} }
	attrs := func(a Attrs) Graph { return Graph{EdgeAttrs: a} }
	for _, tc := range []struct {
		name  string
		graph Graph
		want  string
	}{
		{"node twice", Graph{Nodes: []Node{{ID: "a"}, {ID: "a"}}}, `node "a": id used twice`},
		{"node twice across clusters", Graph{Clusters: []Cluster{{ID: "c", Nodes: []Node{{ID: "a"}}}}, Nodes: []Node{{ID: "a"}}}, `node "a": id used twice`},
		{"node without id", Graph{Nodes: []Node{{}}}, `node "": empty id`},
		{"same after replacement", Graph{Nodes: []Node{{ID: "a\x01"}, {ID: "a\xff"}}}, `node "a\xff": id used twice`},
		{"cluster without id", Graph{Clusters: []Cluster{{}}}, `cluster "": empty id`},
		{"cluster twice", Graph{Clusters: []Cluster{{ID: "c", Clusters: []Cluster{{ID: "c"}}}}}, `cluster "c": cluster "c": id used twice`},
		{"cluster without nodes", Graph{Clusters: []Cluster{{ID: "c", Clusters: []Cluster{{ID: "d"}}}}}, `cluster "c": cluster "d": no node in it, so Graphviz would leave it out`},
		{"edge to nowhere", Graph{Nodes: []Node{{ID: "a"}}, Edges: []Edge{{From: "a", To: "b"}}}, `edge "a" to "b": no node "b"`},
		{"edge to a cluster", Graph{Clusters: []Cluster{{ID: "c", Nodes: []Node{{ID: "a"}}}}, Edges: []Edge{{From: "cluster_c", To: "a"}}}, `edge "cluster_c" to "a": no node "cluster_c"`},
		{"attribute twice", attrs(Of("color", "red", "color", "blue")), `edge defaults: attribute "color": set twice`},
		{"attribute without value", attrs(Of("color")), `edge defaults: attribute "color": no value`},
		{"attribute without name", attrs(Of("", "x")), `edge defaults: attribute "": empty name`},
		{"attribute name", attrs(Of(`a"]`, "x")), `edge defaults: attribute "a\"]": name is not letters, digits and _`},
		{"attribute keyword", attrs(Of("Node", "x")), `edge defaults: attribute "Node": name is a DOT keyword`},
		{"rank", Graph{Clusters: []Cluster{{ID: "c", Attrs: Of("rank", "same")}}}, `cluster "c": attribute "rank": "same" across clusters aborts Graphviz 2.43`},
		{"html empty", label(HTML("")), `node "a": attribute "label": HTML-like label: empty`},
		{"html ends early", label(HTML(`x>]; b [label=<y`)), `node "a": attribute "label": HTML-like label: stray '>' at byte 1`},
		{"html nested bracket", label(HTML("<B <I>>x</B>")), `node "a": attribute "label": HTML-like label: stray '<' at byte 3`},
		{"html unclosed", label(HTML("<B>x")), `node "a": attribute "label": HTML-like label: XML syntax error on line 1: unexpected EOF`},
		{"html mismatch", label(HTML("<B>x</I>")), `node "a": attribute "label": HTML-like label: XML syntax error on line 1: element <B> closed by </I>`},
		{"html comment", label(HTML("<!-- a -->")), `node "a": attribute "label": HTML-like label: only elements and text are allowed`},
		{"html control", label(HTML("a\x01")), `node "a": attribute "label": HTML-like label: XML syntax error on line 1: illegal character code U+0001`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			err := tc.graph.Write(&out)
			if want := `graph "": ` + tc.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if out.Len() != 0 {
				t.Errorf("wrote %q", out.String())
			}
		})
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestWriteFails(t *testing.T) {
	full := errors.New("no space left")
	if err := (&Graph{}).Write(brokenWriter{full}); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

func TestAddLeavesItsReceiverAlone(t *testing.T) {
	base := make(Attrs, 0, 4).Add("shape", Text("box"))
	red, blue := base.Add("color", Text("red")), base.Add("color", Text("blue"))
	if red[1].Value != Text("red") || blue[1].Value != Text("blue") || len(base) != 1 {
		t.Errorf("base %v, red %v, blue %v", base, red, blue)
	}
}

func TestEscapeHTML(t *testing.T) {
	for in, want := range map[string]string{
		"GPU 0":                "GPU 0",
		`<B>"a" & 'b'</B>`:     "&lt;B&gt;&#34;a&#34; &amp; &#39;b&#39;&lt;/B&gt;",
		`\N`:                   `\\N`,
		"a\r\nb\tc":            "a  b c",
		"\xff\x00\ufffd größe": "&#65533;&#65533;&#65533; größe",
	} {
		if got := EscapeHTML(in); got != want {
			t.Errorf("EscapeHTML(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzWrite holds the writer against gonum's parser: whatever the strings,
// the document parses, has the nodes and edges of the graph and nothing else,
// and the texts come back.
func FuzzWrite(f *testing.F) {
	f.Add("host", "gpu0", "gpu1", "numa0", "NV18")
	f.Add(`"`, `\`, `\"`, "}\n", `"]; evil [x="`)
	f.Add("", "a\x00b", "\xff", "cluster_", "<b>&amp;\\l")
	f.Add("//", "/* */", "# 1", "graph", "<<TABLE>>")
	f.Add("é", "\ufeff", "\ufffd", "\u2028", "a\r\nb")
	f.Fuzz(func(t *testing.T, name, a, b, cluster, label string) {
		html := Attrs{{"label", HTML("<B>" + EscapeHTML(label) + "</B>")}}
		g := Graph{
			Name:     name,
			Attrs:    Of("label", label),
			Clusters: []Cluster{{ID: cluster, Nodes: []Node{{ID: a, Attrs: Of("label", label)}}}},
			Nodes:    []Node{{ID: b, Attrs: html}},
			Edges: []Edge{
				{From: a, To: b, Attrs: Attrs{{"label", Left(label)}}},
				{From: a, To: b, Attrs: html},
				{From: b, To: b},
			},
		}
		var out strings.Builder
		err := g.Write(&out)
		if a == "" || b == "" || cluster == "" || quote(a, `\n`) == quote(b, `\n`) {
			if err == nil {
				t.Fatalf("no error for ids %q, %q, cluster %q", a, b, cluster)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		checkCounts(t, &g, out.String())
	})
}

// FuzzHTML: a label that passes the check cannot break out of its brackets.
func FuzzHTML(f *testing.F) {
	f.Add("<B>x</B>")
	f.Add("<TABLE><TR><TD TITLE='>'>x</TD></TR></TABLE>")
	f.Add("<![CDATA[<]]>")
	f.Add("<!-- > -->")
	f.Fuzz(func(t *testing.T, s string) {
		g := Graph{Nodes: []Node{{ID: "a", Attrs: Attrs{{"label", HTML(s)}}}}}
		var out strings.Builder
		if g.Write(&out) == nil {
			checkCounts(t, &g, out.String())
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	var g Graph
	for i := range 512 {
		id := string(rune('a'+i%26)) + strings.Repeat("x", i/26+1)
		g.Nodes = append(g.Nodes, Node{ID: id, Attrs: Of("label", "GPU\n0000:17:00.0")})
		g.Edges = append(g.Edges, Edge{From: g.Nodes[0].ID, To: id, Attrs: Of("label", "NV18")})
	}
	var out strings.Builder
	for b.Loop() {
		out.Reset()
		if err := g.Write(&out); err != nil {
			b.Fatal(err)
		}
	}
}

// checkCounts parses doc and compares it with g: the same node ids and as many
// edges. gonum's attribute values come back as spelled.
func checkCounts(t *testing.T, g *Graph, doc string) {
	t.Helper()
	file, err := gonumdot.ParseString(doc)
	if err != nil {
		t.Fatalf("does not parse: %v\n%s", err, doc)
	}
	if len(file.Graphs) != 1 || file.Graphs[0].Directed || file.Graphs[0].Strict {
		t.Fatalf("not one undirected graph:\n%s", doc)
	}
	var gotNodes []string
	gotEdges := 0
	var count func([]ast.Stmt)
	count = func(stmts []ast.Stmt) {
		for _, s := range stmts {
			switch s := s.(type) {
			case *ast.Subgraph:
				count(s.Stmts)
			case *ast.NodeStmt:
				gotNodes = append(gotNodes, unquote(s.Node.ID))
			case *ast.EdgeStmt:
				gotEdges++
			}
		}
	}
	count(file.Graphs[0].Stmts)

	var wantNodes []string
	var walk func([]Cluster, []Node)
	walk = func(clusters []Cluster, nodes []Node) {
		for _, c := range clusters {
			walk(c.Clusters, c.Nodes)
		}
		for _, n := range nodes {
			wantNodes = append(wantNodes, shown(n.ID))
		}
	}
	walk(g.Clusters, g.Nodes)
	if diff := cmp.Diff(wantNodes, gotNodes); diff != "" {
		t.Errorf("nodes, -want +got:\n%s\n%s", diff, doc)
	}
	if gotEdges != len(g.Edges) {
		t.Errorf("%d edges, want %d:\n%s", gotEdges, len(g.Edges), doc)
	}
}

// unquote undoes a quoted string as DOT and then Graphviz' labels do.
func unquote(s string) string {
	s = strings.TrimSuffix(strings.TrimPrefix(s, `"`), `"`)
	s = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n").Replace(s)
	return html.UnescapeString(s)
}

// shown is what a text looks like in a drawing.
func shown(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\t", " ").Replace(s)
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) || r == 0xfffe || r == 0xffff {
			return '\uFFFD'
		}
		return r
	}, s)
}
