package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var logInterfaceUnroutable = Rule{
	ID:    "log-interface-unroutable",
	Title: "NCCL chose an interface that does not reach other hosts",
	Doc: `Fires for a job over several hosts whose bootstrap or socket interface cannot reach
another host: a loopback or link-local address (127/8, 169.254/16, fe80::/10), lo,
docker*, virbr*, tunl*, ip6tnl*, cali*, or a veth* without a public address; or where
NCCL found no interface at all. Of a list of interfaces the bootstrap uses the first,
the socket transport uses all.

critical.

Silent on one host. Where the log does not show how far the job reaches, that is a gap.`,
	Across: runLogInterfaceUnroutable,
}

func runLogInterfaceUnroutable(a *Across) {
	const fix = "user: set NCCL_SOCKET_IFNAME to the routed interface on every host (names may differ: a list is allowed), and NCCL_SOCKET_FAMILY=AF_INET where only a link-local IPv6 address is up"
	reach := a.jobSpread()
	type choice struct{ use, host string }
	seen := map[choice]bool{}
	var subjects, texts []string
	var proof []Evidence
	certainty := Sure
	for _, i := range a.Job.Interfaces {
		first := !seen[choice{i.Use, i.Host}]
		seen[choice{i.Use, i.Host}] = true
		why, sure := unroutable(i)
		if why == "" || i.Use == probe.UseBootstrap && !first {
			continue
		}
		key := a.Key(i.Host, "net:"+i.Name)
		switch {
		case reach == oneHost:
			continue
		case reach == spreadUnknown:
			a.Gap(fmt.Sprintf("an interface that reaches no other host is used (%s); whether the job spans hosts is not in the log", why), askRanks, key)
			continue
		case !sure:
			certainty = Likely
		}
		if !slices.Contains(subjects, key) {
			subjects = append(subjects, key)
			texts = append(texts, fmt.Sprintf("%s%s (%s) as %s interface", hostPrefix(i.Host), i.Name, why, i.Use))
		}
		proof = append(proof, evidence(i.Origins, "", "", "%s%s uses %s:%s", hostPrefix(i.Host), i.Use, i.Name, i.Addr))
	}
	if len(subjects) > 0 {
		a.Report(Finding{
			Severity: Critical, Certainty: certainty, Subjects: subjects,
			Expected: "interfaces that reach the other hosts",
			Observed: "NCCL uses " + listed(texts),
			Evidence: few(proof), Fix: fix,
		})
	}
	if said := a.said(); len(said) > 0 {
		a.Report(Finding{
			Severity: Critical, Subjects: hostKeys(eventHosts(said)),
			Expected: "an interface for the bootstrap",
			Observed: "NCCL found no interface that its settings allow on " + listed(eventHosts(said)),
			Evidence: quotes(said), Fix: fix,
		})
	}
}

// unroutable says why an interface reaches no other host, "" where it may. sure is
// false where only its name says so.
func unroutable(i probe.Interface) (why string, sure bool) {
	addr, err := netip.ParseAddr(i.Addr)
	switch {
	case err == nil && addr.IsLoopback():
		return "loopback " + i.Addr, true
	case err == nil && addr.IsLinkLocalUnicast():
		return "link-local " + i.Addr, true
	}
	for _, prefix := range []string{"docker", "virbr", "tunl", "ip6tnl", "cali", "veth"} {
		if !strings.HasPrefix(i.Name, prefix) {
			continue
		}
		// In a container the routed interface may have such a name.
		if prefix == "veth" && err == nil && !addr.IsPrivate() {
			return "", false
		}
		return "a virtual interface, " + i.Addr, false
	}
	if i.Name == "lo" {
		return "loopback", true
	}
	return "", false
}
