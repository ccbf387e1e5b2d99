package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var hcaBondOneQP = Rule{
	ID:    "hca-bond-one-qp",
	Title: "Bonded HCA with one queue pair for each connection",
	Doc: `Fires for an ACTIVE HCA of a bond that spreads flows over two or more ports (modes
802.3ad and balance-xor) when NCCL opens one queue pair for each connection: a flow stays
on one port, so the bond gives a connection half its rate. One queue pair is NCCL's
default; likely where no source shows the setting.

warning.

Silent for other modes, and with NCCL_IB_QPS_PER_CONNECTION of two and more.`,
	Run: runHCABondOneQP,
}

func runHCABondOneQP(p *Pass) {
	for _, n := range p.facts.hcas {
		if !slices.ContainsFunc(n.HCA.Ports, probe.HCAPort.Active) {
			continue
		}
		dev := p.bondOf(n)
		switch {
		case dev == nil && strings.Contains(n.HCA.Name, "bond"):
			p.Gap("the mode of the bond is not in the sources", "record sys/class/net with the bonding folder of the interface too", n.Key)
			continue
		case dev == nil || len(dev.Bond.Slaves) < 2 || dev.Bond.Mode != "802.3ad" && dev.Bond.Mode != "balance-xor":
			continue
		}
		value, by := p.value("NCCL_IB_QPS_PER_CONNECTION")
		certainty, one := Sure, "NCCL_IB_QPS_PER_CONNECTION="+value
		switch value {
		case "1":
		case "":
			certainty, one = Likely, "1 queue pair for each connection, NCCL's default"
		default:
			continue
		}
		p.Report(Finding{
			Severity:  Warning,
			Certainty: certainty,
			Subjects:  []string{n.Key, "net:" + dev.Name},
			Expected:  fmt.Sprintf("at least 2 queue pairs for each connection on a bond of %d ports", len(dev.Bond.Slaves)),
			Observed:  fmt.Sprintf("%s joins %s (%s); %s", dev.Name, strings.Join(dev.Bond.Slaves, ", "), dev.Bond.Mode, one),
			Evidence:  append([]Evidence{evidence(dev.Origins, "bond", "bonding/mode", "mode %s of %s, slaves %s", dev.Bond.Mode, dev.Name, strings.Join(dev.Bond.Slaves, " "))}, by...),
			Fix:       "whoever starts the jobs: NCCL_IB_QPS_PER_CONNECTION=2 (4 with many flows), on NCCL 2.18 and 2.19 with NCCL_IB_SPLIT_DATA_ON_QPS=0. Administrator: see that the bond hashes by layer 3+4 or by queue affinity; better, do not bond ports that NCCL uses",
		})
	}
}

// bondOf returns the bonding interface of an HCA.
func (p *Pass) bondOf(n *graph.Node) *probe.NetDev {
	for i := range p.Inv.NetDevs {
		d := &p.Inv.NetDevs[i]
		joins := func(dev string) bool {
			return dev == d.Name || d.Bond != nil && slices.Contains(d.Bond.Slaves, dev)
		}
		if d.Bond != nil && slices.ContainsFunc(n.HCA.NetDevs, joins) {
			return d
		}
	}
	return nil
}
