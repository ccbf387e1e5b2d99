package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envConflict = Rule{
	ID:    "env-conflict",
	Title: "settings that contradict each other",
	Doc: `Looks at settings that one process gets together: those of one file, of the environment
with nccl.conf, or those that the processes of a host print. Fires for NCCL_IB_*
settings beside NCCL_IB_DISABLE=1 or NCCL_NET=Socket, NCCL_NVLS_ENABLE=0 with NCCL_ALGO
naming only NVLS, a minimum of channels or CTAs above the maximum, NCCL_P2P_LEVEL beside
NCCL_P2P_DISABLE=1, NCCL_IB_ADDR_RANGE beside NCCL_IB_GID_INDEX, one name twice with
different values, and NCCL_IB_DISABLE=1 while a plugin carries the traffic, which it does
not reach. Warning; critical if nothing is left to run.
Silent: equal repeats; a setting that only a branch of a script makes.`,
	Across: runEnvConflict,
}

// contradiction is two or more settings of one process that do not go together.
type contradiction struct {
	names    []string // the setting that loses first
	severity Severity
	why      string // who wins
	fix      string
}

func runEnvConflict(a *Across) {
	for _, sc := range a.shared.env.scopes {
		for _, find := range []func(scope) (contradiction, bool){idleIB, onlyNVLS, idleP2PLevel, idleAddrRange} {
			if c, ok := find(sc); ok {
				a.contradict(sc, c)
			}
		}
		for _, p := range limitPairs {
			if c, ok := crossed(sc, p[0], p[1]); ok {
				a.contradict(sc, c)
			}
		}
	}
	for _, f := range a.shared.env.files {
		a.repeats(f)
	}
	a.pluginDisabled()
}

func (a *Across) contradict(sc scope, c contradiction) {
	f := Finding{Severity: c.severity, Expected: "settings that go together", Fix: "whoever wrote them: " + c.fix}
	var set []string
	for _, name := range c.names {
		s := sc.env[name]
		set = append(set, s.String())
		f.Subjects = append(f.Subjects, a.keysFor(name, sc.hosts)...)
		f.Evidence = append(f.Evidence, s.evidence()...)
		f.Certainty = max(f.Certainty, s.certainty(Sure))
	}
	f.Observed = strings.Join(set, " ") + ": " + c.why
	a.Report(f)
}

// idleIB finds settings of InfiniBand where it is off.
func idleIB(sc scope) (contradiction, bool) {
	off := "NCCL_IB_DISABLE"
	if !sc.env[off].is(1) {
		if off = "NCCL_NET"; !strings.EqualFold(sc.env[off].value, "Socket") {
			return contradiction{}, false
		}
	}
	var idle []string
	for _, name := range sortedKeys(sc.env) {
		if strings.HasPrefix(name, "NCCL_IB_") && name != "NCCL_IB_DISABLE" && sc.env[name].variable.Name != "" {
			idle = append(idle, name)
		}
	}
	if len(idle) == 0 {
		return contradiction{}, false
	}
	return contradiction{append(idle, off), Warning, off + " wins: NCCL's own InfiniBand network is off, and its settings do nothing",
		fmt.Sprintf("delete %s if InfiniBand shall be used, else the others", off)}, true
}

func onlyNVLS(sc scope) (contradiction, bool) {
	algo, set := sc.env["NCCL_ALGO"]
	if !set || !sc.env["NCCL_NVLS_ENABLE"].is(0) {
		return contradiction{}, false
	}
	rows, _, err := algo.variable.Selections(algo.value, algo.nccl)
	if err != nil || !slices.ContainsFunc(rows, func(r ncclenv.Selection) bool {
		return r.Set && len(r.Allowed) > 0 && !slices.ContainsFunc(r.Allowed, func(w string) bool { return !strings.HasPrefix(w, "NVLS") })
	}) {
		return contradiction{}, false
	}
	return contradiction{[]string{"NCCL_ALGO", "NCCL_NVLS_ENABLE"}, Critical, "NVLS is off and nothing else is allowed", "delete both"}, true
}

func idleP2PLevel(sc scope) (contradiction, bool) {
	if _, set := sc.env["NCCL_P2P_LEVEL"]; !set || !sc.env["NCCL_P2P_DISABLE"].is(1) {
		return contradiction{}, false
	}
	return contradiction{[]string{"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"}, Warning, "NCCL_P2P_DISABLE wins: no P2P at any distance",
		"delete NCCL_P2P_DISABLE, or NCCL_P2P_LEVEL if P2P is faulty here"}, true
}

func idleAddrRange(sc scope) (contradiction, bool) {
	_, ranged := sc.env["NCCL_IB_ADDR_RANGE"]
	if n, ok := sc.env["NCCL_IB_GID_INDEX"].number(); !ranged || !ok || n < 0 {
		return contradiction{}, false
	}
	return contradiction{[]string{"NCCL_IB_ADDR_RANGE", "NCCL_IB_GID_INDEX"}, Warning, "NCCL_IB_GID_INDEX wins: NCCL no longer chooses by address",
		"delete NCCL_IB_GID_INDEX on NCCL 2.21 and later"}, true
}

// limitPairs are lower and upper limits of one thing.
var limitPairs = [][2]string{
	{"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"},
	{"NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS"},
	{"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"},
	{"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"},
}

func crossed(sc scope, low, high string) (contradiction, bool) {
	lo, ok1 := sc.env[low].number()
	hi, ok2 := sc.env[high].number()
	if !ok1 || !ok2 || hi < 1 || lo <= hi {
		return contradiction{}, false
	}
	return contradiction{[]string{low, high}, Warning, high + " wins: the minimum is above the maximum", "delete one of them"}, true
}

// repeats finds names that a file sets twice to different values.
func (a *Across) repeats(file settingsFile) {
	first := map[string]probe.EnvSetting{}
	for _, e := range file.env {
		if hasMark(e, ncclenv.MarkConditional) || hasMark(e, ncclenv.MarkLost) || hasMark(e, ncclenv.MarkReference) || hasMark(e, ncclenv.MarkCommand) || hasMark(e, ncclenv.MarkLauncher) {
			continue // another branch, another command
		}
		if hasMark(e, ncclenv.MarkUnset) {
			delete(first, e.Name)
			continue
		}
		o, twice := first[e.Name]
		if !twice {
			first[e.Name] = e
			continue
		}
		if o.Value == e.Value {
			continue
		}
		wins, why := e, "the later line wins"
		if file.dialect == ncclenv.Conf {
			wins, why = o, "NCCL takes the first line of nccl.conf"
		}
		_, at := placeOf(wins)
		a.Report(Finding{Severity: Warning, Subjects: []string{"env:" + e.Name, "file:" + file.name}, Expected: "each name once",
			Observed: fmt.Sprintf("%s is set to %s and to %s: %s, line %d", e.Name, o.Value, e.Value, why, at),
			Evidence: []Evidence{evidence(o.Origins, "", "", "%s=%s", o.Name, o.Value), evidence(e.Origins, "", "", "%s=%s", e.Name, e.Value)},
			Fix:      "whoever wrote the file: delete the line that is not meant"})
		first[e.Name] = wins
	}
}

// pluginDisabled finds NCCL_IB_DISABLE=1 where a plugin carries the traffic.
func (a *Across) pluginDisabled() {
	i := slices.IndexFunc(a.Job.Networks, func(n probe.Network) bool {
		return n.State == probe.NetUsed && n.Name != "IB" && n.Name != "Socket"
	})
	if i < 0 {
		return
	}
	n := a.Job.Networks[i]
	for _, s := range a.settings("NCCL_IB_DISABLE") {
		if s.is(1) {
			a.reportSetting(s, Finding{Severity: Warning, Expected: "unset where a plugin carries the traffic",
				Observed: fmt.Sprintf("%s while the network is %s: the variable reaches only NCCL's own InfiniBand network", s, n.Name),
				Evidence: []Evidence{evidence(n.Origins, "", "", "Using network %s", n.Name)},
				Fix:      "whoever wrote it: delete it; to do without the plugin set NCCL_NET_PLUGIN=none"})
		}
	}
}
