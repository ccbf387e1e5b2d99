package expect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph/model"
)

// Score is how well the form does on points that it was not fitted to. Errors are
// |ln(expected / measured)|.
type Score struct {
	Rows    []ScoreRow `json:"rows"`
	Regrets []Regret   `json:"regrets"`
}

// ScoreRow is the errors on one set of points.
type ScoreRow struct {
	LeftOut  string  `json:"left_out"` // what each fit did without
	On       string  `json:"on"`
	N        int     `json:"n"`
	Known    int     // of them, points for which the rest counts as evidence
	Median   float64 `json:"median"`
	P90      float64 `json:"p90"`
	Judged   int     `json:"judged"`   // points that have an interval
	Coverage float64 `json:"coverage"` // share of those within it; it is to hold 90 %
	Null     float64 `json:"null"`     // median error of 0.95 × the node's network rate; 0 = does not apply
}

// Regret is what choosing costs: the geometric mean over sizes of the time of the
// chosen algorithm and protocol over the best measured.
type Regret struct {
	On   string  `json:"on"`
	N    int     `json:"n"`
	Ours float64 `json:"ours"`
	NCCL float64 `json:"nccl"`
}

// residual is the error on a point by a fit that did without its fold.
type residual struct {
	*Point
	fold string
	e    float64 // ln(expected / measured)
	us   float64
	// calibrated: what was left in counts as evidence for the point.
	calibrated bool
}

// leaveOut fits once without each fold, and returns the errors on what was left
// out. fold "" is never left out.
func leaveOut(points []Point, full *fitted, fold func(*Point) string) ([]residual, error) {
	var names []string
	for i := range points {
		if name := fold(&points[i]); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []residual
	for _, name := range slices.Compact(names) {
		var kept, left []Point
		for _, p := range points {
			if fold(&p) == name {
				left = append(left, p)
			} else {
				kept = append(kept, p)
			}
		}
		f := newFitted(full.parameters())
		if err := f.fit(kept); err != nil {
			return nil, err
		}
		proofs := evidenceOf(kept)
		for _, r := range f.residuals(left) {
			r.fold, r.calibrated = name, proven(aboutOnly(proofs, &r.Machine, &r.Run), &r.Machine, r.Bytes, r.Channels)
			out = append(out, r)
		}
	}
	return out, nil
}

// Folds.
func byCurve(p *Point) string {
	if p.Published() {
		return ""
	}
	return p.Curve + " " + string(p.Link)
}

func bySite(p *Point) string { return p.Site }

func byGeneration(p *Point) string { return generation(p.CC) }

// ScoreOf scores the form on points.
func ScoreOf(points []Point) (Score, error) {
	full := newFitted(nil)
	if err := full.fit(points); err != nil {
		return Score{}, err
	}
	curves, err := leaveOut(points, full, byCurve)
	if err != nil {
		return Score{}, err
	}
	sites, err := leaveOut(points, full, bySite)
	if err != nil {
		return Score{}, err
	}
	kinds, err := leaveOut(points, full, byGeneration)
	if err != nil {
		return Score{}, err
	}
	capture := func(p *Point) bool { return p.Site == "h200x2-a" && p.Launch == Single }
	small := func(p *Point) bool { return p.Bytes < smallBytes }
	published := func(p *Point) bool { return p.Grade == "A" && p.Bytes >= midBytes }
	var s Score
	add := func(left, on string, from []residual, is func(*Point) bool) {
		if r, ok := scoreRow(from, is); ok {
			r.LeftOut, r.On = left, on
			s.Rows = append(s.Rows, r)
		}
	}
	for _, x := range []struct {
		left string
		from []residual
	}{{"curve", curves}, {"machine", sites}, {"GPU generation", kinds}} {
		add(x.left, "2 H200 (recording), from 2 MiB", x.from, func(p *Point) bool { return capture(p) && !small(p) })
		add(x.left, "2 H200 (recording), below 2 MiB", x.from, func(p *Point) bool { return capture(p) && small(p) })
		add(x.left, "  of these with evidence left, from 2 MiB", calibrated(x.from), func(p *Point) bool { return capture(p) && !small(p) })
		add(x.left, "2 H200 (second machine), from 2 MiB", x.from, func(p *Point) bool { return p.Site == "h200x2-b" && !small(p) })
		add(x.left, "2 H200 (second machine), below 2 MiB", x.from, func(p *Point) bool { return p.Site == "h200x2-b" && small(p) })
		add(x.left, "published (grade A), from 64 MiB", x.from, published)
		add(x.left, "  of these one node", x.from, func(p *Point) bool { return published(p) && p.Nodes == 1 })
		add(x.left, "  of these several nodes", x.from, func(p *Point) bool { return published(p) && p.Nodes > 1 })
		add(x.left, "  of these with evidence left", calibrated(x.from), published)
		add(x.left, "published, below 64 MiB", x.from, func(p *Point) bool { return p.Published() && p.Bytes < midBytes })
	}
	s.Regrets = []Regret{
		regretOf("2 H200 (recording), from 2 MiB", sites, func(p *Point) bool { return capture(p) && !small(p) }),
		regretOf("2 H200 (recording), below 2 MiB", sites, func(p *Point) bool { return capture(p) && small(p) }),
		regretOf("2 H200 (second machine), from 2 MiB", sites, func(p *Point) bool { return p.Site == "h200x2-b" && !small(p) }),
		regretOf("2 H200 (second machine), below 2 MiB", sites, func(p *Point) bool { return p.Site == "h200x2-b" && small(p) }),
		regretOf("published", sites, (*Point).Published),
	}
	return s, nil
}

// residuals are the errors of a fit on points.
func (f *fitted) residuals(points []Point) (out []residual) {
	for i := range points {
		p := &points[i]
		if s, ok := newShape(&p.Machine, &p.Run, f.index); ok {
			t := s.at(f.x, p.Proto, p.Channels, p.Bytes)
			out = append(out, residual{Point: p, e: math.Log(t.total() / p.TimeUS), us: t.total()})
		}
	}
	return out
}

func calibrated(from []residual) (out []residual) {
	for _, r := range from {
		if r.calibrated {
			out = append(out, r)
		}
	}
	return out
}

func scoreRow(from []residual, is func(*Point) bool) (row ScoreRow, ok bool) {
	var e, null []float64
	judged := 0
	for _, r := range from {
		if !is(r.Point) {
			continue
		}
		e = append(e, math.Abs(r.e))
		if r.calibrated {
			row.Known++
		}
		if spread, ok := spreadOf(from, r.Point, r.fold); ok {
			judged++
			if math.Abs(r.e) <= spread {
				row.Coverage++
			}
		}
		if r.Nodes > 1 && r.NetGBs > 0 {
			factor, _ := model.BusFactor(r.Collective, r.Ranks)
			us := float64(r.Bytes) * factor / (1000 * 0.95 * r.NetGBs)
			null = append(null, math.Abs(math.Log(us/r.TimeUS)))
		}
	}
	if len(e) == 0 {
		return row, false
	}
	row.N, row.Median, row.P90 = len(e), quantile(e, 0.5), quantile(e, 0.9)
	row.Judged = judged
	row.Coverage /= float64(max(1, judged))
	if len(null) == len(e) {
		row.Null = quantile(null, 0.5)
	}
	return row, true
}

// launches are the sizes of the errors on single launches: a launch is what an
// interval has to cover.
func (r *residual) launches() []float64 {
	out := []float64{math.Abs(r.e)}
	for _, us := range []float64{r.LowUS, r.HighUS} {
		if us > 0 {
			out = append(out, math.Abs(math.Log(r.us/us)))
		}
	}
	return out
}

// spreadOf is the half width of the 90 % interval of a point like this, as a
// logarithm, by the errors on other folds; ok is false without any.
func spreadOf(from []residual, p *Point, fold string) (spread float64, ok bool) {
	var e []float64
	for _, r := range from {
		if r.fold != fold && spreadKey(r.Point) == spreadKey(p) {
			e = append(e, r.launches()...)
		}
	}
	if len(e) == 0 {
		return 0, false
	}
	return quantile(e, spreadQuantile), true
}

// spreadQuantile of the errors makes the interval: above 0.9, since folds are few
// and unlike each other.
const spreadQuantile = 0.96

// spreadKey groups points whose errors are alike.
func spreadKey(p *Point) string {
	if p.Nodes > 1 {
		return anyGeneration(p)
	}
	return generation(p.CC) + ", " + anyGeneration(p)
}

func anyGeneration(p *Point) string {
	where := "one node, " + string(p.Link)
	switch {
	case p.Nodes > 1 && p.LocalRanks > 8:
		where = "several NVLink domains of hosts"
	case p.Nodes > 1:
		where = "several nodes"
	}
	if p.Bytes < smallBytes {
		where += ", launch " + launchName(p.Launch)
	}
	if p.Bytes < midBytes && p.Ranks > 2 {
		where += ", more than two ranks"
	}
	return where + ", " + bandNames[bandOf(p.Bytes)]
}

// Bands of sizes.
var (
	bandNames = [3]string{"below 2 MiB", "2 to 64 MiB", "from 64 MiB"}
	bandBytes = [3]int64{1, smallBytes, midBytes} // their first sizes
)

func bandOf(bytes int64) int {
	switch {
	case bytes < smallBytes:
		return 0
	case bytes < midBytes:
		return 1
	}
	return 2
}

// quantile sorts.
func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return v[min(len(v)-1, int(math.Ceil(q*float64(len(v)))-1))]
}

// regretOf compares what the form would choose with NCCL's choice, wherever
// alternatives were measured: points of one machine, launch, collective and size.
func regretOf(on string, from []residual, is func(*Point) bool) Regret {
	groups := map[string][]residual{}
	for _, r := range from {
		if is(r.Point) && r.Link != HostMemory && !strings.HasSuffix(r.Curve, "channels") {
			key := fmt.Sprint(r.Site, r.Ranks, r.Nodes, r.Collective, r.Launch, r.Bytes)
			groups[key] = append(groups[key], r)
		}
	}
	out := Regret{On: on}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		ours, nccl, ok := regretAt(groups[key])
		if ok {
			out.N++
			out.Ours += math.Log(ours)
			out.NCCL += math.Log(nccl)
		}
	}
	out.Ours, out.NCCL = math.Exp(out.Ours/float64(max(1, out.N))), math.Exp(out.NCCL/float64(max(1, out.N)))
	return out
}

// regretAt is of one size: the run by default tells NCCL's choice, those with an
// algorithm forced are the alternatives.
func regretAt(runs []residual) (ours, nccl float64, ok bool) {
	byDefault := slices.IndexFunc(runs, func(r residual) bool { return r.Curve == r.Collective })
	if byDefault < 0 {
		return 0, 0, false
	}
	choice := runs[byDefault]
	same := func(r residual) bool { return r.Algo == choice.Algo && r.Proto == choice.Proto }
	forced := slices.DeleteFunc(slices.Clone(runs), func(r residual) bool { return r.Curve == r.Collective })
	if len(forced) == 0 {
		return 0, 0, false
	}
	if i := slices.IndexFunc(forced, same); i >= 0 {
		choice = forced[i]
	} else {
		forced = append(forced, choice)
	}
	best := slices.MinFunc(forced, func(a, b residual) int { return cmp.Compare(a.TimeUS, b.TimeUS) })
	pick := slices.MinFunc(forced, func(a, b residual) int { return cmp.Compare(a.us, b.us) })
	return pick.TimeUS / best.TimeUS, choice.TimeUS / best.TimeUS, true
}

// String prints the score sheet.
func (s Score) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s %-38s %5s %5s %8s %8s %9s %8s\n", "left out", "on", "n", "known", "median", "p90", "covered", "null")
	for _, r := range s.Rows {
		null, covered := "", ""
		if r.Judged > 0 {
			covered = fmt.Sprintf("%.0f %%", 100*r.Coverage)
		}
		if r.Null > 0 {
			null = fmt.Sprintf("%.1f %%", 100*r.Null)
		}
		fmt.Fprintf(&b, "%-15s %-38s %5d %5d %6.1f %% %6.1f %% %9s %8s\n", r.LeftOut, r.On, r.N, r.Known, 100*r.Median, 100*r.P90, covered, null)
	}
	fmt.Fprintf(&b, "\n%-38s %5s %8s %8s\n", "regret of the choice (machine left out)", "n", "ours", "NCCL")
	for _, r := range s.Regrets {
		fmt.Fprintf(&b, "%-38s %5d %8.3f %8.3f\n", r.On, r.N, r.Ours, r.NCCL)
	}
	b.WriteString("\nErrors are |ln(expected / measured)|. Known: points for which what was left in counts as\nevidence; of others no time is stated. Covered: within the interval that the errors on\nother folds give. Null: the error of 0.95 × the node's network rate. The form was settled\nwhile looking at this sheet.\n")
	return b.String()
}
