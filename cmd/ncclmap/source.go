package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/live"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/probe/sysfs"
	"github.com/ncclmap/ncclmap/tune"
)

// readAll turns the SOURCE arguments into hosts and jobs; with tellSources it says
// on stderr what each was recognised as.
func (a *app) readAll(args []string) (*probe.Cluster, error) {
	if a.sysfsRoot != "" {
		if len(args) > 0 {
			return nil, errors.New("--sysfs-root stands for this machine; name the directory as a source beside others")
		}
		inv, err := open.ReadRoot(a.sysfsRoot, sysfs.Options{})
		if err != nil {
			return nil, err
		}
		return probe.Join([]probe.Part{{Inv: inv, File: a.sysfsRoot}})
	}
	if len(args) == 0 {
		inv, err := live.Read(context.Background())
		if err != nil {
			return nil, err
		}
		return probe.Join([]probe.Part{{Inv: inv, File: "this machine"}})
	}
	c, sources, err := open.Read(args, a.stdin)
	if err != nil {
		return nil, err
	}
	a.tell(sources)
	for _, s := range sources {
		if s.Broken {
			a.broken = append(a.broken, s.Name)
		}
	}
	return c, nil
}

// tell says what the sources were recognised as; of many, how many of each kind.
func (a *app) tell(sources []open.Source) {
	if a.verbose || a.tellSources && len(sources) <= 16 {
		for _, s := range sources {
			a.talk("%s: %s", s.Name, cmp.Or(s.Kind, "skipped: "+s.Skip))
		}
		return
	}
	kinds := map[string]int{}
	skipped := 0
	for _, s := range sources {
		if s.Kind == "" {
			skipped++
			continue
		}
		kinds[s.Kind]++
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		if a.tellSources {
			a.talk("%d × %s", kinds[k], k)
		}
	}
	if skipped > 0 {
		a.talk("%d files skipped; --verbose names them", skipped)
	}
}

// readHosts is readAll, narrowed to the host of --host.
func (a *app) readHosts(args []string) (*probe.Cluster, error) {
	c, err := a.readAll(args)
	if err != nil || a.host == "" {
		return c, err
	}
	h := c.Host(a.host)
	if h == nil {
		return nil, fmt.Errorf("--host %s: the sources hold %s", a.host, hostList(c))
	}
	only := *c
	only.Hosts = []*probe.Inventory{h}
	return &only, nil
}

// read turns the SOURCE arguments into one host: the only one, or that of --host.
func (a *app) read(args []string) (*probe.Inventory, error) {
	c, err := a.readHosts(args)
	if err != nil {
		return nil, err
	}
	inv, ok := c.Single()
	if !ok {
		return nil, fmt.Errorf("the sources are of %s; choose one with --host", hostList(c))
	}
	return inv, nil
}

// hostList names some hosts of a cluster.
func hostList(c *probe.Cluster) string {
	names := c.Names()
	switch {
	case len(names) == 0:
		return "no host"
	case len(names) > 8:
		return fmt.Sprintf("%d hosts (%s, …)", len(names), strings.Join(names[:8], ", "))
	}
	return fmt.Sprintf("%d hosts (%s)", len(names), strings.Join(names, ", "))
}

// analyse reads the sources of one host and runs the pure part of the pipeline.
func (a *app) analyse(args []string) (*tune.Analysis, error) {
	inv, err := a.read(args)
	if err != nil {
		return nil, err
	}
	an, err := tune.Analyse(inv)
	if err != nil {
		return nil, err
	}
	return an, anyGPU(&probe.Cluster{Hosts: []*probe.Inventory{inv}})
}

// anyGPU refuses sources that show neither a GPU nor what a job did: they leave
// nothing to say about NCCL.
func anyGPU(c *probe.Cluster) error {
	j := &c.Job
	if len(j.Comms)+len(j.Networks)+len(j.Interfaces)+len(j.Fabrics)+len(j.Env)+len(j.Samples)+len(j.Summaries)+len(j.Events) > 0 {
		return nil
	}
	var why []string
	for _, h := range c.Hosts {
		if len(h.GPUs) > 0 {
			return nil
		}
		for _, g := range h.Gaps {
			why = append(why, g.What+": "+g.Why)
		}
	}
	msg := "no GPU seen, so there is nothing to tell about NCCL"
	if len(why) > 0 {
		msg += " (" + strings.Join(why, "; ") + ")"
	}
	return exitError{exitUnknown, errors.New(msg)}
}

// talk prints a line on stderr unless --quiet.
func (a *app) talk(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}
