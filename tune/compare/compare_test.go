package compare

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
)

// cluster is one host that ran AllReduce on its GPUs, by size the time in µs.
func cluster(t *testing.T, us map[int64]float64, change func(*probe.Cluster)) *probe.Cluster {
	t.Helper()
	inv, err := open.ReadHost("example:h100x8")
	if err != nil {
		t.Fatal(err)
	}
	c := &probe.Cluster{Schema: probe.ClusterSchema, Hosts: []*probe.Inventory{inv}}
	c.Runs = []probe.Run{{ID: "a.txt:1", File: "a.txt", NCCL: "2.28.3", Hosts: []probe.RunHost{{Name: inv.Host.Name, Ranks: 8}}}}
	for bytes, time := range us {
		c.Samples = append(c.Samples, probe.Sample{
			Run: "a.txt:1", Collective: "AllReduce", Bytes: bytes, Ranks: probe.Some(8), Nodes: probe.Some(1), TimeUS: time, BusBW: float64(bytes) / time / 1e3 * 1.75,
			Origins: []probe.Origin{{Source: probe.SourceNCCLTests, Where: "a.txt:9"}},
		})
	}
	if change != nil {
		change(c)
	}
	return c
}

func compare(t *testing.T, c *probe.Cluster, believe Predictor) *Comparison {
	t.Helper()
	out, err := Run(probe.Measured{All: c, Jobs: []*probe.Cluster{c}}, believe, Unavailable("nothing was fitted"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tenPerByte believes in 10 µs for each byte, of what it is asked for.
func tenPerByte(q Query) (Estimate, error) {
	if q.Topo == nil || q.Run.NCCL != "2.28.3" || q.Ranks != 8 || q.Nodes != 1 {
		return Estimate{}, fmt.Errorf("%+v", q)
	}
	e := Estimate{TimeUS: 10 * float64(q.Bytes), Algo: q.Algo, Proto: q.Proto}
	if e.Algo == "" {
		e.Algo, e.Proto = "Tree", "LL"
	}
	return e, nil
}

func TestPoints(t *testing.T) {
	c := compare(t, cluster(t, map[int64]float64{1: 10, 2: 40, 4: 20}, nil), tenPerByte)
	var got []string
	for _, p := range c.Points {
		got = append(got, fmt.Sprintf("%d: %g/%v %s %v | %v %s", p.Bytes, p.MeasuredUS, p.Believed, p.BelievedOf, p.NCCLError, p.Predicted, p.PredictedWhy))
	}
	want := "1: 10/10 Tree LL 0 | unknown nothing was fitted; 2: 40/20 Tree LL -0.5 | unknown nothing was fitted; 4: 20/40 Tree LL 1 | unknown nothing was fitted"
	if strings.Join(got, "; ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "; "), want)
	}
	if c.NCCL.N != 3 || c.NCCL.Median != probe.Some(0.5) || c.NCCL.P90 != probe.Some(1.0) {
		t.Errorf("%+v", c.NCCL)
	}
	if c.Summary.N != 0 || c.Summary.Median.Known() || len(c.Suspects) != 0 || c.SuspectsWhy == "" {
		t.Errorf("%+v %+v", c.Summary, c.Suspects)
	}
}

// What ran is known by the sample, NCCL's own line or a setting, in this order; and
// NCCL's own line is its estimate.
func TestWhatRan(t *testing.T) {
	setting := func(c *probe.Cluster, list ...probe.EnvSetting) { c.Runs[0].Settings = probe.Some(list) }
	line := func(c *probe.Cluster, us float64, algo string) {
		c.Choices = append(c.Choices, probe.Choice{Collective: "AllReduce", Bytes: 8, Algorithm: algo, Protocol: "LL128", TimeUS: probe.Some(us), Origins: []probe.Origin{{Where: "a.txt:5"}}})
	}
	for name, x := range map[string]struct {
		change func(*probe.Cluster)
		want   string
	}{
		"nothing":          {nil, "unknown unknown 80 Tree LL"},
		"one algorithm":    {func(c *probe.Cluster) { setting(c, probe.EnvSetting{Name: "NCCL_ALGO", Value: "ring"}) }, "Ring unknown 80 Ring"},
		"an excluded one":  {func(c *probe.Cluster) { setting(c, probe.EnvSetting{Name: "NCCL_ALGO", Value: "^Ring"}) }, "unknown unknown 80 Tree LL"},
		"NCCL's own line":  {func(c *probe.Cluster) { line(c, 7, "NVLS") }, "NVLS LL128 7 NVLS LL128, as its own log prints it"},
		"two lines differ": {func(c *probe.Cluster) { line(c, 7, "NVLS"); line(c, 9, "Ring") }, "unknown unknown 80 Tree LL"},
		"the sample":       {func(c *probe.Cluster) { c.Samples[0].Algorithm, c.Samples[0].Protocol = "PAT", "Simple" }, "PAT Simple 80 PAT Simple"},
	} {
		p := compare(t, cluster(t, map[int64]float64{8: 10}, x.change), tenPerByte).Points[0]
		if got := fmt.Sprint(p.Algo, " ", p.Proto, " ", p.Believed, " ", p.BelievedOf); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// No prediction without the facts for it, and a reason.
func TestNoPrediction(t *testing.T) {
	for want, change := range map[string]func(*probe.Cluster){
		"ranks or hosts":          func(c *probe.Cluster) { c.Samples[0].Nodes = probe.Opt[int]{} },
		"topology of the hosts":   func(c *probe.Cluster) { c.Runs[0].Hosts[0].Name = "ax9" },
		"not positive":            nil,
		"does not know this host": nil,
	} {
		believe := func(Query) (Estimate, error) {
			if strings.HasPrefix(want, "does") {
				return Estimate{}, errors.New(want)
			}
			return Estimate{}, nil
		}
		p := compare(t, cluster(t, map[int64]float64{8: 10}, change), believe).Points[0]
		if p.Believed.Known() || p.NCCLError.Known() || !strings.Contains(p.BelievedWhy, want) {
			t.Errorf("%s: %+v", want, p)
		}
	}
}

// compare judges jobs; what a host is made of is for check.
func TestOnlyJobRules(t *testing.T) {
	inv, err := open.ReadHost("example:h100x8-nvlink-down")
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(t, map[int64]float64{1 << 20: 10}, func(c *probe.Cluster) { c.Hosts[0] = inv })
	var got []string
	for _, f := range compare(t, c, tenPerByte).Findings {
		got = append(got, f.Rule)
	}
	if strings.Join(got, " ") != "measured-too-small" {
		t.Error(got)
	}
}
