package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// current is the value that the sources set a variable to; ok is false where they
// set none, or where nothing decides between several.
func (f *facts) current(name string) (value string, ok bool) {
	for _, s := range check.Settings(f.job) {
		if s.Name == name {
			return s.Value.Get()
		}
	}
	return "", false
}

// faults are the findings of settings rules about a variable.
func (f *facts) faults(name string) (out []check.Finding) {
	for _, x := range f.res.Findings {
		if strings.HasPrefix(x.Rule, "env-") && slices.ContainsFunc(x.Subjects, func(s string) bool {
			_, key := check.SplitSubject(s)
			return key == "env:"+name
		}) {
			out = append(out, x)
		}
	}
	return out
}

// remark tells of what is set now and should not be; "" = nothing.
func (f *facts) remark(name string) string {
	for _, x := range f.faults(name) {
		if x.Severity > check.Info {
			return fmt.Sprintf("; it is set now, and should not be so (see %s)", x.Rule)
		}
	}
	return ""
}

// physical lists the host's physical interfaces that are not known to be down.
func (f *facts) physical() (names []string) {
	add := func(name string) {
		i := slices.IndexFunc(f.inv.NetDevs, func(d probe.NetDev) bool { return d.Name == name })
		down := i >= 0 && (f.inv.NetDevs[i].Carrier == probe.Some(false) || f.inv.NetDevs[i].State == "down")
		if !down && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, n := range f.nets {
		add(n.NetDev.Name)
	}
	for _, n := range f.hcas {
		for _, d := range n.HCA.NetDevs {
			add(d)
		}
	}
	return names
}

// setIfname corrects a choice of interfaces that the sources make.
func (f *facts) setIfname() (Variable, bool) {
	fault, ok := f.finding("env-socket-ifname")
	old, set := f.current("NCCL_SOCKET_IFNAME")
	if !ok || !set || fault.Severity == check.Info {
		return Variable{}, false
	}
	v := Variable{Evidence: fault.Evidence, Risk: "the name must be that of each host that takes this file", Since: "2.0",
		Verify: "NCCL_DEBUG=INFO prints the interface behind \"Bootstrap: Using\""}
	list := ncclenv.ParseDevices(old)
	switch names := f.physical(); {
	case len(names) == 1:
		v.Value = "=" + names[0]
		v.Why = fmt.Sprintf("%s. %s is the only physical interface that is up.", fault.Observed, names[0])
	case list.Exclude && !covers(list, "lo"):
		v.Value = "^" + strings.Join(append(deviceNames(list), "lo"), ",")
		v.Why = fault.Observed + ". The list keeps what it excludes and takes lo away again."
		v.Risk = "low: what is excluded already stays so"
	default:
		return Variable{}, false
	}
	return v, true
}

// covers reports a name that a list names, whether to use or to leave out.
func covers(l ncclenv.DeviceList, name string) bool {
	l.Exclude = false
	return l.Allows(name, probe.Opt[int]{})
}

func deviceNames(l ncclenv.DeviceList) (names []string) {
	for _, d := range l.Devices {
		names = append(names, d.Name)
	}
	return names
}

// setHCA leaves out HCAs of another link layer, and corrects a choice of HCAs that
// the sources make. Where no list is needed, it is declined.
func (f *facts) setHCA() (Variable, bool) {
	if fault, ok := f.finding("hca-link-layer-mixed"); ok {
		return f.leaveOut(fault)
	}
	old, set := f.current("NCCL_IB_HCA")
	if !set {
		return Variable{}, false
	}
	var fault check.Finding
	for _, rule := range []string{"env-ib-hca-subset", "env-ib-hca-missing", "env-ib-hca-prefix"} {
		if x, ok := f.finding(rule); ok && fault.Rule == "" {
			fault = x
		}
	}
	data := hcaNames(check.DataHCAs(f.topo))
	if fault.Rule == "" || len(data) == 0 {
		return Variable{}, false
	}
	chosen := data
	if fault.Rule == "env-ib-hca-prefix" || fault.Rule == "env-ib-hca-missing" && fault.Severity < check.Critical {
		chosen = f.meant(ncclenv.ParseDevices(old))
	}
	if len(chosen) == 0 || len(chosen) == f.usable() {
		return Variable{}, false // all that can be used: no list is needed
	}
	return Variable{
		Value:    "=" + strings.Join(chosen, ","),
		Why:      fmt.Sprintf("%s. The list names whole devices that exist and carry data.", fault.Observed),
		Evidence: fault.Evidence,
		Risk:     "names may differ on other hosts, and after a change of hardware",
		Since:    "2.0",
		Verify:   "NCCL_DEBUG=INFO lists the devices behind \"NET/IB : Using\"",
	}, true
}

// meant lists the HCAs that a list's entries stand for by their whole names.
func (f *facts) meant(l ncclenv.DeviceList) (names []string) {
	for _, n := range f.hcas {
		named := slices.Contains(deviceNames(l), n.HCA.Name)
		if named != l.Exclude {
			names = append(names, n.HCA.Name)
		}
	}
	return names
}

// usable counts the HCAs that are not known to be down.
func (f *facts) usable() int { return len(f.hcas) - f.downHCAs() }

func hcaNames(nodes []*graph.Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.HCA.Name)
	}
	return names
}

// setGID names the GID that NCCL before 2.21 does not find itself, where all RoCE
// ports have it at one index.
func (f *facts) setGID() (Variable, bool) {
	fault, ok := f.finding("hca-gid-unusable")
	if !ok || !f.needsGID() {
		return Variable{}, false
	}
	index := -1
	for _, n := range f.hcas {
		for _, p := range n.HCA.Ports {
			if !p.Active() || p.LinkLayer != "Ethernet" {
				continue
			}
			g, ok := check.RoutableGID(p)
			if !ok || index >= 0 && g.Index != index {
				return Variable{}, false
			}
			index = g.Index
		}
	}
	return Variable{
		Value: fmt.Sprint(index), Why: fault.Observed + fmt.Sprintf(". Index %d is the RoCE v2 entry with an IPv4 address.", index),
		Evidence: fault.Evidence, Risk: "the index may differ on other hosts and after a reboot", Since: "2.1.4", Until: "2.20",
		Verify: "connections come up; show_gids lists the entry on every host",
	}, index >= 0
}

// needsGID reports that every NCCL of which the sources tell is older than 2.21, and
// that they tell of one.
func (f *facts) needsGID() bool {
	versions := []string{f.inv.Runtime.NCCL}
	for _, v := range f.job.Versions {
		versions = append(versions, v.NCCL)
	}
	versions = slices.DeleteFunc(versions, func(v string) bool { return v == "" })
	return len(versions) > 0 && !slices.ContainsFunc(versions, func(s string) bool {
		v, err := graph.ParseNCCLVersion(s)
		return err != nil || v.AtLeast(21, 0)
	})
}

func (f *facts) setQPs() (Variable, bool) {
	fault, ok := f.finding("hca-bond-one-qp")
	return Variable{
		Value: "2", Why: fault.Observed + ". One flow uses one port of the bond.",
		Evidence: fault.Evidence, Risk: "more queue pairs cost memory; on NCCL 2.18 and 2.19 set NCCL_IB_SPLIT_DATA_ON_QPS=0 too", Since: "2.10.3",
		Verify: "both ports of the bond count bytes (ethtool -S)",
	}, ok
}
