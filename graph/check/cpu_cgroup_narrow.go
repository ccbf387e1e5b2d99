package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var cpuCgroupNarrow = Rule{
	ID:    "cpu-cgroup-narrow",
	Title: "Few CPUs for the GPUs, or none near them",
	Doc: `Fires where the CPUs that processes may use (control group, Cpus_allowed_list, CPU affinity
of nvidia-smi topo -m) are fewer than two for each GPU, or where none of them is on a
GPU's NUMA node: NCCL's proxy threads then share a core or work across the sockets.

warning.

Silent where the CPUs are not known.`,
	Run: runCPUCgroupNarrow,
}

const cpusPerGPU = 2

func runCPUCgroupNarrow(p *Pass) {
	if len(p.facts.gpus) == 0 {
		return
	}
	allowed := p.Inv.Settings.CPUs
	proof := []Evidence{evidence(p.Inv.Settings.Origins, "allowed_cpus", "", "allowed CPUs %s", allowed)}
	if allowed == "" {
		var parts []string
		proof = nil
		for _, n := range p.facts.gpus {
			if n.GPU.CPUAffinity == "" {
				return
			}
			parts = append(parts, string(n.GPU.CPUAffinity))
			proof = append(proof, evidence(n.GPU.Origins, "cpu_affinity", "", "CPU affinity %s of %s", n.GPU.CPUAffinity, n.Label))
		}
		allowed, _ = probe.ParseCPUList(strings.Join(parts, ","))
	}
	cpus := len(allowed.CPUs())
	if want := cpusPerGPU * len(p.facts.gpus); cpus < want {
		p.reportCPUs(append([]string{p.Host()}, keys(p.facts.gpus)...),
			fmt.Sprintf("at least %d CPUs for %s", want, count(len(p.facts.gpus), "GPU", "GPUs")), count(cpus, "CPU", "CPUs")+": "+string(allowed), proof)
		return
	}
	var far []*graph.Node
	for _, n := range p.facts.gpus {
		if n.Home == nil || n.Home.NUMA == nil || n.Home.NUMA.CPUs == "" || meets(allowed, n.Home.NUMA.CPUs) {
			continue
		}
		far = append(far, n)
		proof = append(proof, evidence(n.Home.NUMA.Origins, "cpus", "cpulist", "CPUs of %s: %s", n.Home.Label, n.Home.NUMA.CPUs))
	}
	if len(far) > 0 {
		p.reportCPUs(append(keys(far), p.Host()), "CPUs on the NUMA nodes of "+labels(far), "none: CPUs "+string(allowed), proof)
	}
}

func (p *Pass) reportCPUs(subjects []string, expected, observed string, proof []Evidence) {
	p.Report(Finding{
		Severity: Warning,
		Subjects: subjects,
		Expected: expected,
		Observed: observed,
		Evidence: proof,
		Fix:      "whoever starts the jobs: ask for more CPUs (the pod's CPU request, --cpus-per-task), on the sockets of the GPUs. NCCL_IGNORE_CPU_AFFINITY=1 only if the launcher cannot be changed",
	})
}

// meets reports two sets with a common CPU.
func meets(a, b probe.CPUSet) bool {
	in := map[int]bool{}
	for _, c := range a.CPUs() {
		in[c] = true
	}
	for _, c := range b.CPUs() {
		if in[c] {
			return true
		}
	}
	return false
}
