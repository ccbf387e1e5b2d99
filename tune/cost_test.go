package tune_test

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

func costsOf(t *testing.T, source string, hosts int, change func(*probe.Inventory)) []tune.LinkCost {
	t.Helper()
	inv, err := open.ReadHost(source)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(inv)
	}
	var o tune.ModelOptions
	o.Search.Hosts = hosts
	p, err := tune.Predict(inv, o)
	if err != nil || p.Unknown != nil {
		t.Fatal(err, p.Unknown)
	}
	costs, left := p.Costs()
	if left != 0 {
		t.Errorf("%d left out", left)
	}
	return costs
}

func TestCosts(t *testing.T) {
	plan := func(p tune.GraphPlan) string { return fmt.Sprintf("%d×%g/%g", p.Channels, p.BWIntra, p.BWInter) }
	for _, c := range []struct {
		source   string
		hosts    int
		can, max float64
		seen     bool
		ring     string // as it is, repaired, crossing, planned
		share    float64
	}{
		// A NIC at x8: NCCL plans with its maximum. Gen5 x8 carries 31.5 of the 48 GB/s.
		{"example:h100x8-nic-x8", 2, 31.508, 63.015, false, "8×48/48 8×48/48 [4 5] 48", 0.656},
		{"example:h100x8-nic-x8", 1, 31.508, 63.015, false, "12×30/30 12×30/30 [] 0", 1},
		// Half of a GPU's NVLinks are down, which NCCL sees: half of the channels.
		{"example:h100x8-nvlink-down", 1, 225, 450, true, "6×30/30 12×30/30 [0 1 2 3 4 5] 180", 1},
		{"example:h100x8-nvlink-down", 2, 225, 450, true, "5×45/45 8×48/48 [0 1 2 3 4] 180", 1},
		// A GPU at Gen3 while it works.
		{"example:l40sx8-gpu-gen3", 1, 15.754, 31.508, true, "1×12/12 1×24/24 [0] 12", 1},
	} {
		costs := costsOf(t, c.source, c.hosts, nil)
		if len(costs) != 1 {
			t.Errorf("%s: %d costs", c.source, len(costs))
			continue
		}
		x := costs[0]
		g := x.Graphs[0]
		ring := fmt.Sprint(plan(g.Is), " ", plan(g.Repaired), " ", g.Crossing, " ", g.Planned)
		if fmt.Sprintf("%.3f %.3f", x.CanGBs, x.MaxGBs) != fmt.Sprintf("%.3f %.3f", c.can, c.max) || x.Seen != c.seen || ring != c.ring || fmt.Sprintf("%.3f", x.Share(g)) != fmt.Sprintf("%.3f", c.share) {
			t.Errorf("%s on %d hosts: %g of %g GB/s, seen %v, %s, share %g", c.source, c.hosts, x.CanGBs, x.MaxGBs, x.Seen, ring, x.Share(g))
		}
	}
}

// What is no fault costs nothing; what cannot be known is not made up.
func TestCostsOfNoFault(t *testing.T) {
	for _, source := range []string{"example:h100x8", "example:2xh200-vm", "example:h100nvl-4", "example:gb200x4"} {
		if costs := costsOf(t, source, 2, nil); len(costs) != 0 {
			t.Errorf("%s: %+v", source, costs)
		}
	}
	idle := func(inv *probe.Inventory) {
		for i := range inv.GPUs {
			inv.GPUs[i].PState, inv.GPUs[i].Utilization = probe.Some(8), probe.Some(0)
		}
	}
	if costs := costsOf(t, "example:l40sx8-gpu-gen3", 1, idle); len(costs) != 0 {
		t.Errorf("an idle GPU: %+v", costs)
	}
	hidden := func(inv *probe.Inventory) {
		for i := range inv.GPUs {
			links, _ := inv.GPUs[i].NVLinks.Get()
			for k := range links {
				if links[k].State == probe.LinkUp {
					links[k].RemoteKind, links[k].Remote = "", probe.Opt[probe.BDF]{}
				}
			}
		}
	}
	if costs := costsOf(t, "example:h100x8-nvlink-down", 1, hidden); len(costs) != 1 || costs[0].Unknown == "" || len(costs[0].Graphs) != 0 {
		t.Errorf("links that lead nobody knows where: %+v", costs)
	}
}

// One bad host among several lowers what NCCL plans for all.
func TestCostsOfSeveralHosts(t *testing.T) {
	var hosts []*probe.Inventory
	for _, source := range []string{"example:h100x8", "example:h100x8-nvlink-down", "example:h100x8-nic-x8"} {
		inv, err := open.ReadHost(source)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, inv)
	}
	p, err := tune.PredictHosts(hosts, tune.ModelOptions{})
	if err != nil || p.Unknown != nil {
		t.Fatal(err, p.Unknown)
	}
	if len(p.Hosts) != 3 || p.Search.Ranks != 24 || p.Search.Graphs[0].Channels != 5 || p.Doc().Nodes != 3 {
		t.Errorf("%v: %d ranks, %d channels", p.Hosts, p.Search.Ranks, p.Search.Graphs[0].Channels)
	}
	costs, _ := p.Costs()
	if len(costs) != 2 || costs[0].Host != "h100x8-nvlink-down" || costs[0].Graphs[0].Repaired.Channels != 8 || costs[1].Host != "h100x8-nic-x8" || costs[1].Seen {
		t.Errorf("%+v", costs)
	}
	o := tune.ModelOptions{WhatIf: graph.WhatIf{Without: []string{"GPU0"}}}
	if _, err := tune.PredictHosts(hosts, o); err == nil {
		t.Error("what-if of several hosts passes")
	}
}
