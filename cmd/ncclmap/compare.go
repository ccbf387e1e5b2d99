package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

func (a *app) compareCmd() *cobra.Command {
	var files []string
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "compare [SOURCE…] --measured FILE",
		Short: "Set measured times beside predictions, and judge them",
		Long: `Set measured times beside NCCL's own estimate, size by size, and judge them:
bandwidth below what the links carry, slow pairs of hosts, drops, wrong data, and
settings that were measured to be faster. FILE is output of nccl-tests, text or
JSON, with NCCL's log in it or without. SOURCE is the machine that ran it; a
topology file stands for each host of the run.

` + filterHelp,
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := filter.read()
			if err != nil {
				return err
			}
			_, m, err := a.readMeasured(args, files)
			if err != nil {
				return err
			}
			cmp, err := tune.Compare(m)
			if err != nil {
				return err
			}
			if f.Some {
				if cmp.Result, err = check.RunMeasured(m, f.Rules); err != nil {
					return err
				}
			}
			cmp.Result = a.filtered(f, cmp.Result)
			if a.format == "json" {
				return a.printJSON(cmp)
			}
			return text.Comparison(a.stdout, cmp, a.style())
		},
	}
	measuredFlag(cmd, &files)
	filter.register(cmd)
	return cmd
}

func measuredFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVar(files, "measured", nil, "test output of this machine or its cluster: a `FILE`, repeatable")
}

// readMeasured is readRuns where something must have been measured.
func (a *app) readMeasured(args, files []string) (sources *probe.Cluster, m probe.Measured, err error) {
	sources, m, err = a.readRuns(args, files)
	if err == nil && len(m.All.Samples)+len(m.All.Summaries) == 0 {
		err = exitError{exitUnknown, errors.New("no measured sample in the sources; give the output of nccl-tests with --measured")}
	}
	return sources, m, err
}

// readRuns reads the sources and joins them with what was measured, each file a
// run. Without sources what was measured stands alone: it names its hosts.
func (a *app) readRuns(args, files []string) (sources *probe.Cluster, m probe.Measured, err error) {
	sources = &probe.Cluster{}
	if len(files) == 0 || len(args) > 0 || a.sysfsRoot != "" {
		if sources, err = a.readHosts(args); err != nil {
			return nil, m, err
		}
	}
	var runs []*probe.Cluster
	for _, file := range files {
		run, kinds, err := open.Read([]string{file}, a.stdin)
		if err != nil {
			return nil, m, err
		}
		a.tell(kinds)
		runs = append(runs, run)
	}
	m, err = probe.JoinMeasured(sources, runs...)
	return sources, m, err
}
