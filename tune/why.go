package tune

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// WhySchema is the "schema" member of a Why.
const WhySchema = "ncclmap.why/v1"

// Why is what costs bandwidth, the largest loss first.
type Why struct {
	Schema string `json:"schema"`
	// Basis is what costs are computed from, or why there are none.
	Basis  string `json:"basis"`
	Losses []Loss `json:"losses"`
	check.Result
}

// Loss is a fault and what it costs. Costs are of the fault alone, as if everything
// else were repaired; the gain is that of its repair alone. They are unknown where
// nothing tells them, which CostWhy explains.
type Loss struct {
	Cause     string             `json:"cause"` // what was observed
	Rule      string             `json:"rule"`
	Severity  check.Severity     `json:"severity"`
	Subjects  []string           `json:"subjects"`
	CostGBs   probe.Opt[float64] `json:"cost_gbs"`
	CostShare probe.Opt[float64] `json:"cost_share"`        // of what there would be without the fault
	CostOf    string             `json:"cost_of,omitempty"` // what it is that loses so much
	CostWhy   string             `json:"cost_why,omitempty"`
	Repair    string             `json:"repair"`
	Gain      probe.Opt[float64] `json:"expected_gain"` // how much faster: 0.19 = 19 %
	Certainty check.Certainty    `json:"certainty"`
}

// Costs says whether the loss is known to cost bandwidth.
func (l *Loss) Costs() bool { return l.CostShare.Or(0) > leastShare }

// leastShare is below what two predictions differ in by rounding alone.
const leastShare = 0.001

const basis = "NCCL's own model of a 1 GiB AllReduce (bus bandwidth), with and without each fault, and what the link that has it can carry of that; not fitted to measurements"

// WhySlow ranks what the rules find by what it costs. Warnings and worse are all
// there, info where it is known to cost something. An error is an inventory of which
// no topology can be built.
func WhySlow(m probe.Measured) (*Why, error) {
	res, err := check.RunMeasured(m, check.All())
	if err != nil {
		return nil, err
	}
	out := &Why{Schema: WhySchema, Basis: basis, Losses: []Loss{}, Result: res}
	c := newCosting(m.All)
	if c.unknown != nil {
		out.Basis = "measurements and rates alone; no costs by NCCL's model: " + c.unknown.Error()
	}
	for _, f := range res.Findings {
		c.add(f)
	}
	for _, f := range res.Findings {
		l := Loss{Cause: f.Observed, Rule: f.Rule, Severity: f.Severity, Subjects: f.Subjects, Repair: f.Fix, Certainty: f.Certainty}
		c.price(&l, f)
		if f.Severity > check.Info || l.Costs() {
			out.Losses = append(out.Losses, l)
		}
	}
	slices.SortStableFunc(out.Losses, byCost)
	return out, nil
}

// byCost puts what is known to cost first, the most of it first of all; then what may
// cost, the most severe first; then what costs nothing.
func byCost(a, b Loss) int {
	class := func(l Loss) int {
		switch {
		case l.Costs():
			return 0
		case !l.CostShare.Known():
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(class(a), class(b)), -cmp.Compare(a.CostShare.Or(0), b.CostShare.Or(0)), -cmp.Compare(a.Severity, b.Severity))
}

// stops are rules about what ends a job or spoils its results.
var stops = []string{
	"env-differs", "fabric-not-ready", "gpu-faulted", "gpu-missing", "imex-missing", "job-async-error", "job-rank-behind",
	"job-rank-missing", "log-algo-unavailable", "log-duplicate-gpu", "log-interface-unroutable", "log-port-error",
	"log-qp-failed", "log-version-mixed", "measured-wrong-data", "memlock-low", "nccl-cuda-mismatch",
	"nccl-gpu-unsupported",
}

// unpriced says why a finding has no cost.
func unpriced(rule string) string {
	switch {
	case slices.Contains(stops, rule):
		return "it stops jobs or spoils their results rather than slowing them"
	case strings.HasPrefix(rule, "measured-"):
		return "it was measured and is what the causes cost together, not one of them"
	}
	return "NCCL's model knows nothing of it; measure with and without it"
}

// alternative is what was measured with another setting.
func (l *Loss) alternative(alt check.Alternative) {
	g := slices.MaxFunc(alt.Gains, func(a, b check.SizeGain) int { return cmp.Compare(a.Base.Bytes, b.Base.Bytes) })
	l.cost(g.Better.BusBW, g.Base.BusBW, g.Base.BusBW, g.Better.BusBW)
	l.CostOf = "bus bandwidth of " + alt.Base.Collective + " of " + probe.SizeText(g.Base.Bytes) + ", measured"
}

// cost takes bandwidths in GB/s: with everything repaired and with all but this;
// with nothing repaired and with this alone.
func (l *Loss) cost(whole, but, now, fixed float64) {
	if lost := whole - but; lost > 0 && whole > 0 {
		l.CostGBs, l.CostShare = probe.Some(lost), probe.Some(lost/whole)
	} else {
		l.CostGBs, l.CostShare = probe.Some(0.0), probe.Some(0.0)
	}
	if now > 0 {
		l.Gain = probe.Some(max(0, fixed/now-1))
	}
}
