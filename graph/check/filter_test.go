package check

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

func TestChooseRules(t *testing.T) {
	rules := []Rule{{ID: "pcie-a"}, {ID: "pcie-b"}, {ID: "hca-a"}}
	for _, c := range []struct {
		names []string
		want  string
		err   string
	}{
		{nil, "pcie-a pcie-b hca-a", ""},
		{[]string{"hca-a", "pcie-a"}, "pcie-a hca-a", ""}, // in catalogue order
		{[]string{"pcie-*", "pcie-b"}, "pcie-a pcie-b", ""},
		{[]string{"*-a"}, "pcie-a hca-a", ""},
		{[]string{"pcie"}, "", `"pcie"`},
		{[]string{"pcie-a", "gpu-*"}, "", `"gpu-*"`},
	} {
		f, err := NewFilter(rules, c.names, nil)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", c.names, err, c.err)
			}
			continue
		}
		var got []string
		for _, r := range f.Rules {
			got = append(got, r.ID)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%q: %q %v, want %s", c.names, got, err, c.want)
		}
		res, _ := f.Apply(Result{}, time.Time{})
		if named := len(c.names) > 0; named != (res.Rules != nil) || named && !slices.Equal(res.Rules, got) {
			t.Errorf("%q: the result says %q", c.names, res.Rules)
		}
	}
}

func TestIgnoreMatches(t *testing.T) {
	for _, c := range []struct {
		entry, rule string
		subjects    string
		want        bool
	}{
		{"nvlink-down", "nvlink-down", "gpu:0", true},
		{"nvlink-down", "nvlink-down", "", true},
		{"nvlink-down", "nvlink-down-x", "gpu:0", false},
		{"nvlink-*", "nvlink-down", "gpu:0", true},
		{"*", "nvlink-down", "gpu:0", true},
		{"r@gpu:0", "r", "gpu:0", true},
		{"r@gpu:0", "r", "gpu:1", false},
		{"r@gpu:0", "r", "", false},
		{"r@*", "r", "", false},
		{"r@gpu:0", "r", "gpu:0 pci:5 host:a", true}, // what lies around it does not count
		{"r@pci:5", "r", "gpu:0 pci:5", false},
		{"r@gpu:0", "r", "gpu:0 gpu:1", false}, // the fault has spread
		{"r@gpu:*", "r", "gpu:0 gpu:1 port:x/1", true},
		{"r@port:mlx5_*", "r", "port:mlx5_4/1", true}, // a star passes slashes
		{"r@gpu:0", "r", "gx1/gpu:0", false},          // on which host is part of the name
		{"r@gx1/gpu:0", "r", "gx1/gpu:0", true},
		{"r@host:gx1", "r", "gx1/gpu:0 gx1/gpu:1", true},
		{"r@host:gx1", "r", "gx1/gpu:0 gx2/gpu:0", false},
		{"r@host:gx*", "r", "host:gx1 host:gx2", true},
		{"r@host:*", "r", "gpu:0", false},
		{"r@*:a--*", "r", "gpu:a--gpu:b", true},
		{"r@a*a", "r", "a", false},
		{"r@a*b*c", "r", "a-bb-c", true},
		{"r@a*b*c", "r", "a-c-b", false},
	} {
		e, err := ParseIgnore("test", c.entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.matches(Finding{Rule: c.rule, Subjects: strings.Fields(c.subjects)}); got != c.want {
			t.Errorf("%s of %s %s: %v", c.entry, c.rule, c.subjects, got)
		}
	}
	for _, bad := range []string{"", "@", "@gpu:0", "rule@"} {
		if _, err := ParseIgnore("test", bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestIgnoreFile(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // rule@subject until reason, a line each
		err  string
	}{
		{"", "", ""},
		{"\xef\xbb\xbf# known\r\n\r\n  nvlink-*@gpu:0\tuntil 2027-01-31  link 9,\tticket 7 \r\nhca-rate-low until 2028-02-29 #5",
			"nvlink-*@gpu:0 2027-01-31 link 9, ticket 7\nhca-rate-low 2028-02-29 #5", ""},
		{"a until 2027-01-31\n", "", "known:1: a has no reason"},
		{"\n# x\na@b until 2027-02-29 x\n", "", `known:3: "2027-02-29" is no date`},
		{"a until 31.1.2027 x", "", "known:1: \"31.1.2027\" is no date"},
		{"a until 2027-1-31 x", "", "is no date"},
		{"a because of x", "", "known:1: a has no end"},
		{"a", "", "known:1: a has no end"},
		{"a until", "", "known:1: a has no end"},
		{"a@ until 2027-01-31 x", "", "known:1: "},
		{"a\x00 until 2027-01-31 x", "", "known: binary"},
	} {
		got, err := ParseIgnores("known", strings.NewReader(c.text))
		if c.err != "" {
			var at *probe.SyntaxError
			if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), "known:") || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %s", c.text, err, c.err)
			}
			continue
		}
		var lines []string
		for _, e := range got {
			lines = append(lines, e.String()+" "+e.Until.Or("?")+" "+e.Reason)
		}
		if err != nil || strings.Join(lines, "\n") != c.want {
			t.Errorf("%q: %q %v", c.text, lines, err)
		}
	}
}

func TestApply(t *testing.T) {
	res := Result{
		Findings: []Finding{
			{Rule: "a", Severity: Critical, Subjects: []string{"gpu:0"}},
			{Rule: "a", Subjects: []string{"gpu:1"}},
			{Rule: "b", Subjects: []string{"gpu:0"}},
		},
		Gaps: []Gap{{Rule: "a"}},
	}
	noon := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, file    string
		now           time.Time
		only          []string
		kept, ignored string
		notes         []string
	}{
		{"none", "", noon, nil, "a gpu:0, a gpu:1, b gpu:0", "", nil},
		{"one", "a@gpu:1 until 2027-02-01 why", noon, nil, "a gpu:0, b gpu:0", "a gpu:1 2027-02-01 why", nil},
		{"on its last day", "a until 2027-01-31 why", noon, nil, "b gpu:0", "a gpu:0 2027-01-31 why, a gpu:1 2027-01-31 why", nil},
		{"on the day after", "a until 2027-01-31 why", noon.AddDate(0, 0, 1), nil, "a gpu:0, a gpu:1, b gpu:0", "",
			[]string{"known:1: a is no longer ignored, for 2027-01-31 is over (why)"}},
		{"an old decision beside a new one", "b until 2020-01-01 old\nb until 2027-06-01 new\nb until 2028-01-01 too", noon, nil, "a gpu:0, a gpu:1",
			"b gpu:0 2027-06-01 new", []string{"known:1: b is no longer ignored, for 2020-01-01 is over (old)"}},
		{"no match", "c until 2028-01-01 why\na@gpu:9 until 2028-01-01 why", noon, nil, "a gpu:0, a gpu:1, b gpu:0", "",
			[]string{"known:1: no finding matches c", "known:2: no finding matches a@gpu:9"}},
		{"of a rule that did not run", "c until 2028-01-01 why\na@gpu:9 until 2028-01-01 why", noon, []string{"a"}, "a gpu:0, a gpu:1, b gpu:0", "",
			[]string{"known:2: no finding matches a@gpu:9"}},
	} {
		entries, err := ParseIgnores("known", strings.NewReader(c.file))
		if err != nil {
			t.Fatal(err)
		}
		f, err := NewFilter([]Rule{{ID: "a"}, {ID: "b"}, {ID: "c"}}, c.only, entries)
		if err != nil {
			t.Fatal(err)
		}
		got, notes := f.Apply(res, c.now)
		var kept, ignored []string
		for _, f := range got.Findings {
			kept = append(kept, f.Rule+" "+f.Subjects[0])
		}
		for _, f := range got.Ignored {
			ignored = append(ignored, f.Rule+" "+f.Subjects[0]+" "+f.Until.Or("?")+" "+f.Reason)
		}
		if strings.Join(kept, ", ") != c.kept || strings.Join(ignored, ", ") != c.ignored || !slices.Equal(notes, c.notes) {
			t.Errorf("%s: kept %q, ignored %q, notes %q", c.name, kept, ignored, notes)
		}
		if len(got.Gaps) != 1 || len(res.Findings) != 3 || got.Findings == nil || got.Ignored == nil {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Decisions come from files that people write.
func FuzzParseIgnores(f *testing.F) {
	f.Add("# known\na-*@gpu:* until 2027-01-31 why\n")
	f.Add("a until\n\xff\x00")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := ParseIgnores("known", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Rule == "" || e.Reason == "" || !e.Until.Known() {
				t.Errorf("%+v", e)
			}
			e.matches(Finding{Rule: e.Rule, Subjects: []string{e.Subject, text}})
		}
	})
}
