package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envIBHCAMissing = Rule{
	ID:    "env-ib-hca-missing",
	Title: "NCCL_IB_HCA names what cannot be used",
	Doc: `Looks for the devices that NCCL_IB_HCA names on each host. Fires for an entry that fits
no HCA there (and none of the other hosts, whose names it may cover), whose port is not
ACTIVE, or whose InfiniBand subnet differs from that of all other chosen ports. Warning;
critical if no usable port is left.
Silent: ^ in front of a name that is absent; ports of unknown state.`,
	Across: func(a *Across) { a.judgeHCAs(runEnvIBHCAMissing) },
}

func runEnvIBHCAMissing(m meeting, list ncclenv.DeviceList) {
	var wrong []string
	f := Finding{Severity: Warning, Certainty: Sure, Expected: "HCAs of this host with an ACTIVE port",
		Fix: "whoever wrote it: list the HCAs that exist and are ACTIVE, or delete it; a port that should be up: see hca-port-down"}
	if !list.Exclude {
		for _, d := range list.Devices {
			what, nodes := m.entryFault(list, d)
			if what != "" {
				wrong = append(wrong, what)
				f.Subjects = append(f.Subjects, keys(nodes)...)
			}
		}
	}
	if what, n := m.oddSubnet(list); n != nil {
		wrong, f.Subjects, f.Certainty = append(wrong, what), append(f.Subjects, n.Key), Likely
	}
	if !slices.ContainsFunc(m.facts.hcas, func(n *graph.Node) bool { return allows(list, n.HCA) }) {
		f.Severity = Critical
		wrong = append(wrong, "no HCA is left to use")
	}
	if len(wrong) == 0 {
		return
	}
	f.Observed = fmt.Sprintf("%s: %s; the host has %s", m.setting, strings.Join(wrong, "; "), nodeNames(m.facts.hcas))
	m.report(f)
}

// entryFault says why an entry chooses nothing.
func (m meeting) entryFault(list ncclenv.DeviceList, d ncclenv.Device) (what string, nodes []*graph.Node) {
	for _, n := range m.facts.hcas {
		if fits(list, d, n.HCA.Name) {
			nodes = append(nodes, n)
		}
	}
	one := ncclenv.DeviceList{Exact: list.Exact, Devices: []ncclenv.Device{d}}
	switch {
	case len(nodes) == 0 && m.elsewhere(list, d):
		return "", nil
	case len(nodes) == 0:
		return d.Name + " does not exist", nil
	case slices.ContainsFunc(nodes, func(n *graph.Node) bool { return allows(one, n.HCA) }):
		return "", nil
	}
	if port, ok := d.Port.Get(); ok {
		return fmt.Sprintf("port %d of %s is not there or not ACTIVE", port, d.Name), nodes
	}
	return d.Name + " has no ACTIVE port", nodes
}

// elsewhere reports an entry that fits an HCA of another host.
func (m meeting) elsewhere(list ncclenv.DeviceList, d ncclenv.Device) bool {
	return slices.ContainsFunc(m.Hosts, func(t *graph.Topology) bool {
		return t != m.topo && slices.ContainsFunc(t.Inv.HCAs, func(h probe.HCA) bool { return fits(list, d, h.Name) })
	})
}

// oddSubnet finds a chosen InfiniBand port whose subnet is not that of all the
// others, which share one.
func (m meeting) oddSubnet(list ncclenv.DeviceList) (what string, odd *graph.Node) {
	bySubnet := map[string][]*graph.Node{}
	for _, n := range m.facts.hcas {
		if !allows(list, n.HCA) {
			continue
		}
		for _, p := range n.HCA.Ports {
			if p.LinkLayer == "InfiniBand" && p.Active() && len(p.GIDs) > 0 && p.GIDs[0].Index == 0 && len(p.GIDs[0].GID) >= 19 {
				prefix := p.GIDs[0].GID[:19]
				bySubnet[prefix] = append(bySubnet[prefix], n)
			}
		}
	}
	if len(bySubnet) != 2 {
		return "", nil
	}
	subnets := sortedKeys(bySubnet)
	a, b := subnets[0], subnets[1]
	if len(bySubnet[a]) != 1 {
		a, b = b, a
	}
	if len(bySubnet[a]) != 1 || len(bySubnet[b]) < 2 {
		return "", nil
	}
	odd = bySubnet[a][0]
	return fmt.Sprintf("%s is on InfiniBand subnet %s, the others on %s", odd.HCA.Name, a, b), odd
}
