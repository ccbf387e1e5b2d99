package ncclras

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// rankJSON is one rank as the service prints it.
func rankJSON(rank, pid, async int, allReduce, allGather int64) string {
	return fmt.Sprintf(`        {
          "rank": %d,
          "host": "10.1.0.%d",
          "pid": %d,
          "cuda_dev": %d,
          "nvml_dev": %d,
          "status": {
            "init_state": 0,
            "async_error": %d,
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": false
          },
          "collective_counts": {
            "AllGather": %d,
            "AllReduce": %d
          }
        }`, rank, 1+rank/8, pid, rank%8, rank%8, async, allGather, allReduce)
}

// answer is a whole answer about one communicator.
func answer(at string, size int, ranks []string, missing string) string {
	return fmt.Sprintf(`{
  "nccl_version": "2.28.9",
  "cuda_runtime_version": 12090,
  "cuda_driver_version": 13000,
  "timestamp": "%s",
  "communicators_count": 1,
  "communicators": [
    {
      "hash": "0x0e94423cfbb2ef4a",
      "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
      "size": %d,
      "ranks_count": %d,
      "missing_ranks_count": %d,
      "ranks": [
%s
      ],
      "missing_ranks": [
%s
      ]
    }
  ],
  "ras": {
    "collection_time_sec": 0.000,
    "timeouts_count": 0
  }
}
`, at, size, len(ranks), size-len(ranks), strings.Join(ranks, ",\n"), missing)
}

// lost is a missing rank, without the comma that NCCL 2.28.9 forgets.
const lost = `        {
          "rank": 1,
          "host": "10.1.0.1",
          "pid": 101,
          "cuda_dev": 0,
          "nvml_dev": 1
          "status": {
            "unresponsive": true,
            "considered_dead": %v
          }
        }`

const at1, at2 = "2026-06-19 06:55:57", "2026-06-19 06:56:57"

func read(t testing.TB, text string) probe.Job {
	t.Helper()
	r, err := Read("ras", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	invs := r.Inventories()
	if err := invs[0].Validate(); err != nil || len(invs) != 1 {
		t.Fatalf("%d inventories, %v", len(invs), err)
	}
	return invs[0].Job
}

// ranks prints members briefly: rank, state, counts.
func ranks(c probe.Comm) []string {
	var out []string
	for _, m := range c.Members {
		s := fmt.Sprintf("%d", m.Rank)
		for _, p := range m.Progress {
			s += fmt.Sprintf(" %s %d", p.Collective, p.Issued)
		}
		if m.State != "" {
			s += " " + m.State
		}
		if m.Error != "" {
			s += ": " + m.Error
		}
		out = append(out, s)
	}
	return out
}

func TestJSON(t *testing.T) {
	text := answer(at1, 4, []string{rankJSON(0, 100, 0, 7, 3), rankJSON(2, 102, 6, 7, 3), rankJSON(3, 103, 0, 7, 2)}, fmt.Sprintf(lost, false))
	j := read(t, text)
	if len(j.Comms) != 1 {
		t.Fatalf("%+v", j.Comms)
	}
	c := j.Comms[0]
	if c.ID != "0xe94423cfbb2ef4a" || c.Ranks != 4 || c.NCCL != "2.28.9" || c.Origins[0].Where != "ras:8" {
		t.Errorf("%+v", c)
	}
	want := []string{"0 AllGather 3 AllReduce 7", "1 missing", "2 AllGather 3 AllReduce 7 error: remote process error (6)", "3 AllGather 2 AllReduce 7"}
	if diff := cmp.Diff(want, ranks(c)); diff != "" {
		t.Error(diff)
	}
	m := c.Members[1]
	if m.Host != "10.1.0.1" || m.PID != probe.Some(101) || m.GPU != probe.Some(1) || m.CUDADev != probe.Some(0) || m.At != at1 || m.Origins[0].Where != "ras:71" {
		t.Errorf("%+v", m)
	}
	if v := j.Versions[0]; v.NCCL != "2.28.9" || v.Driver != probe.Some(13000) || v.CUDA != "" {
		t.Errorf("%+v", v)
	}
}

func TestJSONStates(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"unresponsive": true`, `"unresponsive": false`, probe.RankGone},
		{`"considered_dead": false`, `"considered_dead": true`, probe.RankDead},
		{`"init_state": 0`, `"init_state": 7`, probe.RankInit},
		{`"init_state": 0`, `"init_state": 3`, "error: initialization failed: internal error (3)"},
		{`"async_error": 0`, `"async_error": 7`, ""},
		{`"async_error": 0`, `"async_error": 99`, "error: NCCL error 99"},
		{`"finalize_called": false`, `"finalize_called": true`, probe.RankFinished},
		{`"destroy_flag": false`, `"destroy_flag": true`, probe.RankFinished},
		{`"abort_flag": false`, `"abort_flag": true`, probe.RankAborting},
		{`"10.1.0.1"`, `"unknown"`, ""},
	} {
		text := answer(at1, 2, []string{rankJSON(0, 100, 0, 7, 3)}, fmt.Sprintf(lost, false))
		changed := strings.Replace(text, c.from, c.to, 1)
		comm := read(t, changed).Comms[0]
		if changed == text || !slices.ContainsFunc(ranks(comm), func(s string) bool { return strings.HasSuffix(s, c.want) }) {
			t.Errorf("%s: %q, want %s", c.to, ranks(comm), c.want)
		}
		if c.to == `"unknown"` && comm.Members[0].Host != "" {
			t.Errorf("host %q", comm.Members[0].Host)
		}
	}
}

// Two answers in one file, or in two, are two looks at one communicator.
func TestTwoLooks(t *testing.T) {
	j := read(t, answer(at1, 2, []string{rankJSON(0, 100, 0, 7, 3)}, fmt.Sprintf(lost, false))+answer(at2, 2, []string{rankJSON(0, 100, 0, 8, 3), rankJSON(1, 101, 0, 8, 3)}, ""))
	want := []string{"0 AllGather 3 AllReduce 7 AllGather 3 AllReduce 8", "1 AllGather 3 AllReduce 8"}
	if len(j.Comms) != 1 || !slices.Equal(ranks(j.Comms[0]), want) {
		t.Errorf("%+v", j.Comms)
	}
}

// Of reports without a time only the last of a file says how the job is.
func TestTwoLooksInText(t *testing.T) {
	lost := "\n#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 21\n"
	j := read(t, fmt.Sprintf(head, "INCOMPLETE")+lost+fmt.Sprintf(head, "OK"))
	if len(j.Comms) != 0 || len(j.Versions) != 1 {
		t.Errorf("%+v", j)
	}
}

const head = `NCCL version 2.27.3 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  %s
    1         8         4         1         4        32   RUNNING      OK
`

func TestText(t *testing.T) {
	counts := func(n int64, but map[int]string) []string {
		var out []string
		for r := range 32 {
			s := fmt.Sprintf("%d AllReduce %d", r, n)
			if b, ok := but[r]; ok {
				s = fmt.Sprintf("%d%s", r, b)
			}
			out = append(out, s)
		}
		return out
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing wrong", "", nil},
		{"counts", `
Warnings
========

#0-0 (07a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  29 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
  Rank 3 -- GPU 1 (NVML 3) managed by process 483075 on node 172.16.64.210
  Rank 9 has not launched any operations -- [process information not found]
`, counts(6650, map[int]string{2: " AllReduce 6649", 3: " AllReduce 6649", 9: " AllReduce 0"})},
		{"counts of two large parts", `
#0-0 (07a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  20 ranks have launched up to operation 6650
  12 ranks have launched up to operation 6649
`, nil},
		{"counts up to 2.25", `
  #0-0 (07a079b828ff1a75) MISMATCH
    Communicator ranks have different collective operation counts
    31 ranks have launched up to operation 5
    Rank 9 has launched up to operation 4 -- GPU 1 managed by process 7 on node 172.16.64.211
`, strings.Split(strings.ReplaceAll(strings.Join(counts(5, map[int]string{9: " AllReduce 4"}), "\n"), "AllReduce", "collectives"), "\n")},
		{"status", `
#0-0 (9e17999afaa87dbb) MISMATCH
  Communicator ranks have different status
  29 ranks have status UNKNOWN
  2 ranks have status FINALIZE
  Rank 4 -- GPU 4 managed by process 507289 on node 172.16.64.210
  Rank 20 -- GPU 4 managed by process 3500075 on node 172.16.64.213
  Rank 0 has status RUNNING -- GPU 0 managed by process 507285 on node 172.16.64.210
`, []string{"0", "4 finalized", "20 finalized"}},
		{"a process that does not answer", `
Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data
`, []string{"21 missing"}},
		{"a dead process, rank told with it", `
DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213
`, []string{"21 dead"}},
		{"errors", `
#0-0 (cf264af53edbe986) ERROR
  Asynchronous errors on 3 ranks
  2 ranks reported Remote process error
  Rank 1 -- GPU 1 managed by process 11 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 12 on node 172.16.64.210
  Rank 21 reported Unhandled CUDA error -- GPU 5 managed by process 3487984 on node 172.16.64.213
`, []string{"1 error: remote process error", "2 error: remote process error", "21 error: unhandled cuda error"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := read(t, fmt.Sprintf(head, "OK")+c.text)
			var got []string
			for _, comm := range j.Comms {
				got = append(got, ranks(comm)...)
				if comm.Ranks != 32 || comm.Nodes != probe.Some(4) {
					t.Errorf("%+v", comm)
				}
				for _, m := range comm.Members {
					if m.Rank == 21 && m.State != "" && (m.Host != "172.16.64.213" || m.PID != probe.Some(3487984) || m.CUDADev != probe.Some(5)) {
						t.Errorf("%+v", m)
					}
					if m.Rank == 3 && c.name == "counts" && (m.CUDADev != probe.Some(1) || m.GPU != probe.Some(3)) {
						t.Errorf("%+v", m)
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if v := j.Versions[0]; v.NCCL != "2.27.3" || v.CUDA != "12.9" || v.Driver != probe.Some(13000) {
				t.Errorf("%+v", v)
			}
		})
	}
	r, err := Read("ras", strings.NewReader(fmt.Sprintf(head, "OK")))
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Inventories()[0].Gaps; len(g) != 1 || !strings.Contains(g[0].Why, "9 communicators") {
		t.Errorf("%+v", g)
	}
}

func TestSniff(t *testing.T) {
	whole := answer(at1, 1, []string{rankJSON(0, 100, 0, 7, 3)}, "")
	for _, s := range []string{whole, "\xef\xbb\xbf" + whole, fmt.Sprintf(head, "OK")} {
		if !Sniff([]byte(s)) {
			t.Errorf("not recognised: %.40q", s)
		}
		if _, err := Read("ras", strings.NewReader(s)); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{"", "{}", `{"communicators": 1}`, "Communicators..."} {
		if Sniff([]byte(s)) {
			t.Errorf("recognised: %q", s)
		}
	}
}

func TestFaults(t *testing.T) {
	whole := answer(at1, 2, []string{rankJSON(0, 100, 0, 7, 3)}, "")
	for _, c := range []struct{ text, want string }{
		{"{}", "ras: JSON, but not that of ncclras"},
		{"words\n", "ras: no report of ncclras"},
		{whole[:700], "the document is cut off"},
		{strings.Replace(whole, `"rank": 0`, `"rank": 2`, 1), "rank 2 on line 15, in a communicator of 2"},
		{strings.Replace(whole, `"rank": 0,`, ``, 1), "ras:15:9: an entry of ranks without a rank"},
		{strings.Replace(whole, `"size": 2`, `"size": 0`, 1), "0 ranks"},
		{strings.Replace(whole, `"size": 2`, `"size": "2"`, 1), "ras:11:15: : string does not fit"},
		{strings.Replace(whole, "0x0e9", "0xq", 1), `ras:9:15: hash "0xq`},
		{strings.Replace(whole, at1, "yesterday", 1), `ras:5:16: timestamp "yesterday"`},
		{fmt.Sprintf(head, "OK") + "#7-0 (cf264af53edbe986) ERROR\n", "ras:18: communicator 0xcf264af53edbe986 is of group 7"},
		{fmt.Sprintf(head, "OK") + "#0-0 (cf264af53edbe986) ERROR\n  Rank 32 reported System error -- [process information not found]\n", "ras:19: a rank that communicator"},
	} {
		_, err := Read("ras", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if !errors.As(err, &syn) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		answer(at1, 2, []string{rankJSON(0, 100, 0, 7, 3)}, fmt.Sprintf(lost, true)), fmt.Sprintf(head, "OK"),
		fmt.Sprintf(head, "ERROR") + "#0-0 (1f) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  31 ranks have launched up to operation 2\n  Rank 3 has launched up to operation 1 -- [process information not found]\n",
		fmt.Sprintf(head, "INCOMPLETE") + "DEAD\n  Process 1 on node a managing GPU 5\n\n#0-0 (1f) INCOMPLETE\n  The missing ranks: 1, 2\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		r, err := Read("f", bytes.NewReader(text))
		if (err == nil) != (r != nil) {
			t.Fatalf("%v with %v", r, err)
		}
		if err != nil {
			return
		}
		for _, inv := range r.Inventories() {
			if err := inv.Encode(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
	})
}
