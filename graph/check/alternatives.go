package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Alternative is a setting that was measured to be faster than NCCL's default or
// another value, all else equal.
type Alternative struct {
	Variable string
	Value    string
	Instead  string // of this value; "" = not set
	// Base and Better are what was measured without and with it.
	Base, Better *probe.Sweep
	Gains        []SizeGain // by size, those that were judged
}

// SizeGain is one size of an Alternative.
type SizeGain struct {
	Base, Better probe.Sample
	Gain         float64 // how much faster: 0.19 = 19 %
}

// The least gain that counts: of one size in five, of a single size in ten, and
// always twice the spread of what was repeated.
const (
	leastGain       = 0.05
	leastSingleGain = 0.10
)

// Alternatives finds pairs of sweeps that differ in one NCCL_ variable of which one
// is faster with a value than the other with another or without, by variable. A
// default that wins needs no setting and is none.
func Alternatives(job *probe.Job) []Alternative {
	var out []Alternative
	groups, order := arms(job)
	for _, k := range order {
		for _, better := range groups[k] {
			for _, base := range groups[k] {
				if alt, ok := alternative(base, better); ok && (alt.Instead == "" || !better.hasDefault(groups[k], alt.Variable)) {
					out = append(out, alt)
				}
			}
		}
	}
	leastOf := func(a Alternative) float64 {
		least, _ := a.Span()
		return least
	}
	slices.SortStableFunc(out, func(a, b Alternative) int {
		return cmp.Or(strings.Compare(a.Variable, b.Variable), strings.Compare(a.Better.Collective, b.Better.Collective),
			cmp.Compare(leastOf(b), leastOf(a)))
	})
	// Of the values of one variable the best stays.
	return slices.CompactFunc(out, func(a, b Alternative) bool {
		return a.Variable == b.Variable && a.Better.Collective == b.Better.Collective
	})
}

// Span is the smallest and the largest gain.
func (a Alternative) Span() (least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, g := range a.Gains {
		least, most = min(least, g.Gain), max(most, g.Gain)
	}
	return least, most
}

// String says it in one sentence.
func (a Alternative) String() string {
	without := "without it"
	if a.Instead != "" {
		without = "with " + a.Instead
	}
	least, most := a.Span()
	gain := fmt.Sprintf("%.0f", 100*least)
	if top := fmt.Sprintf("%.0f", 100*most); top != gain {
		gain += " to " + top
	}
	return fmt.Sprintf("%s over %s: %s=%s is %s %% faster than %s at %s (%s to %s)", a.Better.Collective, ranksText(a.Better), a.Variable, a.Value, gain, without,
		count(len(a.Gains), "size", "sizes"), probe.SizeText(a.Gains[0].Base.Bytes), probe.SizeText(a.Gains[len(a.Gains)-1].Base.Bytes))
}

// Evidence is what was measured at each size without and with the setting.
func (a Alternative) Evidence() []Evidence {
	var out []Evidence
	for _, g := range a.Gains {
		out = append(out, sampleEvidence(g.Base), sampleEvidence(g.Better))
	}
	return out
}

// arm is a sweep whose settings are known, by name.
type arm struct {
	sweep    *probe.Sweep
	settings map[string][]string
}

// arms collects the sweeps that may be compared: same test, same hosts and GPUs,
// same NCCL.
func arms(job *probe.Job) (groups map[string][]arm, order []string) {
	groups = map[string][]arm{}
	for _, s := range tests(job) {
		settings, known := s.Run.Settings.Get()
		if !known || s.Run.NCCL == "" || len(s.Run.Hosts) == 0 {
			continue
		}
		x := arm{&s, map[string][]string{}}
		for _, e := range settings {
			if !strings.HasPrefix(e.Name, "NCCL_DEBUG") && !slices.Contains(x.settings[e.Name], e.Value) {
				x.settings[e.Name] = append(x.settings[e.Name], e.Value)
			}
		}
		k := fmt.Sprint(s.Collective, s.Run.Program, s.Launch, s.Run.DataType, s.Run.Op, s.Run.NCCL, s.Run.Hosts)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], x)
	}
	return groups, order
}

// difference returns the one variable in which two arms differ.
func (a arm) difference(b arm) (name string, ok bool) {
	names := map[string]bool{}
	for n := range a.settings {
		names[n] = true
	}
	for n := range b.settings {
		names[n] = true
	}
	for n := range names {
		if slices.Equal(a.settings[n], b.settings[n]) {
			continue
		}
		if name != "" {
			return "", false
		}
		name = n
	}
	return name, name != ""
}

// hasDefault reports an arm that differs only in not setting the variable: what
// does not beat the default is no alternative, whatever else it beats.
func (a arm) hasDefault(group []arm, variable string) bool {
	return slices.ContainsFunc(group, func(b arm) bool {
		name, ok := a.difference(b)
		return ok && name == variable && len(b.settings[variable]) == 0
	})
}

// alternative judges whether the second arm is a better setting than the first.
func alternative(base, better arm) (Alternative, bool) {
	name, ok := base.difference(better)
	value, instead := better.settings[name], base.settings[name]
	if !ok || len(value) != 1 || len(instead) > 1 {
		return Alternative{}, false
	}
	alt := Alternative{Variable: name, Value: value[0], Instead: strings.Join(instead, ""), Base: base.sweep, Better: better.sweep}
	faster, judged := 0, 0
	large := 0 // sizes of 1 GiB or more that are not faster
	for _, p := range base.sweep.Points {
		i := slices.IndexFunc(better.sweep.Points, func(q probe.SweepPoint) bool { return q.Bytes == p.Bytes })
		if i < 0 || p.Bytes < smallestJudged {
			continue
		}
		q := better.sweep.Points[i]
		g := SizeGain{Base: p.Fastest(), Better: q.Fastest()}
		g.Gain = g.Base.TimeUS/g.Better.TimeUS - 1
		judged++
		switch {
		case g.Gain < -leastGain:
			return Alternative{}, false // better at one size, worse at another
		case g.Gain > leastGain && g.Gain > 2*max(unevenness(p), unevenness(q)):
			faster++
			alt.Gains = append(alt.Gains, g)
		case p.Bytes >= 1<<30:
			large++
		}
	}
	switch {
	case faster == 0 || judged == 1 && alt.Gains[0].Gain < leastSingleGain:
		return Alternative{}, false
	case faster < 3 && (large > 0 || alt.Gains[faster-1].Base.Bytes < 1<<30):
		return Alternative{}, false
	}
	return alt, true
}

// unevenness is how far the times of one size lie apart that should be equal: repeated
// ones, and in and out of place.
func unevenness(p probe.SweepPoint) float64 {
	low, high := math.Inf(1), 0.0
	for _, s := range p.Samples {
		low, high = min(low, s.TimeUS), max(high, s.TimeUS)
		if in, ok := s.InPlaceUS.Get(); ok {
			low, high = min(low, in), max(high, in)
		}
	}
	return high/low - 1
}
