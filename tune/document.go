package tune

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/expect"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// ModelDoc is the document of ncclmap model.
type ModelDoc struct {
	Schema       string                 `json:"schema"`
	NCCL         string                 `json:"nccl_version"` // whose model this is
	Verified     bool                   `json:"verified"`     // compared with that version's own results
	Checked      []model.Check          `json:"checked"`
	Unknown      string                 `json:"unknown,omitempty"` // why there is no prediction, or no times
	Launch       string                 `json:"launch"`
	WhatIf       []string               `json:"what_if"` // what is changed from what was seen
	Settings     []Setting              `json:"settings"`
	Hosts        []string               `json:"hosts"` // that were seen
	Nodes        int                    `json:"nodes"` // as NCCL counts them
	Ranks        int                    `json:"ranks"`
	Channels     probe.Opt[int]         `json:"channels"` // of the communicator
	NVLSChannels int                    `json:"nvls_channels"`
	P2PChannels  int                    `json:"p2p_channels"`
	PerPeer      int                    `json:"p2p_channels_per_peer"`
	Members      [][]int                `json:"members"` // the nodes of the hosts that were seen: NCCL dev numbers of their GPUs
	Graphs       []search.Graph         `json:"graphs"`
	Bound        *search.Physical       `json:"bound,omitempty"`       // what the links of all GPUs allow
	Bottlenecks  []model.Bottleneck     `json:"bottlenecks,omitempty"` // of the graphs
	Costs        []LinkCost             `json:"costs"`                 // of links below their maximum
	Paths        ModelPaths             `json:"paths"`
	Tuning       []model.Tuning         `json:"tuning"`
	Estimates    []model.Estimate       `json:"estimates"`
	Bounds       EstimateBounds         `json:"bounds"`
	Terms        []Explained            `json:"terms,omitempty"` // of the estimates
	Published    []expect.Published     `json:"published"`       // runs of this machine's type
	Assumptions  []graph.NCCLAssumption `json:"assumptions"`
	Unmodelled   []string               `json:"not_modelled"` // what bears on it and is no part of it
}

// ModelPaths holds the paths as NCCL's model sees them within each node, in its
// dev numbers.
type ModelPaths struct {
	GPUs []graph.NCCLPath `json:"gpu_gpu"`
	Nets []graph.NCCLPath `json:"gpu_net"`
}

// EstimateBounds says what the bounds of estimates stand on.
type EstimateBounds struct {
	Low  string `json:"low"`
	High string `json:"high"`
}

// Doc makes the document: graphs, paths and channels, NCCL's own figures, and
// estimates by size.
func (p *Prediction) Doc() ModelDoc {
	d := ModelDoc{
		Schema: "ncclmap.model/v1", NCCL: p.version().String(), Verified: p.Verified(), Checked: model.Checks(),
		Launch: p.Options.launch(), WhatIf: append([]string{}, p.Options.WhatIf.Lines()...), Settings: append([]Setting{}, p.Options.Settings...), Hosts: p.Hosts, Nodes: max(1, len(p.Hosts)), Ranks: p.GPUs,
		Members: [][]int{}, Graphs: []search.Graph{}, Paths: ModelPaths{GPUs: []graph.NCCLPath{}, Nets: []graph.NCCLPath{}},
		Costs: []LinkCost{}, Tuning: []model.Tuning{}, Estimates: []model.Estimate{}, Published: []expect.Published{}, Bounds: EstimateBounds{"none", "none"}, Assumptions: []graph.NCCLAssumption{},
		Unmodelled: append([]string{}, p.Unmodelled()...),
	}
	for i := range d.Settings {
		if p.Bears(d.Settings[i]) {
			d.Settings[i].Why = "not modelled: the prediction does not hold with it"
		}
	}
	d.describe(p)
	switch {
	case p.Unknown != nil:
		d.Unknown = p.Unknown.Error()
		return d
	case p.Untimed != nil:
		d.Unknown = p.Untimed.Error()
	}
	r := p.Search
	d.Ranks, d.Nodes, d.Graphs = r.Ranks, r.Nodes, r.Graphs
	d.NVLSChannels, d.P2PChannels, d.PerPeer = r.NVLSChannels, r.P2PChannels, r.PerPeer
	if r.Channels > 0 {
		d.Channels = probe.Some(r.Channels)
	}
	d.Bound = p.Bound
	costs, _ := p.Costs()
	d.Costs = append(d.Costs, costs...)
	if p.Options.Explain {
		d.Bottlenecks = model.Bottlenecks(r)
	}
	d.figures(p)
	return d
}

// describe adds the nodes of the hosts that were seen, the paths of the first, and
// what was assumed.
func (d *ModelDoc) describe(p *Prediction) {
	d.Assumptions = append(d.Assumptions, p.Assumptions()...)
	for i, v := range p.views {
		for k := range v.Groups {
			part := v.Part(k)
			if i == 0 {
				d.Paths.GPUs = append(d.Paths.GPUs, part.Paths()...)
				d.Paths.Nets = append(d.Paths.Nets, part.NetPaths()...)
			}
			devs := []int{}
			for i := range part.GPUs {
				devs = append(devs, part.Dev(i))
			}
			slices.Sort(devs)
			d.Members = append(d.Members, devs)
		}
	}
}

// figures adds NCCL's own figures and the estimates. The terms of the figures
// stand only where they are asked for.
func (d *ModelDoc) figures(p *Prediction) {
	if p.Model == nil {
		return
	}
	for _, t := range p.Model.Tuning() {
		if !p.Options.Explain {
			t.BWTerms, t.LatencyTerms = nil, nil
		}
		d.Tuning = append(d.Tuning, t)
	}
	estimates, floor := p.Estimates()
	d.Estimates = append(d.Estimates, estimates...)
	d.Bounds.Low = floor.Basis
	if p.Fit != nil {
		d.Bounds.High = highBound(p.Fit.Far)
	}
	if p.Options.Explain {
		d.Terms = p.Explain(estimates)
	}
	if published, err := p.Published(); err == nil {
		d.Published = append(d.Published, published...)
	}
}

// Verified reports that the model was compared with that version's own results.
func (p *Prediction) Verified() bool {
	return p.Asked <= graph.NewestNCCL && model.Verified(p.version())
}

// version is the NCCL version that the prediction is for.
func (p *Prediction) version() graph.NCCLVersion { return p.Options.NCCL.Version }
