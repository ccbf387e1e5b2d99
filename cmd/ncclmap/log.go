package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/text"
)

func (a *app) logCmd() *cobra.Command {
	var level string
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "log SOURCE…",
		Short: "Read and judge NCCL_DEBUG logs",
		Long: `Read NCCL_DEBUG logs of any length (- is standard input): versions, network,
settings, and for each communicator its ranks, who talks to whom through what, rings
and trees, what the lines do not prove, and NCCL's own warnings; then what is wrong.
Sources beside the logs (recorded /sys, topology files, kernel logs) are joined host by
host, so that the findings can rest on both.

` + filterHelp,
		RunE: func(_ *cobra.Command, args []string) error {
			limit, fails, err := failOn(level)
			if err != nil {
				return err
			}
			f, err := filter.read()
			if err != nil {
				return err
			}
			if len(args) == 0 && a.sysfsRoot == "" {
				return errors.New("name a log; - reads standard input")
			}
			c, err := a.readHosts(args)
			if err != nil {
				return err
			}
			if !anyRecord(&c.Job) {
				return fmt.Errorf("%s: no line of an NCCL log; run the job with NCCL_DEBUG=INFO", strings.Join(args, ", "))
			}
			res, err := check.RunCluster(c, f.Rules)
			if err != nil {
				return err
			}
			res = a.filtered(f, res)
			if a.format == "json" {
				err = a.printJSON(render.NewLogDoc(&c.Job, res))
			} else {
				err = text.Log(a.stdout, &c.Job, res, a.style())
			}
			return a.verdict(err, res, limit, fails)
		},
	}
	failOnFlag(cmd, &level)
	filter.register(cmd)
	return cmd
}

func anyRecord(j *probe.Job) bool {
	for _, l := range j.Logs {
		if l.Records > 0 {
			return true
		}
	}
	return false
}
