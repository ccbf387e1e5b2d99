package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/render"
	"github.com/ncclmap/ncclmap/render/text"
)

func (a *app) checkCmd() *cobra.Command {
	var level, old string
	var apart time.Duration
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "check [SOURCE…]",
		Short: "Find degraded, misplaced or misreported links",
		Long: fmt.Sprintf(`Find degraded, misplaced or misreported links by %d rules; ncclmap explain lists
them. A rule that lacks its facts says so and never counts as passed.

With --since, error counters are judged by what they grew since an earlier inventory of
the same hosts (ncclmap probe -o), and never by their totals.

--format junit is JUnit XML for CI: a test case for each rule, failed by findings at
or above --fail-on, skipped where facts were lacking.

`+filterHelp, len(check.All())),
		RunE: func(_ *cobra.Command, args []string) error {
			limit, fails, err := failOn(level)
			if err != nil {
				return err
			}
			f, err := filter.read()
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
			res, err := a.judge(c, old, apart, f.Rules)
			if err != nil {
				return err
			}
			res = a.filtered(f, res)
			switch a.format {
			case "json":
				err = a.printJSON(checkDoc{"ncclmap.check/v1", res})
			case "junit":
				err = render.WriteJUnit(a.stdout, f.Rules, res, func(s check.Severity) bool { return fails && s >= limit })
			default:
				err = text.Findings(a.stdout, res, a.style())
			}
			return a.verdict(err, res, limit, fails)
		},
	}
	failOnFlag(cmd, &level)
	cmd.Flags().StringVar(&old, "since", "", "judge error counters by their growth since an earlier inventory `FILE` of the same hosts")
	cmd.Flags().DurationVar(&apart, "apart", 0, "`TIME` between the two readings, such as 60s; inventories do not hold it")
	filter.register(cmd)
	return cmd
}

// judge applies the rules, with the earlier reading in a file if one is named.
func (a *app) judge(c *probe.Cluster, old string, apart time.Duration, rules []check.Rule) (check.Result, error) {
	switch {
	case apart < 0:
		return check.Result{}, fmt.Errorf("--apart %s: must be more than nothing", apart)
	case old == "" && apart != 0:
		return check.Result{}, errors.New("--apart is about --since; name the earlier inventory")
	case old == "":
		return check.RunCluster(c, rules)
	}
	before, _, err := open.Read([]string{old}, a.stdin)
	if err != nil {
		return check.Result{}, fmt.Errorf("--since: %w", err)
	}
	since := check.Since{Hosts: before.Hosts}
	if apart > 0 {
		since.Apart = probe.Some(apart)
	}
	if !slices.ContainsFunc(c.Hosts, func(h *probe.Inventory) bool { return since.Holds(h, len(c.Hosts)) }) {
		return check.Result{}, exitError{exitUnknown, fmt.Errorf("--since %s: it holds none of the hosts", old)}
	}
	return check.RunSince(c, since, rules)
}

type checkDoc struct {
	Schema string `json:"schema"`
	check.Result
}

func failOnFlag(cmd *cobra.Command, level *string) {
	cmd.Flags().StringVar(level, "fail-on", "critical", "exit 1 with findings at or above `LEVEL`: never, info, warning, critical")
}

// verdict turns findings at or above the limit into exit code 1. Without any, a file
// that could not be read leaves it open whether all is well.
func (a *app) verdict(err error, res check.Result, limit check.Severity, fails bool) error {
	if err != nil {
		return err
	}
	if worst, any := res.Worst(); any && fails && worst >= limit {
		return errFindings
	}
	if len(a.broken) > 0 {
		return exitError{exitUnknown, fmt.Errorf("%s could not be read, so nothing is said of what it holds", text.HostNames(a.broken))}
	}
	return nil
}

// style is how text is printed: colour on a terminal unless refused.
func (a *app) style() text.Style {
	s := text.Style{Verbose: a.verbose}
	if f, ok := a.stdout.(*os.File); ok && !a.noColor && os.Getenv("NO_COLOR") == "" {
		if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
			s.Color = true
		}
	}
	return s
}
