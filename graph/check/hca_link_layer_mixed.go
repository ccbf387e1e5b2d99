package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var hcaLinkLayerMixed = Rule{
	ID:    "hca-link-layer-mixed",
	Title: "NCCL uses InfiniBand and Ethernet adapters together",
	Doc: `Fires for the adapters of the kind that fewer have, where the list that NET/IB prints
after its filters holds both InfiniBand and RoCE, or where both are among a host's
ACTIVE adapters. Connections between the two kinds cannot be made.

warning; critical when a queue pair failed with "invalid argument".

Silent where NCCL_IB_HCA leaves one kind: the list shows what is left.`,
	Across: runHCALinkLayerMixed,
}

func runHCALinkLayerMixed(a *Across) {
	severity := Warning
	for _, e := range a.saidOf(logQPFailed.ID) {
		if qpFailures[0].text.MatchString(e.Text) {
			severity = Critical
		}
	}
	byHost, hosts := a.linkLayers()
	var subjects, said, leave []string
	var proof []Evidence
	for _, h := range hosts {
		ib, eth := byHost[h]["InfiniBand"], byHost[h]["Ethernet"]
		if len(ib) == 0 || len(eth) == 0 {
			continue
		}
		minority := eth
		if len(ib) < len(eth) {
			minority = ib
		}
		for _, d := range minority {
			subjects = append(subjects, a.Key(h, "hca:"+d.name))
			proof = append(proof, d.proof)
			if !slices.Contains(leave, d.name) {
				leave = append(leave, d.name)
			}
		}
		said = append(said, fmt.Sprintf("%s%d InfiniBand, %d Ethernet", hostPrefix(h), len(ib), len(eth)))
	}
	if len(subjects) == 0 {
		return
	}
	a.Report(Finding{
		Severity: severity, Subjects: subjects,
		Expected: "adapters of one link layer",
		Observed: "NCCL uses both kinds: " + listed(said),
		Evidence: few(proof),
		Fix:      "user: NCCL_IB_HCA=^=" + strings.Join(leave, ",") + " leaves out " + strings.Join(leave, ", ") + "; or name the others, if those are the ones that do not reach the other hosts",
	})
}

// layered is an adapter that NCCL uses.
type layered struct {
	name  string
	proof Evidence
}

// linkLayers returns the adapters that NCCL uses by host and link layer: those that
// NET/IB lists, or where no log shows a list, the ones that are ACTIVE while nothing
// selects any.
func (a *Across) linkLayers() (byHost map[string]map[string][]layered, hosts []string) {
	byHost = map[string]map[string][]layered{}
	add := func(host, layer string, d layered) {
		if byHost[host] == nil {
			byHost[host] = map[string][]layered{}
			hosts = append(hosts, host)
		}
		byHost[host][layer] = append(byHost[host][layer], d)
	}
	for _, d := range a.Job.Adapters {
		if d.LinkLayer != "" {
			add(d.Host, d.LinkLayer, layered{d.Name, evidence(d.Origins, "", "", "%sNET/IB uses [%d] %s, %s", hostPrefix(d.Host), d.Index, d.Name, d.LinkLayer)})
		}
	}
	listedInLog := slices.Clone(hosts)
	for _, h := range a.Hosts {
		name := h.Inv.Host.Name
		if _, set := a.setting(ibHCA, name); set || slices.ContainsFunc(listedInLog, func(l string) bool { return probe.SameHostName(l, name) }) {
			continue
		}
		for _, d := range h.Inv.HCAs {
			for _, p := range d.Ports {
				if p.Active() && p.LinkLayer != "" {
					add(name, p.LinkLayer, layered{d.Name, evidence(d.Origins, "ports", fmt.Sprintf("ports/%d/link_layer", p.Port), "port %d of %s is ACTIVE, %s", p.Port, d.Name, p.LinkLayer)})
					break
				}
			}
		}
	}
	return byHost, names(hosts)
}
