package tune_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

func host(t *testing.T, source string) *probe.Inventory {
	t.Helper()
	inv, err := open.ReadHost(source)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func why(t *testing.T, hosts ...*probe.Inventory) *tune.Why {
	t.Helper()
	var parts []probe.Part
	for i, inv := range hosts {
		parts = append(parts, probe.Part{Inv: inv, File: fmt.Sprint("source ", i)})
	}
	c, err := probe.Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	m, err := probe.JoinMeasured(c)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tune.WhySlow(m)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func lossText(l tune.Loss) string {
	return fmt.Sprintf("%s %s %.1f %.3f %.3f %s", l.Rule, l.Subjects[0], l.CostGBs.Or(-1), l.CostShare.Or(-1), l.Gain.Or(-1), l.CostOf)
}

// Each example's fault comes first, with what NCCL's model gives with and without it;
// for the narrow NIC, which NCCL does not see, with the 31.5 of 48 GB/s that it carries.
func TestWhySlow(t *testing.T) {
	for source, want := range map[string]string{
		"example:h100x8-nvlink-down":   "nvlink-down gpu:0000:61:00.0 235.8 0.498 0.994 473 GB/s AllReduce bus bandwidth within the host",
		"example:h100x8-nic-down":      "hca-port-down port:mlx5_2/1 56.1 0.123 0.141 454.6 GB/s AllReduce bus bandwidth between two hosts like it",
		"example:h100x8-nic-x8":        "pcie-width-degraded hca:mlx5_5 156.2 0.344 0.523 454.6 GB/s AllReduce bus bandwidth between two hosts like it",
		"example:l40sx8-gpu-gen3":      "pcie-speed-degraded gpu:0000:9c:00.0 12.0 0.500 0.998 23.96 GB/s AllReduce bus bandwidth within the host",
		"example:gb200x4-link-missing": "nvlink-down gpu:0009:01:00.0 39.0 0.055 0.058 710.8 GB/s AllReduce bus bandwidth within the host",
	} {
		w := why(t, host(t, source))
		if len(w.Losses) != 1 {
			t.Errorf("%s: %d losses", source, len(w.Losses))
			continue
		}
		if got := lossText(w.Losses[0]); got != want {
			t.Errorf("%s:\n got %s\nwant %s", source, got, want)
		}
		if l := w.Losses[0]; l.Cause == "" || l.Repair == "" || l.Certainty != check.Sure {
			t.Errorf("%s: %+v", source, l)
		}
	}
}

func TestWhySlowHealthy(t *testing.T) {
	for _, source := range []string{"2xh200-vm", "a100x8", "a10x4", "b200x8", "b300x8", "gb200-nvl72", "gb200x4", "h100nvl-4", "h100x8", "h200x8", "l40sx8", "rtx4090x8", "v100x8-cubemesh"} {
		if w := why(t, host(t, "example:"+source)); len(w.Losses) != 0 {
			t.Errorf("%s: %+v", source, w.Losses)
		}
	}
}

// set gives a host's job a setting, as its log confirms it.
func set(inv *probe.Inventory, name, value string) *probe.Inventory {
	inv.Env = append(inv.Env, probe.EnvSetting{Name: name, Value: value, How: probe.EnvVariable, Host: inv.Host.Name, Origins: []probe.Origin{{Source: "job.log"}}})
	return inv
}

// A setting costs what the model gives with and without it; one that no model knows
// costs nobody knows what.
func TestWhySlowSettings(t *testing.T) {
	w := why(t, set(host(t, "example:h100x8"), "NCCL_P2P_DISABLE", "1"))
	if len(w.Losses) != 1 || !strings.HasPrefix(lossText(w.Losses[0]), "env-disables-transport env:NCCL_P2P_DISABLE 274.0 0.603 1.5") {
		t.Errorf("%+v", w.Losses)
	}
	w = why(t, set(host(t, "example:h100x8"), "NCCL_IB_DISABLE", "1"))
	if len(w.Losses) != 1 || w.Losses[0].CostGBs.Known() || w.Losses[0].Gain.Known() || w.Losses[0].CostWhy != "NCCL_IB_DISABLE: no part of the prediction knows it" {
		t.Errorf("%+v", w.Losses)
	}
}

// Of two equal faults each costs what it would cost alone, and its repair alone gains
// nothing.
func TestWhySlowHidden(t *testing.T) {
	named := func(source, name string) *probe.Inventory {
		inv := host(t, source)
		inv.Host.Name = name
		return inv
	}
	w := why(t, named("example:h100x8", "a"), named("example:h100x8-nvlink-down", "b"), named("example:h100x8-nvlink-down", "c"))
	if len(w.Losses) < 2 {
		t.Fatalf("%+v", w.Losses)
	}
	for i, l := range w.Losses[:2] {
		if l.Subjects[0] != []string{"b/gpu:0000:61:00.0", "c/gpu:0000:61:00.0"}[i] || l.CostShare.Or(0) < 0.3 || l.Gain.Or(1) != 0 {
			t.Errorf("%s", lossText(l))
		}
	}
}

// Without a topology nothing is computed, and every loss says why.
func TestWhySlowUnknown(t *testing.T) {
	inv := host(t, "example:h100x8-nvlink-down")
	for i := range inv.GPUs {
		inv.GPUs[i].CC = probe.Opt[int]{}
	}
	w := why(t, inv)
	if len(w.Losses) != 1 || w.Losses[0].CostGBs.Known() || !strings.Contains(w.Losses[0].CostWhy, "compute capability is unknown") || !strings.Contains(w.Basis, "no costs by NCCL's model") {
		t.Errorf("%s %+v", w.Basis, w.Losses)
	}
}

// A job over sockets loses what the adapters carry more than the interfaces; without
// the speed of these that is not known.
func TestWhySlowSockets(t *testing.T) {
	for _, c := range []struct {
		speed probe.Opt[probe.Rate]
		want  string
	}{
		{probe.Some(probe.Rate(12.5e9)), "log-socket-fallback host:a 387.5 0.969 31.000 400 GB/s that the data HCAs of a carry"},
		{probe.Opt[probe.Rate]{}, "log-socket-fallback host:a -1.0 -1.000 -1.000 "},
	} {
		a, b := host(t, "example:h100x8"), host(t, "example:h100x8")
		a.Host.Name, b.Host.Name = "a", "b"
		for _, inv := range []*probe.Inventory{a, b} {
			inv.NetDevs = append(inv.NetDevs, probe.NetDev{Name: "eth9", State: "up", Speed: c.speed})
			from := []probe.Origin{{Source: "job.log"}}
			inv.Networks = []probe.Network{{Name: "Socket", State: probe.NetUsed, Host: inv.Host.Name, Origins: from}}
			inv.Interfaces = []probe.Interface{{Use: probe.UseSocket, Name: "eth9", Host: inv.Host.Name, Origins: from}}
			inv.Comms = []probe.Comm{{ID: "0x1", Ranks: 16, Members: []probe.Member{{Rank: 0, Host: "a"}, {Rank: 8, Host: "b"}}}}
		}
		b.Comms = nil
		w := why(t, a, b)
		found := false
		for _, l := range w.Losses {
			if l.Rule == "log-socket-fallback" {
				found = true
				if got := lossText(l); got != c.want {
					t.Errorf("got %s\nwant %s", got, c.want)
				}
			}
		}
		if !found {
			t.Errorf("no socket fallback among %+v", w.Findings)
		}
	}
}
