package ncclenv

import (
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const pythonEnviron = "os.environ["

// isPython reports a line that assigns to os.environ.
func isPython(line string) bool {
	_, _, ok := pythonLine(line)
	return ok
}

// pythonLine takes os.environ["NAME"] = expression apart.
func pythonLine(line string) (name, raw string, ok bool) {
	rest, ok := strings.CutPrefix(line, pythonEnviron)
	if !ok {
		return "", "", false
	}
	name, rest, _ = strings.Cut(rest, "]")
	raw, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), "=")
	name, literal := pythonText(name)
	return name, strings.TrimSpace(raw), ok && literal && isName(name) && !strings.HasPrefix(raw, "=")
}

// python reads assignments of texts to os.environ. Only these lines are looked
// at; an indented one may never run.
func (f *File) python(text string) {
	f.lines(text, func(n int, line string, _ bool) {
		body := strings.TrimLeft(line, " \t")
		name, raw, ok := pythonLine(body)
		if !ok {
			return
		}
		a := Assignment{Name: name, Raw: raw, Line: n, Marks: []Mark{MarkExport}}
		if value, ok := pythonText(raw); ok {
			a.Value = probe.Some(value)
		}
		if body != line {
			a.Marks = append(a.Marks, MarkConditional)
		}
		f.add(a)
	})
}

// pythonText is the text of a literal with one pair of quotes; a comment may
// follow. Escapes other than those of the quotes and of \ are not known.
func pythonText(s string) (string, bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return "", false
	}
	var text strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			rest := strings.TrimSpace(s[i+1:])
			return text.String(), rest == "" || rest[0] == '#'
		case c == '\\':
			if i++; i == len(s) || strings.IndexByte(`\"'`, s[i]) < 0 {
				return "", false
			}
			text.WriteByte(s[i])
		default:
			text.WriteByte(c)
		}
	}
	return "", false
}
