package model

// Threads of a block (NCCL 2.30.7 device.h).
const (
	warp             = 32
	mostThreads      = 640
	simpleMaxThreads = 512
	llMaxThreads     = 512
	ll128MaxThreads  = 640
	// pciGBs is NCCL's PCI_BW: a ring below it makes do with half the threads.
	pciGBs = 12
)

// setThreads finds the most threads of each kernel and the bytes that NCCL wants
// for each of them (NCCL 2.30.7 tuning.cc:234-255, 586-608).
func (m *Model) setThreads() {
	of := func(asked, least, most, byDefault int) int {
		switch {
		case asked <= 0:
			return byDefault
		case asked%warp != 0:
			return most
		}
		return min(max(asked, least), most)
	}
	byDefault := simpleMaxThreads
	if m.comm.Ring.BWIntra*float64(m.comm.Ring.Channels) <= pciGBs {
		byDefault = 256
	}
	forLL := of(m.set.Threads, 2*warp, llMaxThreads, llMaxThreads)
	forLL128 := of(m.set.LL128Threads, ll128MaxThreads/4, ll128MaxThreads, ll128MaxThreads)
	m.maxThreads[ring] = [nProtocols]int{forLL, forLL128, of(m.set.Threads, 2*warp, simpleMaxThreads, byDefault)}
	m.maxThreads[tree] = [nProtocols]int{forLL, forLL128, of(m.set.Threads, 2*warp, simpleMaxThreads, simpleMaxThreads)}
	for _, algo := range []int{collNetDirect, collNetChain, nvls, nvlsTree} {
		m.maxThreads[algo][simple] = mostThreads
	}
	for algo := range nAlgorithms {
		m.thresholds[algo] = [nProtocols]int64{ll: 8, ll128: 8, simple: 64}
	}
	m.thresholds[ring][ll] *= int64(m.comm.Ranks)
	m.thresholds[collNetDirect][simple], m.thresholds[collNetChain][simple] = 512, 512
	for algo, row := range m.set.Thresholds {
		for proto, asked := range row {
			m.thresholds[algo][proto] = asked.Or(m.thresholds[algo][proto])
		}
	}
}

// launch is how many channels and threads NCCL gives an operation (NCCL 2.30.7
// enqueue.cc:2070-2116).
func (m *Model) launch(algo, proto int, bytes int64) (channels, threads int) {
	c := &m.comm
	nc, nt, per := c.Channels, m.maxThreads[algo][proto], m.thresholds[algo][proto]
	switch algo {
	case nvls, nvlsTree:
		nc = c.NVLSChannels
		if algo == nvls && c.Nodes > 1 && c.Version.AtLeast(22, 0) {
			nc = min(nc, c.Channels)
		}
	case collNetDirect:
		nc = m.directChannels(nc, nt, per, bytes)
	default:
		for nc > 1 && bytes < int64(nc*nt)*per {
			nc--
		}
		for nt%128 == 0 && nt > 0 && bytes < int64(nc*nt)*per {
			nt /= 2
		}
	}
	if proto == simple {
		switch algo {
		case ring:
			nt += warp // one more to synchronise
		case tree:
			nt += 4 * warp
		}
	}
	nt = max(nt, 3*warp)
	if algo == tree && c.Version.AtLeast(22, 0) || algo == pat {
		nt = mostThreads
	}
	return nc, nt
}

// directChannels lowers the channels of CollNetDirect in steps: below each its
// threads may have half as much to do.
func (m *Model) directChannels(nc, nt int, per, bytes int64) int {
	more := true
	for least := 16; least >= 1 && more; least /= 2 {
		for {
			more = bytes < int64(nc*nt*m.comm.CollNet.Heads)*per
			if !more || nc <= least {
				break
			}
			if nc == least+least/2 {
				per /= 2
			}
			nc--
		}
	}
	return nc
}

// spread is how many of the channels carry data: NCCL gives each a share worth the
// trouble (NCCL 2.30.7 enqueue.cc:576-760).
func (m *Model) spread(coll, algo, proto, channels, threads int, bytes int64) int {
	c := &m.comm
	if algo == collNetDirect || algo == collNetChain || algo == nvls && c.Nodes > 1 {
		return channels
	}
	perRank := bytes
	if gathers(coll) {
		perRank /= int64(c.Ranks)
	}
	if !c.Version.AtLeast(22, 0) {
		return evenly(proto, channels, threads, perRank)
	}
	return m.cells(coll, algo, proto, channels, perRank)
}

// evenly divides an operation as NCCL before 2.22 does: equal parts, rounded up
// to what the threads of a block move at once (NCCL 2.21.5 enqueue.cc:
// scheduleCollTasksToPlan).
func evenly(proto, channels, threads int, bytes int64) int {
	unit := int64(4096)
	switch proto {
	case ll:
		unit = 8 * int64(threads)
	case ll128:
		unit = 480 * int64(threads/warp)
	}
	part := up(up(up(ceil(bytes, int64(channels)), 16), elementBytes), unit)
	return int(ceil(bytes, part))
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func up(a, unit int64) int64 { return ceil(a, unit) * unit }

// cells divides an operation as NCCL from 2.22 on does: into cells of a least
// traffic, as many to each channel as its share.
func (m *Model) cells(coll, algo, proto, channels int, bytes int64) int {
	c := &m.comm
	least := m.leastBytes
	perByte := int64(1)
	switch coll {
	case allReduce:
		perByte = 2
	case allGather, reduceScatter:
		perByte = int64(c.Ranks)
	}
	if proto == ll && c.Version.AtLeast(26, 0) {
		perByte *= 4
	}
	most := c.Channels
	if algo == nvls || algo == nvlsTree {
		most = c.NVLSChannels
	}
	share := max(least, bytes*perByte) / int64(min(channels, most))
	if c.Version.AtLeast(29, 0) {
		share = up(share, 16)
	}
	share = max(share, least)
	cell := up(ceil(least, perByte), 16)
	cells := ceil(bytes, cell)
	perChannel := min(cells, ceil(share, cell*perByte))
	used := int(ceil(cells, perChannel))
	return min(used, most)
}
