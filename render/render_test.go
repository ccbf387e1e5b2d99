package render_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	gdot "gonum.org/v1/gonum/graph/formats/dot"
	"gonum.org/v1/gonum/graph/formats/dot/ast"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/fixtures/golden"
	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

func report(t testing.TB, source string, change func(*probe.Inventory)) *render.Report {
	t.Helper()
	inv, err := open.ReadHost(source)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(inv)
	}
	an, err := tune.Analyse(inv)
	if err != nil {
		t.Fatal(err)
	}
	r, err := render.NewReport(an, "test", func([]byte) ([]byte, error) { return []byte("<svg></svg>"), nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every example in every format, byte for byte.
func TestGolden(t *testing.T) {
	for _, name := range fixtures.Names() {
		r := report(t, "example:"+name, nil)
		if len(r.Inv.GPUs) > 16 {
			continue // a rack: its files are megabytes, and show nothing that a host does not
		}
		for ext, write := range map[string]func(io.Writer) error{
			"dot": r.WriteDOT, "json": r.WriteJSON, "txt": r.WriteText,
			"env": func(w io.Writer) error {
				return ncclenv.Write(w, ncclenv.Shell, append(r.Plan.Head(), r.Plan.Considered()...), r.Plan.Settings())
			},
			"model.txt": func(w io.Writer) error { return text.Model(w, r.Pred, false) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatalf("%s %s: %v", name, ext, err)
			}
			golden.Check(t, name+"."+ext, b.Bytes())
		}
	}
}

// The drawing shows every device and every link exactly once.
func TestDOTIsTheTopology(t *testing.T) {
	for _, name := range fixtures.Names() {
		r := report(t, "example:"+name, nil)
		var b bytes.Buffer
		if err := r.WriteDOT(&b); err != nil {
			t.Fatal(err)
		}
		file, err := gdot.ParseString(b.String())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		nodes, edges := count(file.Graphs[0].Stmts)
		want := 1 // the legend
		for _, k := range []graph.Kind{graph.KindSwitch, graph.KindGPU, graph.KindHCA, graph.KindNet} {
			want += len(r.Topo.Of(k))
		}
		for _, n := range r.Topo.Of(graph.KindNUMA) {
			for _, l := range r.Topo.LinksOf(n) {
				if l.Kind == graph.PCIe {
					want++
					break
				}
			}
		}
		if len(r.Topo.Of(graph.KindNVSwitch)) > 0 {
			want++
		}
		wantEdges, homes := 0, map[*graph.Node]bool{}
		for _, n := range r.Topo.Nodes {
			if n.Home != nil {
				homes[n.Home] = true
			}
		}
		for _, l := range r.Topo.Links {
			if l.Kind == graph.PCIe || l.Kind == graph.C2CLink && l.Number == 0 || l.Kind == graph.SMP && len(homes) == 2 {
				wantEdges++
			}
		}
		for _, g := range r.Topo.Of(graph.KindGPU) {
			for _, b := range r.Topo.NVLinks(g) {
				switch {
				case b.Nodes[0].Kind != graph.KindGPU:
					wantEdges++
				case b.Nodes[0].ID() > g.ID(): // a pair is a box with two edges
					want++
					wantEdges += 2
				}
			}
		}
		if nodes != want {
			t.Errorf("%s: %d nodes drawn, want %d", name, nodes, want)
		}
		if edges != wantEdges {
			t.Errorf("%s: %d edges drawn, want %d", name, edges, wantEdges)
		}
	}
}

func count(stmts []ast.Stmt) (nodes, edges int) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.NodeStmt:
			nodes++
		case *ast.EdgeStmt:
			edges++
		case *ast.Subgraph:
			n, e := count(s.Stmts)
			nodes, edges = nodes+n, edges+e
		}
	}
	return nodes, edges
}

// A link that trained low is drawn in the finding's colour, with both rates and
// the rule; its neighbours are not.
func TestDegradedLinkIsHighlighted(t *testing.T) {
	r := report(t, "example:h100x8", func(inv *probe.Inventory) {
		for i := range inv.PCI {
			if d := &inv.PCI[i]; d.Addr == *mustAddr(inv, "mlx5_3") {
				d.Current = probe.LinkOfGen(5, 8)
			}
		}
	})
	var b bytes.Buffer
	if err := r.WriteDOT(&b); err != nil {
		t.Fatal(err)
	}
	hot := 0
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, " -- ") || !strings.Contains(line, "pcie-width-degraded") {
			continue
		}
		hot++
		for _, want := range []string{`"hca:mlx5_3"`, "Gen5 x8 of Gen5 x16", "of 63", `penwidth="3"`} {
			if !strings.Contains(line, want) {
				t.Errorf("no %s in %s", want, line)
			}
		}
	}
	if hot != 1 {
		t.Errorf("%d links highlighted\n%s", hot, fmt.Sprint(r.Check.Findings))
	}
}

func mustAddr(inv *probe.Inventory, hca string) *probe.BDF {
	for _, h := range inv.HCAs {
		if h.Name == hca {
			a, _ := h.Addr.Get()
			return &a
		}
	}
	return nil
}

// Names from files cannot break out of the drawing or the page.
func TestHostileNames(t *testing.T) {
	evil := `"]; <script>alert(1)</script> </table> \N`
	r := report(t, "example:h100x8", func(inv *probe.Inventory) {
		inv.Host.Name, inv.Product.Name, inv.GPUs[0].Name = evil, evil, evil
	})
	var dot, page bytes.Buffer
	if err := r.WriteDOT(&dot); err != nil {
		t.Fatal(err)
	}
	if _, err := gdot.ParseString(dot.String()); err != nil {
		t.Error(err)
	}
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script>") {
		t.Error("a script got into the page")
	}
}

func TestFormatOf(t *testing.T) {
	if f, err := render.FormatOf("a/b.SVG"); err != nil || f.Ext != ".svg" {
		t.Errorf("%v %v", f.Ext, err)
	}
	for _, file := range []string{"x.png", "x", "", ".svgz"} {
		if _, err := render.FormatOf(file); err == nil {
			t.Errorf("%q is no format", file)
		}
	}
}

func BenchmarkDOT(b *testing.B) {
	r := report(b, "example:h100x8", nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := render.WriteDOT(io.Discard, r.Topo, r.Check.Findings); err != nil {
			b.Fatal(err)
		}
	}
}
