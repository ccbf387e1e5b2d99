package probe

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// XMLStarts reports whether a text that starts with head is an XML document with
// that root element: before it stand only a byte order mark, a declaration,
// comments and, unless doctype is "", a document type of that name. A head that
// ends inside one of these is not recognised; 4 KiB are enough for the files seen.
func XMLStarts(head []byte, root, doctype string) bool {
	rest := TrimBOM(head)
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(rest, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(rest, []byte("<!--")):
			end = "-->"
		case doctype != "" && bytes.HasPrefix(rest, []byte("<!DOCTYPE "+doctype)):
			end = ">"
		default:
			tag, ok := bytes.CutPrefix(rest, []byte("<"+root))
			return ok && (len(tag) == 0 || strings.IndexByte(" \t\r\n/>", tag[0]) >= 0)
		}
		i := bytes.Index(rest, []byte(end))
		if i < 0 {
			return false
		}
		rest = rest[i+len(end):]
	}
}

// XMLReader gives the tokens of a document whose elements it has checked: one
// root (or Pieces), each closed by its own tag, not too many and not too deep. Nothing
// outside the document is loaded, and an encoding that is declared is not
// converted.
type XMLReader struct {
	File string // for errors
	Root string // name of the root element
	// Pieces are elements that may stand without the root, one after the other,
	// as somebody cut them out of a document.
	Pieces []string
	// Others says what documents with other root elements are.
	Others map[string]string
	// Limits of what is read.
	MaxDepth, MaxElements int
	// Name gives the name of an element as it is compared; nil takes the local name.
	Name func(xml.Name) string

	x        *xml.Decoder
	first    int
	open     []openElement
	rooted   bool
	pieces   bool // it has no root
	elements int
}

type openElement struct {
	name string
	line int
}

// Reset begins with a document whose first line is that line of the file.
func (r *XMLReader) Reset(document io.Reader, line int) {
	r.x, r.first = xml.NewDecoder(document), line
	r.x.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	r.open, r.rooted, r.pieces, r.elements = r.open[:0], false, false, 0
}

// Fault is a *SyntaxError at a place in the file.
func (r *XMLReader) Fault(line, col int, format string, args ...any) error {
	return &SyntaxError{File: r.File, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}
}

func (r *XMLReader) position() (line, col int) {
	line, col = r.x.InputPos()
	return line + r.first - 1, col
}

// Next returns the next token and its place; its bytes are valid until the next
// call. The error is io.EOF behind a whole document, else a *SyntaxError.
func (r *XMLReader) Next() (tok xml.Token, line, col int, err error) {
	line, col = r.position()
	if tok, err = r.x.RawToken(); err != nil {
		return nil, line, col, r.end(err)
	}
	switch t := tok.(type) {
	case xml.StartElement:
		name := r.name(t.Name)
		if r.elements++; r.elements > r.MaxElements {
			return nil, line, col, r.Fault(line, col, "more than %d elements", r.MaxElements)
		}
		switch n := len(r.open); {
		case n == 0 && slices.Contains(r.Pieces, name) && (!r.rooted || r.pieces):
			r.pieces = true
		case n >= r.MaxDepth:
			return nil, line, col, r.Fault(line, col, "elements are nested deeper than %d", r.MaxDepth)
		case n == 0 && r.rooted:
			return nil, line, col, r.Fault(line, col, "a second root element <%s>", Excerpt(name))
		case n == 0 && r.Others[name] != "":
			return nil, line, col, r.Fault(line, col, "%s", r.Others[name])
		case n == 0 && name != r.Root:
			return nil, line, col, r.Fault(line, col, "root element is <%s>, want <%s>", Excerpt(name), r.Root)
		}
		r.open, r.rooted = append(r.open, openElement{name, line}), true
	case xml.EndElement:
		name, n := r.name(t.Name), len(r.open)
		if n == 0 {
			return nil, line, col, r.Fault(line, col, "</%s> closes nothing", Excerpt(name))
		}
		if top := r.open[n-1]; top.name != name {
			return nil, line, col, r.Fault(line, col, "</%s> where </%s> is due (opened on line %d)", Excerpt(name), Excerpt(top.name), top.line)
		}
		r.open = r.open[:n-1]
	}
	return tok, line, col, nil
}

func (r *XMLReader) name(n xml.Name) string {
	if r.Name != nil {
		return r.Name(n)
	}
	return n.Local
}

// end judges why the tokens ended.
func (r *XMLReader) end(err error) error {
	line, col := r.position()
	var syn *xml.SyntaxError
	switch {
	case err == io.EOF && !r.rooted:
		return r.Fault(line, col, "no <%s> element", r.Root)
	case err == io.EOF && len(r.open) == 0:
		return io.EOF
	case err == io.EOF, errors.As(err, &syn) && strings.Contains(syn.Msg, "unexpected EOF"):
		where := ""
		if n := len(r.open); n > 0 {
			where = fmt.Sprintf(" inside <%s> of line %d", Excerpt(r.open[n-1].name), r.open[n-1].line)
		}
		return r.Fault(line, col, "the document is cut off%s", where)
	case syn != nil:
		return r.Fault(line, col, "%s", Excerpt(syn.Msg))
	}
	return r.Fault(line, col, "%s", Excerpt(strings.TrimPrefix(err.Error(), "xml: ")))
}
