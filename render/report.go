package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/render/html"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

// Report is an analysed machine with its drawing.
type Report struct {
	*tune.Analysis
	version string
	dot     []byte
	svg     []byte
}

// NewReport draws the analysis. layout turns DOT into SVG; nil leaves the SVG
// out, for formats that need none.
func NewReport(an *tune.Analysis, version string, layout func(dot []byte) ([]byte, error)) (*Report, error) {
	var dot bytes.Buffer
	if err := WriteDOT(&dot, an.Topo, an.Check.Findings); err != nil {
		return nil, fmt.Errorf("draw the topology: %w", err)
	}
	r := &Report{Analysis: an, version: version, dot: dot.Bytes()}
	if layout == nil {
		return r, nil
	}
	svg, err := layout(r.dot)
	if err != nil {
		return nil, fmt.Errorf("lay out the topology: %w", err)
	}
	r.svg = svg
	return r, nil
}

// WriteDOT writes the Graphviz document.
func (r *Report) WriteDOT(w io.Writer) error {
	_, err := w.Write(r.dot)
	return err
}

// WriteSVG writes the drawing.
func (r *Report) WriteSVG(w io.Writer) error {
	_, err := w.Write(r.svg)
	return err
}

// WriteHTML writes one page that needs nothing beside it.
func (r *Report) WriteHTML(w io.Writer) error { return html.Write(w, r.Analysis, r.svg, r.version) }

// WriteText writes tree, matrix and findings.
func (r *Report) WriteText(w io.Writer) error {
	if err := text.Inventory(w, r.Topo, treeMarks(r.Topo, r.Check.Findings)); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return text.Findings(w, r.Check, text.Style{})
}

// WriteJSON writes the topology as nodes and links.
func (r *Report) WriteJSON(w io.Writer) error {
	raw, err := json.Marshal(topologyDoc(r.Topo))
	if err != nil {
		return err
	}
	_, err = w.Write(probe.FormatJSON(raw))
	return err
}

// Format is one kind of file that a topology can be drawn as.
type Format struct {
	Ext         string
	Doc         string
	NeedsLayout bool
	write       func(*Report, io.Writer) error
}

// Write writes the report in this format.
func (f Format) Write(w io.Writer, r *Report) error { return f.write(r, w) }

// Formats lists the formats by file ending.
var Formats = []Format{
	{".svg", "drawing, for reviews and pages", true, (*Report).WriteSVG},
	{".dot", "Graphviz source", false, (*Report).WriteDOT},
	{".html", "one self-contained page with drawing, findings, prediction and settings", true, (*Report).WriteHTML},
	{".json", "nodes and links", false, (*Report).WriteJSON},
	{".txt", "tree, matrix and findings", false, (*Report).WriteText},
}

// FormatOf finds the format of a file by its ending.
func FormatOf(file string) (Format, error) {
	ext := strings.ToLower(filepath.Ext(file))
	var known []string
	for _, f := range Formats {
		if f.Ext == ext {
			return f, nil
		}
		known = append(known, f.Ext)
	}
	return Format{}, fmt.Errorf("render %s: ending %q is none of %s", file, ext, strings.Join(known, " "))
}

// FormatsHelp is the list of formats for a help text.
func FormatsHelp() string {
	var b strings.Builder
	for _, f := range Formats {
		fmt.Fprintf(&b, "  %-6s %s\n", f.Ext, f.Doc)
	}
	return strings.TrimRight(b.String(), "\n")
}
