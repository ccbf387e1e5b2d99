package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

var cpuMaskMismatch = Rule{
	ID:    "cpu-mask-mismatch",
	Title: "CPU masks of a topology file are not the host's",
	Doc: `Fires for the NUMA nodes whose affinity mask in an NCCL topology file differs from the
CPUs that the kernel gives the node. NCCL pins ranks by the file: to the wrong socket.

warning.

Silent for nodes that the host does not have, and in a container that sees only some of
the file's CPUs.`,
	Run: runCPUMaskMismatch,
}

func runCPUMaskMismatch(p *Pass) {
	c, ok := p.claims()
	if !ok || !c.beside {
		return
	}
	f := Finding{Severity: Warning, Expected: "the CPUs that the kernel gives each node", Observed: "other CPUs in " + c.file}
	for _, claim := range c.NUMA {
		i := slices.IndexFunc(p.Inv.NUMA, func(n probe.NUMANode) bool { return n.ID == claim.ID })
		if i < 0 || claim.CPUs == "" || p.Inv.NUMA[i].CPUs == "" {
			continue
		}
		own := p.Inv.NUMA[i]
		if own.CPUs == claim.CPUs || len(p.Inv.Settings.Container) > 0 && within(own.CPUs, claim.CPUs) {
			continue
		}
		f.Subjects = append(f.Subjects, fmt.Sprintf("numa:%d", claim.ID))
		f.Observed += fmt.Sprintf("; node %d: %s, the kernel says %s", claim.ID, claim.CPUs, own.CPUs)
		f.Evidence = append(f.Evidence,
			evidence(claim.Origins, "cpus", "", "affinity of NUMA node %d: CPUs %s", claim.ID, claim.CPUs),
			evidence(own.Origins, "cpus", "cpulist", "CPUs of NUMA node %d: %s", own.ID, own.CPUs))
	}
	if len(p.Inv.NUMA) == 0 && len(c.NUMA) > 0 {
		p.Gap("the CPUs of the host's NUMA nodes are not in the sources", readLive, c.key())
	}
	if len(f.Subjects) == 0 {
		return
	}
	f.Subjects = append(f.Subjects, c.key())
	f.Fix = fmt.Sprintf("whoever keeps %s: take each affinity from /sys/devices/system/node/node<N>/cpumap; until then ranks are pinned to the wrong CPUs", c.file)
	p.Report(f)
}

// within reports that each CPU of a set is in another.
func within(part, whole probe.CPUSet) bool {
	all := whole.CPUs()
	return !slices.ContainsFunc(part.CPUs(), func(c int) bool { _, ok := slices.BinarySearch(all, c); return !ok })
}
