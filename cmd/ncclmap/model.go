package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
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
}

func (f *modelFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&f.nodes, "nodes", 1, "hosts with this topology")
	c.Flags().IntSliceVar(&f.gpus, "gpus", nil, "NCCL dev numbers of the GPUs that a job sees (default all)")
	c.Flags().BoolVar(&f.noP2P, "no-p2p", false, "the driver refuses peer access between GPUs")
	c.Flags().StringVar(&f.version, "nccl", graph.NewestNCCL.String(), "NCCL `VERSION` whose model to use")
	c.Flags().BoolVar(&f.bound, "bound", false, "also tell what the links themselves allow")
	c.Flags().StringArrayVar(&f.without, "without", nil, "what if this `SUBJECT` were gone: a key or label (GPU3, hca:mlx5_0), or a link A--B; may repeat")
	c.Flags().StringArrayVar(&f.setLinks, "set-link", nil, "what if the links between A and B had this rate in all: `A--B=RATE`, in GB/s; may repeat")
}

func (f *modelFlags) options() (o tune.ModelOptions, err error) {
	if f.nodes < 1 || f.nodes > maxNodes {
		return o, fmt.Errorf("--nodes %d: must be 1 to %d", f.nodes, maxNodes)
	}
	o.Search.Hosts = f.nodes
	o.NCCL = graph.NCCLOptions{GPUs: f.gpus, NoP2P: f.noP2P}
	if o.NCCL.Version, err = graph.ParseNCCLVersion(f.version); err != nil {
		return o, fmt.Errorf("--nccl: %w", err)
	}
	o.WhatIf.Without, o.Bound = f.without, f.bound
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

// maxNodes bounds --nodes: more hosts than any NCCL job has had.
const maxNodes = 1 << 17

func (a *app) modelCmd() *cobra.Command {
	f := &modelFlags{}
	c := &cobra.Command{
		Use:   "model [SOURCE…]",
		Short: "Predict the rings and trees that NCCL builds, and its own times for ring all-reduce on one node",
		Long: `Predict what NCCL builds on this topology, on one host or on several like it: the
graphs that its search finds, the channels of the communicator and its rings. On
one node it also tells what NCCL's own cost model says of a ring all-reduce,
bandwidth and latency per protocol, each with its terms. Times of Tree, NVLS and
several nodes are not modelled yet, and nothing here was fitted to measurements.

With --without and --set-link it predicts for what might be instead of what is.`,
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			an, err := a.analyse(args)
			if err != nil {
				return err
			}
			if an.Ring, err = tune.Predict(an.Inv, o); err != nil {
				return err
			}
			if a.format == "json" {
				return a.printJSON(an.Model())
			}
			return text.Model(a.stdout, an)
		},
	}
	f.add(c)
	return c
}
