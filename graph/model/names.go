package model

import (
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Collectives as ncclmap prints them everywhere. NCCL has no cost model for
// SendRecv and AllToAll.
const (
	AllReduce     = "AllReduce"
	AllGather     = "AllGather"
	ReduceScatter = "ReduceScatter"
	Broadcast     = "Broadcast"
	Reduce        = "Reduce"
	SendRecv      = "SendRecv"
	AllToAll      = "AllToAll"
)

// Algorithms and protocols as ncclmap prints them everywhere.
const (
	Tree          = "Tree"
	Ring          = "Ring"
	CollNetDirect = "CollNetDirect"
	CollNetChain  = "CollNetChain"
	NVLS          = "NVLS"
	NVLSTree      = "NVLSTree"
	PAT           = "PAT"

	LL     = "LL"
	LL128  = "LL128"
	Simple = "Simple"
)

// Indexes of the tables below, in NCCL's order (NCCL 2.30.7
// plugin/nccl_tuner.h:27-59), by which it breaks ties.
const (
	tree = iota
	ring
	collNetDirect
	collNetChain
	nvls
	nvlsTree
	pat
	nAlgorithms
)

const (
	ll = iota
	ll128
	simple
	nProtocols
)

const (
	allReduce = iota
	allGather
	reduceScatter
	broadcast
	reduce
	nCollectives // that NCCL has a model for
)

const (
	sendRecv = nCollectives + iota
	allToAll
)

var (
	algorithmNames  = [nAlgorithms]string{Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT}
	protocolNames   = [nProtocols]string{LL, LL128, Simple}
	collectiveNames = [...]string{AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, SendRecv, AllToAll}
)

// Collectives lists the collectives, first those that NCCL has a model for.
func Collectives() []string { return collectiveNames[:] }

// Modelled lists the collectives that NCCL has a model for.
func Modelled() []string { return collectiveNames[:nCollectives] }

func collectiveIndex(name string) (i int, ok bool) {
	i = slices.Index(collectiveNames[:nCollectives], name)
	return i, i >= 0
}

// BusFactor is [probe.BusFactor] where there is something to move: ok is also false
// for a single rank.
func BusFactor(collective string, ranks int) (factor float64, ok bool) {
	if ranks < 2 {
		return 0, false
	}
	return probe.BusFactor(collective, ranks)
}

// Check names an NCCL version that the model was compared with.
type Check struct {
	Version string `json:"nccl_version"`
	Against string `json:"against"`
}

// Checks lists the versions whose own figures the package's tests compare with.
func Checks() []Check {
	return []Check{
		{"2.30.7", "the decisions of its own code for 15 topologies on 1 to 128 hosts, run without GPUs"},
		{"2.28.3", "the log of a run on 2 H200 in a virtual machine"},
		{"2.27.7", "the decisions of its own code for 15 topologies on 1 to 16 hosts, run without GPUs; NVLS off"},
		{"2.23.4", "the same for 14 topologies"},
		{"2.21.5", "the same for 14 topologies"},
	}
}

// Verified reports whether the version is one of [Checks].
func Verified(v graph.NCCLVersion) bool {
	return slices.ContainsFunc(Checks(), func(c Check) bool { return c.Version == v.String() })
}
