package flightrec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

const second = int64(1e9)

// start is a time as dumps hold it, 2026-06-19 06:55:57 UTC.
const start = 1781852157 * second

// op is one recorded operation as the JSON form writes it; done 0 = not finished.
type op struct {
	group, name, state string
	seq                int64
	p2p, retired       bool
	created, done      int64 // seconds after start
	timeout            int64 // ms; 0 = ten minutes
}

func (o op) String() string {
	if o.state == "" {
		o.state = "completed"
	}
	if o.timeout == 0 {
		o.timeout = 600_000
	}
	done := int64(0)
	if o.done > 0 {
		done = start + o.done*second
	}
	return fmt.Sprintf(`{"frames": [{"name": "schema", "filename": "train.py", "line": 3}], "record_id": 0, "pg_id": 0, "process_group": ["%s", "desc"],
 "collective_seq_id": %d, "p2p_seq_id": 0, "op_id": 1, "profiling_name": "%s", "time_created_ns": %d, "duration_ms": 1.5,
 "input_sizes": [[4, 5]], "input_dtypes": ["Float"], "output_sizes": [[4, 5]], "output_dtypes": ["Float"], "state": "%s",
 "time_discovered_started_ns": null, "time_discovered_completed_ns": %d, "retired": %v, "timeout_ms": %d, "is_p2p": %v}`,
		o.group, o.seq, o.name, start+o.created*second, o.state, done, o.retired, o.timeout, o.p2p)
}

// dump writes keys in the order of the JSON form: what names the ranks comes last.
func dump(config string, list ...op) string {
	var entries []string
	for _, o := range list {
		entries = append(entries, o.String())
	}
	return fmt.Sprintf(`{"comm_lib_version": "2.27.5", "entries": [%s],
"pg_config": {%s},
"pg_status": {"0": {"last_completed_collective": "9", "last_enqueued_collective": "9", "last_started_collective": "-1"}},
"version": "2.10"}`, strings.Join(entries, ",\n"), config)
}

const world = `"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}`
const grid = world + `, "7": {"name": "7", "desc": "tp", "ranks": [2, 3]}, "9": {"name": "9", "desc": "dp", "ranks": [1, 3]}, "11": {"name": "11", "desc": "idle", "ranks": [0]}`

func read(t testing.TB, text string) probe.Job {
	t.Helper()
	d, err := Read("dump", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	invs := d.Inventories()
	if err := invs[0].Validate(); err != nil || len(invs) != 1 {
		t.Fatalf("%d inventories, %v", len(invs), err)
	}
	return invs[0].Job
}

func TestDump(t *testing.T) {
	j := read(t, dump(world,
		op{group: "0", name: "nccl:broadcast", seq: 1, created: 1, done: 2},
		op{group: "0", name: "nccl:send 2->1", seq: 1, p2p: true, created: 2, state: "scheduled"},
		op{group: "0", name: "nccl:all_reduce", seq: 2, created: 3, done: 4},
		op{group: "0", name: "gloo:all_reduce", seq: 40, created: 3, done: 4},
		op{group: "0", name: "nccl:all_reduce", seq: 3, created: 5, state: "started"},
		op{group: "0", name: "nccl:all_reduce", seq: 4, created: 6, state: "scheduled"},
	))
	want := []probe.Comm{{
		ID: "pg:0/55d4f579", Name: "default_pg", NCCL: "2.27.5", Ranks: 4, Origins: []probe.Origin{{Source: Source, Where: "dump:21"}},
		Members: []probe.Member{{
			Rank: 2, Global: probe.Some(2), NCCL: "2.27.5", At: "2026-06-19 06:56:03.000", Origins: []probe.Origin{{Source: Source, Where: "dump:21"}},
			Progress: []probe.Progress{{Collective: "collectives", Issued: 4, Finished: probe.Some(int64(2)), Since: "2026-06-19 06:56:02.000", At: "2026-06-19 06:56:03.000"}},
		}},
	}}
	want[0].ID = j.Comms[0].ID // see TestGroupsOfOneName
	if diff := cmp.Diff(want, j.Comms, cmp.Comparer(func(a, b probe.Opt[int]) bool { return a == b }), cmp.Comparer(func(a, b probe.Opt[int64]) bool { return a == b }),
		cmp.Comparer(func(a, b probe.Opt[probe.BDF]) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if len(j.Versions) != 1 || j.Versions[0].NCCL != "2.27.5" {
		t.Errorf("%+v", j.Versions)
	}
}

// A dump does not say whose it is; what was used may.
func TestRank(t *testing.T) {
	use := func(groups ...string) []op {
		var out []op
		for _, g := range groups {
			out = append(out, op{group: g, name: "nccl:all_reduce", seq: 1, created: 1, done: 1})
		}
		return out
	}
	for _, c := range []struct {
		name, config string
		list         []op
		want         string // of all groups: rank in the group, of the job
	}{
		{"one group", world, use("0"), "[-1 unknown]"},
		{"groups with one rank in common", grid, use("0", "7", "9"), "[3 3 -1 3 1 3 1 3]"},
		{"groups with two", grid, use("0", "7"), "[-1 unknown -1 unknown -1 unknown -1 unknown]"},
		{"receives", world, []op{{group: "0", name: "nccl:recv 1<-0", p2p: true}}, "[1 1]"},
		{"sends in a small group", grid, []op{{group: "7", name: "nccl:send 0->1", p2p: true}}, "[2 2 -1 2 0 2 -1 2]"},
		{"sends as nobody", world, []op{{group: "0", name: "nccl:send 9->1", p2p: true}}, "[-1 unknown]"},
	} {
		var got []string
		for _, comm := range read(t, dump(c.config, c.list...)).Comms {
			got = append(got, fmt.Sprint(comm.Members[0].Rank, " ", comm.Members[0].Global))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestGroupsOfOneName(t *testing.T) {
	id := func(config string) string { return read(t, dump(config)).Comms[0].ID }
	a, b, c := id(`"5": {"desc": "x", "ranks": "[0, 1]"}`), id(`"5": {"desc": "x", "ranks": [0, 1]}`), id(`"5": {"desc": "x", "ranks": "[2, 3]"}`)
	if a != b || a == c || !strings.HasPrefix(a, "pg:5/") {
		t.Errorf("%s %s %s", a, b, c)
	}
}

// The parts of a coalesced operation are never marked completed themselves.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name  string
		list  []op
		want  string // issued, finished
		state string
	}{
		{"all done", []op{{seq: 1, done: 1}, {seq: 2, done: 2}}, "2 2", ""},
		{"coalesced", []op{{seq: 1, done: 1}, {seq: 2, state: "scheduled"}, {seq: 2, state: "scheduled"}, {seq: 2, name: "nccl:coalesced", done: 3}}, "2 2", ""},
		{"nothing done", []op{{seq: 5, state: "scheduled"}, {seq: 6, state: "scheduled"}}, "6 4", ""},
		{"given up", []op{{seq: 1, done: 1}, {seq: 2, state: "started", retired: true}}, "2 1", probe.RankTimedOut},
		{"longer than its timeout", []op{{seq: 1, done: 1}, {seq: 2, state: "started", timeout: 30_000}, {group: "7", seq: 1, created: 31, done: 32}}, "2 1", probe.RankTimedOut},
		{"within its timeout", []op{{seq: 1, done: 1}, {seq: 2, state: "started", timeout: 30_000}, {group: "7", seq: 1, created: 20, done: 25}}, "2 1", ""},
		{"only send and receive", []op{{name: "nccl:send 0->1", seq: 3, p2p: true}}, "", ""},
	} {
		for i := range c.list {
			if c.list[i].group == "" {
				c.list[i].group = "0"
			}
			if c.list[i].name == "" {
				c.list[i].name = "nccl:all_reduce"
			}
		}
		m := read(t, dump(world, c.list...)).Comms[0].Members[0]
		got := ""
		for _, p := range m.Progress {
			got += fmt.Sprint(p.Issued, " ", p.Finished)
		}
		if got != c.want || m.State != c.state {
			t.Errorf("%s: %q %q, want %q %q", c.name, got, m.State, c.want, c.state)
		}
	}
}

func TestFaults(t *testing.T) {
	whole := dump(world, op{group: "0", name: "nccl:all_reduce", seq: 1})
	for _, c := range []struct{ text, want string }{
		{"\x80\x02}q\x00X\x09\x00\x00\x00pg_config", "dump: a pickled flight recorder dump"},
		{"{}", "dump: JSON, but no dump"},
		{whole[:500], "the document is cut off"},
		{strings.Replace(whole, `"2.10"`, `"3.0"`, 1), `version "3.0"`},
		{strings.Replace(whole, `"[0, 1, 2, 3]"`, `"[0, 1"`, 1), "dump:5:20: unexpected end of JSON input"},
		{strings.Replace(whole, `[0, 1, 2, 3]`, `[0, -1]`, 1), "a rank below 0"},
		{strings.Replace(whole, `"collective_seq_id": 1`, `"collective_seq_id": "x"`, 1), "dump:1:44: collective_seq_id: string does not fit"},
		{strings.Replace(whole, world, "", 1), "does not say which ranks"},
		{whole + "{}", "text after the document"},
	} {
		_, err := Read("dump", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if !errors.As(err, &syn) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if !Sniff([]byte(whole)) || !Sniff([]byte("\x80\x02}q\x00(X\x09\x00\x00\x00pg_configX\x09pg_status")) || Sniff([]byte(`{"pg_config": 1}`)) || Sniff([]byte("pg_config pg_status")) {
		t.Error("recognition")
	}
}

// entries makes a dump of any number of operations as it is read.
type entries struct {
	left int64
	buf  bytes.Buffer
}

func (e *entries) Read(p []byte) (int, error) {
	if e.buf.Len() == 0 {
		if e.left == 0 {
			return 0, io.EOF
		}
		e.left--
		frames := strings.Repeat(fmt.Sprintf(`{"name": "f", "filename": "%01000d", "line": 1}, `, 0), 20) // a deep stack
		o := op{group: "0", name: "nccl:all_reduce", seq: 1 << 40, state: "scheduled"}
		e.buf.WriteString(strings.Replace(o.String(), `"frames": [`, `"frames": [`+frames, 1))
		if e.left > 0 {
			e.buf.WriteByte(',')
		}
	}
	return e.buf.Read(p)
}

// A dump larger than any document that is read whole is a stream.
func TestLong(t *testing.T) {
	n := int64(5_000) // about 100 MB
	text := io.MultiReader(strings.NewReader(`{"entries": [`), &entries{left: n}, strings.NewReader(`], "pg_config": {`+world+`}}`))
	counted := &counter{r: text}
	d, err := Read("long", counted)
	if err != nil || d.Groups[0].Issued != 1<<40 || counted.n < probe.MaxInput {
		t.Errorf("%d bytes, %+v, %v", counted.n, d, err)
	}
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(dump(grid, op{group: "0", name: "nccl:all_reduce", seq: 1}, op{group: "7", name: "nccl:recv 1<-0", p2p: true}, op{group: "9", name: "nccl:x", seq: 2, state: "started"})))
	f.Add([]byte("\x80\x02}"))
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
