package text

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

func TestJobFiles(t *testing.T) {
	run := probe.RunSummary{Collective: "AllReduce", Nodes: 2, GPUs: 8, PeakBusBW: probe.Some(300.5)}
	slow, failed := run, run
	slow.PeakBusBW, failed.PeakBusBW = probe.Some(12.0), probe.Opt[float64]{}
	inv := &probe.Inventory{Job: probe.Job{
		Graphs: []probe.GraphFile{{File: "g.xml", Graphs: []probe.Graph{
			{ID: probe.Some(0), Pattern: "ring", Channels: 3, BWIntra: 30, BWInter: 17.5, TypeIntra: "NVL", TypeInter: "PXB", CrossNIC: 1,
				Orders: []string{"NET/0 GPU/0 GPU/1 NET/0", "NET/0 GPU/0 GPU/1 NET/0", "NET/1 GPU/1 GPU/0 NET/1"}},
			{ID: probe.Some(1), Pattern: "balanced tree", Channels: 1, BWIntra: 60, TypeIntra: "NVL", Orders: []string{"GPU/0 GPU/1"}},
			{ID: probe.Some(9), Pattern: "tree"},
		}}},
		Summaries: []probe.RunSummary{run, slow, failed},
	}}
	topo, err := graph.Build(inv)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Inventory(&b, topo, nil); err != nil {
		t.Fatal(err)
	}
	const want = `NCCL graphs in g.xml:
  ring: 3 × 30 GB/s over NVL within a host, 17.5 GB/s over PXB between hosts, NICs crossed
    channels 0 to 1: NET/0 GPU/0 GPU/1 NET/0
    channel 2: NET/1 GPU/1 GPU/0 NET/1
  tree (balanced tree): 1 × 60 GB/s over NVL
    channel 0: GPU/0 GPU/1
  search 9 (tree): no channel
summary of 3 nccl-tests runs, peak bus bandwidth:
  AllReduce, 2 × 8 GPUs: 3 runs, 12 to 300.5 GB/s, 1 without a result
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}
