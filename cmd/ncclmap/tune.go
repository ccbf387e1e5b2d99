package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/tune"
)

func (a *app) tuneCmd() *cobra.Command {
	var file, dialect, level string
	var lint bool
	var filter filterFlags
	var measured []string
	cmd := &cobra.Command{
		Use:   "tune [--lint] [SOURCE…] [--measured FILE] [-o FILE]",
		Short: "Write the NCCL settings that the evidence supports",
		Long: `Write the NCCL settings that the evidence supports, each with its reason, and
list those that were considered and left at NCCL's default. A variable is set
only if something seen here says that the default is wrong, or a run with it was
measured to be faster (--measured).

Dialects: sh (export NAME=value, to be sourced) and env (NAME=value, for docker
--env-file and systemd's EnvironmentFile).

` + lintHelp + "\n\n" + filterHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if lint {
				return a.lint(args, level, filter)
			}
			for _, name := range []string{"fail-on", "rules", "ignore", "ignore-file"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s goes with --lint", name)
				}
			}
			d, err := ncclenv.ParseDialect(dialect)
			if err != nil {
				return err
			}
			plan, err := a.plan(args, measured)
			if err != nil {
				return err
			}
			write := func(w io.Writer) error { return writeEnv(w, plan, d) }
			if a.format == "json" {
				write = func(w io.Writer) error { return writeJSON(w, plan) }
			}
			return a.writeTo(file, write)
		},
	}
	measuredFlag(cmd, &measured)
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`; without it to stdout")
	cmd.Flags().StringVar(&dialect, "dialect", string(ncclenv.Shell), "how settings are spelt: sh or env")
	cmd.Flags().BoolVar(&lint, "lint", false, "judge the settings in the sources, write none")
	failOnFlag(cmd, &level)
	filter.register(cmd)
	cmd.MarkFlagsMutuallyExclusive("lint", "output")
	cmd.MarkFlagsMutuallyExclusive("lint", "measured")
	cmd.MarkFlagsMutuallyExclusive("lint", "dialect")
	return cmd
}

// recheckMonths is how long a measured gain counts without being measured again.
const recheckMonths = 6

// plan decides on the settings of the hosts together, with what was measured on
// one of them.
func (a *app) plan(args, measured []string) (tune.Plan, error) {
	if len(measured) > 0 {
		an, err := a.analyseMeasured(args, measured)
		if err != nil {
			return tune.Plan{}, err
		}
		return an.Plan, nil
	}
	c, err := a.readHosts(args)
	if err != nil {
		return tune.Plan{}, err
	}
	if err := anyGPU(c); err != nil {
		return tune.Plan{}, err
	}
	return tune.AdviseCluster(c)
}

// analyseMeasured is analyse, with what was measured on the machine or its cluster.
func (a *app) analyseMeasured(args, files []string) (*tune.Analysis, error) {
	sources, m, err := a.readMeasured(args, files)
	if err != nil {
		return nil, err
	}
	if len(sources.Hosts) == 0 {
		sources = m.All
	}
	inv, ok := sources.Single()
	if !ok {
		return nil, fmt.Errorf("the sources are of %s; choose one with --host", hostList(sources))
	}
	if len(m.Jobs) == 1 { // the settings of several runs are not one job's
		inv.Job = m.All.Job
	}
	return tune.AnalyseMeasured(inv, m, time.Now().AddDate(0, recheckMonths, 0).Format(time.DateOnly))
}

// writeEnv writes a plan as an env file: what is set, and what was declined.
func writeEnv(w io.Writer, p tune.Plan, d ncclenv.Dialect) error {
	return ncclenv.Write(w, d, append(p.Head(), p.Considered()...), p.Settings())
}
