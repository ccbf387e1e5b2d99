package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/tune"
)

// Prediction is the prediction in one line.
func Prediction(an *tune.Analysis) string {
	p := an.Pred
	switch {
	case p.Unknown != nil:
		return "none: " + p.Unknown.Error()
	case p.Untimed != nil:
		return "none: " + p.Untimed.Error()
	case p.Search.Ranks == 1:
		return "none: one GPU has nobody to talk to"
	}
	const bytes = 1 << 30
	c, ok := p.Model.Choose(model.AllReduce, bytes)
	if !ok {
		return "none: the settings leave no algorithm for all-reduce"
	}
	factor, _ := model.BusFactor(model.AllReduce, p.Search.Ranks)
	return fmt.Sprintf("all-reduce of 1 GiB over %d GPUs: NCCL %s takes %s with %s on %s and believes in %s µs, a bus bandwidth of %s GB/s (its own model, not a measurement)",
		p.Search.Ranks, version(p), c.Algo, c.Proto, plural(c.ChannelsUsed, "channel"), num(c.TimeUS), num(factor*bytes/(1000*c.TimeUS)))
}

// Model prints the prediction: graphs, and by collective and size what NCCL would
// run and believe; where the options ask for it the terms of its figures.
// With verbose it prints all rings and the names of the links.
func Model(w io.Writer, p tune.Prediction, verbose bool) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "NCCL %s's own model: %s\n", version(p), what(p))
	for _, what := range p.Options.WhatIf.Lines() {
		fmt.Fprintf(out, "what if: %s\n", what)
	}
	if !model.Verified(version(p)) && p.Unknown == nil {
		fmt.Fprintln(out, "unverified: this version's model was read, not compared with results of its own")
	}
	for _, what := range p.Unmodelled() {
		fmt.Fprintf(out, "not modelled: %s\n", what)
	}
	printSettings(out, &p)
	for _, a := range p.Assumptions() {
		fmt.Fprintf(out, "assumed: %s\n", a)
	}
	if p.Unknown != nil {
		fmt.Fprintf(out, "no prediction: %s\n", p.Unknown)
		return out.Flush()
	}
	if p.Search.Ranks == 1 {
		fmt.Fprintln(out, "no prediction: one GPU has nobody to talk to")
		return out.Flush()
	}
	printSummary(out, &p)
	if p.Untimed == nil {
		printEstimates(out, &p)
	}
	printGraphs(out, p.Search, verbose)
	printCosts(out, &p)
	printBound(out, p.Bound)
	if p.Untimed == nil && p.Options.Explain {
		explainModel(out, &p)
	}
	if verbose {
		fmt.Fprintf(out, "\nLinks, as --without and --set-link take them:\n")
		for _, l := range p.Links() {
			fmt.Fprintf(out, "  %s\n", l)
		}
	}
	return out.Flush()
}

// printSummary prints what is built and what NCCL makes of the largest size.
func printSummary(out io.Writer, p *tune.Prediction) {
	r := p.Search
	fmt.Fprintf(out, "\n%s, %s", plural(r.Nodes, "node"), plural(r.Channels, "channel"))
	if r.NVLSChannels > 0 {
		fmt.Fprintf(out, ", %d for NVLS", r.NVLSChannels)
	}
	for i, g := range r.Graphs {
		lead := ";"
		if i > 0 {
			lead = ","
		}
		gbs := g.BWIntra
		if r.Nodes > 1 {
			gbs = g.BWInter
		}
		fmt.Fprintf(out, "%s %s %d × %s GB/s", lead, g.Pattern, g.Channels, num(gbs))
	}
	fmt.Fprintln(out, ".")
	if p.Untimed != nil {
		fmt.Fprintf(out, "no times: %s\n", p.Untimed)
		return
	}
	estimates, _ := p.Estimates()
	for i, e := range estimates {
		if i+1 < len(estimates) && estimates[i+1].Collective == e.Collective {
			continue
		}
		if c, ok := e.Choice.Get(); ok {
			factor, _ := model.BusFactor(e.Collective, r.Ranks)
			busbw := num(float64(e.Bytes) / (1000 * e.NCCLTimeUS.Or(0)) * factor)
			fmt.Fprintf(out, "%s of %s: %s %s on %s, busbw %s GB/s believed.\n", e.Collective, size(e.Bytes), c.Algo, c.Proto, plural(c.ChannelsUsed, "channel"), busbw)
		}
	}
}

func printSettings(out io.Writer, p *tune.Prediction) {
	var not []string
	for _, s := range p.Options.Settings {
		from := ""
		if s.From != "" {
			from = " (" + s.From + ")"
		}
		if s.Used {
			fmt.Fprintf(out, "setting: %s=%s%s\n", s.Name, s.Value, from)
			for _, c := range s.Complaints {
				fmt.Fprintf(out, "  %s\n", c)
			}
		} else if !p.Bears(s) && !s.Contradicted && !slices.Contains(not, s.Name) {
			not = append(not, s.Name)
		}
	}
	if len(not) > 0 {
		fmt.Fprintf(out, "settings without a part in this: %s\n", strings.Join(not, ", "))
	}
}

// printEstimates prints a table by size for each collective.
func printEstimates(out io.Writer, p *tune.Prediction) {
	estimates, floor := p.Estimates()
	last := ""
	for _, e := range estimates {
		if e.Collective != last {
			last = e.Collective
			fmt.Fprintf(out, "\n%s\n  %8s  %-13s %-6s %8s %7s %12s %8s %8s %12s\n", e.Collective, "size", "algorithm", "proto", "channels", "threads", "believed µs", "algbw", "busbw", "at least µs")
		}
		low := "?"
		if us, ok := e.LowUS.Get(); ok {
			low = num(us)
			if us < 0.01 {
				low = "<0.01"
			}
		}
		c, ok := e.Choice.Get()
		if !ok {
			fmt.Fprintf(out, "  %8s  %-13s %-6s %8s %7s %12s %8s %8s %12s\n", size(e.Bytes), "-", "-", "-", "-", "-", "-", "-", low)
			continue
		}
		us := e.NCCLTimeUS.Or(0)
		gbs := float64(e.Bytes) / (1000 * us)
		factor, _ := model.BusFactor(e.Collective, p.Search.Ranks)
		fmt.Fprintf(out, "  %8s  %-13s %-6s %8d %7d %12s %8s %8s %12s\n", size(e.Bytes), c.Algo, c.Proto, c.ChannelsUsed, c.Threads, num(us), num(gbs), num(gbs*factor), low)
	}
	for i, e := range estimates {
		if e.Why != "" && (i == 0 || estimates[i-1].Collective != e.Collective) {
			fmt.Fprintf(out, "\n%s: %s.\n", e.Collective, e.Why)
		}
	}
	fmt.Fprint(out, `
What NCCL believes, by which it chooses, is not what a run will measure. Channels
are those that carry data; algbw and busbw follow from the believed time, in GB/s.
`)
	fmt.Fprintf(out, "At least: %s.\n", floor.Basis)
}

// size prints bytes in the words of nccl-tests, where they are even.
func size(n int64) string {
	for i, unit := range []string{"G", "M", "K"} {
		if step := int64(1) << (30 - 10*i); n >= step && n%step == 0 {
			return strconv.FormatInt(n/step, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}

// explainModel prints the terms of every figure that NCCL uses, why it uses the
// others not, and what holds the channels back.
func explainModel(out io.Writer, p *tune.Prediction) {
	bottlenecks := model.Bottlenecks(p.Search)
	if len(bottlenecks) > 0 {
		fmt.Fprintln(out, "\nWhat limits the channels: the link that they load most")
		for _, b := range bottlenecks {
			fmt.Fprintf(out, "  %s: %s\n", b.Pattern, b)
		}
	}
	var off []model.Tuning
	for _, t := range p.Model.Tuning() {
		switch {
		case !slices.Contains(p.Options.Collectives, t.Collective):
		case t.Disabled != "":
			off = append(off, t)
		default:
			factor, _ := model.BusFactor(t.Collective, p.Search.Ranks)
			fmt.Fprintf(out, "\n%s %s %s: latency %s µs, algorithm bandwidth %s GB/s, bus bandwidth %s GB/s\n",
				t.Collective, t.Algo, t.Proto, num(t.LatencyUS), num(t.BWGBs), num(t.BWGBs*factor))
			printTerms(out, "latency   =", "+", t.LatencyTerms)
			printTerms(out, "bandwidth =", "×", t.BWTerms)
		}
	}
	fmt.Fprintln(out, "\nNot used:")
	for _, t := range off {
		fmt.Fprintf(out, "  %s %s %s: %s\n", t.Collective, t.Algo, t.Proto, t.Disabled)
	}
	fmt.Fprint(out, `
Time = latency + bytes / bandwidth. With the size NCCL scales the bandwidth of
trees (0.4 to 1) and, over several nodes, the latency of Ring Simple (1.4, 1.9
before Ampere): tuning.cc:611-655. Terms name their place in NCCL 2.30.7's source.
`)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ranges prints 0,1,2,5 as "0-2,5".
func ranges(n []int) string {
	s := ""
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if s != "" {
			s += ","
		}
		s += strconv.Itoa(n[i])
		if j > i {
			s += "-" + strconv.Itoa(n[j])
		}
		i = j + 1
	}
	return s
}

func printTerms(out io.Writer, head, op string, terms []model.Term) {
	for i, t := range terms {
		lead := "  " + head
		if i > 0 {
			lead = fmt.Sprintf("  %*s", len(head), op)
		}
		unit := t.Unit
		if unit == "us" {
			unit = "µs"
		}
		value := num(t.Value)
		if unit != "" {
			value += " " + unit
		}
		fmt.Fprintf(out, "%s %-12s %s: %s\n", lead, value, t.Name, t.Why)
	}
}

// num prints a figure with at most four significant digits.
func num(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
