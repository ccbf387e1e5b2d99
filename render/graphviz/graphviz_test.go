package graphviz

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncclmap/ncclmap/render/dot"
)

// installed is the engine as a user would have it, made once for all tests.
var installed Engine

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ncclmap-graphviz-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	installed = Engine{Path: filepath.Join(dir, engineName), CacheDir: filepath.Join(dir, "cache")}
	if err := os.Mkdir(installed.CacheDir, 0o700); err != nil {
		panic(err)
	}
	build := exec.Command("go", "build", "-o", installed.Path, "github.com/ncclmap/ncclmap/cmd/"+engineName)
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the engine: %v\n%s", err, out))
	}
	m.Run()
}

// host is a small drawing with everything that ours use: nested clusters, an
// HTML-like label, parallel edges, and text that looks like markup or escapes.
func host(t testing.TB) []byte {
	t.Helper()
	g := dot.Graph{
		Name:      "host",
		Attrs:     dot.Of("id", "host", "label", "two sockets", "fontname", "Helvetica"),
		NodeAttrs: dot.Of("shape", "box", "fontname", "Helvetica"),
		EdgeAttrs: dot.Of("fontname", "Helvetica", "fontsize", "10"),
	}
	for socket := range 2 {
		board := dot.Cluster{ID: fmt.Sprint("switch", socket)}
		for i := 4 * socket; i < 4*socket+4; i++ {
			id := fmt.Sprint("gpu", i)
			label := dot.HTML(fmt.Sprintf(`<TABLE BORDER="0"><TR><TD><B>GPU %d</B></TD></TR><TR><TD>%s</TD></TR></TABLE>`,
				i, dot.EscapeHTML(`<H100> & \N`)))
			board.Nodes = append(board.Nodes, dot.Node{ID: id, Attrs: dot.Of("id", id).Add("label", label)})
			g.Edges = append(g.Edges,
				dot.Edge{From: "nvswitch", To: id, Attrs: dot.Of("id", "nvl"+id, "label", "NV18")})
		}
		g.Clusters = append(g.Clusters, dot.Cluster{
			ID:       fmt.Sprint("socket", socket),
			Attrs:    dot.Of("label", fmt.Sprintf("socket %d", socket), "style", "rounded"),
			Clusters: []dot.Cluster{board},
		})
	}
	g.Nodes = []dot.Node{
		{ID: "nvswitch", Attrs: dot.Of("label", `NVSwitch <3> & \G "q"`)},
		{ID: "blank", Attrs: dot.Of("label", "")},
		{ID: `odd & \ "id"`},
	}
	g.Edges = append(g.Edges,
		dot.Edge{From: "gpu0", To: "gpu4", Attrs: dot.Attrs{{Name: "label", Value: dot.Left("PCIe\nSYS")}}},
		dot.Edge{From: "gpu0", To: "gpu4"})
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRenderSVG(t *testing.T) {
	source := host(t)
	svg, err := installed.Render(t.Context(), source, "svg")
	if err != nil {
		t.Fatal(err)
	}
	again, err := installed.Render(t.Context(), source, "svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(svg, again) {
		t.Error("two runs differ")
	}
	clean := Clean(svg)
	titles, texts, ids := read(t, clean)
	for _, title := range []string{"host", "cluster_socket0", "cluster_switch1", "gpu0", "gpu7", "nvswitch--gpu3"} {
		if titles[title] != 1 {
			t.Errorf("title %q occurs %d times", title, titles[title])
		}
	}
	if n := titles["gpu0--gpu4"]; n != 2 {
		t.Errorf("%d edges from gpu0 to gpu4, want 2", n)
	}
	for text, want := range map[string]int{
		"two sockets": 1, "socket 0": 1, "socket 1": 1, "GPU 5": 1, `<H100> & \N`: 8, "NV18": 8,
		`NVSwitch <3> & \G "q"`: 1, "PCIe": 1, "SYS": 1, "blank": 0, `odd & \ "id"`: 1,
	} {
		if texts[text] != want {
			t.Errorf("text %q occurs %d times, want %d", text, texts[text], want)
		}
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("id %q occurs %d times", id, n)
		}
	}
	for _, id := range []string{"host", "gpu3", "nvlgpu3"} {
		if ids[id] == 0 {
			t.Errorf("no id %q", id)
		}
	}
	if t.Failed() {
		t.Logf("%s", clean)
	}
}

// read counts the titles, texts and ids of an SVG document.
func read(t *testing.T, svg []byte) (titles, texts, ids map[string]int) {
	t.Helper()
	titles, texts, ids = map[string]int{}, map[string]int{}, map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(svg))
	var element string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return titles, texts, ids
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			for _, a := range token.Attr {
				if a.Name.Local == "id" {
					ids[a.Value]++
				}
			}
		case xml.CharData:
			// Graphviz keeps runs of blanks as no-break spaces.
			s := strings.ReplaceAll(string(token), "\u00a0", " ")
			switch element {
			case "title":
				titles[s]++
			case "text":
				texts[s]++
			}
		case xml.EndElement:
			element = ""
		case xml.ProcInst, xml.Directive, xml.Comment:
			t.Errorf("left in: %v", token)
		}
	}
}

func TestRenderJSONAndDOT(t *testing.T) {
	out, err := installed.Render(t.Context(), host(t), "json")
	if err != nil {
		t.Fatal(err)
	}
	var drawing struct {
		Objects []struct {
			Name, Pos string
			Draw      []json.RawMessage `json:"_draw_"`
		}
		Edges []struct {
			Draw []json.RawMessage `json:"_draw_"`
		}
	}
	if err := json.Unmarshal(out, &drawing); err != nil {
		t.Fatal(err)
	}
	if len(drawing.Objects) != 15 || len(drawing.Edges) != 10 {
		t.Errorf("%d objects and %d edges, want 15 and 10", len(drawing.Objects), len(drawing.Edges))
	}
	for _, e := range drawing.Edges {
		if len(e.Draw) == 0 {
			t.Error("edge without drawing operations")
		}
	}
	out, err = installed.Render(t.Context(), []byte("graph { a -- b }"), "dot")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("pos=")) {
		t.Errorf("no positions in\n%s", out)
	}
}

func TestRenderErrors(t *testing.T) {
	for _, tc := range []struct{ name, source, format, want string }{
		{"cut short", "graph {\n a -- ", "svg", "graphviz svg: parse graph: syntax error in line 2"},
		{"not DOT", "garbage", "svg", "graphviz svg: parse graph: syntax error in line 1 near 'garbage'"},
		{"directed edge", "graph { a -> b }", "json", "graphviz json: parse graph: syntax error in line 1 near '->'"},
		{"nothing", "", "svg", "graphviz svg: parse graph: no graph in the input"},
		{"label lost", "graph { a [label=<<B>x</I>>] }", "svg", "graphviz svg: lay out graph: mismatched tag in line 1 ... x</I> ... in label of node a"},
		{"too large", strings.Repeat(" ", 16<<20+1), "svg", "graphviz svg: read graph: larger than 16 MiB"},
		{"PNG", "graph {}", "png", "graphviz png: -T png: go-graphviz's PNG writer is wrong (filled edges, no outlines); paint the json output instead"},
		{"other format", "graph {}", "pdf", `graphviz pdf: -T "pdf": want svg, json or dot`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := installed.Render(t.Context(), []byte(tc.source), tc.format)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if out != nil {
				t.Errorf("output %q", out)
			}
		})
	}
	for _, dir := range []string{"", "cache"} {
		if _, err := (Engine{installed.Path, dir}).Render(t.Context(), nil, "svg"); err == nil || !strings.Contains(err.Error(), "not an absolute path") {
			t.Errorf("cache folder %q: %v", dir, err)
		}
	}
}

// TestEngineUsage is about the program itself; here it is built and has a
// cache folder of its own, which `go test` in its folder would not give it.
func TestEngineUsage(t *testing.T) {
	for _, tc := range []struct {
		args string
		want int
	}{
		{"-h", 0},
		{"-T svg", 0},
		{"-T json -K neato", 0},
		{"-T dot -K fdp", 0},
		{"", 2},
		{"-T png", 2},
		{"-T svg -K circo", 2},
		{"-T svg graph.dot", 2},
		{"-x", 2},
	} {
		cmd := exec.Command(installed.Path, strings.Fields(tc.args)...)
		cmd.Env = []string{"TMPDIR=" + installed.CacheDir}
		cmd.Stdin = strings.NewReader("graph { a -- b }")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != tc.want {
			t.Errorf("%q: exit status %d, want %d (%v)", tc.args, got, tc.want, err)
		}
		if drawn := stdout.Len() > 0; drawn == (stderr.Len() > 0) {
			t.Errorf("%q: %d bytes on stdout, stderr %q", tc.args, stdout.Len(), stderr.String())
		}
	}
}

// script installs a shell script in the engine's place.
func script(t *testing.T, body string) Engine {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, engineName)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Engine{path, dir}
}

func TestRenderStopsAtDeadline(t *testing.T) {
	for name, body := range map[string]string{
		"engine":           "exec /bin/sleep 30",
		"engine and child": "/bin/sleep 4 & wait",
	} {
		t.Run(name, func(t *testing.T) {
			e := script(t, body)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := e.Render(ctx, make([]byte, 1<<20), "svg")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := installed.Render(ctx, nil, "svg"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestRenderEnvironmentAndMessage(t *testing.T) {
	t.Setenv("NCCLMAP_TEST_SECRET", "x")
	e := script(t, "/usr/bin/env | /usr/bin/sort")
	out, err := e.Render(t.Context(), nil, "svg")
	if err != nil {
		t.Fatal(err)
	}
	// The shell adds some of its own.
	for line := range strings.Lines(string(out)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "TMPDIR", "HOME":
			if value != e.CacheDir {
				t.Errorf("%s=%q, want %q", name, value, e.CacheDir)
			}
		case "PWD", "OLDPWD", "SHLVL", "_", "PATH":
		default:
			t.Errorf("the engine sees %s", name)
		}
	}
	_, err = script(t, "i=0; while [ $i -lt 2000 ]; do echo long message >&2; i=$((i+1)); done; exit 1").Render(t.Context(), nil, "svg")
	if err == nil || len(err.Error()) > maxMessage+50 || !strings.HasSuffix(err.Error(), "…") {
		t.Errorf("got %v", err)
	}
	_, err = script(t, "exit 3").Render(t.Context(), nil, "svg")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestFind(t *testing.T) {
	bin, other := t.TempDir(), t.TempDir()
	bin, err := filepath.EvalSymlinks(bin) // the folder of temporary files may be reached through a link
	if err != nil {
		t.Fatal(err)
	}
	program, engine := filepath.Join(bin, "ncclmap"), filepath.Join(bin, engineName)
	link := filepath.Join(other, "ncclmap")
	if err := errors.Join(
		os.WriteFile(program, nil, 0o755),
		os.Symlink(program, link),
		// Neither of these may be taken.
		os.WriteFile(filepath.Join(other, engineName), nil, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	t.Chdir(other)
	t.Setenv("PATH", other)

	_, err = Find(link)
	if want := fmt.Sprintf("no Graphviz engine beside %s: stat %s: no such file or directory; `make build` makes it", program, engine); !errors.Is(err, ErrNoEngine) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := os.WriteFile(engine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(link); !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), "is not a program") {
		t.Errorf("got %v", err)
	}
	if err := os.Chmod(engine, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, executable := range []string{program, link} {
		if e, err := Find(executable); err != nil || e != (Engine{Path: engine}) {
			t.Errorf("Find(%s) = %v, %v", executable, e, err)
		}
	}
	for _, executable := range []string{"", "ncclmap", filepath.Join(bin, "missing")} {
		if e, err := Find(executable); !errors.Is(err, ErrNoEngine) {
			t.Errorf("Find(%q) = %v, %v", executable, e, err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	source := host(b)
	for b.Loop() {
		if _, err := installed.Render(b.Context(), source, "svg"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRenderCold(b *testing.B) {
	source := host(b)
	for b.Loop() {
		cold := Engine{installed.Path, b.TempDir()}
		if _, err := cold.Render(b.Context(), source, "svg"); err != nil {
			b.Fatal(err)
		}
	}
}
