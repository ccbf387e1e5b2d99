package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

func (a *app) reportCmd() *cobra.Command {
	var dir, level string
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "report [SOURCE…] -d DIR",
		Short: "Everything at once: inventory, findings, prediction, diagram, settings, one page",
		Long: `Everything at once, into DIR: inventory.json findings.json model.json
topology.dot topology.svg nccl.env and report.html, one self-contained page.
Either all files are written or none.

` + filterHelp + ` Prediction and
settings rest on all findings all the same.`,
		RunE: func(_ *cobra.Command, args []string) error {
			limit, fails, err := failOn(level)
			if err != nil {
				return err
			}
			f, err := filter.read()
			if err != nil {
				return err
			}
			an, err := a.analyse(args)
			if err != nil {
				return err
			}
			if f.Some {
				an.Check = check.Run(an.Topo, f.Rules)
			}
			an.Check = a.filtered(f, an.Check)
			r, done, err := a.report(an, true)
			if err != nil {
				return err
			}
			defer done()
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("write the report: %w", err)
			}
			outputs := reportFiles(dir, r)
			if err := writeAll(outputs); err != nil {
				return err
			}
			for _, o := range outputs {
				a.talk("wrote %s", o.path)
			}
			err = text.Summary(a.stdout, an, a.style())
			return a.verdict(err, an.Check, limit, fails)
		},
	}
	cmd.Flags().StringVarP(&dir, "dir", "d", "", "`DIR` to write into; made if missing (required)")
	_ = cmd.MarkFlagRequired("dir")
	failOnFlag(cmd, &level)
	filter.register(cmd)
	return cmd
}

// report lays the topology out if the result needs a drawing. done releases
// the layout engine's cache.
func (a *app) report(an *tune.Analysis, drawing bool) (r *render.Report, done func(), err error) {
	done = func() {}
	var layout func([]byte) ([]byte, error)
	if drawing {
		if layout, done, err = layouter(); err != nil {
			return nil, nil, err
		}
	}
	r, err = render.NewReport(an, version, layout)
	if err != nil {
		done()
	}
	return r, done, err
}

func reportFiles(dir string, r *render.Report) []output {
	in := func(name string) string { return filepath.Join(dir, name) }
	return []output{
		{in("inventory.json"), r.Inv.Encode},
		{in("findings.json"), func(w io.Writer) error { return writeJSON(w, checkDoc{"ncclmap.check/v1", r.Check}) }},
		{in("model.json"), func(w io.Writer) error { return writeJSON(w, r.Pred.Doc()) }},
		{in("topology.dot"), r.WriteDOT},
		{in("topology.svg"), r.WriteSVG},
		{in("nccl.env"), func(w io.Writer) error { return writeEnv(w, r.Plan, ncclenv.Shell) }},
		{in("report.html"), r.WriteHTML},
	}
}
