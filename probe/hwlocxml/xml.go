package hwlocxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Bounds of what is read. A host with 1024 processors has about 10,000 elements.
const (
	maxDepth    = 64
	maxElements = 1_000_000
	maxText     = 4096    // bytes of one value
	maxList     = 1 << 20 // bytes of one list of a matrix
)

// element is one XML element.
type element struct {
	name  string
	attrs map[string]string
	text  string // of indexes and u64values
	kids  []*element
	line  int
}

func (e *element) named(name string) []*element {
	var out []*element
	for _, k := range e.kids {
		if k.name == name {
			out = append(out, k)
		}
	}
	return out
}

var utf8BOM = []byte("\xef\xbb\xbf")

// Sniff reports whether a file that starts with head is an hwloc topology: after
// byte order mark, declaration, document type and comments comes <topology>.
func Sniff(head []byte) bool {
	rest := bytes.TrimPrefix(head, utf8BOM)
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(rest, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(rest, []byte("<!DOCTYPE topology")):
			end = ">"
		default:
			tag, ok := bytes.CutPrefix(rest, []byte("<topology"))
			return ok && (len(tag) == 0 || strings.IndexByte(" \t\r\n/>", tag[0]) >= 0)
		}
		i := bytes.Index(rest, []byte(end))
		if i < 0 {
			return false
		}
		rest = rest[i+len(end):]
	}
}

// documentType is the line that hwloc writes; what it names is not loaded.
var documentType = regexp.MustCompile(`^DOCTYPE\s+topology\s+SYSTEM\s+["'][\w.:/-]+["']\s*$`)

// parse builds the tree of a document.
func parse(name string, text []byte) (*element, error) {
	fault := func(line, col int, format string, args ...any) error {
		return &probe.SyntaxError{File: name, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}
	}
	text = bytes.TrimPrefix(text, utf8BOM)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fault(0, 0, "empty: no <topology> element")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, fault(0, 0, "UTF-16 text: save it as UTF-8")
	case bytes.IndexByte(text, 0) >= 0:
		line, col := probe.PositionOf(text, int64(bytes.IndexByte(text, 0)))
		return nil, fault(line, col, "binary data, not XML")
	}
	x := xml.NewDecoder(bytes.NewReader(text))
	x.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var root *element
	var stack []*element
	elements := 0
	for {
		line, col := x.InputPos()
		tok, err := x.RawToken()
		if err != nil {
			return root, ended(fault, x, err, root, stack)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if elements++; elements > maxElements {
				return nil, fault(line, col, "more than %d elements", maxElements)
			}
			e := &element{name: t.Name.Local, line: line, attrs: make(map[string]string, len(t.Attr))}
			switch n := len(stack); {
			case n >= maxDepth:
				return nil, fault(line, col, "elements are nested deeper than %d", maxDepth)
			case n > 0:
				stack[n-1].kids = append(stack[n-1].kids, e)
			case root != nil:
				return nil, fault(line, col, "a second root element <%s>", clip(e.name))
			case e.name != "topology":
				return nil, fault(line, col, "root element is <%s>, want <topology>", clip(e.name))
			default:
				root = e
			}
			for _, a := range t.Attr {
				switch _, twice := e.attrs[a.Name.Local]; {
				case twice:
					return nil, fault(line, col, "<%s> has %s twice", clip(e.name), clip(a.Name.Local))
				case len(a.Value) > maxText:
					return nil, fault(line, col, "<%s> %s is longer than %d bytes", clip(e.name), clip(a.Name.Local), maxText)
				}
				e.attrs[a.Name.Local] = a.Value
			}
			stack = append(stack, e)
		case xml.EndElement:
			if len(stack) == 0 {
				return nil, fault(line, col, "</%s> closes nothing", clip(t.Name.Local))
			}
			top := stack[len(stack)-1]
			if top.name != t.Name.Local {
				return nil, fault(line, col, "</%s> where </%s> is due (opened on line %d)", clip(t.Name.Local), clip(top.name), top.line)
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			s := strings.TrimSpace(string(t))
			if s == "" {
				continue
			}
			if len(stack) == 0 {
				return nil, fault(line, col, "text %q outside the document", clip(s))
			}
			if top := stack[len(stack)-1]; top.name == "indexes" || top.name == "u64values" {
				if len(top.text)+len(s) > maxList {
					return nil, fault(line, col, "<%s> is longer than %d bytes", top.name, maxList)
				}
				top.text += " " + s
			}
		case xml.Directive:
			if !documentType.Match(t) {
				return nil, fault(line, col, "a document type with declarations, or of something else than an hwloc topology; refused")
			}
		}
	}
}

// ended judges why the tokens ended.
func ended(fault func(line, col int, format string, args ...any) error, x *xml.Decoder, err error, root *element, stack []*element) error {
	line, col := x.InputPos()
	var syn *xml.SyntaxError
	switch {
	case err == io.EOF && root == nil:
		return fault(line, col, "no <topology> element")
	case err == io.EOF && len(stack) == 0:
		return nil
	case err == io.EOF, errors.As(err, &syn) && strings.Contains(syn.Msg, "unexpected EOF"):
		where := ""
		if n := len(stack); n > 0 {
			where = fmt.Sprintf(" inside <%s> of line %d", clip(stack[n-1].name), stack[n-1].line)
		}
		return fault(line, col, "the document is cut off%s", where)
	case syn != nil:
		return fault(line, col, "%s", clip(syn.Msg))
	}
	return fault(line, col, "%s", clip(strings.TrimPrefix(err.Error(), "xml: ")))
}

// clip keeps quoted input in messages short.
func clip(s string) string {
	const max = 60
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "") + "…"
}
