package ncclenv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Inventory returns the settings in the order of the file, all of them, and where
// names are unset (MarkUnset): which holds is for rules to say. A value that is not
// in the text (MarkReference), and what is odd about the text itself, is a gap.
func (f *File) Inventory() *probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	at := func(line int) probe.Origin { return probe.LineOf(probe.SourceNCCLEnv, f.Name, line) }
	for _, a := range f.Assignments {
		value, known := a.Value.Get()
		if !known && !a.Has(MarkUnset) {
			inv.Gaps = append(inv.Gaps, probe.Gap{What: "setting " + a.Name, Why: fmt.Sprintf("its value is decided when the file is read: %s", probe.Excerpt(a.Raw)), Origin: at(a.Line)})
		}
		s := probe.EnvSetting{Name: a.Name, Value: value, How: probe.EnvFile, Dialect: string(f.Dialect), Origins: []probe.Origin{at(a.Line)}}
		if a.Raw != value {
			s.Raw = a.Raw
		}
		for _, m := range a.Marks {
			s.Marks = append(s.Marks, string(m))
		}
		inv.Env = append(inv.Env, s)
	}
	for _, i := range f.Issues {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: "settings", Why: i.Text, Origin: at(i.Line)})
	}
	inv.Normalize()
	return inv
}

// Environment returns the settings of NCCL in the environment of this process,
// given as NAME=value: names that begin with NCCL_, and those that miss a letter
// of it. Nothing else is kept.
func Environment(environ []string) *probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	for _, s := range environ {
		name, value, ok := strings.Cut(s, "=")
		if ok && (strings.HasPrefix(name, "NCCL_") || misspelt(name)) {
			inv.Env = append(inv.Env, probe.EnvSetting{Name: name, Value: value, How: probe.EnvProcess,
				Origins: []probe.Origin{{Source: probe.SourceNCCLEnv, Where: "environment"}}})
		}
	}
	slices.SortFunc(inv.Env, func(a, b probe.EnvSetting) int { return strings.Compare(a.Name, b.Name) })
	inv.Normalize()
	return inv
}
