package tune

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Setting is an NCCL setting in effect and whether the prediction heeds it.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Used  bool   `json:"used"`
	Why   string `json:"why,omitempty"` // where it is not used
	// Complaints say where the value does not mean what it seems to.
	Complaints []string `json:"complaints,omitempty"`
}

// Set takes an NCCL setting over. Settings that no model knows are noted as not
// used.
func (o *ModelOptions) Set(name, value string) {
	s := Setting{Name: name, Value: value, Why: "no part of the prediction knows it"}
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

// SetFile takes over the settings of a file that a job reads. A value that only
// running the file would tell is noted as not used.
func (o *ModelOptions) SetFile(f *ncclenv.File) {
	for _, a := range f.Effective() {
		if value, ok := a.Value.Get(); ok {
			o.Set(a.Name, value)
			continue
		}
		o.Settings = append(o.Settings, Setting{Name: a.Name, Value: probe.Excerpt(a.Raw), Why: fmt.Sprintf("line %d: its value is decided when the file is read", a.Line)})
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
	if v, ok := statedVersion(hosts, job); ok {
		o.NCCL.Version = v
	}
	for _, e := range job.Env {
		if e.How == probe.EnvVariable || e.How == probe.EnvReset {
			o.Set(e.Name, e.Value)
		}
	}
	return o
}

// statedVersion is the first version of NCCL that the sources state.
func statedVersion(hosts []*probe.Inventory, job *probe.Job) (v graph.NCCLVersion, stated bool) {
	var versions []string
	for _, inv := range hosts {
		versions = append(versions, inv.Runtime.NCCL)
	}
	for _, c := range job.Comms {
		versions = append(versions, c.NCCL)
	}
	for _, s := range versions {
		if v, err := graph.ParseNCCLVersion(s); err == nil {
			return v, true
		}
	}
	return v, false
}
