package ncclxml

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Encode writes the document as NCCL writes its dumps: two blanks of
// indentation, one blank between attributes, in the document's order, and no XML
// declaration, which NCCL's parser rejects. Comments are not part of a Document.
//
// The characters < & " in values are written as entities; NCCL, which knows
// none, would read them literally, but no value of a real topology holds any.
func Encode(w io.Writer, d *Document) error {
	if d.Root == nil || d.Root.Name != "system" {
		return fmt.Errorf("%s: a topology without <system>", d.Name)
	}
	var out bytes.Buffer
	if err := write(&out, d.Root, 0); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func write(out *bytes.Buffer, e *Element, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("<%s>: elements are nested deeper than %d", probe.Excerpt(e.Name), maxDepth)
	}
	if !isName(e.Name) {
		return fmt.Errorf("%q is no element name", probe.Excerpt(e.Name))
	}
	indent := strings.Repeat("  ", depth)
	fmt.Fprintf(out, "%s<%s", indent, e.Name)
	for _, a := range e.Attrs {
		if !isName(a.Name) {
			return fmt.Errorf("<%s>: %q is no attribute name", e.Name, probe.Excerpt(a.Name))
		}
		if hasControl(a.Value) {
			return fmt.Errorf("<%s> %s %q holds a control character", e.Name, a.Name, probe.Excerpt(a.Value))
		}
		fmt.Fprintf(out, ` %s="%s"`, a.Name, escape.Replace(a.Value))
	}
	if len(e.Children) == 0 {
		out.WriteString("/>\n")
		return nil
	}
	out.WriteString(">\n")
	for _, c := range e.Children {
		if err := write(out, c, depth+1); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s</%s>\n", indent, e.Name)
	return nil
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")

// isName accepts the characters of names that need no thought; decoded names
// are XML names already.
func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune(`<>&="'/`, r)
	})
}
