package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe/ncclxml"
)

const (
	// What NCCL 2.30.7's own code decided for topologies without GPUs.
	oracleDir = "../../../shared/oracle"
	// A run of NCCL 2.28.3 on two H200.
	captureDir = "../../../shared/captures/2xh200-vm"
)

func compute(t testing.TB, file string, o graph.NCCLOptions) (*search.Result, error) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	doc, err := ncclxml.Decode(filepath.Base(file), f)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := doc.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	top, err := graph.Build(inv)
	if err != nil {
		t.Fatal(err)
	}
	v, err := top.NCCL(o)
	if err != nil {
		t.Fatal(err)
	}
	return search.Compute(v, search.Options{})
}

type oracleCase struct {
	File   string            `json:"file"`
	Args   []string          `json:"args"`
	Env    map[string]string `json:"env_given"`
	Tuning map[string]map[string]map[string][2]float64
	Select map[string][]struct {
		NBytes int64
		Algo   string
		Proto  string
		Time   float64
	}
}

func TestAllReduceRingAgainstOracle(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(oracleDir, "*.n1.json"))
	if len(files) == 0 {
		t.Skipf("no oracle in %s", oracleDir)
	}
	cells, times := 0, 0
	var agree []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".n1.json")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c oracleCase
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			o := graph.NCCLOptions{}
			if i := slices.Index(c.Args, "--devs"); i >= 0 {
				if err := json.Unmarshal([]byte("["+c.Args[i+1]+"]"), &o.GPUs); err != nil {
					t.Fatal(err)
				}
			}
			o.NoP2P = slices.Contains(c.Args, "--cuda-p2p")
			switch {
			case c.Env["NCCL_ALGO"] != "":
				t.Skip("NCCL_ALGO takes the ring out")
			case c.Env["NCCL_P2P_DISABLE"] != "":
				o.P2PLevel = graph.LOC
			case c.Env["NCCL_P2P_LEVEL"] != "":
				o.P2PLevel = graph.SYS
			}
			r, err := compute(t, filepath.Join(oracleDir, c.File), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Nodes > 1 {
				t.Skipf("%d nodes", r.Nodes)
			}
			list, err := AllReduceRing(r)
			if err != nil {
				t.Fatal(err)
			}
			checkTerms(t, list)
			line := ""
			for _, x := range list {
				want := c.Tuning[AllReduce][Ring][x.Proto]
				if !near(x.BWGBs, want[0]) || !near(x.LatencyUS, want[1]) {
					t.Errorf("%s: %g GB/s %g us; NCCL: %v", x.Proto, x.BWGBs, x.LatencyUS, want)
				}
				line += fmt.Sprintf("  %s %.4g GB/s %.4g us", x.Proto, x.BWGBs, x.LatencyUS)
				cells++
				// NCCL's own time where it chose this entry.
				for _, s := range c.Select[AllReduce] {
					if s.Algo != Ring || s.Proto != x.Proto {
						continue
					}
					if us, ok := x.Time(s.NBytes); !ok || !near(us, s.Time) {
						t.Errorf("%s, %d bytes: %g us; NCCL: %g", x.Proto, s.NBytes, us, s.Time)
					}
					times++
				}
			}
			agree = append(agree, fmt.Sprintf("%-28s%s", name, line))
		})
	}
	t.Logf("%d topologies, %d cells, %d times:\n%s", len(agree), cells, times, strings.Join(agree, "\n"))
	if times < 100 {
		t.Errorf("only %d times compared", times)
	}
}

// The oracle prints six digits.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-5*math.Max(math.Abs(want), 1e-3) }

// checkTerms holds that bandwidth is the product of its terms and latency the
// sum, and that every term says why.
func checkTerms(t *testing.T, list []Tuning) {
	t.Helper()
	for _, x := range list {
		product, sum := 1.0, 0.0
		for _, term := range x.BWTerms {
			product *= term.Value
		}
		for _, term := range x.LatencyTerms {
			sum += term.Value
		}
		if math.Abs(product-x.BWGBs) > 1e-6 || math.Abs(sum-x.LatencyUS) > 1e-6 {
			t.Errorf("%s: terms give %g GB/s, %g us; stated %g, %g", x.Proto, product, sum, x.BWGBs, x.LatencyUS)
		}
		for _, term := range append(x.BWTerms, x.LatencyTerms...) {
			if term.Name == "" || term.Why == "" {
				t.Errorf("%s: term %+v without name or reason", x.Proto, term)
			}
		}
		if _, ok := x.Time(1); ok != (x.Disabled == "") {
			t.Errorf("%s: usable %v, disabled %q", x.Proto, ok, x.Disabled)
		}
	}
}

// The tuning table that NCCL 2.28.3 printed on the recorded machine.
func TestAllReduceRingAgainstLog(t *testing.T) {
	log, err := os.ReadFile(filepath.Join(captureDir, "ar-debug-info.txt"))
	if err != nil {
		t.Skip(err)
	}
	// Columns: Tree LL, LL128, Simple, then Ring LL, LL128, Simple.
	row := regexp.MustCompile(`AllReduce \|(.*)\|`).FindStringSubmatch(string(log))
	if row == nil {
		t.Fatal("no AllReduce row in the log")
	}
	columns := strings.Split(row[1], "|")[3:6]
	r, err := compute(t, filepath.Join(captureDir, "topo-dump.xml"), graph.NCCLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := AllReduceRing(r)
	if err != nil {
		t.Fatal(err)
	}
	checkTerms(t, list)
	for i, x := range list {
		if got, want := fmt.Sprintf("%.1f/ %.1f", x.LatencyUS, x.BWGBs), strings.TrimSpace(columns[i]); got != want {
			t.Errorf("%s: %s; NCCL: %s", x.Proto, got, want)
		}
	}
}

func result(g search.Graph, ranks, minCC, maxCC int) *search.Result {
	g.Pattern, g.TypeInter = search.Ring, graph.PIX
	return &search.Result{Ranks: ranks, Nodes: 1, Graphs: []search.Graph{g}, MinCC: minCC, MaxCC: maxCC}
}

// Examples computed by another implementation of NCCL's model, printed with one
// decimal: bandwidth and latency of LL, LL128, Simple.
func TestWorkedExamples(t *testing.T) {
	for _, c := range []struct {
		name      string
		channels  int
		gbs       float64
		class     graph.PathClass
		ranks, cc int
		want      string
	}{
		{"8 H100", 12, 30, graph.NVL, 8, 90, "80.6 15.0 189.3 40.6 205.7 56.0"},
		{"2 A100, bridge", 12, 20, graph.NVL, 2, 80, "87.7 7.8 220.8 17.8 240.0 15.2"},
		{"4 GPUs, Gen4, Intel", 1, 20, graph.PHB, 4, 89, "6.7 12.6 0.0 29.0 13.3 42.6"},
		{"4 GPUs, Gen4, AMD", 2, 12, graph.PHB, 4, 89, "8.0 12.6 0.0 29.0 16.0 42.6"},
		{"4 GPUs, one switch", 2, 12, graph.PIX, 4, 89, "8.0 12.6 0.0 29.0 16.0 42.6"},
		{"8 B200", 16, 45, graph.NVL, 8, 100, "161.1 15.0 365.7 40.6 411.4 56.0"},
		{"8 A100", 12, 20, graph.NVL, 8, 80, "50.1 15.0 126.2 40.6 137.1 56.0"},
	} {
		list, err := AllReduceRing(result(search.Graph{Channels: c.channels, BWIntra: c.gbs, TypeIntra: c.class}, c.ranks, c.cc, c.cc))
		if err != nil {
			t.Fatal(err)
		}
		checkTerms(t, list)
		var got []string
		for _, x := range list {
			got = append(got, fmt.Sprintf("%.1f %.1f", x.BWGBs, x.LatencyUS))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLL128(t *testing.T) {
	for _, c := range []struct {
		class        graph.PathClass
		minCC, maxCC int
		on           bool
	}{
		{graph.NVL, 90, 90, true}, {graph.NVB, 70, 70, true}, {graph.C2C, 90, 90, false}, {graph.PIX, 90, 90, false},
		{graph.NVL, 60, 60, false}, {graph.NVL, 80, 90, false}, {graph.NVL, 90, 100, true},
	} {
		list, err := AllReduceRing(result(search.Graph{Channels: 2, BWIntra: 20, TypeIntra: c.class}, 4, c.minCC, c.maxCC))
		if err != nil {
			t.Fatal(err)
		}
		checkTerms(t, list)
		if x := list[1]; x.Proto != LL128 || x.BWGBs > 0 != c.on {
			t.Errorf("%v, sm_%d and sm_%d: %+v, want it on: %v", c.class, c.minCC, c.maxCC, x, c.on)
		}
		if !near(list[2].BWGBs, 2*20*4./6) {
			t.Errorf("Simple: %g GB/s", list[2].BWGBs)
		}
	}
}

// Only NVL throughout counts as NVLink for latency.
func TestLatencyClass(t *testing.T) {
	for class, want := range map[graph.PathClass]float64{graph.NVL: 8.4 + 6*3.4, graph.NVB: 8.4 + 6*5.7, graph.C2C: 8.4 + 6*5.7, graph.SYS: 8.4 + 6*5.7} {
		list, err := AllReduceRing(result(search.Graph{Channels: 2, BWIntra: 20, TypeIntra: class}, 4, 90, 90))
		if err != nil {
			t.Fatal(err)
		}
		if got := list[2].LatencyUS; !near(got, want) {
			t.Errorf("%v: %g us, want %g", class, got, want)
		}
	}
}

func TestNoRing(t *testing.T) {
	if list, err := AllReduceRing(&search.Result{Ranks: 1, Nodes: 1}); len(list) > 0 || err != nil {
		t.Errorf("one GPU: %v, %v", list, err)
	}
	if _, err := AllReduceRing(&search.Result{Ranks: 8, Nodes: 1}); err == nil {
		t.Error("no ring graph and no error")
	}
	if f, ok := BusFactor(AllReduce, 8); !ok || f != 1.75 {
		t.Errorf("bus factor %g", f)
	}
	if _, ok := BusFactor("SendRecv", 8); ok {
		t.Error("a bus factor for a collective that is not modelled")
	}
	if _, ok := (Tuning{BWGBs: 1}).Time(-1); ok {
		t.Error("a time for a negative size")
	}
}

func BenchmarkAllReduceRing(b *testing.B) {
	r := result(search.Graph{Channels: 12, BWIntra: 30, TypeIntra: graph.NVL}, 8, 90, 90)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AllReduceRing(r); err != nil {
			b.Fatal(err)
		}
	}
}
