package tune

import (
	"testing"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
)

func predicted(t *testing.T, machine string, o ModelOptions) Prediction {
	t.Helper()
	m, err := fixtures.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Predict(m.Inventory, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The machines that ship, as the expectation sees them.
func TestExpectedMachine(t *testing.T) {
	for _, c := range []struct {
		machine string
		nodes   int
		link    string
		linkGBs float64
		netGBs  float64
	}{
		{"2xh200-vm", 1, "NVLink", 450, 0},
		{"a100x8", 1, "NVLink", 300, 0},
		{"h100x8", 4, "NVLink", 450, 400},
		{"b200x8", 1, "NVLink", 900, 0},
		{"v100x8-cubemesh", 1, "NVLink", 150, 0},
		{"rtx4090x8", 1, "host memory", 5, 0},
	} {
		p := predicted(t, c.machine, ModelOptions{})
		p.Options.Search.Hosts = c.nodes
		p = predict(p.topos, p.Options)
		m := p.expectation().Machine()
		if string(m.Link) != c.link || m.LinkGBs != c.linkGBs || c.nodes > 1 && m.NetGBs != c.netGBs || m.Launch != LaunchPerGPU {
			t.Errorf("%s: %+v", c.machine, m)
		}
	}
}

// What is told to others is what the estimates say, with NCCL's choice filled in.
func TestExpectedFunction(t *testing.T) {
	p := predicted(t, "h200x8", ModelOptions{Collectives: []string{model.AllReduce, model.AllToAll}, Sizes: []int64{64 << 20, 1 << 30}})
	expected := p.Expected()
	estimates, _ := p.Estimates()
	for _, e := range estimates {
		got := expected(e.Collective, "", "", 0, e.Bytes)
		if !e.Calibrated || tidy(got.TimeUS) != e.TimeUS.Or(0) || e.LowUS.Or(0) > e.TimeUS.Or(0) || e.HighUS.Or(0) < e.TimeUS.Or(0) {
			t.Errorf("%+v: %+v", e, got)
		}
	}
	ring, nvls := expected(model.AllReduce, model.Ring, model.Simple, 0, 1<<30), expected(model.AllReduce, "", "", 0, 1<<30)
	if !ring.Calibrated || ring.TimeUS <= nvls.TimeUS {
		t.Errorf("ring %+v, NVLS %+v", ring, nvls)
	}
}

// Runs of other machines do not count.
func TestUseMeasured(t *testing.T) {
	p := predicted(t, "h200x8", ModelOptions{})
	run := func(ranks int, count int64) probe.Sample {
		return probe.Sample{Collective: model.AllReduce, Bytes: 1 << 30, Ranks: probe.Some(ranks), Nodes: probe.Some(1), TimeUS: 5000, Count: count}
	}
	n, err := p.UseMeasured([]probe.Sample{run(8, 0), run(4, 0), run(8, 3)})
	if err != nil || n != 1 || p.Measured[0].Algo != model.NVLS {
		t.Fatalf("%d runs, %v: %+v", n, err, p.Measured)
	}
	before := predicted(t, "h200x8", ModelOptions{})
	was, is := before.Expected()(model.AllReduce, "", "", 0, 1<<30), p.Expected()(model.AllReduce, "", "", 0, 1<<30)
	if is.TimeUS <= was.TimeUS || is.TimeUS > 5000 {
		t.Errorf("expected %g µs, then %g; measured 5000", was.TimeUS, is.TimeUS)
	}
}
