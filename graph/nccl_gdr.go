package graph

import (
	"cmp"
	"math/bits"
	"slices"
)

// local lists what is nearest to a thing: the most bandwidth, then the best class
// (NCCL 2.30.7 topo.cc:1943-1972).
func local(paths []NCCLPath) []int {
	var out []int
	best := NCCLPath{Class: DIS}
	for i, p := range paths {
		switch c := cmp.Or(cmp.Compare(best.GBs, p.GBs), cmp.Compare(p.Class, best.Class)); {
		case c < 0:
			best, out = p, []int{i}
		case c == 0 && p.GBs > 0:
			out = append(out, i)
		}
	}
	return out
}

// NetsOf returns the NETs (positions) that NCCL prefers for a GPU, by channel
// until they repeat (NCCL 2.30.7 topo.cc:2039-2076).
func (v *NCCLView) NetsOf(gpu int) []int {
	nets := local(v.toNet[gpu])
	if len(nets) == 0 {
		return nil
	}
	gpus := len(v.LocalGPUs(nets[0]))
	per := (len(nets) + gpus - 1) / gpus
	switch n := v.Options.NetsPerGPU; {
	case n < 0:
		per = len(nets)
	case n > 0:
		per = min(n, len(nets))
	}
	start := v.Nodes[v.GPUs[gpu]].Dev
	if len(nets)&(len(nets)-1) == 0 {
		start = mirror(start, len(nets))
	}
	out := make([]int, 0, per)
	for c := range per {
		n := nets[(start+c)%len(nets)]
		if c > 0 && n == out[0] {
			break
		}
		out = append(out, n)
	}
	return out
}

// mirror reverses the bits of x below n, a power of two: neighbouring GPUs get
// NICs that are far apart.
func mirror(x, n int) int {
	if n < 2 {
		return 0
	}
	width := bits.Len(uint(n)) - 1
	return int(bits.Reverse64(uint64(x%n)) >> (64 - width))
}

// LocalGPUs returns the GPUs (positions) nearest to a NET.
func (v *NCCLView) LocalGPUs(net int) []int { return local(v.fromNet[net]) }

// LocalGPU returns the GPU that prefers a NET: of those nearest to it the one
// for which it comes first; ok is false when it is none's.
func (v *NCCLView) LocalGPU(net int) (gpu int, ok bool) {
	near := v.LocalGPUs(net)
	prefer := make([][]int, len(near))
	most := 0
	for i, g := range near {
		prefer[i] = v.NetsOf(g)
		most = max(most, len(prefer[i]))
	}
	for c := range most {
		for i, g := range near {
			if p := prefer[i]; len(p) > 0 && p[c%len(p)] == net {
				return g, true
			}
		}
	}
	return 0, false
}

// acrossC2C gives the way between a GPU and a NIC of its own CPU the class P2C
// where it takes the chip-to-chip link (NCCL 2.30.7 paths.cc:721-865; since
// 2.27).
func (p *ncclPather) acrossC2C() {
	v := p.v
	if !v.Options.Version.AtLeast(27, 0) {
		return
	}
	for i, g := range v.GPUs {
		cpu, ok := p.localCPU(g)
		if !ok || p.path(g, cpu).Class != C2C {
			continue
		}
		for _, k := range local(v.toNet[i]) {
			if p.path(v.Nets[k], cpu).Class == PHB {
				v.toNet[i][k].Class, v.fromNet[k][i].Class = P2C, P2C
			}
		}
	}
}

// toNets relays what a GPU sends to a NIC over the GPU next to it (PXN), and
// diverts through host memory what may not use GPUDirect RDMA (NCCL 2.30.7
// paths.cc:468-549, 815-843).
func (p *ncclPather) toNets() {
	v := p.v
	for k := range v.Nets {
		for i := range v.GPUs {
			if relay, ok := v.LocalGPU(k); ok && relay != i && p.relays(relay, i, k) {
				path := p.join(v.paths[i][relay], v.toNet[relay][k])
				path.Class = PXN
				v.toNet[i][k] = path
			}
			if v.toNet[i][k].Class < PHB && !v.gdr(i, k, false) {
				if way, ok := p.throughCPU(v.GPUs[i], v.GPUs[i], v.Nets[k]); ok {
					v.toNet[i][k] = way
				}
				if way, ok := p.throughCPU(v.GPUs[i], v.Nets[k], v.GPUs[i]); ok {
					v.fromNet[k][i] = way
				}
			}
		}
	}
}

// relays reports whether NCCL sends from a GPU to a NIC over the GPU that
// prefers the NIC.
func (p *ncclPather) relays(relay, gpu, net int) bool {
	v := p.v
	farthest := PXB
	if v.Options.Version.AtLeast(28, 0) && !v.Options.NoPXNC2C { // off by default before
		farthest = P2C
	}
	of, own := v.toNet[relay][net], v.toNet[gpu][net]
	return !v.Options.NoPXN && v.sameHost(relay, gpu) && of.Class <= farthest && v.paths[relay][gpu].Class <= NVL &&
		(!v.Options.Version.AtLeast(30, 0) || v.gdr(relay, net, true)) &&
		(of.GBs > own.GBs || own.Class > PXN)
}

// sameHost reports whether two GPUs are of one host.
func (v *NCCLView) sameHost(i, j int) bool {
	return v.Nodes[v.GPUs[i]].Host == v.Nodes[v.GPUs[j]].Host
}

// gdr reports whether a NIC reads (for what a GPU sends) or writes the GPU's
// memory itself (NCCL 2.30.7 paths.cc:468-549).
func (v *NCCLView) gdr(gpu, net int, read bool) bool {
	node := &v.Nodes[v.GPUs[gpu]]
	if !v.Nodes[v.Nets[net]].Net.GDR || !node.Node.GPU.GDR.Or(true) {
		return false
	}
	if allowed, set := v.Options.GDRRead.Get(); read && set && !allowed {
		return false
	} else if read && !set && node.CC.Or(0) < 80 && len(v.GPUs) > 1 &&
		!slices.ContainsFunc(v.paths[gpu], func(p NCCLPath) bool { return p.Class == NVL }) {
		return false
	}
	level := v.Options.GDRLevel
	if level == Unknown {
		level = PXB
		if v.Options.Version.AtLeast(27, 0) && !v.Options.NoGDRC2C {
			level = P2C
		}
	}
	class := v.toNet[gpu][net].Class
	if relay, ok := v.LocalGPU(net); class == PXN && ok {
		class = v.toNet[relay][net].Class
	}
	return class <= level
}
