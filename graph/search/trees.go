package search

import "math/bits"

// TreeRank is a rank's place in a channel's tree; -1 is none.
type TreeRank struct {
	Up   int
	Down [3]int
}

func (t *TreeRank) add(child int) {
	for i, d := range t.Down {
		if d < 0 {
			t.Down[i] = child
			return
		}
	}
}

// Trees returns the communicator's trees: per channel the place of every rank.
// Inside a node they are chains; the nodes are joined by one of two binary trees,
// half of the channels by each (NCCL 2.30.7 connect.cc:20-113, trees.cc:32-112).
func (r *Result) Trees() [][]TreeRank {
	if len(r.Graphs) == 0 {
		return nil
	}
	g, _ := r.Graph(Tree)
	out := make([][]TreeRank, r.Channels)
	for c := range out {
		if base := c % (2 * g.Channels); c == base {
			out[c] = r.tree(c%g.Channels, c >= g.Channels)
		} else {
			out[c] = out[base] // further channels repeat the first
		}
	}
	return out
}

func (r *Result) tree(channel int, second bool) []TreeRank {
	tree := make([]TreeRank, r.Ranks)
	for i := range tree {
		tree[i] = TreeRank{Up: -1, Down: [3]int{-1, -1, -1}}
	}
	top := make([]int, len(r.Members)) // the rank of a node that talks to the parent
	for i := range r.Members {
		order := r.Members[i].order(channel)
		top[i] = order[0]
		for k := 1; k < len(order); k++ {
			tree[order[k]].Up = order[k-1]
			tree[order[k-1]].add(order[k])
		}
	}
	for i := range r.Members {
		parent, children := betweenNodes(len(r.Members), i, second)
		if parent >= 0 {
			_, siblings := betweenNodes(len(r.Members), parent, second)
			side := 0
			if siblings[1] == i {
				side = 1
			}
			tree[top[i]].Up = r.Members[parent].childRank(channel, side)
		}
		for side, child := range children {
			if child >= 0 {
				tree[r.Members[i].childRank(channel, side)].add(top[child])
			}
		}
	}
	return tree
}

// order returns the ranks of a tree's channel in the node.
func (m *Member) order(channel int) []int {
	g, _ := m.Graph(Tree)
	ranks := make([]int, len(g.orders[channel]))
	for i, gpu := range g.orders[channel] {
		ranks[i] = m.Ranks[gpu]
	}
	return ranks
}

// childRank returns the rank of a node that talks to its first or second child.
func (m *Member) childRank(channel, side int) int {
	g, _ := m.Graph(Tree)
	order := m.order(channel)
	switch s := shape(g.Number); {
	case len(order) < 2:
	case s == balanced && side == 0, s == split:
		return order[1]
	}
	return order[0]
}

// betweenNodes returns the parent and the children of a node in the first or the
// second of the two trees over n nodes; -1 is none. In the second tree the nodes
// are mirrored, of an odd number shifted by one: so what is a leaf in one tree is
// none in the other.
func betweenNodes(n, node int, second bool) (parent int, children [2]int) {
	there, back := func(x int) int { return x }, func(x int) int { return x }
	switch {
	case second && n%2 == 0:
		there = func(x int) int { return n - 1 - x }
		back = there
	case second:
		there = func(x int) int { return (x + n - 1) % n }
		back = func(x int) int { return (x + 1) % n }
	}
	parent, children = binaryTree(n, there(node))
	if parent >= 0 {
		parent = back(parent)
	}
	for i, c := range children {
		if c >= 0 {
			children[i] = back(c)
		}
	}
	return parent, children
}

// binaryTree is the tree whose leaves are the odd numbers: a number hangs on
// those that have its lowest bit cleared and the next one set, and 0 is the root.
func binaryTree(n, x int) (parent int, children [2]int) {
	children = [2]int{-1, -1}
	if x == 0 {
		if n > 1 {
			children[1] = 1 << (bits.Len(uint(n-1)) - 1)
		}
		return -1, children
	}
	bit := x & -x
	if parent = x&^bit | bit<<1; parent >= n {
		parent = x &^ bit
	}
	if half := bit >> 1; half > 0 {
		children[0] = x - half
		for ; half > 0 && x+half >= n; half >>= 1 {
		}
		if half > 0 {
			children[1] = x + half
		}
	}
	return parent, children
}
