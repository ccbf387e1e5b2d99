package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
)

var hcaFunctionsSharePort = Rule{
	ID:    "hca-functions-share-port",
	Title: "Several RDMA devices stand for one port",
	Doc: `Fires for usable RDMA devices that stand for one physical port: entries of a topology
file with one guid and port number, virtual functions of one function, functions of one
adapter on different buses (multi-host, socket direct). Their rates do not add up.

info; warning where three or more do, so that a plan counts the port several times.

Silent for the functions of one card on one bus, which are ports of their own.`,
	Run: runHCAFunctionsSharePort,
}

func runHCAFunctionsSharePort(p *Pass) {
	var ports []string
	by := map[string][]*graph.Node{}
	for _, n := range p.facts.hcas {
		if usability(n.HCA) != yes {
			continue
		}
		port := physicalPort(n)
		if by[port] == nil {
			ports = append(ports, port)
		}
		by[port] = append(by[port], n)
	}
	for _, port := range ports {
		hcas := by[port]
		if len(hcas) < 2 {
			continue
		}
		severity := Info
		if len(hcas) > 2 {
			severity = Warning
		}
		var proof []Evidence
		for _, n := range hcas {
			fact := "guid of " + n.Label + ": " + n.HCA.SysImageGUID
			if n.PCI != nil && n.PCI.PhysFn.Known() {
				fact = fmt.Sprintf("%s is a virtual function of %v", n.Label, n.PCI.PhysFn)
			}
			proof = append(proof, evidence(n.HCA.Origins, "sys_image_guid", "sys_image_guid", "%s", fact))
		}
		p.Report(Finding{
			Severity:  severity,
			Certainty: Likely,
			Subjects:  keys(hcas),
			Expected:  "one RDMA device for each port",
			Observed:  fmt.Sprintf("%s are one port: %s, 1 cable", labels(hcas), count(len(hcas), "device", "devices")),
			Evidence:  proof,
			Fix:       "whoever plans: the ceiling is the sum over cables, so count these devices once. If they are ports of their own, the guids in the topology file are wrong",
		})
	}
}
