package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

var logNetIntraNode = Rule{
	ID:    "log-net-intra-node",
	Title: "Ranks of one host talk through the network",
	Doc: `Fires for ranks of one host that are connected via NET while P2P and shared memory are
off by setting, while NCCL counts the host as several nodes (containers that do not
share /dev/shm, NCCL_HOSTID), or over sockets.

warning; critical over sockets.

Silent where NCCL prefers the NIC on purpose (GPUs on PCIe only with a faster NIC), and
in an NVLink domain of several hosts.`,
	Replaces: []string{"env-disables-transport"},
	Across:   runLogNetIntraNode,
}

func runLogNetIntraNode(a *Across) {
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		var ranks []int
		var pairs []string
		var proof []Evidence
		sockets := false
		host := ""
		for _, k := range c.Conns {
			h := hostOfRank(c, k.From)
			if k.Via != probe.ViaNET || h == "" || h != hostOfRank(c, k.To) {
				continue
			}
			host = h
			sockets = sockets || k.Network == "Socket"
			for _, r := range []int{k.From, k.To} {
				if !slices.Contains(ranks, r) {
					ranks = append(ranks, r)
				}
			}
			if p := fmt.Sprintf("%d to %d", k.From, k.To); !slices.Contains(pairs, p) {
				pairs = append(pairs, p)
				proof = append(proof, evidence(k.Origins, "", "", "%srank %d to %d via NET/%s", hostPrefix(h), k.From, k.To, k.Network))
			}
		}
		if len(ranks) == 0 {
			continue
		}
		var causes, keys []string
		for _, name := range []string{"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"} {
			if e, on := a.switchedOn(name, host); on {
				keys = append(keys, "env:"+name)
				causes = append(causes, name+"=1")
				proof = append(proof, settingEvidence(e))
			}
		}
		if nodes, ok := c.Nodes.Get(); ok && len(hostsOf(c)) > 0 && spreadOf(c) == oneHost && nodes > 1 && len(causes) < 2 {
			causes = append(causes, fmt.Sprintf("NCCL counts %d nodes on one host", nodes))
		}
		if len(causes) == 0 && !sockets || len(causes) == 1 && causes[0] == "NCCL_P2P_DISABLE=1" && !sockets {
			continue // a NIC may be the better way
		}
		severity := Warning
		if sockets {
			severity = Critical
		}
		slices.Sort(ranks)
		var subjects []string
		for _, r := range ranks[:min(len(ranks), 16)] {
			subjects = append(subjects, memberKey(c, r))
		}
		why := ""
		if len(causes) > 0 {
			why = ": " + listed(causes)
		}
		a.Report(Finding{
			Severity: severity, Subjects: append(subjects, keys...),
			Expected: "P2P or shared memory between ranks of one host",
			Observed: "through the network on one host: rank " + listed(pairs) + why,
			Evidence: last(proof, len(causes)),
			Fix:      "user: unset NCCL_SHM_DISABLE and NCCL_P2P_DISABLE; with a container for each rank, share /dev/shm and the IPC and PID namespaces (--ipc=host, --pid=host) and let NCCL_HOSTID be equal",
		})
	}
}

// last cuts evidence as few does, and keeps the n at its end.
func last(proof []Evidence, n int) []Evidence {
	n = min(n, len(proof))
	return append(few(proof[:len(proof)-n]), proof[len(proof)-n:]...)
}
