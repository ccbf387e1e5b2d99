package ncclenv

import (
	"bytes"
	"slices"
	"strings"
)

// Sniff reports whether a text holds settings of NCCL: one sure assignment at
// least, and hardly a line that is something else. A script that says so in its
// first line, and a YAML document with environment entries, may hold other
// lines. text may end in the middle of a line.
func Sniff(text []byte) bool {
	if bytes.IndexByte(text, 0) >= 0 {
		return false
	}
	script := bytes.HasPrefix(text, []byte("#!")) && bytes.Contains(firstLine(text), []byte("sh"))
	assigns, keys, shaped, others, continued := 0, 0, 0, 0, false
	for l := range bytes.SplitSeq(text, []byte("\n")) {
		line := string(l[:min(len(l), 4096)])
		kind := how(line)
		switch {
		case continued, kind == linePlain, kind == lineShell, kind == linePython:
			assigns++
		case kind == lineYAML:
			keys++
		case kind == lineOther && yamlShape(line):
			shaped++
		case kind == lineOther:
			others++
		}
		continued = strings.HasSuffix(strings.TrimRight(line, "\r"), `\`) && (continued || kind == lineShell || kind == linePlain)
	}
	switch {
	case script:
	case assigns > 0 && (keys+shaped+others)*10 <= assigns:
	case keys > 0 && (isYAML(string(text)) || (assigns+others)*10 <= keys+shaped):
	default:
		return false
	}
	f, err := Parse("", bytes.NewReader(text))
	return err == nil && slices.ContainsFunc(f.Assignments, func(a Assignment) bool {
		kind := Kind(a.Name)
		return (strings.HasPrefix(a.Name, "NCCL_") || misspelt(a.Name)) && !a.Has(MarkUnset) && !a.Has(MarkConditional) &&
			!(script && (kind == KindBuild || kind == KindLabel))
	})
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// yamlShape reports a line that a YAML document may hold: an item, a key in
// lower case, or the mark between documents.
func yamlShape(line string) bool {
	line = strings.TrimSpace(line)
	if line == "---" || strings.HasPrefix(line, "- ") {
		return true
	}
	key, _, ok := yamlPair(line)
	return ok && key != "" && !strings.ContainsAny(key, " \t[](){}\"")
}
