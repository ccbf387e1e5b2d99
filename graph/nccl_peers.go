package graph

import "github.com/ncclmap/ncclmap/probe"

// peers marks the pairs of GPUs that address each other's memory, diverts the
// others through host memory, and marks those whose data NCCL sends over the
// network.
func (p *ncclPather) peers() {
	v := p.v
	level := v.p2pLevel()
	for i, g := range v.GPUs {
		for j, h := range v.GPUs {
			if path := &v.paths[i][j]; i != j {
				path.P2P = path.Class <= level && p.b.peers(v, i, j)
				if path.P2P {
					continue
				}
				// GPU, the CPU next to its peer, peer.
				*path = NCCLPath{A: path.A, B: path.B, Class: DIS}
				if !v.sameHost(i, j) {
					path.Class = NET
					continue
				}
				if way, ok := p.throughCPU(h, g, h); ok {
					*path = way
				}
			}
		}
	}
	near := v.nearestNets()
	for i := range v.GPUs {
		for j := range v.GPUs {
			path := &v.paths[i][j]
			if i == j || path.GBs <= 0 {
				continue
			}
			faster := !v.Options.NoNetIntra && near[i] > path.GBs && near[j] > path.GBs
			if faster || v.Options.NoSHM && !path.P2P {
				path.Class, path.P2P = NET, false
			}
		}
	}
}

// nearestNets is the bandwidth at which each GPU reaches a NIC that is PXB or
// nearer.
func (v *NCCLView) nearestNets() []float64 {
	out := make([]float64, len(v.GPUs))
	for i := range v.GPUs {
		for _, path := range v.toNet[i] {
			if path.Class <= PXB {
				out[i] = max(out[i], path.GBs)
			}
		}
	}
	return out
}

// p2pLevel is the worst class over which NCCL lets GPUs address each other's
// memory (NCCL 2.30.7 paths.cc:298-434).
func (v *NCCLView) p2pLevel() PathClass {
	switch {
	case v.Options.P2PLevel != Unknown:
		return v.Options.P2PLevel
	case v.Processor.AMD && len(v.GPUs) <= 2:
		return SYS
	}
	return PXB
}

// peers reports whether the driver lets two GPUs address each other's memory.
// What is unknown is allowed, as it is on all but GeForce boards.
func (b *ncclBuilder) peers(v *NCCLView, i, j int) bool {
	if v.Options.NoP2P {
		return false
	}
	if !v.sameHost(i, j) {
		return true // its fabric says so
	}
	at, other := &v.Nodes[v.GPUs[i]], &v.Nodes[v.GPUs[j]]
	x, y := at.Node.GPU, other.Node.GPU
	known := false
	for _, side := range []struct {
		of   *probe.GPU
		peer int
	}{{x, other.Dev}, {y, at.Dev}} {
		for _, p := range side.of.Peers {
			if p.GPU != side.peer || p.Capability != "read" && p.Capability != "write" {
				continue
			}
			known = true
			if p.Status != "ok" {
				return false
			}
		}
	}
	if !known {
		b.assume("host", "whether the driver allows peer access between the GPUs is unknown: taken as allowed")
	}
	return true
}

// group finds the nodes that NCCL makes of the GPUs: what only the network joins
// is apart (NCCL 2.30.7 paths.cc:867-911). Each node's paths are found anew.
func (b *ncclBuilder) group() {
	v := b.v
	// A GPU joins the lowest group of those before it that it reaches; NCCL does
	// not go back to join groups that meet later. What nothing is known to join
	// stays in one group: the host's wiring is unknown, not its being one host.
	group := make([]int, len(v.GPUs))
	for i := range group {
		group[i] = i
		for j := range i {
			if v.paths[i][j].Class != NET {
				group[i] = min(group[i], group[j])
			}
		}
	}
	for first := range group {
		var members []int
		for k, g := range group {
			if g == first {
				members = append(members, k)
			}
		}
		if members != nil {
			v.Groups = append(v.Groups, members)
		}
	}
	if len(v.Groups) == 1 {
		v.parts = []*NCCLView{v}
		return
	}
	for _, members := range v.Groups {
		part := *v
		part.GPUs, part.Groups = nil, [][]int{make([]int, len(members))}
		for k, i := range members {
			part.GPUs = append(part.GPUs, v.GPUs[i])
			part.Groups[0][k] = k
		}
		b.paths(&part)
		part.parts = []*NCCLView{&part}
		v.parts = append(v.parts, &part)
	}
}
