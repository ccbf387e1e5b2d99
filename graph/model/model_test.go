package model

import (
	"math"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

func set(t testing.TB, pairs ...string) (s Settings) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if known, err := s.Set(pairs[i], pairs[i+1]); err != nil || !known {
			t.Fatalf("%s: %v %v", pairs[i], known, err)
		}
	}
	return s
}

func version(minor, patch int) graph.NCCLVersion {
	return graph.NCCLVersion(20000 + 100*minor + patch)
}

// What settings leave, and what NCCL then takes: by size with the believed time.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		set  string // NAME=value, blanks between
		v    graph.NCCLVersion
		coll string
		want string
	}{
		{"", 0, AllReduce, "64 Ring/LL 15.0, 2097152 NVLS/Simple 32.7"},
		{"NCCL_ALGO=Tree", 0, AllReduce, "64 Tree/LL 15.2, 524288 Tree/LL128 38.3, 67108864 Tree/Simple 571.0"},
		{"NCCL_ALGO=Tree", 0, AllGather, "none"},
		{"NCCL_ALGO=Tree", version(23, 4), AllGather, "64 Ring/LL 10.8, 8388608 Ring/LL128 49.5, 33554432 Ring/Simple 113.8"},
		{"NCCL_ALGO=^NVLS", 0, AllReduce, "64 Ring/LL 15.0, 4194304 Ring/LL128 62.8, 67108864 Ring/Simple 382.2"},
		{"NCCL_ALGO=allreduce:ring NCCL_PROTO=allreduce:Simple", 0, AllReduce, "64 Ring/Simple 56.0"},
		{"NCCL_ALGO=allreduce:ring NCCL_PROTO=allreduce:Simple", 0, AllGather, "64 Ring/LL 10.8, 8388608 Ring/LL128 49.5, 33554432 Ring/Simple 113.8"},
		{"NCCL_PROTO=^LL", 0, AllGather, "64 NVLS/Simple 25.0, 2097152 Ring/LL128 32.8, 33554432 Ring/Simple 113.8"},
		{"NCCL_ALGO=CollNetDirect", version(21, 5), AllReduce, "64 Ring/LL 15.0, 4194304 Ring/LL128 62.8, 67108864 Ring/Simple 382.2"},
		{"NCCL_ALGO=CollNetDirect", 0, AllReduce, "none"},
		// 2.21 lets Ring in with any protocol, 2.22 only with those that are left.
		{"NCCL_ALGO=Tree NCCL_PROTO=Simple", version(21, 5), AllGather, "64 Ring/LL 10.8, 8388608 Ring/LL128 49.5, 33554432 Ring/Simple 113.8"},
		{"NCCL_ALGO=Tree NCCL_PROTO=Simple", version(22, 3), AllGather, "64 Ring/Simple 32.2"},
	} {
		comm := h100(1)
		comm.Version = c.v
		var pairs []string
		for _, s := range strings.Fields(c.set) {
			name, value, _ := strings.Cut(s, "=")
			pairs = append(pairs, name, value)
		}
		m, err := New(comm, set(t, pairs...))
		if err != nil {
			t.Fatal(err)
		}
		checkTerms(t, m)
		if got := choices(m, c.coll); got != c.want {
			t.Errorf("%s, NCCL %v, %s: %s\nwant %s", c.set, c.v, c.coll, got, c.want)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for name, value := range map[string]string{
		"NCCL_NTHREADS": "many", "NCCL_LL128_NTHREADS": "", "NCCL_NET_OVERHEAD": "1us", "NCCL_PAT_ENABLE": "auto", "NCCL_LL128_C2C": "no", "NCCL_THREAD_THRESHOLDS": "1 2 x",
	} {
		var s Settings
		if known, err := s.Set(name, value); !known || err == nil {
			t.Errorf("%s=%q: %v %v", name, value, known, err)
		}
	}
	var s Settings
	if known, err := s.Set("NCCL_DEBUG", "INFO"); known || err != nil {
		t.Errorf("NCCL_DEBUG: %v %v", known, err)
	}
	for _, pair := range [][2]string{{"NCCL_ALGO", "Trees"}, {"NCCL_PROTO", "LL;Simple"}, {"NCCL_ALGO", "alltoall:ring"}} {
		if _, err := New(h100(1), set(t, pair[0], pair[1])); err == nil || !strings.Contains(err.Error(), "refuses to start") {
			t.Errorf("%v: %v", pair, err)
		}
	}
	if _, err := New(Comm{}, Settings{}); err == nil {
		t.Error("no rank, no error")
	}
}

func TestThreads(t *testing.T) {
	for _, c := range []struct {
		pairs    []string
		coll     string
		bytes    int64
		channels int
		threads  int
	}{
		{nil, AllGather, 32 << 20, 24, 544},                                   // Ring Simple
		{[]string{"NCCL_NTHREADS", "256"}, AllGather, 32 << 20, 24, 288},      //
		{[]string{"NCCL_NTHREADS", "100"}, AllGather, 32 << 20, 24, 544},      // 32 does not divide it
		{[]string{"NCCL_NTHREADS", "32"}, AllGather, 32 << 20, 24, 96},        // least 64, and one warp more
		{[]string{"NCCL_NTHREADS", "0x80"}, AllReduce, 64 << 10, 8, 128},      // Ring LL
		{nil, AllReduce, 64 << 10, 2, 512},                                    //
		{[]string{"NCCL_LL128_NTHREADS", "160"}, AllGather, 8 << 20, 24, 160}, // Ring LL128
		{[]string{"NCCL_THREAD_THRESHOLDS", "-1 -1 -1 1 8 64"}, AllReduce, 64 << 10, 24, 512},
	} {
		m, err := New(h100(1), set(t, c.pairs...))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.Choose(c.coll, c.bytes); !ok || got.Channels != c.channels || got.Threads != c.threads {
			t.Errorf("%v %s %d: %+v, want %d channels of %d threads", c.pairs, c.coll, c.bytes, got, c.channels, c.threads)
		}
	}
}

// LL128 is used where its platform keeps 128 bytes together.
func TestLL128(t *testing.T) {
	for _, c := range []struct {
		class, inter graph.PathClass
		minCC, maxCC int
		v            graph.NCCLVersion
		pairs        []string
		on           bool
	}{
		{graph.NVL, graph.PIX, 90, 90, 0, nil, true},
		{graph.NVB, graph.PIX, 70, 70, 0, nil, true},
		{graph.NVB, graph.PIX, 70, 70, version(18, 1), nil, false},
		{graph.C2C, graph.PIX, 90, 90, 0, nil, false},
		{graph.PIX, graph.PIX, 90, 90, 0, nil, false},
		{graph.NVL, graph.PXN, 80, 80, 0, nil, false},
		{graph.NVL, graph.PXN, 90, 90, 0, nil, true},
		{graph.NVL, graph.PXN, 90, 90, 0, []string{"NCCL_LL128_C2C", "0"}, false},
		{graph.NVL, graph.PHB, 90, 90, 0, nil, false},
		{graph.NVL, graph.PHB, 90, 90, 0, []string{"NCCL_PROTO", "LL128"}, true}, // forced
		{graph.NVL, graph.PIX, 60, 60, 0, nil, false},
		{graph.NVL, graph.PIX, 89, 89, 0, nil, true},
		{graph.NVL, graph.PIX, 89, 89, version(26, 2), nil, false},
		{graph.NVL, graph.PIX, 100, 100, version(24, 3), nil, false},
		{graph.NVL, graph.PIX, 100, 100, version(25, 1), nil, true},
		{graph.NVL, graph.PIX, 80, 90, 0, nil, false},
		{graph.NVL, graph.PIX, 90, 100, 0, nil, true},
		{graph.NVL, graph.PIX, 90, 100, version(29, 2), nil, false},
	} {
		comm := a100(1)
		comm.Version, comm.MinCC, comm.MaxCC = c.v, c.minCC, c.maxCC
		for _, g := range []*search.Graph{&comm.Ring, &comm.Tree} {
			g.TypeIntra, g.TypeInter = c.class, c.inter
		}
		m, err := New(comm, set(t, c.pairs...))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range m.Tuning() {
			if x.Proto == LL128 && x.Algo == Ring && (x.Disabled == "") != c.on {
				t.Errorf("%+v: %s disabled %q", c, x.Collective, x.Disabled)
			}
		}
	}
}

// One GPU per node brings PAT and the exposed network latency; a network plugin
// brings CollNet. The figures follow from the formulas by hand.
func TestOtherAlgorithms(t *testing.T) {
	alone := Comm{
		Ranks: 4, Nodes: 4, LocalRanks: 1, Channels: 4, MinCC: 90, MaxCC: 90, X86: true,
		Ring: flat(search.Ring, 4, 2, 24, 24, graph.LOC, 1), Tree: flat(search.Tree, 3, 2, 24, 24, graph.LOC, 1),
	}
	sharp := h100(4)
	sharp.CollNet = CollNet{Heads: 8, AllGather: true}
	sharp.CollNetDirect, sharp.CollNetChain = flat("collnet", 6, 8, 48, 48, graph.NVL, 0), flat("collnet", 3, 8, 48, 48, graph.NVL, 0)
	for _, c := range []struct {
		comm              Comm
		v                 graph.NCCLVersion
		coll, algo, proto string
		gbs, us           float64
	}{
		{alone, 0, AllGather, PAT, Simple, 36, 8 + 2*14/3.5 + 2.8*4},
		{alone, version(23, 4), AllGather, PAT, Simple, 40.8, 8 + 2*14/3.5 + 2.8*4},
		{alone, version(22, 3), AllGather, PAT, Simple, 0, 0},
		{alone, 0, AllGather, Ring, LL, 20.4 * 4 / 3, 6.6 + 3*5},
		{alone, version(22, 3), AllGather, Ring, LL, 20.4 * 4 / 3, 6.6 + 3*2.7},
		{alone, version(22, 3), AllGather, Ring, LL128, 48 * 0.7 * 4 / 3, 14 + 3*4},
		{sharp, 0, AllReduce, CollNetDirect, Simple, 8 * 48 * 0.85 / 2, 2*(3.7+7*0.4) + 31},
		{sharp, 0, AllReduce, CollNetChain, Simple, 8 * 48 / 2, 2*7*2.8 + 30},
		{sharp, 0, AllGather, CollNetDirect, Simple, 8 * 0.9 * 48, 2*(3.7+7*0.4) + 31},
		{sharp, 0, ReduceScatter, CollNetDirect, Simple, 0, 2*(3.7+7*0.4) + 31},
		{sharp, version(26, 2), AllGather, CollNetDirect, Simple, 8 * 48 * 0.85, 2*(3.7+7*0.4) + 31},
		{sharp, 0, AllReduce, NVLS, Simple, 8 * 48 * 32.0 / 62, 25 + 18},
		{h100(1), version(27, 7), AllGather, NVLS, Simple, 8 * 40 * 7.0 / 8, 25},
		{h100(1), version(27, 7), AllReduce, NVLS, Simple, 8 * 40 * 5.0 / 6, 25},
		{h100(1), version(20, 3), AllReduce, NVLS, Simple, 8 * 40 * 5.0 / 6, 23},
		{h100(1), version(18, 1), AllReduce, NVLS, Simple, 8 * 40 * 0.75, 23},
		{h100(4), version(27, 7), AllReduce, NVLSTree, Simple, 8 * 24 * 5.0 / 6, 25 + 4*14},
		{h100(4), version(28, 3), AllReduce, NVLSTree, Simple, 8 * 45.5 * 32 / 62, 25 + 4*14},
		{h100(1), version(20, 3), AllReduce, Ring, LL, 87.7 * 8 / 14, 15},
		{h100(1), version(20, 3), Broadcast, Ring, LL, 87.7, 7.2},
		{h100(2), version(20, 3), AllGather, Ring, LL, 39 * 16.0 / 15, 23.3},
	} {
		c.comm.Version = c.v
		m, err := New(c.comm, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		checkTerms(t, m)
		var got Tuning
		for _, x := range m.Tuning() {
			if x.Collective == c.coll && x.Algo == c.algo && x.Proto == c.proto {
				got = x
			}
		}
		if math.Abs(got.BWGBs-c.gbs) > 1e-5 || math.Abs(got.LatencyUS-c.us) > 1e-5 {
			t.Errorf("NCCL %v %s %s %s: %g GB/s %g us, want %g, %g (%s)", c.v, c.coll, c.algo, c.proto, got.BWGBs, got.LatencyUS, c.gbs, c.us, got.Disabled)
		}
	}
}

// Every history of a constant goes forward.
func TestHistories(t *testing.T) {
	check := func(what string, n int, at func(int) (minor, patch int)) {
		last := 0
		for i := range n {
			minor, patch := at(i)
			if v := 100*minor + patch; v <= last {
				t.Errorf("%s: 2.%d.%d does not follow", what, minor, patch)
			} else {
				last = v
			}
		}
		if n == 0 {
			t.Errorf("%s: empty", what)
		}
	}
	for algo, name := range algorithmNames {
		h := baseLatency[algo]
		check("base of "+name, len(h), func(i int) (int, int) { return h[i].minor, h[i].patch })
		for kind := range stepLatency {
			h := stepLatency[kind][algo]
			check("step of "+name, len(h), func(i int) (int, int) { return h[i].minor, h[i].patch })
		}
	}
	for _, c := range []ceilings{llMax, ringLL128Max, treeLL128Max, treeMax, nvlsTreeMax} {
		for gen, name := range generationNames {
			h := c[gen]
			check("ceiling on "+name, len(h), func(i int) (int, int) { return h[i].minor, h[i].patch })
		}
	}
	check("PAT", len(patShare), func(i int) (int, int) { return patShare[i].minor, patShare[i].patch })
	check("traffic", len(minTraffic), func(i int) (int, int) { return minTraffic[i].minor, minTraffic[i].patch })
}

func TestChecks(t *testing.T) {
	for v, want := range map[graph.NCCLVersion]bool{0: true, 23007: true, 22803: true, 22105: true, 22602: false, 21801: false, 23102: false} {
		if Verified(v) != want {
			t.Errorf("%v: verified %v", v, !want)
		}
	}
}

func TestSingleRank(t *testing.T) {
	m, err := New(Comm{Ranks: 1, Nodes: 1}, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := m.Choose(AllReduce, 1<<20); !ok || c.Algo != Ring || c.Proto != Simple || c.TimeUS != 0 || len(m.Tuning()) != 0 {
		t.Errorf("%+v %v", c, ok)
	}
}

func TestEstimate(t *testing.T) {
	m, err := New(h100(1), Settings{})
	if err != nil {
		t.Fatal(err)
	}
	f := &Floor{}
	f.gbs[allReduce] = probe.Some(450.0)
	e := m.Estimate(AllReduce, 1<<30, f)
	if c, ok := e.Choice.Get(); !ok || c.Algo != NVLS || e.TimeUS.Known() || e.BusBWGBs.Known() || e.HighUS.Known() || e.Calibrated {
		t.Errorf("%+v", e)
	}
	if low := e.LowUS.Or(0); math.Abs(low-float64(1<<30)/450e3) > 1e-5 || low > e.NCCLTimeUS.Or(0) {
		t.Errorf("at least %g us", low)
	}
	if n := testing.AllocsPerRun(100, func() { m.Estimate(AllReduce, 1<<20, f) }); n != 0 {
		t.Errorf("an estimate allocates %g times", n)
	}
	if e := m.Estimate(AllToAll, 1<<20, f); e.Choice.Known() || e.Why != noModel || e.LowUS.Known() {
		t.Errorf("%+v", e)
	}
	m, err = New(h100(1), Settings{Algo: "Tree"})
	if err != nil {
		t.Fatal(err)
	}
	if e := m.Estimate(Broadcast, 1<<20, f); e.Choice.Known() || e.Why != noneLeft {
		t.Errorf("%+v", e)
	}
}

// The bus factors of nccl-tests.
func TestBusFactor(t *testing.T) {
	for coll, want := range map[string]float64{AllReduce: 1.75, AllGather: 0.875, ReduceScatter: 0.875, AllToAll: 0.875, Broadcast: 1, Reduce: 1, SendRecv: 1} {
		if got, ok := BusFactor(coll, 8); !ok || got != want {
			t.Errorf("%s: %g %v", coll, got, ok)
		}
	}
	for _, ranks := range []int{0, 1} {
		if _, ok := BusFactor(AllReduce, ranks); ok {
			t.Errorf("a factor for %d ranks", ranks)
		}
	}
}
