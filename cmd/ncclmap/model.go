package main

import (
	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/render/text"
)

func (a *app) modelCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "model [SOURCE…]",
		Short: "Predict ring all-reduce on one node as NCCL's own model does, with its terms",
		Long: `Predict what NCCL's own cost model says of a ring all-reduce on one node: the
rings its search finds, the channels of the communicator, bandwidth and latency
per protocol, each with its terms. This version models Ring on one node; Tree,
NVLS and several nodes are not modelled yet, and nothing here was fitted to
measurements.`,
		RunE: func(_ *cobra.Command, args []string) error {
			an, err := a.analyse(args)
			if err != nil {
				return err
			}
			if a.format == "json" {
				return a.printJSON(an.Model())
			}
			return text.Model(a.stdout, an)
		},
	}
}
