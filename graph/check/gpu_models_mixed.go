package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
)

var gpuModelsMixed = Rule{
	ID:    "gpu-models-mixed",
	Title: "GPUs of different models in one host",
	Doc: `Fires for a host whose GPUs are of two or more models (PCI ids, else names): the slowest
sets the pace of a job that uses all.

info; warning where their compute capability differs, since NCCL turns LL128 and NVLink
SHARP off below one common capability.

Silent for display adapters, and for GPUs that no job uses where a job shows its GPUs.`,
	Run: runGPUModelsMixed,
}

func runGPUModelsMixed(p *Pass) {
	var models, names []string
	of := map[string][]*graph.Node{}
	caps := map[int]bool{}
	var all []*graph.Node
	for _, n := range p.facts.gpus {
		m := model(n)
		if m == "" || !p.inJob(n) {
			continue
		}
		if of[m] == nil {
			models = append(models, m)
		}
		of[m] = append(of[m], n)
		all = append(all, n)
		if cc, ok := n.GPU.CC.Get(); ok {
			caps[cc] = true
		}
	}
	if len(models) < 2 {
		return
	}
	severity := Info
	if len(caps) > 1 {
		severity = Warning
	}
	var proof []Evidence
	for _, m := range models {
		n := of[m][0]
		name := m
		if b, ok := BoardOfGPU(n); ok {
			name = b.Name
		} else if n.GPU.Name != "" {
			name = n.GPU.Name
		}
		names = append(names, fmt.Sprintf("%d × %s", len(of[m]), name))
		proof = append(proof, evidence(n.GPU.Origins, "name", "", "%s: %s, compute capability %v", n.Label, name, n.GPU.CC))
	}
	p.Report(Finding{
		Severity: severity,
		Subjects: keys(all),
		Expected: "GPUs of one model",
		Observed: strings.Join(names, ", "),
		Evidence: proof,
		Fix:      "whoever starts jobs: give a job GPUs of one model (CUDA_VISIBLE_DEVICES); else the slowest sets the pace",
	})
}

// inJob reports a GPU that jobs use, or any where no job shows its GPUs.
func (p *Pass) inJob(n *graph.Node) bool {
	shown := false
	for _, c := range p.Job.Comms {
		for _, m := range c.Members {
			if !p.Here(m.Host) || !m.Addr.Known() {
				continue
			}
			if shown = true; m.Addr == n.GPU.Addr {
				return true
			}
		}
	}
	return !shown
}
