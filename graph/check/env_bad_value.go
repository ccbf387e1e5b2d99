package check

import "strings"

var envBadValue = Rule{
	ID:    "env-bad-value",
	Title: "a value that NCCL reads otherwise than it looks",
	Doc: `Reads each value as NCCL does: numbers by strtoll with base 0 (true is 0, 8M is 8, 010
is 8), path classes in capitals, lists with ^ or = once in front, words as that version
knows them. Fires where NCCL takes something else than what the text says, or nothing.
Warning; critical where NCCL then refuses to start.
Silent: case, where NCCL ignores it (NCCL_ALGO, NCCL_NET, NCCL_DEBUG); an empty value.`,
	Across: runEnvBadValue,
}

func runEnvBadValue(a *Across) {
	for _, s := range a.settings() {
		if len(s.effect.Complaints) == 0 || isIgnoredIfname(s) {
			continue
		}
		f := Finding{Severity: Warning, Expected: s.variable.Accepts(), Observed: s.String() + ": " + strings.Join(s.effect.Complaints, "; "),
			Fix: "whoever wrote it: correct the value or delete the line"}
		if s.effect.Fails {
			f.Severity = Critical
		}
		if s.effect.Fix != "" {
			f.Fix = "whoever wrote it: write " + s.name + "=" + s.effect.Fix
		}
		a.reportSetting(s, f)
	}
	for _, s := range a.shared.env.open {
		a.Gap("the value is only known when the file is read", "add a log of the job, or the output of env in it", a.keysFor(s.name, s.hosts)...)
	}
	for _, s := range a.shared.env.refused {
		expected := "a value that NCCL takes"
		if s.variable.Name != "" {
			expected = s.variable.Accepts()
		}
		a.reportSetting(s, Finding{Severity: Warning, Expected: expected, Observed: s.String() + ": NCCL refused it and took its default",
			Fix: "whoever wrote it: correct the value or delete the line"})
	}
}
