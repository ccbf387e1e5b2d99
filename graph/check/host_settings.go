package check

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// settings returns how a variable is set for the jobs of this host, as the
// sources show it: by its own processes and by files; where jobs name only other
// hosts, by theirs.
func (p *Pass) settings(name string) []probe.EnvSetting {
	of := func(holds func(host string) bool) (out []probe.EnvSetting) {
		for i := range p.Job.Env {
			if e := &p.Job.Env[i]; e.Name == name && e.How != probe.EnvInvalid && sets(*e) && holds(e.Host) {
				out = append(out, *e)
			}
		}
		return out
	}
	if here := of(p.Here); len(here) > 0 {
		return here
	}
	all := of(func(string) bool { return true })
	if len(all) > 0 && slices.ContainsFunc(p.Job.JobHosts(), p.Here) {
		return nil
	}
	return all
}

// value returns what NCCL takes from a setting, "" where nothing sets it.
func (p *Pass) value(name string) (value string, by []Evidence) {
	v, ok := ncclenv.Lookup(name)
	for _, e := range p.settings(name) {
		effect := e.Value
		if ok {
			effect = v.Effective(e.Value, p.nccl()).Value
		}
		if value != "" && effect != value {
			return "", nil // rule env-differs speaks
		}
		value = effect
		if len(by) == 0 {
			by = append(by, evidence(e.Origins, "", "", "%s=%s", name, e.Value))
		}
	}
	return value, by
}

// nccl returns the NCCL version of the jobs of this host, or of the library that
// a source names; "" where it is not known or there are several.
func (p *Pass) nccl() string {
	version := p.Inv.Runtime.NCCL
	for _, v := range p.Job.Versions {
		number, _, _ := strings.Cut(v.NCCL, "+")
		if version != "" && version != number {
			return ""
		}
		version = number
	}
	return version
}
