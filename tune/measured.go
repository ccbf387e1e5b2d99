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

// Compare sets the measured samples of all runs beside what NCCL believes.
func Compare(m probe.Measured) (*compare.Comparison, error) {
	return compare.Run(m, believe(), compare.Unavailable("no model of this version was fitted to measurements"))
}

// AnalyseMeasured is Analyse of one of the hosts that ran tests, or that stands for
// them: findings are those of all hosts and runs, and what the runs proved to be
// faster is set. recheck is the day on which to measure again.
func AnalyseMeasured(inv *probe.Inventory, m probe.Measured, recheck string) (*Analysis, error) {
	a, err := Analyse(inv)
	if err != nil {
		return nil, err
	}
	if a.Check, err = check.RunMeasured(m, check.All()); err != nil {
		return nil, err
	}
	a.Plan = Advise(a.Topo, a.Check)
	a.Plan.addMeasured(a.Topo, &m.All.Job, recheck)
	return a, nil
}

// believe is NCCL's own model of the runs' versions and settings.
func believe() compare.Predictor {
	known := map[string]Prediction{}
	return func(q compare.Query) (compare.Estimate, error) {
		gpus, err := devNumbers(q)
		if err != nil {
			return compare.Estimate{}, err
		}
		key := fmt.Sprintf("%p %d %v %s %s", q.Topo, q.Nodes, gpus, q.Run.NCCL, q.Run.SettingsText())
		p, ok := known[key]
		if !ok {
			p = predict(q.Topo, optionsOfRun(q, gpus))
			known[key] = p
		}
		switch {
		case p.Unknown != nil:
			return compare.Estimate{}, p.Unknown
		case p.Untimed != nil:
			return compare.Estimate{}, p.Untimed
		case p.Search.Ranks != q.Ranks:
			return compare.Estimate{}, fmt.Errorf("%s ran, and NCCL's model is of %d", plural(q.Ranks, "rank"), p.Search.Ranks)
		}
		return believed(p.Model, q)
	}
}

// optionsOfRun are version and settings of a run, over hosts like the one that is
// known.
func optionsOfRun(q compare.Query, gpus []int) ModelOptions {
	var o ModelOptions
	if v, err := graph.ParseNCCLVersion(q.Run.NCCL); err == nil {
		o.NCCL.Version = v
	}
	settings, _ := q.Run.Settings.Get()
	for _, s := range settings {
		o.Set(s.Name, s.Value)
	}
	o.NCCL.GPUs, o.Search.Hosts = gpus, q.Nodes
	return o
}

// devNumbers are NCCL's numbers of the GPUs that took part on a host; none where all
// did.
func devNumbers(q compare.Query) ([]int, error) {
	all := q.Topo.Of(graph.KindGPU)
	if q.Ranks == len(all)*q.Nodes {
		return nil, nil
	}
	if len(q.Run.Hosts) > 0 {
		if used, err := check.UsedGPUs(q.Topo, q.Run.Hosts[0]); err == nil {
			var devs []int
			for _, n := range used {
				devs = append(devs, slices.Index(all, n))
			}
			return devs, nil
		}
	}
	return nil, fmt.Errorf("%s ran on %s of %s, and which of these is not known", plural(q.Ranks, "rank"), plural(q.Nodes, "host"), plural(len(all), "GPU"))
}

// believed is the model's time of what ran, or of what NCCL would choose.
func believed(m *model.Model, q compare.Query) (compare.Estimate, error) {
	bytes := m.Bytes(q.Collective, q.Bytes)
	if q.Algo == "" && q.Proto == "" {
		c, ok := m.Choose(q.Collective, bytes)
		if !ok {
			return compare.Estimate{}, fmt.Errorf("NCCL has no cost model for %s, or the settings leave nothing to choose", q.Collective)
		}
		return compare.Estimate{TimeUS: c.TimeUS, Algo: c.Algo, Proto: c.Proto}, nil
	}
	var best compare.Estimate
	for _, t := range m.Tuning() {
		if t.Collective != q.Collective || q.Algo != "" && t.Algo != q.Algo || q.Proto != "" && t.Proto != q.Proto {
			continue
		}
		if us, ok := m.Time(t, bytes); ok && (best.TimeUS == 0 || us < best.TimeUS) {
			best = compare.Estimate{TimeUS: us, Algo: t.Algo, Proto: t.Proto}
		}
	}
	if best.TimeUS == 0 {
		return best, fmt.Errorf("NCCL does not use %s for %s here", strings.TrimSpace(q.Algo+" "+q.Proto), q.Collective)
	}
	return best, nil
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
