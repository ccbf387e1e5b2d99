package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/live"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

// read turns the SOURCE arguments into one inventory; with tellSources it says
// on stderr what each was recognised as.
func (a *app) read(args []string) (*probe.Inventory, error) {
	if a.sysfsRoot != "" {
		if len(args) > 0 {
			return nil, errors.New("--sysfs-root stands for this machine; name the directory as a source beside others")
		}
		args = []string{a.sysfsRoot}
	}
	if len(args) == 0 {
		return live.Read(context.Background())
	}
	inv, sources, err := open.Read(args, a.stdin)
	if err != nil {
		return nil, err
	}
	for _, s := range sources {
		if a.verbose || a.tellSources {
			a.talk("%s: %s", s.Name, s.Kind)
		}
	}
	return inv, nil
}

// analyse reads the sources and runs the pure part of the pipeline. A machine
// without a GPU leaves nothing to say about NCCL.
func (a *app) analyse(args []string) (*tune.Analysis, error) {
	inv, err := a.read(args)
	if err != nil {
		return nil, err
	}
	an, err := tune.Analyse(inv)
	if err != nil {
		return nil, err
	}
	if len(inv.GPUs) == 0 {
		var why []string
		for _, g := range inv.Gaps {
			why = append(why, g.What+": "+g.Why)
		}
		msg := "no GPU seen, so there is nothing to tell about NCCL"
		if len(why) > 0 {
			msg += " (" + strings.Join(why, "; ") + ")"
		}
		return nil, exitError{exitUnknown, errors.New(msg)}
	}
	return an, nil
}

// talk prints a line on stderr unless --quiet.
func (a *app) talk(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}
