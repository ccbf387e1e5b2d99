package check

import (
	"cmp"
	"path"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Precedence is what NCCL takes for one variable, of all that the sources state.
type Precedence struct {
	Name   string            `json:"name"`
	Value  probe.Opt[string] `json:"value"` // unknown where nothing decides
	Why    string            `json:"why"`
	Stated []Stated          `json:"stated"` // strongest first
}

// Stated is one statement of a setting.
type Stated struct {
	Value string `json:"value"`
	Level string `json:"level"` // see Levels
	Where string `json:"where"`
	Host  string `json:"host,omitempty"`
	Note  string `json:"note,omitempty"` // why it may not be what it seems

	unsure bool // whether it is set at all depends
	void   bool // its own file does not let it hold
}

// Levels are where NCCL takes a setting from, strongest first (misc/param.cc:
// files only fill what is not set, and the user's file is read first).
const (
	LevelConfirmed   = "confirmed" // a log in which NCCL says that it read the value
	LevelEnvironment = "environment"
	LevelUserFile    = "user file"   // $NCCL_CONF_FILE, else ~/.nccl.conf
	LevelSystemFile  = "system file" // /etc/nccl.conf
)

var levels = []string{LevelConfirmed, LevelEnvironment, LevelUserFile, LevelSystemFile}

// Settings tells for each variable that the sources set, by name, which of the
// statements NCCL takes and why.
func Settings(job *probe.Job) []Precedence {
	byName := map[string][]Stated{}
	for _, f := range settingsFiles(job.Env) {
		holds := f.inEffect()
		for _, e := range holds {
			byName[e.Name] = append(byName[e.Name], stated(f.level(), e))
		}
		for _, e := range f.env {
			if !slices.ContainsFunc(holds, func(o probe.EnvSetting) bool { return sameSetting(o, e) }) && !hasMark(e, ncclenv.MarkUnset) {
				byName[e.Name] = append(byName[e.Name], f.overridden(e))
			}
		}
	}
	for _, e := range job.Env {
		switch e.How {
		case probe.EnvVariable:
			byName[e.Name] = append(byName[e.Name], stated(LevelConfirmed, e))
		case probe.EnvProcess:
			byName[e.Name] = append(byName[e.Name], stated(LevelEnvironment, e))
		}
	}
	out := []Precedence{}
	for _, name := range sortedKeys(byName) {
		out = append(out, decide(name, byName[name]))
	}
	return out
}

// level is where a file's settings reach NCCL: nccl.conf by itself, others
// through the environment.
func (f settingsFile) level() string {
	switch {
	case f.dialect != ncclenv.Conf:
		return LevelEnvironment
	case path.Base(f.name) == "nccl.conf":
		return LevelSystemFile
	}
	return LevelUserFile
}

func stated(level string, e probe.EnvSetting) Stated {
	s := Stated{Value: e.Value, Level: level, Host: e.Host}
	if len(e.Origins) > 0 {
		s.Where = e.Origins[0].Where
	}
	switch {
	case hasMark(e, ncclenv.MarkReference):
		s.Value, s.Note, s.unsure = e.Raw, "the value is only known when the file is read", true
	case hasMark(e, ncclenv.MarkConditional):
		s.Note, s.unsure = "only in a branch of the script", true
	case hasMark(e, ncclenv.MarkNotExported):
		s.Note, s.unsure = "not exported: no program sees it unless the shell exports everything (set -a)", true
	case hasMark(e, ncclenv.MarkCommand):
		s.Note = "for one command"
	case hasMark(e, ncclenv.MarkLauncher):
		s.Note = "handed on by the launcher"
	}
	return s
}

func sameSetting(a, b probe.EnvSetting) bool {
	_, x := placeOf(a)
	_, y := placeOf(b)
	return a.Name == b.Name && a.Value == b.Value && x == y
}

// overridden is a line that does not hold in its own file.
func (f settingsFile) overridden(e probe.EnvSetting) Stated {
	s := stated(f.level(), e)
	s.void = true
	switch {
	case hasMark(e, ncclenv.MarkLost):
		s.Note = "nobody sets it: blanks or words before the ="
	case f.dialect == ncclenv.Conf:
		s.Note = "NCCL takes the first line of a file"
	default:
		s.Note = "a later line of the file sets or unsets it"
	}
	return s
}

// decide finds the statement that NCCL takes: the one of the strongest level, if
// there is one.
func decide(name string, all []Stated) Precedence {
	rank := func(s Stated) int {
		if s.void {
			return len(levels)
		}
		return slices.Index(levels, s.Level)
	}
	slices.SortStableFunc(all, func(a, b Stated) int { return cmp.Compare(rank(a), rank(b)) })
	p := Precedence{Name: name, Stated: all}
	top, rivals := all[0], slices.DeleteFunc(slices.Clone(all), func(s Stated) bool { return rank(s) != rank(all[0]) })
	switch {
	case top.void:
		p.Why = "nothing sets it: " + top.Note
	case slices.ContainsFunc(rivals, func(s Stated) bool { return s.unsure }):
		p.Why = "not decided: " + rivals[slices.IndexFunc(rivals, func(s Stated) bool { return s.unsure })].Note
	case slices.ContainsFunc(rivals, func(s Stated) bool { return s.Value != top.Value }):
		p.Why = "not decided: " + undecided[top.Level]
	default:
		p.Value = probe.Some(top.Value)
		p.Why = top.wins(slices.ContainsFunc(all, func(s Stated) bool { return !s.void && s.Level != top.Level }))
	}
	return p
}

// undecided says why nothing decides between statements of one level.
var undecided = map[string]string{
	LevelConfirmed:   "processes read different values",
	LevelEnvironment: "several statements reach the environment, and nothing tells which comes last",
	LevelUserFile:    "several files, and nothing tells which is read",
	LevelSystemFile:  "several files, and nothing tells which is read",
}

// wins says why a statement holds; others says whether weaker ones exist.
func (s Stated) wins(others bool) string {
	switch {
	case s.Level == LevelConfirmed:
		return "NCCL says in the log that it read it"
	case !others:
		return "nothing else sets it"
	case s.Level == LevelUserFile:
		return "the user's file is read before /etc/nccl.conf, and nothing is overwritten (NCCL misc/param.cc)"
	case s.Value == "":
		return "set and empty in the environment, which keeps the files' value away: NCCL takes its default (misc/param.cc)"
	}
	return "the environment comes first: NCCL's files only fill what is not set (misc/param.cc)"
}
