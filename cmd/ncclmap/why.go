package main

import (
	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/render/text"
	"github.com/ncclmap/ncclmap/tune"
)

func (a *app) whyCmd() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "why [SOURCE…]",
		Short: "Rank what costs bandwidth: cause, cost, repair, gain",
		Long: `Rank everything that the rules find by what it costs, the largest loss first, each
with its cause, its repair and the gain to expect. A cost is what NCCL's own model
expects of a large AllReduce with and without the fault, and what the link that has it
can carry of that; where neither tells, the loss says why. What could not be judged
stands below.`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, m, err := a.readRuns(args, files)
			if err != nil {
				return err
			}
			if err := anyGPU(m.All); err != nil {
				return err
			}
			why, err := tune.WhySlow(m)
			if err != nil {
				return err
			}
			if a.format == "json" {
				err = a.printJSON(why)
			} else {
				err = text.Why(a.stdout, why, a.style())
			}
			return a.verdict(err, why.Result, 0, false)
		},
	}
	measuredFlag(cmd, &files)
	return cmd
}
