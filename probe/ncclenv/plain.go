package ncclenv

import (
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// plainLine reads NAME=value as docker --env-file and systemd do.
func (f *File) plainLine(n int, line string, cr bool) {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" || trimmed[0] == '#' {
		return
	}
	name, raw, ok := strings.Cut(line, "=")
	if !ok {
		if Matters(trimmed) {
			f.issue(n, "%s without =: docker passes the value of its own environment on", trimmed)
		} else {
			f.issue(n, "no NAME=value: %q", probe.Excerpt(trimmed))
		}
		return
	}
	a := Assignment{Name: strings.TrimSpace(name), Raw: raw, Line: n}
	if !isName(a.Name) {
		f.issue(n, "not the name of a variable: %q", probe.Excerpt(a.Name))
		return
	}
	if a.Name != name || strings.TrimLeft(raw, " \t") != raw {
		a.Marks = append(a.Marks, MarkBlanks)
	}
	if cr {
		a.Marks = append(a.Marks, MarkCR)
	}
	value, quote, comment := unquote(strings.TrimSpace(raw))
	if quote != 0 {
		a.Marks = append(a.Marks, MarkQuotes)
	}
	if comment {
		a.Marks = append(a.Marks, MarkComment)
	}
	if strings.HasPrefix(value, "~") {
		a.Marks = append(a.Marks, MarkTilde)
	}
	if quote == '\'' || !refers(value) {
		a.Value = probe.Some(value)
	}
	f.add(a)
}

// maxConfPart is how many bytes of a name or value NCCL takes.
const maxConfPart = 1023

// confLine reads a line as NCCL does (misc/param.cc setEnvFile): # only in the
// first column, everything before the first = is the name and everything behind
// it the value, 1023 bytes of each.
func (f *File) confLine(n int, line string, cr bool) {
	const maxLine = 4095
	if strings.HasPrefix(line, "#") {
		return
	}
	if len(line) > maxLine {
		f.issue(n, "line of %d bytes; NCCL reads %d of a line", len(line), maxLine)
		line = line[:maxLine]
	}
	name, raw, ok := strings.Cut(line, "=")
	if !ok {
		if strings.TrimSpace(line) != "" {
			f.issue(n, "no NAME=value; NCCL skips it: %q", probe.Excerpt(line))
		}
		return
	}
	if len(raw) > maxConfPart {
		f.issue(n, "value of %d bytes; NCCL takes %d", len(raw), maxConfPart)
	}
	a := Assignment{Raw: raw, Line: n, Value: probe.Some(raw[:min(len(raw), maxConfPart)])}
	if cr {
		a.Marks = append(a.Marks, MarkCR)
	}
	words := strings.Fields(name)
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return
	}
	a.Name = words[len(words)-1]
	if len(words) > 1 {
		a.Marks = append(a.Marks, MarkExport)
	} else if a.Name != name {
		a.Marks = append(a.Marks, MarkBlanks)
	}
	if a.Name != name || n == 1 && f.bom {
		a.Marks = append(a.Marks, MarkLost)
	}
	if strings.TrimSpace(raw) != raw && !a.Has(MarkBlanks) {
		a.Marks = append(a.Marks, MarkBlanks)
	}
	value, quote, comment := unquote(strings.TrimSpace(raw))
	if quote != 0 {
		a.Marks = append(a.Marks, MarkQuotes)
	}
	if comment {
		a.Marks = append(a.Marks, MarkComment)
	}
	if strings.HasPrefix(value, "~") {
		a.Marks = append(a.Marks, MarkTilde)
	}
	f.add(a)
}

// unquote takes quotes round the whole value and a comment behind it off.
func unquote(s string) (value string, quote byte, comment bool) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			rest := strings.TrimSpace(s[end+2:])
			if rest == "" || rest[0] == '#' {
				return s[1 : end+1], s[0], rest != ""
			}
		}
		return s, s[0], false // quotes that do not close, or not at the end
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '#' && (s[i-1] == ' ' || s[i-1] == '\t') {
			return strings.TrimRight(s[:i], " \t"), 0, true
		}
	}
	return s, 0, false
}

// refers reports what a shell, compose or a template would replace.
func refers(s string) bool {
	if strings.Contains(s, "`") || strings.Contains(s, "{{") {
		return true
	}
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '$' && (s[i+1] == '{' || s[i+1] == '(' || isName(s[i+1:i+2])) {
			return true
		}
	}
	return false
}
