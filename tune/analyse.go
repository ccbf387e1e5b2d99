package tune

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// Analysis is everything that follows from one inventory.
type Analysis struct {
	Inv   *probe.Inventory
	Topo  *graph.Topology
	Check check.Result
	Ring  Prediction
	Plan  Plan
}

// ModelOptions say what to predict for: version and settings of NCCL, how many
// hosts, and what is different from what was seen.
type ModelOptions struct {
	NCCL   graph.NCCLOptions
	Search search.Options
	WhatIf graph.WhatIf
	Bound  bool // also what the links themselves allow
}

// Prediction is what NCCL would build on this host, or on several like it, and
// what its own model says of a ring all-reduce.
type Prediction struct {
	View   *graph.NCCLView
	Search *search.Result
	Tuning []model.Tuning
	// Unknown is why there is no prediction: the facts do not carry one. It is
	// nil where there is one.
	Unknown error
	// Untimed is why there are channels but no times; nil where there are.
	Untimed error
	// Bound is what the links of all GPUs allow, beside what NCCL makes of them; nil
	// where it was not asked for.
	Bound *search.Physical
}

// Analyse runs the pure part of the pipeline: topology, rules, prediction,
// settings. Only an invalid inventory is an error; what cannot be predicted
// says why.
func Analyse(inv *probe.Inventory) (*Analysis, error) {
	topo, err := graph.Build(inv)
	if err != nil {
		return nil, err
	}
	a := &Analysis{Inv: inv, Topo: topo, Check: check.Run(topo, check.All())}
	a.Ring = predict(topo, ModelOptions{})
	a.Plan = Advise(topo, a.Check)
	return a, nil
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

func predict(topo *graph.Topology, o ModelOptions) (p Prediction) {
	if p.Unknown = nvlinksKnown(topo); p.Unknown != nil {
		return p
	}
	if p.View, p.Unknown = topo.NCCL(o.NCCL); p.Unknown != nil {
		return p
	}
	if p.Search, p.Unknown = search.Compute(p.View, o.Search); p.Unknown != nil {
		return p
	}
	if p.Search.Nodes > 1 {
		p.Untimed = fmt.Errorf("times are modelled for one node only, and NCCL makes %d of it", p.Search.Nodes)
		return p
	}
	p.Tuning, p.Unknown = model.AllReduceRing(p.Search)
	return p
}

// nvlinksKnown refuses a prediction over PCIe where NVLinks may exist that no
// source shows.
func nvlinksKnown(topo *graph.Topology) error {
	gpus := topo.Of(graph.KindGPU)
	if len(gpus) == 0 {
		return errors.New("no GPU seen")
	}
	for i, a := range gpus {
		for _, b := range gpus[i+1:] {
			_, told := topo.Relation(a, b)
			if told || linksKnown(a) && linksKnown(b) {
				continue
			}
			return fmt.Errorf("whether NVLinks join %s and %s is not known; add the output of nvidia-smi topo -m as a source", a.Label, b.Label)
		}
	}
	return nil
}

// linksKnown reports that a GPU's NVLinks are known, if only by its board having
// none.
func linksKnown(n *graph.Node) bool {
	if n.GPU.NVLinks.Known() {
		return true
	}
	board, ok := check.BoardOfGPU(n)
	return ok && board.NVLinks == 0
}

// ModelDoc is the document of ncclmap model.
type ModelDoc struct {
	Schema       string                 `json:"schema"`
	NCCL         string                 `json:"nccl_version"` // whose model this is
	Checked      []model.Check          `json:"checked"`
	Unknown      string                 `json:"unknown,omitempty"` // why there is no prediction, or no times
	Nodes        int                    `json:"nodes"`             // as NCCL counts them
	Ranks        int                    `json:"ranks"`
	Channels     probe.Opt[int]         `json:"channels"` // of the communicator
	NVLSChannels int                    `json:"nvls_channels"`
	P2PChannels  int                    `json:"p2p_channels"`
	PerPeer      int                    `json:"p2p_channels_per_peer"`
	Members      [][]int                `json:"members"` // the nodes of one host: NCCL dev numbers of their GPUs
	Graphs       []search.Graph         `json:"graphs"`
	Bound        *search.Physical       `json:"bound,omitempty"` // what the links of all GPUs allow
	Paths        ModelPaths             `json:"paths"`
	Tuning       []model.Tuning         `json:"tuning"`
	Assumptions  []graph.NCCLAssumption `json:"assumptions"`
}

// ModelPaths holds the paths as NCCL's model sees them within each node, in its
// dev numbers.
type ModelPaths struct {
	GPUs []graph.NCCLPath `json:"gpu_gpu"`
	Nets []graph.NCCLPath `json:"gpu_net"`
}

// Model makes the document: the channels on all nodes, and Ring all-reduce on one.
func (a *Analysis) Model() ModelDoc {
	d := ModelDoc{
		Schema: "ncclmap.model/v1", NCCL: model.NCCLVersion, Checked: model.Checks(), Nodes: 1, Ranks: len(a.Inv.GPUs),
		Members: [][]int{}, Graphs: []search.Graph{}, Paths: ModelPaths{GPUs: []graph.NCCLPath{}, Nets: []graph.NCCLPath{}}, Tuning: []model.Tuning{}, Assumptions: []graph.NCCLAssumption{},
	}
	if v := a.Ring.View; v != nil {
		d.NCCL = v.Options.Version.String()
		for k := range v.Groups {
			part := v.Part(k)
			d.Paths.GPUs = append(d.Paths.GPUs, part.Paths()...)
			d.Paths.Nets = append(d.Paths.Nets, part.NetPaths()...)
			devs := []int{}
			for i := range part.GPUs {
				devs = append(devs, part.Dev(i))
			}
			slices.Sort(devs)
			d.Members = append(d.Members, devs)
		}
		d.Assumptions = append(d.Assumptions, v.Assumptions...)
	}
	switch {
	case a.Ring.Unknown != nil:
		d.Unknown = a.Ring.Unknown.Error()
		return d
	case a.Ring.Untimed != nil:
		d.Unknown = a.Ring.Untimed.Error()
	}
	r := a.Ring.Search
	d.Ranks, d.Nodes, d.Graphs = r.Ranks, r.Nodes, r.Graphs
	d.NVLSChannels, d.P2PChannels, d.PerPeer = r.NVLSChannels, r.P2PChannels, r.PerPeer
	if r.Channels > 0 {
		d.Channels = probe.Some(r.Channels)
	}
	if r.NetAssumed {
		d.Assumptions = append(d.Assumptions, graph.NCCLAssumption{Subject: "host", Text: "no network is known: NCCL always finds one, and one interface of 10 Gb/s is taken"})
	}
	d.Bound = a.Ring.Bound
	d.Tuning = append(d.Tuning, a.Ring.Tuning...)
	return d
}
