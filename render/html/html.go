package html

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

//go:embed page.html.tmpl
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"join":    strings.Join,
	"ignored": text.IgnoredText,
}).Parse(pageSource))

type view struct {
	*tune.Analysis
	Version    string
	Title      string
	Host       string
	Machine    []string
	Counts     string
	Worst      string
	NotChecked string
	Scope      string
	Prediction string
	Model      string
	Matrix     matrix
	SVG        template.HTML
	Env        string
	Tree       string
	Classes    []graph.PathClass
}

type matrix struct {
	Head []string
	Rows [][]cell
}

type cell struct{ Code, Class string }

// Write writes the page. svg is inlined and must come from the layout engine.
func Write(w io.Writer, an *tune.Analysis, svg []byte, version string) error {
	v := view{
		Analysis: an, Version: version, Host: text.HostLine(an.Topo), Machine: text.Machine(an.Topo),
		Counts: text.Counts(an.Check), Worst: "fine", NotChecked: text.NotChecked(an.Check), Scope: text.Scope(an.Check),
		Prediction: text.Prediction(an), Matrix: matrixOf(an.Topo), SVG: template.HTML(svg),
	}
	v.Title = "ncclmap report"
	if an.Inv.Host.Name != "" {
		v.Title += ": " + an.Inv.Host.Name
	}
	if worst, any := an.Check.Worst(); any {
		v.Worst = worst.String()
	} else if len(an.Check.Gaps)+len(an.Check.Ignored)+len(an.Check.Rules) > 0 {
		v.Worst = "" // nothing found, but not everything was looked at or told
	}
	var model, env, tree bytes.Buffer
	for _, err := range []error{
		text.Model(&model, an.Pred, false),
		ncclenv.Write(&env, ncclenv.Shell, an.Plan.Head(), an.Plan.Settings()),
		text.Tree(&tree, an.Topo, nil),
	} {
		if err != nil {
			return err
		}
	}
	v.Model, v.Env, v.Tree = model.String(), env.String(), tree.String()
	used := map[graph.PathClass]bool{}
	devices := append(an.Topo.Of(graph.KindGPU), an.Topo.Of(graph.KindHCA)...)
	for i, a := range devices {
		for _, b := range devices[i+1:] {
			used[an.Topo.Class(a, b)] = true
		}
	}
	for _, c := range append(graph.PathClasses(), graph.Unknown) {
		if used[c] {
			v.Classes = append(v.Classes, c)
		}
	}
	var out bytes.Buffer
	if err := page.Execute(&out, v); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

func matrixOf(t *graph.Topology) matrix {
	devices := append(t.Of(graph.KindGPU), t.Of(graph.KindHCA)...)
	var m matrix
	for _, a := range devices {
		m.Head = append(m.Head, a.Label)
		row := []cell{{Code: a.Label}}
		for _, b := range devices {
			row = append(row, cell{t.SMICode(a, b), strings.ToLower(strings.Trim(t.Class(a, b).String(), "?"))})
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}
