package dot

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Attr sets one attribute; https://graphviz.org/doc/info/attrs.html lists them.
type Attr struct {
	Name  string
	Value Value
}

// Attrs is an ordered list of attributes, each name at most once.
type Attrs []Attr

// Of makes plain-text attributes of name, value, name, value, …
// A name without a value is an error when the graph is written.
func Of(pairs ...string) Attrs {
	var a Attrs
	for pair := range slices.Chunk(pairs, 2) {
		attr := Attr{Name: pair[0]}
		if len(pair) == 2 {
			attr.Value = Text(pair[1])
		}
		a = append(a, attr)
	}
	return a
}

// Add returns a with one more attribute. It never writes into the array behind
// a, so that many lists can begin with the same one.
func (a Attrs) Add(name string, v Value) Attrs {
	return append(slices.Clip(a), Attr{name, v})
}

func (a Attrs) has(name string) bool {
	return slices.ContainsFunc(a, func(b Attr) bool { return b.Name == name })
}

// spell returns ` [name="value", …]`, or nothing for an empty list.
func (a Attrs) spell() (string, error) {
	if len(a) == 0 {
		return "", nil
	}
	var b strings.Builder
	for i, attr := range a {
		if err := checkName(attr.Name); err != nil {
			return "", fmt.Errorf("attribute %q: %w", attr.Name, err)
		}
		if a[:i].has(attr.Name) {
			return "", fmt.Errorf("attribute %q: set twice", attr.Name)
		}
		if attr.Value == nil {
			return "", fmt.Errorf("attribute %q: no value", attr.Name)
		}
		value, err := attr.Value.spell()
		if err != nil {
			return "", fmt.Errorf("attribute %q: %w", attr.Name, err)
		}
		// Only within one cluster is it harmless, and the writer cannot tell
		// what a node default or a future caller will combine it with.
		if attr.Name == "rank" && strings.EqualFold(value, `"same"`) {
			return "", errors.New(`attribute "rank": "same" across clusters aborts Graphviz 2.43`)
		}
		sep := ", "
		if i == 0 {
			sep = " ["
		}
		b.WriteString(sep + attr.Name + "=" + value)
	}
	b.WriteByte(']')
	return b.String(), nil
}

// checkName accepts what DOT takes as a bare word: names come from our own
// code, so that anything else is a slip and not a text to be quoted.
func checkName(s string) error {
	for i, r := range s {
		letter := r == '_' || r < unicode.MaxASCII && unicode.IsLetter(r)
		if !letter && (i == 0 || r < '0' || r > '9') {
			return errors.New("name is not letters, digits and _")
		}
	}
	switch strings.ToLower(s) {
	case "":
		return errors.New("empty name")
	case "node", "edge", "graph", "digraph", "subgraph", "strict":
		return errors.New("name is a DOT keyword")
	}
	return nil
}

// Value is a [Text], a [Left] or an [HTML].
type Value interface {
	spell() (string, error)
}

// Text is plain text, shown as it stands. Lines are centred. What XML cannot
// carry (control characters, bytes that are not UTF-8) shows as U+FFFD.
type Text string

// Left is plain text whose lines are set flush left.
type Left string

// HTML is an HTML-like label (https://graphviz.org/doc/info/shapes.html#html):
// markup, in which text must have gone through [EscapeHTML].
type HTML string

func (t Text) spell() (string, error) { return quote(string(t), `\n`), nil }

func (l Left) spell() (string, error) {
	return quote(strings.TrimSuffix(string(l), "\n")+"\n", `\l`), nil
}

func (h HTML) spell() (string, error) {
	if err := checkHTML(string(h)); err != nil {
		return "", fmt.Errorf("HTML-like label: %w", err)
	}
	return "<" + strings.ReplaceAll(string(h), "\uFFFD", replacement) + ">", nil
}

// replacement is U+FFFD as an entity: Graphviz shows the character, and the
// document stays readable to gonum's parser, which refuses it in clear.
const replacement = "&#65533;"

// quote returns s as a quoted DOT string in which every line end is written as
// the escape newline.
//
// The DOT reader itself undoes only \"; Graphviz undoes \\ and entities later,
// where it makes a label of the string. Escaping both keeps a label true to s,
// keeps different names different, and lets no name end its own string with a
// backslash. In Graphviz's -T json and dot a name therefore keeps them.
func quote(s, newline string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ReplaceAll(s, "\r\n", "\n") {
		switch {
		case r == '"':
			b.WriteString(`\"`)
		case r == '\\':
			b.WriteString(`\\`)
		case r == '&':
			b.WriteString("&amp;")
		case r == '\n':
			b.WriteString(newline)
		case r == '\t':
			b.WriteByte(' ')
		case !printable(r):
			b.WriteString(replacement)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// printable tells what XML 1.0 may hold, less control characters and less
// U+FFFD, which is also what range yields for a byte that is not UTF-8.
func printable(r rune) bool {
	return !unicode.IsControl(r) && r < 0xFFFD || r > 0xFFFF
}

// EscapeHTML returns s as text for an [HTML] label. All white space becomes
// blanks, since Graphviz drops line ends there: write <BR/> between lines.
func EscapeHTML(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case r == '\\':
			// Even here Graphviz puts the node's name for \N, and even where
			// the backslash is written as an entity.
			b.WriteString(`\\`)
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteByte(' ')
		case !printable(r):
			b.WriteString(replacement)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// checkHTML refuses a label that would end early or that Graphviz would drop
// whole, as it does with malformed markup.
func checkHTML(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("empty")
	}
	// DOT finds the end of the label by counting brackets.
	open := false
	for i, r := range s {
		switch {
		case r == '<' && open, r == '>' && !open:
			return fmt.Errorf("stray %q at byte %d", r, i)
		case r == '<' || r == '>':
			open = !open
		}
	}
	d := xml.NewDecoder(strings.NewReader(s))
	d.Entity = xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.Comment, xml.Directive, xml.ProcInst:
			// DOT does not count brackets inside a comment as XML does.
			return errors.New("only elements and text are allowed")
		}
	}
}
