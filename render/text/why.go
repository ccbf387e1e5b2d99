package text

import (
	"bufio"
	"fmt"
	"io"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/tune"
)

// Why prints the largest loss in a line, then all of them by rank, then what could
// not be judged.
func Why(w io.Writer, why *tune.Why, s Style) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, largest(why))
	for i := range why.Losses {
		loss(out, i+1, &why.Losses[i], s)
	}
	fmt.Fprintf(out, "\nbasis: %s\n", why.Basis)
	if line := NotChecked(why.Result); line != "" {
		if !s.Verbose {
			line += " (--verbose says why)"
		}
		fmt.Fprintln(out, line)
	}
	if s.Verbose {
		gaps(out, why.Gaps)
	}
	return out.Flush()
}

func largest(why *tune.Why) string {
	if len(why.Losses) == 0 {
		return "nothing found that costs bandwidth, in what could be checked"
	}
	l := &why.Losses[0]
	name := l.Rule
	if len(l.Subjects) > 0 {
		name += ", " + l.Subjects[0]
	}
	switch {
	case l.Costs():
		return "the largest loss: " + name + ": " + cost(l)
	case l.CostShare.Known():
		return "what was found takes nothing from a large AllReduce"
	}
	return fmt.Sprintf("the largest loss: not known; the gravest of %s: %s", plural(len(why.Losses), "finding"), name)
}

// cost is what a loss takes.
func cost(l *tune.Loss) string {
	share, known := l.CostShare.Get()
	switch {
	case !known:
		return "not known: " + l.CostWhy
	case !l.Costs():
		return "none: " + l.CostWhy
	}
	return fmt.Sprintf("%s GB/s (%.0f %%) of %s", num(l.CostGBs.Or(0)), 100*share, l.CostOf)
}

func loss(out io.Writer, n int, l *tune.Loss, s Style) {
	fmt.Fprintf(out, "\n%d. %s %s: %s\n", n, s.paint(l.Severity), l.Rule, subjects(l.Subjects))
	fmt.Fprintf(out, "   cause: %s\n", l.Cause)
	fmt.Fprintf(out, "   cost: %s\n", cost(l))
	fmt.Fprintf(out, "   repair: %s\n", l.Repair)
	if gain, ok := l.Gain.Get(); ok && l.Costs() {
		text := fmt.Sprintf("%.0f %% faster", 100*gain)
		if gain < 0.001 {
			text = "none by itself: another loss hides it"
		}
		fmt.Fprintf(out, "   expected gain: %s\n", text)
	}
	fmt.Fprintf(out, "   certainty: %s\n", l.Certainty)
}

// gaps prints what rules could not judge, and how to get the facts.
func gaps(out io.Writer, list []check.Gap) {
	for _, g := range list {
		fmt.Fprintf(out, "  %s: %s", g.Rule, g.Reason)
		if g.How != "" {
			fmt.Fprintf(out, " (%s)", g.How)
		}
		if len(g.Subjects) > 0 {
			fmt.Fprintf(out, " [%s]", subjects(g.Subjects))
		}
		fmt.Fprintln(out)
	}
}
