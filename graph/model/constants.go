package model

import "github.com/ncclmap/ncclmap/graph"

// since is a value with the release of NCCL 2 that brought it.
type since[T any] struct {
	minor, patch int
	value        T
}

// at returns the value in a version: of the last row that it reaches. The first
// row also stands for older versions.
func at[T any](v graph.NCCLVersion, history []since[T]) T {
	value := history[0].value
	for _, h := range history {
		if v.AtLeast(h.minor, h.patch) {
			value = h.value
		}
	}
	return value
}

// protos is a figure of each protocol: LL, LL128, Simple.
type protos = [nProtocols]float64

// scales is a figure for one node, two, and more.
type scales = [3]float64

// baseLatency is what an operation costs before its first step, µs (NCCL 2.30.7
// tuning.cc:139-151; 2.18.1, 2.20.3, 2.21.5 and 2.22.3 likewise).
var baseLatency = [nAlgorithms][]since[protos]{
	tree:          {{18, 1, protos{6.8, 14, 0}}, {23, 0, protos{6.8, 14, 8.4}}},
	ring:          {{18, 1, protos{6.6, 14, 8.4}}},
	collNetDirect: {{18, 1, protos{6.8, 14, 0}}, {19, 0, protos{}}},
	collNetChain:  {{18, 1, protos{6.8, 14, 0}}, {19, 0, protos{}}},
	nvls:          {{18, 1, protos{0, 0, 23}}, {19, 0, protos{}}},
	nvlsTree:      {{18, 1, protos{0, 0, 23}}, {19, 0, protos{}}},
	pat:           {{23, 0, protos{8, 8, 8}}},
}

// The kinds of link that a step may cross.
const (
	overNVLink = iota
	overPCI
	overNet
)

var kindNames = [...]string{"NVLink", "PCIe", "the network"}

// stepLatency is what one step costs over a kind of link, µs (NCCL 2.30.7
// tuning.cc:152-172).
var stepLatency = [...][nAlgorithms][]since[protos]{
	overNVLink: {
		tree:          {{18, 1, protos{0.6, 1.25, 28}}, {18, 6, protos{0.6, 1.25, 4}}, {19, 0, protos{0.6, 1.25, 28}}, {23, 0, protos{0.6, 1.25, 4}}},
		ring:          {{18, 1, protos{0.6, 1.9, 3.4}}},
		collNetDirect: {{18, 1, protos{0, 0, 8}}, {19, 0, protos{0, 0, 3.7}}},
		collNetChain:  {{18, 1, protos{0, 0, 4.75}}, {19, 0, protos{0, 0, 2.8}}},
		nvls:          {{18, 1, protos{}}, {19, 0, protos{0, 0, 23}}, {21, 0, protos{0, 0, 25}}},
		nvlsTree:      {{18, 1, protos{}}, {19, 0, protos{0, 0, 23}}, {21, 0, protos{0, 0, 25}}},
		pat:           {{23, 0, protos{0, 0, 4}}},
	},
	overPCI: {
		tree:          {{18, 1, protos{1, 1.9, 28}}, {18, 6, protos{1, 1.9, 6}}, {19, 0, protos{1, 1.9, 28}}, {23, 0, protos{1, 1.9, 4}}},
		ring:          {{18, 1, protos{1, 2.5, 5.7}}},
		collNetDirect: {{18, 1, protos{0, 0, 8}}, {19, 0, protos{0, 0, 3.7}}},
		collNetChain:  {{18, 1, protos{0, 0, 8}}, {19, 0, protos{0, 0, 2.8}}},
		nvls:          {{18, 1, protos{}}},
		nvlsTree:      {{18, 1, protos{}}},
		pat:           {{23, 0, protos{0, 0, 4}}},
	},
	overNet: {
		tree:          {{18, 1, protos{5, 8.5, 28}}, {18, 6, protos{5, 8.5, 14}}, {19, 0, protos{5, 8.5, 28}}, {23, 0, protos{5, 8.5, 14}}},
		ring:          {{18, 1, protos{2.7, 4, 14}}},
		collNetDirect: {{18, 1, protos{0, 0, 10.7}}, {19, 0, protos{0, 0, 31}}},
		collNetChain:  {{18, 1, protos{0, 0, 14}}, {19, 0, protos{0, 0, 30}}},
		nvls:          {{18, 1, protos{0, 0, 18}}},
		nvlsTree:      {{18, 1, protos{0, 0, 19}}, {19, 0, protos{0, 0, 14}}, {28, 9, protos{0, 0, 20.9}}},
		pat:           {{23, 0, protos{0, 0, 14}}},
	},
}

// Generations of GPUs, by the lowest compute capability.
const (
	volta = iota // and older
	ampere
	hopper
	blackwell
	nGenerations
)

var generationNames = [nGenerations]string{"Volta", "Ampere", "Hopper", "Blackwell"}

func generationOf(cc int) int {
	switch {
	case cc >= 100:
		return blackwell
	case cc >= 90:
		return hopper
	case cc >= 80:
		return ampere
	}
	return volta
}

// Ceilings of bandwidth by generation, GB/s (NCCL 2.30.7 tuning.cc:173-212). Before
// 2.25 Blackwell had Hopper's.
type ceilings [nGenerations][]since[scales]

// llMax is of LL over all channels. On several nodes NCCL takes the row of Ampere
// for AMD's processors and that of Volta for others, whatever the GPU
// (tuning.cc:267-272).
var llMax = ceilings{
	volta:     {{18, 1, scales{39, 39, 20.4}}},
	ampere:    {{18, 1, scales{87.7, 22.5, 19}}},
	hopper:    {{18, 1, scales{87.7, 22.5, 19}}, {21, 0, scales{141, 45, 35}}},
	blackwell: {{18, 1, scales{87.7, 22.5, 19}}, {21, 0, scales{141, 45, 35}}, {25, 0, scales{282, 90, 70}}},
}

// ringLL128Max is per channel.
var ringLL128Max = ceilings{
	volta:  {{18, 1, scales{20, 20, 20}}},
	ampere: {{18, 1, scales{20, 20, 20}}},
	hopper: {{18, 1, scales{36.7, 36.7, 36.7}}},
	blackwell: {
		{18, 1, scales{36.7, 36.7, 36.7}}, {25, 0, scales{73.4, 73.4, 73.4}}, {28, 9, scales{73.4, 34.6, 73.4}},
		{29, 2, scales{73.4, 34.5, 73.4}}, {29, 7, scales{40, 40, 40}},
	},
}

// treeLL128Max is per channel.
var treeLL128Max = ceilings{
	volta:  {{18, 1, scales{20, 20, 20}}},
	ampere: {{18, 1, scales{20, 20, 20}}},
	hopper: {{18, 1, scales{36.7, 36.7, 36.7}}, {18, 6, scales{36.7, 36.7, 29}}},
	blackwell: {
		{18, 1, scales{36.7, 36.7, 36.7}}, {18, 6, scales{36.7, 36.7, 29}}, {25, 0, scales{73.4, 73.4, 58}}, {28, 0, scales{55.6, 31.67, 20}},
	},
}

// treeMax is per channel.
var treeMax = ceilings{
	volta:     {{18, 1, scales{26.5, 18.5, 10}}},
	ampere:    {{18, 1, scales{24, 23.6, 17.8}}},
	hopper:    {{18, 1, scales{38.7, 41.4, 33}}, {18, 6, scales{38.7, 41.4, 36}}},
	blackwell: {{18, 1, scales{38.7, 41.4, 33}}, {18, 6, scales{38.7, 41.4, 36}}, {25, 0, scales{77.4, 82.8, 72}}, {28, 0, scales{70, 42.8, 24}}},
}

// nvlsTreeMax is per channel, since 2.28.
var nvlsTreeMax = ceilings{
	volta:     {{28, 0, scales{26.5, 18.5, 10}}},
	ampere:    {{28, 0, scales{24, 23.6, 17.8}}},
	hopper:    {{28, 0, scales{0, 57.7, 45.5}}},
	blackwell: {{28, 0, scales{0, 96, 43.1}}, {28, 9, scales{0, 96, 43.8}}, {30, 0, scales{0, 96, 80}}},
}

// nvlsEfficiency is the share of the links that NVLS makes use of, since 2.28
// (NCCL 2.30.7 tuning.cc:130-137).
var nvlsEfficiency = [nGenerations]float64{0, 0, 0.85, 0.74}

// patShare is what PAT gets of its channels.
var patShare = []since[float64]{{23, 0, 0.85}, {27, 0, 0.75}}

// treeCorrection scales the bandwidth of Tree at middle sizes, by log2(size/64 B)
// (NCCL 2.30.7 tuning.cc:611-618). The last entry is for NVLSTree alone.
var treeCorrection = [nProtocols][24]float64{
	ll:     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
	ll128:  {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
	simple: {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}

// minTraffic is the least that NCCL gives a channel to move, bytes, where it
// spreads an operation (NCCL 2.30.7 enqueue.cc:576-760).
var minTraffic = []since[int64]{{22, 0, 512}, {23, 0, 16 << 10}, {29, 2, 32 << 10}}
