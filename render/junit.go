package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/render/text"
)

// WriteJUnit writes the result as JUnit XML, the form that Jenkins and GitLab read:
// a test case for each rule that ran, and one for gaps that no rule has. A case
// fails by findings that fail, and is skipped where there is none and facts were
// lacking; what else there is to say stands in its output.
func WriteJUnit(w io.Writer, rules []check.Rule, res check.Result, fails func(check.Severity) bool) error {
	suite := junitSuite{Name: "ncclmap check"}
	cases := map[string]*junitCase{}
	of := func(rule string) *junitCase {
		if cases[rule] == nil {
			cases[rule] = &junitCase{Class: "ncclmap.check", Name: rule}
			suite.Cases = append(suite.Cases, cases[rule])
		}
		return cases[rule]
	}
	for _, r := range rules {
		of(r.ID)
	}
	for _, f := range res.Findings {
		if c := of(f.Rule); fails(f.Severity) {
			c.failed = append(c.failed, findingLines(f))
		} else {
			c.output = append(c.output, findingLines(f))
		}
	}
	for _, f := range res.Ignored {
		c := of(f.Rule)
		c.output = append(c.output, "ignored "+text.IgnoredText(f))
	}
	for _, g := range res.Gaps {
		c := of(g.Rule)
		c.gaps = append(c.gaps, fmt.Sprintf("not checked: %s (%s) [%s]", g.Reason, g.How, strings.Join(g.Subjects, " ")))
	}
	for _, c := range suite.Cases {
		c.conclude(&suite)
	}
	suites := junitSuites{junitCount: suite.junitCount, Suites: []junitSuite{suite}}
	out, err := xml.MarshalIndent(suites, "", " ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, out)
	return err
}

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitCount
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitCount
	Cases []*junitCase `xml:"testcase"`
}

type junitCount struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"` // none: what cannot be read gives no document
	Skipped  int `xml:"skipped,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Skipped *junitSkipped `xml:"skipped"`
	Failure *junitFailure `xml:"failure"`
	Output  string        `xml:"system-out,omitempty"`

	failed, gaps, output []string
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"` // what stands in lists of failures
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// conclude decides how the case ended, and counts it.
func (c *junitCase) conclude(s *junitSuite) {
	s.Tests++
	switch {
	case len(c.failed) > 0:
		s.Failures++
		first, _, _ := strings.Cut(c.failed[0], "\n")
		if more := len(c.failed) - 1; more > 0 {
			first += fmt.Sprintf(" (and %d more)", more)
		}
		c.Failure = &junitFailure{Message: first, Type: c.Name, Text: strings.Join(c.failed, "\n")}
		c.output = append(c.output, c.gaps...)
	case len(c.gaps) > 0:
		s.Skipped++
		c.Skipped = &junitSkipped{strings.Join(c.gaps, "; ")}
	}
	c.Output = strings.Join(c.output, "\n")
}

// findingLines is a finding as text: what it is in the first line, then the rest.
func findingLines(f check.Finding) string {
	lines := []string{fmt.Sprintf("%s %s: %s: %s", f.Severity, f.Rule, strings.Join(f.Subjects, " "), f.Observed)}
	if f.Expected != "" {
		lines = append(lines, "expected: "+f.Expected)
	}
	lines = append(lines, fmt.Sprintf("%s; to do: %s", f.Certainty, f.Fix))
	for _, e := range f.Evidence {
		lines = append(lines, "evidence: "+e.String())
	}
	return strings.Join(lines, "\n")
}
