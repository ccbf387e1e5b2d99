package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Severity says how much a finding matters to a job.
type Severity int

// The severities, mildest first.
const (
	Info     Severity = iota // worth knowing, nothing to repair
	Warning                  // slower, or about to fail
	Critical                 // do not start the job
)

var severityNames = []string{"info", "warning", "critical"}

func (s Severity) String() string { return nameOf("Severity", severityNames, int(s)) }

// ParseSeverity reads "info", "warning" or "critical".
func ParseSeverity(text string) (Severity, error) {
	i := slices.Index(severityNames, text)
	if i < 0 {
		return 0, fmt.Errorf("severity %q: want %s", text, strings.Join(severityNames, ", "))
	}
	return Severity(i), nil
}

func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// Certainty says how far a finding is from what was read.
type Certainty int

// The certainties, strongest first.
const (
	Sure     Certainty = iota // read directly
	Likely                    // one inference
	Possible                  // needs another source
)

var certaintyNames = []string{"sure", "likely", "possible"}

func (c Certainty) String() string { return nameOf("Certainty", certaintyNames, int(c)) }

func (c Certainty) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c *Certainty) UnmarshalText(text []byte) error {
	i := slices.Index(certaintyNames, string(text))
	if i < 0 {
		return fmt.Errorf("certainty %q: want %s", text, strings.Join(certaintyNames, ", "))
	}
	*c = Certainty(i)
	return nil
}

func nameOf(typ string, names []string, i int) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return names[i]
}

// Evidence is one fact that a finding rests on, with the place where it stands.
type Evidence struct {
	Source string `json:"source"`
	Where  string `json:"where"`
	Fact   string `json:"fact"`
}

func (e Evidence) String() string {
	return strings.TrimSpace(e.Source+" "+e.Where) + ": " + e.Fact
}

// Finding is one thing that is wrong, or worth knowing.
type Finding struct {
	Rule      string    `json:"rule"`
	Severity  Severity  `json:"severity"`
	Certainty Certainty `json:"certainty"`
	// Subjects are node keys, most specific first: "gpu:0000:17:00.0",
	// "port:mlx5_4/1", "pci:0000:15:01.0", "numa:1", "host:gx07"; a link is both
	// ends joined by "--".
	Subjects []string   `json:"subjects"`
	Expected string     `json:"expected"`
	Observed string     `json:"observed"`
	Evidence []Evidence `json:"evidence"`
	Fix      string     `json:"fix"` // who does what
}

// Gap is something that a rule could not judge: neither a fault nor health.
type Gap struct {
	Rule     string   `json:"rule"` // or InventoryGaps
	Subjects []string `json:"subjects"`
	Reason   string   `json:"reason"`
	How      string   `json:"how"` // how to get the fact
}

// Rule is one check.
type Rule struct {
	ID    string // stable: scripts filter on it
	Title string // a few words
	Doc   string // when it fires, how severe, when it stays silent
	// Replaces lists rules that this one explains: where both fire for one
	// subject, only this rule's finding stays and the other goes into its
	// evidence.
	Replaces []string
	// Run judges one host, Across jobs and hosts together; a rule has one of them
	// or both.
	Run    func(*Pass)
	Across func(*Across)
}

// Result is what a run of rules found, in order: findings by severity (worst
// first), rule and subject; gaps by rule and subject.
type Result struct {
	Findings []Finding `json:"findings"`
	Gaps     []Gap     `json:"gaps"`
	// Ignored and Rules are what a [Filter] did; nil without one.
	Ignored []Ignored `json:"ignored,omitzero"`
	Rules   []string  `json:"rules,omitzero"` // that ran, where not all did
}

// Run applies the rules to one host and to the jobs that its inventory holds.
func Run(topo *graph.Topology, rules []Rule) Result {
	out := runHost(topo, &topo.Inv.Job, nil, rules)
	runAcross(&topo.Inv.Job, []*graph.Topology{topo}, rules, &out)
	out.finish(rules)
	return out
}

// runHost applies the rules about one host; job is what jobs show anywhere, before an
// earlier reading, nil where there was none to compare with.
func runHost(topo *graph.Topology, job *probe.Job, before *earlier, rules []Rule) Result {
	out := Result{Findings: []Finding{}, Gaps: []Gap{}}
	if OnlyInJobs(topo.Inv) {
		r := Rule{ID: InventoryGaps}
		reporter{&r, &out}.Gap("only a job's own output speaks of the host: its hardware was not checked",
			"name the host's inventory or its recorded /sys beside the job's output", HostKey(topo.Inv.Host.Name))
		return out
	}
	f := gather(topo)
	run := func(r *Rule) {
		r.Run(&Pass{reporter: reporter{r, &out}, Inv: topo.Inv, Topo: topo, Job: job, facts: f, before: before})
	}
	run(&Rule{ID: InventoryGaps, Run: runInventory})
	for i := range rules {
		if rules[i].Run != nil {
			run(&rules[i])
		}
	}
	return out
}

// jobSources are the sources in which a job names the GPUs and adapters that it
// uses, and says nothing of how they are.
var jobSources = []string{probe.SourceNCCLLog, probe.SourceNCCLTests}

// OnlyInJobs reports a host that no source shows but a job's output.
func OnlyInJobs(inv *probe.Inventory) bool {
	if len(inv.PCI)+len(inv.Relations)+len(inv.NUMA)+len(inv.CPUs) > 0 || len(inv.GPUs)+len(inv.HCAs) == 0 {
		return false
	}
	foreign := func(o probe.Origin) bool { return !slices.Contains(jobSources, o.Source) }
	return !slices.ContainsFunc(inv.GPUs, func(g probe.GPU) bool { return slices.ContainsFunc(g.Origins, foreign) }) &&
		!slices.ContainsFunc(inv.HCAs, func(h probe.HCA) bool { return slices.ContainsFunc(h.Origins, foreign) })
}

// Join puts results together, in the same order as Run.
func Join(results ...Result) Result {
	out := concat(results)
	out.sort()
	return out
}

// concat puts results one after the other.
func concat(results []Result) Result {
	out := Result{Findings: []Finding{}, Gaps: []Gap{}}
	for _, r := range results {
		out.Findings = append(out.Findings, r.Findings...)
		out.Gaps = append(out.Gaps, r.Gaps...)
	}
	return out
}

// Worst returns the highest severity; ok is false when there is no finding.
func (r Result) Worst() (worst Severity, ok bool) {
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst, len(r.Findings) > 0
}

// NotChecked says in one line what was not checked, to stand above findings:
// "not checked: port state not known (8 ports)". It is empty when everything
// was; Gaps holds the rules and what to do.
func (r Result) NotChecked() string {
	var reasons []string
	subjects := map[string][]string{}
	for _, g := range r.Gaps {
		if subjects[g.Reason] == nil {
			reasons = append(reasons, g.Reason)
		}
		for _, s := range g.Subjects {
			if !slices.Contains(subjects[g.Reason], s) {
				subjects[g.Reason] = append(subjects[g.Reason], s)
			}
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	for i, reason := range reasons {
		reasons[i] = reason + " (" + countKinds(subjects[reason]) + ")"
	}
	return "not checked: " + strings.Join(reasons, "; ")
}

func (r *Result) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Rule, b.Rule), compareSubjects(a.Subjects, b.Subjects),
			cmp.Compare(a.Observed, b.Observed))
	})
	slices.SortStableFunc(r.Gaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), compareSubjects(a.Subjects, b.Subjects), cmp.Compare(a.Reason, b.Reason))
	})
}

func compareSubjects(a, b []string) int { return slices.CompareFunc(a, b, compareKeys) }

// compareKeys orders node keys: addresses as the hexadecimal numbers that they
// are, names by their decimal numbers (mlx5_2 before mlx5_10). A link is compared
// end by end.
func compareKeys(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "--"), strings.Split(b, "--"), func(a, b string) int {
		kindA, nameA, _ := strings.Cut(a, ":")
		kindB, nameB, _ := strings.Cut(b, ":")
		x, errA := probe.ParseBDF(nameA)
		y, errB := probe.ParseBDF(nameB)
		byName := cmp.Or(probe.CompareNames(nameA, nameB), cmp.Compare(a, b))
		switch c := probe.CompareNames(kindA, kindB); {
		case c != 0:
			return c
		case errA == nil && errB == nil:
			return cmp.Or(x.Compare(y), byName)
		case errA == nil:
			return 1
		case errB == nil:
			return -1
		}
		return byName
	})
}

// once leaves one finding per cause: a finding whose most specific subject is
// also a subject of a finding that replaces its rule goes into that one's
// evidence. A finding about the host covers everything on it.
func once(findings []Finding, rules []Rule) []Finding {
	replaces := make(map[string][]string, len(rules))
	for _, r := range rules {
		replaces[r.ID] = r.Replaces
	}
	by := make([]int, len(findings)) // the finding that takes this one in
	for i, f := range findings {
		by[i] = slices.IndexFunc(findings, func(g Finding) bool {
			return slices.Contains(replaces[g.Rule], f.Rule) && covers(g, f)
		})
	}
	out := make([]Finding, 0, len(findings))
	at := make([]int, len(findings))
	for i, f := range findings {
		if by[i] < 0 {
			at[i] = len(out)
			out = append(out, f)
		}
	}
	for i, f := range findings {
		if by[i] < 0 {
			continue
		}
		top := by[i]
		for steps := 0; by[top] >= 0 && steps < len(findings); steps++ {
			top = by[top]
		}
		g := &out[at[top]]
		g.Severity = max(g.Severity, f.Severity)
		g.Evidence = append(slices.Clip(g.Evidence), Evidence{Source: "rule", Where: f.Rule, Fact: f.Observed + "; expected " + f.Expected})
	}
	return out
}

func covers(g, f Finding) bool {
	if len(f.Subjects) == 0 {
		return false
	}
	return slices.ContainsFunc(g.Subjects, func(s string) bool {
		host, isHost := strings.CutPrefix(s, "host:")
		return s == f.Subjects[0] || isHost && hostOf(f.Subjects[0], host) == host
	})
}

// SplitSubject splits a subject into the host before it ("" = none) and the key.
func SplitSubject(s string) (host, key string) {
	if strings.HasPrefix(s, "host:") {
		return "", s
	}
	if host = hostOf(s, ""); host != "" {
		return host, s[len(host)+1:]
	}
	return "", s
}

// hostOf returns the host before a subject, or def where none stands there.
func hostOf(subject, def string) string {
	if h, ok := strings.CutPrefix(subject, "host:"); ok {
		return h
	}
	kind := strings.IndexByte(subject, ':')
	if host, _, ok := strings.Cut(subject, "/"); ok && (kind < 0 || len(host) < kind) {
		return host
	}
	return def
}

// kindNames are the words for the prefixes of node keys, one and many.
var kindNames = []struct{ prefix, one, many string }{
	{"gpu:", "GPU", "GPUs"},
	{"hca:", "HCA", "HCAs"},
	{"port:", "port", "ports"},
	{"pci:", "PCI function", "PCI functions"},
	{"numa:", "NUMA node", "NUMA nodes"},
	{"host:", "host", "hosts"},
	{"rank:", "rank", "ranks"},
	{"file:", "file", "files"},
	{"env:", "setting", "settings"},
	{"net:", "interface", "interfaces"},
	{"collective:", "collective", "collectives"},
}

// countKinds prints "8 GPUs, 2 HCAs".
func countKinds(subjects []string) string {
	var parts []string
	rest := len(subjects)
	for _, k := range kindNames {
		n := 0
		for _, s := range subjects {
			if _, key := SplitSubject(s); strings.HasPrefix(key, k.prefix) {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, count(n, k.one, k.many))
			rest -= n
		}
	}
	if rest > 0 {
		parts = append(parts, count(rest, "other", "others"))
	}
	return strings.Join(parts, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
