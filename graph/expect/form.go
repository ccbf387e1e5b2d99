package expect

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/ncclmap/ncclmap/graph/model"
)

// Run is one operation: what NCCL runs and over how many channels. SendRecv and
// AllToAll have no algorithm.
type Run struct {
	Collective  string
	Algo, Proto string
	Channels    int // that carry data; 0 = not known
	Bytes       int64
}

// Constants of the form that are not fitted.
const (
	// channelNorm joins the channels' ceiling and the link's rate: 8 measured counts
	// of channels from 1 to 32 lie within 3 % of that norm.
	channelNorm = 3
	// launchNorm joins launch and kernel: launches of one operation overlap the
	// kernel of the one before, and the longer of both mostly counts.
	launchNorm = 4
	// rampBytes is the size at which rates are stated; they rise slowly with size.
	rampBytes = 1 << 30
	// rampEnd is the size from which they rise no more: the largest measured.
	rampEnd = 16 << 30
)

// shape is a run on a machine without its size: which parameters count, and what
// they are multiplied with.
type shape struct {
	// Roles of parameters: indexes into the vector; the values are added up.
	launch, base, hop, netHop, channel, link, ramp, local, net []int

	hops, netHops float64 // beyond the two steps that the base has
	perByte       float64 // bytes over a GPU's links, each way, per byte of the result
	netPerByte    float64 // bytes over a node's ports, likewise
	loop          float64 // steps of a loop that send; 0: no loop
	linkGBs       float64
	netGBs        float64
	factor        float64 // busbw over algbw
}

// times are the parts of an expectation, µs.
type times struct {
	launch, base, hops, netHops, links, net float64
	channelGBs, linkGBs, netGBs             float64 // rates that the last two stand on; 0: none
	perChannel                              float64
}

// kernel is what the GPUs are busy with.
func (t *times) kernel() float64 {
	return t.base + t.hops + t.netHops + max(t.links, t.net)
}

func (t *times) total() float64 { return norm(t.launch, t.kernel(), launchNorm) }

func norm(a, b, p float64) float64 { return math.Pow(math.Pow(a, p)+math.Pow(b, p), 1/p) }

// generation groups GPUs whose parameters are alike.
func generation(cc int) string {
	switch {
	case cc >= 100:
		return "Blackwell"
	case cc >= 90:
		return "Hopper"
	case cc >= 80:
		return "Ampere" // and Ada
	case cc >= 70:
		return "Volta" // and Turing
	}
	return "older"
}

// pattern groups collectives that move data alike.
func pattern(collective string) string {
	switch collective {
	case model.AllGather, model.ReduceScatter:
		return "gather"
	case model.Broadcast, model.Reduce:
		return "one way"
	case model.SendRecv, model.AllToAll:
		return "point to point"
	}
	return model.AllReduce
}

// algorithm is the run's, "" being point to point.
func algorithm(r *Run) string {
	if pattern(r.Collective) == "point to point" {
		return "point to point"
	}
	return r.Algo
}

// newShape resolves a run; ok is false where the form knows nothing of it.
func newShape(m *Machine, r *Run, index func(string) int) (s shape, ok bool) {
	n, k, local := float64(m.Ranks), float64(m.Nodes), float64(m.LocalRanks)
	factor, ok := model.BusFactor(r.Collective, m.Ranks)
	if !ok || m.LinkGBs <= 0 && m.LocalRanks > 1 || m.Nodes > 1 && m.NetGBs <= 0 {
		return s, false
	}
	s.linkGBs, s.netGBs, s.factor = m.LinkGBs, m.NetGBs, factor
	algo, gen := algorithm(r), generation(m.CC)
	switch algo {
	case model.Ring:
		s.ring(r.Collective, n, k, factor)
	case model.Tree:
		if r.Collective != model.AllReduce {
			return s, false
		}
		s.perByte = min(2, local)
		if local == 2 {
			s.perByte = 1
		}
		s.hops, s.netHops, s.netPerByte = max(0, 2*(local-2)), 2*log2(m.Nodes), treeLoad(m.Nodes)
	case model.NVLS, model.NVLSTree:
		// The switch reads every part from all GPUs and writes it to all: a GPU sends
		// the whole buffer and its part of the result, and receives as much.
		if r.Collective != model.AllReduce || algo == model.NVLS && m.Nodes > 1 {
			return s, false
		}
		s.perByte = 1 + 1/local
		s.netHops, s.netPerByte = 2*log2(m.Nodes), treeLoad(m.Nodes)
	case "point to point":
		s.perByte, s.netPerByte = factor, 0
		if m.Nodes > 1 {
			return s, false
		}
	default:
		return s, false
	}
	if m.Nodes == 1 {
		s.netPerByte = 0
	}
	s.parameters(m, r, algo, gen, index)
	return s, true
}

// ring: a chunk passes all ranks, once or twice. Before it can pass on, a loop has
// one step that sends nothing.
func (s *shape) ring(collective string, n, k, factor float64) {
	s.perByte, s.netPerByte = factor, factor
	rounds := 1.0
	switch pattern(collective) {
	case model.AllReduce:
		rounds, s.loop = 2, 2*(n-1)
	case "gather":
		s.loop = n - 1
	}
	s.netHops = rounds * (k - 1)
	s.hops = max(0, rounds*(n-2)-s.netHops)
}

// parameters names what counts for a run. A name in more detail is a correction to
// the ones before.
func (s *shape) parameters(m *Machine, r *Run, algo, gen string, index func(string) int) {
	link, proto := string(m.Link), r.Proto
	of := func(names ...string) (out []int) {
		for _, name := range names {
			out = append(out, index(name))
		}
		return out
	}
	s.launch = of("launch "+launchName(m.Launch), "here launch")
	s.base = of("here kernel", "base "+proto, "base "+algo, "base "+algo+" "+proto)
	s.hop = of("hop " + proto)
	s.link = of("here link", "link", "link "+algo, "link "+algo+" "+proto)
	if m.Link == NVLink {
		s.link = append(s.link, index("link "+gen), index("link "+gen+" "+algo))
	} else {
		s.base = append(s.base, index("base "+link))
		s.hop = append(s.hop, index("hop "+link))
		s.link = append(s.link, index("link "+link))
	}
	s.ramp = of("ramp "+link, "ramp "+link+" "+algo)
	if m.Ranks == 2 {
		s.ramp = append(s.ramp, index("ramp two ranks"))
	}
	if s.loop > 0 {
		s.local = of("local step")
	}
	if p := pattern(r.Collective); p != model.AllReduce {
		s.link, s.ramp = append(s.link, index("link "+p)), append(s.ramp, index("ramp "+p))
	}
	if m.Nodes > 1 {
		s.netHop = of("network hop "+proto, "network hop "+m.fabric())
		s.net = of("here network", "network", "network "+algo, "network "+m.fabric())
		if m.Link == HostMemory {
			s.net = append(s.net, index("network host memory"))
		}
		return // the ceiling of channels is not fitted over several nodes
	}
	if r.Channels > 0 && (algo == model.Ring || algo == model.Tree) {
		s.channel = of("channel "+proto, "channel "+gen, "channel "+algo+" "+proto)
	}
}

func launchName(launch string) string { return cmp.Or(launch, "not stated") }

// carried is the share of a protocol's bytes that are data: LL sends 4 bytes of
// flag with 4 of data, LL128 8 with 120.
func carried(proto string) float64 {
	switch proto {
	case model.LL:
		return 0.5
	case model.LL128:
		return 120.0 / 128
	}
	return 1
}

// at computes the parts for a size with parameters x.
func (s *shape) at(x []float64, proto string, channels int, bytes int64) (t times) {
	sum := func(of []int) (v float64) {
		for _, i := range of {
			v += x[i]
		}
		return v
	}
	b := float64(bytes) / 1000 // per GB/s
	t.launch, t.base = math.Exp(sum(s.launch)), math.Exp(sum(s.base))
	if s.hops > 0 {
		t.hops = s.hops * math.Exp(sum(s.hop))
	}
	if s.netHops > 0 {
		t.netHops = s.netHops * math.Exp(sum(s.netHop))
	}
	if s.perByte > 0 && s.linkGBs > 0 {
		wire := max(1, s.perByte*float64(bytes))
		t.linkGBs = s.linkGBs * carried(proto) * math.Exp(sum(s.link)+sum(s.ramp)*math.Log(min(wire, rampEnd)/rampBytes))
		rate := t.linkGBs
		if len(s.channel) > 0 && channels > 0 {
			t.perChannel = math.Exp(sum(s.channel))
			t.channelGBs = t.perChannel * float64(channels)
			rate = 1 / norm(1/rate, 1/t.channelGBs, channelNorm)
		}
		if s.loop > 0 {
			rate *= s.loop / (s.loop + math.Exp(sum(s.local)))
		}
		t.links = s.perByte * b / rate
	}
	if s.netPerByte > 0 {
		t.netGBs = s.netGBs * math.Exp(sum(s.net))
		t.net = s.netPerByte * b / t.netGBs
	}
	return t
}

func log2(nodes int) float64 { return float64(bits.Len(uint(max(1, nodes) - 1))) }

// treeLoad is what the busiest node sends per byte of the result when two
// complementary binary trees carry half each: once with two nodes, 1.5 times with
// three, twice with more.
func treeLoad(nodes int) float64 {
	switch {
	case nodes < 2:
		return 0
	case nodes < 4:
		return float64(nodes) / 2
	}
	return 2
}
