package model

import "math/bits"

// latency is what an entry costs whatever the size, µs (NCCL 2.30.7
// tuning.cc:384-436).
func (m *Model) latency(coll, algo, proto int) sum {
	c := &m.comm
	var x sum
	if algo != nvls || !c.Version.AtLeast(19, 0) {
		x.plus(m.base(algo, proto), "base", "of %s with %s (tuning.cc:139-151)", algorithmNames[algo], protocolNames[proto])
	}
	kind := c.intra(algo)
	intra, inter := m.step(kind, algo, proto), m.step(overNet, algo, proto)
	if c.Ranks == c.Nodes && c.Version.AtLeast(23, 0) {
		inter = m.step(overNet, tree, proto) // nothing hides it
	}
	local := float64(c.Ranks/c.Nodes - 1)
	depth := float64(bits.Len(uint(c.Nodes)) - 1)
	switch algo {
	case ring:
		m.ringLatency(&x, coll, proto, intra, inter)
	case tree:
		x.plus(2*local*intra, "within the node", "up and down a chain of %g GPUs, %g us a step over %s (tuning.cc:384-436)", local+1, intra, kindNames[kind])
		if c.Nodes > 1 {
			x.plus(2*depth*inter, "between nodes", "up and down a tree of %d nodes, %g us a step (tuning.cc:384-436)", c.Nodes, inter)
		}
	case collNetDirect:
		x.plus(2*(min(1, local)*intra+0.4*local), "within the node", "to and from the GPUs with NICs, 0.4 us for each GPU (tuning.cc:384-436)")
		x.plus(inter, "between nodes", "once through the network's switches (tuning.cc:384-436)")
	case collNetChain:
		x.plus(2*local*intra, "within the node", "up and down a chain of %g GPUs, %g us a step (tuning.cc:384-436)", local+1, intra)
		x.plus(inter, "between nodes", "once through the network's switches (tuning.cc:384-436)")
	case nvls:
		x.plus(intra, "within the node", "one operation of the NVSwitches; NCCL leaves the base out (tuning.cc:384-436)")
		if c.Nodes > 1 {
			x.plus(inter, "between nodes", "one step (tuning.cc:384-436)")
		}
	case nvlsTree:
		x.plus(intra, "within the node", "one operation of the NVSwitches (tuning.cc:384-436)")
		x.plus(2*depth*inter, "between nodes", "up and down a tree of %d nodes, %g us a step (tuning.cc:384-436)", c.Nodes, inter)
	case pat:
		x.plus(depth*inter/3.5, "between nodes", "%g rounds of %g/3.5 us (tuning.cc:384-436)", depth, inter)
		x.plus(2.8*float64(c.Ranks), "ranks", "2.8 us for each of %d (tuning.cc:384-436)", c.Ranks)
	}
	return x
}

func (m *Model) base(algo, proto int) float64 { return at(m.comm.Version, baseLatency[algo])[proto] }

// step is the latency of one step. NCCL favours trees on POWER, whose PCIe step
// with Simple it takes from the ring (tuning.cc:274-276).
func (m *Model) step(kind, algo, proto int) float64 {
	if algo == tree && kind == overPCI && proto == simple && m.comm.POWER {
		algo = ring
	}
	return at(m.comm.Version, stepLatency[kind][algo])[proto]
}

func (m *Model) ringLatency(x *sum, coll, proto int, intra, inter float64) {
	c := &m.comm
	kind := c.intra(ring)
	if coll == broadcast || coll == reduce {
		if c.Nodes > 1 {
			kind = overNet
		}
		if c.Ring.SameChannels != 0 {
			x.plus(m.step(kind, ring, proto), "step", "NCCL counts one over %s where all channels have one order (tuning.cc:384-436)", kindNames[kind])
			return
		}
		algo := ring
		if proto == simple {
			algo = tree // some allowance for the size of chunks
		}
		per := m.step(kind, algo, proto)
		x.plus(float64(c.Ranks)*per, "steps", "%d steps of %g us over %s (tuning.cc:384-436)", c.Ranks, per, kindNames[kind])
		return
	}
	between, raised := 0, ""
	if c.Nodes > 1 {
		between = c.Nodes - 1
		if coll == allReduce {
			between *= 2
			if !c.Version.AtLeast(23, 0) {
				between = 2 * c.Nodes
			}
		}
		post := m.netOverhead()
		if proto == simple {
			post *= 3
		}
		if post > intra {
			intra, raised = post, ", which posting to a NIC takes"
		}
	}
	within := c.steps(coll) - between
	x.plus(float64(within)*intra, "steps within nodes", "%d steps of %g us each%s, over %s, path class %v (tuning.cc:384-436)", within, intra, raised, kindNames[kind], c.Ring.TypeIntra)
	if between > 0 {
		x.plus(float64(between)*inter, "steps between nodes", "%d steps of %g us each (tuning.cc:384-436)", between, inter)
	}
}

// netOverhead is what posting a message costs, µs (NCCL 2.30.7 tuning.cc:226-232).
func (m *Model) netOverhead() float64 {
	if us, ok := m.set.NetOverheadUS.Get(); ok {
		return us
	}
	if m.comm.AMD && !m.comm.MixedVendors {
		return 2
	}
	return 1
}
