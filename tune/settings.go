package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Setting is an NCCL setting in effect and whether the prediction heeds it.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Used  bool   `json:"used"`
	From  string `json:"from,omitempty"` // file and line, or the environment
	Why   string `json:"why,omitempty"`  // where it is not used
	// Complaints say where the value does not mean what it seems to.
	Complaints []string `json:"complaints,omitempty"`

	Contradicted bool `json:"contradicted,omitempty"` // the sources contradict each other

	undecided bool // only running the file tells the value
}

const unknownSetting = "no part of the prediction knows it"

// Set takes an NCCL setting over. Settings that no model knows are noted as not
// used.
func (o *ModelOptions) Set(name, value string) {
	s := Setting{Name: name, Value: value, Why: unknownSetting}
	for _, take := range []func(string, string) (bool, error){o.NCCL.Set, o.Search.Set, o.Model.Set} {
		known, err := take(name, value)
		if err != nil {
			s.Used, s.Why = false, err.Error()
			break
		}
		if known {
			s.Used, s.Why = true, ""
		}
	}
	o.Settings = append(o.Settings, s)
}

// SetFrom is Set that keeps where the setting was seen.
func (o *ModelOptions) SetFrom(name, value, from string) {
	o.Set(name, value)
	o.Settings[len(o.Settings)-1].From = from
}

// SetFile takes over the settings of a file that a job reads. A value that only
// running the file would tell is noted as not used.
func (o *ModelOptions) SetFile(f *ncclenv.File) {
	for _, a := range f.Effective() {
		if value, ok := a.Value.Get(); ok {
			o.SetFrom(a.Name, value, fmt.Sprintf("%s:%d", f.Name, a.Line))
			continue
		}
		o.Settings = append(o.Settings, Setting{Name: a.Name, Value: probe.Excerpt(a.Raw), From: fmt.Sprintf("%s:%d", f.Name, a.Line), undecided: true, Why: fmt.Sprintf("line %d: its value is decided when the file is read", a.Line)})
	}
}

// judge notes what NCCL of the chosen version makes of the values.
func (o *ModelOptions) judge() {
	o.Settings = slices.Clone(o.Settings)
	for i := range o.Settings {
		s := &o.Settings[i]
		if v, ok := ncclenv.Lookup(s.Name); ok && s.Used {
			s.Complaints = v.Effective(s.Value, o.NCCL.Version.String()).Complaints
		}
	}
}

// OptionsOf returns what the sources of a host say of the NCCL that runs on it:
// its version and the settings that a job had. Without a version it is the newest.
func OptionsOf(inv *probe.Inventory) ModelOptions {
	return OptionsOfHosts([]*probe.Inventory{inv}, &inv.Job)
}

// OptionsOfHosts returns what the sources say of the NCCL that runs on several
// hosts: the first version that one of them states, and the settings of the job.
func OptionsOfHosts(hosts []*probe.Inventory, job *probe.Job) ModelOptions {
	var o ModelOptions
	var versions []string
	for _, inv := range hosts {
		versions = append(versions, inv.Runtime.NCCL)
	}
	for _, c := range job.Comms {
		versions = append(versions, c.NCCL)
	}
	for _, s := range versions {
		if v, err := graph.ParseNCCLVersion(s); err == nil {
			o.NCCL.Version = v
			break
		}
	}
	o.setJob(job)
	return o
}

// setJob takes over the settings that a job had. Settings of several runs that
// contradict each other are of no one job: then none counts. Where processes of one
// run have a variable differently, it alone does not count.
func (o *ModelOptions) setJob(job *probe.Job) {
	var seen []probe.EnvSetting
	for _, e := range job.Env {
		if e.How == probe.EnvVariable || e.How == probe.EnvReset {
			seen = append(seen, e)
		}
	}
	differ, across := map[string]bool{}, false
	var values []string
	runs := map[string]bool{}
	for i, e := range seen {
		for _, f := range filesOf(e) {
			runs[f] = true
		}
		at := slices.IndexFunc(seen, func(x probe.EnvSetting) bool { return x.Name == e.Name })
		if at == i || seen[at].Value == e.Value || !matters(e.Name) {
			continue
		}
		if !differ[e.Name] {
			values = append(values, where(seen[at]))
		}
		values = append(values, where(e))
		differ[e.Name] = true
		across = across || !slices.ContainsFunc(filesOf(e), func(f string) bool { return slices.Contains(filesOf(seen[at]), f) })
	}
	told := strings.Join(values[:min(len(values), 8)], ", ")
	switch {
	case across:
		o.Conflicts = append(o.Conflicts, fmt.Sprintf("settings of %d runs differ; none is used; give --env (%s)", len(runs), told))
	case len(differ) > 0:
		o.Conflicts = append(o.Conflicts, fmt.Sprintf("processes of one run differ in %s, which is not used; give --env (%s)", strings.Join(slices.Sorted(maps.Keys(differ)), ", "), told))
	}
	for i, e := range seen {
		if slices.ContainsFunc(seen[:i], func(x probe.EnvSetting) bool { return x.Name == e.Name && x.Value == e.Value }) {
			continue
		}
		if across || differ[e.Name] {
			o.Settings = append(o.Settings, Setting{Name: e.Name, Value: e.Value, From: from(e), Why: "the sources contradict each other", Contradicted: true})
			continue
		}
		o.SetFrom(e.Name, e.Value, from(e))
	}
}

// from is where a setting was seen first.
func from(e probe.EnvSetting) string {
	if len(e.Origins) == 0 {
		return ""
	}
	return e.Origins[0].Where
}

// where is a setting with where it was seen.
func where(e probe.EnvSetting) string {
	return strings.TrimSpace(e.Name + "=" + e.Value + " " + from(e))
}

// filesOf are the files that show a setting.
func filesOf(e probe.EnvSetting) (out []string) {
	for _, o := range e.Origins {
		file := o.Where
		if i := strings.LastIndexByte(file, ':'); i >= 0 {
			file = file[:i]
		}
		out = append(out, file)
	}
	return out
}
