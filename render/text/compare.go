package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/tune/compare"
)

// Comparison prints measured points by size beside NCCL's estimate and ncclmap's
// prediction, then what of it is wrong.
func Comparison(w io.Writer, c *compare.Comparison, s Style) error {
	for points := c.Points; len(points) > 0; {
		n := 1
		for n < len(points) && sameSweep(points[0], points[n]) {
			n++
		}
		if err := sweep(w, points[:n]); err != nil {
			return err
		}
		points = points[n:]
	}
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, summary("NCCL's estimate", c.NCCL))
	fmt.Fprintln(out, summary("ncclmap's prediction", c.Summary))
	if s.Verbose {
		for _, why := range reasons(c.Points) {
			fmt.Fprintln(out, "  "+why)
		}
		fmt.Fprintln(out, "no link is named: "+c.SuspectsWhy)
	}
	fmt.Fprintln(out)
	if err := out.Flush(); err != nil {
		return err
	}
	return Findings(w, c.Result, s)
}

func sameSweep(a, b compare.Point) bool {
	return a.File == b.File && a.Collective == b.Collective && a.Ranks == b.Ranks && a.Settings == b.Settings && slices.Equal(a.Hosts, b.Hosts) && a.Bytes < b.Bytes
}

// sweep prints the table of one sweep.
func sweep(w io.Writer, points []compare.Point) error {
	p := points[0]
	head := p.Collective
	if n, ok := p.Ranks.Get(); ok {
		head += " over " + plural(n, "rank")
	}
	if len(p.Hosts) > 0 {
		head += " on " + HostNames(p.Hosts)
	}
	head += ", " + p.File
	if p.Settings != "" && p.Settings != "unknown" {
		head += " (" + p.Settings + ")"
	}
	if _, err := fmt.Fprintln(w, head); err != nil {
		return err
	}
	predicted := slices.ContainsFunc(points, func(p compare.Point) bool { return p.Predicted.Known() })
	believed := slices.ContainsFunc(points, func(p compare.Point) bool { return p.Believed.Known() })
	rows := [][]string{{"size", "measured µs", "busbw GB/s"}}
	if predicted {
		rows[0] = append(rows[0], "predicted µs", "÷ measured")
	}
	if believed {
		rows[0] = append(rows[0], "NCCL's estimate µs", "÷ measured", "of")
	}
	for _, p := range points {
		row := []string{probe.SizeText(p.Bytes), num(p.MeasuredUS), num(p.BusBWGBs)}
		if predicted {
			row = append(row, besideMeasured(p.Predicted, p)...)
		}
		if believed {
			row = append(append(row, besideMeasured(p.Believed, p)...), p.BelievedOf)
		}
		rows = append(rows, row)
	}
	if err := Table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// besideMeasured prints a prediction and its ratio to what was measured.
func besideMeasured(us probe.Opt[float64], p compare.Point) []string {
	v, ok := us.Get()
	if !ok {
		return []string{"-", ""}
	}
	return []string{num(v), fmt.Sprintf("%.2f", v/p.MeasuredUS)}
}

func summary(what string, s compare.Summary) string {
	if s.N == 0 {
		return what + ": none"
	}
	return fmt.Sprintf("%s: off by a median %.0f %%, 90 %% of %s within %.0f %%", what, 100*s.Median.Or(0), plural(s.N, "point"), 100*s.P90.Or(0))
}

// reasons lists why predictions are missing, each once.
func reasons(points []compare.Point) []string {
	var out []string
	add := func(what, why string) {
		if line := what + ": " + why; why != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	for _, p := range points {
		add("no estimate of NCCL", p.BelievedWhy)
		add("no prediction", p.PredictedWhy)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
