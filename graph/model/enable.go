package model

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
)

// modelled reports whether NCCL fills in an entry at all (NCCL 2.30.7
// tuning.cc:288-300).
func (c *Comm) modelled(coll, algo, proto int) bool {
	switch algo {
	case tree:
		return coll == allReduce
	case ring:
		return true
	case collNetChain:
		return coll == allReduce
	case collNetDirect:
		return coll == allReduce || gathers(coll) && c.Version.AtLeast(20, 0)
	case nvls:
		return proto == simple && (coll == allReduce || gathers(coll) && c.Version.AtLeast(19, 0))
	case nvlsTree:
		return coll == allReduce && proto == simple
	case pat:
		return proto == simple && gathers(coll) && c.Version.AtLeast(23, 0)
	}
	return false
}

// gathers: each rank has a part of the total.
func gathers(coll int) bool { return coll == allGather || coll == reduceScatter }

// off says why NCCL does not use an entry; "" when it does (NCCL 2.30.7
// tuning.cc:340-383, 440-541 and enqueue.cc:1989-2026).
func (m *Model) off(coll, algo, proto int) string {
	for _, why := range []string{m.missing(coll, algo, proto), m.excluded(coll, algo, proto), m.ll128Off(coll, algo, proto)} {
		if why != "" {
			return why
		}
	}
	return ""
}

// missing says what an algorithm needs and the communicator lacks.
func (m *Model) missing(coll, algo, proto int) string {
	c := &m.comm
	gather := gathers(coll)
	switch algo {
	case nvls, nvlsTree:
		switch {
		case c.NVLS.Channels == 0:
			return "no NVLS graph: it needs NVSwitches, compute capability 9.0, multicast and NCCL_NVLS_ENABLE"
		case c.NVLS.Channels < 2 && c.Version.AtLeast(28, 0):
			return "NVLS needs two channels, its graph has one"
		case algo == nvlsTree && c.Nodes == 1:
			return "NVLSTree is for several nodes"
		case algo == nvls && c.Nodes > 1 && c.CollNet.Heads == 0:
			return "over several nodes NVLS needs a network plugin with CollNet"
		case algo == nvls && c.Nodes > 1 && gather && (!m.offers(coll) || c.LocalRanks > c.CollNet.Heads):
			return "over several nodes NVLS needs CollNet for this collective, and a NIC for each GPU"
		case gather && c.LocalRanks > 32:
			return "NVLS does this collective for up to 32 ranks of a node"
		}
	case collNetDirect, collNetChain:
		switch {
		case c.CollNet.Heads == 0 || c.graph(algo).Channels == 0:
			return "no network plugin with CollNet"
		case proto != simple:
			return "CollNet is used with Simple only"
		case algo == collNetDirect && !c.NVSwitch:
			return "CollNetDirect needs NVSwitches"
		case c.LocalRanks > 8:
			return "CollNet is for up to 8 ranks of a node"
		case gather && c.Nodes > 1 && (!m.offers(coll) || c.LocalRanks > c.CollNet.Heads):
			return "CollNetDirect needs the plugin's help for this collective, and a NIC for each GPU"
		}
	case pat:
		enable := m.set.PAT.Or(2)
		switch {
		case c.MinCC < 60:
			return "PAT needs compute capability 6.0"
		case enable == 0:
			return "NCCL_PAT_ENABLE=0"
		case enable == 2 && c.Nodes != c.Ranks:
			return "PAT is for one GPU per node"
		}
	}
	return ""
}

func (m *Model) offers(coll int) bool {
	return coll == allGather && m.comm.CollNet.AllGather || coll == reduceScatter && m.comm.CollNet.ReduceScatter
}

// excluded says which setting rules an entry out.
func (m *Model) excluded(coll, algo, proto int) string {
	if !m.protos.permits(coll, protocolNames[proto]) {
		return "NCCL_PROTO leaves it out"
	}
	if !m.algos.permits(coll, algorithmNames[algo]) && !((algo == ring || algo == tree) && m.algosIgnored(coll)) {
		return "NCCL_ALGO leaves it out"
	}
	return ""
}

// algosIgnored: before 2.24 NCCL took Ring and Tree where NCCL_ALGO names nothing
// that it has, such as CollNet (tuning.cc).
func (m *Model) algosIgnored(coll int) bool {
	c := &m.comm
	if c.Version.AtLeast(24, 0) || c.CollNet.Heads > 0 {
		return false
	}
	usable := func(algo int) bool { return m.algos.permits(coll, algorithmNames[algo]) }
	return !usable(ring) && !usable(tree) && !(usable(nvls) && c.Nodes == 1) && !(usable(nvlsTree) && c.Nodes > 1)
}

// ll128Off says why NCCL does not use LL128 by default; naming it in NCCL_PROTO
// forces it. Not covered: NCCL built with CUDA 11.8, which leaves it out on two
// Hopper GPUs.
func (m *Model) ll128Off(coll, algo, proto int) string {
	if proto != ll128 || m.protos.set[coll] {
		return ""
	}
	c := &m.comm
	g := c.graph(algo)
	farthest := graph.PXB
	if c.MinCC >= 90 && !(m.set.NoLL128C2C && c.Version.AtLeast(27, 0)) {
		farthest = graph.PXN
	}
	nearest := graph.NVB
	if !c.Version.AtLeast(18, 6) {
		nearest = graph.NVL
	}
	switch {
	case g.TypeIntra > nearest:
		return fmt.Sprintf("NCCL keeps LL128 to NVLink (class %v or better), the %s's class is %v (tuning.cc:440-541)", nearest, g.Pattern, g.TypeIntra)
	case g.TypeInter > farthest:
		return fmt.Sprintf("the way to the NIC is %v, worse than %v (tuning.cc:440-541)", g.TypeInter, farthest)
	case c.MinCC != c.MaxCC && !(c.MinCC >= 90 && c.Version.AtLeast(30, 0)):
		return fmt.Sprintf("GPUs of compute capability %s and %s are mixed (tuning.cc:440-541)", cc(c.MinCC), cc(c.MaxCC))
	case !ll128Generation(c.MinCC, c.Version):
		return fmt.Sprintf("NCCL %v does not use LL128 on compute capability %s (tuning.cc:440-541)", c.Version, cc(c.MinCC))
	}
	return ""
}

// ll128Generation: NCCL first named the GPUs that it uses LL128 on, from 2.27 on
// it is all from 7.0.
func ll128Generation(minCC int, v graph.NCCLVersion) bool {
	switch {
	case v.AtLeast(27, 0):
		return minCC >= 70
	case minCC == 100 || minCC == 120:
		return v.AtLeast(25, 0)
	}
	return minCC == 70 || minCC == 80 || minCC == 90
}

func cc(x int) string { return fmt.Sprintf("%d.%d", x/10, x%10) }
