package render

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph/check"
)

func TestJUnit(t *testing.T) {
	const nasty = `a <b> & "c" ]]> 'd'` + "\x1b\x00\xff"
	rules := []check.Rule{{ID: "bad"}, {ID: "mild"}, {ID: "open"}, {ID: "known"}, {ID: "fine"}}
	res := check.Result{
		Findings: []check.Finding{
			{Rule: "bad", Severity: check.Critical, Subjects: []string{"gpu:0"}, Observed: nasty, Expected: "better", Fix: "mend it",
				Evidence: []check.Evidence{{Source: "sysfs", Where: "x", Fact: "y"}}},
			{Rule: "bad", Severity: check.Warning, Subjects: []string{"gpu:1"}, Observed: "slow"},
			{Rule: "bad", Severity: check.Info, Subjects: []string{"gpu:2"}, Observed: "worth knowing"},
			{Rule: "mild", Severity: check.Info, Subjects: []string{"gpu:3"}, Observed: "mild thing"},
		},
		Gaps: []check.Gap{
			{Rule: "bad", Subjects: []string{"gpu:4"}, Reason: "hidden", How: "ask"},
			{Rule: "inventory", Subjects: []string{"hca:1"}, Reason: "unread", How: "root"},
			{Rule: "open", Subjects: []string{"gpu:5"}, Reason: "unknown", How: "look"},
		},
		Ignored: []check.Ignored{{Finding: check.Finding{Rule: "known", Severity: check.Critical, Subjects: []string{"gpu:6"}}, Reason: "ticket 7"}},
	}
	var out bytes.Buffer
	if err := WriteJUnit(&out, rules, res, func(s check.Severity) bool { return s >= check.Warning }); err != nil {
		t.Fatal(err)
	}
	var doc junitSuites
	if err := xml.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if want := (junitCount{Tests: 6, Failures: 1, Skipped: 2}); doc.junitCount != want || len(doc.Suites) != 1 || doc.Suites[0].junitCount != want {
		t.Errorf("%+v", doc)
	}
	var got []string
	for _, c := range doc.Suites[0].Cases {
		line := c.Name
		if c.Failure != nil {
			line += " failure " + c.Failure.Message
		}
		if c.Skipped != nil {
			line += " skipped " + c.Skipped.Message
		}
		if c.Output != "" {
			line += " output " + c.Output
		}
		got = append(got, line)
	}
	want := []string{
		"bad failure critical bad: gpu:0: a <b> & \"c\" ]]> 'd'\ufffd\ufffd\ufffd (and 1 more)" +
			" output info bad: gpu:2: worth knowing\nsure; to do: \nnot checked: hidden (ask) [gpu:4]",
		"mild output info mild: gpu:3: mild thing\nsure; to do: ",
		"open skipped not checked: unknown (look) [gpu:5]",
		"known output ignored critical known: gpu:6: ; ticket 7",
		"fine",
		"inventory skipped not checked: unread (root) [hca:1]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s", strings.Join(got, "\n"))
	}
	for _, s := range []string{"expected: better", "to do: mend it", "evidence: sysfs x: y", "warning bad: gpu:1: slow"} {
		if text := doc.Suites[0].Cases[0].Failure.Text; !strings.Contains(text, s) {
			t.Errorf("%q lacks %q", text, s)
		}
	}
}
