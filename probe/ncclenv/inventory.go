package ncclenv

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

// Inventory returns the settings in the order of the file, all of them, and where
// names are unset (MarkUnset): which holds is for rules to say. A value that is not
// in the text, and what is odd about the text itself, is a gap.
func (f *File) Inventory() *probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	at := func(line int) probe.Origin { return probe.LineOf(probe.SourceNCCLEnv, f.Name, line) }
	for _, a := range f.Assignments {
		value, known := a.Value.Get()
		if !known && !a.Has(MarkUnset) {
			inv.Gaps = append(inv.Gaps, probe.Gap{What: "setting " + a.Name, Why: fmt.Sprintf("its value is decided when the file is read: %s", probe.Excerpt(a.Raw)), Origin: at(a.Line)})
			continue
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
