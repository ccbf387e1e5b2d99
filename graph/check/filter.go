package check

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// Filter is what somebody wants to be told: which rules run, and which findings
// are known and put up with. In names of rules and subjects * stands for anything.
type Filter struct {
	Rules  []Rule // to run
	Some   bool   // not all of them
	Ignore []Ignore
}

// NewFilter chooses rules by name; without a name all. A name that no rule has is
// an error.
func NewFilter(rules []Rule, names []string, ignore []Ignore) (Filter, error) {
	f := Filter{Rules: rules, Some: len(names) > 0, Ignore: ignore}
	if !f.Some {
		return f, nil
	}
	for _, name := range names {
		if !anyRule(rules, name) {
			return Filter{}, fmt.Errorf("no rule is called %q; ncclmap explain lists them", name)
		}
	}
	f.Rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return matches(name, r.ID) })
	})
	return f, nil
}

func anyRule(rules []Rule, name string) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return matches(name, r.ID) })
}

// Ignore is the decision to put up with findings.
type Ignore struct {
	Rule    string
	Subject string // "" = any
	Until   probe.Opt[string]
	Reason  string
	at      string // where the decision stands
}

// ParseIgnore reads RULE or RULE@SUBJECT; where is what gave it.
func ParseIgnore(where, text string) (Ignore, error) {
	rule, subject, found := strings.Cut(text, "@")
	if rule == "" || found && subject == "" {
		return Ignore{}, fmt.Errorf("%q: want RULE or RULE@SUBJECT", text)
	}
	return Ignore{Rule: rule, Subject: subject, Reason: where, at: where}, nil
}

// ParseIgnores reads a file of decisions, each a line "RULE[@SUBJECT] until
// YYYY-MM-DD REASON"; # begins a comment line. Errors are *probe.SyntaxError or
// those of r.
func ParseIgnores(name string, r io.Reader) ([]Ignore, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := probe.DecodeText(raw)
	if err != nil {
		return nil, &probe.SyntaxError{File: name, Msg: err.Error()}
	}
	var out []Ignore
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = probe.OneLine(line, len(line)); line == "" || line[0] == '#' {
			continue
		}
		e, err := parseDated(fmt.Sprintf("%s:%d", name, n), strings.Fields(line))
		if err != nil {
			return nil, &probe.SyntaxError{File: name, Line: n, Msg: err.Error()}
		}
		out = append(out, e)
	}
	return out, nil
}

func parseDated(where string, words []string) (Ignore, error) {
	const form = "want RULE[@SUBJECT] until YYYY-MM-DD REASON"
	e, err := ParseIgnore(where, words[0])
	switch {
	case err != nil:
		return e, err
	case len(words) < 3 || words[1] != "until":
		return e, fmt.Errorf("%s has no end; %s", words[0], form)
	case len(words) < 4:
		return e, fmt.Errorf("%s has no reason; %s", words[0], form)
	}
	if _, err := time.Parse(time.DateOnly, words[2]); err != nil {
		return e, fmt.Errorf("%q is no date; %s", words[2], form)
	}
	e.Until, e.Reason = probe.Some(words[2]), strings.Join(words[3:], " ")
	return e, nil
}

// Ignored is a finding that is put up with, why, and to which day inclusive.
type Ignored struct {
	Finding
	Reason string            `json:"reason"`
	Until  probe.Opt[string] `json:"until"` // YYYY-MM-DD
}

// Apply moves what is ignored out of the findings of the filter's rules. notes tell
// of decisions that have run out by now, and of those that match nothing.
func (f Filter) Apply(res Result, now time.Time) (out Result, notes []string) {
	out = res
	out.Findings, out.Ignored = []Finding{}, []Ignored{}
	if f.Some {
		out.Rules = []string{}
		for _, r := range f.Rules {
			out.Rules = append(out.Rules, r.ID)
		}
	}
	today := now.Format(time.DateOnly)
	used := make([]bool, len(f.Ignore))
	for _, finding := range res.Findings {
		by := -1
		for i, e := range f.Ignore {
			if !e.matches(finding) {
				continue
			}
			used[i] = true
			if by < 0 && !e.over(today) {
				by = i
			}
		}
		if by < 0 {
			out.Findings = append(out.Findings, finding)
		} else {
			out.Ignored = append(out.Ignored, Ignored{finding, f.Ignore[by].Reason, f.Ignore[by].Until})
		}
	}
	for i, e := range f.Ignore {
		switch {
		case e.over(today):
			notes = append(notes, fmt.Sprintf("%s: %s is no longer ignored, for %s is over (%s)", e.at, e, e.Until.Or(""), e.Reason))
		case !used[i] && (!f.Some || anyRule(f.Rules, e.Rule)): // else its rule did not run
			notes = append(notes, fmt.Sprintf("%s: no finding matches %s", e.at, e))
		}
	}
	return out, notes
}

// over reports that the last day has passed; days as YYYY-MM-DD order as text.
func (e Ignore) over(today string) bool { return e.Until.Or(today) < today }

func (e Ignore) String() string {
	if e.Subject == "" {
		return e.Rule
	}
	return e.Rule + "@" + e.Subject
}

// matches wants the most specific subject and all others of its kind: a fault that
// spreads from one GPU to a second is news. A host stands for all that is on it.
func (e Ignore) matches(f Finding) bool {
	if !matches(e.Rule, f.Rule) {
		return false
	}
	if e.Subject == "" {
		return true
	}
	for _, s := range f.Subjects {
		host, _ := SplitSubject(s)
		if kindOf(s) == kindOf(f.Subjects[0]) && !matches(e.Subject, s) && (host == "" || !matches(e.Subject, HostKey(host))) {
			return false
		}
	}
	return len(f.Subjects) > 0
}

// kindOf is the "gpu" of gpu:0000:17:00.0, on whichever host.
func kindOf(subject string) string {
	_, key := SplitSubject(subject)
	kind, _, _ := strings.Cut(key, ":")
	return kind
}

// matches compares a name with a pattern in which * stands for anything, slashes
// and nothing at all included.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, parts[0])
	for _, p := range parts[1:last] {
		var found bool
		_, name, found = strings.Cut(name, p)
		ok = ok && found
	}
	return ok && strings.HasSuffix(name, parts[last])
}
