package search

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclxml"
)

// A run of NCCL 2.28.3 on two H200.
const captureDir = "../../../shared/captures/2xh200-vm"

func TestRingAgainstLog(t *testing.T) {
	log, err := os.ReadFile(filepath.Join(captureDir, "ar-debug-info.txt"))
	if err != nil {
		t.Skip(err)
	}
	r, err := Compute(readView(t, filepath.Join(captureDir, "topo-dump.xml"), graph.NCCLOptions{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := r.Graph(Ring)
	got := fmt.Sprintf("Pattern 4, crossNic %d, nChannels %d, bw %f/%f, type %v/%v, sameChannels %d",
		g.CrossNIC, g.Channels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.SameChannels)
	if want := regexp.MustCompile(`Pattern 4.*`).FindString(string(log)); got != want {
		t.Errorf("%s; NCCL: %s", got, want)
	}
	got = fmt.Sprintf("%d coll channels", r.Channels)
	if want := regexp.MustCompile(`\d+ coll channels`).FindString(string(log)); got != want {
		t.Errorf("%s; NCCL: %s", got, want)
	}
}

func readView(t testing.TB, file string, o graph.NCCLOptions) *graph.NCCLView {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	return viewOf(t, decode(t, filepath.Base(file), f), o)
}

func decode(t testing.TB, name string, r io.Reader) *probe.Inventory {
	t.Helper()
	doc, err := ncclxml.Decode(name, r)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := doc.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func viewOf(t testing.TB, inv *probe.Inventory, o graph.NCCLOptions) *graph.NCCLView {
	t.Helper()
	top, err := graph.Build(inv)
	if err != nil {
		t.Fatal(err)
	}
	v, err := top.NCCL(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkResult holds what is true of every result: each channel visits each GPU of
// its node once, and no link carries more than NCCL gives it.
func checkResult(t testing.TB, r *Result) {
	t.Helper()
	for _, m := range r.Members {
		devs := []int{}
		for i := range m.View.GPUs {
			devs = append(devs, m.View.Dev(i))
		}
		slices.Sort(devs)
		for _, g := range m.Graphs {
			if len(g.Rings) != g.Channels || g.Channels < 1 || g.Channels > maxChannels(0)/2 {
				t.Errorf("%d channels, %d rings", g.Channels, len(g.Rings))
			}
			for c, ring := range g.Rings {
				if !slices.Equal(slices.Sorted(slices.Values(ring)), devs) && g.Pattern != NVLS {
					t.Errorf("channel %d: %v does not visit each of %v once", c, ring, devs)
				}
				if g.SameChannels == 1 && !slices.Equal(ring, g.Rings[0]) {
					t.Errorf("channel %d: %v, want the same as channel 0, %v", c, ring, g.Rings[0])
				}
			}
			if g.Fallback {
				continue
			}
			for _, l := range m.Loads(g) {
				if l.GBs > l.Of+0.002*float64(l.Channels) {
					t.Errorf("%v: link %d of %g GB/s carries %g", g.Pattern, l.Link, l.Of, l.GBs)
				}
			}
		}
	}
}

// Results of another implementation of NCCL's search.
func TestWorkedResults(t *testing.T) {
	amd := probe.CPU{Arch: "x86_64", Vendor: "AuthenticAMD"}
	intel := func(model int) probe.CPU {
		return probe.CPU{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(model)}
	}
	links := func(n int) func(i, j int) int { return func(i, j int) int { return n } }
	for _, c := range []struct {
		name string
		inv  *probe.Inventory
		want string
	}{
		{"8 H100", h100x8(), "12 × 30/30 NVL same 1, 24 channels"},
		{"2 A100, 12 links between them", mesh(2, 80, links(12)), "12 × 20/20 NVL same 1, 24 channels"},
		{"4 A100, 4 links per pair", mesh(4, 80, links(4)), "12 × 20/20 NVL same 0, 24 channels"},
		{"4 on one Intel socket", pcieHost(intel(106), []int{4}, false), "1 × 20/20 PHB same 1, 2 channels"},
		{"4 on one AMD socket", pcieHost(amd, []int{4}, false), "2 × 12/12 PHB same 1, 4 channels"},
		{"4 below one switch", pcieHost(intel(106), []int{4}, true), "2 × 12/12 PIX same 1, 4 channels"},
		{"4 + 4, Skylake", pcieHost(intel(85), []int{4, 4}, true), "1 × 10/10 SYS same 1, 2 channels"},
		{"4 + 4, Sapphire Rapids", pcieHost(intel(143), []int{4, 4}, true), "1 × 20/20 SYS same 1, 2 channels"},
		{"4 + 4, AMD", pcieHost(amd, []int{4, 4}, true), "1 × 15/15 SYS same 1, 2 channels"},
	} {
		r, err := Compute(viewOf(t, c.inv, graph.NCCLOptions{}), Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		checkResult(t, r)
		g, _ := r.Graph(Ring)
		got := fmt.Sprintf("%d × %g/%g %v same %d, %d channels", g.Channels, g.BWIntra, g.BWInter, g.TypeIntra, g.SameChannels, r.Channels)
		if got != c.want || g.CutShort {
			t.Errorf("%s: %s, want %s; cut short %v", c.name, got, c.want, g.CutShort)
		}
	}
}

func TestUses(t *testing.T) {
	v := &graph.NCCLView{
		Nodes: []graph.NCCLNode{{Kind: graph.NCCLGPU}, {Kind: graph.NCCLCPU}, {Kind: graph.NCCLGPU}, {Kind: graph.NCCLNIC}},
		Links: []graph.NCCLLink{
			{From: 0, To: 1, Type: graph.NCCLLinkPCI}, {From: 1, To: 0, Type: graph.NCCLLinkPCI},
			{From: 2, To: 1, Type: graph.NCCLLinkPCI}, {From: 1, To: 2, Type: graph.NCCLLinkPCI},
			{From: 0, To: 1, Type: graph.NCCLLinkNVL}, {From: 1, To: 0, Type: graph.NCCLLinkNVL},
			{From: 3, To: 1, Type: graph.NCCLLinkPCI}, {From: 1, To: 3, Type: graph.NCCLLinkPCI},
		},
	}
	phb := graph.NCCLPath{Class: graph.PHB, Links: []int{0, 3}}
	fromNIC := graph.NCCLPath{Class: graph.PHB, Links: []int{6, 3}}
	for _, c := range []struct {
		name  string
		proc  graph.NCCLProcessor
		cc    int
		start graph.NCCLKind
		path  graph.NCCLPath
		want  []use
	}{
		{"AMD", graph.NCCLProcessor{AMD: true}, 80, graph.NCCLGPU, phb, []use{{0, 40}, {3, 40}}},
		{"Intel", graph.NCCLProcessor{Intel: true}, 80, graph.NCCLGPU, phb, []use{{0, 48}, {3, 48}}},
		{"Intel, across sockets", graph.NCCLProcessor{Intel: true}, 80, graph.NCCLGPU, graph.NCCLPath{Class: graph.SYS, Links: []int{0, 3}}, []use{{0, 40}, {3, 40}}},
		{"Intel, from a NIC", graph.NCCLProcessor{Intel: true}, 80, graph.NCCLNIC, fromNIC, []use{{6, 40}, {3, 40}}},
		{"old GPU, from a NIC", graph.NCCLProcessor{}, 70, graph.NCCLNIC, fromNIC, []use{{6, 40}, {3, 40}, {2, 5}}},
		{"old GPU, from a GPU", graph.NCCLProcessor{}, 70, graph.NCCLGPU, phb, []use{{0, 40}, {3, 40}}},
		{"POWER", graph.NCCLProcessor{Arch: "ppc64le"}, 70, graph.NCCLGPU, graph.NCCLPath{Class: graph.SYS, Links: []int{4}}, []use{{4, 40}, {5, 40}}},
	} {
		v.Processor = c.proc
		v.Nodes[0].CC, v.Nodes[2].CC = probe.Some(c.cc), probe.Some(c.cc)
		if got := uses(v, c.start, c.path); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestLoads(t *testing.T) {
	r, err := Compute(viewOf(t, h100x8(), graph.NCCLOptions{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := r.Graph(Ring)
	loads := r.Members[0].Loads(g)
	if len(loads) != 16 {
		t.Fatalf("%d links used, want each GPU's NVLinks in both directions", len(loads))
	}
	for _, l := range loads {
		if l.Channels != 12 || l.GBs != 360 || l.Of != 370.8 || len(r.View.Links[l.Link].Physical) != 18 {
			t.Errorf("%+v over %d links, want 12 channels, 360 of 370.8 GB/s, 18 links", l, len(r.View.Links[l.Link].Physical))
		}
	}
}

// What NCCL would know and the view does not is an error, not a guess.
func TestUnknown(t *testing.T) {
	noCC := mesh(2, 80, func(i, j int) int { return 1 })
	noCC.GPUs[1].CC = probe.Opt[int]{}
	unplaced := &probe.Inventory{GPUs: []probe.GPU{{Index: probe.Some(0), CC: probe.Some(90)}, {Index: probe.Some(1), CC: probe.Some(90)}}}
	for _, c := range []struct {
		inv  *probe.Inventory
		want string
	}{
		{&probe.Inventory{}, "no GPU"}, {noCC, "GPU 1: its compute capability is unknown"}, {unplaced, "GPU 0 and GPU 1"},
	} {
		if _, err := Compute(viewOf(t, c.inv, graph.NCCLOptions{}), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	r, err := Compute(viewOf(t, mesh(1, 80, func(i, j int) int { return 0 }), graph.NCCLOptions{}), Options{})
	if err != nil || r.Ranks != 1 || r.Channels != 64 || r.Graphs[0].Channels != 32 || len(r.Graphs) != 2 {
		t.Errorf("one GPU: %+v, %v", r, err)
	}
}

func TestFallback(t *testing.T) {
	inv := pcieHost(probe.CPU{Arch: "x86_64", Vendor: "AuthenticAMD"}, []int{3}, false)
	for i := range inv.PCI {
		inv.PCI[i].Max = probe.LinkOfGen(1, 1) // as an emulated switch reports
	}
	r, err := Compute(viewOf(t, inv, graph.NCCLOptions{}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, r)
	if g, _ := r.Graph(Ring); !g.Fallback || g.Channels != 1 || g.BWIntra != 0.1 || r.Channels != 2 {
		t.Errorf("%+v, %d channels", g, r.Channels)
	}
}

func checkHost(t testing.TB, data []byte) *Result {
	t.Helper()
	v := viewOf(t, anyHost(data), graph.NCCLOptions{NoP2P: len(data)%7 == 6})
	o := Options{Hosts: 1 + len(data)%3}
	r, err := Compute(v, o)
	if err != nil {
		t.Errorf("%v", err)
		return nil
	}
	again, _ := Compute(v, o)
	for i := range r.Members {
		if !reflect.DeepEqual(r.Members[i].Graphs, again.Members[i].Graphs) {
			t.Error("two answers for one host")
		}
	}
	checkResult(t, r)
	return r
}

func TestAnyHost(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	count := map[string]int{}
	slowest := time.Duration(0)
	for range 600 {
		data := make([]byte, 100)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		start := time.Now()
		r := checkHost(t, data)
		slowest = max(slowest, time.Since(start)/2)
		if r == nil {
			count["split"]++
			continue
		}
		count["answered"]++
		if g, ok := r.Graph(Ring); ok {
			switch {
			case g.Fallback:
				count["fallback"]++
			case g.CutShort:
				count["cut short"]++
			}
		}
	}
	t.Logf("%v, slowest %v", count, slowest)
	if count["answered"] < 400 || count["cut short"] > count["answered"]/5 {
		t.Error("too few answers")
	}
}

func FuzzCompute(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		data := make([]byte, 80)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		start := time.Now()
		checkHost(t, data)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestHardMeshIsBounded(t *testing.T) {
	for name, inv := range hardMeshes() {
		v := viewOf(t, inv, graph.NCCLOptions{})
		start := time.Now()
		r, err := Compute(v, Options{})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		checkResult(t, r)
		g, _ := r.Graph(Ring)
		t.Logf("%s: %d × %g %v, same %d, cut short %v, %v", name, g.Channels, g.BWIntra, g.TypeIntra, g.SameChannels, g.CutShort, took)
		if g.Fallback {
			t.Errorf("%s: no ring in a mesh", name)
		}
		// Budgets bound the work; the time leaves room for a busy machine.
		if took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}
