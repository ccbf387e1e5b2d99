package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// DataHCAs lists the HCAs of a host that carry traffic between GPUs of several
// hosts: usable, near a GPU, and all of the model that most of those are. Others
// are for storage and management. It is empty where distances or ports are not
// known.
func DataHCAs(t *graph.Topology) []*graph.Node { return gather(t).dataHCAs() }

func (f *facts) dataHCAs() []*graph.Node {
	byModel := map[string][]*graph.Node{}
	best := ""
	for _, near := range []func(h int) bool{f.besideGPU, f.nearestToGPU} {
		for h, n := range f.hcas {
			if usability(n.HCA) == yes && near(h) {
				m := modelOf(n)
				byModel[m] = append(byModel[m], n)
			}
		}
		if len(byModel) > 0 {
			break
		}
	}
	for _, m := range sortedKeys(byModel) {
		if best == "" || cmp.Or(cmp.Compare(len(byModel[m]), len(byModel[best])), cmp.Compare(portRate(byModel[m][0]), portRate(byModel[best][0]))) > 0 {
			best = m
		}
	}
	return byModel[best]
}

// besideGPU reports an HCA that shares a switch with a GPU.
func (f *facts) besideGPU(h int) bool {
	return slices.ContainsFunc(f.class, func(row []graph.PathClass) bool { return row[h].Near() })
}

// nearestToGPU reports an HCA that no other is nearer than to some GPU.
func (f *facts) nearestToGPU(h int) bool {
	return slices.ContainsFunc(f.class, func(row []graph.PathClass) bool {
		return row[h] != graph.Unknown && !slices.ContainsFunc(row, func(c graph.PathClass) bool { return c != graph.Unknown && c < row[h] })
	})
}

// modelOf is what HCAs of one kind have in common.
func modelOf(n *graph.Node) string {
	id, _ := pciID(n.PCI)
	p, _ := fastestPort(n)
	return fmt.Sprintf("%s %s %d", id, p.LinkLayer, p.Rate.Or(0))
}

func portRate(n *graph.Node) probe.Rate {
	p, _ := fastestPort(n)
	return p.Rate.Or(0)
}

// allows reports whether a list lets NCCL use some usable port of an HCA.
func allows(l ncclenv.DeviceList, h *probe.HCA) bool {
	if len(h.Ports) == 0 {
		return l.Allows(h.Name, probe.Opt[int]{})
	}
	return slices.ContainsFunc(h.Ports, func(p probe.HCAPort) bool {
		return (p.State == "" || p.Active()) && l.Allows(h.Name, probe.Some(p.Port))
	})
}

// fits reports an entry of a list that stands for a device.
func fits(l ncclenv.DeviceList, d ncclenv.Device, name string) bool {
	return ncclenv.DeviceList{Exact: l.Exact, Devices: []ncclenv.Device{{Name: d.Name}}}.Allows(name, probe.Opt[int]{})
}

// judgeHCAs calls f for each host with HCAs on which NCCL_IB_HCA holds and is
// clear; rules say what else is wrong with it.
func (a *Across) judgeHCAs(f func(m meeting, list ncclenv.DeviceList)) {
	for _, s := range a.settings("NCCL_IB_HCA") {
		list := ncclenv.ParseDevices(s.value)
		if len(list.Devices) == 0 || len(s.effect.Complaints) > 0 {
			continue
		}
		a.meet(s, func(m meeting) {
			if len(m.facts.hcas) > 0 {
				f(m, list)
			}
		})
	}
}

func nodeNames(nodes []*graph.Node) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.HCA.Name
	}
	return strings.Join(out, ", ")
}
