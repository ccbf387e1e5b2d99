package tune

import (
	"errors"
	"fmt"

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

// Prediction is what NCCL's own model says of a ring all-reduce on this host.
type Prediction struct {
	View   *graph.NCCLView
	Search *search.Result
	Tuning []model.Tuning
	// Unknown is why there is no prediction: the facts do not carry one. It is
	// nil where there is one.
	Unknown error
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
	a.Ring = predict(topo)
	a.Plan = Advise(topo, a.Check)
	return a, nil
}

func predict(topo *graph.Topology) (p Prediction) {
	if p.Unknown = nvlinksKnown(topo); p.Unknown != nil {
		return p
	}
	if p.View, p.Unknown = topo.NCCL(graph.NCCLOptions{}); p.Unknown != nil {
		return p
	}
	if p.Search, p.Unknown = search.Compute(p.View, search.Options{}); p.Unknown != nil {
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
	Schema      string                 `json:"schema"`
	NCCL        string                 `json:"nccl_version"` // whose model this is
	Checked     []model.Check          `json:"checked"`
	Unknown     string                 `json:"unknown,omitempty"` // why there is no prediction
	Nodes       int                    `json:"nodes"`
	Ranks       int                    `json:"ranks"`
	Channels    probe.Opt[int]         `json:"channels"` // of the communicator
	From        []search.Pattern       `json:"channels_from"`
	Graphs      []search.Graph         `json:"graphs"`
	Paths       ModelPaths             `json:"paths"`
	Tuning      []model.Tuning         `json:"tuning"`
	Assumptions []graph.NCCLAssumption `json:"assumptions"`
}

// ModelPaths holds the paths as NCCL's model sees them, in its dev numbers.
type ModelPaths struct {
	GPUs []graph.NCCLPath `json:"gpu_gpu"`
}

// Model makes the document: Ring all-reduce on one node. Its keys are those of
// later documents with more algorithms and nodes.
func (a *Analysis) Model() ModelDoc {
	d := ModelDoc{
		Schema: "ncclmap.model/v1", NCCL: model.NCCLVersion, Checked: model.Checks(), Nodes: 1, Ranks: len(a.Inv.GPUs),
		From: []search.Pattern{}, Graphs: []search.Graph{}, Paths: ModelPaths{GPUs: []graph.NCCLPath{}}, Tuning: []model.Tuning{}, Assumptions: []graph.NCCLAssumption{},
	}
	if v := a.Ring.View; v != nil {
		d.Paths.GPUs = append(d.Paths.GPUs, v.Paths()...)
		d.Assumptions = append(d.Assumptions, v.Assumptions...)
	}
	if a.Ring.Unknown != nil {
		d.Unknown = a.Ring.Unknown.Error()
		return d
	}
	r := a.Ring.Search
	d.Ranks, d.Nodes, d.Graphs, d.From = r.Ranks, r.Nodes, r.Graphs, r.ChannelsFrom
	if r.Channels > 0 {
		d.Channels = probe.Some(r.Channels)
	}
	d.Tuning = append(d.Tuning, a.Ring.Tuning...)
	return d
}
