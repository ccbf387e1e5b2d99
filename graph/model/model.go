package model

import (
	"fmt"
	"slices"
)

// Tuning is NCCL's belief about one collective, algorithm and protocol.
type Tuning struct {
	Collective string  `json:"collective"`
	Algo       string  `json:"algo"`
	Proto      string  `json:"proto"`
	BWGBs      float64 `json:"bw_gbs"`     // algorithm bandwidth; 0: NCCL does not use it
	LatencyUS  float64 `json:"latency_us"` //
	// Disabled says why the bandwidth is 0; "" where it is not.
	Disabled     string `json:"disabled,omitempty"`
	BWTerms      []Term `json:"bw_terms,omitempty"`
	LatencyTerms []Term `json:"latency_terms,omitempty"`
}

// Model is NCCL's cost model of one communicator. It is immutable.
type Model struct {
	comm   Comm
	set    Settings
	algos  permits
	protos permits
	tuning []Tuning
	usable [nCollectives][]candidate
	// threads and thresholds of the kernels.
	maxThreads [nAlgorithms][nProtocols]int
	thresholds [nAlgorithms][nProtocols]int64
	leastBytes int64 // of traffic per channel
}

// candidate is what the choice needs of a Tuning that NCCL uses.
type candidate struct {
	algo, proto int
	gbs, us     float64
}

// New makes the model of a communicator. An error tells that NCCL would not start
// with the settings.
func New(c Comm, s Settings) (*Model, error) {
	if c.Ranks < 1 || c.Nodes < 1 {
		return nil, fmt.Errorf("model: %d ranks on %d nodes", c.Ranks, c.Nodes)
	}
	m := &Model{comm: c, set: s}
	var err error
	if m.algos, err = readPermits("NCCL_ALGO", s.Algo, c.Version); err != nil {
		return nil, err
	}
	if m.protos, err = readPermits("NCCL_PROTO", s.Proto, c.Version); err != nil {
		return nil, err
	}
	m.setThreads()
	m.leastBytes = at(c.Version, minTraffic)
	if c.Ranks == 1 {
		return m, nil // it has nobody to talk to
	}
	for coll := range nCollectives {
		m.fill(coll)
	}
	return m, nil
}

// Tuning returns the table, by collective, algorithm and protocol in NCCL's
// order: the entries that NCCL fills in. A single rank has none.
func (m *Model) Tuning() []Tuning { return m.tuning }

// Comm returns the communicator.
func (m *Model) Comm() Comm { return m.comm }

// fill computes a collective's part of the table.
func (m *Model) fill(coll int) {
	var rows []Tuning
	for algo := range nAlgorithms {
		for proto := range nProtocols {
			if m.comm.modelled(coll, algo, proto) {
				t := m.entry(coll, algo, proto)
				if t.Disabled = m.off(coll, algo, proto); t.Disabled != "" {
					t.BWGBs = 0
				}
				rows = append(rows, t)
			}
		}
	}
	m.usable[coll] = candidates(rows)
	if len(m.usable[coll]) == 0 {
		m.fallBack(coll, rows)
		m.usable[coll] = candidates(rows)
	}
	m.tuning = append(m.tuning, rows...)
}

// entry computes one entry, not asking whether NCCL uses it.
func (m *Model) entry(coll, algo, proto int) Tuning {
	t := Tuning{Collective: collectiveNames[coll], Algo: algorithmNames[algo], Proto: protocolNames[proto]}
	if !m.skipped(algo) {
		lat := m.latency(coll, algo, proto)
		t.LatencyUS, t.LatencyTerms = tidy(lat.value), lat.terms
	}
	if m.comm.graph(algo).Channels > 0 {
		bw := m.bandwidth(coll, algo, proto)
		t.BWGBs, t.BWTerms = tidy(bw.value), bw.terms
	}
	return t
}

// skipped: NCCL leaves the entries of an algorithm empty.
func (m *Model) skipped(algo int) bool {
	switch algo {
	case nvls, nvlsTree:
		return m.comm.NVLS.Channels < 2 && m.comm.Version.AtLeast(28, 0)
	case pat:
		return m.missing(allGather, pat, simple) != ""
	}
	return false
}

// fallBack lets Ring in where nothing else is left, as NCCL 2.19 to 2.23 does; since
// 2.22 with the protocols that are not ruled out (tuning.cc).
func (m *Model) fallBack(coll int, rows []Tuning) {
	v := m.comm.Version
	if v.AtLeast(24, 0) || !v.AtLeast(19, 0) {
		return
	}
	for i, t := range rows {
		proto := slices.Index(protocolNames[:], t.Proto)
		ruledOut := v.AtLeast(22, 0) && (!m.protos.permits(coll, t.Proto) || m.ll128Off(coll, ring, proto) != "")
		if t.Algo == Ring && !ruledOut {
			rows[i] = m.entry(coll, ring, proto)
		}
	}
}

func candidates(rows []Tuning) (out []candidate) {
	for _, t := range rows {
		if t.BWGBs > 0 {
			out = append(out, candidate{slices.Index(algorithmNames[:], t.Algo), slices.Index(protocolNames[:], t.Proto), t.BWGBs, t.LatencyUS})
		}
	}
	return out
}
