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

// pcieHost is GPUs of Gen4 x16 without NVLink, some on each socket, below a
// switch per socket or on root ports.
func pcieHost(cpu probe.CPU, perSocket []int, switches bool) *probe.Inventory {
	inv := &probe.Inventory{CPUs: []probe.CPU{cpu}}
	bus := uint8(0)
	add := func(class probe.PCIClass, parent probe.Opt[probe.BDF], numa int) probe.BDF {
		bus++
		inv.PCI = append(inv.PCI, probe.PCIDevice{Addr: probe.BDF{Bus: bus}, Parent: parent, NUMA: probe.Some(numa), Class: probe.Some(class), Max: probe.LinkOfGen(4, 16)})
		return probe.BDF{Bus: bus}
	}
	for numa, n := range perSocket {
		inv.NUMA = append(inv.NUMA, probe.NUMANode{ID: numa})
		parent := probe.Opt[probe.BDF]{}
		if switches {
			parent = probe.Some(add(probe.ClassBridgePCI, parent, numa))
		}
		for range n {
			inv.GPUs = append(inv.GPUs, probe.GPU{Index: probe.Some(len(inv.GPUs)), CC: probe.Some(89), Addr: probe.Some(add(0x030200, parent, numa))})
		}
	}
	return inv
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

// dice hands out small numbers from a byte string, zeros when it is used up.
type dice []byte

func (b *dice) below(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0]) % n
	*b = (*b)[1:]
	return v
}

// anyHost builds a small host from bytes: sockets, switches, GPUs below them
// with NVLinks to each other or to switches, NICs.
func anyHost(b dice) *probe.Inventory {
	inv := &probe.Inventory{}
	cpu := []probe.CPU{
		{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(143)},
		{Arch: "x86_64", Vendor: "AuthenticAMD"},
		{Arch: "arm64"}, {Arch: "ppc64"}, {Arch: "x86_64"},
		{Arch: "x86_64", Vendor: "GenuineIntel"},
	}
	inv.CPUs = []probe.CPU{cpu[b.below(len(cpu))]}
	sockets := 1 + b.below(3)
	for i := range sockets {
		inv.NUMA = append(inv.NUMA, probe.NUMANode{ID: i})
	}
	bus := 0
	add := func(class probe.PCIClass, parent probe.Opt[probe.BDF], numa int) probe.BDF {
		bus++
		d := probe.PCIDevice{Addr: probe.BDF{Bus: uint8(bus)}, Parent: parent, Class: probe.Some(class), Max: probe.LinkOfGen(1+b.below(5), 1<<b.below(5))}
		if numa >= 0 {
			d.NUMA = probe.Some(numa)
		}
		inv.PCI = append(inv.PCI, d)
		return d.Addr
	}
	type spot struct {
		parent probe.Opt[probe.BDF]
		numa   int
	}
	spots := []spot{{numa: -1}}
	for s := range sockets {
		spots = append(spots, spot{numa: s})
	}
	for range b.below(4) {
		under := spots[b.below(len(spots))]
		spots = append(spots, spot{probe.Some(add(probe.ClassBridgePCI, under.parent, under.numa)), under.numa})
	}
	n := 1 + b.below(9)
	cc := []int{60, 70, 80, 86, 90, 100}[b.below(6)]
	wiring := b.below(4)
	for i := range n {
		s := spots[b.below(len(spots))]
		g := probe.GPU{Index: probe.Some(i), Addr: probe.Some(add(0x030200, s.parent, s.numa)), CC: probe.Some(cc)}
		if wiring == 1 {
			g.NVLinks = probe.Some(make([]probe.NVLink, 0))
			links := []probe.NVLink{}
			for k := range 1 + b.below(18) {
				links = append(links, probe.NVLink{Link: k, State: probe.LinkUp, RemoteKind: probe.RemoteSwitch})
			}
			g.NVLinks = probe.Some(links)
		}
		inv.GPUs = append(inv.GPUs, g)
	}
	if wiring >= 2 {
		links := make([][]probe.NVLink, n)
		for i := range n {
			for j := range i {
				for range b.below(4) {
					for _, e := range [][2]int{{i, j}, {j, i}} {
						links[e[0]] = append(links[e[0]], probe.NVLink{Link: len(links[e[0]]), State: probe.LinkUp, RemoteKind: probe.RemoteGPU, Remote: inv.GPUs[e[1]].Addr})
					}
				}
			}
		}
		for i := range n {
			inv.GPUs[i].NVLinks = probe.Some(links[i])
		}
	}
	for i := range b.below(3) {
		s := spots[b.below(len(spots))]
		inv.HCAs = append(inv.HCAs, probe.HCA{Name: fmt.Sprintf("mlx5_%d", i), Addr: probe.Some(add(0x020700, s.parent, s.numa)),
			Ports: []probe.HCAPort{{Port: 1, State: probe.PortActive, Rate: probe.Some(probe.Mbps(100e3))}}})
	}
	return inv
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

// mesh is n GPUs joined directly, each pair by what links says.
func mesh(n, cc int, links func(i, j int) int) *probe.Inventory {
	inv := &probe.Inventory{CPUs: []probe.CPU{{Arch: "x86_64", Vendor: "AuthenticAMD"}}, NUMA: []probe.NUMANode{{ID: 0}}}
	for i := range n {
		addr := probe.BDF{Bus: uint8(i + 1)}
		inv.PCI = append(inv.PCI, probe.PCIDevice{Addr: addr, NUMA: probe.Some(0), Class: probe.Some(probe.PCIClass(0x030200)), Max: probe.LinkOfGen(4, 16)})
		g := probe.GPU{Index: probe.Some(i), Addr: probe.Some(addr), CC: probe.Some(cc)}
		own := []probe.NVLink{}
		for j := range n {
			for range links(min(i, j), max(i, j)) {
				if i != j {
					own = append(own, probe.NVLink{Link: len(own), State: probe.LinkUp, Generation: probe.Some(3), RemoteKind: probe.RemoteGPU, Remote: probe.Some(probe.BDF{Bus: uint8(j + 1)})})
				}
			}
		}
		g.NVLinks = probe.Some(own)
		inv.GPUs = append(inv.GPUs, g)
	}
	return inv
}

// Meshes of 16 GPUs have far more rings than can be looked at.
func hardMeshes() map[string]*probe.Inventory {
	rnd := rand.New(rand.NewPCG(5, 6))
	var some [16][16]int
	for i := range some {
		for j := range some[i] {
			some[i][j] = rnd.IntN(5)
		}
	}
	return map[string]*probe.Inventory{
		"full":   mesh(16, 80, func(i, j int) int { return 1 }),
		"random": mesh(16, 80, func(i, j int) int { return some[i][j] / 2 }),
		"sparse": mesh(16, 70, func(i, j int) int { return max(0, some[i][j]-2) }),
	}
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

// h100x8 is a host of 8 H100 behind NVSwitches, each below a PCIe switch of its
// own with a NIC.
func h100x8() *probe.Inventory {
	inv := &probe.Inventory{
		CPUs: []probe.CPU{{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(143)}},
		NUMA: []probe.NUMANode{{ID: 0}, {ID: 1}},
	}
	for i := range 8 {
		numa := probe.Some(i / 4)
		bus := uint8(0x10 * (i + 1))
		up, gpu, nic := probe.BDF{Bus: bus}, probe.BDF{Bus: bus + 1}, probe.BDF{Bus: bus + 2}
		for _, d := range []probe.PCIDevice{
			{Addr: up, Class: probe.Some(probe.PCIClass(probe.ClassBridgePCI))},
			{Addr: gpu, Parent: probe.Some(up), Class: probe.Some(probe.PCIClass(0x030200))},
			{Addr: nic, Parent: probe.Some(up), Class: probe.Some(probe.PCIClass(0x020700))},
		} {
			d.NUMA, d.Max = numa, probe.LinkOfGen(5, 16)
			inv.PCI = append(inv.PCI, d)
		}
		links := []probe.NVLink{}
		for k := range 18 {
			links = append(links, probe.NVLink{Link: k, State: probe.LinkUp, Generation: probe.Some(4), RemoteKind: probe.RemoteSwitch, Remote: probe.Some(probe.BDF{Bus: uint8(1 + k%4)})})
		}
		inv.GPUs = append(inv.GPUs, probe.GPU{Index: probe.Some(i), Addr: probe.Some(gpu), CC: probe.Some(90), NVLinks: probe.Some(links)})
		inv.HCAs = append(inv.HCAs, probe.HCA{Name: fmt.Sprintf("mlx5_%d", i), Addr: probe.Some(nic),
			Ports: []probe.HCAPort{{Port: 1, State: probe.PortActive, Rate: probe.Some(probe.Mbps(400e3))}}})
	}
	return inv
}
