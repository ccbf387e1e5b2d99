package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/probe/nccllog"
	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/text"
)

func (a *app) logCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "log FILE…",
		Short: "Read NCCL_DEBUG logs",
		Long: `Read NCCL_DEBUG logs of any length (- is standard input): versions, network,
settings, and for each communicator its ranks, graphs and transports, then
NCCL's own warnings. This version reads and prints; it does not judge a log yet.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var logs []*nccllog.Log
			for _, name := range args {
				l, err := a.readLog(name)
				if err != nil {
					return err
				}
				logs = append(logs, l)
			}
			if a.format == "json" {
				return a.printJSON(render.NewLogDoc(logs))
			}
			for _, l := range logs {
				if err := text.Log(a.stdout, l, a.style()); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) readLog(name string) (*nccllog.Log, error) {
	var in io.Reader = a.stdin
	base := "standard input"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in, base = f, filepath.Base(name)
	}
	l, err := nccllog.Read(base, in)
	if err != nil {
		return nil, err
	}
	if l.Records == 0 {
		return nil, fmt.Errorf("%s: holds no NCCL log line; run the job with NCCL_DEBUG=INFO", name)
	}
	return l, nil
}
