package nccltests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

const whole = `# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on       gx07 device  0 [0000:1b:00] NVIDIA TestCard
#  Rank  1 Group  0 Pid   4712 on       gx07 device  1 [0000:43:00] NVIDIA TestCard
#  Rank  2 Group  0 Pid   4713 on       gx07 device  2 [0000:52:00] NVIDIA TestCard
#  Rank  3 Group  0 Pid   4714 on       gx07 device  3 [0000:61:00] NVIDIA TestCard
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
     1048576        262144     float     sum      -1    40.00   26.21   39.32       0    41.00   25.58   38.36       0
     2097152        524288     float     sum      -1    50.00   41.94   62.91       0    51.00   41.12   61.68       0
     4194304       1048576     float     sum      -1    70.00   59.92   89.88       0    71.00   59.07   88.61       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 63.46 
#
# Collective test concluded: all_reduce_perf
#
`

func read(t *testing.T, text string) *Output {
	t.Helper()
	if !Sniff([]byte(text)) {
		t.Error("not recognised")
	}
	o, err := Read("t.txt", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Inventories()[0].Validate(); err != nil {
		t.Error(err)
	}
	return o
}

func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the text", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// times are the out-of-place and in-place times of all rows.
func times(o *Output) string {
	var out []string
	for _, t := range o.Tables {
		for _, r := range t.Rows {
			out = append(out, fmt.Sprintf("%d:%v/%v", r.Bytes, r.OutOfPlace.TimeUS, r.InPlace.TimeUS))
		}
	}
	return strings.Join(out, " ")
}

const wholeTimes = "1048576:40/41 2097152:50/51 4194304:70/71"

func TestWhole(t *testing.T) {
	o := read(t, whole)
	tb := o.Tables[0]
	if tb.Collective != "AllReduce" || tb.Ranks != probe.Some(4) || tb.Nodes != probe.Some(1) || tb.Launch != LaunchPerGPU || tb.NCCL != "2.28.9" || tb.Headers != "2.28.7" ||
		tb.Tests != "2.17.6" || tb.Config.Iters != probe.Some(20) || tb.Config.Warmup != probe.Some(5) || tb.Config.StepFactor != probe.Some(int64(2)) ||
		tb.OutOfBounds != probe.Some(int64(0)) || tb.AvgBusBW != probe.Some(63.46) || len(tb.Inferred) != 0 || !slices.Equal(tb.Hosts(), []string{"gx07"}) {
		t.Errorf("%+v", tb)
	}
	if times(o) != wholeTimes {
		t.Error(times(o))
	}
	inv := o.Inventories()[0]
	want := probe.Sample{
		Run: "t.txt:14", Collective: "AllReduce", Bytes: 2097152, Ranks: probe.Some(4), Nodes: probe.Some(1), Launch: "per-gpu",
		TimeUS: 50, AlgBW: 41.94, BusBW: 62.91, InPlaceUS: probe.Some(51.0),
		Origins: []probe.Origin{{Source: Source, Where: "t.txt:15"}},
	}
	if len(inv.Samples) != 3 || fmt.Sprint(inv.Samples[1]) != fmt.Sprint(want) {
		t.Errorf("%+v", inv.Samples)
	}
	if len(inv.GPUs) != 4 || inv.GPUs[3].Index != probe.Some(3) || inv.GPUs[3].Addr != probe.Some(probe.MustBDF("0000:61:00.0")) || inv.GPUs[3].Name != "NVIDIA TestCard" ||
		inv.Host.Name != "gx07" || inv.Runtime.NCCL != "2.28.9" || len(inv.Gaps) != 0 || len(inv.Events) != 0 {
		t.Errorf("%+v", inv)
	}
}

// The same rows in every shape in which they reach us.
func TestShapes(t *testing.T) {
	tagged := "[1,0]<stdout>:" + strings.ReplaceAll(strings.TrimSuffix(whole, "\n"), "\n", "\n[1,0]<stdout>:") + "\n"
	srun := "0: " + strings.ReplaceAll(strings.TrimSuffix(whole, "\n"), "\n", "\n0: ") + "\n"
	for name, text := range map[string]string{
		"plain":            whole,
		"CRLF":             strings.ReplaceAll(whole, "\n", "\r\n"),
		"MPI tags":         tagged,
		"MPI tags in rows": strings.ReplaceAll(tagged, "      -1  ", "      -1[1,0]<stdout>:  "),
		"srun labels":      srun,
		"quoted":           "> " + strings.ReplaceAll(whole, "\n", "\n> "),
		"no marks":         strings.ReplaceAll(whole, "#", ""),
		"colours":          strings.ReplaceAll(whole, "\n", "\x1b[0m\n"),
		"no final newline": strings.TrimRight(whole[:strings.Index(whole, "# Out of")], "\n"),
		"log in the rows": edit(t, whole, "    50.00   41.94", "gx07:4711:4711 [0] NCCL INFO AllReduce: opCount 0\ngx07:4712:4799 [1] NCCL INFO x 7 8 9\n    50.00   41.94",
			"    51.00   41.12", "\n    51.00   41.12"),
		"log behind the rows": edit(t, whole, "39.32       0    41.00", "39.32       0gx07:4711:4711 [0] NCCL INFO AllReduce: opCount 0\n    41.00"),
		"timestamps":          edit(t, whole, "38.36       0", "38.36       0 2026-03-17 21:04:30", "   busbw  #wrong \n", "   busbw  #wrong            timestamp \n"),
		"-I columns": edit(t, whole, " #wrong     time", " #wrong  i_min  i_max  i_p99   i_cv%     time", " #wrong \n", " #wrong  i_min  i_max  i_p99   i_cv% \n",
			"       0    4", "       0  1.0  2.0  3.0  4.0    4", "       0    5", "       0  1.0  2.0  3.0  4.0    5", "       0    7", "       0  1.0  2.0  3.0  4.0    7",
			"38.36       0", "38.36       0  1.0  2.0  3.0  4.0", "61.68       0", "61.68       0  1.0  2.0  3.0  4.0", "88.61       0", "88.61       0  1.0  2.0  3.0  4.0"),
		"no root column": edit(t, whole, "    root ", " ", "      -1 ", " "),
		"not checked":    edit(t, whole, "       0    ", "     N/A    "),
	} {
		o := read(t, text)
		if len(o.Tables) != 1 || times(o) != wholeTimes || o.Torn != 0 {
			t.Errorf("%s: %d tables, torn %d: %s", name, len(o.Tables), o.Torn, times(o))
			continue
		}
		tb := o.Tables[0]
		if len(tb.Devices) != 4 || tb.Ranks != probe.Some(4) || tb.Program != "all_reduce_perf" || tb.Rows[2].OutOfPlace.BusBW != probe.Some(89.88) || tb.Rows[2].InPlace.AlgBW != probe.Some(59.07) {
			t.Errorf("%s: %+v", name, tb)
		}
		if n := len(o.Inventories()[0].Samples); n != 3 {
			t.Errorf("%s: %d samples, %v", name, n, o.Inventories()[0].Gaps)
		}
	}
}

func TestVersionsBefore(t *testing.T) {
	// 2.11: a float error instead of a count, no root, no group, bus alone.
	o := read(t, `# nThread 4 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 2 iters: 5 validation: 1 
#
# Using devices
#   Rank  0 Pid 1 on gx07 device  0 [0x1b] TestCard
#   Rank  1 Pid 1 on gx07 device  1 [0x43] TestCard
#   Rank  2 Pid 1 on gx07 device  2 [0x52] TestCard
#   Rank  3 Pid 1 on gx07 device  3 [0x61] TestCard
#
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
     1048576        262144     float     sum    40.00   26.21   39.32  2e-07    41.00   25.58   38.36  N/A
`)
	tb := o.Tables[0]
	if tb.Launch != LaunchSingle || tb.Collective != "AllReduce" || !slices.Equal(tb.Inferred, []string{"collective"}) || tb.Rows[0].OutOfPlace.MaxError != probe.Some(2e-07) || tb.Devices[1].Addr.Known() {
		t.Errorf("%+v", tb)
	}
	if inv := o.Inventories()[0]; len(inv.GPUs) != 4 || inv.GPUs[2].Index != probe.Some(2) || len(inv.Samples) != 1 || len(inv.Gaps) != 0 {
		t.Errorf("%+v", inv.Gaps)
	}
}

func TestCollectives(t *testing.T) {
	for _, c := range []struct{ program, op, root, in, want string }{
		{"all_gather_perf_mpi", "none", "-1", "0", "AllGather"},
		{"", "none", "-1", "0", "AllGather"},
		{"", "none", "-1", "N/A", ""},
		{"reduce_scatter_perf", "sum", "-1", "0", "ReduceScatter"},
		{"", "sum", "-1", "0", "ReduceScatter"},
		{"alltoall_perf", "none", "-1", "N/A", "AllToAll"},
		{"", "none", "0", "0", ""},
		{"gather_perf", "none", "0", "0", "Gather"},
	} {
		text := edit(t, whole, "all_reduce_perf", "X_perf", "     sum      -1", fmt.Sprintf("%8s %7s", c.op, c.root), "   39.32", "   19.66", "   62.91", "   31.46", "   89.88", "   44.94",
			"38.36       0", "19.19  "+c.in, "61.68       0", "30.84  "+c.in, "88.61       0", "44.30  "+c.in)
		if c.program == "" {
			text = edit(t, text, "# Collective test starting: X_perf\n", "")
		}
		o := read(t, edit(t, text, "X_perf", c.program))
		if got := o.Tables[0].Collective; got != c.want || len(o.Tables[0].Rows[0].Notes) > 0 {
			t.Errorf("%+v: %s %v", c, got, o.Tables[0].Rows[0].Notes)
		}
	}
	hyper := edit(t, whole, "all_reduce_perf", "hypercube_perf", "     sum      -1", "          -1", "   39.32", "   26.21", "   38.36", "   25.58")
	if o := read(t, hyper); o.Tables[0].Rows[0].Op != "" || len(o.Tables[0].Rows) != 3 || len(o.Tables[0].Rows[0].Notes) > 0 {
		t.Errorf("%+v", o.Tables)
	}
}

// Rows that give no sample, and what is said instead.
func TestGaps(t *testing.T) {
	for _, c := range []struct {
		name, text string
		samples    int
		want       string
	}{
		{"algbw", edit(t, whole, "50.00   41.94", "50.00   14.94"), 2, "a row contradicts itself: out-of-place: 2097152 bytes in 50 us are 41.94 GB/s, not algbw 14.94"},
		{"busbw", edit(t, whole, "62.91", "26.91"), 2, "out-of-place: algbw 41.94 × 1.5 is busbw 62.91, not 26.91 (AllReduce of 4 ranks)"},
		{"no devices", edit(t, whole, "#  Rank ", "#  Rnk "), 3, "the number of hosts is not known"},
		{"device list cut", edit(t, whole, "#  Rank  1 ", "#  Rnk  1 "), 3, "the number of ranks is not known"},
		{"cputime", edit(t, whole, "root     time", "root  cputime"), 0, "the times are those of the launch"},
		{"no test named", edit(t, whole, "# Collective test starting: all_reduce_perf\n", "", "39.32", "26.21", "62.91", "41.94", "89.88", "59.92", "38.36       0", "25.58       N/A", "61.68       0", "41.12       N/A", "88.61       0", "59.07       N/A"), 3, ""},
		{"time not known", edit(t, whole, "    50.00   41.94", "      inf   41.94"), 2, "1 rows have no time"},
		{"torn", edit(t, whole, "    50.00   41.94   62.91       0    51.00   41.12   61.68       0", "    50.00   41.94"), 2, "1 rows lost their end or beginning"},
		{"no rows", whole[:strings.Index(whole, "     1048576")], 0, "the run printed no row"},
		{"devices of CUDA's own", edit(t, whole, "device  3", "device  0"), 3, "CUDA's device numbers are not those of the driver"},
	} {
		inv := read(t, c.text).Inventories()[0]
		found := c.want == "" && len(inv.Gaps) == 0
		for _, g := range inv.Gaps {
			found = found || c.want != "" && strings.Contains(g.Why, c.want)
		}
		if len(inv.Samples) != c.samples || !found {
			t.Errorf("%s: %d samples, gaps %v", c.name, len(inv.Samples), inv.Gaps)
		}
	}
}

func TestEvents(t *testing.T) {
	text := edit(t, whole, "62.91       0", "62.91      17", "values : 0 OK", "values : 1 FAILED") +
		"# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\ngx07: Test NCCL failure common.cu:401 'unhandled cuda error / '\n .. gx07 pid 1: Test failure common.cu:519\n"
	o := read(t, text)
	inv := o.Inventories()[0]
	if len(inv.Events) != 2 || inv.Events[0].Class != "AllReduce" || inv.Events[0].Text != "AllReduce: 17 wrong elements" || inv.Events[0].Kind != "wrong-data" || inv.Events[1].Kind != "test-failure" {
		t.Errorf("%+v", inv.Events)
	}
}

func TestSettings(t *testing.T) {
	log := "gx07:4711:4720 [0] NCCL INFO NCCL_ALGO set by environment to Tree.\ngx07:4712:4720 [1] NCCL INFO NCCL_ALGO set by environment to Tree\ngx07:4712:4720 [1] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_1\n"
	o := read(t, "$ mpirun -np 4 -x NCCL_DEBUG=INFO -x NCCL_PROTO=\"Simple\" ./all_reduce_perf -g 1\n"+
		edit(t, whole, "# Collective test starting: all_reduce_perf\n", "", "     1048576        262144", log+"     1048576        262144")+whole)
	a, b := o.Tables[0], o.Tables[1]
	if len(o.Tables) != 2 || a.Program != "all_reduce_perf" || len(a.Inferred) != 0 || len(b.Settings) != 0 || len(b.Rows) != 3 {
		t.Fatalf("%+v", o.Tables)
	}
	for name, want := range map[string]string{"NCCL_ALGO": "Tree", "NCCL_PROTO": "Simple", "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_0,mlx5_1"} {
		if v, ok := a.Setting(name); !ok || v != want {
			t.Errorf("%s: %q %v in %v", name, v, ok, a.Settings)
		}
	}
}

// A run carries what its samples have in common, and settings only where the
// output shows them.
func TestRuns(t *testing.T) {
	log := "gx07:4711:4720 [0] NCCL INFO NCCL_ALGO set by environment to Tree.\n"
	halves := edit(t, whole, "     4194304       1048576     float", "     4194304       2097152      half")
	invs := read(t, "$ mpirun -x NCCL_PROTO=Simple all_reduce_perf\n"+whole+edit(t, halves, "     1048576        262144", log+"     1048576        262144")).Inventories()
	runs := invs[0].Runs
	var got []string
	for _, r := range runs {
		got = append(got, fmt.Sprint(r.ID, " ", r.DataType, " ", r.Op, " ", r.NCCL, " ", r.Hosts, " ", len(r.Settings.Or(nil)), " ", r.Settings.Known()))
	}
	hosts := " sum 2.28.9 [{gx07 4 [0000:1b:00 0000:43:00 0000:52:00 0000:61:00]}] "
	if want := []string{"t.txt:15 float" + hosts + "0 false", "t.txt:37 float" + hosts + "1 true", "t.txt:39 half" + hosts + "1 true"}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if s := invs[0].Samples; len(s) != 6 || s[4].Run != "t.txt:37" || s[5].Run != "t.txt:39" {
		t.Errorf("%+v", s)
	}
	if x := runs[1].Settings.Or(nil)[0]; x.Name != "NCCL_ALGO" || x.Value != "Tree" || x.Origins[0].Where != "t.txt:36" {
		t.Errorf("%+v", x)
	}
}

func TestGroups(t *testing.T) {
	text := edit(t, whole, "Rank  2 Group  0", "Rank  2 Group  1", "Rank  3 Group  0", "Rank  3 Group  1")
	if tb := read(t, text).Tables[0]; tb.Groups != 2 || tb.Ranks != probe.Some(2) || tb.Nodes != probe.Some(1) || len(tb.Rows[0].Notes) == 0 {
		t.Errorf("%+v", tb)
	}
}

// A program without MPI that a launcher started twice.
func TestOverlap(t *testing.T) {
	one := edit(t, whole, "#  Rank  1 Group  0 Pid   4712 on       gx07 device  1 [0000:43:00] NVIDIA TestCard\n", "", "#  Rank  2 Group  0 Pid   4713 on       gx07 device  2 [0000:52:00] NVIDIA TestCard\n", "",
		"#  Rank  3 Group  0 Pid   4714 on       gx07 device  3 [0000:61:00] NVIDIA TestCard\n", "")
	at := strings.Index(one, "     1048576")
	head, rows := one[:at], strings.SplitAfter(one[at:], "\n")
	o := read(t, head+head+rows[0]+rows[0]+rows[1]+rows[1]+strings.Join(rows[2:], ""))
	if n := len(o.Inventories()[0].Samples); n != 0 || len(o.Tables) != 2 || !o.Tables[0].Overlap || !o.Tables[1].Overlap {
		t.Errorf("%d samples, %+v", n, o.Tables)
	}
}

const document = `{
 "version": 1,
 "start_time": "2026-03-17 21:04:30",
 "args": ["./all_reduce_perf", "-g", "2"],
 "env": ["HOME=\/root", "NCCL_ALGO=Ring", "TOKEN=secret"],
 "nccl_version": 22809,
 "config": {
  "nthreads": 1, "ngpus": 2, "minimum_bytes": 8, "maximum_bytes": 1048576, "step_factor": 2, "warmup_iters": 5, "iterations": 20,
  "blocking_collectives": "false",
  "devices": [ {"rank": 0, "group": 0, "pid": 4711, "hostname": "gx07", "device": 0, "device_hex": "0000:1b:00", "device_info": "NVIDIA TestCard"} ]
 },
 "results": [
  {"size": 0, "count": 0, "type": "float", "redop": "sum", "root": "    -1",
   "out_of_place": {"time": 0.0, "alg_bw": inf, "bus_bw": "nan", "nwrong": 0.0}, "in_place": {"time": 2.0, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": null}},
  {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "    -1",
   "out_of_place": {"time": 40.0, "alg_bw": 26.2144, "bus_bw": 26.2144, "nwrong": 0.0}, "in_place": {"time": 41.0, "alg_bw": 25.575, "bus_bw": 25.575, "nwrong": 3.0}}
 ],
 "out_of_bounds": {"count": 1, "okay": "false"},
 "average_bus_bandwidith": {"bandwidith": 13.1, "okay": "unchecked"},
 "errors": [""]
}
`

func TestJSON(t *testing.T) {
	o := read(t, document)
	tb := o.Tables[0]
	if !o.JSON || o.Cut || tb.Collective != "AllReduce" || tb.Ranks != probe.Some(2) || tb.Nodes != probe.Some(1) || tb.Launch != LaunchSingle || tb.NCCL != "2.28.9" ||
		tb.AvgBusBW != probe.Some(13.1) || len(tb.Rows) != 2 || tb.Rows[1].Line != 15 || tb.Rows[1].InPlace.Wrong != probe.Some(3.0) || tb.Rows[0].OutOfPlace.AlgBW.Known() ||
		len(tb.Settings) != 1 || len(tb.Failures) != 0 {
		t.Errorf("%+v", tb)
	}
	inv := o.Inventories()[0]
	var b bytes.Buffer
	if err := inv.Encode(&b); err != nil || bytes.Contains(b.Bytes(), []byte("secret")) {
		t.Errorf("%v: the environment leaks", err)
	}
	if len(inv.Samples) != 1 || len(inv.Events) != 1 {
		t.Errorf("%+v", inv)
	}
}

// TestJSONCut: a document that was cut anywhere is refused with a place, or says
// only what the whole one says.
func TestJSONCut(t *testing.T) {
	for n := 1; n < len(document)-2; n++ {
		o, err := Read("t.json", strings.NewReader(document[:n]))
		if err != nil {
			continue
		}
		if !o.Cut {
			t.Errorf("%d bytes: not told", n)
		}
		for _, s := range o.Inventories()[0].Samples {
			if s.Bytes != 1048576 || s.TimeUS != 40 {
				t.Errorf("%d bytes: %+v", n, s)
			}
		}
	}
}

// TestCut: text that was cut anywhere gives no figure that the whole does not.
func TestCut(t *testing.T) {
	for n := range whole {
		o, err := Read("t.txt", strings.NewReader(whole[:n]))
		if err != nil {
			continue
		}
		for _, s := range o.Inventories()[0].Samples {
			if s.TimeUS != 40 && s.TimeUS != 50 && s.TimeUS != 70 || s.Ranks != probe.Some(4) {
				t.Errorf("%d bytes: %+v", n, s)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "t.txt: empty: no output of nccl-tests"},
		{"binary", "\x7fELF\x00\x01", "t.txt: binary data"},
		{"other text", "hello\n1 2 three\n", "t.txt: no result row, device list or header of nccl-tests"},
		{"NCCL log", "gx01:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n", "t.txt: no result row"},
		{"columns alone", "size count type algbw busbw time\n", "t.txt: no result row"},
		{"other JSON", "{\n\"a\": 1}", "t.txt: JSON, but not that of nccl-tests"},
		{"bad JSON", "{ \"results\": 7 }", "t.txt:1:15: JSON: results is no list"},
		{"JSON row", edit(t, document, `"size": 0`, `"size": {}`), "t.txt:14:154: JSON: {} is no number"},
		{"inventory", `{"schema": "ncclmap.inventory/v1"}`, "t.txt: JSON, but not that of nccl-tests"},
	} {
		o, err := Read("t.txt", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if err == nil || o != nil || !errors.As(err, &syn) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
	if _, err := Read("t", io.MultiReader(strings.NewReader(whole+strings.Repeat("#\n", 9000)), failing{})); err == nil || !strings.Contains(err.Error(), "t: broken") {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestBounded(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(whole[:strings.Index(whole, "     1048576")])
	for i := range maxRows + 10 {
		fmt.Fprintf(&b, "%12d        262144     float     sum      -1    40.00   26.21   39.32       0    41.00   25.58   38.36       0\n", i)
	}
	b.WriteString("# " + strings.Repeat("x", probe.MaxLine+1) + "\n")
	o := read(t, b.String())
	if len(o.Tables[0].Rows) != maxRows || o.Dropped != 10 || o.CutLong != 1 {
		t.Errorf("%d rows, %d dropped, %d cut", len(o.Tables[0].Rows), o.Dropped, o.CutLong)
	}
}

func TestVersionCodes(t *testing.T) {
	for code, want := range map[string]string{"22807": "2.28.7", "2708": "2.7.8", "21605": "2.16.5", "x": "", "7": ""} {
		if got := versionOf(code); got != want {
			t.Errorf("%s: %s", code, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(document))
	f.Add([]byte("[1,0]<stdout>:  8 2 float sum -1[1,0]<stdout>: 1.0 2.0 3.0 0gx07:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n 1 2 3 N/A\n# Avg bus bandwidth : 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		o, err := Read("f", bytes.NewReader(text))
		if (err == nil) != (o != nil) {
			t.Fatalf("%v with %v", o, err)
		}
		if err != nil {
			return
		}
		if err := o.Inventories()[0].Encode(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	log := strings.Repeat("gx07:4711:4720 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n", 20)
	for name, text := range map[string]string{"tables": strings.Repeat(whole, 100), "log": strings.Repeat(strings.ReplaceAll(whole, "#\n", log), 20), "json": document} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read("b", strings.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	if raw, err := os.ReadFile(shared + "/captures/2xh200-vm/ar-debug-all.txt"); err == nil {
		b.Run("recording", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := Read("b", bytes.NewReader(raw)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
