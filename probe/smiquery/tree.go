package smiquery

import (
	"encoding/xml"
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
	x := probe.XMLReader{
		File: file, Root: "nvidia_smi_log", MaxDepth: maxDepth, MaxElements: maxNodes,
		Name: func(n xml.Name) string { return strings.ToLower(n.Local) },
	}
	x.Reset(strings.NewReader(strings.Join(text, "\n")), first)
	doc := &document{}
	var stack []*node
	for {
		tok, line, col, err := x.Next()
		if err == io.EOF {
			return doc, nil
		}
		if err != nil {
			return doc, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			n := &node{name: strings.ToLower(t.Name.Local), line: line}
			if depth := len(stack); depth > 0 {
				up := stack[depth-1]
				up.kids = append(up.kids, n)
			} else {
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
			stack = stack[:len(stack)-1]
		case xml.CharData:
			s := strings.TrimSpace(string(t))
			if s == "" {
				continue
			}
			if len(stack) == 0 {
				return nil, fault(file, line, col, "text %q outside the document", probe.Excerpt(s))
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
		return fault(file, line, 0, "%q is not indented below its GPU: the indentation, which tells sections apart, is lost", probe.Excerpt(text))
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
