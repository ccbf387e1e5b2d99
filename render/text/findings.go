package text

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/tune"
)

// Style is how text is printed.
type Style struct {
	Color   bool
	Verbose bool // evidence and every gap
}

// paint colours a severity's word on a terminal.
func (s Style) paint(sev check.Severity) string {
	word := sev.String()
	if !s.Color {
		return word
	}
	code := map[check.Severity]string{check.Critical: "31;1", check.Warning: "33", check.Info: "36"}[sev]
	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

// Findings prints what was not checked in one line, then each finding: what was
// expected and observed, why, and what to do.
func Findings(w io.Writer, res check.Result, s Style) error {
	out := bufio.NewWriter(w)
	if line := NotChecked(res); line != "" {
		if !s.Verbose {
			line += " (--verbose says why)"
		}
		fmt.Fprintln(out, line)
	}
	if s.Verbose {
		gaps(out, res.Gaps)
	}
	if len(res.Findings) == 0 {
		fmt.Fprintf(out, "no findings%s\n", Scope(res))
	}
	for _, f := range alike(res.Findings) {
		fmt.Fprintf(out, "%s %s: %s\n", s.paint(f.Severity), f.Rule, f.subjects())
		fmt.Fprintf(out, "  observed: %s\n", f.Observed)
		if f.Expected != "" {
			fmt.Fprintf(out, "  expected: %s\n", f.Expected)
		}
		fmt.Fprintf(out, "  %s; to do: %s\n", f.Certainty, f.Fix)
		if s.Verbose {
			for _, e := range f.Evidence {
				fmt.Fprintf(out, "  evidence: %s\n", e)
			}
		}
	}
	ignored(out, res.Ignored, s)
	return out.Flush()
}

// ignored says how many findings are hidden; Style.Verbose lists them.
func ignored(w io.Writer, list []check.Ignored, s Style) {
	if len(list) > 0 && !s.Verbose {
		fmt.Fprintf(w, "%s ignored: --verbose lists them\n", plural(len(list), "finding"))
		return
	}
	for _, f := range list {
		fmt.Fprintf(w, "ignored %s\n", IgnoredText(f))
	}
}

// IgnoredText is what is put up with, in one line.
func IgnoredText(f check.Ignored) string {
	line := fmt.Sprintf("%s %s: %s: %s; ", f.Severity, f.Rule, subjects(f.Subjects), f.Observed)
	if until, ok := f.Until.Get(); ok {
		line += "until " + until + ": "
	}
	return line + f.Reason
}

// subjects lists keys; of very many, some and their number.
func subjects(keys []string) string {
	const show = 64
	if len(keys) > show {
		return fmt.Sprintf("%s … %d in all", strings.Join(keys[:show], " "), len(keys))
	}
	return strings.Join(keys, " ")
}

// alikeFinding is a finding that several hosts share.
type alikeFinding struct {
	check.Finding
	hosts []string // none where there is one host
}

// alike puts findings together that differ only in their host.
func alike(findings []check.Finding) []alikeFinding {
	var out []alikeFinding
	at := map[string]int{}
	for _, f := range findings {
		var hosts, keys []string
		for _, s := range f.Subjects {
			host, key := check.SplitSubject(s)
			if keys = append(keys, key); host != "" && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
		if len(hosts) != 1 {
			out = append(out, alikeFinding{Finding: f})
			continue
		}
		f.Subjects = keys
		id := fmt.Sprint(f.Severity, f.Rule, f.Certainty, f.Subjects, f.Observed, f.Expected, f.Fix)
		i, known := at[id]
		if !known {
			i, at[id] = len(out), len(out)
			out = append(out, alikeFinding{Finding: f})
		}
		out[i].hosts = append(out[i].hosts, hosts[0])
	}
	return out
}

func (f alikeFinding) subjects() string {
	s := subjects(f.Subjects)
	switch len(f.hosts) {
	case 0:
		return s
	case 1:
		return s + " on " + f.hosts[0]
	}
	return fmt.Sprintf("%s on %d hosts (%s)", s, len(f.hosts), HostNames(f.hosts))
}

// NotChecked says in one line what was not checked: with the reasons while they
// fit, else by the rules alone.
func NotChecked(res check.Result) string {
	const fits = 160
	line := res.NotChecked()
	if len(line) <= fits {
		return line
	}
	var rules []string
	for _, g := range res.Gaps {
		name := g.Rule
		if name == check.InventoryGaps {
			name = "what no rule reads"
		}
		if !slices.Contains(rules, name) {
			rules = append(rules, name)
		}
	}
	return "not checked everywhere, for lack of facts: " + strings.Join(rules, ", ")
}

// Counts is the findings in a few words: "1 critical, 2 info".
func Counts(res check.Result) string {
	if len(res.Findings) == 0 {
		return "none" + Scope(res)
	}
	n := map[check.Severity]int{}
	for _, f := range res.Findings {
		n[f.Severity]++
	}
	var parts []string
	for _, s := range []check.Severity{check.Critical, check.Warning, check.Info} {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	if n := len(res.Ignored); n > 0 {
		parts = append(parts, fmt.Sprintf("%d ignored", n))
	}
	return strings.Join(parts, ", ")
}

// Scope says of what a result that has no findings holds: of some rules, of part of
// the machine, but for what is ignored.
func Scope(res check.Result) string {
	var s string
	if n := len(res.Rules); n > 0 {
		s = " by the " + plural(n, "rule") + " asked for"
	}
	if len(res.Gaps) > 0 {
		s += " in what could be checked"
	}
	if len(res.Ignored) > 0 {
		s += " but for those ignored"
	}
	return s
}

// Inventory prints a host as tree and matrix, with what could not be read and
// where sources disagree. marks are words to put beside nodes, by key.
func Inventory(w io.Writer, t *graph.Topology, marks map[string]string) error {
	// Graph files and summaries of runs name no machine.
	if len(t.Nodes) > 0 || len(t.Inv.Graphs)+len(t.Inv.Summaries) == 0 {
		if err := Tree(w, t, marks); err != nil {
			return err
		}
		io.WriteString(w, "\n")
		if err := Matrix(w, t); err != nil {
			return err
		}
	}
	if err := Jobs(w, &t.Inv.Job); err != nil {
		return err
	}
	if err := printGaps(w, slices.Concat(t.Inv.Gaps, t.Gaps)); err != nil {
		return err
	}
	return conflicts(w, t)
}

func printGaps(w io.Writer, gaps []probe.Gap) error {
	out := bufio.NewWriter(w)
	if len(gaps) > 0 {
		fmt.Fprintln(out, "\nnot known:")
	}
	for _, g := range gaps {
		fmt.Fprintf(out, "  %s: %s", g.What, g.Why)
		if g.How != "" {
			fmt.Fprintf(out, " (%s)", g.How)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

func conflicts(w io.Writer, t *graph.Topology) error {
	out := bufio.NewWriter(w)
	if len(t.Inv.Conflicts) > 0 {
		fmt.Fprintln(out, "\nsources disagree (the first is used):")
	}
	for _, c := range t.Inv.Conflicts {
		fmt.Fprintf(out, "  %s %s:", c.Subject, c.Field)
		for i, v := range c.Values {
			if i > 0 {
				fmt.Fprint(out, ",")
			}
			fmt.Fprintf(out, " %s (%s)", v.Value, v.Origin)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// Summary prints the whole result in a few lines: machine, findings,
// prediction, settings.
func Summary(w io.Writer, an *tune.Analysis, s Style) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, HostLine(an.Topo))
	for _, l := range Machine(an.Topo) {
		fmt.Fprintln(out, "  "+l)
	}
	fmt.Fprintf(out, "findings: %s\n", Counts(an.Check))
	for _, f := range an.Check.Findings {
		fmt.Fprintf(out, "  %s %s: %s: %s\n", s.paint(f.Severity), f.Rule, strings.Join(f.Subjects, " "), f.Observed)
	}
	if line := NotChecked(an.Check); line != "" {
		fmt.Fprintln(out, "  "+line)
	}
	fmt.Fprintf(out, "prediction: %s\n", Prediction(an))
	fmt.Fprintf(out, "settings: %s\n", an.Plan)
	return out.Flush()
}

// Machine is what a host consists of, a line per kind of device.
func Machine(t *graph.Topology) []string {
	var out []string
	count := func(nodes []*graph.Node, describe func(*graph.Node) string) {
		var order []string
		n := map[string]int{}
		for _, x := range nodes {
			d := describe(x)
			if n[d] == 0 {
				order = append(order, d)
			}
			n[d]++
		}
		for _, d := range order {
			out = append(out, fmt.Sprintf("%d × %s", n[d], d))
		}
	}
	count(t.Of(graph.KindGPU), func(n *graph.Node) string {
		words := []string{"GPU"}
		if n.GPU.Name != "" {
			words[0] = n.GPU.Name
		}
		for _, l := range t.LinksOf(n) {
			if l.Kind == graph.PCIe {
				words = append(words, "PCIe "+PCIeText(l))
			}
		}
		for _, b := range t.NVLinks(n) {
			words = append(words, NVLinkText(b))
		}
		return strings.Join(words, ", ")
	})
	count(t.Of(graph.KindHCA), func(n *graph.Node) string {
		words := []string{"HCA"}
		if p := PortsText(n.HCA); p != "" {
			words = append(words, p)
		}
		for _, l := range t.LinksOf(n) {
			if l.Kind == graph.PCIe {
				words = append(words, "PCIe "+PCIeText(l))
			}
		}
		return strings.Join(words, ", ")
	})
	count(t.Of(graph.KindNet), func(n *graph.Node) string { return "network interface " + n.Label })
	return out
}
