package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var netVirtualInterfaces = Rule{
	ID:    "net-virtual-interfaces",
	Title: "Virtual interfaces are among those that NCCL's sockets may take",
	Doc: `Fires for a host without a usable RDMA network whose interfaces that are up include
virtual ones (veth, br-, docker, virbr, cali, cni, flannel, tunl, ip6tnl, tap) beside a
physical one of 10 Gb/s or less: NCCL takes 10 Gb/s for each of unknown speed, so they
look as good. lo and docker are left out by NCCL itself while NCCL_SOCKET_IFNAME is unset.

warning; sure where a job's log lists them, possible where only the kernel shows them: it
does not say here which of them has an address.

Silent with an RDMA network, and where NCCL_SOCKET_IFNAME leaves them out.`,
	Run: runNetVirtualInterfaces,
}

// virtualNames are the beginnings of names that container and virtual machine
// software gives its interfaces.
var virtualNames = []string{"veth", "br-", "docker", "virbr", "cali", "cni", "flannel", "tunl", "ip6tnl", "tap"}

// assumedSpeed is what NCCL takes for an interface of unknown speed
// (misc/socket.cc, net_socket.cc getSpeed: 10 Gb/s).
var assumedSpeed = probe.Mbps(10e3)

func runNetVirtualInterfaces(p *Pass) {
	if slices.ContainsFunc(p.facts.hcas, func(n *graph.Node) bool { return usability(n.HCA) != no }) || len(p.facts.gpus) == 0 {
		return
	}
	list, by := p.value("NCCL_SOCKET_IFNAME")
	allowed := ncclenv.ParseDevices(list)
	if list == "" {
		allowed = ncclenv.DeviceList{Exclude: true, Devices: []ncclenv.Device{{Name: "lo"}, {Name: "docker"}}}
	}
	var virtual, physical []string
	var best probe.Rate
	var subjects []string
	proof := slices.Clone(by)
	certainty := Possible
	for _, d := range p.Inv.NetDevs {
		up := d.Carrier == probe.Some(true) || d.State == "up"
		switch {
		case !up || !allowed.Allows(d.Name, probe.Opt[int]{}):
		case slices.ContainsFunc(virtualNames, func(b string) bool { return strings.HasPrefix(d.Name, b) }):
			virtual = append(virtual, d.Name)
			subjects = append(subjects, "net:"+d.Name)
			proof = append(proof, evidence(d.Origins, "state", "operstate", "%s is up", d.Name))
			if i := slices.IndexFunc(p.Job.Interfaces, func(x probe.Interface) bool { return x.Name == d.Name && x.Use == probe.UseSocket && p.Here(x.Host) }); i >= 0 {
				certainty = Sure
				proof = append(proof, evidence(p.Job.Interfaces[i].Origins, "", "", "NCCL uses %s", d.Name))
			}
		case !d.Virtual:
			physical = append(physical, d.Name)
			best = max(best, d.Speed.Or(assumedSpeed))
		}
	}
	if len(virtual) == 0 || len(physical) == 0 || best > assumedSpeed {
		return
	}
	p.Report(Finding{
		Severity:  Warning,
		Certainty: certainty,
		Subjects:  subjects,
		Expected:  "only physical interfaces: " + strings.Join(physical, ", "),
		Observed:  fmt.Sprintf("%s too, at an assumed %s", strings.Join(virtual, ", "), assumedSpeed.Gbps()),
		Evidence:  proof,
		Fix:       fmt.Sprintf("whoever starts the jobs: NCCL_SOCKET_IFNAME=%s, the interface with the route to the other hosts", physical[0]),
	})
}
