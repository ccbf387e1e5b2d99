package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/expect"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

// modelFlags are the flags that say what to predict for.
type modelFlags struct {
	nodes    int
	gpus     []int
	noP2P    bool
	version  string
	without  []string
	setLinks []string
	bound    bool
	explain  bool

	env         string
	launch      string
	collectives []string
	sizes       string
	score       bool
	output      string
	beside      []string
	measured    []string
}

func (f *modelFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.nodes, "nodes", 1, "hosts with this topology; of one NVLink domain as far as it reaches")
	c.Flags().IntSliceVar(&f.gpus, "gpus", nil, "NCCL dev numbers of the GPUs that a job sees (default all)")
	c.Flags().BoolVar(&f.noP2P, "no-p2p", false, "the driver refuses peer access between GPUs")
	c.Flags().StringVar(&f.version, "nccl", "", "NCCL `VERSION` whose model to use, "+graph.OldestNCCL.String()+" to "+graph.NewestNCCL.String()+" (default from the sources, else "+graph.NewestNCCL.String()+")")
	c.Flags().StringVar(&f.env, "env", "", "settings in effect: a `FILE` of NAME=value lines, a shell script, nccl.conf, a launch line or YAML")
	c.Flags().StringVar(&f.launch, "launch", tune.LaunchPerGPU, "how ranks are started: per-gpu, one process each, or single, one process for all")
	c.Flags().StringSliceVar(&f.collectives, "collective", model.Modelled(), "`LIST` of collectives, also SendRecv and AllToAll")
	c.Flags().StringVar(&f.sizes, "sizes", tune.DefaultSizes, "sizes as `FIRST:LAST:FACTOR`, bytes; K, M and G are powers of 1024")
	c.Flags().BoolVar(&f.bound, "bound", false, "also tell what the links themselves allow")
	c.Flags().BoolVar(&f.explain, "explain", false, "also the terms of NCCL's figures and of the expectation, and the links that limit them")
	c.Flags().BoolVar(&f.score, "score", false, "print how well the expectation does on runs that a fit had not seen, and stop")
	c.Flags().StringVarP(&f.output, "output", "o", "", "also write the curves, bus bandwidth against size, to `FILE`: .csv, .svg or .png")
	c.Flags().StringArrayVar(&f.beside, "beside", nil, "in the curves also those of another `SOURCE`; may repeat")
	c.Flags().StringArrayVar(&f.measured, "measured", nil, "`FILE` with runs of this machine (nccl-tests, samples), which then correct the expectation; may repeat")
	c.Flags().StringArrayVar(&f.without, "without", nil, "what if this `SUBJECT` were gone: a key or label (GPU3, hca:mlx5_0), or a link A--B; may repeat")
	c.Flags().StringArrayVar(&f.setLinks, "set-link", nil, "what if the links between A and B had this rate in all: `A--B=RATE`, in GB/s; may repeat")
}

// options reads the flags over what the sources say of NCCL's version and settings.
func (f *modelFlags) options(o tune.ModelOptions) (tune.ModelOptions, error) {
	if f.nodes < 1 || f.nodes > maxNodes {
		return o, fmt.Errorf("--nodes %d: must be 1 to %d", f.nodes, maxNodes)
	}
	o.Search.Hosts = f.nodes
	o.NCCL.GPUs, o.NCCL.NoP2P = f.gpus, f.noP2P
	o.Bound, o.Explain, o.Launch = f.bound, f.explain, f.launch
	var err error
	if f.version != "" {
		if o.NCCL.Version, err = graph.ParseNCCLVersion(f.version); err != nil {
			return o, fmt.Errorf("--nccl: %w", err)
		}
		if err = o.NCCL.Version.Modelled(); err != nil {
			return o, fmt.Errorf("--nccl: %w", err)
		}
	}
	if f.launch != tune.LaunchPerGPU && f.launch != tune.LaunchSingle {
		return o, fmt.Errorf("--launch %q: want %s or %s", f.launch, tune.LaunchPerGPU, tune.LaunchSingle)
	}
	if o.Sizes, err = tune.ParseSizes(f.sizes); err != nil {
		return o, fmt.Errorf("--sizes: %w", err)
	}
	for _, name := range f.collectives {
		i := slices.IndexFunc(model.Collectives(), func(c string) bool { return strings.EqualFold(c, name) })
		if i < 0 {
			return o, fmt.Errorf("--collective %q: want some of %s", name, strings.Join(model.Collectives(), ", "))
		}
		o.Collectives = append(o.Collectives, model.Collectives()[i])
	}
	o.WhatIf.Without = f.without
	for _, s := range f.setLinks {
		i := strings.LastIndexByte(s, '=')
		if i < 0 {
			return o, fmt.Errorf("--set-link %s: not A--B=RATE", s)
		}
		gbs, err := strconv.ParseFloat(s[i+1:], 64)
		if err != nil || !(gbs >= 0 && gbs < 1e6) {
			return o, fmt.Errorf("--set-link %s: %q is not a rate in GB/s", s, s[i+1:])
		}
		o.WhatIf.Rates = append(o.WhatIf.Rates, graph.LinkRate{Link: s[:i], Rate: probe.Rate(math.Round(gbs * 1e9))})
	}
	return o, nil
}

// settings are those in effect: of --env, else of this machine's environment or of
// the job that the sources show.
func (f *modelFlags) settings(o tune.ModelOptions, live bool) (tune.ModelOptions, error) {
	if f.env == "" {
		if live {
			for _, s := range os.Environ() {
				if name, value, _ := strings.Cut(s, "="); strings.HasPrefix(name, "NCCL_") {
					o.SetFrom(name, value, "environment")
				}
			}
		}
		return o, nil
	}
	r, err := os.Open(f.env)
	if err != nil {
		return o, fmt.Errorf("--env: %w", err)
	}
	defer r.Close()
	file, err := ncclenv.Parse(filepath.Base(f.env), r)
	if err != nil {
		return o, fmt.Errorf("--env: %w", err)
	}
	if !slices.ContainsFunc(file.Effective(), func(a ncclenv.Assignment) bool { return strings.HasPrefix(a.Name, "NCCL_") }) {
		return o, fmt.Errorf("--env %s: no NCCL setting in it", f.env)
	}
	o = tune.ModelOptions{NCCL: graph.NCCLOptions{Version: o.NCCL.Version}}
	o.SetFile(file)
	return o, nil
}

// predict predicts for the only host, with what jobs show of it, or for all.
func (f *modelFlags) predict(c *probe.Cluster, live bool) (tune.Prediction, error) {
	hosts := c.Hosts
	if inv, ok := c.Single(); ok {
		hosts = []*probe.Inventory{inv}
	}
	o, err := f.settings(tune.OptionsOfHosts(hosts, &c.Job), live)
	if err != nil {
		return tune.Prediction{}, err
	}
	if o, err = f.options(o); err != nil {
		return tune.Prediction{}, err
	}
	return tune.PredictHosts(hosts, o)
}

// maxNodes bounds --nodes: more hosts than any NCCL job has had.
const maxNodes = 1 << 17

func (a *app) modelCmd() *cobra.Command {
	f := &modelFlags{}
	c := &cobra.Command{
		Use:   "model [SOURCE…]",
		Short: "Predict the rings and trees that NCCL builds, what it believes of each collective and size, and what to expect",
		Long: `Predict what NCCL builds on this topology, on one host or on several like it: the
graphs that its search finds, the channels of the communicator and its rings; and
by NCCL's own cost model, for each collective and size, the algorithm, protocol,
channels and threads that it chooses and the time that it believes in. Beside that
stands what a run can be expected to take, with a 90 % interval, by a form that was
fitted to measured runs; where nothing like it was measured only bounds.

Several hosts are taken as one job on all their GPUs, unequal as they may be; hosts
of one NVLink domain are one node, and so are those of --nodes where the host is in
a domain, up to 72 GPUs. With --host it is about one of them.

Settings count as a job has them that a log among the sources shows, as the
environment has them where this machine is looked at, or as --env FILE gives them.
Where logs of several runs contradict each other none counts. A setting that would
change what NCCL builds and that the model does not know is told as not modelled.
With --without and --set-link it predicts for what might be instead of what is;
--verbose names the links, and prints the rings of all channels.

It ends with 3 where there is no prediction.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := f.options(tune.ModelOptions{}); err != nil {
				return err
			}
			if f.score {
				return a.printScore()
			}
			c, err := a.readHosts(args)
			if err != nil {
				return err
			}
			if err := anyGPU(c); err != nil {
				return err
			}
			p, err := f.predict(c, len(args) == 0 && a.sysfsRoot == "")
			if err != nil {
				return err
			}
			if err := a.useMeasured(&p, f.measured); err != nil {
				return err
			}
			if f.output != "" {
				return a.writeCurves(f, &p, args)
			}
			if a.format == "json" {
				err = a.printJSON(p.Doc())
			} else {
				err = text.Model(a.stdout, p, a.verbose)
			}
			if err == nil && p.Unknown != nil {
				err = exitError{exitUnknown, errors.New("")}
			}
			return err
		},
	}
	f.add(c)
	return c
}

// printScore prints the score sheet of the expectation.
func (a *app) printScore() error {
	points, err := expect.Points()
	if err != nil {
		return err
	}
	score, err := expect.ScoreOf(points)
	if err != nil {
		return err
	}
	if a.format == "json" {
		return a.printJSON(score)
	}
	_, err = fmt.Fprint(a.stdout, score)
	return err
}
