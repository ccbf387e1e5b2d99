package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

func (a *app) compareCmd() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "compare [SOURCE…] --measured FILE",
		Short: "Set measured times beside predictions, and judge them",
		Long: `Set measured times beside NCCL's own estimate, size by size, and judge them:
bandwidth below what the links carry, slow pairs of hosts, drops, wrong data, and
settings that were measured to be faster. FILE is output of nccl-tests, text or
JSON, with NCCL's log in it or without. SOURCE is the machine that ran it; a
topology file stands for each host of the run.`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, c, err := a.readMeasured(args, files)
			if err != nil {
				return err
			}
			cmp, err := tune.Compare(c)
			if err != nil {
				return err
			}
			if a.format == "json" {
				return a.printJSON(cmp)
			}
			return text.Comparison(a.stdout, cmp, a.style())
		},
	}
	measuredFlag(cmd, &files)
	return cmd
}

func measuredFlag(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVar(files, "measured", nil, "test output of this machine or its cluster: a `FILE`, repeatable")
}

// readMeasured reads the sources, and joins them with what was measured. Without
// sources what was measured stands alone: it names its hosts.
func (a *app) readMeasured(args, files []string) (sources, all *probe.Cluster, err error) {
	sources = &probe.Cluster{}
	if len(files) == 0 || len(args) > 0 || a.sysfsRoot != "" {
		if sources, err = a.readHosts(args); err != nil {
			return nil, nil, err
		}
	}
	all = sources
	if len(files) > 0 {
		measured, kinds, err := open.Read(files, a.stdin)
		if err != nil {
			return nil, nil, err
		}
		a.tell(kinds)
		if all, err = probe.JoinMeasured(sources, measured); err != nil {
			return nil, nil, err
		}
	}
	if len(all.Samples) == 0 {
		return nil, nil, exitError{exitUnknown, errors.New("no measured sample in the sources; give the output of nccl-tests with --measured")}
	}
	return sources, all, nil
}
