package model

import (
	"fmt"
	"math"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
)

// NCCLVersion is the NCCL version that the model describes.
const NCCLVersion = "2.30.7"

// Check names an NCCL version that the model was compared with.
type Check struct {
	Version string `json:"nccl_version"`
	Against string `json:"against"`
}

// Checks lists the versions whose own figures the package's tests compare with.
func Checks() []Check {
	return []Check{
		{"2.30.7", "the decisions of its own code for 14 topologies, run without GPUs"},
		{"2.28.3", "the log of a run on 2 H200 in a virtual machine"},
	}
}

// Names as ncclmap prints them everywhere.
const (
	AllReduce = "AllReduce"
	Ring      = "Ring"
	LL        = "LL"
	LL128     = "LL128"
	Simple    = "Simple"
)

// Term is one part of a figure. Bandwidth is the product of its terms, latency
// the sum.
type Term struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // GB/s, us, or "" for a count or factor
	Why   string  `json:"why"`  // with the place in NCCL's source
}

// Tuning is NCCL's belief about one collective, algorithm and protocol.
type Tuning struct {
	Collective string  `json:"collective"`
	Algo       string  `json:"algo"`
	Proto      string  `json:"proto"`
	BWGBs      float64 `json:"bw_gbs"`     // algorithm bandwidth; 0: NCCL does not use it
	LatencyUS  float64 `json:"latency_us"` //
	// Disabled says why the bandwidth is 0; "" where it is not.
	Disabled     string `json:"disabled,omitempty"`
	BWTerms      []Term `json:"bw_terms"`
	LatencyTerms []Term `json:"latency_terms"`
}

// Time returns what NCCL believes one operation of so many bytes takes, in µs;
// ok is false where it does not use this algorithm and protocol (NCCL 2.30.7
// tuning.cc:620-655). It holds for rings on one node.
func (t Tuning) Time(bytes int64) (us float64, ok bool) {
	if t.BWGBs <= 0 || bytes < 0 {
		return 0, false
	}
	return t.LatencyUS + float64(bytes)/(1000*t.BWGBs), true
}

// BusFactor is what nccl-tests multiplies an algorithm bandwidth with to get the
// bus bandwidth (nccl-tests doc/PERFORMANCE.md); ok is false for a collective
// that the model does not know.
func BusFactor(collective string, ranks int) (factor float64, ok bool) {
	if collective != AllReduce || ranks < 1 {
		return 0, false
	}
	return 2 * float64(ranks-1) / float64(ranks), true
}

// generation holds NCCL's ceilings by lowest compute capability ×10, for one
// node (NCCL 2.30.7 tuning.cc:139-212).
type generation struct {
	fromCC    int
	name      string
	llMax     float64 // GB/s, all channels together
	ringLL128 float64 // GB/s per channel
}

var generations = []generation{
	{100, "Blackwell", 282, 40},
	{90, "Hopper", 141, 36.7},
	{80, "Ampere", 87.7, 20},
	{0, "Volta", 39, 20},
}

func generationOf(cc int) generation {
	for _, g := range generations[:len(generations)-1] {
		if cc >= g.fromCC {
			return g
		}
	}
	return generations[len(generations)-1]
}

// protocol holds a protocol's constants for rings (NCCL 2.30.7 tuning.cc:139-212
// and 288-383). Latencies in µs.
type protocol struct {
	name   string
	base   float64
	nvlink float64 // per step, all of the ring on NVLink
	pci    float64 // per step otherwise
	share  float64 // of the channels' bandwidth that carries data
	why    string
}

var protocols = []protocol{
	{LL, 6.6, 0.6, 1.0, 0.5, "half of what LL sends is flags (tuning.cc:288-383)"},
	{LL128, 14.0, 1.9, 2.5, 0.92, "LL128 sends 8 bytes of flags in 128; NCCL counts 0.92 (tuning.cc:288-383)"},
	{Simple, 8.4, 3.4, 5.7, 1, ""},
}

// AllReduceRing returns NCCL's belief about AllReduce over the ring with LL,
// LL128 and Simple. A single GPU has no ring: the list is empty.
func AllReduceRing(r *search.Result) ([]Tuning, error) {
	if r.Ranks == 1 {
		return nil, nil
	}
	g, ok := r.Graph(search.Ring)
	if !ok || r.Nodes != 1 {
		return nil, fmt.Errorf("model AllReduce over the ring: no ring graph of one node in the search result")
	}
	var out []Tuning
	for _, p := range protocols {
		t := Tuning{Collective: AllReduce, Algo: Ring, Proto: p.name}
		t.BWTerms, t.Disabled = bandwidth(r, g, p)
		t.LatencyTerms = latency(r, g, p)
		t.BWGBs = 1
		for _, x := range t.BWTerms {
			t.BWGBs *= x.Value
		}
		for _, x := range t.LatencyTerms {
			t.LatencyUS += x.Value
		}
		t.BWGBs, t.LatencyUS = tidy(t.BWGBs), tidy(t.LatencyUS)
		out = append(out, t)
	}
	return out, nil
}

// tidy drops what reckoning with decimal fractions leaves: 12 × 30 × 0.92 is
// 331.2.
func tidy(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func bandwidth(r *search.Result, g search.Graph, p protocol) (terms []Term, disabled string) {
	gen := generationOf(r.MinCC)
	channels := float64(g.Channels)
	terms = []Term{
		{"channels", channels, "", "of the ring graph, before the communicator doubles them"},
		{"bandwidth per channel", g.BWIntra, "GB/s", "of the ring graph"},
	}
	if g.Fallback {
		terms[1].Why = "no ring fits at any speed that NCCL tries: it falls back to simple order (search.cc:1177-1287)"
	}
	bus := channels * g.BWIntra
	if p.share != 1 {
		terms = append(terms, Term{"share of data", p.share, "", p.why})
		bus *= p.share
	}
	ceiling, what := 0.0, ""
	switch p.name {
	case LL:
		ceiling, what = gen.llMax, fmt.Sprintf("%g GB/s in all for LL on %s", gen.llMax, gen.name)
	case LL128:
		ceiling, what = channels*gen.ringLL128, fmt.Sprintf("%g GB/s per channel for LL128 on %s", gen.ringLL128, gen.name)
	}
	if ceiling > 0 && ceiling < bus {
		terms = append(terms, Term{"ceiling", ceiling / bus, "", fmt.Sprintf("NCCL expects at most %s, not %.4g GB/s (tuning.cc:139-212)", what, bus)})
	}
	n := float64(r.Ranks)
	terms = append(terms, Term{"per byte of the result", n / (2 * (n - 1)), "",
		fmt.Sprintf("each byte crosses every link 2(n-1)/n times with n = %d ranks (tuning.cc:288-383)", r.Ranks)})
	if p.name == LL128 {
		if disabled = ll128Off(r, g); disabled != "" {
			terms = append(terms, Term{"enabled", 0, "", disabled})
		}
	}
	return terms, disabled
}

func latency(r *search.Result, g search.Graph, p protocol) []Term {
	steps, per, kind := 2*(r.Ranks-1), p.pci, "PCIe"
	// NCCL counts as NVLink only what is NVL throughout; NVB and C2C are not.
	if g.TypeIntra == graph.NVL {
		per, kind = p.nvlink, "NVLink"
	}
	return []Term{
		{"base", p.base, "us", fmt.Sprintf("of a ring with %s (tuning.cc:139-212)", p.name)},
		{"steps", float64(steps) * per, "us",
			fmt.Sprintf("2(n-1) = %d steps of %g us each over %s, path class %v (tuning.cc:384-436)", steps, per, kind, g.TypeIntra)},
	}
}

// ll128Off says why NCCL does not use LL128 by default, "" when it does (NCCL
// 2.30.7 tuning.cc:440-541). Not covered: NCCL built with CUDA 11.8, which leaves
// it out on two Hopper GPUs.
func ll128Off(r *search.Result, g search.Graph) string {
	farthest := graph.PXB
	if r.MinCC >= 90 {
		farthest = graph.PXN
	}
	switch {
	case g.TypeIntra > graph.NVB:
		return fmt.Sprintf("NCCL keeps LL128 to NVLink (class NVB or better), the ring's class is %v (tuning.cc:440-541)", g.TypeIntra)
	case g.TypeInter > farthest:
		return fmt.Sprintf("the way to the NIC is %v, worse than %v (tuning.cc:440-541)", g.TypeInter, farthest)
	case r.MinCC < 70:
		return fmt.Sprintf("compute capability %d.%d is below 7.0 (tuning.cc:440-541)", r.MinCC/10, r.MinCC%10)
	case r.MinCC != r.MaxCC && r.MinCC < 90:
		return fmt.Sprintf("GPUs of compute capability %d.%d and %d.%d are mixed (tuning.cc:440-541)", r.MinCC/10, r.MinCC%10, r.MaxCC/10, r.MaxCC%10)
	}
	return ""
}
