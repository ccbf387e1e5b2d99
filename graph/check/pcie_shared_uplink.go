package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var pcieSharedUplink = Rule{
	ID:    "pcie-shared-uplink",
	Title: "HCA ports share a PCIe link that is too narrow for them",
	Doc: `Fires for a PCIe link that several HCA ports share on their way to the nearest GPU, or
to the root where none is below it, when its encoded rate is below 95 % of the sum of the
ACTIVE ports behind it.

warning.

Traffic to a GPU behind the same switch turns round below the link and does not count;
functions that stand for one port count once. Silent in a guest.`,
	Run: runPCIeSharedUplink,
}

func runPCIeSharedUplink(p *Pass) {
	if len(p.Guest()) > 0 {
		return
	}
	type load struct {
		link *graph.Link
		hcas []*graph.Node
		sum  probe.Rate
	}
	var loads []load
	counted := map[string]bool{}
	for h, n := range p.facts.hcas {
		rate, ok := p.portsRate(n)
		if port := physicalPort(n); !ok || counted[port] {
			continue
		} else {
			counted[port] = true
		}
		for _, l := range p.hcaPath(h) {
			if l.A.Kind == graph.KindGPU {
				continue
			}
			i := slices.IndexFunc(loads, func(o load) bool { return sameSlot(o.link, l) })
			if i < 0 {
				i = len(loads)
				loads = append(loads, load{link: l})
			}
			loads[i].hcas = append(loads[i].hcas, n)
			loads[i].sum += rate
		}
	}
	var reported [][]*graph.Node
	for _, l := range loads {
		can, ok := capacity(l.link).Get()
		if !ok || len(l.hcas) < 2 || float64(can) >= enough*float64(l.sum) ||
			slices.ContainsFunc(reported, func(r []*graph.Node) bool { return slices.Equal(r, l.hcas) }) {
			continue // of several links in a row the nearest is told
		}
		reported = append(reported, l.hcas)
		proof := linkEvidence(l.link)
		for _, n := range l.hcas {
			if pt, ok := fastestPort(n); ok {
				proof = append(proof, rateEvidence(n.HCA, pt))
			}
		}
		certainty := Sure
		if fromTopoFile(l.link.Origins) {
			certainty = Likely // the file may have been written by hand
		}
		p.Report(Finding{
			Severity:  Warning,
			Certainty: certainty,
			Subjects:  append([]string{l.link.Key(), "pci:" + l.link.FuncA.Addr.String()}, keys(l.hcas)...),
			Expected:  fmt.Sprintf("%s for the ports of %s together", l.sum, labels(l.hcas)),
			Observed:  fmt.Sprintf("one link %s, %.0f %% of it", linkText(carrying(l.link)), 100*float64(can)/float64(l.sum)),
			Evidence:  proof,
			Fix: fmt.Sprintf("whoever plans: count %s as one HCA of %s. Hardware service can move a card to a slot of its own; if the topology file shows the sharing and the hardware has none, correct the file",
				labels(l.hcas), can),
		})
	}
}

// portsRate sums the rates of an HCA's usable ports.
func (p *Pass) portsRate(n *graph.Node) (sum probe.Rate, ok bool) {
	if usability(n.HCA) != yes {
		return 0, false
	}
	fromFile := fromTopoFile(n.HCA.Origins)
	for _, pt := range n.HCA.Ports {
		r, known := pt.Rate.Get()
		if known && (pt.Active() || pt.State == "" && fromFile) && notBelievable(n, pt) == "" {
			sum += r
		}
	}
	return sum, sum > 0
}

// physicalPort names the port that an HCA stands for: functions of equal name
// share it. In a topology file those are entries of one guid and port number. In
// sysfs they are virtual functions of one function, and functions of one adapter
// on different buses (multi-host, socket direct); those on one bus are ports of
// their own.
func physicalPort(n *graph.Node) string {
	guid := n.HCA.SysImageGUID
	switch {
	case fromTopoFile(n.HCA.Origins):
		if guid != "" && len(n.HCA.Ports) > 0 {
			return fmt.Sprintf("%s/%d", guid, n.HCA.Ports[0].Port)
		}
	case n.PCI == nil:
	case n.PCI.PhysFn.Known():
		return "vf:" + n.PCI.PhysFn.String()
	case guid != "":
		return fmt.Sprintf("%s.%d", guid, n.PCI.Addr.Fn)
	}
	return n.Key
}
