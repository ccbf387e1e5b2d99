package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var hcaGIDUnusable = Rule{
	ID:    "hca-gid-unusable",
	Title: "RoCE port has no usable address at the GID index in use",
	Doc: `Fires for an ACTIVE Ethernet port whose GID at the index that NCCL uses is empty,
link-local (fe80::/10), or RoCE v1 while there is a RoCE v2 entry with an IPv4 address;
and for one without any entry that NCCL's own choice takes. The index is that of
NCCL_IB_GID_INDEX; from NCCL 2.21 on NCCL chooses. Before it takes index 0, which is always
link-local and good within one Ethernet segment: fires for it only where a job's log shows
that a queue pair could not be connected.

critical: connections fail.

Silent for InfiniBand, and for IPv6 entries with NCCL_IB_ADDR_FAMILY=AF_INET6.`,
	Run: runHCAGIDUnusable,
}

// gidChoiceMajor and gidChoiceMinor are the version from which NCCL chooses the GID itself.
const gidChoiceMajor, gidChoiceMinor = 2, 21

func runHCAGIDUnusable(p *Pass) {
	set, by := p.value("NCCL_IB_GID_INDEX")
	family, _ := p.value("NCCL_IB_ADDR_FAMILY")
	version := p.nccl()
	old := NCCLBefore(version, gidChoiceMajor, gidChoiceMinor)
	for _, n := range p.facts.hcas {
		for _, port := range n.HCA.Ports {
			if !port.Active() || port.LinkLayer != "Ethernet" || isEFA(n) {
				continue
			}
			if len(port.GIDs) == 0 {
				p.Gap("the GID table of the port is not in the sources", "run ncclmap on the host itself, or record ports/*/gids and gid_attrs too", portKey(n.HCA, port))
				continue
			}
			best := slices.IndexFunc(port.GIDs, func(g probe.GID) bool { return routable(g, family) })
			index, fixed := -1, set != "" && !strings.HasPrefix(set, "-")
			if i, err := strconv.Atoi(set); fixed && err == nil {
				index = i
			} else if set == "" && old {
				failed := p.queuePairFailed()
				if failed == nil {
					p.Gap("NCCL before 2.21 takes GID index 0, which is link-local: whether all hosts are on one Ethernet segment is not in the sources",
						"run a job with NCCL_DEBUG=INFO, and read its log beside this", portKey(n.HCA, port))
					continue
				}
				index, by = 0, []Evidence{evidence(failed.Origins, "", "", "%s", failed.Text)}
			}
			why := ""
			switch {
			case index >= 0:
				why = unusableAt(port, index, family, best >= 0)
			case best < 0:
				why = "no RoCE v2 entry with an IPv4 address"
				if family == "AF_INET6" {
					why = "no RoCE v2 entry with a global IPv6 address"
				}
			}
			if why != "" {
				p.reportGID(n, port, why, best, fixed, by)
			}
		}
	}
}

// queuePairFailed returns the line of a job that could not connect.
func (p *Pass) queuePairFailed() *probe.Event {
	for i, e := range p.Job.Events {
		if strings.Contains(e.Text, "ibv_modify_qp failed") {
			return &p.Job.Events[i]
		}
	}
	return nil
}

func (p *Pass) reportGID(n *graph.Node, port probe.HCAPort, why string, best int, fixed bool, by []Evidence) {
	subjects := []string{portKey(n.HCA, port)}
	if fixed {
		subjects = append(subjects, "env:NCCL_IB_GID_INDEX")
	}
	fix := "administrator: give the interface of this port an IPv4 address; its RoCE v2 GID then appears by itself"
	if best >= 0 {
		fix = fmt.Sprintf("whoever starts the jobs: with NCCL before 2.21 NCCL_IB_GID_INDEX=%d; from 2.21 on remove the variable, NCCL chooses (NCCL_IB_ADDR_RANGE where several entries match)", port.GIDs[best].Index)
	}
	proof := slices.Clone(by)
	for _, g := range port.GIDs {
		proof = append(proof, evidence(n.HCA.Origins, "ports", fmt.Sprintf("ports/%d/gids/%d", port.Port, g.Index), "GID %d: %s, %s", g.Index, g.GID, orUnknown(g.Type)))
	}
	p.Report(Finding{
		Severity: Critical,
		Subjects: subjects,
		Expected: "a RoCE v2 GID with a routable address at the index in use",
		Observed: why,
		Evidence: proof,
		Fix:      fix,
	})
}

func orUnknown(s string) string {
	if s == "" {
		return "type unknown"
	}
	return s
}

// unusableAt says what is wrong with a port's GID; "" for a usable one.
func unusableAt(port probe.HCAPort, index int, family string, better bool) string {
	i := slices.IndexFunc(port.GIDs, func(g probe.GID) bool { return g.Index == index })
	if i < 0 {
		return fmt.Sprintf("GID index %d is empty", index)
	}
	g := port.GIDs[i]
	a, ok := gidAddress(g)
	switch {
	case ok && a.IsLinkLocalUnicast():
		return fmt.Sprintf("GID index %d is link-local: %s", index, a)
	case g.Type == gidRoCEv1 && better:
		return fmt.Sprintf("GID index %d is RoCE v1, and there is a RoCE v2 entry", index)
	}
	return ""
}

// gidRoCEv1 is the kernel's name of a GID type.
const gidRoCEv1 = "IB/RoCE v1"

// routable reports an entry that NCCL's own choice takes: RoCE v2 with an
// IPv4-mapped address, or a global IPv6 one where the family says so.
func routable(g probe.GID, family string) bool {
	a, ok := gidAddress(g)
	if !ok || g.Type == gidRoCEv1 || a.IsLinkLocalUnicast() {
		return false
	}
	return a.Is4In6() == (family != "AF_INET6")
}

func gidAddress(g probe.GID) (netip.Addr, bool) {
	a, err := netip.ParseAddr(g.GID)
	return a, err == nil
}
