package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// Schema is the "schema" member of a comparison.
const Schema = "ncclmap.compare/v1"

// Comparison is measured points beside their predictions.
type Comparison struct {
	Schema string  `json:"schema"`
	Points []Point `json:"points"`
	// Summary is of ncclmap's own predictions, NCCL of what NCCL believes.
	Summary Summary `json:"summary"`
	NCCL    Summary `json:"nccl_summary"`
	// Suspects are links that explain a shortfall; SuspectsWhy says why there are
	// none.
	Suspects    []Suspect `json:"suspects"`
	SuspectsWhy string    `json:"suspects_why,omitempty"`
	check.Result
}

// Point is one measured size. Errors are relative: 0.1 = the prediction is 10 %
// longer than what was measured.
type Point struct {
	Run        string             `json:"run"`
	File       string             `json:"file"`
	Hosts      []string           `json:"hosts"`
	Settings   string             `json:"settings"` // "NAME=value …"; "unknown"
	Collective string             `json:"collective"`
	Bytes      int64              `json:"bytes"`
	Ranks      probe.Opt[int]     `json:"ranks"`
	Nodes      probe.Opt[int]     `json:"nodes"`
	Algo       probe.Opt[string]  `json:"algo"` // that ran, where it is known
	Proto      probe.Opt[string]  `json:"proto"`
	MeasuredUS float64            `json:"measured_us"`
	BusBWGBs   float64            `json:"busbw_gbs"`
	Predicted  probe.Opt[float64] `json:"predicted_us"`
	Error      probe.Opt[float64] `json:"error"`
	Believed   probe.Opt[float64] `json:"nccl_estimate_us"`
	NCCLError  probe.Opt[float64] `json:"nccl_error"`
	// BelievedOf is algorithm and protocol that NCCL's estimate is of, and where
	// it comes from.
	BelievedOf string `json:"nccl_estimate_of,omitempty"`
	// Why is why a prediction is missing.
	PredictedWhy string `json:"predicted_why,omitempty"`
	BelievedWhy  string `json:"nccl_estimate_why,omitempty"`
}

// Summary is the size of the errors, sign left out; unknown where n is 0.
type Summary struct {
	Median probe.Opt[float64] `json:"median_error"`
	P90    probe.Opt[float64] `json:"p90_error"`
	N      int                `json:"n"`
}

// Suspect is a link that would explain what is missing.
type Suspect struct {
	Link  string  `json:"link"`
	Share float64 `json:"share"`
	Why   string  `json:"why"`
}

// Query is an operation to predict the time of.
type Query struct {
	Topo       *graph.Topology // of one of the hosts, which are taken to be alike
	Run        *probe.Run      // NCCL's version, settings, hosts and GPUs as far as they are known
	Collective string
	Bytes      int64
	Ranks      int
	Nodes      int
	Algo       string // "" = what NCCL would choose
	Proto      string
}

// Estimate is the predicted time of an operation and what it is of.
type Estimate struct {
	TimeUS      float64
	Algo, Proto string
}

// Predictor predicts; an error says why it cannot.
type Predictor func(Query) (Estimate, error)

// Unavailable is a predictor of nothing.
func Unavailable(why string) Predictor {
	return func(Query) (Estimate, error) { return Estimate{}, errors.New(why) }
}

// noSuspects is why links are not named yet.
const noSuspects = "naming a link needs the load that each collective puts on each link, which this version does not compute; " +
	"a ring is as slow as its slowest link, so ring results alone cannot tell which it is"

// Run compares the samples of all runs and applies the rules about jobs. believe is
// NCCL's own model, expect ncclmap's.
func Run(m probe.Measured, believe, expect Predictor) (*Comparison, error) {
	out := &Comparison{Schema: Schema, Points: []Point{}, Suspects: []Suspect{}, SuspectsWhy: noSuspects}
	var err error
	if out.Result, err = check.RunMeasured(m, jobRules()); err != nil {
		return nil, err
	}
	c := m.All
	topos := make([]*graph.Topology, len(c.Hosts))
	for i, h := range c.Hosts {
		if topos[i], err = graph.Build(h); err != nil {
			return nil, fmt.Errorf("host %s: %w", h.Host.Name, err)
		}
	}
	choices := choicesOf(&c.Job)
	for _, s := range c.Sweeps() {
		topo := topologyOf(topos, s.Run.Hosts)
		for _, p := range s.Points {
			out.Points = append(out.Points, newPoint(&s, p, topo, choices, believe, expect))
		}
	}
	out.Summary = summarize(out.Points, func(p Point) probe.Opt[float64] { return p.Error })
	out.NCCL = summarize(out.Points, func(p Point) probe.Opt[float64] { return p.NCCLError })
	return out, nil
}

// jobRules are the rules that judge a job, not what its hosts are made of: that is
// ncclmap check's.
func jobRules() []check.Rule {
	return slices.DeleteFunc(check.All(), func(r check.Rule) bool { return r.Run != nil })
}

// topologyOf returns the topology of a host of the run with a GPU that something
// but the job itself saw; nil where there is none.
func topologyOf(topos []*graph.Topology, hosts []probe.RunHost) *graph.Topology {
	for _, t := range topos {
		if len(t.Inv.PCI) == 0 && len(t.Inv.Relations) == 0 {
			continue
		}
		name := t.Inv.Host.Name
		if name == "" || slices.ContainsFunc(hosts, func(h probe.RunHost) bool { return probe.SameHostName(h.Name, name) }) {
			return t
		}
	}
	return nil
}

func newPoint(s *probe.Sweep, p probe.SweepPoint, topo *graph.Topology, choices map[choiceKey]probe.Choice, believe, expect Predictor) Point {
	x := p.Fastest()
	out := Point{
		Run: x.Run, File: s.Run.File, Hosts: s.Run.HostNames(), Settings: s.Run.SettingsText(), Collective: x.Collective, Bytes: x.Bytes, Ranks: x.Ranks, Nodes: x.Nodes,
		MeasuredUS: x.TimeUS, BusBWGBs: x.BusBW,
	}
	q := Query{Topo: topo, Run: &s.Run, Collective: x.Collective, Bytes: x.Bytes, Ranks: x.Ranks.Or(0), Nodes: x.Nodes.Or(0)}
	choice := choiceOf(choices, s.Run.File, x)
	q.Algo, q.Proto = ran(s, x, choice)
	out.Algo, out.Proto = known(q.Algo), known(q.Proto)
	if us, ok := choice.TimeUS.Get(); ok {
		out.Believed = probe.Some(us)
		out.BelievedOf = strings.TrimSpace(choice.Algorithm+" "+choice.Protocol) + ", as its own log prints it"
	} else if e, err := predict(believe, q); err != nil {
		out.BelievedWhy = err.Error()
	} else {
		out.Believed = probe.Some(e.TimeUS)
		out.BelievedOf = strings.TrimSpace(e.Algo + " " + e.Proto)
	}
	if e, err := predict(expect, q); err != nil {
		out.PredictedWhy = err.Error()
	} else {
		out.Predicted = probe.Some(e.TimeUS)
	}
	out.Error, out.NCCLError = off(out.Predicted, x.TimeUS), off(out.Believed, x.TimeUS)
	return out
}

func known(s string) probe.Opt[string] {
	if s == "" {
		return probe.Opt[string]{}
	}
	return probe.Some(s)
}

// predict asks for a prediction where the facts for it are known.
func predict(p Predictor, q Query) (Estimate, error) {
	switch {
	case q.Ranks == 0 || q.Nodes == 0:
		return Estimate{}, errors.New("ranks or hosts of the run are not known")
	case q.Topo == nil:
		return Estimate{}, errors.New("the topology of the hosts is not in the sources")
	}
	e, err := p(q)
	if err == nil && !(e.TimeUS > 0) {
		return Estimate{}, errors.New("the prediction is not positive")
	}
	return e, err
}

func off(predicted probe.Opt[float64], measured float64) probe.Opt[float64] {
	if us, ok := predicted.Get(); ok {
		return probe.Some(us/measured - 1)
	}
	return probe.Opt[float64]{}
}

// summarize takes the median and the 90th percentile (nearest rank) of the sizes
// of errors.
func summarize(points []Point, of func(Point) probe.Opt[float64]) Summary {
	var errs []float64
	for _, p := range points {
		if e, ok := of(p).Get(); ok {
			errs = append(errs, math.Abs(e))
		}
	}
	n := len(errs)
	if n == 0 {
		return Summary{}
	}
	slices.Sort(errs)
	return Summary{
		Median: probe.Some((errs[(n-1)/2] + errs[n/2]) / 2),
		P90:    probe.Some(errs[(9*n+9)/10-1]),
		N:      n,
	}
}
