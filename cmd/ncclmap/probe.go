package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/render/text"
)

func (a *app) probeCmd() *cobra.Command {
	var file string
	var examples bool
	cmd := &cobra.Command{
		Use:   "probe [SOURCE…]",
		Short: "Look at this machine, or at what is named, and write the inventory",
		Long: `Look at this machine, or at what is named, and write the inventory: every fact
with its origin, what could not be read, and where sources disagree; of several
hosts a cluster of inventories. Both are sources for every other command.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if examples {
				return a.listExamples()
			}
			if filepath.Ext(file) == ".xml" {
				return fmt.Errorf("probe -o %s: an inventory is JSON; ncclmap convert writes NCCL topology XML", file)
			}
			a.tellSources = true
			c, err := a.readHosts(args)
			if err != nil {
				return err
			}
			encode, print := c.Encode, func() error { return text.Cluster(a.stdout, c) }
			if inv, ok := c.Single(); ok {
				encode, print = inv.Encode, func() error { return a.printHost(inv) }
			}
			if file != "" {
				return a.writeTo(file, encode)
			}
			if a.format == "json" {
				return encode(a.stdout)
			}
			return print()
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write the inventory (JSON) to `FILE`; - is stdout")
	cmd.Flags().BoolVar(&examples, "examples", false, "list the machines that ship in the program")
	return cmd
}

func (a *app) printHost(inv *probe.Inventory) error {
	topo, err := graph.Build(inv)
	if err != nil {
		return err
	}
	return text.Inventory(a.stdout, topo, nil)
}

func (a *app) listExamples() error {
	type example struct {
		Source string `json:"source"`
		About  string `json:"about"`
	}
	var list []example
	for _, name := range fixtures.Names() {
		m, err := fixtures.Load(name)
		if err != nil {
			return err
		}
		list = append(list, example{open.ExamplePrefix + name, m.About})
	}
	if a.format == "json" {
		return a.printJSON(map[string]any{"schema": "ncclmap.examples/v1", "examples": list})
	}
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{e.Source, e.About})
	}
	return text.Table(a.stdout, rows)
}

func (a *app) convertCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "convert SOURCE… -o FILE",
		Short: "Convert between inventory JSON and NCCL topology XML",
		Long: `Convert between inventory JSON (.json) and NCCL topology XML (.xml), by FILE's
ending. The XML is what NCCL itself would see; what is unknown stays out of it.
Links are written with what both ends can do: a GPU that trained low looks healthy
in the file, while NCCL 2.30.7 and ncclmap model go by its current link.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			write, err := converterFor(file)
			if err != nil {
				return err
			}
			inv, err := a.read(args)
			if err != nil {
				return err
			}
			return a.writeTo(file, func(w io.Writer) error { return write(w, inv) })
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "`FILE` to write: .json or .xml (required)")
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

func (a *app) explainCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [NAME]",
		Short: "Explain a rule, a path class or an NCCL variable; without NAME, list them",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			topics := text.Topics()
			if len(args) > 0 {
				t, ok := text.Topic(topics, args[0])
				if !ok {
					return unknownTopic(args[0])
				}
				topics = []text.Explanation{t}
			}
			switch {
			case a.format == "json":
				return a.printJSON(explainDoc{"ncclmap.explain/v1", topics})
			case len(args) > 0:
				return text.Explain(a.stdout, topics[0])
			}
			return text.Names(a.stdout, topics, a.verbose)
		},
	}
}

func unknownTopic(name string) error {
	if near, ok := text.Nearest(name); ok {
		return fmt.Errorf("explain %q: no NCCL reads it; the nearest name is %s", name, near)
	}
	return fmt.Errorf("explain %q: no rule, path class or variable of that name; ncclmap explain lists them", name)
}

type explainDoc struct {
	Schema string             `json:"schema"`
	Topics []text.Explanation `json:"topics"`
}
