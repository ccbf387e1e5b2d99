package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var cpuCgroupNarrow = Rule{
	ID:    "cpu-cgroup-narrow",
	Title: "Few CPUs for the GPUs, or none near them",
	Doc: `Fires where the CPUs that processes may use (control group, Cpus_allowed_list) are fewer
than two for each GPU, or where none of them is on a GPU's NUMA node: NCCL's proxy threads
then share a core or work across the sockets. Of nvidia-smi topo -m only the CPUs near a
GPU are known: fires where that is one (likely).

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
	if allowed == "" {
		p.narrowAffinity()
		return
	}
	proof := []Evidence{evidence(p.Inv.Settings.Origins, "allowed_cpus", "", "allowed CPUs %s", allowed)}
	cpus := len(allowed.CPUs())
	if want := cpusPerGPU * len(p.facts.gpus); cpus < want {
		p.reportCPUs(Sure, append([]string{p.Host()}, keys(p.facts.gpus)...),
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
		p.reportCPUs(Sure, append(keys(far), p.Host()), "CPUs on the NUMA nodes of "+labels(far), "none: CPUs "+string(allowed), proof)
	}
}

// narrowAffinity judges what the driver shows: the CPUs near a GPU that the asking
// process may use, which are fewer than it has in all.
func (p *Pass) narrowAffinity() {
	var narrow []*graph.Node
	var proof []Evidence
	for _, n := range p.facts.gpus {
		if cpus := n.GPU.CPUAffinity; cpus != "" && len(cpus.CPUs()) < cpusPerGPU {
			narrow = append(narrow, n)
			proof = append(proof, evidence(n.GPU.Origins, "cpu_affinity", "", "CPU affinity of %s: %s", n.Label, cpus))
		}
	}
	if len(narrow) > 0 {
		p.reportCPUs(Likely, append(keys(narrow), p.Host()), fmt.Sprintf("at least %d CPUs near each GPU", cpusPerGPU), "1 CPU near "+labels(narrow), proof)
	}
}

func (p *Pass) reportCPUs(certainty Certainty, subjects []string, expected, observed string, proof []Evidence) {
	p.Report(Finding{
		Severity:  Warning,
		Certainty: certainty,
		Subjects:  subjects,
		Expected:  expected,
		Observed:  observed,
		Evidence:  proof,
		Fix:       "whoever starts the jobs: ask for more CPUs (the pod's CPU request, --cpus-per-task), on the sockets of the GPUs. NCCL_IGNORE_CPU_AFFINITY=1 only if the launcher cannot be changed",
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
