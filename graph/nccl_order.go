package graph

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// treeOrder returns the order in which NCCL's graph holds GPUs, and ports among
// themselves: as its merged topology file lists them, from the top of the PCI
// tree down. Every rank lists its own GPU and all ports, and each rank's file is
// merged into those of the ranks before it; so below each NUMA node and switch
// stands first what holds a port or GPU 0, then what the next rank adds (NCCL
// 2.30.7 topo.cc:1765-1941, xml.cc:306-336). NCCL 2.21 kept the file's order.
func (b *ncclBuilder) treeOrder(ports []ncclPort) func(x, y *Node) int {
	first := map[*Node]int{} // the rank that brings a thing into the file
	mark := func(n *Node, rank int) {
		for ; n != nil; n = n.Up {
			if r, ok := first[n]; ok && r <= rank {
				return
			}
			first[n] = rank
		}
	}
	if b.v.Options.Version.AtLeast(22, 0) {
		for _, p := range ports {
			mark(p.node, 0)
		}
		for rank, n := range b.found {
			mark(n, rank)
		}
	}
	return func(x, y *Node) int {
		xs, ys := fromTop(x), fromTop(y)
		for i := range min(len(xs), len(ys)) {
			if c := cmp.Or(cmp.Compare(first[xs[i]], first[ys[i]]), inFile(xs[i], ys[i])); c != 0 {
				return c
			}
		}
		return 0
	}
}

// fromTop lists what a device hangs on, from the NUMA node down to it.
func fromTop(n *Node) []*Node {
	if n == nil {
		return nil
	}
	if n.Up == nil {
		return []*Node{n}
	}
	return append(fromTop(n.Up), n)
}

// inFile orders siblings as a topology file does: NUMA nodes by number, PCI
// functions by address, all else after them.
func inFile(x, y *Node) int {
	place := func(n *Node) (rank, numa int, addr probe.BDF) {
		switch id, err := strconv.Atoi(strings.TrimPrefix(n.Key, "numa:")); {
		case n.Kind == KindNUMA && err == nil:
			return 0, id, addr
		case n.PCI != nil:
			return 1, 0, n.PCI.Addr
		}
		return 2, 0, addr
	}
	xr, xn, xa := place(x)
	yr, yn, ya := place(y)
	return cmp.Or(cmp.Compare(xr, yr), cmp.Compare(xn, yn), xa.Compare(ya), cmp.Compare(x.id, y.id))
}
