package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envSocketIfname = Rule{
	ID:    "env-socket-ifname",
	Title: "NCCL_SOCKET_IFNAME chooses a wrong interface",
	Doc: `Applies NCCL_SOCKET_IFNAME to the interfaces of each host. Fires for a list that
excludes without excluding lo (the user's list replaces NCCL's own exclusion of lo and
docker), one that fits no interface of the host or only virtual ones, and one of a single
character, which NCCL ignores. Warning; critical if nothing or only lo is left; info for
lo in a job that stays on one host.
Silent: names of physical interfaces; ^docker0,lo; a list that covers the names of
several hosts. A host whose interfaces are not known is a gap, unless a log shows which
one NCCL took.`,
	Across: runEnvSocketIfname,
}

// isIgnoredIfname reports a value so short that NCCL ignores it (misc/socket.cc).
func isIgnoredIfname(s setting) bool { return s.name == "NCCL_SOCKET_IFNAME" && len(s.value) == 1 }

const routed = "the interface with the default route, or ^docker0,lo"

func runEnvSocketIfname(a *Across) {
	for _, s := range a.settings("NCCL_SOCKET_IFNAME") {
		list := ncclenv.ParseDevices(s.value)
		f := Finding{Severity: Warning, Expected: routed, Fix: "whoever wrote it: name the interface with the default route, or write ^docker0,lo"}
		switch {
		case isIgnoredIfname(s):
			f.Observed = s.String() + ": NCCL ignores a value of one character"
			a.reportSetting(s, f)
		case len(s.effect.Complaints) > 0 || len(list.Devices) == 0: // env-bad-value speaks, or it is as if unset
		case len(s.known()) > 0 || !a.interfaceSeen(s):
			a.meet(s, func(m meeting) { m.ifname(list) })
		}
		if list.Exclude && list.Allows("lo", probe.Opt[int]{}) && len(s.known()) == 0 && len(s.effect.Complaints) == 0 {
			f.Observed = s.String() + ": " + readmits
			a.reportSetting(s, f)
		}
	}
}

const readmits = "the list replaces NCCL's own exclusion of lo and docker, so lo is a candidate again"

// interfaceSeen reports a log that shows the interface which NCCL took.
func (a *Across) interfaceSeen(s setting) bool {
	return slices.ContainsFunc(a.Job.Interfaces, func(i probe.Interface) bool {
		return slices.Contains(s.hosts, "") || slices.Contains(s.hosts, i.Host)
	})
}

func (m meeting) ifname(list ncclenv.DeviceList) {
	names, physical := m.interfaces()
	if names == nil && !(list.Exclude && list.Allows("lo", probe.Opt[int]{})) {
		m.gap("the host's network interfaces are not in the sources", readLive)
		return
	}
	var left, real []string
	for _, n := range names {
		if list.Allows(n, probe.Opt[int]{}) {
			if left = append(left, n); slices.Contains(physical, n) {
				real = append(real, n)
			}
		}
	}
	f := Finding{Severity: Warning, Expected: routed, Fix: m.ifnameFix(physical)}
	for _, n := range left {
		f.Subjects = append(f.Subjects, "net:"+n)
	}
	what := ""
	switch {
	case len(left) == 0 && names != nil:
		f.Severity, what = Critical, fmt.Sprintf("no interface of the host fits (it has %s)", strings.Join(names, ", "))
	case len(left) == 1 && left[0] == "lo":
		f.Severity, what = Critical, "only lo is left, which no other host reaches"
		if m.jobSpread() == oneHost {
			f.Severity = Info
		}
	case len(real) == 0 && names != nil:
		what = "only virtual interfaces are left: " + strings.Join(left, ", ")
	case list.Exclude && list.Allows("lo", probe.Opt[int]{}):
		f.Subjects, what = []string{"net:lo"}, readmits
	default:
		return
	}
	f.Observed = m.String() + ": " + what
	m.report(f)
}

// interfaces lists the host's interfaces and which of them are physical; nil
// where the sources do not show them all.
func (m meeting) interfaces() (names, physical []string) {
	complete := false
	for _, n := range m.topo.Inv.NetDevs {
		names = append(names, n.Name)
		if !n.Virtual {
			physical = append(physical, n.Name)
		}
		complete = complete || slices.ContainsFunc(n.Origins, func(o probe.Origin) bool { return o.Source == probe.SourceSysfs })
	}
	for _, h := range m.topo.Inv.HCAs {
		for _, n := range h.NetDevs {
			if !slices.Contains(names, n) {
				names, physical = append(names, n), append(physical, n)
			}
		}
	}
	if !complete {
		return nil, physical
	}
	return names, physical
}

func (m meeting) ifnameFix(physical []string) string {
	who := "whoever wrote it: "
	if len(physical) == 0 {
		return who + "name the interface with the default route, or write ^docker0,lo"
	}
	return fmt.Sprintf("%sname the interface with the default route (physical here: %s), or write ^docker0,lo", who, strings.Join(physical, ", "))
}
