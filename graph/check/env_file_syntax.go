package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envFileSyntax = Rule{
	ID:    "env-file-syntax",
	Title: "a file of settings that its reader takes literally",
	Doc: `Looks at nccl.conf, which NCCL reads itself, and at NAME=value files, which docker and
systemd read. Fires for what they take literally: quotes, export, blanks round the =, a
comment behind the value, ~, typographic quotes, and in nccl.conf Windows line ends
before NCCL 2.30.7. Also for a shell text in which blanks round the = lose the setting.
Warning; info where only docker keeps the quotes.
Silent: shell texts, where export and quotes are right.`,
	Replaces: []string{"env-bad-value"},
	Across:   runEnvFileSyntax,
}

// oddity is one way in which a reader takes a line literally.
type oddity struct {
	mark     ncclenv.Mark
	what     string // in the line
	dialects []ncclenv.Dialect
	severity Severity
	sure     Certainty
}

var oddities = []oddity{
	{ncclenv.MarkLost, "nobody sets the variable: blanks or words stand before the =", []ncclenv.Dialect{ncclenv.Conf, ncclenv.Shell, ncclenv.Plain}, Warning, Sure},
	{ncclenv.MarkExport, "export becomes part of the name", []ncclenv.Dialect{ncclenv.Conf}, Warning, Sure},
	{ncclenv.MarkSmartQuotes, "typographic quotes become part of the value", []ncclenv.Dialect{ncclenv.Conf, ncclenv.Plain, ncclenv.Shell, ncclenv.YAML}, Warning, Sure},
	{ncclenv.MarkQuotes, "the quotes become part of the value", []ncclenv.Dialect{ncclenv.Conf}, Warning, Sure},
	{ncclenv.MarkQuotes, "docker --env-file hands the quotes to NCCL; systemd and shells remove them", []ncclenv.Dialect{ncclenv.Plain}, Info, Possible},
	{ncclenv.MarkBlanks, "blanks round the = become part of name or value", []ncclenv.Dialect{ncclenv.Conf}, Warning, Sure},
	{ncclenv.MarkBlanks, "docker refuses blanks before the = and keeps those behind it; a shell takes the line for a command", []ncclenv.Dialect{ncclenv.Plain}, Warning, Likely},
	{ncclenv.MarkComment, "the comment becomes part of the value", []ncclenv.Dialect{ncclenv.Conf}, Warning, Sure},
	{ncclenv.MarkComment, "docker and systemd take the comment for part of the value; only a shell drops it", []ncclenv.Dialect{ncclenv.Plain}, Warning, Likely},
	{ncclenv.MarkTilde, "~ is not expanded", []ncclenv.Dialect{ncclenv.Conf}, Warning, Sure},
	{ncclenv.MarkTilde, "docker and systemd do not expand ~; only a shell does", []ncclenv.Dialect{ncclenv.Plain}, Warning, Likely},
	{ncclenv.MarkCR, "the Windows line end becomes part of the value before NCCL 2.30.7", []ncclenv.Dialect{ncclenv.Conf}, Warning, Sure},
}

func runEnvFileSyntax(a *Across) {
	for _, file := range a.shared.env.files {
		var f Finding
		var lines []string
		f.Subjects = []string{"file:" + file.name}
		f.Severity, f.Certainty = Info, Possible
		for _, e := range file.env {
			o, ok := a.oddity(file.dialect, e)
			if !ok {
				continue
			}
			_, line := placeOf(e)
			lines = append(lines, fmt.Sprintf("line %d (%s): %s", line, e.Name, o.what))
			f.Severity, f.Certainty = max(f.Severity, o.severity), min(f.Certainty, o.sure)
			if key := "env:" + e.Name; !slices.Contains(f.Subjects, key) {
				f.Subjects = append(f.Subjects, key)
			}
			raw := e.Raw
			if raw == "" {
				raw = e.Value
			}
			f.Evidence = append(f.Evidence, evidence(e.Origins, "", "", "%s=%s", e.Name, strings.TrimRight(raw, "\r")))
		}
		if len(lines) == 0 {
			continue
		}
		f.Observed = strings.Join(lines, "; ")
		f.Expected = "NAME=value, with nothing else on the line"
		f.Fix = "whoever wrote the file: write the plain form; comments on lines of their own with # in the first column"
		a.Report(f)
	}
}

// oddity finds what is worst about a line.
func (a *Across) oddity(d ncclenv.Dialect, e probe.EnvSetting) (oddity, bool) {
	for _, o := range oddities {
		if !hasMark(e, o.mark) || !slices.Contains(o.dialects, d) {
			continue
		}
		if o.mark == ncclenv.MarkCR {
			switch v := a.shared.env.version(e.Host); {
			case v == "":
				o.sure = Likely
			case !NCCLBefore(v, 2, 30, 7): // param.cc strips it from then on
				continue
			}
		}
		return o, true
	}
	return oddity{}, false
}
