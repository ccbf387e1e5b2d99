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
	table  [nCollectives][nAlgorithms][nProtocols]entry
	// threads and thresholds of the kernels.
	maxThreads [nAlgorithms][nProtocols]int
	thresholds [nAlgorithms][nProtocols]int64
}

// entry is what the choice needs of a Tuning; gbs is 0 where it is not used.
type entry struct{ gbs, us float64 }

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
	first, usable := len(m.tuning), false
	for algo := range nAlgorithms {
		for proto := range nProtocols {
			if !m.comm.modelled(coll, algo, proto) {
				continue
			}
			t := Tuning{Collective: collectiveNames[coll], Algo: algorithmNames[algo], Proto: protocolNames[proto]}
			if !m.skipped(algo) {
				lat := m.latency(coll, algo, proto)
				t.LatencyUS, t.LatencyTerms = tidy(lat.value), lat.terms
			}
			if m.comm.graph(algo).Channels > 0 {
				bw := m.bandwidth(coll, algo, proto)
				t.BWGBs, t.BWTerms = tidy(bw.value), bw.terms
			}
			m.tuning = append(m.tuning, t)
			m.table[coll][algo][proto] = entry{t.BWGBs, t.LatencyUS}
			if why := m.off(coll, algo, proto); why != "" {
				m.disable(coll, algo, proto, why)
			}
			usable = usable || m.table[coll][algo][proto].gbs > 0
		}
	}
	if !usable {
		m.fallBack(coll, m.tuning[first:])
	}
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

func (m *Model) disable(coll, algo, proto int, why string) {
	t := &m.tuning[len(m.tuning)-1]
	t.BWGBs, t.Disabled = 0, why
	m.table[coll][algo][proto].gbs = 0
}

// fallBack lets Ring in where nothing else is left, as NCCL 2.19 to 2.23 does; since
// 2.22 with the protocols that are not ruled out (tuning.cc).
func (m *Model) fallBack(coll int, rows []Tuning) {
	v := m.comm.Version
	if v.AtLeast(24, 0) || !v.AtLeast(19, 0) {
		return
	}
	for i := range rows {
		t := &rows[i]
		if t.Algo != Ring {
			continue
		}
		proto := slices.Index(protocolNames[:], t.Proto)
		if v.AtLeast(22, 0) && (!m.protos.permits(coll, t.Proto) || m.ll128Off(coll, ring, proto) != "") {
			continue
		}
		t.BWGBs, t.Disabled = tidy(m.bandwidth(coll, ring, proto).value), ""
		m.table[coll][ring][proto].gbs = t.BWGBs
	}
}
