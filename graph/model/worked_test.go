package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
)

func flat(p search.Pattern, number, channels int, intra, inter float64, class graph.PathClass, same int) search.Graph {
	return search.Graph{Pattern: p, Number: number, Channels: channels, BWIntra: intra, BWInter: inter, TypeIntra: class, TypeInter: graph.PIX, SameChannels: same}
}

// h100 is one node of eight, or more.
func h100(nodes int) Comm {
	c := Comm{
		Ranks: 8 * nodes, Nodes: nodes, LocalRanks: 8, Channels: 24, NVLSChannels: 16, MinCC: 90, MaxCC: 90, X86: true, NVSwitch: true,
		Ring: flat(search.Ring, 4, 12, 30, 30, graph.NVL, 1), Tree: flat(search.Tree, 1, 12, 30, 30, graph.NVL, 1), NVLS: flat(search.NVLS, 5, 8, 40, 60, graph.NVL, 0),
	}
	if nodes > 1 {
		c.Channels = 16
		c.Ring, c.Tree, c.NVLS = flat(search.Ring, 4, 8, 48, 48, graph.NVL, 0), flat(search.Tree, 3, 8, 48, 48, graph.NVL, 0), flat(search.NVLS, 5, 8, 40, 48, graph.NVL, 0)
	}
	return c
}

func b200() Comm {
	c := h100(1)
	c.Channels, c.NVLSChannels, c.MinCC, c.MaxCC = 32, 24, 100, 100
	c.Ring, c.Tree, c.NVLS = flat(search.Ring, 4, 16, 45, 45, graph.NVL, 1), flat(search.Tree, 1, 16, 45, 45, graph.NVL, 1), flat(search.NVLS, 5, 8, 80, 90, graph.NVL, 0)
	return c
}

func a100(nodes int) Comm {
	c := Comm{
		Ranks: 8 * nodes, Nodes: nodes, LocalRanks: 8, Channels: 24, MinCC: 80, MaxCC: 80, X86: true, AMD: true, NVSwitch: true,
		Ring: flat(search.Ring, 4, 12, 20, 20, graph.NVL, 1), Tree: flat(search.Tree, 1, 12, 20, 20, graph.NVL, 1),
	}
	if nodes > 1 {
		c.Channels = 16
		c.Ring, c.Tree = flat(search.Ring, 4, 8, 24, 24, graph.NVL, 0), flat(search.Tree, 1, 8, 30, 24, graph.NVL, 0)
	}
	return c
}

func pcie(channels int, gbs float64, amd bool) Comm {
	return Comm{
		Ranks: 4, Nodes: 1, LocalRanks: 4, Channels: 2 * channels, MinCC: 89, MaxCC: 89, X86: true, AMD: amd,
		Ring: flat(search.Ring, 4, channels, gbs, gbs, graph.PHB, 1), Tree: flat(search.Tree, 1, channels, gbs, gbs, graph.PHB, 1),
	}
}

// Examples of NCCL 2.30.7 computed by another implementation of its model: latency
// and algorithm bandwidth with one decimal, and the choices as sizes grow by two.
func TestWorkedExamples(t *testing.T) {
	for _, c := range []struct {
		name    string
		comm    Comm
		cells   string // LL, LL128, Simple of Tree and of Ring, then NVLS or NVLSTree
		choices string
		gather  string
	}{
		{
			"8 H100", h100(1), "15.2/43.6 31.5/128.8 64.4/165.6 15.0/80.6 40.6/189.3 56.0/205.7 25.0/272.0",
			"64 Ring/LL 15.0, 2097152 NVLS/Simple 32.7",
			"64 Ring/LL 10.8, 8388608 Ring/LL128 49.5, 33554432 Ring/Simple 113.8",
		},
		{
			"2 nodes of 8 H100", h100(2), "25.2/16.6 48.5/124.8 92.4/140.8 40.0/20.8 75.2/156.6 131.6/204.8 66.8/246.2",
			"64 Tree/LL 25.2, 262144 Tree/LL128 52.0, 2097152 NVLSTree/Simple 75.3",
			"64 Ring/LL 23.3, 1048576 Ring/LL128 47.9, 67108864 Ring/Simple 233.8",
		},
		{
			"4 nodes of 8 H100", h100(4), "35.2/8.7 65.5/98.6 120.4/122.4 78.8/10.5 144.4/151.5 282.8/198.2 108.6/187.9",
			"64 Tree/LL 35.2, 262144 Tree/LL128 69.9, 8388608 NVLSTree/Simple 153.3, 1073741824 Ring/Simple 5813.6",
			"64 Ring/LL 42.7, 1048576 Ring/LL128 82.7, 134217728 Ring/Simple 484.2",
		},
		{
			"8 B200", b200(), "15.2/87.2 31.5/257.6 64.4/331.2 15.0/161.1 40.6/365.7 56.0/411.4 25.0/411.4",
			"64 Ring/LL 15.0, 4194304 NVLS/Simple 35.2",
			"64 Ring/LL 10.8, 16777216 Ring/LL128 50.2, 33554432 Ring/Simple 73.0",
		},
		{
			"8 A100", a100(1), "15.2/29.1 31.5/85.9 64.4/110.4 15.0/50.1 40.6/126.2 56.0/137.1",
			"64 Ring/LL 15.0, 4194304 Ring/LL128 73.8, 33554432 Ring/Simple 300.7",
			"64 Ring/LL 10.8, 4194304 Ring/LL128 43.9, 16777216 Ring/Simple 93.4",
		},
		{
			"2 nodes of 8 A100", a100(2), "25.2/11.2 48.5/80.0 92.4/94.4 68.0/12.0 78.0/85.3 204.4/102.4",
			"64 Tree/LL 25.2, 262144 Tree/LL128 54.0, 16777216 Ring/LL128 274.6, 134217728 Ring/Simple 1596.9",
			"64 Ring/LL 37.3, 262144 Ring/LL128 47.5, 67108864 Ring/Simple 434.1",
		},
		{
			"4 GPUs, Gen4, Intel", pcie(1, 20, false), "12.8/2.4 25.4/0.0 32.4/9.2 12.6/6.7 29.0/0.0 42.6/13.3",
			"64 Ring/LL 12.6, 524288 Ring/Simple 81.9",
			"64 Ring/LL 9.6, 524288 Ring/Simple 45.2",
		},
		{
			"4 GPUs, Gen4, AMD", pcie(2, 12, true), "12.8/2.9 25.4/0.0 32.4/11.0 12.6/8.0 29.0/0.0 42.6/16.0",
			"64 Ring/LL 12.6, 524288 Ring/Simple 75.4",
			"64 Ring/LL 9.6, 524288 Ring/Simple 41.9",
		},
	} {
		m, err := New(c.comm, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		checkTerms(t, m)
		var cells []string
		for _, x := range m.Tuning() {
			if x.Collective == AllReduce && (x.BWGBs > 0 || x.Algo == Tree || x.Algo == Ring) {
				cells = append(cells, fmt.Sprintf("%.1f/%.1f", x.LatencyUS, x.BWGBs))
			}
		}
		if got := strings.Join(cells, " "); got != c.cells {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.cells)
		}
		if got := choices(m, AllReduce); got != c.choices {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.choices)
		}
		if got := choices(m, AllGather); got != c.gather {
			t.Errorf("%s, all-gather: %s\nwant %s", c.name, got, c.gather)
		}
	}
}

// choices says from which size on NCCL takes what, and its time there.
func choices(m *Model, coll string) string {
	var out []string
	last := ""
	for bytes := int64(64); bytes <= 1<<30; bytes *= 2 {
		c, ok := m.Choose(coll, bytes)
		if !ok {
			return "none"
		}
		if what := c.Algo + "/" + c.Proto; what != last {
			out = append(out, fmt.Sprintf("%d %s %.1f", bytes, what, c.TimeUS))
			last = what
		}
	}
	return strings.Join(out, ", ")
}
