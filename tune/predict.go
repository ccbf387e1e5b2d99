package tune

import (
	"cmp"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/expect"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// How a job starts its ranks, which decides what a launch costs.
const (
	LaunchPerGPU = expect.PerGPU // one process per GPU
	LaunchSingle = expect.Single // one process for all, as nccl-tests -g N
)

// ModelOptions say what to predict for: version and settings of NCCL, how many
// hosts, and what is different from what was seen.
type ModelOptions struct {
	NCCL     graph.NCCLOptions
	Search   search.Options
	Model    model.Settings
	Settings []Setting // that the three hold, and those that none does
	WhatIf   graph.WhatIf
	Bound    bool // also what the links themselves allow

	Collectives []string // of estimates; empty: those that NCCL has a model for
	Sizes       []int64  // of estimates, in bytes; empty: DefaultSizes
	Launch      string   // "" is LaunchPerGPU
	Explain     bool     // also the terms of NCCL's figures
}

// Prediction is what NCCL would build on this host, or on several like it, and
// what its own cost model says of collectives on it.
type Prediction struct {
	View   *graph.NCCLView
	Search *search.Result
	Model  *model.Model
	// Fit is what is known of the times that runs really take.
	Fit *expect.Fit
	// Measured are runs of this machine that the fit was corrected by.
	Measured []expect.Point
	// Unknown is why there is no prediction: the facts do not carry one. It is
	// nil where there is one.
	Unknown error
	// Untimed is why there are channels but no times; nil where there are.
	Untimed error
	// Bound is what the links of all GPUs allow, beside what NCCL makes of them; nil
	// where it was not asked for.
	Bound *search.Physical

	Options ModelOptions
	topo    *graph.Topology
	floor   *model.Floor // see leastTimes
}

// Predict predicts for other settings, more hosts or another topology than were
// seen. An error tells that the options do not fit the host.
func Predict(inv *probe.Inventory, o ModelOptions) (Prediction, error) {
	topo, err := graph.BuildWhatIf(inv, o.WhatIf)
	if err != nil {
		return Prediction{}, err
	}
	if _, err := topo.NCCL(o.NCCL); err != nil {
		return Prediction{}, err
	}
	p := predict(topo, o)
	if o.Bound {
		b := search.ComputePhysical(topo, o.Search.Hosts)
		p.Bound = &b
	}
	return p, nil
}

func predict(topo *graph.Topology, o ModelOptions) Prediction {
	o.judge()
	p := Prediction{Options: o, topo: topo}
	if p.Unknown = nvlinksKnown(topo); p.Unknown != nil {
		return p
	}
	if p.View, p.Unknown = topo.NCCL(o.NCCL); p.Unknown != nil {
		return p
	}
	if p.Search, p.Unknown = search.Compute(p.View, o.Search); p.Unknown != nil {
		return p
	}
	var comm model.Comm
	if comm, p.Untimed = model.CommOf(p.Search); p.Untimed != nil {
		return p
	}
	if p.Model, p.Untimed = model.New(comm, o.Model); p.Untimed != nil {
		return p
	}
	p.Fit, p.Untimed = expect.Shipped()
	return p
}

// Estimates returns an estimate for each collective and size that the options ask
// for, and the floor that their lower bounds stand on; none without a model.
func (p *Prediction) Estimates() ([]model.Estimate, model.Floor) {
	if p.Model == nil || p.Search.Ranks < 2 {
		return nil, model.Floor{}
	}
	floor := p.leastTimes()
	times := newCurves(p.expectation())
	var out []model.Estimate
	for _, c := range p.Options.collectives() {
		for _, bytes := range p.Options.sizes() {
			e := p.Model.Estimate(c, bytes, &floor)
			times.expectTimes(&e)
			out = append(out, e)
		}
	}
	return out, floor
}

// leastTimes computes the floor once.
func (p *Prediction) leastTimes() model.Floor {
	if p.floor == nil {
		physical := p.Bound
		if physical == nil {
			b := search.ComputePhysical(p.topo, p.Options.Search.Hosts)
			physical = &b
		}
		f := model.FloorOf(*physical, p.Search)
		p.floor = &f
	}
	return *p.floor
}

func (o *ModelOptions) launch() string { return cmp.Or(o.Launch, LaunchPerGPU) }

func (o *ModelOptions) collectives() []string {
	if len(o.Collectives) > 0 {
		return o.Collectives
	}
	return model.Modelled()
}

func (o *ModelOptions) sizes() []int64 {
	if len(o.Sizes) > 0 {
		return o.Sizes
	}
	sizes, _ := ParseSizes(DefaultSizes)
	return sizes
}
