package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/fixtures/golden"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/nccllog"
	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/text"
)

// jobLog is what a job of hosts with eight H100 each prints with NCCL_DEBUG=INFO:
// rings rail by rail, a tree over the hosts, connections of one ring channel.
func jobLog(hosts int) string {
	var b strings.Builder
	n := 8 * hosts
	say := func(rank int, format string, args ...any) {
		fmt.Fprintf(&b, "gx%02d:%d:%d [%d] NCCL INFO %s\n", rank/8, 100+rank%8, 200+rank%8, rank%8, fmt.Sprintf(format, args...))
	}
	each := func(f func(r int)) {
		for r := range n {
			f(r)
		}
	}
	init := func(end string) {
		each(func(r int) {
			say(r, "ncclCommInitRank comm 0x55%06x rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0xabc1 - Init %s", r, r, n, r%8, r%8, 0x1b000+(r%8)<<16, end)
		})
	}
	each(func(r int) {
		say(r, "NCCL version 2.27.7+cuda12.9")
		say(r, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.%d<0>", r/8%250)
		say(r, "Using network IB")
		say(r, "NCCL_IB_HCA set to mlx5")
		say(r, "cudaDriverVersion 12090")
	})
	init("START")
	order := func() string {
		var s []string
		for r := range n {
			s = append(s, fmt.Sprint(r))
		}
		return strings.Join(s, " ")
	}
	say(0, "Channel 00/02 : %s", order())
	say(0, "Channel 01/02 : %s", order())
	each(func(r int) {
		say(r, "comm 0x55%06x rank %d nRanks %d nNodes %d localRanks 8 localRank %d MNNVL 0", r, r, n, hosts, r%8)
		down, up := r+1, r-1
		if down == n {
			down = -1
		}
		say(r, "Trees [0] %d/-1/-1->%d->%d [1] %d/-1/-1->%d->%d", down, r, up, down, r, up)
		next := (r + 1) % n
		for c := range 2 {
			if r/8 == next/8 {
				say(r, "Channel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM", c, r, r%8, next, next%8)
				continue
			}
			say(r, "Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA", c, r, r%8, next, next%8, c)
			say(next, "Channel %02d/0 : %d[%d] -> %d[%d] [receive] via NET/IB/%d/GDRDMA", c, r, r%8, next, next%8, c)
		}
		say(r, "2 coll channels, 2 collnet channels, 16 nvls channels, 2 p2p channels, 2 p2p channels per peer")
	})
	init("COMPLETE")
	each(func(r int) {
		say(r, "Init timings - ncclCommInitRank: rank %d nranks %d total %.2f (kernels 0.20, alloc 0.10, bootstrap %.2f, allgathers 0.00, topo 0.50, graphs 0.01, connections 0.10, rest 0.00)", r, n, 1+float64(r)/1000, float64(r)/1000)
		say(r, "NVLS comm 0x55%06x headRank %d nHeads 8 buffSize 4194304 nvlsPerRankSize 134217728 nvlsTotalSize 1073741824", r, r%8)
	})
	return b.String()
}

func cluster(t testing.TB, log string) (*probe.Cluster, check.Result) {
	t.Helper()
	l, err := nccllog.Read("job.log", strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	var parts []probe.Part
	for _, inv := range l.Inventories() {
		parts = append(parts, probe.Part{Inv: inv, File: "job.log"})
	}
	c, err := probe.Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	res, err := check.RunCluster(c, check.All())
	if err != nil {
		t.Fatal(err)
	}
	return c, res
}

// A healthy job of 16 ranks and one of 1,024 fit a screen and have no finding.
func TestLogText(t *testing.T) {
	for _, hosts := range []int{2, 6, 128} {
		c, res := cluster(t, jobLog(hosts))
		if len(res.Findings) > 0 {
			t.Errorf("%d hosts: %+v", hosts, res.Findings)
		}
		var b bytes.Buffer
		if err := text.Log(&b, &c.Job, res, text.Style{}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(b.String(), "\n"); lines > 60 {
			t.Errorf("%d hosts: %d lines", hosts, lines)
		}
		golden.Check(t, fmt.Sprintf("log-%d.txt", 8*hosts), b.Bytes())
	}
}

// What is wrong with a communicator's ranks is said: duplicates, gaps, ranks that
// did not get through.
func TestLogTextFaults(t *testing.T) {
	log := jobLog(2)
	var kept []string
	for line := range strings.Lines(log) {
		switch {
		case strings.Contains(line, " rank 3 ") || strings.HasPrefix(line, "gx00:103"):
			continue // rank 3 printed nothing
		case strings.Contains(line, "rank 9 ") && strings.Contains(line, "COMPLETE"):
			continue
		case strings.Contains(line, "rank 5 ") && strings.Contains(line, "START"):
			kept = append(kept, strings.Replace(line, "gx00:105", "gx07:999", 1)) // twice
		}
		kept = append(kept, line)
	}
	kept = append(kept, "gx00:100:200 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n",
		"gx00:100:200 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n",
		"gx00:100:200 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo TREE proto SIMPLE channel{Lo..Hi}={0..1}\n",
		"gx00:100:200 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer gx07<1>\n",
		"gx00:100:200 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n", "gx00:101:201 [1] NCCL INFO Invalid value x for NCCL_NTHREADS, using default -2.\n")
	c, res := cluster(t, strings.Join(kept, ""))
	var b bytes.Buffer
	if err := text.Log(&b, &c.Job, res, text.Style{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "log-faults.txt", b.Bytes())
}

func TestLogJSON(t *testing.T) {
	c, res := cluster(t, jobLog(2))
	raw, err := json.Marshal(render.NewLogDoc(&c.Job, res))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema        string
		Communicators []struct {
			Ranks      int
			Missing    []int `json:"ranks_not_in_log"`
			Transports []struct {
				Transport string
				Pairs     int
				Within    int `json:"pairs_in_host"`
				Between   int `json:"pairs_between_hosts"`
			}
		}
		Findings, Gaps []any
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "ncclmap.log/v1" || len(doc.Communicators) != 1 || doc.Findings == nil || len(doc.Gaps) == 0 {
		t.Fatalf("%.300s", raw)
	}
	got := fmt.Sprint(doc.Communicators[0].Ranks, doc.Communicators[0].Missing, doc.Communicators[0].Transports)
	if want := "16 [] [{NET/IB/GDRDMA 2 0 2} {P2P/CUMEM 14 14 0}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	empty, err := json.Marshal(render.NewLogDoc(&probe.Job{}, check.Result{Findings: []check.Finding{}, Gaps: []check.Gap{}}))
	if err != nil || bytes.Contains(empty, []byte("null")) {
		t.Errorf("%v %s", err, empty)
	}
}

func BenchmarkLogCheck(b *testing.B) {
	log := jobLog(128)
	for b.Loop() {
		cluster(b, log)
	}
}

// FuzzLog takes any text through reader, rules and printers.
func FuzzLog(f *testing.F) {
	f.Add(jobLog(2))
	f.Add("a:1:1 [0] NCCL INFO Channel 00 : 1[2000] -> 0[1000] [receive] via NET/Socket/0\na:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 2147483647 cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE\n")
	f.Add("a:1:1 [0] NCCL INFO GPU Direct RDMA Disabled for GPU a1000 / HCA 0 (distance 6 > 4)\na:1:1 [0] x.cc:1 NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0.\n" +
		"a:1:1 [0] NCCL INFO Trees [0] 1/0/-1->0->-1 [1] 0/-1/-1->1->0\na:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n")
	f.Fuzz(func(t *testing.T, log string) {
		c, res := cluster(t, log)
		var b bytes.Buffer
		if err := text.Log(&b, &c.Job, res, text.Style{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(render.NewLogDoc(&c.Job, res)); err != nil {
			t.Fatal(err)
		}
	})
}
