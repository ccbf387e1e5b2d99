package chart

import (
	"bytes"
	"encoding/csv"
	"image/png"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/tune"
)

func prediction(t testing.TB, machine string) tune.Prediction {
	t.Helper()
	m, err := fixtures.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tune.Predict(m.Inventory, tune.ModelOptions{Collectives: []string{model.AllReduce, model.AllGather}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func lines(t testing.TB, machine string, samples ...probe.Sample) []tune.Line {
	t.Helper()
	p := prediction(t, machine)
	if _, err := p.UseMeasured(samples); err != nil {
		t.Fatal(err)
	}
	l, err := p.Lines(machine)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var sample = probe.Sample{Collective: model.AllReduce, Bytes: 1 << 30, Ranks: probe.Some(8), Nodes: probe.Some(1), TimeUS: 4000}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	if err := CSV(&out, lines(t, "h200x8", sample)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, r := range rows[1:] {
		seen[r[1]+", "+r[2]]++
		if r[6] == "1073741824" && r[2] == tune.LineMeasured && (r[3] != model.NVLS || r[8] != "469.762") {
			t.Errorf("measured: %v", r)
		}
		if r[11] == "false" && r[7] != "" {
			t.Errorf("a time without calibration: %v", r)
		}
	}
	for what, n := range map[string]int{
		"AllReduce, " + tune.LineChosen: 31, "AllReduce, " + tune.LineBelieved: 31, "AllReduce, " + tune.LinePublished: 6, "AllReduce, " + tune.LineMeasured: 1, "AllGather, " + tune.LineChosen: 31,
	} {
		if seen[what] != n {
			t.Errorf("%d points of %s, want %d", seen[what], what, n)
		}
	}
	if seen["AllReduce, "+tune.LineAlternative] < 20 {
		t.Errorf("alternatives: %v", seen)
	}
}

func TestDraw(t *testing.T) {
	one := lines(t, "h200x8", sample)
	for _, c := range []struct {
		name  string
		lines []tune.Line
		words []string
	}{
		{"one", one, []string{"AllReduce", "AllGather", "bus bandwidth, GB/s", "NVLS Simple", "NCCL believes", "published", "measured", "choice changes", ">16M<"}},
		{"two", append(one, lines(t, "b200x8")...), []string{"h200x8: expected", "b200x8: expected"}},
		{"nothing calibrated", lines(t, "v100x8-cubemesh"), []string{"NCCL believes"}},
	} {
		var svg, again, raster bytes.Buffer
		if err := Draw(&svg, "svg", "title", c.lines); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, w := range c.words {
			if !strings.Contains(svg.String(), w) {
				t.Errorf("%s: no %q", c.name, w)
			}
		}
		if err := Draw(&again, "svg", "title", c.lines); err != nil || again.String() != svg.String() {
			t.Errorf("%s: drawn twice it differs, %v", c.name, err)
		}
		if err := Draw(&raster, "png", "title", c.lines); err != nil {
			t.Fatal(err)
		}
		if im, err := png.Decode(&raster); err != nil || im.Bounds().Dx() < 1000 {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := Draw(&bytes.Buffer{}, "svg", "", nil); err == nil {
		t.Error("drawn from nothing")
	}
}

func BenchmarkLines(b *testing.B) {
	p := prediction(b, "h200x8")
	for b.Loop() {
		if _, err := p.Lines("h200x8"); err != nil {
			b.Fatal(err)
		}
	}
}
