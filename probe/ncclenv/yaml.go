package ncclenv

import (
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// yaml reads the environment in Kubernetes objects and compose files: pairs of
// name: and value: lines, NAME: value, and - NAME=value. Only these lines are
// looked at; the rest of the document is not understood.
func (f *File) yaml(text string) {
	name, at := "", 0 // a name: that waits for its value:, and the column of the key
	f.lines(text, func(n int, line string, _ bool) {
		body := strings.TrimLeft(line, " ")
		if body == "" || body[0] == '#' {
			return
		}
		item := strings.HasPrefix(body, "- ")
		if item {
			body = strings.TrimLeft(body[2:], " ")
		}
		column := len(line) - len(body)
		waiting := name
		name = ""
		if item && f.yamlItem(n, body) {
			return
		}
		key, value, ok := yamlPair(body)
		switch {
		case !ok:
		case key == "name":
			name, at = scalarText(value), column
		case waiting != "" && column == at && !item && key == "value":
			if isNumber(value) && Matters(waiting) {
				f.issue(n, "value of %s is no string to YAML; Kubernetes wants quotes round it", waiting)
			}
			f.yamlValue(n, waiting, value)
		case waiting != "" && column == at && !item && key == "valueFrom":
			f.add(Assignment{Name: waiting, Raw: value, Line: n})
		case isName(key) && Matters(key):
			f.yamlValue(n, key, value)
		}
	})
}

// isYAML reports a document that says what it is: a Kubernetes object or a
// compose file. Scripts may stand inside it.
func isYAML(text string) bool {
	for _, key := range []string{"apiVersion:", "services:"} {
		if strings.HasPrefix(text, key) || strings.Contains(text, "\n"+key) {
			return true
		}
	}
	return false
}

// yamlItem reads an item that is a whole setting: NAME=value, or
// {name: NAME, value: text}.
func (f *File) yamlItem(n int, body string) bool {
	if inner, ok := strings.CutPrefix(body, "{"); ok {
		inner, _, _ = strings.Cut(inner, "}")
		first, second, _ := strings.Cut(inner, ",")
		key, name, _ := yamlPair(strings.TrimSpace(first))
		key2, value, ok := yamlPair(strings.TrimSpace(second))
		if key == "name" && key2 == "value" && ok {
			f.yamlValue(n, scalarText(name), value)
		}
		return true
	}
	name, value, ok := strings.Cut(scalarText(body), "=")
	if !ok || !isName(name) {
		return false
	}
	a := Assignment{Name: name, Raw: value, Line: n}
	if inner, quote, _ := unquote(value); quote != 0 {
		a.Marks, value = append(a.Marks, MarkQuotes), inner
	}
	if !refers(value) {
		a.Value = probe.Some(value)
	}
	f.add(a)
	return true
}

func (f *File) yamlValue(n int, name, raw string) {
	a := Assignment{Name: name, Raw: raw, Line: n}
	value := scalarText(raw)
	if !refers(value) && !strings.HasPrefix(raw, "|") && !strings.HasPrefix(raw, ">") && !strings.HasPrefix(raw, "*") && !strings.HasPrefix(raw, "&") {
		a.Value = probe.Some(value)
	}
	f.add(a)
}

// yamlPair cuts "key: value"; the value may be empty.
func yamlPair(s string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(strings.TrimPrefix(s, "- "), ":")
	if !ok || value != "" && value[0] != ' ' && value[0] != '\t' {
		return "", "", false
	}
	return strings.TrimSpace(key), strings.TrimSpace(value), true
}

// scalarText is the text of a scalar on one line.
func scalarText(s string) string {
	s = strings.TrimSpace(s)
	if quoted, err := strconv.QuotedPrefix(s); err == nil && s[0] == '"' {
		if rest := strings.TrimSpace(s[len(quoted):]); rest == "" || rest[0] == '#' {
			text, _ := strconv.Unquote(quoted)
			return text
		}
	}
	value, quote, _ := unquote(s)
	if quote == '\'' {
		return strings.ReplaceAll(value, "''", "'")
	}
	return value
}

// isNumber reports a scalar that YAML does not read as text.
func isNumber(s string) bool {
	value, quote, _ := unquote(s)
	if quote != 0 {
		return false
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return true
	}
	switch strings.ToLower(value) {
	case "true", "false", "yes", "no", "on", "off", "null", "~", "":
		return true
	}
	_, err := strconv.ParseInt(value, 0, 64)
	return err == nil
}
