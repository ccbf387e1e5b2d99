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
	if !ok {
		return Choice{}, false
	}
	if m.comm.Ranks == 1 {
		return Choice{Algo: Ring, Proto: Simple, Channels: 1, ChannelsUsed: 1, Threads: m.maxThreads[ring][simple]}, true
	}
	bestAlgo, bestProto, best := 0, 0, 0.0
	ok = false
	for algo := range nAlgorithms {
		for proto := range nProtocols {
			if us, usable := m.time(coll, algo, proto, bytes); usable && (!ok || us < best) {
				bestAlgo, bestProto, best, ok = algo, proto, us, true
			}
		}
	}
	if !ok {
		return Choice{}, false
	}
	c = Choice{Algo: algorithmNames[bestAlgo], Proto: protocolNames[bestProto], TimeUS: best}
	c.Channels, c.Threads = m.launch(bestAlgo, bestProto, bytes)
	c.ChannelsUsed = m.spread(coll, bestAlgo, bestProto, c.Channels, c.Threads, bytes)
	return c, true
}

// Time returns what NCCL believes an operation of so many bytes takes with one
// algorithm and protocol, µs; ok is false where it does not use them.
func (m *Model) Time(t Tuning, bytes int64) (us float64, ok bool) {
	coll, known := collectiveIndex(t.Collective)
	if !known {
		return 0, false
	}
	for algo := range nAlgorithms {
		for proto := range nProtocols {
			if algorithmNames[algo] == t.Algo && protocolNames[proto] == t.Proto {
				return m.time(coll, algo, proto, bytes)
			}
		}
	}
	return 0, false
}

// time is the belief about one operation (NCCL 2.30.7 tuning.cc:620-655).
func (m *Model) time(coll, algo, proto int, bytes int64) (us float64, ok bool) {
	e := m.table[coll][algo][proto]
	if e.gbs <= 0 || bytes < 0 {
		return 0, false
	}
	gbs, factor := m.corrected(coll, algo, proto, bytes, e.gbs)
	return e.us*factor + float64(bytes)/(1000*gbs), true
}

// corrected applies what depends on the size: a factor on the bandwidth of trees,
// and one on the latency of rings over several nodes.
func (m *Model) corrected(coll, algo, proto int, bytes int64, gbs float64) (corrected, latency float64) {
	c := &m.comm
	latency = 1
	if coll != allReduce {
		return gbs, latency
	}
	i := max(0, bits.Len64(uint64(bytes>>6))-1)
	switch {
	case algo == tree && i < 23:
		gbs *= treeCorrection[proto][i]
	case algo == nvlsTree && i < 24 && c.MinCC >= 100 && c.X86 && c.Version.AtLeast(29, 0):
		gbs *= treeCorrection[proto][i]
	case algo == ring && proto == simple && c.Nodes > 1 && c.Channels > 0 && bytes/int64(c.Channels*c.Ranks) >= 64:
		latency = 1.4
		if c.MinCC < 80 {
			latency = 1.9
		}
	}
	return gbs, latency
}
