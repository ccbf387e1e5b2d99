package check_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
)

func run(names ...string) (check.Result, error) {
	c, _, err := open.Read(names, nil)
	if err != nil {
		return check.Result{}, err
	}
	return check.RunCluster(c, check.All())
}

// runMeasured joins sources with test output as the commands do.
func runMeasured(names, measured []string) (check.Result, error) {
	c, _, err := open.Read(names, nil)
	if err != nil || len(measured) == 0 {
		return run(names...)
	}
	var runs []*probe.Cluster
	for _, file := range measured {
		r, _, err := open.Read([]string{file}, nil)
		if err != nil {
			return check.Result{}, err
		}
		runs = append(runs, r)
	}
	both, err := probe.JoinMeasured(c, runs...)
	if err != nil {
		return check.Result{}, err
	}
	return check.RunMeasured(both, check.All())
}

// Test output that people published or we recorded: the faulty ones are named, of
// the others nothing worse than that a run is too small.
func TestMeasuredCorpus(t *testing.T) {
	want := map[string]string{
		"tests256-h200-vm-2node.txt": "warning measured-drops collective:AllReduce file:tests256-h200-vm-2node.txt",
		"xxrjun-cluster00-pairwise-summary.csv": "critical measured-pair-slow host:cnode2-001 host:cnode2-002 host:cnode2-004 host:cnode2-005 host:cnode2-006 host:cnode2-009 host:cnode2-010 host:cnode2-011 " +
			"host:cnode2-012 host:cnode2-013 host:cnode2-015 host:cnode2-016 host:cnode2-017; critical measured-pair-slow host:cnode2-003",
		"xxrjun-pair-failed-001-003-G4.log": "warning measured-drops collective:SendRecv file:xxrjun-pair-failed-001-003-G4.log",
	}
	for _, pattern := range []string{"corpus/nccl-tests/*", "captures/2xh200-vm/ar-*", "captures/2xh200-vm/*[lrt].txt"} {
		files, _ := filepath.Glob(filepath.Join("../../../shared", pattern))
		if len(files) == 0 {
			t.Skipf("no %s", pattern)
		}
		for _, file := range files {
			res, err := run(file)
			if err != nil {
				t.Log(err)
				continue
			}
			var got []string
			for _, f := range res.Findings {
				if strings.HasPrefix(f.Rule, "measured-") && f.Severity > check.Info {
					got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, strings.Join(f.Subjects, " ")))
				}
			}
			if strings.Join(got, "; ") != want[filepath.Base(file)] {
				t.Errorf("%s: %q, want %q", file, got, want[filepath.Base(file)])
			}
		}
	}
}

// The machines that ship with the program.
func TestMachines(t *testing.T) {
	for name, want := range map[string][]string{
		"h100x8":             {},
		"h100x8-nvlink-down": {"critical nvlink-down gpu:0000:61:00.0"},
		"2xh200-vm":          {"info numa-unknown gpu:0000:00:06.0 gpu:0000:00:07.0", "info vm-flat-pci host:"},
	} {
		res, err := run(open.ExamplePrefix + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := []string{}
		for _, f := range res.Findings {
			got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Rule, strings.Join(f.Subjects, " ")))
		}
		same := slices.EqualFunc(got, want, func(g, w string) bool { return g == w || strings.HasSuffix(w, "host:") && strings.HasPrefix(g, w) })
		if !same {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if name == "h100x8" && res.NotChecked() != "" {
			t.Errorf("%s: %s", name, res.NotChecked())
		}
	}
}

// What the fixes of GB10's file say must be possible on that machine.
func TestGB10File(t *testing.T) {
	const file = "../../../shared/corpus/topo-xml/gb10-spark-simplified.xml"
	if _, err := os.Stat(file); err != nil {
		t.Skip(err)
	}
	res, err := run(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range res.Findings {
		got = append(got, f.Rule)
		for _, bad := range []string{"--", " slot", "numa:"} {
			if strings.Contains(f.Fix, bad) {
				t.Errorf("%s: %q in %s", f.Rule, bad, f.Fix)
			}
		}
	}
	if want := []string{"topo-invalid", "pcie-path-bottleneck", "pcie-path-bottleneck"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, g := range res.Gaps {
		if strings.Contains(g.Reason, "-1") {
			t.Errorf("%s: the file does not say -1: %s", g.Rule, g.Reason)
		}
	}
}

// The public cases whose inputs can be read and whose answers concern these
// rules.
func TestCases(t *testing.T) {
	const root = "../../../shared/cases"
	files, _ := filepath.Glob(filepath.Join(root, "*", "case.json"))
	if len(files) == 0 {
		t.Skipf("no cases in %s", root)
	}
	ours := map[string]bool{}
	for _, r := range check.All() {
		ours[r.ID] = true
	}
	for _, file := range files {
		var c struct {
			Command string
			Args    []string
			Inputs  []string
			Must    []struct {
				Rule  string
				Regex string `json:"subject_regex"`
			}
			MustNot []string `json:"must_not"`
			Max     string   `json:"max_severity"`
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Command == "compare" {
			continue // runs the rules about measurements only
		}
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var inputs []string
			for _, in := range c.Inputs {
				name := filepath.Join(dir, in)
				if _, _, err := open.Read([]string{name}, nil); err != nil {
					t.Logf("without %v", err)
					continue
				}
				inputs = append(inputs, name)
			}
			if len(inputs) == 0 {
				t.Skip("none of its inputs can be read")
			}
			var measured []string
			for i, a := range c.Args {
				if i > 0 && c.Args[i-1] == "--measured" {
					measured = append(measured, filepath.Join(dir, a))
				}
			}
			res, err := runMeasured(inputs, measured)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range res.Findings {
				t.Logf("%s %s %s %v: %s; expected %s", f.Severity, f.Certainty, f.Rule, f.Subjects, f.Observed, f.Expected)
				for _, glob := range c.MustNot {
					if bad, _ := path.Match(glob, f.Rule); bad {
						t.Errorf("%s must not be reported", f.Rule)
					}
				}
				if limit, err := check.ParseSeverity(c.Max); err == nil && f.Severity > limit {
					t.Errorf("%s is worse than %s", f.Rule, limit)
				}
			}
			if len(inputs) < len(c.Inputs) || len(c.Args) > 0 { // facts in other files
				return
			}
			for _, m := range c.Must {
				if !slices.ContainsFunc(strings.Split(m.Rule, "|"), func(id string) bool { return ours[id] }) {
					continue
				}
				subject := regexp.MustCompile(m.Regex)
				if !slices.ContainsFunc(res.Findings, func(f check.Finding) bool {
					return slices.Contains(strings.Split(m.Rule, "|"), f.Rule) && subject.MatchString(strings.Join(f.Subjects, " "))
				}) {
					t.Errorf("missing %s of /%s/", m.Rule, m.Regex)
				}
			}
		})
	}
}

// The public logs: what is wrong with each by its report, and nothing else. Findings
// are "rule subjects"; only those about the job count.
func TestLogs(t *testing.T) {
	const shared = "../../../shared/"
	ofJobs := regexp.MustCompile(`^(log|gdr|env|nccl|shm|memlock|verbs|imex|fabric|nvlink-p2p|hca-link|pcie-speed-un|pcie-path)`)
	for file, want := range map[string][]string{
		"corpus/logs/keitaw-p5-2node-v2.20.3-1.log":                                                      nil,
		"corpus/logs/keitaw-p5-2node-v2.22.3-1.log":                                                      nil,
		"corpus/logs/panlichen-4node-32x3090-algo-time.log":                                              nil,
		"corpus/logs/snip-1769-gb200-mnnvl-healthmask.log":                                               nil,
		"corpus/logs/snip-342-shm-64MB.log":                                                              {"shm-too-small host:localhost"},
		"corpus/logs/snip-529-ip6tnl0.log":                                                               nil, // one host of a job of unknown size: a gap
		"corpus/logs/snip-2329-nvlink-p2p-disabled.log":                                                  {"nvlink-p2p-disabled gpu:0 gpu:1"},
		"corpus/logs/snip-897-gdr-one-side.log":                                                          {"gdr-one-sided rank:2"},
		"corpus/logs/snip-horovod584-lo-first.log":                                                       {"log-interface-unroutable paigcr-b-gpu-1012/net:lo paigcr-b-gpu-1012/net:eth1"},
		"corpus/logs/snip-tests182-vm-speed-unreadable.log":                                              {"pcie-speed-unreadable pci:0000:03:01.0"},
		"corpus/logs/thomaslie-A100PCIe-HDR-GDR-on.txt":                                                  nil,
		"corpus/logs/thomaslie-Internal_n013_GDR_On_Big.txt":                                             nil,
		"corpus/logs/thomaslie-SmartIO-P2P-disabled.txt":                                                 {"hca-link-layer-mixed hca:mlx5_0"},
		"corpus/nccl-tests/xxrjun-10node-H100-G8.log":                                                    nil,
		"corpus/nccl-tests/xxrjun-1node-H100-G8.log":                                                     nil,
		"captures/2xh200-vm/ar-debug-all.txt":                                                            nil,
		"captures/2xh200-vm/ar-debug-info.txt":                                                           nil,
		"captures/2xh200-vm/ar-default.txt":                                                              nil,
		"captures/2xh200-vm/ar-p2poff.txt":                                                               nil, // how the GPUs are joined is not in it: a gap
		"captures/2xh200-vm/ar-netonly.txt":                                                              {"log-net-intra-node rank:0 rank:1 env:NCCL_P2P_DISABLE env:NCCL_SHM_DISABLE"},
		"captures/2xh200-vm/ar-p2poff.txt captures/2xh200-vm/sysroot captures/2xh200-vm/nvml-calls.json": {"env-disables-transport env:NCCL_P2P_DISABLE"},
		"cases/005-gdr-distance-measured-gain/default.txt": {
			"gdr-distance ex11/gpu:0000:a1:00.0 ex11/hca:mlx5_2 host:ex11", "gdr-distance ex12/gpu:0000:a1:00.0 ex12/hca:mlx5_2 host:ex12",
		},
	} {
		var names []string
		for _, f := range strings.Fields(file) {
			names = append(names, shared+f)
		}
		if _, err := os.Stat(names[0]); err != nil {
			t.Skip(err)
		}
		res, err := run(names...)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var got []string
		for _, f := range res.Findings {
			if ofJobs.MatchString(f.Rule) {
				got = append(got, f.Rule+" "+strings.Join(f.Subjects, " "))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n  %q\nwant\n  %q", file, got, want)
		}
	}
}
