package model

import "math"

// bandwidth is the algorithm bandwidth of an entry, GB/s, before anything is
// switched off (NCCL 2.30.7 tuning.cc:288-383).
func (m *Model) bandwidth(coll, algo, proto int) product {
	var x product
	switch algo {
	case ring:
		m.channels(&x, algo)
		m.ringShare(&x, coll, proto)
	case tree:
		m.channels(&x, algo)
		m.treeShare(&x, proto)
	case pat:
		m.channels(&x, algo)
		x.times(at(m.comm.Version, patShare), "share of PAT", "", "what PAT gets of the tree's channels (tuning.cc:288-383)")
	case nvls, nvlsTree:
		m.nvlsChannels(&x, coll, algo)
	case collNetChain:
		m.channels(&x, algo)
	case collNetDirect:
		m.direct(&x, coll)
	}
	m.perByte(&x, coll, algo)
	return x
}

// channels starts with what the graph's channels carry. From three nodes on it
// is the way to the NICs that counts.
func (m *Model) channels(x *product, algo int) {
	c := &m.comm
	g := c.graph(algo)
	x.times(float64(g.Channels), "channels", "", "of the %s graph, before the communicator doubles them", g.Pattern)
	gbs, where := g.BWIntra, "between GPUs, which NCCL takes for up to two nodes"
	switch {
	case algo == collNetChain:
		where = "between GPUs"
	case c.Nodes > 2:
		gbs, where = g.BWInter, "to the NICs, which NCCL takes from three nodes on"
	case c.Nodes == 1:
		where = "between GPUs"
	}
	why := "of the " + string(g.Pattern) + " graph " + where
	if g.Fallback {
		why = "nothing fits at any speed that NCCL tries: it falls back to simple order (search.cc:1177-1287)"
	}
	x.times(gbs, "bandwidth per channel", "GB/s", "%s", why)
}

func (m *Model) ringShare(x *product, coll, proto int) {
	c := &m.comm
	switch proto {
	case ll:
		share, why := 0.5, "half of what LL sends is flags (tuning.cc:288-383)"
		if !c.Version.AtLeast(21, 0) {
			share, why = 1.0/3, "NCCL counted a third of LL (tuning.cc)"
			if c.Nodes > 1 || coll == allReduce || coll == reduce {
				share, why = 0.25, "NCCL counted a quarter of LL over the network and where it reduces (tuning.cc)"
			}
		}
		x.times(share, "share of data", "", "%s", why)
		m.llCeiling(x)
	case ll128:
		share, why := 0.92, "LL128 sends 8 bytes of flags in 128; NCCL counts 0.92 (tuning.cc:288-383)"
		if c.perNode() < 2 && !c.Version.AtLeast(23, 0) {
			share, why = 0.7, "NCCL counted 0.7 of LL128 where a GPU has its node to itself (tuning.cc)"
		}
		x.times(share, "share of data", "", "%s", why)
		m.perChannel(x, ringLL128Max, ring, "ring with LL128")
	}
}

func (m *Model) treeShare(x *product, proto int) {
	c := &m.comm
	x.times(0.92, "share of a tree", "", "NCCL counts 0.92 (tuning.cc:288-383)")
	m.perChannel(x, treeMax, tree, "tree")
	switch proto {
	case ll:
		x.times(1/3.8, "share of data", "", "NCCL counts 1/3.8 of a tree with LL (tuning.cc:288-383)")
		m.llCeiling(x)
	case ll128:
		share, why := 7.0/9, "NCCL counts 7/9 of a tree with LL128 on one node (tuning.cc:288-383)"
		if c.Nodes > 1 {
			share, why = 120.0/128, "LL128 sends 8 bytes of flags in 128 (tuning.cc:288-383)"
		}
		x.times(share, "share of data", "", "%s", why)
		m.perChannel(x, treeLL128Max, tree, "tree with LL128")
	}
	const chain = 3
	if c.Tree.Number == chain && c.Version.AtLeast(18, 6) {
		x.times(0.85, "one GPU faces the NIC", "", "trees of pattern 3 get 0.85 (tuning.cc:288-383)")
	}
}

func (m *Model) llCeiling(x *product) {
	c := &m.comm
	gen, what := generationOf(c.MinCC), generationNames[generationOf(c.MinCC)]+" with LL"
	if c.Nodes > 1 {
		gen, what = volta, "LL over the network, for processors not AMD's"
		if c.AMD || c.MixedVendors {
			gen, what = ampere, "LL over the network, for AMD's or mixed processors"
		}
	}
	x.atMost(at(c.Version, llMax[gen])[c.scale()], "%s, all channels together", what)
}

func (m *Model) perChannel(x *product, limits ceilings, algo int, what string) {
	gen := generationOf(m.comm.MinCC)
	limit := at(m.comm.Version, limits[gen])[m.comm.scale()]
	x.atMost(limit*float64(m.comm.graph(algo).Channels), "%g GB/s per channel of a %s on %s", limit, what, generationNames[gen])
}

// nvlsChannels takes the lesser of what GPUs and NICs carry per channel.
func (m *Model) nvlsChannels(x *product, coll, algo int) {
	c := &m.comm
	g := c.NVLS
	n := float64(g.Channels)
	var intra, inter product
	intra.times(n, "channels", "", "of the nvls graph")
	inter.times(n, "channels", "", "of the nvls graph")
	intra.times(g.BWIntra, "bandwidth per channel", "GB/s", "of the nvls graph between GPU and NVSwitch")
	inter.times(g.BWInter, "bandwidth per channel", "GB/s", "of the nvls graph, as its search raised it or to the NICs")
	gather := coll != allReduce
	switch {
	case c.Version.AtLeast(28, 0):
		gen := generationOf(c.MinCC)
		intra.times(nvlsEfficiency[gen], "efficiency", "", "of NVLS on %s (tuning.cc:130-137)", generationNames[gen])
		intra.times((n-1)/n, "own part", "", "(channels-1)/channels (tuning.cc:288-383)")
		if gather {
			m.ownRank(&intra)
		} else {
			intra.times(2, "two directions", "", "reduction and multicast overlap (tuning.cc:288-383)")
		}
		if algo == nvlsTree && c.Nodes <= 2 {
			inter.times(2, "two nodes", "", "one transfer each way (tuning.cc:288-383)")
		}
	case c.Version.AtLeast(27, 0) && algo == nvls && gather:
		m.ownRank(&intra)
		inter.times(0.9, "share", "", "of what the NICs carry (tuning.cc)")
	case algo == nvlsTree && c.Nodes > 2 && c.Version.AtLeast(19, 0):
		inter.times(0.5, "more than two nodes", "", "up and down the tree (tuning.cc)")
	}
	*x = intra
	if c.Version.AtLeast(19, 0) && inter.value < intra.value || !c.Version.AtLeast(19, 0) && c.Nodes > 2 {
		*x = inter
	}
	if algo == nvlsTree && c.Version.AtLeast(28, 0) {
		m.perChannel(x, nvlsTreeMax, nvlsTree, "NVLSTree")
	}
}

func (m *Model) ownRank(x *product) {
	ppn := m.comm.perNode()
	x.times((ppn-1)/ppn, "own rank", "", "a GPU need not fetch its own part (tuning.cc:288-383)")
}

// direct is CollNetDirect, with Simple only.
func (m *Model) direct(x *product, coll int) {
	c := &m.comm
	g := c.CollNetDirect
	ppn := c.perNode()
	if coll != allReduce {
		x.times(ppn, "GPUs per node", "", "each has its own NIC (tuning.cc:288-383)")
		if c.Version.AtLeast(27, 0) {
			x.times(min(g.BWIntra, 0.9*g.BWInter), "bandwidth per channel", "GB/s", "of the CollNet graph, or 0.9 of that to the NICs (tuning.cc:288-383)")
			return
		}
		x.times(g.BWIntra, "bandwidth per channel", "GB/s", "of the CollNet graph")
		w := (ppn - 1) / 7
		x.times(0.85*w+0.95*(1-w), "correction", "", "0.95 with one GPU per node to 0.85 with eight (tuning.cc)")
		return
	}
	x.times(float64(g.Channels), "channels", "", "of the CollNet graph")
	x.times(g.BWIntra, "bandwidth per channel", "GB/s", "of the CollNet graph")
	f := ppn / float64(g.Channels)
	x.times(1/(f-(f-1)/2), "GPUs per NIC", "", "the lack of NICs counts half (tuning.cc:288-383)")
	if c.MinCC >= 90 {
		x.times(0.85, "Hopper and later", "", "(tuning.cc:288-383)")
	}
}

// steps is how often a ring moves the data on.
func (c *Comm) steps(coll int) int {
	switch coll {
	case allReduce:
		return 2 * (c.Ranks - 1)
	case allGather, reduceScatter:
		return c.Ranks - 1
	}
	return c.Ranks
}

// perByte turns bus bandwidth into algorithm bandwidth.
func (m *Model) perByte(x *product, coll, algo int) {
	c := &m.comm
	gather := gathers(coll)
	ratio, why := 0.5, "up and down (tuning.cc:288-383)"
	switch {
	case algo == ring || c.Version.AtLeast(28, 0) && (algo == nvls || algo == nvlsTree) && !gather:
		ratio = float64(c.Ranks) / float64(c.steps(coll))
		why = "ranks / steps (tuning.cc:288-383)"
	case gather && (algo == collNetDirect || c.Version.AtLeast(23, 0)):
		return
	case algo == nvls || algo == nvlsTree:
		ratio, why = 5.0/6, "as NCCL before 2.28 counted NVLS (tuning.cc)"
		if !c.Version.AtLeast(18, 6) {
			ratio = 0.75
			if algo == nvlsTree {
				ratio = 0.7 * float64(c.Nodes) / float64(2*max(1, c.Nodes-1))
			}
		}
	}
	x.times(ratio, "per byte of the result", "", "%s", why)
}

// tidy drops what reckoning with decimal fractions leaves: 12 × 30 × 0.92 is
// 331.2.
func tidy(x float64) float64 { return math.Round(x*1e6) / 1e6 }
