package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/ncclmap/ncclmap/graph/expect"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
)

// highBound says what the upper bounds of estimates stand on.
func highBound(far float64) string {
	return fmt.Sprintf("where calibrated, the 90 %% interval; else %.1f times what the form says, which covered 96 %% of points on GPU generations that a fit had never seen; none where the form knows nothing of it", math.Exp(far))
}

// expectation is what we expect of the communicator, beside what NCCL believes; nil
// where the fit does not load or there is nobody to talk to.
func (p *Prediction) expectation() *expect.Expectation {
	if p.Fit == nil || p.Search == nil || p.Search.Ranks < 2 {
		return nil
	}
	return p.Fit.For(expect.MachineOf(p.Search, p.Options.launch()))
}

// curves resolves curves once each.
type curves struct {
	e    *expect.Expectation
	seen map[[3]string]*expect.Curve
}

func newCurves(e *expect.Expectation) *curves { return &curves{e, map[[3]string]*expect.Curve{}} }

func (c *curves) of(collective, algo, proto string) *expect.Curve {
	key := [3]string{collective, algo, proto}
	if c.seen[key] == nil {
		c.seen[key] = c.e.Curve(collective, algo, proto)
	}
	return c.seen[key]
}

// run is the curve of an estimate and the channels that it runs over.
func (c *curves) run(e *model.Estimate) (curve *expect.Curve, channels int, ok bool) {
	if choice, chosen := e.Choice.Get(); chosen {
		return c.of(e.Collective, choice.Algo, choice.Proto), choice.ChannelsUsed, true
	}
	if slices.Contains(model.Modelled(), e.Collective) {
		return nil, 0, false
	}
	return c.of(e.Collective, "", p2pProto(e.Bytes)), 0, true
}

// p2pLL is NCCL's default of NCCL_P2P_LL_THRESHOLD, up to which sends go by LL.
const p2pLL = 16384

// expectTimes sets what we expect of an estimate.
func (c *curves) expectTimes(e *model.Estimate) {
	curve, channels, ok := c.run(e)
	if !ok {
		return
	}
	x := curve.At(e.Bytes, channels)
	e.Calibrated = x.Calibrated
	if x.HighUS > 0 {
		e.HighUS = probe.Some(tidy(x.HighUS))
	}
	if x.Calibrated {
		e.TimeUS, e.BusBWGBs = probe.Some(tidy(x.TimeUS)), probe.Some(tidy(x.BusBWGBs))
		e.LowUS = probe.Some(max(tidy(x.LowUS), e.LowUS.Or(0)))
	} else {
		e.Uncalibrated = x.Why
	}
}

func tidy(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// Explained is an expectation in its terms.
type Explained struct {
	Collective string       `json:"collective"`
	Bytes      int64        `json:"bytes"`
	Algo       string       `json:"algo,omitempty"`
	Proto      string       `json:"proto"`
	Calibrated bool         `json:"calibrated"`
	Terms      []model.Term `json:"terms"`
	Bottleneck string       `json:"bottleneck"` // of the bytes
}

// Explain takes the expectation apart at the sizes where NCCL's choice changes and
// at the last one.
func (p *Prediction) Explain(estimates []model.Estimate) (out []Explained) {
	e := p.expectation()
	if e == nil {
		return nil
	}
	curves := newCurves(e)
	for i := range estimates {
		x := &estimates[i]
		curve, channels, ok := curves.run(x)
		if !ok {
			continue
		}
		if i > 0 && i+1 < len(estimates) && estimates[i+1].Collective == x.Collective && estimates[i-1].Collective == x.Collective {
			if before, _, _ := curves.run(&estimates[i-1]); before == curve {
				continue
			}
		}
		terms, bottleneck := curve.Terms(x.Bytes, channels)
		if len(terms) == 0 {
			continue
		}
		_, algo, proto := curve.Names()
		out = append(out, Explained{x.Collective, x.Bytes, algo, proto, x.Calibrated, terms, bottleneck})
	}
	return out
}

// Published returns the published runs of this machine's type for the collectives
// that the options ask for.
func (p *Prediction) Published() ([]expect.Published, error) {
	e := p.expectation()
	if e == nil {
		return nil, nil
	}
	points, err := expect.PublishedPoints()
	if err != nil {
		return nil, err
	}
	var out []expect.Published
	for _, c := range p.Options.collectives() {
		out = append(out, expect.PublishedRuns(points, p.gpuName(), e.Machine(), c)...)
	}
	return out, nil
}

// gpuName is the name of the GPUs where all have one.
func (p *Prediction) gpuName() (name string) {
	for i, g := range p.View.GPUs {
		n := p.View.Nodes[g].Node
		if n == nil || n.GPU == nil || i > 0 && n.GPU.Name != name {
			return ""
		}
		name = n.GPU.Name
	}
	return name
}

// Expected returns a function that tells what to expect of an operation, for whoever
// compares it with measured runs; nil where there is no prediction. An algorithm that
// is "" is the one that NCCL chooses, channels that are 0 as many as it takes.
func (p *Prediction) Expected() func(collective, algo, proto string, channels int, bytes int64) expect.Estimate {
	e := p.expectation()
	if e == nil || p.Model == nil {
		return nil
	}
	times := newCurves(e)
	return func(collective, algo, proto string, channels int, bytes int64) expect.Estimate {
		run := p.run(expect.Run{Collective: collective, Algo: algo, Proto: proto, Channels: channels, Bytes: bytes})
		return times.of(collective, run.Algo, run.Proto).At(bytes, run.Channels)
	}
}

// run fills in what a run does not state: by NCCL's choice, and for sends by their
// size.
func (p *Prediction) run(r expect.Run) expect.Run {
	bytes := p.Model.Bytes(r.Collective, r.Bytes)
	c, chosen := p.Model.Choose(r.Collective, bytes)
	switch {
	case r.Algo == "" && chosen:
		r.Algo, r.Proto, r.Channels = c.Algo, c.Proto, c.ChannelsUsed
	case r.Algo == "":
		r.Proto = p2pProto(r.Bytes)
	case r.Channels == 0:
		for _, c := range p.Model.Alternatives(r.Collective, bytes) {
			if c.Algo == r.Algo && c.Proto == r.Proto {
				r.Channels = c.ChannelsUsed
			}
		}
	}
	return r
}

func p2pProto(bytes int64) string {
	if bytes <= p2pLL {
		return model.LL
	}
	return model.Simple
}
