package check

import (
	"fmt"
	"slices"
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
	split, wrong := misplaced{says: "another node of the socket"}, misplaced{says: "the wrong NUMA node"}
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
		m := &wrong
		if s := socket[says]; s.Known() && s == socket[is] {
			m = &split
		}
		m.add(p.keyOf(claim.Addr), fmt.Sprintf("under <cpu> %d and on node %d", says, is),
			evidence(claim.Origins, "numa", "", "%s under <cpu numaid=\"%d\">", claim.Addr, says),
			evidence(own.Origins, "numa", "numa_node", "numa_node %d of %s", is, claim.Addr))
	}
	p.reportMisplaced(c, Critical, wrong)
	p.reportMisplaced(c, Info, split)
}

// misplaced is the devices that a file and the kernel place differently.
type misplaced struct {
	says     string
	subjects []string
	moves    []string // "under <cpu> 0 and on node 1"
	of       map[string]int
	proof    []Evidence
}

func (m *misplaced) add(key, move string, proof ...Evidence) {
	m.subjects = append(m.subjects, key)
	if m.of[move] == 0 {
		m.moves = append(m.moves, move)
	}
	if m.of == nil {
		m.of = map[string]int{}
	}
	m.of[move]++
	m.proof = append(m.proof, proof...)
}

func (p *Pass) reportMisplaced(c *claims, severity Severity, m misplaced) {
	if len(m.subjects) == 0 {
		return
	}
	slices.Sort(m.moves)
	for i, move := range m.moves {
		m.moves[i] = count(m.of[move], "device", "devices") + " " + move
	}
	p.Report(Finding{
		Severity: severity,
		Subjects: append(m.subjects, c.key()),
		Expected: "each device under the <cpu> of its numa_node",
		Observed: m.says + ": " + strings.Join(m.moves, ", "),
		Evidence: m.proof,
		Fix:      fmt.Sprintf("whoever keeps %s: put each device under the <cpu> of the numa_node that /sys/bus/pci/devices shows", c.file),
	})
}
