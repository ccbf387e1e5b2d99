package graphviz

import "bytes"

// Graphviz sizes boxes for Helvetica, but where that is not installed its font
// list lets fontconfig go on to the default sans-serif, which is wider, and
// text runs out of its box. The fonts put in between are as wide as Helvetica.
// (A list as fontname would make Graphviz measure with Times.)
const (
	graphvizFonts = `font-family="Helvetica,sans-Serif"`
	sameWidth     = `font-family="Helvetica,Arial,Liberation Sans,Nimbus Sans,sans-serif"`
)

// Clean returns an SVG drawing as one element that can stand inside HTML or in
// a file of its own: the XML declaration, the document type and all comments
// are gone. With them goes what differs between Graphviz builds that draw
// alike, the version and its date. Helvetica gets stand-ins of its width.
func Clean(svg []byte) []byte {
	svg = bytes.ReplaceAll(svg, []byte("\r\n"), []byte("\n"))
	// In XML text "<!--" can only begin a comment. A comment that is not
	// closed hides the rest of the document.
	var out []byte
	for {
		before, rest, found := bytes.Cut(svg, []byte("<!--"))
		out = append(out, before...)
		if !found {
			break
		}
		_, svg, _ = bytes.Cut(rest, []byte("-->"))
		svg = bytes.TrimPrefix(svg, []byte("\n"))
	}
	out = bytes.ReplaceAll(out, []byte(graphvizFonts), []byte(sameWidth))
	// Only declarations can precede the root element.
	if i := bytes.Index(out, []byte("<svg")); i >= 0 {
		out = out[i:]
	}
	return append(bytes.TrimSpace(out), '\n')
}
