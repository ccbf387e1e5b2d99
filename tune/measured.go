package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/tune/compare"
)

// Compare sets the measured samples of a cluster beside what NCCL believes.
func Compare(c *probe.Cluster) (*compare.Comparison, error) {
	return compare.Run(c, believe(), compare.Unavailable("no model of this version was fitted to measurements"))
}

// AnalyseMeasured is Analyse of one of the hosts of a cluster that ran tests:
// findings are those of the whole cluster, and what its runs proved to be faster is
// set. recheck is the day on which to measure again.
func AnalyseMeasured(inv *probe.Inventory, c *probe.Cluster, recheck string) (*Analysis, error) {
	a, err := Analyse(inv)
	if err != nil {
		return nil, err
	}
	if a.Check, err = check.RunCluster(c, check.All()); err != nil {
		return nil, err
	}
	a.Plan = Advise(a.Topo, a.Check)
	a.Plan.addMeasured(a.Topo, &c.Job, recheck)
	return a, nil
}

// believe is NCCL's own model as far as this version has it: rings of AllReduce on
// one node. Each topology is searched once.
func believe() compare.Predictor {
	known := map[*graph.Topology]Prediction{}
	return func(q compare.Query) (compare.Estimate, error) {
		switch {
		case q.Collective != model.AllReduce || q.Nodes != 1:
			return compare.Estimate{}, fmt.Errorf("NCCL's model is known for AllReduce on one host only")
		case q.Algo != "" && q.Algo != model.Ring:
			return compare.Estimate{}, fmt.Errorf("NCCL's model of %s is not known", q.Algo)
		}
		p, ok := known[q.Topo]
		if !ok {
			p = predict(q.Topo)
			known[q.Topo] = p
		}
		switch {
		case p.Unknown != nil:
			return compare.Estimate{}, p.Unknown
		case p.Search.Ranks != q.Ranks:
			return compare.Estimate{}, fmt.Errorf("%d ranks ran and the host has %d GPUs: which rings NCCL finds for them is not known", q.Ranks, p.Search.Ranks)
		}
		var best compare.Estimate
		for _, t := range p.Tuning {
			us, ok := t.Time(q.Bytes)
			if ok && (q.Proto == "" || q.Proto == t.Proto) && (best.TimeUS == 0 || us < best.TimeUS) {
				best = compare.Estimate{TimeUS: us, Algo: t.Algo, Proto: t.Proto}
			}
		}
		if best.TimeUS == 0 {
			return best, fmt.Errorf("NCCL does not use %s here", strings.TrimSpace(model.Ring+" "+q.Proto))
		}
		return best, nil
	}
}

// notEvenMeasured lists what no measured gain justifies, with the reason. A value is left
// out where the variable as a whole is meant.
var notEvenMeasured = []struct{ name, value, why string }{
	{"NCCL_IGNORE_DISABLED_P2P", "", "it hides a fault of the links"},
	{"NCCL_SHM_DISABLE", "", "it takes away the only path between some pairs of GPUs"},
	{"NCCL_IB_DISABLE", "", "it turns RDMA off for every job; the fault behind it should be found"},
	{"NCCL_LEGACY_CUDA_REGISTER", "", "it can hang or corrupt data"},
	{"NCCL_GRAPH_FILE", "", "it holds for one set of GPUs only"},
	{"NCCL_P2P_LEVEL", "SYS", "pairs would cross the link between CPUs"},
}

// addMeasured sets the variables that runs of this machine's job proved to be
// faster. recheck is the day on which to measure again.
func (p *Plan) addMeasured(topo *graph.Topology, job *probe.Job, recheck string) {
	for _, alt := range check.Alternatives(job) {
		if slices.ContainsFunc(p.Variables, func(v Variable) bool { return v.Name == alt.Variable }) {
			continue // decided for a reason of its own
		}
		p.Declined = slices.DeleteFunc(p.Declined, func(d Declined) bool { return d.Name == alt.Variable })
		if but := unfit(alt); but != "" {
			p.Declined = append(p.Declined, Declined{Name: alt.Variable, Why: alt.String() + ", but " + but, Evidence: alt.Evidence()})
			continue
		}
		p.Variables = append(p.Variables, measured(topo, alt, recheck))
	}
}

// unfit says why a setting is not written whatever it gains, "" where it may be.
func unfit(alt check.Alternative) string {
	for _, n := range notEvenMeasured {
		if n.name == alt.Variable && (n.value == "" || strings.EqualFold(n.value, alt.Value)) {
			return n.why
		}
	}
	if alt.Variable != "NCCL_PROTO" {
		return ""
	}
	v, _ := ncclenv.Lookup(alt.Variable)
	rows, _, err := v.Selections(alt.Value, alt.Better.Run.NCCL)
	if err != nil {
		return err.Error()
	}
	if slices.ContainsFunc(rows, func(r ncclenv.Selection) bool { return r.Set && slices.Contains(r.Allowed, model.LL128) }) {
		return "a list that leaves LL128 forces it on, and it corrupts data where a path does not keep 128 bytes together"
	}
	return ""
}

// measured makes the setting of an alternative.
func measured(topo *graph.Topology, alt check.Alternative, recheck string) Variable {
	v := Variable{
		Name: alt.Variable, Value: alt.Value, Why: "measured here: " + alt.String() + ".",
		Evidence: append(alt.Evidence(), check.Evidence{Source: "rule", Where: "measured-alternative-better", Fact: "measure again by " + recheck + ", or with another NCCL, driver or firmware"}),
		Risk:     "other sizes, collectives and scales than those measured may lose",
		Since:    firstReadBy(alt.Variable),
		Verify:   fmt.Sprintf("run %s with and without it at %s and more", alt.Better.Run.Program, probe.SizeText(alt.Gains[0].Base.Bytes)),
	}
	switch alt.Variable {
	case "NCCL_ALGO", "NCCL_PROTO":
		if value, ok := perFunction(alt); ok {
			v.Value, v.Since = value, "2.24"
			v.Why += " Named for this collective alone, so that the others keep NCCL's choice."
		}
	case "NCCL_NET_GDR_LEVEL":
		if level, ok := gdrLevel(topo, alt.Value); ok {
			v.Why += fmt.Sprintf(" GPU and HCA are %s apart, so %s is enough.", level, level)
			v.Value = level.String()
		}
	}
	return v
}

// firstReadBy is the NCCL version from which a variable is read.
func firstReadBy(name string) string {
	if v, ok := ncclenv.Lookup(name); ok && v.Since != "" {
		return v.Since
	}
	return "2.3"
}

// perFunction spells a value of NCCL_ALGO or NCCL_PROTO for the collective that was
// measured, where that NCCL takes a list for each (2.24 and later) and such a
// collective.
func perFunction(alt check.Alternative) (value string, ok bool) {
	v, _ := ncclenv.Lookup(alt.Variable)
	value = alt.Value
	if !strings.ContainsAny(value, ":;") {
		value = strings.ToLower(alt.Better.Collective + ":" + value)
	}
	_, dropped, err := v.Selections(value, alt.Better.Run.NCCL)
	return value, err == nil && len(dropped) == 0
}

// gdrLevel is the lowest level of NCCL_NET_GDR_LEVEL that covers the distance of
// each GPU to its nearest HCA; ok is false where it is not below the one measured.
func gdrLevel(topo *graph.Topology, tried string) (graph.PathClass, bool) {
	farthest := graph.Unknown
	for _, g := range topo.Of(graph.KindGPU) {
		nearest := graph.Unknown
		for _, h := range topo.Of(graph.KindHCA) {
			if c := topo.Class(g, h); c != graph.Unknown && (nearest == graph.Unknown || c < nearest) {
				nearest = c
			}
		}
		if nearest == graph.Unknown {
			return nearest, false
		}
		farthest = max(farthest, nearest)
	}
	return farthest, farthest == graph.PHB && tried == graph.SYS.String()
}
