package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/render/text"
)

const lintHelp = `With --lint: judge the settings that stand in the sources (env files, scripts,
nccl.conf, logs), or without a source those of this environment, of
$NCCL_CONF_FILE or ~/.nccl.conf, and of /etc/nccl.conf; and say which value NCCL
takes where several are stated. Other sources tell which hardware they meet.`

// lintDoc is the document of tune --lint.
type lintDoc struct {
	Schema string `json:"schema"`
	check.Result
	Settings []check.Precedence `json:"settings"`
}

// lint judges settings; findings at or above level give exit code 1.
func (a *app) lint(args []string, level string, filter filterFlags) error {
	limit, fails, err := failOn(level)
	if err != nil {
		return err
	}
	f, err := filter.read()
	if err != nil {
		return err
	}
	c, err := a.readSettings(args)
	if err != nil {
		return err
	}
	res, err := check.RunCluster(c, f.Rules)
	if err != nil {
		return err
	}
	doc := lintDoc{"ncclmap.lint/v1", aboutSettings(a.filtered(f, res)), check.Settings(&c.Job)}
	if a.format == "json" {
		err = a.printJSON(doc)
	} else {
		err = text.Lint(a.stdout, doc.Result, doc.Settings, a.style())
	}
	return a.verdict(err, doc.Result, limit, fails)
}

// aboutSettings keeps what rules of settings say, and what could not be read of
// settings.
func aboutSettings(res check.Result) check.Result {
	ours := func(rule string) bool { return strings.HasPrefix(rule, "env-") }
	res.Findings = slices.DeleteFunc(res.Findings, func(f check.Finding) bool { return !ours(f.Rule) })
	res.Ignored = slices.DeleteFunc(res.Ignored, func(f check.Ignored) bool { return !ours(f.Rule) })
	res.Gaps = slices.DeleteFunc(res.Gaps, func(g check.Gap) bool {
		return !ours(g.Rule) && !slices.ContainsFunc(g.Subjects, func(s string) bool { return strings.HasPrefix(s, "file:setting") })
	})
	return res
}

// readSettings reads the sources; without any, this machine and the settings that
// NCCL would find in this process.
func (a *app) readSettings(args []string) (*probe.Cluster, error) {
	if len(args) > 0 || a.sysfsRoot != "" {
		return a.readHosts(args)
	}
	c, err := a.readAll(nil)
	if err != nil {
		return nil, err
	}
	here := ncclenv.Environment(os.Environ())
	c.AddJob(&here.Job)
	for _, name := range confFiles() {
		inv, err := readConf(name)
		if err != nil {
			return nil, err
		}
		c.AddJob(&inv.Job)
		c.Gaps = append(c.Gaps, inv.Gaps...)
	}
	return c, nil
}

// confFiles are the files that NCCL reads itself, in its order (misc/param.cc).
func confFiles() []string {
	user := os.Getenv("NCCL_CONF_FILE")
	if home, err := os.UserHomeDir(); user == "" && err == nil {
		user = filepath.Join(home, ".nccl.conf")
	}
	return []string{user, "/etc/nccl.conf"}
}

// readConf reads such a file; one that is not there holds nothing.
func readConf(name string) (*probe.Inventory, error) {
	f, err := os.Open(name)
	if name == "" || errors.Is(err, fs.ErrNotExist) {
		return &probe.Inventory{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	defer f.Close()
	conf, err := ncclenv.ParseConf(name, f)
	if err != nil {
		return nil, err
	}
	return conf.Inventory(), nil
}
