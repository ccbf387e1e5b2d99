package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var numaImplausible = Rule{
	ID:    "numa-implausible",
	Title: "PCI root claims the other socket's NUMA node",
	Doc: `Fires for the GPUs and HCAs below a PCI root bus whose NUMA node does not fit its
neighbours. The root buses of one socket are one range of bus numbers. Where exactly
one root bus would, moved to the other node, make two ranges and give both sockets
the same number of GPUs, that one is named. All functions below it agree with each
other, since the kernel hands the bridge's node down, so no look at one device can
tell.

warning, possible: processes are bound to the wrong socket, and host memory lies
across the socket link.

Silent in a guest; unless the devices sit on exactly two NUMA nodes of two different
processor packages and in one PCI domain; and where several root buses could be the
wrong one.`,
	Run: runNUMAImplausible,
}

// root is a PCI root bus with the GPUs and HCAs below it.
type root struct {
	name    string
	node    int
	devices []*graph.Node
	gpus    int
}

func runNUMAImplausible(p *Pass) {
	if len(p.Guest()) > 0 {
		return
	}
	roots, a, b, ok := p.twoSockets()
	if !ok || ranges(roots) <= 2 {
		return
	}
	suspect := -1
	for i := range roots {
		moved := slices.Clone(roots)
		moved[i].node = a + b - moved[i].node
		if ranges(moved) > 2 || gpusOn(moved, a) != gpusOn(moved, b) {
			continue
		}
		if suspect >= 0 {
			return // either could be wrong
		}
		suspect = i
	}
	if suspect < 0 {
		return
	}
	r := roots[suspect]
	var proof []Evidence
	for _, n := range r.devices {
		proof = append(proof, evidence(n.PCI.Origins, "numa", "numa_node", "numa_node %d of %s, below root bus %s", r.node, n.Label, r.name))
	}
	for _, i := range []int{suspect - 1, suspect + 1} {
		if i >= 0 && i < len(roots) {
			n := roots[i].devices[0]
			proof = append(proof, evidence(n.PCI.Origins, "numa", "numa_node", "numa_node %d of %s, below the neighbouring root bus %s", roots[i].node, n.Label, roots[i].name))
		}
	}
	p.Report(Finding{
		Severity:  Warning,
		Certainty: Possible,
		Subjects:  keys(r.devices),
		Expected:  fmt.Sprintf("NUMA node %d, as the root buses beside %s: those of one socket are one range, and both sockets then have %d GPUs", a+b-r.node, r.name, len(p.facts.gpus)/2),
		Observed:  fmt.Sprintf("NUMA node %d for %s", r.node, labels(r.devices)),
		Evidence:  proof,
		Fix:       "administrator: compare with a host of the same model; then correct the proximity of this root bridge in the BIOS (ACPI _PXM) or update it. Until then bind the rank of this GPU by hand (numactl) to the right node",
	})
}

// twoSockets lists the root buses of all GPUs and HCAs by bus number, where they
// sit on exactly two NUMA nodes a and b of two packages.
func (p *Pass) twoSockets() (roots []root, a, b int, ok bool) {
	at := map[string]int{}
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		if n.PCI == nil || n.PCI.Root == "" || !n.PCI.NUMA.Known() {
			return nil, 0, 0, false
		}
		i, seen := at[n.PCI.Root]
		if !seen {
			i = len(roots)
			at[n.PCI.Root] = i
			roots = append(roots, root{name: n.PCI.Root, node: n.PCI.NUMA.Or(0)})
		}
		roots[i].devices = append(roots[i].devices, n)
		if n.Kind == graph.KindGPU {
			roots[i].gpus++
		}
		if roots[i].node != n.PCI.NUMA.Or(0) || n.PCI.Addr.Domain != roots[0].devices[0].PCI.Addr.Domain {
			return nil, 0, 0, false
		}
	}
	slices.SortFunc(roots, func(x, y root) int { return x.devices[0].PCI.Addr.Compare(y.devices[0].PCI.Addr) })
	var nodes []int
	for _, r := range roots {
		nodes = append(nodes, r.node)
	}
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); len(nodes) != 2 {
		return nil, 0, 0, false
	}
	x, y := p.packageOf(nodes[0]), p.packageOf(nodes[1])
	return roots, nodes[0], nodes[1], x.Known() && y.Known() && x != y
}

func (p *Pass) packageOf(node int) probe.Opt[int] {
	for _, n := range p.Inv.NUMA {
		if n.ID == node {
			return n.Package
		}
	}
	return probe.Opt[int]{}
}

// ranges counts runs of neighbouring root buses on one node.
func ranges(roots []root) int {
	n := 0
	for i, r := range roots {
		if i == 0 || roots[i-1].node != r.node {
			n++
		}
	}
	return n
}

func gpusOn(roots []root, node int) int {
	n := 0
	for _, r := range roots {
		if r.node == node {
			n += r.gpus
		}
	}
	return n
}
