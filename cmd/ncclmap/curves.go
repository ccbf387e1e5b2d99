package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/render/chart"
	"github.com/ncclmap/ncclmap/tune"
)

// useMeasured corrects a prediction by runs in files.
func (a *app) useMeasured(p *tune.Prediction, files []string) error {
	if len(files) == 0 {
		return nil
	}
	c, sources, err := open.Read(files, a.stdin)
	if err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	a.tell(sources)
	samples := c.Job.Samples
	for _, h := range c.Hosts {
		samples = append(samples, h.Samples...)
	}
	n, err := p.UseMeasured(samples)
	if err != nil {
		return err
	}
	a.talk("%d of %d measured runs are of this many GPUs and nodes, and correct the expectation", n, len(samples))
	return nil
}

// writeCurves writes the curves of the machine, and of those beside it.
func (a *app) writeCurves(f *modelFlags, p *tune.Prediction, args []string) error {
	ending := strings.ToLower(filepath.Ext(f.output))
	if ending != ".csv" && ending != ".svg" && ending != ".png" {
		return fmt.Errorf("-o %s: curves are written as .csv, .svg or .png", f.output)
	}
	name := "this machine"
	if len(args) > 0 {
		name = strings.Join(args, " ")
	}
	lines, err := p.Lines(name)
	if err != nil {
		return err
	}
	for _, source := range f.beside {
		other, err := a.readHosts([]string{source})
		if err != nil {
			return err
		}
		pred, err := f.predict(other, false)
		if err != nil {
			return fmt.Errorf("--beside %s: %w", source, err)
		}
		more, err := pred.Lines(source)
		if err != nil {
			return err
		}
		lines = append(lines, more...)
	}
	return a.writeTo(f.output, func(w io.Writer) error {
		if ending == ".csv" {
			return chart.CSV(w, lines)
		}
		return chart.Draw(w, ending[1:], p.Title(name, len(f.beside) > 0), lines)
	})
}
