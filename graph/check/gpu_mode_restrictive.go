package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var gpuModeRestrictive = Rule{
	ID:    "gpu-mode-restrictive",
	Title: "GPU is in a mode that keeps NCCL from it",
	Doc: `Fires for GPUs with MIG enabled (no P2P and no NVLink SHARP between instances), in compute
mode prohibited, in exclusive process mode when a job puts several ranks on one GPU, and
under confidential computing.

warning; critical for prohibited.

Silent for MIG that is only pending, and for exclusive process mode with one rank on each
GPU.`,
	Run: runGPUModeRestrictive,
}

func runGPUModeRestrictive(p *Pass) {
	type mode struct {
		severity Severity
		text     string
		fix      string
	}
	var modes []mode
	by := map[mode][]*graph.Node{}
	add := func(n *graph.Node, m mode) {
		if by[m] == nil {
			modes = append(modes, m)
		}
		by[m] = append(by[m], n)
	}
	for _, n := range p.facts.gpus {
		g := n.GPU
		if g.MIG.Or(false) {
			add(n, mode{Warning, "MIG is enabled: no P2P and no NVLink SHARP between instances", "administrator: disable MIG on GPUs for training (nvidia-smi -mig 0)"})
		}
		switch m := strings.ToLower(g.ComputeMode); {
		case m == "prohibited":
			add(n, mode{Critical, "compute mode prohibited: no process may use the GPU", "administrator: nvidia-smi -c DEFAULT"})
		case strings.Contains(m, "exclusive") && p.sharesGPU(n):
			add(n, mode{Warning, "exclusive process mode, and a job puts several ranks on the GPU", "whoever starts the job: one rank for each GPU; or administrator: nvidia-smi -c DEFAULT"})
		}
		if p.Inv.Settings.CC.Or(false) {
			add(n, mode{Warning, "confidential computing is on: P2P and GPUDirect RDMA are limited or encrypted", "administrator: turn it off where it is not needed; else plan with what is left"})
		}
	}
	slices.SortStableFunc(modes, func(a, b mode) int { return int(b.severity) - int(a.severity) })
	for _, m := range modes {
		var proof []Evidence
		for _, n := range by[m] {
			proof = append(proof, evidence(n.GPU.Origins, "mig", "", "%s: MIG %v, compute mode %s", n.Label, n.GPU.MIG, orUnread(n.GPU.ComputeMode)))
		}
		p.Report(Finding{
			Severity: m.severity,
			Subjects: keys(by[m]),
			Expected: "MIG disabled, compute mode default",
			Observed: fmt.Sprintf("%s: %s", labels(by[m]), m.text),
			Evidence: proof,
			Fix:      m.fix,
		})
	}
}

func orUnread(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// sharesGPU reports a communicator with several ranks on a GPU.
func (p *Pass) sharesGPU(n *graph.Node) bool {
	for _, c := range p.Job.Comms {
		ranks := 0
		for _, m := range c.Members {
			same := n.GPU.Addr.Known() && m.Addr == n.GPU.Addr || n.GPU.Index.Known() && m.GPU == n.GPU.Index && m.Addr == (probe.Opt[probe.BDF]{})
			if same && p.Here(m.Host) {
				ranks++
			}
		}
		if ranks > 1 {
			return true
		}
	}
	return false
}
