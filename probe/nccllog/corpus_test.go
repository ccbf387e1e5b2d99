package nccllog

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ncclmap/ncclmap/probe"
)

const shared = "../../../shared"

// capture reads one log of the recorded machine.
func capture(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(shared, "captures/2xh200-vm", name))
	if err != nil {
		t.Skip("no recording: ../../../shared is not there")
	}
	return raw
}

func TestCorpus(t *testing.T) {
	var files []string
	for _, p := range []string{"corpus/logs/*", "cases/*/nccl.log", "captures/2xh200-vm/ar-*.txt"} {
		m, err := filepath.Glob(filepath.Join(shared, p))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, m...)
	}
	if len(files) == 0 {
		t.Skip("no corpus: ../../../shared is not there")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Read(filepath.Base(f), bytes.NewReader(raw))
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		isLog := bytes.Contains(raw, []byte("NCCL INFO")) || bytes.Contains(raw, []byte("NCCL WARN")) ||
			bytes.Contains(raw, []byte("] via NET/IB")) || bytes.HasPrefix(raw, []byte("P2P is disabled")) // cut out of a log
		if Sniff(raw) != isLog || isLog && l.Records == 0 {
			t.Errorf("%s: Sniff %v, %d records", f, Sniff(raw), l.Records)
		}
		if l.Torn > 0 || len(l.Dropped) > 0 {
			t.Errorf("%s: %d torn, dropped %v", f, l.Torn, l.Dropped)
		}
		for _, h := range l.Hosts() {
			if !regexp.MustCompile(`(?m)(^|[>\]]:? ?)` + regexp.QuoteMeta(h) + `:`).Match(raw) {
				t.Errorf("%s: host %q begins no line", f, h)
			}
		}
		for _, inv := range l.Inventories() {
			if err := inv.Validate(); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
}

// TestCapture holds the figures of the recorded machine: two H200 in one
// process, NCCL 2.28.3.
func TestCapture(t *testing.T) {
	l, err := Read("ar-debug-info.txt", bytes.NewReader(capture(t, "ar-debug-info.txt")))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Comms) != 1 || len(l.Procs) != 1 || l.Torn != 0 || len(l.Loose.Conns)+len(l.Loose.Rings) != 0 {
		t.Fatalf("%d communicators, %d processes, %d torn, loose %+v", len(l.Comms), len(l.Procs), l.Torn, l.Loose)
	}
	p := l.Procs[0]
	if p.Host != "vm" || p.PID != 1464 || p.NCCL != "2.28.3" || p.CUDA != "13.0" || p.CUDADriver != probe.Some(13000) || p.Network != "Socket" {
		t.Errorf("process %+v", p)
	}
	c := l.Comms[0]
	if c.ID != "0xa9b0320a1d1544aa" || c.Guessed || c.Ranks != 2 || c.NCCL != "2.28.3" || c.Nodes != probe.Some(1) || c.MNNVL != probe.Some(false) {
		t.Errorf("communicator %s ranks %d nccl %s nodes %v", c.ID, c.Ranks, c.NCCL, c.Nodes)
	}
	want := ChannelCounts{Coll: probe.Some(24), CollNet: probe.Some(24), NVLS: probe.Some(0), P2P: probe.Some(32), P2PPerPeer: probe.Some(32)}
	if c.Counts != want {
		t.Errorf("channels %+v", c.Counts)
	}
	if len(c.Members) != 2 {
		t.Fatalf("members %+v", c.Members)
	}
	for i, m := range c.Members {
		bus := uint64(0x60 + 0x10*i)
		if m.Rank != i || m.NVMLDev != probe.Some(i) || m.CUDADev != probe.Some(i) || m.BusID != probe.Some(bus) || m.API != "ncclCommInitRankConfig" ||
			m.Started == 0 || m.Completed == 0 || m.Destroyed == 0 || m.Aborted != 0 || m.Rings == 0 || m.RingGDR != probe.Some(true) || m.RingPXN != probe.Some(false) {
			t.Errorf("member %+v", m)
		}
		if len(m.Timings) != 9 || m.Timings[0] != (Timing{"total", 0.52}) || m.Timings[1] != (Timing{"kernels", 0.43}) {
			t.Errorf("timings %v", m.Timings)
		}
	}
	if len(c.Graphs) != 2 {
		t.Fatalf("graphs %+v", c.Graphs)
	}
	g := c.Graphs[0]
	if PatternName(g.Pattern) != "ring" || g.Channels != 12 || g.BWIntra != 30 || g.BWInter != 30 || g.TypeIntra != "NVL" || g.TypeInter != "PIX" ||
		!g.SameChans || len(g.Orders) != 12 || g.Orders[0] != "GPU/0-60 GPU/0-70" || !slices.Equal(g.Ranks, []int{0, 1}) || g.Count != 2 {
		t.Errorf("ring graph %+v", g)
	}
	if g := c.Graphs[1]; g.Pattern != 1 || g.Channels != 12 || g.BWIntra != 60 || g.SameChans || g.Orders[11] != "GPU/0-70 GPU/0-60" {
		t.Errorf("tree graph %+v", g)
	}
	if len(c.Rings) != 24 || c.Rings[23].Channel != 23 || c.Rings[23].Of != probe.Some(24) || !slices.Equal(c.Rings[23].Ranks, []int{0, 1}) {
		t.Errorf("rings %+v", c.Rings)
	}
	if len(c.Trees) != 48 {
		t.Errorf("%d tree entries", len(c.Trees))
	}
	for _, n := range c.Trees {
		root, leaf := 0, 1
		if n.Channel%12 >= 6 {
			root, leaf = 1, 0
		}
		if n.Rank == root && (n.Up != -1 || n.Down[0] != leaf) || n.Rank == leaf && (n.Up != root || n.Down[0] != -1) {
			t.Errorf("tree entry %+v", n)
		}
	}
	if len(c.Conns) != 2 {
		t.Fatalf("connections %+v", c.Conns)
	}
	for i, k := range c.Conns {
		if k.From.Rank != i || k.To.Rank != 1-i || k.From.NVML != probe.Some(i) || k.Via.Text != "P2P/direct pointer" || k.Via.Kind != "P2P" ||
			len(k.Channels) != 24 || k.Conn != probe.Some(0) || k.Count != 24 || k.Host != "vm" {
			t.Errorf("connection %+v", k)
		}
	}
	if n := len(c.Tuning); n != 5*7*3 { // five collectives, seven algorithms, three protocols
		t.Errorf("%d cells of the tuning table", n)
	}
	if i := slices.IndexFunc(c.Tuning, func(x Cell) bool { return x.Func == "AllReduce" && x.Algo == "Ring" && x.Proto == "Simple" }); i < 0 ||
		c.Tuning[i].LatencyUS != 15.2 || c.Tuning[i].GBs != 360 {
		t.Errorf("tuning %+v", c.Tuning)
	}
	if i := slices.IndexFunc(c.Tuning, func(x Cell) bool { return x.Func == "AllReduce" && x.Algo == "Tree" && x.Proto == "LL128" }); i < 0 ||
		c.Tuning[i].LatencyUS != 16.5 || c.Tuning[i].GBs != 180.6 {
		t.Errorf("tuning %+v", c.Tuning)
	}
	var nets []string
	for _, n := range l.Networks {
		nets = append(nets, n.Name+" "+n.State)
	}
	if d := cmp.Diff([]string{"IB no device", "IB failed", "Socket initialized", "Socket assigned", "Socket used"}, nets); d != "" {
		t.Error(d)
	}
	var ifs []string
	for _, n := range l.Interfaces {
		ifs = append(ifs, n.Use+" "+n.Name+" "+n.Addr)
	}
	if d := cmp.Diff([]string{"oob eth0 192.0.2.2", "socket eth0 192.0.2.2"}, ifs); d != "" {
		t.Error(d)
	}
	if len(l.GDR) != 1 || l.GDR[0].Network != "Socket" || l.GDR[0].Device != "eth0" || l.GDR[0].Enabled {
		t.Errorf("gdr %+v", l.GDR)
	}
	if len(l.Fabrics) != 2 || l.Fabrics[0].BusID != 0x60 || l.Fabrics[0].State != 3 || l.Fabrics[0].UUID != "0.0" {
		t.Errorf("fabrics %+v", l.Fabrics)
	}
	if len(l.Topologies) != 1 {
		t.Fatalf("topologies %+v", l.Topologies)
	}
	topo := l.Topologies[0]
	if topo.MaxBW != probe.Some(370.8) || topo.Count != 2 || len(topo.Nodes) != 6 || len(topo.Paths) != 8 {
		t.Errorf("topology %+v", topo)
	}
	if n := topo.Nodes[3]; n.Depth != 2 || n.Link != "NVL" || n.GBs != 370.8 || n.Name != "NVS/0-0" {
		t.Errorf("node %+v", n)
	}
	if p := topo.Paths[1]; p != (TopoPath{"GPU/0-60", "GPU/0-70", 2, 370.8, "NVL"}) {
		t.Errorf("path %+v", p)
	}
	if len(l.Env) != 2 || l.Env[1].Name != "NCCL_NVLS_ENABLE" || l.Env[1].Value != "0" || l.Env[0].How != probe.EnvConfig {
		t.Errorf("settings %+v", l.Env)
	}

	inv := l.Inventories()[0]
	if err := inv.Validate(); err != nil {
		t.Fatal(err)
	}
	if inv.Host.Name != "vm" || inv.Runtime.NCCL != "2.28.3" || len(inv.GPUs) != 2 || len(inv.HCAs) != 0 || len(inv.Gaps) != 0 {
		t.Errorf("inventory %+v", inv)
	}
	if g := inv.GPUs[1]; g.Index != probe.Some(1) || g.Addr != probe.Some(probe.MustBDF("0000:00:07.0")) || g.Origins[0].Source != probe.SourceNCCLLog {
		t.Errorf("gpu %+v", g)
	}
	if len(inv.Comms) != 1 || inv.Comms[0].Channels != probe.Some(24) || inv.Comms[0].Ranks != 2 || inv.Comms[0].Nodes != probe.Some(1) {
		t.Errorf("comms %+v", inv.Comms)
	}
}

func TestCaptureTransports(t *testing.T) {
	for name, want := range map[string]string{
		"ar-p2poff.txt":  "0>1 SHM/direct/direct x4, 1>0 SHM/direct/direct x4",
		"ar-netonly.txt": "0>1 receive NET/Socket/0 x2, 0>1 send NET/Socket/0 x2, 1>0 receive NET/Socket/0 x2, 1>0 send NET/Socket/0 x2",
	} {
		l, err := Read(name, bytes.NewReader(capture(t, name)))
		if err != nil || len(l.Comms) != 1 {
			t.Fatal(name, err, len(l.Comms))
		}
		if got := conns(l.Comms[0]); got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// TestCaptureAll holds that records in the middle of result rows are read.
func TestCaptureAll(t *testing.T) {
	raw := capture(t, "ar-debug-all.txt")
	l, err := Read("all", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	calls, choices := int64(0), int64(0)
	for _, c := range l.Calls {
		if c.Func != "AllReduce" || c.Ranks != 2 || c.CommID == "" || c.DataType != 7 {
			t.Errorf("call %+v", c)
		}
		calls += c.Seen.Count
	}
	for _, c := range l.Choices {
		if c.Algo != "Ring" && c.Algo != "Tree" || c.Func != "AllReduce" {
			t.Errorf("choice %+v", c)
		}
		choices += c.Seen.Count
	}
	if want := int64(bytes.Count(raw, []byte("AllReduce: opCount"))); calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
	if want := int64(bytes.Count(raw, []byte(" Bytes -> Algo"))); choices != want {
		t.Errorf("%d choices, want %d", choices, want)
	}
	if h := l.Hosts(); !slices.Equal(h, []string{"vm"}) {
		t.Errorf("hosts %q", h)
	}
}

// TestInterleaved shuffles the lines of the threads of a log, each in its own
// order, and expects the same communicators.
func TestInterleaved(t *testing.T) {
	raw := string(capture(t, "ar-debug-info.txt"))
	var order []string
	byThread := map[string][]string{}
	for line := range strings.Lines(raw) {
		who, _, ok := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(who, "vm:") {
			continue
		}
		if byThread[who] == nil {
			order = append(order, who)
		}
		byThread[who] = append(byThread[who], line)
	}
	ignore := cmp.Options{
		cmpopts.IgnoreFields(Seen{}, "First", "Last"), cmpopts.IgnoreFields(Comm{}, "First", "Last"),
		cmpopts.IgnoreFields(Ring{}, "Line"), cmpopts.IgnoreFields(TreeNode{}, "Line"), cmpopts.IgnoreFields(Cell{}, "Line"),
		cmpopts.IgnoreFields(Member{}, "Started", "Completed", "Destroyed", "Rings"),
		cmp.Comparer(func(a, b probe.Opt[int]) bool { return a == b }), cmp.Comparer(func(a, b probe.Opt[bool]) bool { return a == b }),
		cmp.Comparer(func(a, b probe.Opt[uint64]) bool { return a == b }),
	}
	want, err := Read("x", strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	// What the main and the connecting threads print refers to what the
	// setting-up threads printed before.
	early := func(who string) bool { return who == "vm:1464:1475" || who == "vm:1464:1476" }
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for _, phase := range []bool{true, false} {
			left := map[string][]string{}
			var live []string
			for _, who := range order {
				if early(who) == phase {
					left[who] = byThread[who]
					live = append(live, who)
				}
			}
			for len(live) > 0 {
				i := rnd.IntN(len(live))
				who := live[i]
				b.WriteString(left[who][0])
				if left[who] = left[who][1:]; len(left[who]) == 0 {
					live = slices.Delete(live, i, i+1)
				}
			}
		}
		got, err := Read("x", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.Comms, got.Comms, ignore); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}
