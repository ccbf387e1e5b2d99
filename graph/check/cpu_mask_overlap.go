package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

var cpuMaskOverlap = Rule{
	ID:    "cpu-mask-overlap",
	Title: "CPU masks of a topology file overlap",
	Doc: `Fires for the <cpu> elements of an NCCL topology file whose affinity masks share CPUs:
NCCL pins the ranks of different NUMA nodes to the same CPUs.

warning; critical where two masks are identical.

Silent for a file with one <cpu>, and between the hosts of one file.`,
	Replaces: []string{"cpu-mask-mismatch"},
	Run:      runCPUMaskOverlap,
}

func runCPUMaskOverlap(p *Pass) {
	c, ok := p.claims()
	if !ok {
		return
	}
	owner := map[int]*probe.NUMANode{}
	in := map[*probe.NUMANode]bool{}
	severity := Warning
	shared := probe.CPUSet("")
	for i := range c.NUMA {
		n := &c.NUMA[i]
		for _, cpu := range n.CPUs.CPUs() {
			o := owner[cpu]
			if o == nil {
				owner[cpu] = n
				continue
			}
			in[o], in[n] = true, true
			if o.CPUs == n.CPUs {
				severity, shared = Critical, n.CPUs
			}
		}
	}
	if len(in) == 0 {
		return
	}
	f := Finding{
		Severity: severity,
		Expected: "masks without a common CPU",
		Observed: fmt.Sprintf("the masks of %d of %d <cpu> elements share CPUs", len(in), len(c.NUMA)),
		Fix:      fmt.Sprintf("whoever keeps %s: take each affinity from /sys/devices/system/node/node<N>/cpumap of this kind of host", c.file),
	}
	if severity == Critical {
		f.Observed = fmt.Sprintf("masks of %d of %d <cpu> elements are the same: CPUs %s", len(in), len(c.NUMA), shared)
	}
	for i := range c.NUMA {
		n := &c.NUMA[i]
		if !in[n] {
			continue
		}
		f.Subjects = append(f.Subjects, fmt.Sprintf("numa:%d", n.ID))
		f.Evidence = append(f.Evidence, evidence(n.Origins, "cpus", "", "affinity of NUMA node %d: CPUs %s", n.ID, n.CPUs))
	}
	f.Subjects = append(f.Subjects, c.key())
	p.Report(f)
}
