package smiquery

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Bounds of what is read. A GPU has about 300 elements, and with its supported
// clocks some thousands.
const (
	maxDepth = 32
	maxNodes = 2_000_000
	maxValue = 4096 // bytes of a value that is used
)

// node is a key of either form of -q, its name in lower case.
type node struct {
	name, value string
	line        int
	kids        []*node
}

// find returns the first of several paths that exists; names are separated by
// "/".
func (n *node) find(paths ...string) *node {
	for _, p := range paths {
		at := n
		for name := range strings.SplitSeq(p, "/") {
			if at = at.kid(name); at == nil {
				break
			}
		}
		if at != nil {
			return at
		}
	}
	return nil
}

func (n *node) kid(name string) *node {
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

// document is one output of -q: driver, number of GPUs and the GPUs.
type document struct {
	root *node
	gpus []*node // the value is the bus id
}

func fault(file string, line, col int, format string, args ...any) error {
	return &probe.SyntaxError{File: file, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}
}

// xmlDocument reads the XML form; first is the line on which it starts.
func xmlDocument(file string, text []string, first int) (*document, error) {
	x := xml.NewDecoder(strings.NewReader(strings.Join(text, "\n")))
	x.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	at := func() (int, int) {
		line, col := x.InputPos()
		return line + first - 1, col
	}
	doc := &document{}
	var stack []*node
	nodes := 0
	for {
		line, col := at()
		tok, err := x.RawToken()
		if err != nil {
			return doc, xmlEnd(file, x, err, first, stack, doc)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if nodes++; nodes > maxNodes {
				return nil, fault(file, line, col, "more than %d elements", maxNodes)
			}
			n := &node{name: strings.ToLower(t.Name.Local), line: line}
			switch depth := len(stack); {
			case depth >= maxDepth:
				return nil, fault(file, line, col, "elements are nested deeper than %d", maxDepth)
			case depth > 0:
				up := stack[depth-1]
				up.kids = append(up.kids, n)
			case doc.root != nil:
				return nil, fault(file, line, col, "a second root element <%s>", clip(n.name))
			case n.name != "nvidia_smi_log":
				return nil, fault(file, line, col, "root element is <%s>, want <nvidia_smi_log>", clip(n.name))
			default:
				doc.root = n
			}
			if n.name == "gpu" && len(stack) == 1 {
				for _, a := range t.Attr {
					if a.Name.Local == "id" {
						n.value = a.Value
					}
				}
				doc.gpus = append(doc.gpus, n)
			}
			stack = append(stack, n)
		case xml.EndElement:
			if len(stack) == 0 {
				return nil, fault(file, line, col, "</%s> closes nothing", clip(t.Name.Local))
			}
			top := stack[len(stack)-1]
			if top.name != strings.ToLower(t.Name.Local) {
				return nil, fault(file, line, col, "</%s> where </%s> is due (opened on line %d)", clip(t.Name.Local), clip(top.name), top.line)
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			s := strings.TrimSpace(string(t))
			if s == "" {
				continue
			}
			if len(stack) == 0 {
				return nil, fault(file, line, col, "text %q outside the document", clip(s))
			}
			if top := stack[len(stack)-1]; top.value == "" {
				top.value = s
			}
		case xml.Directive:
			// The name of the DTD is there in every output; nothing is loaded.
			d := string(t)
			if !strings.HasPrefix(d, "DOCTYPE nvidia_smi_log") || strings.ContainsAny(d, "[<%") {
				return nil, fault(file, line, col, "a document type with declarations of its own, which nvidia-smi never writes; refused")
			}
		}
	}
}

// xmlEnd judges why the tokens ended.
func xmlEnd(file string, x *xml.Decoder, err error, first int, stack []*node, doc *document) error {
	line, col := x.InputPos()
	line += first - 1
	var syn *xml.SyntaxError
	switch {
	case err == io.EOF && len(stack) == 0 && doc.root != nil:
		return nil
	case err == io.EOF && doc.root == nil:
		return fault(file, line, col, "no <nvidia_smi_log> element")
	case err == io.EOF, errors.As(err, &syn) && strings.Contains(syn.Msg, "unexpected EOF"):
		where := ""
		if n := len(stack); n > 0 {
			where = fmt.Sprintf(" inside <%s> of line %d", clip(stack[n-1].name), stack[n-1].line)
		}
		return fault(file, line, col, "the document is cut off%s", where)
	case syn != nil:
		return fault(file, line, col, "%s", clip(syn.Msg))
	}
	return fault(file, line, col, "%s", clip(strings.TrimPrefix(err.Error(), "xml: ")))
}

// textTree builds the same tree from the lines of the text form.
type textTree struct {
	doc     document
	stack   []*node // root, GPU, section …
	indents []int
	nodes   int
}

func newTextTree(line int) *textTree {
	t := &textTree{doc: document{root: &node{line: line}}}
	t.reset(t.doc.root)
	return t
}

func (t *textTree) reset(n *node) {
	t.stack, t.indents = []*node{n}, []int{-1}
}

// gpu opens the next GPU.
func (t *textTree) gpu(id string, line int) {
	n := &node{name: "gpu", value: id, line: line}
	t.doc.gpus = append(t.doc.gpus, n)
	t.reset(n)
}

// add takes a line of the form "key : value", or a heading.
func (t *textTree) add(file, text string, line int) error {
	indent := 0
	for _, c := range text {
		if c == ' ' {
			indent++
		} else if c == '\t' {
			indent += 8
		} else {
			break
		}
	}
	if indent == 0 && len(t.doc.gpus) > 0 { // else ends would have said so
		return fault(file, line, 0, "%q is not indented below its GPU: the indentation, which tells sections apart, is lost", clip(text))
	}
	if t.nodes++; t.nodes > maxNodes {
		return fault(file, line, 0, "more than %d lines", maxNodes)
	}
	key, value, _ := strings.Cut(text, ":")
	n := &node{name: strings.ToLower(strings.TrimSpace(key)), value: strings.TrimSpace(value), line: line}
	for len(t.indents) > 1 && t.indents[len(t.indents)-1] >= indent {
		t.stack, t.indents = t.stack[:len(t.stack)-1], t.indents[:len(t.indents)-1]
	}
	if len(t.stack) > maxDepth {
		return fault(file, line, 0, "sections are nested deeper than %d", maxDepth)
	}
	up := t.stack[len(t.stack)-1]
	up.kids = append(up.kids, n)
	t.stack, t.indents = append(t.stack, n), append(t.indents, indent)
	return nil
}

// ends reports a line that cannot belong to the GPU above it.
func (t *textTree) ends(text string) bool {
	n := len(t.doc.gpus)
	return n > 0 && len(t.doc.gpus[n-1].kids) > 0 && text == strings.TrimLeft(text, " \t")
}
