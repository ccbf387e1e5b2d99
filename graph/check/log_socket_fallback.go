package check

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var logSocketFallback = Rule{
	ID:    "log-socket-fallback",
	Title: "Job over several hosts runs over TCP sockets",
	Doc: `Fires for hosts of a job over several hosts that use sockets although RDMA was there
or was tried: NET/IB warnings or a list of adapters, the OFI plugin's provider tcp,
NCCL_IB_HCA set, or an ACTIVE adapter in another source.

critical; info where "NET/IB : No device found" is the only sign.

Silent on one host, and where NCCL_NET=Socket or NCCL_IB_DISABLE=1 asks for it. Where
nothing tells whether the hosts have RDMA adapters, that is a gap.`,
	Across: runLogSocketFallback,
}

func runLogSocketFallback(a *Across) {
	type group struct {
		hosts []string
		proof []Evidence
	}
	var strong, weak group
	var blind []string
	for _, h := range a.wideHosts() {
		sockets := a.socketsOn(h)
		if len(sockets) == 0 || a.wantsSockets(h) {
			continue
		}
		signs, sure := a.rdmaSigns(h)
		switch {
		case sure:
			strong.hosts = append(strong.hosts, h)
			strong.proof = append(strong.proof, append(signs, sockets...)...)
		case len(signs) > 0:
			weak.hosts = append(weak.hosts, h)
			weak.proof = append(weak.proof, append(signs, sockets...)...)
		default:
			blind = append(blind, h)
		}
	}
	a.Gap("the ranks use sockets, and whether the hosts have RDMA adapters is not known", askHost, hostKeys(blind)...)
	if len(strong.hosts) > 0 {
		a.Report(Finding{
			Severity: Critical, Subjects: hostKeys(strong.hosts),
			Expected: "an RDMA network between the hosts",
			Observed: "ranks on " + listed(strong.hosts) + " use TCP sockets, although RDMA is there or was tried",
			Evidence: few(strong.proof),
			Fix:      "administrator: remove the cause that the evidence names (adapter that cannot be opened, plugin that is missing, port that is down), in the container too; NCCL_NET=IB, or the plugin's name, then makes the job fail loudly instead of falling back",
		})
	}
	if len(weak.hosts) > 0 {
		a.Report(Finding{
			Severity: Info, Certainty: Possible, Subjects: hostKeys(weak.hosts),
			Expected: "an RDMA network between the hosts, if they have one",
			Observed: "ranks on " + listed(weak.hosts) + " use TCP sockets: NCCL found no RDMA device",
			Evidence: few(weak.proof),
			Fix:      "nothing if the hosts have no RDMA adapter; else look at ibv_devices inside the job's container and pass /dev/infiniband into it",
		})
	}
}

// socketsOn returns what shows that a host's traffic goes over TCP.
func (a *Across) socketsOn(host string) []Evidence {
	for _, n := range a.used(host) {
		if n.Name == "Socket" {
			return []Evidence{evidence(n.Origins, "", "", "%sUsing network Socket", hostPrefix(host))}
		}
	}
	if e, ok := a.tcpProvider(host); ok {
		return quotes([]probe.Event{e})
	}
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		for _, k := range c.Conns {
			if k.Network == "Socket" && (hostOfRank(c, k.From) == host || hostOfRank(c, k.To) == host) {
				return []Evidence{evidence(k.Origins, "", "", "rank %d to %d via NET/Socket", k.From, k.To)}
			}
		}
	}
	return nil
}

// tcpProvider returns the line in which the OFI plugin takes a provider without
// RDMA.
func (a *Across) tcpProvider(host string) (probe.Event, bool) {
	for _, e := range a.Job.Events {
		if e.Host != host {
			continue
		}
		_, name, ok := strings.Cut(e.Text, "Selected Provider is ")
		if !ok {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		name, _, _ = strings.Cut(name, ";") // tcp;ofi_rxm
		if slices.Contains([]string{"tcp", "sockets", "net", "udp"}, name) {
			return e, true
		}
	}
	return probe.Event{}, false
}

// wantsSockets reports settings that ask for TCP: another rule's matter.
func (a *Across) wantsSockets(host string) bool {
	net, _ := a.setting("NCCL_NET", host)
	_, off := a.switchedOn("NCCL_IB_DISABLE", host)
	return off || strings.EqualFold(net.Value, "Socket")
}

// rdmaSigns returns what shows that a host has RDMA, or that somebody expects it.
// sure is false where NCCL only looked and found nothing.
func (a *Across) rdmaSigns(host string) (proof []Evidence, sure bool) {
	if e, ok := a.tcpProvider(host); ok {
		return quotes([]probe.Event{e}), true
	}
	for _, e := range a.Job.Events {
		if e.Kind == probe.EventWarning && e.Host == host && (strings.Contains(e.Text, "NET/IB") || strings.Contains(e.Text, "ibv_")) {
			proof = append(proof, quotes([]probe.Event{e})...)
		}
	}
	for _, d := range a.Job.Adapters {
		if d.Host == host && d.LinkLayer != "" {
			proof = append(proof, evidence(d.Origins, "", "", "%sNET/IB lists %s", hostPrefix(host), d.Name))
		}
	}
	if e, ok := a.setting("NCCL_IB_HCA", host); ok {
		proof = append(proof, settingEvidence(e))
	}
	if h := a.Host(host); h != nil {
		for _, d := range h.Inv.HCAs {
			for _, p := range d.Ports {
				if p.Active() {
					proof = append(proof, evidence(d.Origins, "ports", "", "port %d of %s is ACTIVE", p.Port, d.Name))
				}
			}
		}
	}
	if len(proof) > 0 {
		return few(proof), true
	}
	for _, n := range a.Job.Networks {
		if n.Host == host && n.Name == "IB" && (n.State == probe.NetNoDevice || n.State == probe.NetFailed) {
			return []Evidence{evidence(n.Origins, "", "", "%sNET/IB: %s", hostPrefix(host), n.State)}, false
		}
	}
	return nil, false
}
