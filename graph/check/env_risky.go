package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envRisky = Rule{
	ID:    "env-risky",
	Title: "a setting that can corrupt data, hang or hide a fault",
	Doc: `Fires for LL128 forced by NCCL_PROTO (named, alone or in a list, or left by excluding
another protocol), NCCL_IGNORE_DISABLED_P2P, NCCL_GDR_FLUSH_DISABLE=1, NCCL_IB_TIMEOUT
below 14, 0 or above 31, NCCL_IB_RETURN_ASYNC_EVENTS=0, NCCL_NVLS_ENABLE=1 where the
switches have no multicast, NCCL_LEGACY_CUDA_REGISTER=1, NCCL_GRAPH_FILE, and NCCL_HOSTID
alike on two hosts. Warning; critical for LL128 where NVLink does not join all GPUs of a
host or the network is known to be other than InfiniBand verbs; info for LL128 in a job
on one NVSwitch host, where NCCL turns it on itself.
Silent: NCCL_PROTO=^LL128.`,
	Across: runEnvRisky,
}

// risks are the settings that are risky whatever the hardware.
var risks = []struct {
	name  string
	risky func(setting) bool
	why   string
	want  string
}{
	{"NCCL_IGNORE_DISABLED_P2P", func(s setting) bool { n, ok := s.number(); return ok && n != 0 },
		"NCCL goes on where the driver says that P2P does not work, which hides broken hardware", "unset: NCCL stops on a broken NVLink pair"},
	{"NCCL_GDR_FLUSH_DISABLE", func(s setting) bool { return s.is(1) },
		"without the flush a GPU can read data of a message before it has arrived", "unset, or 0"},
	{"NCCL_IB_TIMEOUT", func(s setting) bool { n, ok := s.number(); return ok && (n < 14 || n > 31) },
		"the timeout is 4.096 µs × 2^value; 0 and 32 or more wait for ever on a dead link, and below 14 congestion looks like a failure", "14 to 31; NCCL takes 20"},
	{"NCCL_IB_RETURN_ASYNC_EVENTS", func(s setting) bool { return s.is(0) },
		"NCCL no longer stops on fatal events of the HCA, which hides failing links", "unset, or 1"},
	{"NCCL_LEGACY_CUDA_REGISTER", func(s setting) bool { return s.is(1) },
		"registered cudaMalloc memory synchronises implicitly and can hang", "unset, or 0"},
	{"NCCL_GRAPH_FILE", func(s setting) bool { return s.value != "" },
		"rings and trees come from a file: on another machine they are wrong, and a missing file stops NCCL", "unset: NCCL searches itself"},
}

func runEnvRisky(a *Across) {
	for _, r := range risks {
		for _, s := range a.settings(r.name) {
			if r.risky(s) {
				a.reportSetting(s, Finding{Severity: Warning, Expected: r.want, Observed: s.String() + ": " + r.why, Fix: "whoever wrote it: delete it"})
			}
		}
	}
	for _, s := range a.settings("NCCL_PROTO") {
		a.riskyLL128(s)
	}
	for _, s := range a.settings("NCCL_NVLS_ENABLE") {
		if s.is(1) {
			a.meet(s, meeting.riskyNVLS)
		}
	}
	for _, s := range a.settings("NCCL_HOSTID") {
		a.riskyHostID(s)
	}
}

// forcesLL128 reports a value of NCCL_PROTO that forces LL128 on for some
// collective.
func (s setting) forcesLL128() bool {
	return s.selects(func(r ncclenv.Selection) bool { return slices.Contains(r.Allowed, "LL128") })
}

// selects reports a collective of which a value of NCCL_PROTO speaks so.
func (s setting) selects(so func(ncclenv.Selection) bool) bool {
	if s.name != "NCCL_PROTO" {
		return false
	}
	rows, _, err := s.variable.Selections(s.value, s.nccl)
	return err == nil && slices.ContainsFunc(rows, func(r ncclenv.Selection) bool { return r.Set && so(r) })
}

func (a *Across) riskyLL128(s setting) {
	if !s.forcesLL128() {
		return
	}
	f := Finding{Severity: Warning, Expected: "unset, or ^LL128: NCCL turns LL128 on where the whole path keeps 128 bytes in order",
		Fix: "whoever wrote it: delete it; NCCL enables LL128 itself where it is safe"}
	why := "naming LL128"
	if !strings.Contains(strings.ToUpper(s.value), "LL128") {
		why = "a list that leaves LL128"
	}
	why += " forces it on for every algorithm, and where a path does not keep 128-byte stores in order the results are wrong"
	switch path, unsafe := a.unsafeForLL128(s); {
	case unsafe:
		f.Severity = Critical
		why += "; " + path
	case a.oneNVSwitchHost(s):
		f.Severity = Info
		why += "; this job stays on one NVSwitch host, where NCCL turns LL128 on itself"
	}
	f.Observed = s.String() + ": " + why
	a.reportSetting(s, f)
}

// unsafeForLL128 finds a path of the setting's job for which NCCL itself would
// leave LL128 off (graph/tuning.cc).
func (a *Across) unsafeForLL128(s setting) (path string, found bool) {
	for _, n := range a.Job.Networks {
		if n.State == probe.NetUsed && !strings.HasPrefix(n.Name, "IB") && a.jobSpread() == manyHosts { // IBext is verbs too
			return "the network is " + n.Name, true
		}
	}
	for _, t := range s.known() {
		f := a.factsOf(t)
		for i, g := range f.gpus {
			for _, h := range f.gpus[i+1:] {
				if c := t.Class(g, h); c != graph.Unknown && c > graph.NVB {
					return fmt.Sprintf("%s and %s talk by %s", g.Label, h.Label, c), true
				}
			}
		}
	}
	return "", false
}

func (a *Across) oneNVSwitchHost(s setting) bool {
	hosts := s.known()
	return a.jobSpread() == oneHost && len(hosts) > 0 && !slices.ContainsFunc(hosts, func(t *graph.Topology) bool { return !toSwitch(a.factsOf(t).gpus) })
}

// toSwitch reports that all GPUs are known to have NVLinks to a switch.
func toSwitch(gpus []*graph.Node) bool {
	return len(gpus) > 0 && !slices.ContainsFunc(gpus, func(n *graph.Node) bool {
		links, _ := n.GPU.NVLinks.Get()
		return !slices.ContainsFunc(links, func(l probe.NVLink) bool { return l.RemoteKind == probe.RemoteSwitch })
	})
}

// multicastCC is the compute capability of the first GPUs whose switches reduce
// (NVSwitch 3).
const multicastCC = 90

// riskyNVLS judges NCCL_NVLS_ENABLE=1, which skips NCCL's own question.
func (m meeting) riskyNVLS() {
	for _, n := range m.facts.gpus {
		cc, known := n.GPU.CC.Get()
		links, linked := n.GPU.NVLinks.Get()
		switch {
		case known && cc < multicastCC:
			m.noMulticast(n, fmt.Sprintf("%s has compute capability %d.%d", n.Label, cc/10, cc%10))
			return
		case linked && !slices.ContainsFunc(links, func(l probe.NVLink) bool { return l.RemoteKind == probe.RemoteSwitch || l.RemoteKind == "" }):
			m.noMulticast(n, n.Label+" has no NVLink to a switch")
			return
		case !known || !linked:
			m.gap("whether GPUs and NVSwitches can multicast is not known", readLive)
			return
		}
	}
}

func (m meeting) noMulticast(n *graph.Node, why string) {
	m.report(Finding{Severity: Warning, Subjects: []string{n.Key}, Expected: "unset, or 2: NCCL asks whether multicast is supported",
		Observed: m.String() + ": NCCL does not ask whether NVLink SHARP is supported, and fails where it is not; " + why, Fix: "whoever wrote it: delete it"})
}

// riskyHostID judges an identity that two hosts share.
func (a *Across) riskyHostID(s setting) {
	hosts := s.hosts
	if slices.Contains(hosts, "") {
		hosts = a.names()
	}
	if s.value == "" || len(hosts) < 2 {
		return
	}
	f := Finding{Severity: Warning, Certainty: Likely, Expected: "a value of its own on each host",
		Observed: fmt.Sprintf("%s on %s: NCCL takes them for one host and tries P2P and shared memory between them", s, someNames(hosts)),
		Fix:      "whoever starts the job: delete it; only containers of one and the same host may share a value"}
	for _, h := range hosts {
		f.Subjects = append(f.Subjects, HostKey(h))
	}
	a.reportSetting(s, f)
}
