package expect

import (
	"math"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph/model"
)

func h200(ranks int) Machine {
	return Machine{CC: 90, Ranks: ranks, Nodes: 1, LocalRanks: ranks, Link: NVLink, LinkGBs: 450, LinkName: "18 NVLinks of each GPU", Launch: PerGPU}
}

func shipped(t testing.TB) *Fit {
	t.Helper()
	f, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Machines of the kinds that were measured, against figures that others published.
func TestExpected(t *testing.T) {
	over := func(m Machine, nodes int, gbs float64) Machine {
		m.Ranks, m.Nodes, m.NetGBs = m.Ranks*nodes, nodes, gbs
		return m
	}
	b200 := h200(8)
	b200.CC, b200.LinkGBs = 100, 900
	for _, c := range []struct {
		name      string
		m         Machine
		run       Run
		busbw     float64 // GB/s
		tolerance float64
	}{
		{"8 H200, NVLS", h200(8), Run{model.AllReduce, model.NVLS, model.Simple, 16, 8 << 30}, 478, 0.04},
		{"8 H200, ring", h200(8), Run{model.AllReduce, model.Ring, model.Simple, 24, 8 << 30}, 366, 0.04},
		{"5 H200, NVLS", h200(5), Run{model.AllReduce, model.NVLS, model.Simple, 16, 8 << 30}, 414, 0.05},
		{"4 H200, ring", h200(4), Run{model.AllReduce, model.Ring, model.Simple, 24, 8 << 30}, 364, 0.04},
		{"8 B200, ring", b200, Run{model.AllReduce, model.Ring, model.Simple, 24, 8 << 30}, 682, 0.06},
		{"4 × 8 H100, ring", over(h200(8), 4, 400), Run{model.AllReduce, model.Ring, model.Simple, 16, 8 << 30}, 391, 0.08},
	} {
		x := shipped(t).For(c.m).Curve(c.run.Collective, c.run.Algo, c.run.Proto).At(c.run.Bytes, c.run.Channels)
		if off := math.Abs(x.BusBWGBs/c.busbw - 1); !x.Calibrated || off > c.tolerance || x.LowUS >= x.TimeUS || x.TimeUS >= x.HighUS {
			t.Errorf("%s: %+v, measured %g GB/s", c.name, x, c.busbw)
		}
	}
}

// Outside what was fitted there is no estimate.
func TestNotCalibrated(t *testing.T) {
	change := func(f func(*Machine)) Machine {
		m := h200(8)
		f(&m)
		return m
	}
	for _, c := range []struct {
		name  string
		m     Machine
		run   Run
		bound bool
	}{
		{"more ranks than seen", h200(16), Run{model.AllReduce, model.Ring, model.Simple, 24, 1 << 30}, true},
		{"a size between", h200(8), Run{model.AllReduce, model.Ring, model.LL, 8, 256 << 10}, true},
		{"another launch, small", change(func(m *Machine) { m.Launch = Single }), Run{model.AllReduce, model.Ring, model.LL, 1, 8}, true},
		{"a GPU never seen", change(func(m *Machine) { m.CC = 70 }), Run{model.AllReduce, model.Ring, model.Simple, 24, 1 << 30}, false},
		{"network not known", change(func(m *Machine) { m.Nodes, m.Ranks = 2, 16 }), Run{model.AllReduce, model.Ring, model.Simple, 16, 1 << 30}, false},
		{"sockets", change(func(m *Machine) { m.Nodes, m.Ranks, m.NetGBs, m.Fabric = 2, 16, 12.5, Sockets }), Run{model.AllReduce, model.Ring, model.Simple, 16, 1 << 30}, false},
		{"links not known", change(func(m *Machine) { m.LinkGBs = 0 }), Run{model.AllReduce, model.Ring, model.Simple, 24, 1 << 30}, false},
		{"PAT", h200(8), Run{model.AllGather, model.PAT, model.Simple, 24, 1 << 30}, false},
		{"one rank", h200(1), Run{model.AllReduce, model.Ring, model.Simple, 24, 1 << 30}, false},
	} {
		curve := shipped(t).For(c.m).Curve(c.run.Collective, c.run.Algo, c.run.Proto)
		x := curve.At(c.run.Bytes, c.run.Channels)
		if x.Calibrated || x.TimeUS != 0 || x.BusBWGBs != 0 || x.Why == "" || (x.HighUS > 0) != c.bound {
			t.Errorf("%s: %+v", c.name, x)
		}
	}
}

// The terms add up to what is expected, in words.
func TestTerms(t *testing.T) {
	c := shipped(t).For(h200(8)).Curve(model.AllReduce, model.Ring, model.Simple)
	terms, bottleneck := c.Terms(1<<30, 24)
	kernel, launch := 0.0, 0.0
	for _, x := range terms {
		if x.Name == "launch" {
			launch = x.Value
			continue
		}
		kernel += x.Value
	}
	if us := c.At(1<<30, 24).TimeUS; math.Abs(norm(launch, kernel, launchNorm)/us-1) > 1e-9 {
		t.Errorf("terms make %g µs, expected %g", norm(launch, kernel, launchNorm), us)
	}
	if !strings.Contains(bottleneck, "18 NVLinks of each GPU: 1.75 bytes per byte") {
		t.Errorf("bottleneck %q", bottleneck)
	}
	// One channel is held back by itself.
	if _, one := c.Terms(1<<30, 1); !strings.HasPrefix(one, "the channels: 1 of ") {
		t.Errorf("bottleneck %q", one)
	}
}

// What the busiest node sends per byte: complementary binary trees.
func TestTreeLoad(t *testing.T) {
	for nodes, want := range map[int]float64{1: 0, 2: 1, 3: 1.5, 4: 2, 64: 2} {
		if got := treeLoad(nodes); got != want {
			t.Errorf("%d nodes: %g, want %g", nodes, got, want)
		}
	}
}

func TestPublishedRuns(t *testing.T) {
	m := h200(8)
	runs := PublishedRuns(points(t), "NVIDIA H200", m, model.AllReduce)
	if len(runs) < 5 || runs[2].Bytes != 1<<30 || runs[2].N != 2 || runs[2].Min != 463.6 || runs[2].Max != 467.7 || len(runs[2].Sources) != 2 {
		t.Errorf("8 H200: %+v", runs)
	}
	for _, c := range []struct {
		gpu string
		m   Machine
	}{
		{"NVIDIA H200", h200(7 + 9)}, {"NVIDIA GH200", m}, {"NVIDIA H200", Machine{CC: 90, Ranks: 8, Nodes: 1, Link: NVLink, LinkGBs: 300}},
	} {
		if runs := PublishedRuns(points(t), c.gpu, c.m, model.AllReduce); len(runs) > 0 {
			t.Errorf("%s %+v: %+v", c.gpu, c.m, runs)
		}
	}
	if !named("NVIDIA H100 80GB HBM3", "H100") || named("NVIDIA A100-SXM4-40GB", "A100-PCIe") || named("NVIDIA GB200", "B200") {
		t.Error("names")
	}
}

// The points that ship are sound: a rate below that of the links.
func TestPoints(t *testing.T) {
	for _, p := range points(t) {
		factor, ok := model.BusFactor(p.Collective, p.Ranks)
		if gbs := float64(p.Bytes) / (1000 * p.TimeUS) * factor; !ok || p.LinkGBs > 0 && gbs > 1.1*p.LinkGBs && p.LocalRanks > 1 {
			t.Errorf("%s %s %d bytes: %g GB/s over links of %g", p.ID, p.Curve, p.Bytes, gbs, p.LinkGBs)
		}
		if p.Published() && !strings.HasPrefix(p.Source, "https://") || p.GPU == "" || p.LowUS > p.TimeUS || p.HighUS > 0 && p.HighUS < p.TimeUS {
			t.Errorf("%+v", p)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	c := shipped(b).For(h200(8)).Curve(model.AllReduce, model.Ring, model.Simple)
	for b.Loop() {
		c.At(1<<30, 24)
	}
}
