package tune

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

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
	NCCL      graph.NCCLOptions
	Search    search.Options
	Model     model.Settings
	Settings  []Setting // that the three hold, and those that none does
	Conflicts []string  // why settings of the sources are not used
	WhatIf    graph.WhatIf
	Bound     bool // also what the links themselves allow

	Collectives []string // of estimates; empty: those that NCCL has a model for
	Sizes       []int64  // of estimates, in bytes; empty: DefaultSizes
	Launch      string   // "" is LaunchPerGPU
	Explain     bool     // also the terms of NCCL's figures
}

// Prediction is what NCCL would build on this host, on several like it or on
// several hosts, and what its own cost model says of collectives there.
type Prediction struct {
	Hosts  []string        // that were seen
	GPUs   int             // on them
	View   *graph.NCCLView // of the first host
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
	Asked   graph.NCCLVersion // that the options name; Options has the one that is used
	domain  string            // how hosts like one were taken for NVLink domains
	topos   []*graph.Topology
	views   []*graph.NCCLView // hosts of one NVLink domain share one
	floor   *model.Floor      // see leastTimes
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
	topos, like, err := multiply(topo, inv, &o)
	if err != nil {
		return Prediction{}, err
	}
	p := predict(topos, o)
	if like != "" {
		p.Hosts, p.domain = p.Hosts[:1], like
	}
	if o.Bound {
		b := p.physical()
		p.Bound = &b
	}
	return p, nil
}

// domainGPUs is the most GPUs that one NVLink domain joins today: NVL72.
const domainGPUs = 72

// multiply is several hosts like one that is in an NVLink domain: together in one as
// far as its GPUs reach, else in more. Others it leaves to the search. what says how
// they were taken.
func multiply(t *graph.Topology, inv *probe.Inventory, o *ModelOptions) (topos []*graph.Topology, what string, err error) {
	topos = []*graph.Topology{t}
	n, per := o.Search.Hosts, len(inv.GPUs)
	if _, ok := t.Domain(o.NCCL); !ok || n < 2 || per == 0 || n > maxDomainHosts {
		if ok && n >= 2 {
			what = fmt.Sprintf("the %d hosts are taken as separate NVLink domains", n)
		}
		return topos, what, nil
	}
	each := max(1, domainGPUs/per)
	for i := 1; i < n; i++ {
		like := *inv
		like.GPUs = slices.Clone(inv.GPUs)
		for g := range like.GPUs {
			f := *like.GPUs[g].Fabric
			f.ClusterUUID = fmt.Sprintf("%s/%d", f.ClusterUUID, i/each)
			if i/each == 0 {
				f.ClusterUUID = like.GPUs[g].Fabric.ClusterUUID
			}
			like.GPUs[g].Fabric = &f
		}
		next, err := graph.BuildWhatIf(&like, o.WhatIf)
		if err != nil {
			return nil, "", err
		}
		topos = append(topos, next)
	}
	o.Search.Hosts = 1
	return topos, fmt.Sprintf("the %d hosts like this one are taken as %s, of up to %d GPUs each", n, plural((n+each-1)/each, "NVLink domain"), domainGPUs), nil
}

// maxDomainHosts bounds hosts that are built one by one.
const maxDomainHosts = 288

// PredictHosts predicts for one job on all GPUs of several hosts. Ranks follow the
// hosts, those of one NVLink domain together.
func PredictHosts(hosts []*probe.Inventory, o ModelOptions) (Prediction, error) {
	if len(hosts) == 1 {
		return Predict(hosts[0], o)
	}
	switch {
	case o.Search.Hosts > 1:
		return Prediction{}, fmt.Errorf("%d hosts like one: the sources show %d already; choose one", o.Search.Hosts, len(hosts))
	case len(o.WhatIf.Without)+len(o.WhatIf.Rates) > 0:
		return Prediction{}, fmt.Errorf("what might be instead: the sources show %d hosts; choose one", len(hosts))
	}
	topos := make([]*graph.Topology, len(hosts))
	for i, inv := range hosts {
		var err error
		if topos[i], err = graph.Build(inv); err != nil {
			return Prediction{}, fmt.Errorf("host %s: %w", inv.Host.Name, err)
		}
	}
	if _, err := graph.NCCLHosts(topos, o.NCCL); err != nil {
		return Prediction{}, err
	}
	p := predict(topos, o)
	if o.Bound {
		b := p.physical()
		p.Bound = &b
	}
	return p, nil
}

func predict(topos []*graph.Topology, o ModelOptions) Prediction {
	asked := o.NCCL.Version
	o.NCCL.Version = min(asked, graph.NewestNCCL)
	o.judge()
	p := Prediction{Options: o, Asked: asked, topos: topos}
	for _, t := range topos {
		p.Hosts = append(p.Hosts, t.Inv.Host.Name)
		p.GPUs += len(t.Inv.GPUs)
		if err := nvlinksKnown(t); err != nil && p.Unknown == nil {
			p.Unknown = p.of(t, err)
		}
	}
	if err := o.NCCL.Version.Modelled(); err != nil {
		p.Unknown = err
	}
	if p.Unknown != nil {
		return p
	}
	if p.views, p.Unknown = graph.NCCLHosts(topos, o.NCCL); p.Unknown != nil {
		return p
	}
	p.View = p.views[0]
	if len(topos) == 1 {
		p.Search, p.Unknown = search.Compute(p.View, o.Search)
	} else {
		p.Search, p.Unknown = search.ComputeHosts(p.views, o.Search)
	}
	if p.Unknown != nil {
		return p
	}
	var comm model.Comm
	if comm, p.Untimed = model.CommOf(p.Search); p.Untimed != nil {
		return p
	}
	p.Model, p.Untimed = model.New(comm, o.Model)
	if model.Refused(p.Untimed) {
		p.Unknown, p.Untimed, p.Search = p.Untimed, nil, nil
	}
	if p.Model == nil {
		return p
	}
	p.Fit, p.Untimed = expect.Shipped()
	return p
}

// Links names the links of the first host as a what-if takes them, each with its
// kind and rate.
func (p *Prediction) Links() (out []string) {
	rates, kinds := map[string]probe.Rate{}, map[string]string{}
	for _, l := range p.topos[0].Links {
		rate := l.Current
		if !rate.Known() {
			rate = l.Max
		}
		rates[l.Key()] += l.Set.Or(rate.Or(0))
		kinds[l.Key()] = string(l.Kind)
	}
	for _, name := range slices.Sorted(maps.Keys(rates)) {
		rate := "rate unknown"
		if r := rates[name]; r > 0 {
			rate = fmt.Sprintf("%.4g GB/s", r.GBs())
		}
		out = append(out, fmt.Sprintf("%s (%s, %s)", name, kinds[name], rate))
	}
	return out
}

// of names the host that an error is about, where there are several.
func (p *Prediction) of(t *graph.Topology, err error) error {
	if len(p.topos) == 1 {
		return err
	}
	return fmt.Errorf("host %s: %w", t.Inv.Host.Name, err)
}

// physical is what the links of all GPUs allow.
func (p *Prediction) physical() search.Physical {
	topos := slices.Clone(p.topos)
	for i, t := range topos {
		topos[i] = p.allowed(t)
	}
	if len(topos) == 1 {
		return search.ComputePhysical(topos[0], p.Options.Search.Hosts)
	}
	return search.ComputePhysicalHosts(topos)
}

// allowed is a host without the adapters that NCCL_IB_HCA leaves out whole.
func (p *Prediction) allowed(t *graph.Topology) *graph.Topology {
	w := graph.WhatIf{Without: slices.Clone(p.Options.WhatIf.Without), Rates: p.Options.WhatIf.Rates}
	for _, n := range t.Of(graph.KindHCA) {
		if !slices.ContainsFunc(n.HCA.Ports, func(port probe.HCAPort) bool {
			return p.Options.NCCL.HCAs.Allows(n.HCA.Name, probe.Some(port.Port))
		}) && len(n.HCA.Ports) > 0 {
			w.Without = append(w.Without, n.Key)
		}
	}
	if len(w.Without) == len(p.Options.WhatIf.Without) {
		return t
	}
	if less, err := graph.BuildWhatIf(t.Inv, w); err == nil {
		return less
	}
	return t // a rate of one that is left out is set: the bound holds, if lower
}

// Assumptions lists what was taken of the hosts that no source states, each once.
func (p *Prediction) Assumptions() (out []graph.NCCLAssumption) {
	seen := map[graph.NCCLAssumption]bool{}
	add := func(a graph.NCCLAssumption) {
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	switch {
	case p.Asked > graph.NewestNCCL:
		add(graph.NCCLAssumption{Subject: "nccl", Text: fmt.Sprintf("%v is newer than all that is known: the newest known, %v, is used instead", p.Asked, graph.NewestNCCL)})
	case p.Asked != 0 && !p.Asked.AtLeast(21, 5) && p.Asked.Modelled() == nil:
		add(graph.NCCLAssumption{Subject: "nccl", Text: fmt.Sprintf("what changed before 2.21.5 is not known: %v is taken as that", p.Asked)})
	}
	if p.domain != "" {
		add(graph.NCCLAssumption{Subject: "host", Text: p.domain})
	}
	for _, c := range p.Options.Conflicts {
		add(graph.NCCLAssumption{Subject: "settings", Text: c})
	}
	for _, v := range p.views {
		for _, a := range v.Assumptions {
			add(a)
		}
	}
	if p.Search != nil && p.Search.NetAssumed {
		add(graph.NCCLAssumption{Subject: "host", Text: "no network is known: NCCL always finds one, and one interface of 10 Gb/s is taken"})
	}
	return out
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
			b := p.physical()
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
