package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// job builds measured jobs in a few words.
type job struct{ probe.Job }

// run adds a run of one rank per host and its AllReduce samples, "size busbw" or
// "size busbw in-place-busbw" with sizes in MiB. settings "?" are not known.
func (j *job) run(file, settings, hosts string, samples ...string) *probe.Run {
	r := probe.Run{ID: file + ":1", File: file, NCCL: "2.27.3", DataType: "float", Op: "sum", Program: "all_reduce_perf"}
	for _, h := range strings.Fields(hosts) {
		r.Hosts = append(r.Hosts, probe.RunHost{Name: h, Ranks: 1, GPUs: []string{"0000:1b:00"}})
	}
	if settings != "?" {
		list := []probe.EnvSetting{}
		for _, s := range strings.Fields(settings) {
			name, value, _ := strings.Cut(s, "=")
			list = append(list, probe.EnvSetting{Name: name, Value: value})
		}
		r.Settings = probe.Some(list)
	}
	for i, s := range samples {
		var mib int64
		var bus, in float64
		n, _ := fmt.Sscan(s, &mib, &bus, &in)
		x := probe.Sample{Run: r.ID, Collective: "AllReduce", Bytes: mib << 20, Ranks: probe.Some(max(len(r.Hosts), 1)), Nodes: probe.Some(max(len(r.Hosts), 1)), BusBW: bus,
			TimeUS: float64(mib<<20) / bus / 1e3, Origins: []probe.Origin{{Source: probe.SourceNCCLTests, Where: fmt.Sprintf("%s:%d", file, i+1)}}}
		if n == 3 {
			x.InPlaceUS = probe.Some(float64(mib<<20) / in / 1e3)
		}
		j.Samples = append(j.Samples, x)
	}
	j.Runs = append(j.Runs, r)
	return &j.Runs[len(j.Runs)-1]
}

// found runs one rule and prints its findings as "severity subjects: observed".
func (j *job) found(t *testing.T, r Rule, hosts ...*graph.Topology) string {
	t.Helper()
	var out Result
	runAcross(&j.Job, hosts, []Rule{r}, &out)
	out.finish([]Rule{r})
	var lines []string
	for _, f := range out.Findings {
		if f.Expected == "" || f.Fix == "" || len(f.Evidence) == 0 {
			t.Errorf("bare finding: %+v", f)
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", f.Severity, strings.Join(f.Subjects, " "), f.Observed))
	}
	for _, g := range out.Gaps {
		lines = append(lines, "gap: "+g.Reason)
	}
	return strings.Join(lines, "\n")
}

func TestMeasuredDrops(t *testing.T) {
	const head = "warning collective:AllReduce file:a.txt: AllReduce: busbw"
	for name, c := range map[string]struct {
		samples []string
		want    string
	}{
		"rises":                    {[]string{"1 10 10", "64 50 50", "256 90 90", "1024 95 94"}, ""},
		"both columns at one size": {[]string{"1 10 10", "16 90 91", "64 60 60", "256 95 95"}, head + " 60 GB/s at 64 MiB, 67 % of it"},
		"one column, one size":     {[]string{"1 10 10", "16 90 91", "64 60 88", "256 95 95"}, ""},
		"one column, two sizes":    {[]string{"1 10 10", "16 90 91", "64 89 60", "256 95 40"}, head + " in place 40 GB/s at 256 MiB, 44 % of it"},
		"below 64 MiB":             {[]string{"1 10 10", "8 90 91", "16 20 20", "32 20 20", "64 95 95"}, ""},
		"cold start":               {[]string{"1 2 80", "16 85 85", "64 90 90", "256 95 95"}, ""},
		"three sizes":              {[]string{"16 90 91", "64 10 10", "256 10 10"}, ""},
		"one column alone":         {[]string{"1 10", "16 90", "64 60", "256 95"}, ""},
	} {
		j := job{}
		j.run("a.txt", "?", "gx1", c.samples...)
		if got := j.found(t, measuredDrops); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestMeasuredTooSmall(t *testing.T) {
	j := job{}
	j.run("small.txt", "?", "gx1", "1 10", "16 20")
	j.run("big.txt", "?", "gx1", "16 20")
	j.run("big.txt", "NCCL_X=1", "gx1", "64 20")
	if got, want := j.found(t, measuredTooSmall), "info file:small.txt: the largest size is 16 MiB: latency, not bandwidth"; got != want {
		t.Errorf("%q", got)
	}
}

func TestMeasuredWrongData(t *testing.T) {
	wrong := func(text string) probe.Event {
		return probe.Event{Kind: probe.EventWrongData, Class: "AllReduce", Text: text, Origins: []probe.Origin{{Source: probe.SourceNCCLTests, Where: "a.txt:7"}}}
	}
	j := job{probe.Job{Events: []probe.Event{wrong("AllReduce: 17 wrong elements"), wrong("AllReduce: 3 wrong elements")}}}
	if got, want := j.found(t, measuredWrongData), "critical collective:AllReduce file:a.txt: AllReduce: 17 wrong elements; 2 tests in all"; got != want {
		t.Errorf("%q", got)
	}
}

func TestMeasuredPairSlow(t *testing.T) {
	for name, c := range map[string]struct {
		pairs []string // "host host busbw"
		want  string
	}{
		"alike":     {[]string{"a b 13.5", "a c 13.4", "b c 11.1"}, ""},
		"two pairs": {[]string{"a b 13.5", "a c 3"}, ""},
		"a pair":    {[]string{"a b 13", "a c 13", "a d 13", "b c 7", "b d 13", "c d 13"}, "critical host:b host:c: AllReduce of b and c 7 GB/s, 54 % of 13 (median of 6 pairs)"},
		"a host": {[]string{"a b 10", "a c 13", "a d 13", "b c 10", "b d 10", "c d 13", "a e 13", "b e 10", "c e 13", "d e 13"},
			"warning host:b: AllReduce of a and b 10 GB/s, 77 % of 13 (median of 10 pairs); AllReduce of b and c 10 GB/s, 77 % of 13 (median of 10 pairs); " +
				"AllReduce of b and d 10 GB/s, 77 % of 13 (median of 10 pairs); AllReduce of b and e 10 GB/s, 77 % of 13 (median of 10 pairs)"},
	} {
		j := job{}
		for i, p := range c.pairs {
			f := strings.Fields(p)
			j.run(fmt.Sprintf("%d.txt", i), "?", f[0]+" "+f[1], "64 "+f[2], "1024 "+f[2])
		}
		if got := j.found(t, measuredPairSlow); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// Tables of many runs; a pair that is slow in two tests is one finding, and more
	// than three without a host in common are one.
	j := job{}
	table := func(collective string, speed func(a, b int) float64) {
		for a := range 8 {
			for b := range a {
				j.Summaries = append(j.Summaries, probe.RunSummary{Collective: collective, GPUs: 8, Hosts: []string{fmt.Sprint("h", b), fmt.Sprint("h", a)}, MaxBytes: probe.Some(int64(1 << 34)), PeakBusBW: probe.Some(speed(a, b)), Origins: []probe.Origin{{Where: "summary.csv"}}})
			}
		}
	}
	slowIf := func(is func(a, b int) bool) func(a, b int) float64 {
		return func(a, b int) float64 {
			if is(a, b) {
				return 10
			}
			return 14
		}
	}
	one := slowIf(func(a, b int) bool { return a == 3 && b == 1 })
	table("SendRecv", one)
	table("AllToAll", one)
	if got, want := j.found(t, measuredPairSlow), "warning host:h1 host:h3: SendRecv of h1 and h3 10 GB/s, 71 % of 14 (median of 28 pairs); AllToAll of h1 and h3 10 GB/s, 71 % of 14 (median of 28 pairs)"; got != want {
		t.Errorf("%q", got)
	}
	j = job{}
	table("SendRecv", slowIf(func(a, b int) bool { return a == b+1 && b%2 == 0 }))
	if got, want := j.found(t, measuredPairSlow), "warning host:h0 host:h1 host:h2 host:h3 host:h4 host:h5 host:h6 host:h7: SendRecv of h0 and h1"; !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	// Sizes that not all ran are not compared, nor runs with other settings.
	j = job{}
	j.run("1.txt", "?", "a b", "64 5")
	j.run("2.txt", "?", "a c", "1024 13")
	j.run("3.txt", "?", "b c", "1024 13")
	j.run("4.txt", "NCCL_ALGO=Tree", "b d", "1024 1")
	if got := j.found(t, measuredPairSlow); got != "" {
		t.Error(got)
	}
}

func TestMeasuredAlternativeBetter(t *testing.T) {
	const head = "info env:NCCL_ALGO: AllReduce over 2 ranks on 2 hosts: NCCL_ALGO=Tree is "
	for name, c := range map[string]struct {
		other, settings string
		base, better    []string
		want            string
	}{
		"three sizes":            {"", "NCCL_ALGO=Tree", []string{"64 10", "128 10", "256 10"}, []string{"64 12", "128 12", "256 13"}, head + "20 to 30 % faster than without it at 3 sizes (64 MiB to 256 MiB)"},
		"two sizes":              {"", "NCCL_ALGO=Tree", []string{"64 10", "128 10"}, []string{"64 12", "128 12"}, ""},
		"all from 1 GiB":         {"", "NCCL_ALGO=Tree", []string{"512 10", "1024 10", "2048 10"}, []string{"512 10", "1024 12", "2048 12"}, head + "20 % faster than without it at 2 sizes (1 GiB to 2 GiB)"},
		"not all from 1 GiB":     {"", "NCCL_ALGO=Tree", []string{"1024 10", "2048 10"}, []string{"1024 12", "2048 10"}, ""},
		"one size, little":       {"", "NCCL_ALGO=Tree", []string{"1024 10"}, []string{"1024 10.8"}, ""},
		"one size, much":         {"", "NCCL_ALGO=Tree", []string{"1024 10"}, []string{"1024 12"}, head + "20 % faster than without it at 1 size (1 GiB to 1 GiB)"},
		"within the spread":      {"", "NCCL_ALGO=Tree", []string{"64 10 11", "128 10 11", "256 10 11"}, []string{"64 12 12", "128 12 12", "256 12 12"}, head + "20 % faster than without it at 3 sizes (64 MiB to 256 MiB)"},
		"below twice the spread": {"", "NCCL_ALGO=Tree", []string{"64 10 11.5", "128 10 11.5", "256 10 11.5"}, []string{"64 12 12", "128 12 12", "256 12 12"}, ""},
		"worse elsewhere":        {"", "NCCL_ALGO=Tree", []string{"64 10", "128 10", "256 10", "512 10"}, []string{"64 12", "128 12", "256 12", "512 9"}, ""},
		"the default wins":       {"NCCL_ALGO=Tree", "", []string{"64 10", "128 10", "256 10"}, []string{"64 12", "128 12", "256 12"}, ""},
		"two differences":        {"", "NCCL_ALGO=Tree NCCL_PROTO=LL", []string{"64 10", "128 10", "256 10"}, []string{"64 12", "128 12", "256 12"}, ""},
		"debugging differs":      {"NCCL_DEBUG=INFO", "NCCL_ALGO=Tree", []string{"1024 10"}, []string{"1024 12"}, head + "20 % faster than without it at 1 size (1 GiB to 1 GiB)"},
		"settings not known":     {"?", "NCCL_ALGO=Tree", []string{"1024 10"}, []string{"1024 12"}, ""},
		"against another":        {"NCCL_ALGO=Ring", "NCCL_ALGO=Tree", []string{"1024 10"}, []string{"1024 12"}, head + "20 % faster than with Ring at 1 size (1 GiB to 1 GiB)"},
	} {
		j := job{}
		j.run("a.txt", c.other, "gx1 gx2", c.base...)
		j.run("b.txt", c.settings, "gx1 gx2", c.better...)
		if got := j.found(t, measuredAlternativeBetter); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// What does not beat the default is no alternative to another value either;
	// other hosts and versions are not compared.
	j := job{}
	j.run("a.txt", "", "gx1 gx2", "1024 12")
	j.run("b.txt", "NCCL_ALGO=Ring", "gx1 gx2", "1024 10")
	j.run("c.txt", "NCCL_ALGO=Tree", "gx1 gx2", "1024 12")
	j.run("d.txt", "NCCL_ALGO=Tree", "gx1 gx3", "1024 22")
	j.run("e.txt", "NCCL_ALGO=Tree", "gx1 gx2", "1024 22").NCCL = "2.28.3"
	if got := j.found(t, measuredAlternativeBetter); got != "" {
		t.Error(got)
	}
}

// hosts builds topologies of machines with names.
func topologies(t *testing.T, hosts map[string]*host) []*graph.Topology {
	t.Helper()
	var out []*graph.Topology
	for name, h := range hosts {
		inv := h.inv
		inv.Schema, inv.Host.Name = probe.Schema, name
		inv.Normalize()
		topo, err := graph.Build(&inv)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, topo)
	}
	return out
}

// all gives the run every GPU of its hosts.
func (j *job) all(r *probe.Run, perHost int) {
	for i := range r.Hosts {
		r.Hosts[i].Ranks, r.Hosts[i].GPUs = perHost, nil
	}
	n := perHost * len(r.Hosts)
	for i := range j.Samples {
		if s := &j.Samples[i]; s.Run == r.ID {
			factor := 2 * float64(n-1) / float64(n)
			s.Ranks, s.TimeUS = probe.Some(n), s.TimeUS*factor
		}
	}
}

func TestMeasuredBelowModel(t *testing.T) {
	const nvlink = "warning host:gx1 file:a.txt: AllReduce over 8 ranks on 1 host: busbw 220 GB/s at 1 GiB, 50 % of it"
	for name, c := range map[string]struct {
		host    *host
		hosts   string
		perHost int
		env     string
		samples []string
		want    string
	}{
		"one host, healthy":       {h100x8(), "gx1", 8, "?", []string{"256 300", "1024 360"}, ""},
		"above the links (NVLS)":  {h100x8(), "gx1", 8, "?", []string{"1024 480"}, ""},
		"one host, half":          {h100x8(), "gx1", 8, "?", []string{"256 200", "1024 220"}, nvlink},
		"one host, a tenth":       {h100x8(), "gx1", 8, "?", []string{"1024 45"}, "critical host:gx1 file:a.txt: AllReduce over 8 ranks on 1 host: busbw 45 GB/s at 1 GiB, 10 % of it"},
		"small sizes only":        {h100x8(), "gx1", 8, "?", []string{"64 45", "128 45"}, "gap: no size is large enough to fill the links of 8 ranks"},
		"two hosts at line rate":  {h100x8(), "gx1 gx2", 8, "?", []string{"1024 390"}, ""},
		"two hosts, lowest share": {h100x8(), "gx1 gx2", 8, "?", []string{"8192 285"}, ""},
		"two hosts, half":         {h100x8(), "gx1 gx2", 8, "?", []string{"8192 200"}, "critical host:gx1 host:gx2 file:a.txt: AllReduce over 16 ranks on 2 hosts: busbw 200 GB/s at 8 GiB, 50 % of it"},
		"one HCA chosen, full":    {h100x8(), "gx1 gx2", 8, "NCCL_IB_HCA==mlx5_0", []string{"8192 48"}, ""},
		"one HCA chosen, half":    {h100x8(), "gx1 gx2", 8, "NCCL_IB_HCA==mlx5_0", []string{"8192 30"}, "warning host:gx1 host:gx2 file:a.txt: AllReduce over 16 ranks on 2 hosts: busbw 30 GB/s at 8 GiB, 60 % of it"},
		"HCA behind a slow slot":  {h100x8().with(slowHCA), "gx1 gx2", 8, "NCCL_IB_HCA==mlx5_0", []string{"8192 7"}, ""},
		"one GPU, its own HCA":    {h100x8(), "gx1 gx2", 1, "?", []string{"8192 48"}, ""},
		"no NVLink":               {h100x8().with(withoutNVLink), "gx1", 8, "?", []string{"1024 5"}, "gap: not all GPUs that took part are joined by NVLink: what a ring over PCIe or the CPU reaches is not known"},
		"no NVLink, at line rate": {h100x8().with(withoutNVLink), "gx1 gx2", 8, "NCCL_IB_HCA==mlx5_0", []string{"8192 48"}, ""},
		"no NVLink, below":        {h100x8().with(withoutNVLink), "gx1 gx2", 8, "?", []string{"8192 20"}, "gap: not all GPUs that took part are joined by NVLink: what a ring over PCIe or the CPU reaches is not known"},
		"many ranks":              {h100x8(), strings.Repeat("gx1 gx2 ", 64), 8, "?", []string{"1024 20"}, "gap: no size is large enough to fill the links of 1024 ranks"},
		"which GPUs":              {h100x8(), "gx1", 3, "?", []string{"1024 20"}, "gap: which GPUs of the host took part is not known"},
		"hosts not in sources":    {h100x8(), "ax1", 8, "?", []string{"1024 20"}, "gap: the topology of the hosts that ran it is not in the sources"},
	} {
		j := job{}
		r := j.run("a.txt", c.env, c.hosts, c.samples...)
		if c.perHost > 1 {
			j.all(r, c.perHost)
		} else {
			r.Hosts[0].GPUs, r.Hosts[1].GPUs = []string{gpuKey(0)[len("gpu:"):]}, []string{gpuKey(0)[len("gpu:"):]}
		}
		if got := j.found(t, measuredBelowModel, topologies(t, map[string]*host{"gx1": c.host})...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// All pairs of some hosts are one finding.
	pairs := job{}
	for i := range 5 {
		pairs.all(pairs.run(fmt.Sprint(i, ".txt"), "?", fmt.Sprint("gx1 gx", i+2), "8192 200"), 8)
	}
	if got, want := pairs.found(t, measuredBelowModel, topologies(t, map[string]*host{"gx1": h100x8()})...), "critical host:gx1 host:gx2 host:gx3 host:gx4 host:gx5 host:gx6 file:0.txt file:1.txt file:2.txt file:3.txt file:4.txt: "; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "; and 1 more") || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
	// The best of several runs counts; other collectives are a gap.
	j := job{}
	j.all(j.run("a.txt", "NCCL_PROTO=LL", "gx1", "1024 20"), 8)
	j.all(j.run("b.txt", "", "gx1", "1024 360"), 8)
	j.all(j.run("c.txt", "", "gx1", "1024 20"), 8)
	for i := range j.Samples {
		if j.Samples[i].Run == "c.txt:1" {
			j.Samples[i].Collective = "AllToAll"
		}
	}
	if got := j.found(t, measuredBelowModel, topologies(t, map[string]*host{"gx1": h100x8()})...); got != "gap: what the links allow is not known for this collective" {
		t.Errorf("%q", got)
	}
}

func slowHCA(h *host) { h.speed(hcaAt(0), 1) }

func withoutNVLink(h *host) {
	for i := range h.inv.GPUs {
		h.inv.GPUs[i].NVLinks = toNothing
	}
}

func TestPrintedAs(t *testing.T) {
	n := &graph.Node{GPU: &probe.GPU{Addr: probe.Some(bdf("0000:1b:00.0"))}}
	for bus, want := range map[string]bool{"0000:1b:00": true, "0x1b": true, "0x1B": true, "0x1c": false, "0001:1b:00": false, "": false} {
		if printedAs(n, bus) != want {
			t.Error(bus)
		}
	}
}

// The settings of one run do not excuse, nor accuse, another: rules about a job see
// each run alone, those that compare runs see all.
func TestRunMeasured(t *testing.T) {
	topo := h100x8().inv
	topo.Schema = probe.Schema
	run := func(file, settings string, env ...probe.EnvSetting) *probe.Cluster {
		j := job{}
		j.run(file, settings, "gx1 gx2", "1024 "+map[bool]string{true: "12", false: "10"}[settings != ""])
		j.Env = env
		return &probe.Cluster{Hosts: []*probe.Inventory{{Schema: probe.Schema, Host: probe.Host{Name: "gx1"}}, {Schema: probe.Schema, Host: probe.Host{Name: "gx2"}}}, Job: j.Job}
	}
	m, err := probe.JoinMeasured(&probe.Cluster{Hosts: []*probe.Inventory{&topo}}, run("a.txt", ""), run("b.txt", "NCCL_ALGO=Tree", probe.EnvSetting{Name: "NCCL_ALGO", Value: "Tree"}))
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	counter := Rule{ID: "counter", Across: func(a *Across) {
		seen = append(seen, len(a.Job.Env))
		a.Report(Finding{Severity: Info, Subjects: []string{"host:gx1"}, Observed: "the same"})
	}}
	res, err := RunMeasured(m, []Rule{counter, measuredAlternativeBetter})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range res.Findings {
		got = append(got, f.Rule)
	}
	if fmt.Sprint(seen, got) != "[0 1] [counter measured-alternative-better]" {
		t.Error(seen, got)
	}
}
