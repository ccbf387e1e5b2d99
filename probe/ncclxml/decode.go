package ncclxml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Bounds of what is read. NCCL itself reads 256 elements of 16 attributes per
// rank; a rack's fused dump has a few thousand.
const (
	maxDepth    = 64
	maxElements = 200_000
	maxAttrs    = 1_000_000 // in the whole file
	maxMarkup   = 1 << 20   // bytes of one tag or comment
	maxText     = 4096      // bytes of one value
)

// topology is the form of NCCL_TOPO_FILE. What stands under <system> is also read
// without it, as people cut it out.
var topology = form{
	root: "system", pieces: []string{"cpu", "pci"}, attributes: attributes,
	others: map[string]string{"graphs": "an NCCL graph file (NCCL_GRAPH_FILE), not a topology"},
}

// Sniff reports whether a file that starts with head is an NCCL topology or a
// piece of one.
func Sniff(head []byte) bool {
	return slices.ContainsFunc(append([]string{topology.root}, topology.pieces...), func(root string) bool {
		return probe.XMLStarts(head, root, "")
	})
}

// Decode reads a topology file. name is its base name. Faults in the text are
// *probe.SyntaxError with the line; an input over probe.MaxInput is
// probe.ErrTooLarge.
func Decode(name string, r io.Reader) (*Document, error) {
	d := decoder{form: &topology, doc: &Document{Name: name}}
	if err := d.read(r); err != nil {
		return nil, err
	}
	if err := d.unique(); err != nil {
		return nil, err
	}
	return d.doc, nil
}

// form is one of NCCL's two kinds of XML file.
type form struct {
	root       string
	pieces     []string
	others     map[string]string // see probe.XMLReader
	attributes []attribute
}

type decoder struct {
	form  *form
	doc   *Document
	text  []byte // comments are blanked by prepare
	stack []*Element
}

// read builds the tree of elements and checks the attributes that the form knows.
func (d *decoder) read(r io.Reader) error {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%s: %w", d.doc.Name, err)
	}
	if d.text = probe.TrimBOM(raw); len(d.text) < len(raw) {
		d.refuse(1, "a byte order mark before <%s>", d.form.root)
	}
	if err := d.prepare(); err != nil {
		return err
	}
	if err := d.parse(); err != nil {
		return err
	}
	slices.SortStableFunc(d.doc.Refused, func(a, b Issue) int { return a.Line - b.Line })
	if len(d.doc.Refused) > maxIssues {
		d.doc.Refused = d.doc.Refused[:maxIssues]
	}
	return nil
}

func (d *decoder) fault(line, col int, format string, args ...any) error {
	return &probe.SyntaxError{File: d.doc.Name, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}
}

func (d *decoder) faultAt(offset int, format string, args ...any) error {
	line, col := probe.PositionOf(d.text, int64(offset))
	return d.fault(line, col, format, args...)
}

const maxIssues = 10

func (d *decoder) refuse(line int, format string, args ...any) {
	// Twice the limit, since tree and text report in separate passes.
	if len(d.doc.Refused) < 2*maxIssues {
		d.doc.Refused = append(d.doc.Refused, Issue{Line: line, Msg: fmt.Sprintf(format, args...)})
	}
}

// The tags that NCCL's parser accepts: exactly one blank before an attribute,
// none around "=" (xmlGetNode, xmlGetToken).
var (
	plainOpen  = regexp.MustCompile(`^<[^\s/>=]+(?: [^\s/>=]+=(?:"[^"]*"|'[^']*'))* ?/?>$`)
	plainClose = regexp.MustCompile(`^</[^\s/>=]+>$`)
)

// prepare refuses what is no XML at all, notes what NCCL's parser would not
// read, and blanks out comments: those of real files hold "--", which XML
// forbids and NCCL reads.
func (d *decoder) prepare() error {
	t := d.text
	switch {
	case len(bytes.TrimSpace(t)) == 0:
		return d.fault(0, 0, "empty: no <%s> element", d.form.root)
	case bytes.HasPrefix(t, []byte("\xff\xfe")), bytes.HasPrefix(t, []byte("\xfe\xff")):
		return d.fault(0, 0, "UTF-16 text: save it as UTF-8 (NCCL reads nothing else)")
	}
	if i := bytes.IndexByte(t, 0); i >= 0 {
		return d.faultAt(i, "binary data, not XML")
	}
	t = slices.Clone(t)
	line, counted, tags := 1, 0, 0
	lineAt := func(i int) int {
		line += bytes.Count(t[counted:i], []byte("\n"))
		counted = i
		return line
	}
	for i := 0; i < len(t); {
		open := bytes.IndexByte(t[i:], '<')
		between := t[i:]
		if open >= 0 {
			between = t[i : i+open]
		}
		if j := bytes.IndexByte(between, '\t'); j >= 0 {
			d.refuse(lineAt(i+j), "a tab between elements")
		}
		if open < 0 {
			break
		}
		i += open
		size := markup(t[i:])
		if size < 0 {
			break // cut off: parse says where
		}
		if size > maxMarkup {
			return d.faultAt(i, "a tag or comment of more than %d bytes", maxMarkup)
		}
		if tags++; tags > 2*maxElements {
			break // too many for parse, which says where
		}
		tag := t[i : i+size]
		switch {
		case bytes.HasPrefix(tag, []byte("<!--")):
			if j := bytes.IndexAny(tag, " >/\n\r"); bytes.IndexByte(tag[:max(j, 0)], '=') >= 0 {
				d.refuse(lineAt(i), "a comment whose first word holds \"=\"")
			}
			for j := range tag {
				if tag[j] != '\n' && tag[j] != '\r' {
					tag[j] = ' '
				}
			}
		case bytes.HasPrefix(tag, []byte("<?")):
			d.refuse(lineAt(i), "an XML declaration or processing instruction")
		case bytes.HasPrefix(tag, []byte("</")) && !plainClose.Match(tag):
			d.refuse(lineAt(i), "blanks inside a closing tag")
		case !bytes.HasPrefix(tag, []byte("</")) && !plainOpen.Match(tag):
			d.refuse(lineAt(i), "attributes that are not separated by exactly one blank, or blanks around \"=\"")
		}
		i += size
	}
	d.text = t
	return nil
}

// markup returns the length of the tag, instruction or comment at the start of
// t, -1 when it does not end.
func markup(t []byte) int {
	for _, m := range []struct{ open, end string }{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}} {
		if bytes.HasPrefix(t, []byte(m.open)) {
			i := bytes.Index(t[len(m.open):], []byte(m.end))
			if i < 0 {
				return -1
			}
			return len(m.open) + i + len(m.end)
		}
	}
	var quote byte
	for i := 1; i < len(t); i++ {
		switch c := t[i]; {
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return -1
}

func (d *decoder) parse() error {
	x := probe.XMLReader{
		File: d.doc.Name, Root: d.form.root, Pieces: d.form.pieces, Others: d.form.others,
		MaxDepth: maxDepth, MaxElements: maxElements, Name: qualified,
	}
	x.Reset(bytes.NewReader(d.text), 1)
	attrs := 0
	for {
		tok, line, col, err := x.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if attrs += len(t.Attr); attrs > maxAttrs {
				return d.fault(line, col, "more than %d attributes", maxAttrs)
			}
			if err := d.open(t, line, col); err != nil {
				return err
			}
		case xml.EndElement:
			d.stack = d.stack[:len(d.stack)-1]
		case xml.CharData:
			if rest := bytes.TrimSpace(t); len(rest) > 0 {
				return d.stray(line, col, t, rest)
			}
		case xml.Directive:
			return d.fault(line, col, "a document type or entity declaration, which NCCL's files do without; refused")
		}
	}
}

// stray reports text between elements, at its first character.
func (d *decoder) stray(line, col int, all, rest []byte) error {
	lead := all[:len(all)-len(bytes.TrimLeft(all, " \t\r\n"))]
	if n := bytes.Count(lead, []byte("\n")); n > 0 {
		line, col = line+n, len(lead)-bytes.LastIndexByte(lead, '\n')
	} else {
		col += len(lead)
	}
	if d.doc.Root == nil {
		return d.fault(line, col, "not an XML document: it starts with %q", probe.Excerpt(string(rest)))
	}
	return d.fault(line, col, "text %q between elements", probe.Excerpt(string(rest)))
}

func (d *decoder) open(t xml.StartElement, line, col int) error {
	e := &Element{Name: qualified(t.Name), Line: line}
	switch n := len(d.stack); {
	case n > 0:
		d.stack[n-1].Children = append(d.stack[n-1].Children, e)
	case e.Name == d.form.root:
		d.doc.Root = e
	case d.doc.Root == nil:
		d.refuse(line, "a piece of a file, without <%s>", d.form.root)
		d.doc.Piece = true
		d.doc.Root = &Element{Name: d.form.root, Attrs: []probe.Attr{{Name: "version", Value: "1"}}, Line: line}
		fallthrough
	default:
		d.doc.Root.Children = append(d.doc.Root.Children, e)
	}
	d.stack = append(d.stack, e)
	seen := make(map[string]bool, len(t.Attr))
	for i, a := range t.Attr {
		name := qualified(a.Name)
		bad := func(format string, args ...any) error {
			return d.fault(line, col, "<%s> %s %q: %s", probe.Excerpt(e.Name), probe.Excerpt(name), probe.Excerpt(a.Value), fmt.Sprintf(format, args...))
		}
		switch {
		case seen[name]:
			return bad("the attribute stands there twice")
		case len(a.Value) > maxText:
			return bad("longer than %d bytes", maxText)
		case hasControl(a.Value):
			return bad("holds a control character")
		}
		seen[name] = true
		if known := attributeOf(d.form.attributes, e.Name, name); known != nil {
			if err := known.check(a.Value); err != nil {
				return bad("%v", err)
			}
		}
		e.Attrs = append(e.Attrs, probe.Attr{Name: name, Value: a.Value})
		if len(a.Value) >= ncclText || len(name) >= ncclText {
			d.refuse(line, "a name or value of %d characters or more", ncclText)
		}
		if i == ncclAttrs {
			d.refuse(line, "more than %d attributes: the rest is ignored", ncclAttrs)
		}
	}
	if v, ok := e.Int("version").Get(); e.Name == d.form.root && (!ok || v != 1) {
		d.refuse(line, "<%s> without version=\"1\"", e.Name)
	}
	if s, _ := e.Text("busid"); shortBusID.MatchString(s) {
		d.refuse(line, "busid %q has no bus number; NCCL takes its digits for %v", s, e.BusID("busid"))
	}
	return nil
}

// Limits of NCCL's parser (xml.h MAX_STR_LEN, MAX_ATTR_COUNT).
const (
	ncclText  = 255
	ncclAttrs = 16
)

// unique refuses a bus id that stands twice under one host.
func (d *decoder) unique() error {
	type key struct {
		host string
		addr probe.BDF
	}
	seen := map[key]*Element{}
	hosts := d.doc.hostOf()
	var walk func(host string, e *Element) error
	walk = func(host string, e *Element) error {
		if addr, ok := e.BusID("busid").Get(); ok && e.Name == "pci" {
			k := key{host, addr}
			if first := seen[k]; first != nil {
				return d.fault(e.Line, 0, "<pci> busid %s stands on line %d already", addr, first.Line)
			}
			seen[k] = e
		}
		for _, c := range e.Children {
			if err := walk(host, c); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range d.doc.Root.Children {
		if err := walk(hosts[c], c); err != nil {
			return err
		}
	}
	return nil
}

func qualified(n xml.Name) string {
	if n.Space == "" {
		return n.Local
	}
	return n.Space + ":" + n.Local
}

// hasControl reports characters that no value of a topology holds and that
// would not survive being written again.
func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
