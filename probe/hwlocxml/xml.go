package hwlocxml

import (
	"bytes"
	"encoding/xml"
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

// Sniff reports whether a file that starts with head is an hwloc topology.
func Sniff(head []byte) bool { return probe.XMLStarts(head, "topology", "topology") }

// documentType is the line that hwloc writes; what it names is not loaded.
var documentType = regexp.MustCompile(`^DOCTYPE\s+topology\s+SYSTEM\s+["'][\w.:/-]+["']\s*$`)

// parse builds the tree of a document.
func parse(name string, text []byte) (*element, error) {
	x := probe.XMLReader{File: name, Root: "topology", MaxDepth: maxDepth, MaxElements: maxElements}
	text = probe.TrimBOM(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, x.Fault(0, 0, "empty: no <topology> element")
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, x.Fault(0, 0, "UTF-16 text: save it as UTF-8")
	case bytes.IndexByte(text, 0) >= 0:
		line, col := probe.PositionOf(text, int64(bytes.IndexByte(text, 0)))
		return nil, x.Fault(line, col, "binary data, not XML")
	}
	x.Reset(bytes.NewReader(text), 1)
	var root *element
	var stack []*element
	for {
		tok, line, col, err := x.Next()
		if err == io.EOF {
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local, line: line, attrs: make(map[string]string, len(t.Attr))}
			if n := len(stack); n > 0 {
				stack[n-1].kids = append(stack[n-1].kids, e)
			} else {
				root = e
			}
			for _, a := range t.Attr {
				switch _, twice := e.attrs[a.Name.Local]; {
				case twice:
					return nil, x.Fault(line, col, "<%s> has %s twice", probe.Excerpt(e.name), probe.Excerpt(a.Name.Local))
				case len(a.Value) > maxText:
					return nil, x.Fault(line, col, "<%s> %s is longer than %d bytes", probe.Excerpt(e.name), probe.Excerpt(a.Name.Local), maxText)
				}
				e.attrs[a.Name.Local] = a.Value
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			s := strings.TrimSpace(string(t))
			if s == "" {
				continue
			}
			if len(stack) == 0 {
				return nil, x.Fault(line, col, "text %q outside the document", probe.Excerpt(s))
			}
			if top := stack[len(stack)-1]; top.name == "indexes" || top.name == "u64values" {
				if len(top.text)+len(s) > maxList {
					return nil, x.Fault(line, col, "<%s> is longer than %d bytes", top.name, maxList)
				}
				top.text += " " + s
			}
		case xml.Directive:
			if !documentType.Match(t) {
				return nil, x.Fault(line, col, "a document type with declarations, or of something else than an hwloc topology; refused")
			}
		}
	}
}
