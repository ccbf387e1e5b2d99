package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ncclmap/ncclmap/graph/check"
)

const filterHelp = `What is known and put up with: --ignore RULE or RULE@SUBJECT, the subject as JSON
names it (gpu:0000:17:00.0; of several hosts gx07/gpu:0000:17:00.0, or host:gx07 for
all on it), * for anything. A finding about several GPUs is ignored only if all
match. A line of --ignore-file is "RULE[@SUBJECT] until YYYY-MM-DD REASON", after
that day it hides nothing; # begins a comment. Ignored findings are counted and leave
the exit code alone.`

// filterFlags choose what a command tells of its findings.
type filterFlags struct {
	rules, ignore []string
	file          string
}

func (f *filterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.rules, "rules", nil, "only the rules of `LIST`: names with commas between, * for anything")
	cmd.Flags().StringArrayVar(&f.ignore, "ignore", nil, "hide findings of `RULE[@SUBJECT]`, repeatable")
	cmd.Flags().StringVar(&f.file, "ignore-file", "", "hide findings that `FILE` gives a reason and a last day for")
}

func (f filterFlags) read() (check.Filter, error) {
	var ignore []check.Ignore
	for _, text := range f.ignore {
		e, err := check.ParseIgnore("--ignore", text)
		if err != nil {
			return check.Filter{}, fmt.Errorf("--ignore %w", err)
		}
		ignore = append(ignore, e)
	}
	if f.file != "" {
		r, err := os.Open(f.file)
		if err != nil {
			return check.Filter{}, fmt.Errorf("--ignore-file: %w", err)
		}
		defer r.Close()
		known, err := check.ParseIgnores(f.file, r)
		if err != nil {
			return check.Filter{}, err
		}
		ignore = append(ignore, known...)
	}
	filter, err := check.NewFilter(check.All(), f.rules, ignore)
	if err != nil {
		return filter, fmt.Errorf("--rules: %w", err)
	}
	return filter, nil
}

// filtered leaves out what is ignored and tells of decisions that do nothing.
func (a *app) filtered(f check.Filter, res check.Result) check.Result {
	res, notes := f.Apply(res, time.Now())
	for _, n := range notes {
		a.talk("%s", n)
	}
	return res
}
