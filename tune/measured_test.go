package tune_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

// tried is a machine on which two hosts ran AllReduce of 1 and 2 GiB without and
// with a setting, which was faster by gain.
func tried(t *testing.T, source, nccl, setting string, gain float64) *tune.Analysis {
	t.Helper()
	inv, err := open.ReadHost(source)
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(setting, "=")
	c := &probe.Cluster{Schema: probe.ClusterSchema, Hosts: []*probe.Inventory{inv}}
	for i, settings := range [][]probe.EnvSetting{{}, {{Name: name, Value: value}}} {
		file := fmt.Sprintf("%d.txt", i)
		c.Runs = append(c.Runs, probe.Run{ID: file, File: file, NCCL: nccl, Program: "all_reduce_perf", Settings: probe.Some(settings), Hosts: []probe.RunHost{{Name: "a", Ranks: 1}, {Name: "b", Ranks: 1}}})
		for n := range int64(2) {
			us := 1e5 * float64(n+1)
			if i == 1 {
				us /= 1 + gain
			}
			c.Samples = append(c.Samples, probe.Sample{Run: file, Collective: "AllReduce", Bytes: (n + 1) << 30, Ranks: probe.Some(2), Nodes: probe.Some(2), TimeUS: us, BusBW: 10, Origins: []probe.Origin{{Source: "test", Where: file}}})
		}
	}
	an, err := tune.AnalyseMeasured(inv, probe.Measured{All: c, Jobs: []*probe.Cluster{c}}, "2031-02-03")
	if err != nil {
		t.Fatal(err)
	}
	return an
}

func TestMeasuredGainIsSet(t *testing.T) {
	for _, x := range []struct{ source, nccl, setting, want string }{
		{"example:h100x8", "2.27.3", "NCCL_ALGO=Tree", "NCCL_ALGO=allreduce:tree since 2.24"},
		{"example:h100x8", "2.21.5", "NCCL_ALGO=Tree", "NCCL_ALGO=Tree since 2.5.6"},
		{"example:h100x8", "2.27.3", "NCCL_ALGO=allreduce:tree", "NCCL_ALGO=allreduce:tree since 2.24"},
		{"example:h100x8", "2.27.3", "NCCL_PROTO=Simple", "NCCL_PROTO=allreduce:simple since 2.24"},
		{"example:h100x8", "2.27.3", "NCCL_PXN_DISABLE=1", "NCCL_PXN_DISABLE=1 since 2.12.7"},
		{"example:h100x8", "2.27.3", "NCCL_NET_GDR_LEVEL=SYS", "NCCL_NET_GDR_LEVEL=SYS since 2.4.2"},
		{"example:h100x8", "2.27.3", "NCCL_PROTO=LL128", ""},
		{"example:h100x8", "2.27.3", "NCCL_PROTO=^LL", ""}, // would force LL128 on
		{"example:h100x8", "2.27.3", "NCCL_PROTO=^LL128", "NCCL_PROTO=allreduce:^ll128 since 2.24"},
		{"example:h100x8", "2.27.3", "NCCL_IB_DISABLE=1", ""},
		{"example:h100x8", "2.27.3", "NCCL_P2P_LEVEL=SYS", ""},
		{"example:h100x8", "2.27.3", "NCCL_P2P_LEVEL=PHB", "NCCL_P2P_LEVEL=PHB since 2.3"},
	} {
		p := tried(t, x.source, x.nccl, x.setting, 0.5).Plan
		name, _, _ := strings.Cut(x.setting, "=")
		var got []string
		for _, v := range p.Variables {
			got = append(got, v.Name+"="+v.Value+" since "+v.Since)
			if text := fmt.Sprint(v.Why, v.Evidence); !strings.Contains(text, "50 % faster than without it") || !strings.Contains(text, "2031-02-03") || v.Risk == "" || v.Verify == "" {
				t.Errorf("%s: %+v", x.setting, v)
			}
		}
		if strings.Join(got, "; ") != x.want {
			t.Errorf("%s with NCCL %s: %q, want %q", x.setting, x.nccl, got, x.want)
		}
		declined := 0
		for _, d := range p.Declined {
			if d.Name == name {
				declined++
				if !strings.Contains(d.Why, "50 % faster") {
					t.Errorf("%s declined without the gain: %s", x.setting, d.Why)
				}
			}
		}
		if want := 1 - len(p.Variables); declined != want {
			t.Errorf("%s: declined %d times, want %d", x.setting, declined, want)
		}
	}
}

func TestNoGainIsNotSet(t *testing.T) {
	if p := tried(t, "example:h100x8", "2.27.3", "NCCL_ALGO=Tree", 0.04).Plan; len(p.Variables) != 0 {
		t.Errorf("%+v", p.Variables)
	}
}

// NCCL's own model of the recorded machine, beside a measured time: of what ran, as
// far as it is known, else of what NCCL would choose, under the run's settings.
func TestCompareBelief(t *testing.T) {
	inv, err := open.ReadHost("example:2xh200-vm")
	if err != nil {
		t.Fatal(err)
	}
	c := &probe.Cluster{Schema: probe.ClusterSchema, Hosts: []*probe.Inventory{inv}}
	add := func(s probe.Sample, settings ...probe.EnvSetting) {
		s.Run = fmt.Sprint("r", len(c.Runs))
		s.Bytes, s.Nodes, s.TimeUS = 1<<30, probe.Some(1), 3226.28
		c.Runs = append(c.Runs, probe.Run{ID: s.Run, File: s.Run, NCCL: "2.28.3", Hosts: []probe.RunHost{{Name: inv.Host.Name, Ranks: s.Ranks.Or(0)}}, Settings: probe.Some(settings)})
		c.Samples = append(c.Samples, s)
	}
	noNVLS := probe.EnvSetting{Name: "NCCL_NVLS_ENABLE", Value: "0"}
	add(probe.Sample{Collective: "AllReduce", Ranks: probe.Some(2), Algorithm: "Ring", Protocol: "Simple"})
	add(probe.Sample{Collective: "AllReduce", Ranks: probe.Some(2)}, noNVLS)
	add(probe.Sample{Collective: "AllReduce", Ranks: probe.Some(2)}, noNVLS, probe.EnvSetting{Name: "NCCL_PROTO", Value: "LL"})
	add(probe.Sample{Collective: "AllReduce", Ranks: probe.Some(2), Algorithm: "PAT"})
	add(probe.Sample{Collective: "SendRecv", Ranks: probe.Some(2)})
	add(probe.Sample{Collective: "AllReduce", Ranks: probe.Some(1)})
	cmp, err := tune.Compare(probe.Measured{All: c, Jobs: []*probe.Cluster{c}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range cmp.Points {
		got = append(got, fmt.Sprintf("%.0f %s %s", p.Believed.Or(0), p.BelievedOf, p.BelievedWhy))
		if p.Predicted.Known() || p.PredictedWhy == "" {
			t.Errorf("%+v", p)
		}
	}
	// 15.2 µs and 360 GB/s for Ring Simple, as NCCL's own log says.
	want := []string{
		"2998 Ring Simple ", "2998 Ring Simple ", "7623 Ring LL ", "0  NCCL does not use PAT for AllReduce here",
		"0  NCCL has no cost model for SendRecv, or the settings leave nothing to choose", "0  1 rank ran on 1 host of 2 GPUs, and which of these is not known",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
