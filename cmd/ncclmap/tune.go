package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/tune"
)

func (a *app) tuneCmd() *cobra.Command {
	var file, dialect, level string
	var lint bool
	cmd := &cobra.Command{
		Use:   "tune [--lint] [SOURCE…] [-o FILE]",
		Short: "Write the NCCL settings that the evidence supports",
		Long: `Write the NCCL settings that the evidence supports, each with its reason, and
list those that were considered and left at NCCL's default. A variable is set
only if something seen here says that the default is wrong.

Dialects: sh (export NAME=value, to be sourced) and env (NAME=value, for docker
--env-file and systemd's EnvironmentFile).

` + lintHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case lint:
				return a.lint(args, level)
			case cmd.Flags().Changed("fail-on"):
				return errors.New("--fail-on goes with --lint")
			}
			d, err := ncclenv.ParseDialect(dialect)
			if err != nil {
				return err
			}
			c, err := a.readHosts(args)
			if err != nil {
				return err
			}
			if err := anyGPU(c); err != nil {
				return err
			}
			plan, err := tune.AdviseCluster(c)
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
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`; without it to stdout")
	cmd.Flags().StringVar(&dialect, "dialect", string(ncclenv.Shell), "how settings are spelt: sh or env")
	cmd.Flags().BoolVar(&lint, "lint", false, "judge the settings in the sources, write none")
	failOnFlag(cmd, &level)
	cmd.MarkFlagsMutuallyExclusive("lint", "output")
	cmd.MarkFlagsMutuallyExclusive("lint", "dialect")
	return cmd
}

// writeEnv writes a plan as an env file: what is set, and what was declined.
func writeEnv(w io.Writer, p tune.Plan, d ncclenv.Dialect) error {
	return ncclenv.Write(w, d, append(p.Head(), p.Considered()...), p.Settings())
}
