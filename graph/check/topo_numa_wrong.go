package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var topoNUMAWrong = Rule{
	ID:    "topo-numa-wrong",
	Title: "Topology file puts a device under the wrong NUMA node",
	Doc: `Fires for the GPUs and network functions that an NCCL topology file puts under another
<cpu> than the kernel's numa_node.

critical: paths and CPU affinity are those of the wrong socket; info where both nodes
belong to one socket, which is how sub-NUMA modes differ.

Silent where numa_node is -1.`,
	Run: runTopoNUMAWrong,
}

func runTopoNUMAWrong(p *Pass) {
	c, ok := p.claims()
	if !ok || !c.beside {
		return
	}
	socket := map[int]probe.Opt[int]{}
	for _, n := range p.Inv.NUMA {
		socket[n.ID] = n.Package
	}
	type move struct{ says, is int }
	split, wrong := Finding{Severity: Info}, Finding{Severity: Critical}
	moves := map[move]int{}
	for _, claim := range c.leaves() {
		own := p.facts.pci[claim.Addr]
		if own == nil {
			continue
		}
		says, okSays := claim.NUMA.Get()
		is, okIs := own.NUMA.Get()
		if !okSays || !okIs || says == is {
			continue
		}
		f := &wrong
		if s := socket[says]; s.Known() && s == socket[is] {
			f = &split
		}
		f.Subjects = append(f.Subjects, p.keyOf(claim.Addr))
		moves[move{says, is}]++
		f.Evidence = append(f.Evidence,
			evidence(claim.Origins, "numa", "", "%s under <cpu numaid=\"%d\">", claim.Addr, says),
			evidence(own.Origins, "numa", "numa_node", "numa_node %d of %s", is, claim.Addr))
	}
	for _, f := range []Finding{wrong, split} {
		if len(f.Subjects) == 0 {
			continue
		}
		f.Subjects = append(f.Subjects, c.key())
		var parts []string
		for _, says := range c.NUMA {
			for _, is := range p.Inv.NUMA {
				sameSocket := socket[says.ID].Known() && socket[says.ID] == socket[is.ID]
				if n := moves[move{says.ID, is.ID}]; n > 0 && sameSocket == (f.Severity == Info) {
					parts = append(parts, fmt.Sprintf("%s under <cpu> %d on node %d", count(n, "device", "devices"), says.ID, is.ID))
				}
			}
		}
		f.Observed = strings.Join(parts, ", ")
		f.Expected = "each device under the <cpu> of its numa_node"
		f.Fix = fmt.Sprintf("whoever keeps %s: put each device under the <cpu> of the numa_node that /sys/bus/pci/devices shows", c.file)
		p.Report(f)
	}
}
