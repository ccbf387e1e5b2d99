package search

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// digest stands for all that a node's searches depend on. Nodes of one digest
// have the same channels, by place in their views.
type digest [sha256.Size]byte

func (n *node) digest() digest {
	var b []byte
	ints := func(list ...int) {
		b = binary.AppendVarint(b, int64(len(list)))
		for _, x := range list {
			b = binary.AppendVarint(b, int64(x))
		}
	}
	floats := func(list ...float64) {
		for _, x := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	ints(n.gpus, n.minCC, len(n.nets), len(n.v.Nets), len(n.room), btoi(n.inter), btoi(n.v.Processor.AMD), btoi(n.v.NVS >= 0), n.v.Hosts, int(n.v.Options.Version))
	for _, x := range n.room {
		ints(int(x))
	}
	for _, routes := range [][]route{n.gpuGPU, n.gpuNet, n.netGPU, n.gpuNVS, n.nvsGPU} {
		for _, r := range routes {
			ints(int(r.class), int(r.back), r.hops, len(r.uses))
			floats(r.gbs)
			for _, u := range r.uses {
				ints(u.link, int(u.share))
			}
		}
	}
	for _, p := range n.nets {
		ints(p.same...)
		floats(p.gbs)
	}
	for _, lists := range [][][]int{n.prefers, n.near, {n.owner, n.pciLink}} {
		for _, l := range lists {
			ints(l...)
		}
	}
	floats(n.hopGBs...)
	floats(n.cpuGBs...)
	floats(n.outGBs...)
	floats(n.maxGBs, n.allGBs)
	return sha256.Sum256(b)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
