package model

import "math/bits"

// Choice is what NCCL runs an operation with.
type Choice struct {
	Algo  string `json:"algo"`
	Proto string `json:"proto"`
	// Channels that the operation may use. Of small operations NCCL then leaves
	// some without work: ChannelsUsed carry data.
	Channels     int `json:"channels"`
	ChannelsUsed int `json:"channels_used"`
	Threads      int `json:"threads"` // of each channel's block
	// TimeUS is what NCCL believes it takes, µs.
	TimeUS float64 `json:"-"`
}

// elementBytes is the size of a float32, the element of nccl-tests.
const elementBytes = 4

// Bytes returns the size that NCCL works with for a size that nccl-tests is asked
// for, both in bytes of the total: whole elements on every rank, and one at least.
func (m *Model) Bytes(collective string, bytes int64) int64 {
	step := int64(elementBytes)
	if collective == AllGather || collective == ReduceScatter {
		step *= int64(m.comm.Ranks)
	}
	return max(1, bytes/step) * step
}

// Choose returns what NCCL runs an operation of so many bytes with (see
// [Model.Bytes]). ok is false where nothing is left to run it with, or NCCL has
// no cost model for the collective.
func (m *Model) Choose(collective string, bytes int64) (c Choice, ok bool) {
	coll, ok := collectiveIndex(collective)
	if !ok || bytes < 0 {
		return Choice{}, false
	}
	if m.comm.Ranks == 1 {
		return Choice{Algo: Ring, Proto: Simple, Channels: 1, ChannelsUsed: 1, Threads: m.maxThreads[ring][simple]}, true
	}
	best := -1
	for i := range m.usable[coll] {
		if us := m.time(coll, &m.usable[coll][i], bytes); best < 0 || us < c.TimeUS {
			best, c.TimeUS = i, us
		}
	}
	if best < 0 {
		return Choice{}, false
	}
	return m.choice(coll, &m.usable[coll][best], bytes, c.TimeUS), true
}

func (m *Model) choice(coll int, x *candidate, bytes int64, us float64) Choice {
	c := Choice{Algo: algorithmNames[x.algo], Proto: protocolNames[x.proto], TimeUS: us}
	c.Channels, c.Threads = m.launch(x.algo, x.proto, bytes)
	c.ChannelsUsed = m.spread(coll, x.algo, x.proto, c.Channels, c.Threads, bytes)
	return c
}

// Alternatives returns all that NCCL may run an operation with, in its order.
func (m *Model) Alternatives(collective string, bytes int64) (out []Choice) {
	coll, ok := collectiveIndex(collective)
	if !ok || bytes < 0 || m.comm.Ranks == 1 {
		return nil
	}
	for i := range m.usable[coll] {
		x := &m.usable[coll][i]
		out = append(out, m.choice(coll, x, bytes, m.time(coll, x, bytes)))
	}
	return out
}

// Time returns what NCCL believes an operation of so many bytes takes with one
// algorithm and protocol, µs; ok is false where it does not use them.
func (m *Model) Time(t Tuning, bytes int64) (us float64, ok bool) {
	coll, ok := collectiveIndex(t.Collective)
	if !ok || bytes < 0 {
		return 0, false
	}
	for i, x := range m.usable[coll] {
		if algorithmNames[x.algo] == t.Algo && protocolNames[x.proto] == t.Proto {
			return m.time(coll, &m.usable[coll][i], bytes), true
		}
	}
	return 0, false
}

// time is the belief about one operation (NCCL 2.30.7 tuning.cc:620-655). With the
// size change the bandwidth of trees and the latency of rings over several nodes.
func (m *Model) time(coll int, x *candidate, bytes int64) float64 {
	c := &m.comm
	gbs, us := x.gbs, x.us
	if coll == allReduce {
		i := max(0, bits.Len64(uint64(bytes>>6))-1)
		switch {
		case x.algo == tree && i < 23:
			gbs *= treeCorrection[x.proto][i]
		case x.algo == nvlsTree && i < 24 && c.MinCC >= 100 && c.X86 && c.Version.AtLeast(29, 0):
			gbs *= treeCorrection[x.proto][i]
		case x.algo == ring && x.proto == simple && c.Nodes > 1 && c.Channels > 0 && bytes/int64(c.Channels*c.Ranks) >= 64:
			us *= 1.4
			if c.MinCC < 80 {
				us = x.us * 1.9
			}
		}
	}
	return us + float64(bytes)/(1000*gbs)
}
