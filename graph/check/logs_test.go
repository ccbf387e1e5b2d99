package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/nccllog"
)

// logCase is an NCCL log, with hosts that other sources show, and what a rule must
// say about it.
type logCase struct {
	name  string
	log   []string // see logText
	hosts []*host
	want  []string // "critical sure host:a …" per finding of the rule
	says  []string
	gap   string
}

// logText writes lines "a0 text" as rank 0 of host a prints them, and "a1!file:1 text"
// as a warning. What begins with a blank is left as it is.
func logText(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		who, text, _ := strings.Cut(l, " ")
		if who == "" {
			fmt.Fprintln(&b, text)
			continue
		}
		host, dev := who[:1], who[1:2]
		at := fmt.Sprintf("%s:10%s:20%s [%s] ", host, dev, dev, dev)
		if _, site, warn := strings.Cut(who, "!"); warn {
			fmt.Fprintf(&b, "%s%s NCCL WARN %s\n", at, site, text)
			continue
		}
		fmt.Fprintf(&b, "%sNCCL INFO %s\n", at, text)
	}
	return b.String()
}

// comm is a communicator over hosts, with ranks on each, whose initialisation ended
// so: "START" is begun only, "COMPLETE", "Destroy".
func comm(hosts string, perHost int, end string) []string {
	var out []string
	for _, step := range []string{"Init START", "Init COMPLETE", "Destroy COMPLETE"} {
		for i := range len(hosts) * perHost {
			dev := i % perHost
			out = append(out, fmt.Sprintf("%c%d comm 0x55%d rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0xabc - %s",
				hosts[i/perHost], dev, i, i, len(hosts)*perHost, dev, dev, 0x1b000+dev<<12, step))
		}
		if strings.Contains(step, end) {
			break
		}
	}
	return out
}

func lines(parts ...[]string) []string { return slices.Concat(parts...) }

func (h *host) named(name string) *host {
	h.inv.Host.Name = name
	return h
}

// noGPUs leaves the GPUs to the log, whose addresses are others.
func noGPUs(h *host) { h.inv.GPUs = nil }

func testLog(t *testing.T, id string, cases []logCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, err := nccllog.Read("job.log", strings.NewReader(logText(c.log)))
			if err != nil {
				t.Fatal(err)
			}
			if l.Torn > 0 {
				t.Fatalf("%d torn lines", l.Torn)
			}
			var parts []probe.Part
			for _, inv := range l.Inventories() {
				parts = append(parts, probe.Part{Inv: inv, File: "job.log"})
			}
			for _, h := range c.hosts {
				parts = append(parts, probe.Part{Inv: &h.inv, File: h.inv.Host.Name})
			}
			cluster, err := probe.Join(parts)
			if err != nil {
				t.Fatal(err)
			}
			res, err := RunCluster(cluster, All())
			if err != nil {
				t.Fatal(err)
			}
			complete(t, res)
			var got []string
			var texts string
			for _, f := range res.Findings {
				if f.Rule == id {
					got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Certainty, strings.Join(f.Subjects, " ")))
					texts += f.Expected + "\n" + f.Observed + "\n" + f.Fix + "\n"
					for _, e := range f.Evidence {
						texts += e.String() + "\n"
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			for _, s := range c.says {
				if !strings.Contains(texts, s) {
					t.Errorf("%q is not said in\n%s", s, texts)
				}
			}
			var gaps []string
			for _, g := range res.Gaps {
				if g.Rule == id {
					gaps = append(gaps, g.Reason)
				}
			}
			switch {
			case c.gap == "" && len(gaps) > 0:
				t.Errorf("gaps %q, want none", gaps)
			case c.gap != "" && !slices.ContainsFunc(gaps, func(g string) bool { return strings.Contains(g, c.gap) }):
				t.Errorf("gaps %q, want %q", gaps, c.gap)
			}
		})
	}
}

// Each text of the table is of a rule that there is, and the first that it matches.
func TestMessages(t *testing.T) {
	for text, want := range map[string]string{
		"Topology detection : could not read /sys/devices/pci0000:03/0000:03:01.0/../max_link_speed, ignoring":     "pcie-speed-unreadable",
		"KV Convert to int : could not find value of '' in dictionary, falling back to 60":                         "pcie-speed-unreadable",
		"KV Convert to int : could not find value of '64.0 GT/s' in dictionary, falling back to 60":                "",
		"P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case":                       "nvlink-p2p-disabled",
		"P2P is disabled between connected GPUs 1 and 0. You can repress this message":                             "",
		"Cuda failure 800 'operation not permitted'":                                                               "imex-missing",
		"Cuda failure 'operation not permitted'":                                                                   "imex-missing",
		"MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration":           "imex-missing",
		"NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.":                               "log-plugin-missing",
		"NET/Plugin : No plugin found (libnccl-net.so), using internal implementation":                             "log-plugin-missing",
		"TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.":                             "",
		"Bootstrap : no socket interface found":                                                                    "log-interface-unroutable",
		"Call to ibv_reg_dmabuf_mr failed with error Operation not supported":                                      "log-dmabuf-failed",
		"Call to ibv_modify_qp failed with error Connection timed out":                                             "log-qp-failed",
		"NET/IB : Got completion from peer 10.0.0.1<45> with error 12, opcode 0, len 0, vendor err 129":            "log-qp-failed",
		"NET/IB: Got completion from peer 10.0.0.1<45> with status=12 opcode=0 len=0 vendor err 129 (Send)":        "log-qp-failed",
		"NET/IB: Got completion from peer 10.0.0.1<45> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)": "log-qp-failed",
		"NET/IB : Got completion from peer 10.0.0.1<45> with error 5, opcode 0, len 0, vendor err 244":             "log-qp-failed (echo)",
		"NET/IB : Got completion from peer 10.0.0.1<45> with error 4, opcode 0, len 0, vendor err 81":              "",
		"NET/IB : Got async event : port error":                                                                    "log-port-error",
		"NET/IB : mlx5_0:1 async fatal event: local catastrophic error":                                            "log-port-error",
		"NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)":                                              "log-port-error",
		"NET/IB : mlx5_0:1 Got non-fatal async event: client reregistration(17)":                                   "",
		"Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000":                                     "log-duplicate-gpu",
		"Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1":                        "log-duplicate-gpu",
		"Could not find a path for pattern 4, falling back to simple order":                                        "log-search-failed",
		"Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1":                       "log-nvls-failed",
		"Cuda failure 401 'the operation cannot be performed in the present state'":                                "log-nvls-failed",
		"Mismatched NCCL version detected : rank 0 version 22005 rank 1 version 21903":                             "log-version-mixed",
		"No algorithm/protocol available for function Broadcast with datatype ncclFloat32.":                        "log-algo-unavailable",
		"Error : no algorithm/protocol available":                                                                  "",
		"Call to posix_fallocate failed: No space left on device":                                                  "shm-too-small",
		"Error: failed to extend /dev/shm/nccl-Ab12Cd to 9637892 bytes":                                            "shm-too-small",
		"Error while creating shared memory segment nccl-shm-recv-1 (size 9637888)":                                "shm-too-small (echo)",
		"Call to ibv_reg_mr failed with error Cannot allocate memory":                                              "memlock-low",
		"Call to ibv_reg_mr failed with error Bad address":                                                         "",
		"Call to ibv_create_qp failed":                                                                             "memlock-low",
		"Call to ibv_open_device failed":                                                                           "verbs-missing",
		"NET/IB : Unable to open device mlx5_0":                                                                    "verbs-missing",
		"Failed to open libibverbs.so[.1]":                                                                         "verbs-missing",
		"socketProgress: Connection closed by remote peer 10.0.0.1<45>":                                            "",
	} {
		got := ""
		if m := messageOf(probe.Event{Kind: probe.EventWarning, Text: text}); m != nil {
			if got = m.rule; m.echo {
				got += " (echo)"
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if m := messageOf(probe.Event{Kind: probe.EventWarning, Site: "transport/nvls.cc:165", Text: "Cuda failure 'invalid argument'"}); m == nil || m.rule != "log-nvls-failed" {
		t.Errorf("%+v", m)
	}
	if m := messageOf(probe.Event{Kind: probe.EventXid, Text: "Failed to open libibverbs.so"}); m != nil {
		t.Error("an Xid is taken for a line of NCCL")
	}
	for _, m := range messages {
		if r, ok := Find(m.rule); !ok || r.Across == nil {
			t.Errorf("%s judges no jobs", m.rule)
		}
	}
}

// An event that a rule judged is no gap, judged well or not.
func TestUnjudgedEvents(t *testing.T) {
	const reason = "events in logs are read"
	testLog(t, InventoryGaps, []logCase{
		{name: "judged", log: []string{"a0!misc/ibvwrap.cc:1 Call to ibv_create_qp failed"}},
		{name: "not judged", log: []string{"a0!misc/socket.cc:1 socketProgress: Connection closed by remote peer b<1>"}, gap: reason},
		{name: "notes are none", log: []string{"a0 NET/Plugin: Could not find: libnccl-net.so"}},
	})
}

func TestSettingInt(t *testing.T) {
	for v, want := range map[string]int64{"1": 1, "0x10": 16, " 2": 2, "8M": 8, "true": 0, "": 0, "-1": -1, "0": 0} {
		if got := settingInt(v); got != want {
			t.Errorf("%q: %d, want %d", v, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	member := func(rank int, host string) probe.Member { return probe.Member{Rank: rank, Host: host} }
	for name, c := range map[string]struct {
		comm probe.Comm
		want spread
	}{
		"two hosts":                           {probe.Comm{Ranks: 8, Members: []probe.Member{member(0, "a"), member(1, "b")}}, manyHosts},
		"all ranks on one":                    {probe.Comm{Ranks: 2, Members: []probe.Member{member(0, "a"), member(1, "a")}}, oneHost},
		"one host that NCCL counts as two":    {probe.Comm{Ranks: 2, Nodes: probe.Some(2), Members: []probe.Member{member(0, "a"), member(1, "a")}}, oneHost},
		"half of the ranks, two nodes":        {probe.Comm{Ranks: 4, Nodes: probe.Some(2), Members: []probe.Member{member(0, "a"), member(1, "a")}}, manyHosts},
		"half of the ranks, one node":         {probe.Comm{Ranks: 4, Nodes: probe.Some(1), Members: []probe.Member{member(0, "a")}}, oneHost},
		"half of the ranks, nodes not known":  {probe.Comm{Ranks: 4, Members: []probe.Member{member(0, "a")}}, spreadUnknown},
		"size not known, as in old logs":      {probe.Comm{Members: []probe.Member{member(0, "a")}}, spreadUnknown},
		"size not known, two hosts have rank": {probe.Comm{Members: []probe.Member{member(0, "a"), member(1, "b")}}, manyHosts},
	} {
		if got := spreadOf(&c.comm); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestRangeText(t *testing.T) {
	for want, list := range map[string][]int{"": nil, "3": {3}, "0-7, 12": {0, 1, 2, 3, 4, 5, 6, 7, 12}, "0, 4": {0, 4}} {
		if got := rangeText(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}
