package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/graphviz"
)

func (a *app) renderCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "render [SOURCE…] -o FILE",
		Short: "Draw the topology, degraded links highlighted",
		Long: `Draw the topology, degraded links highlighted with the reason. FILE's ending
chooses the format:
` + render.FormatsHelp(),
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := render.FormatOf(file)
			if err != nil {
				return err
			}
			an, err := a.analyse(args)
			if err != nil {
				return err
			}
			r, done, err := a.report(an, format.NeedsLayout)
			if err != nil {
				return err
			}
			defer done()
			return a.writeTo(file, func(w io.Writer) error { return format.Write(w, r) })
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "`FILE` to write (required)")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

// layoutTime bounds one run of the layout engine; an 8-GPU drawing takes a
// tenth of a second, the first run ever about one.
const layoutTime = 60 * time.Second

// layouter returns what turns DOT into SVG: the engine beside this program.
func layouter() (func(dot []byte) ([]byte, error), func(), error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find the layout engine: %w", err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return nil, nil, fmt.Errorf("find the layout engine: %w", err)
	}
	engine, err := graphviz.Find(exe)
	if err != nil {
		return nil, nil, err
	}
	cache, _ := os.UserCacheDir() // without one a temporary folder serves
	dir, done, err := graphviz.PrivateCache(cache)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (set TMPDIR to a folder that can be written)", err)
	}
	engine.CacheDir = dir
	return func(dot []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), layoutTime)
		defer cancel()
		svg, err := engine.Render(ctx, dot, "svg")
		return graphviz.Clean(svg), err
	}, done, nil
}
