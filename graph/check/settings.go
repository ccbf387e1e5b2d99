package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// setting is one value of one variable, and everywhere it holds.
type setting struct {
	name, value string
	variable    ncclenv.Variable // zero where no NCCL reads such a name
	effect      ncclenv.Effect
	nccl        string   // the version that reads it; "" = not known
	hosts       []string // "" = the source names none: wherever it is used
	confirmed   bool     // NCCL says in a log that it read it
	perhaps     bool     // in a branch, or not exported: only running the text would tell
	refused     bool     // NCCL says in a log that it took its default instead
	seen        []probe.Origin
	on          []*graph.Topology // the hosts of which anything is known
}

// number is the value of a variable that NCCL reads as a number.
func (s setting) number() (n int64, ok bool) {
	n, err := strconv.ParseInt(s.effect.Value, 10, 64)
	return n, err == nil
}

func (s setting) is(n int64) bool {
	v, ok := s.number()
	return ok && v == n
}

func (s setting) String() string { return s.name + "=" + s.value }

// certainty is that of a finding which follows directly from the setting.
func (s setting) certainty(c Certainty) Certainty {
	if s.perhaps {
		return Possible
	}
	return c
}

// evidence is the places where the setting stands; of many, some.
func (s setting) evidence() []Evidence {
	const show = 4
	out := []Evidence{}
	for i, o := range s.seen {
		fact := s.String()
		if o.Source == probe.SourceNCCLLog && !s.refused {
			fact = "NCCL read " + fact
		}
		if i == show && len(s.seen) > show+1 {
			return append(out, Evidence{Source: o.Source, Where: o.Where, Fact: fmt.Sprintf("%s, and in %d more places", fact, len(s.seen)-show-1)})
		}
		out = append(out, Evidence{Source: o.Source, Where: o.Where, Fact: fact})
	}
	return out
}

// settings is what the sources say of NCCL's settings, gathered once.
type settings struct {
	list    []setting // in effect, by name and value
	refused []setting
	open    []setting // whose value is only known when their file is read
	files   []settingsFile
	scopes  []scope
	version func(host string) string
}

// settingsFile is the settings of one text as they stand in it.
type settingsFile struct {
	name    string // base name, or path
	dialect ncclenv.Dialect
	env     []probe.EnvSetting
}

// scope is the settings that one process gets together: of one file, or what
// the processes of some hosts say. A name has one setting.
type scope struct {
	hosts []string // see setting
	env   map[string]setting
}

func gatherSettings(job *probe.Job, hosts []*graph.Topology) *settings {
	s := &settings{version: versionsOf(job, hosts), files: settingsFiles(job.Env)}
	type key struct {
		name, value, nccl string
		refused, open     bool
	}
	at := map[key]int{}
	add := func(e probe.EnvSetting) {
		n := s.setting(e)
		k := key{n.name, n.value, n.nccl, n.refused, hasMark(e, ncclenv.MarkReference)}
		list := &s.list
		switch {
		case k.refused:
			list = &s.refused
		case k.open:
			list = &s.open
		}
		i, known := at[k]
		if !known {
			at[k] = len(*list)
			*list = append(*list, n)
			return
		}
		(*list)[i].join(n)
	}
	for _, f := range s.files {
		for _, e := range f.inEffect() {
			add(e)
		}
	}
	for _, e := range job.Env {
		if e.How != probe.EnvFile && e.How != probe.EnvConfig {
			add(e)
		}
	}
	for i := range s.list {
		s.list[i].on = hostsNamed(hosts, s.list[i].hosts)
	}
	slices.SortStableFunc(s.list, func(a, b setting) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.value, b.value))
	})
	s.gatherScopes(job.Env)
	return s
}

// hostsNamed finds hosts by name, of which something is known; "" names them all,
// and any name the only one.
func hostsNamed(hosts []*graph.Topology, names []string) []*graph.Topology {
	all := len(hosts) == 1 || slices.Contains(names, "")
	want := map[string]bool{}
	for _, n := range names {
		short, _, _ := strings.Cut(n, ".")
		want[short] = true
	}
	var out []*graph.Topology
	for _, t := range hosts {
		short, _, _ := strings.Cut(t.Inv.Host.Name, ".")
		if (all || want[short]) && len(t.Nodes)+len(t.Inv.NetDevs) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (s *setting) join(o setting) {
	for _, h := range o.hosts {
		if !slices.Contains(s.hosts, h) {
			s.hosts = append(s.hosts, h)
		}
	}
	s.seen = append(s.seen, o.seen...)
	s.confirmed = s.confirmed || o.confirmed
	s.perhaps = s.perhaps && o.perhaps
}

func (s *settings) setting(e probe.EnvSetting) setting {
	n := setting{name: e.Name, value: e.Value, hosts: []string{e.Host}, seen: slices.Clone(e.Origins), refused: e.How == probe.EnvInvalid,
		confirmed: e.How == probe.EnvVariable || e.How == probe.EnvReset}
	if e.How == probe.EnvReset { // "minCTAs reset to NCCL_MIN_CTAS=4"
		if name, value, ok := strings.Cut(e.Value, "="); ok {
			n.name, n.value = name, value
		}
	}
	n.nccl = s.version(e.Host)
	n.perhaps = hasMark(e, ncclenv.MarkConditional) || hasMark(e, ncclenv.MarkNotExported)
	n.variable, _ = ncclenv.Lookup(n.name)
	n.effect = n.variable.Effective(n.value, n.nccl)
	return n
}

func hasMark(e probe.EnvSetting, m ncclenv.Mark) bool { return slices.Contains(e.Marks, string(m)) }

// sets reports an entry that gives NCCL a value which is known: in files there are
// others.
func sets(e probe.EnvSetting) bool {
	return !slices.ContainsFunc([]ncclenv.Mark{ncclenv.MarkLost, ncclenv.MarkUnset, ncclenv.MarkReference}, func(m ncclenv.Mark) bool { return hasMark(e, m) })
}

// settingsFiles parts what was read from files by file.
func settingsFiles(env []probe.EnvSetting) []settingsFile {
	var out []settingsFile
	last := 0
	for _, e := range env {
		if e.How != probe.EnvFile {
			continue
		}
		name, line := placeOf(e)
		n := len(out)
		// Files of one name follow each other without a mark, but for their lines.
		if n == 0 || out[n-1].name != name || string(out[n-1].dialect) != e.Dialect || line < last {
			out = append(out, settingsFile{name: name, dialect: ncclenv.Dialect(e.Dialect)})
			n++
		}
		out[n-1].env = append(out[n-1].env, e)
		last = line
	}
	return out
}

// placeOf splits "job.env:12".
func placeOf(e probe.EnvSetting) (file string, line int) {
	if len(e.Origins) == 0 {
		return "", 0
	}
	where := e.Origins[0].Where
	if i := strings.LastIndexByte(where, ':'); i >= 0 {
		if n, err := strconv.Atoi(where[i+1:]); err == nil {
			return where[:i], n
		}
	}
	return where, 0
}

// inEffect lists the settings of a file that hold: the last of each name, in
// nccl.conf the first (NCCL never overwrites, os/linux.cc). What only a branch or
// one command sets stands beside what holds without it.
func (f settingsFile) inEffect() []probe.EnvSetting {
	var out []probe.EnvSetting
	for _, e := range f.env {
		same := func(o probe.EnvSetting) bool { return o.Name == e.Name }
		switch {
		case hasMark(e, ncclenv.MarkLost):
		case f.dialect == ncclenv.Conf && slices.ContainsFunc(out, same):
		case hasMark(e, ncclenv.MarkConditional) && hasMark(e, ncclenv.MarkUnset):
		case hasMark(e, ncclenv.MarkConditional) || hasMark(e, ncclenv.MarkCommand) || hasMark(e, ncclenv.MarkLauncher):
			out = append(out, e)
		default:
			if out = slices.DeleteFunc(out, same); !hasMark(e, ncclenv.MarkUnset) {
				out = append(out, e)
			}
		}
	}
	return out
}

// gatherScopes finds the settings that meet in one process. To the environment
// of this process NCCL adds what its own files set beside it (misc/param.cc).
// Hosts whose processes say the same are one scope.
func (s *settings) gatherScopes(env []probe.EnvSetting) {
	here := newScope("")
	byHost := map[string]scope{}
	for _, e := range env {
		switch e.How {
		case probe.EnvProcess:
			here.add(s.setting(e))
		case probe.EnvVariable, probe.EnvReset:
			if byHost[e.Host].env == nil {
				byHost[e.Host] = newScope(e.Host)
			}
			byHost[e.Host].add(s.setting(e))
		}
	}
	live := len(here.env) > 0
	for _, f := range s.files {
		sc := newScope("")
		if live && f.dialect == ncclenv.Conf {
			sc = here
		} else {
			s.scopes = append(s.scopes, sc)
		}
		for _, e := range f.inEffect() {
			if !hasMark(e, ncclenv.MarkConditional) && !hasMark(e, ncclenv.MarkReference) {
				sc.add(s.setting(e))
			}
		}
	}
	if live {
		s.scopes = append(s.scopes, here)
	}
	alike := map[string]int{}
	for _, host := range sortedKeys(byHost) {
		sc := byHost[host]
		key := sc.String()
		i, known := alike[key]
		if !known {
			alike[key] = len(s.scopes)
			s.scopes = append(s.scopes, sc)
			continue
		}
		s.scopes[i].hosts = append(s.scopes[i].hosts, host)
	}
}

func newScope(host string) scope { return scope{hosts: []string{host}, env: map[string]setting{}} }

// add takes in a setting whose name is not set yet.
func (sc scope) add(s setting) {
	if _, known := sc.env[s.name]; !known {
		sc.env[s.name] = s
	}
}

func (sc scope) String() string {
	var out []string
	for _, name := range sortedKeys(sc.env) {
		out = append(out, sc.env[name].String())
	}
	return strings.Join(out, " ")
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, probe.CompareNames)
	return out
}

// versionsOf tells the NCCL version of a host ("" = of all) where the sources
// agree on one.
func versionsOf(job *probe.Job, hosts []*graph.Topology) func(host string) string {
	const several = "several"
	byHost := map[string]string{}
	note := func(host, version string) {
		for _, h := range []string{host, ""} {
			if old, known := byHost[h]; version != "" && known && old != version {
				byHost[h] = several
			} else if version != "" {
				byHost[h] = version
			}
		}
	}
	for _, v := range job.Versions {
		note(v.Host, v.NCCL)
	}
	for _, t := range hosts {
		note(t.Inv.Host.Name, t.Inv.Runtime.NCCL)
	}
	return func(host string) string {
		v, known := byHost[host]
		if !known {
			v = byHost[""]
		}
		if v == several {
			return ""
		}
		return v
	}
}

// settings lists the settings in effect with one of the names; without a name
// all of them.
func (a *Across) settings(names ...string) []setting {
	if len(names) == 0 {
		return a.shared.env.list
	}
	var out []setting
	for _, s := range a.shared.env.list {
		if slices.Contains(names, s.name) {
			out = append(out, s)
		}
	}
	return out
}

// keysFor are the subjects of a setting: the variable, below the hosts' names
// where it is not known to hold on all of them.
func (a *Across) keysFor(name string, hosts []string) []string {
	key := "env:" + name
	if slices.Contains(hosts, "") || len(hosts) >= len(a.names()) {
		return []string{key}
	}
	var out []string
	for _, h := range hosts {
		out = append(out, a.Key(h, key))
	}
	slices.SortFunc(out, compareKeys)
	return out
}

// reportSetting reports what is wrong with a setting whatever the hardware.
func (a *Across) reportSetting(s setting, f Finding) {
	f.Subjects = append(a.keysFor(s.name, s.hosts), f.Subjects...)
	f.Evidence = append(s.evidence(), f.Evidence...)
	f.Certainty = s.certainty(f.Certainty)
	if f.Observed == "" {
		f.Observed = s.String()
	}
	a.Report(f)
}

// meeting is a setting on one host whose hardware is known.
type meeting struct {
	*Across
	setting
	topo  *graph.Topology
	facts *facts
}

const (
	noHardware = "the hardware that the setting meets is not in the sources"
	nameHost   = "name the host's inventory or its recorded /sys beside the settings"
)

// known lists the hosts of known hardware on which a setting holds.
func (s setting) known() []*graph.Topology {
	return slices.DeleteFunc(slices.Clone(s.on), func(t *graph.Topology) bool { return OnlyInJobs(t.Inv) })
}

// meet calls f for each host of known hardware on which a setting holds. Where
// there is none, that is a gap; of a host that a log names, the gap about its
// inventory says it.
func (a *Across) meet(s setting, f func(meeting)) {
	hosts := s.known()
	if len(hosts) == 0 && len(s.on) == 0 {
		a.Gap(noHardware, nameHost, a.keysFor(s.name, s.hosts)...)
	}
	for _, t := range hosts {
		f(meeting{Across: a, setting: s, topo: t, facts: a.factsOf(t)})
	}
}

func (a *Across) factsOf(t *graph.Topology) *facts {
	if a.shared.facts[t] == nil {
		a.shared.facts[t] = gather(t)
	}
	return a.shared.facts[t]
}

// key is the subject for an object of the host.
func (m meeting) key(k string) string { return m.Key(m.topo.Inv.Host.Name, k) }

// report reports what is wrong with a setting on this host.
func (m meeting) report(f Finding) {
	for i, s := range f.Subjects {
		f.Subjects[i] = m.key(s)
	}
	f.Subjects = append([]string{m.key("env:" + m.name)}, f.Subjects...)
	f.Evidence = append(m.evidence(), f.Evidence...)
	f.Certainty = m.certainty(f.Certainty)
	m.Report(f)
}

// gap says what about this host is not known.
func (m meeting) gap(reason, how string) { m.Gap(reason, how, m.key("env:"+m.name)) }
