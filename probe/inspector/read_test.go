package inspector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	head = `"header":{"id":"0x0d56c683b0c4ef","comm_name":"unknown","rank":1,"n_ranks":4,"nnodes":2}`
	meta = `"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1772585717263338,"hostname":"gx07","pid":48}`
)

// coll is a record of a collective; its bandwidth follows from the total size.
func coll(name string, size, total int64, us int) string {
	return fmt.Sprintf(`{%s,%s,"coll_perf":%s}`, head, meta, perf(name, size, total, us, ""))
}

func perf(name string, size, total int64, us int, more string) string {
	bw := 0.0
	if us > 0 {
		bw = float64(total) / float64(us) / 1e3
	}
	return fmt.Sprintf(`{"coll":"%s",%s"coll_sn":8995,"coll_msg_size_bytes":%d,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%f,"coll_busbw_gbs":1.5}`,
		name, more, size, us, bw)
}

func read(t testing.TB, lines ...string) (*Dump, *probe.Inventory) {
	t.Helper()
	d, err := Read("gx07-pid48.log", strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	invs := d.Inventories()
	if err := invs[0].Validate(); err != nil || len(invs) != 1 {
		t.Fatalf("%d inventories, %v", len(invs), err)
	}
	return d, invs[0]
}

func brief(inv *probe.Inventory) []string {
	var out []string
	for _, s := range inv.Samples {
		out = append(out, fmt.Sprintf("%s %d of %d/%d %s/%s %s: %d × %g µs, ≥ %g, %.3f %.3f %s", s.Collective, s.Bytes, s.Ranks.Or(0), s.Nodes.Or(0), s.Algorithm, s.Protocol, s.Channels,
			s.Count, s.TimeUS, s.MinUS, s.AlgBW, s.BusBW, s.Origins[0].Where))
	}
	return out
}

func TestSamples(t *testing.T) {
	traced := fmt.Sprintf(`{%s,%s,"coll_perf":%s}`, head, strings.Replace(meta, "v4.0", "v4.2", 1),
		strings.TrimSuffix(perf("AllReduce", 1<<20, 1<<20, 100, `"coll_algo":"Ring","coll_proto":"LL128",`), "}")+
			`,"event_trace_sn":{"coll_start_sn":1,"kernel_events":[{"channel_id":0},{"channel_id":1}]},"event_trace_ts":{}}`)
	for _, c := range []struct {
		name  string
		lines []string
		want  []string
		gap   string
	}{
		{"median of an odd number", []string{coll("AllReduce", 1<<20, 1<<20, 300), coll("AllReduce", 1<<20, 1<<20, 100), coll("AllReduce", 1<<20, 1<<20, 110)},
			[]string{"AllReduce 1048576 of 4/2 / unknown: 3 × 110 µs, ≥ 100, 9.533 14.299 gx07-pid48.log:1"}, ""},
		{"median of an even number", []string{coll("AllReduce", 1<<20, 1<<20, 100), coll("AllReduce", 1<<20, 1<<20, 110)},
			[]string{"AllReduce 1048576 of 4/2 / unknown: 2 × 105 µs, ≥ 100, 9.986 14.980 gx07-pid48.log:1"}, ""},
		{"sizes of one rank", []string{coll("AllGather", 1<<20, 4<<20, 100), coll("ReduceScatter", 1<<20, 4<<20, 100), coll("Broadcast", 1<<20, 1<<20, 100)},
			[]string{"AllGather 4194304 of 4/2 / unknown: 1 × 100 µs, ≥ 100, 41.943 31.457 gx07-pid48.log:1",
				"Broadcast 1048576 of 4/2 / unknown: 1 × 100 µs, ≥ 100, 10.486 10.486 gx07-pid48.log:3",
				"ReduceScatter 4194304 of 4/2 / unknown: 1 × 100 µs, ≥ 100, 41.943 31.457 gx07-pid48.log:2"}, ""},
		{"a size that is not that of one rank", []string{coll("AllGather", 4<<20, 4<<20, 100)}, nil, "bandwidth does not follow from their size and time: 1"},
		{"algorithm, protocol, channels", []string{traced}, []string{"AllReduce 1048576 of 4/2 Ring/LL128 2: 1 × 100 µs, ≥ 100, 10.486 15.729 gx07-pid48.log:1"}, ""},
		{"not known", []string{coll("AlltoAll", 1, 1, 1), coll("AlltoAll", 1, 1, 1)}, nil, "records of AlltoAll, of which it is not known whether their size is that of one rank: 2"},
		{"too short", []string{coll("AllReduce", 8, 8, 0)}, nil, "less than a microsecond, in which the plugin counts: 1"},
		{"timed around the launch", []string{strings.Replace(coll("AllReduce", 8192, 8192, 10), "kernel_gpu", "collective_cpu", 1)}, nil, "timed by the CPU"},
		{"send", []string{fmt.Sprintf(`{%s,%s,"p2p_perf":{"p2p":"Send","p2p_sn":1,"p2p_peer":2}}`, head, meta)}, nil, "point-to-point operations, which give no sample: 1"},
		{"cut lines", []string{coll("AllReduce", 1<<20, 1<<20, 100), coll("AllReduce", 1<<20, 1<<20, 100)[:200], `{"coll_perf":` + perf("AllReduce", 1, 1, 1, "") + `}`},
			[]string{"AllReduce 1048576 of 4/2 / unknown: 1 × 100 µs, ≥ 100, 10.486 15.729 gx07-pid48.log:1"}, "lack their header (the first stands here): 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, inv := read(t, c.lines...)
			if got := brief(inv); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if gaps := fmt.Sprint(inv.Gaps); (c.gap == "") != (len(inv.Gaps) == 0) || !strings.Contains(gaps, c.gap) {
				t.Errorf("gaps %s, want %q", gaps, c.gap)
			}
			if m := inv.Comms[0]; m.ID != "0xd56c683b0c4ef" || m.Name != "" || m.Ranks != 4 || m.Nodes != probe.Some(2) || len(m.Members) != 1 ||
				m.Members[0].Rank != 1 || m.Members[0].Host != "gx07" || m.Members[0].PID != probe.Some(48) {
				t.Errorf("%+v", m)
			}
		})
	}
}

// From v4.3 on a dump has one header, which says how many records it is for.
func TestHeaderAbove(t *testing.T) {
	above := fmt.Sprintf(`{%s,%s,"dump_stats":{"coll_records":2,"coll_dropped_total":9,"coll_dropped_since_last_dump":9,"p2p_records":1}}`, head, strings.Replace(meta, "v4.0", "v4.3", 1))
	one := `{"coll_perf":` + perf("AllReduce", 1<<20, 1<<20, 100, "") + `}`
	for _, c := range []struct {
		lines            []string
		used, torn, lost int64
	}{
		{[]string{above, one, one, `{"p2p_perf":{}}`}, 2, 0, 9},
		{[]string{above, one, one, one}, 2, 1, 9},
		{[]string{above, one, above[:50], one}, 1, 2, 9},
		{[]string{above, one, above, one, one}, 3, 0, 18},
	} {
		d, inv := read(t, c.lines...)
		if d.Records != c.used || d.Torn != c.torn {
			t.Errorf("%d used, %d torn, want %d, %d", d.Records, d.Torn, c.used, c.torn)
		}
		if !strings.Contains(fmt.Sprint(inv.Gaps), fmt.Sprintf("before it wrote them: %d", c.lost)) {
			t.Errorf("%+v", inv.Gaps)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":          "f: no record of the Inspector",
		"\n{}\n[1]": "f:2: no record of the Inspector",
		`nccl_bus_bandwidth_gbs{version="v5.1",collective="AllReduce",message_size="512-513MB"} 380` + "\n": "f: the Inspector's Prometheus file",
	} {
		_, err := Read("f", strings.NewReader(text))
		var syn *probe.SyntaxError
		if !errors.As(err, &syn) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if !Sniff([]byte(coll("AllReduce", 8, 8, 1))) || !Sniff([]byte(`nccl_p2p_bus_bandwidth_gbs{`)) || Sniff([]byte("{}")) || Sniff(nil) {
		t.Error("recognition")
	}
}

func TestRounded(t *testing.T) {
	for _, us := range []float64{1, 4095, 4096, 5001.5, 1e9} {
		if r := rounded(us); math.Abs(r-us) > us/8192 || us < 4096 && r != us {
			t.Errorf("%g is kept as %g", us, r)
		}
	}
}

// job is a file of any length, as a long job writes it.
type job struct {
	left, n int
	buf     bytes.Buffer
}

func (j *job) Read(p []byte) (int, error) {
	for j.buf.Len() < len(p) && j.left > 0 {
		j.left--
		j.n++
		j.buf.WriteString(coll([]string{"AllReduce", "AllReduce", "Broadcast"}[j.n%3], int64(j.n%50)<<16, int64(j.n%50)<<16, 100+j.n*7919%100_000))
		j.buf.WriteByte('\n')
	}
	return j.buf.Read(p)
}

// Memory does not grow with the length of the file.
func TestLong(t *testing.T) {
	run := func(lines int) (*Dump, uint64) {
		d, err := Read("long", &job{left: lines})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return d, m.HeapAlloc
	}
	_, short := run(20_000)
	d, long := run(100_000)
	if d.Records == 0 || d.Dropped > 0 || len(d.Points) != 100 {
		t.Errorf("%d records in %d points, %d dropped", d.Records, len(d.Points), d.Dropped)
	}
	if long > short+8<<20 {
		t.Errorf("%d MB after a short file, %d after one of five times the length", short>>20, long>>20)
	}
}

func BenchmarkRead(b *testing.B) {
	text, err := io.ReadAll(&job{left: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Read("b", bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(coll("AllGather", 1<<20, 4<<20, 100) + "\n" + coll("AllReduce", 1<<20, 1<<20, 90)))
	f.Add([]byte(fmt.Sprintf(`{%s,%s,"dump_stats":{"coll_records":1}}`, head, meta) + "\n{\"coll_perf\":" + perf("AllReduce", 1<<20, 1<<20, 100, "") + "}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		d, err := Read("f", bytes.NewReader(text))
		if (err == nil) != (d != nil) {
			t.Fatalf("%v with %v", d, err)
		}
		if err != nil {
			return
		}
		for _, inv := range d.Inventories() {
			if err := inv.Encode(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
	})
}
