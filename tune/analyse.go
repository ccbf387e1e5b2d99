package tune

import (
	"errors"
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// Analysis is everything that follows from one inventory.
type Analysis struct {
	Inv   *probe.Inventory
	Topo  *graph.Topology
	Check check.Result
	Pred  Prediction
	Plan  Plan
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
	a.Pred = predict(topo, OptionsOf(inv))
	a.Plan = Advise(topo, a.Check)
	return a, nil
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
