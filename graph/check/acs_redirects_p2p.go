package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var acsRedirectsP2P = Rule{
	ID:    "acs-redirects-p2p",
	Title: "ACS sends traffic between devices over the CPU",
	Doc: `Fires for the bridges between two GPUs that talk over PCIe, or between a GPU and an
HCA below one switch, whose ACS control register (extended capability 0x000d, offset 6)
redirects requests or completions. Traffic between devices then takes the way over the
root complex: slow, and with some platforms it hangs.

critical where the two share a switch; warning on root ports only.

Silent in a guest, where ACS must stay on, and for two ends that both have ATS on below
a bridge that lets translated requests pass (bit 6).

Turning ACS off removes the isolation between the devices behind a bridge.`,
	Run: runACSRedirectsP2P,
}

func runACSRedirectsP2P(p *Pass) {
	if len(p.Guest()) > 0 {
		return
	}
	const (
		between = 1 + iota // on the way between two devices
		inside             // and the two share a switch
	)
	found := map[*probe.PCIDevice]int{}
	var unread []string
	blind := false
	for _, pair := range p.peerPairs() {
		if pair[0].PCI == nil || pair[1].PCI == nil {
			blind = true
			continue
		}
		ways := [2][]*probe.PCIDevice{p.bridgesAbove(pair[0].PCI), p.bridgesAbove(pair[1].PCI)}
		if pair[0].PCI.Root == "" || pair[1].PCI.Root == "" {
			blind = true // a topology file leaves out the ports that could redirect
			continue
		}
		rank := between
		if slices.ContainsFunc(ways[0], func(b *probe.PCIDevice) bool { return slices.Contains(ways[1], b) }) {
			rank = inside
		}
		ats := pair[0].PCI.ATS.Or(false) && pair[1].PCI.ATS.Or(false)
		for i, way := range ways {
			for _, b := range way {
				if slices.Contains(ways[1-i], b) {
					break // common to both, as is all above
				}
				acs, known := b.ACS.Get()
				switch {
				case !known:
					unread = append(unread, "pci:"+b.Addr.String())
				case acs&(probe.ACSRequestRedirect|probe.ACSCompletionRedirect) == 0, ats && acs&probe.ACSDirectTranslated != 0:
				default:
					found[b] = max(found[b], rank)
				}
			}
		}
	}
	p.Gap("the ACS settings of PCIe bridges were not read", "read them as root: ncclmap as root on the host, or record the whole config file of the bridges too", unread...)
	if blind {
		p.Gap("the ACS settings of PCIe bridges are not in the sources", "run ncclmap as root on the host itself", p.Host())
	}
	if len(found) == 0 {
		return
	}
	f := Finding{Severity: Warning, Expected: "no redirection between devices that talk to each other"}
	var observed, repair []string
	for i := range p.Inv.PCI { // in address order
		b := &p.Inv.PCI[i]
		if found[b] == 0 {
			continue
		}
		if found[b] == inside {
			f.Severity = Critical
		}
		acs := b.ACS.Or(0)
		observed = append(observed, b.Addr.String())
		repair = append(repair, fmt.Sprintf("setpci -s %s ECAP_ACS+0x6.w=0", b.Addr))
		f.Subjects = append(f.Subjects, "pci:"+b.Addr.String())
		f.Evidence = append(f.Evidence, evidence(b.Origins, "acs_control", "config", "ACS control %#06x of %s: %s", acs, b.Addr, acsText(acs)))
	}
	f.Observed = "ACS redirects on " + strings.Join(observed, ", ")
	f.Fix = "administrator: turn ACS off in the BIOS, or at every boot run " + strings.Join(repair, "; ") +
		". This removes the isolation between the devices behind these bridges: leave it on where devices are handed to guests. Until then NCCL_P2P_DISABLE=1 avoids the slow way"
	p.Report(f)
}

// peerPairs lists the pairs of devices between which NCCL moves data over PCIe
// without the CPU: GPUs without NVLink, and a GPU with an HCA below its switch.
func (p *Pass) peerPairs() [][2]*graph.Node {
	var out [][2]*graph.Node
	for i, a := range p.facts.gpus {
		for _, b := range p.facts.gpus[i+1:] {
			if p.overPCIe(a, b) {
				out = append(out, [2]*graph.Node{a, b})
			}
		}
		for h, hca := range p.facts.hcas {
			if p.facts.class[i][h].Near() {
				out = append(out, [2]*graph.Node{a, hca})
			}
		}
	}
	return out
}

func acsText(acs uint16) string {
	var out []string
	for _, b := range []struct {
		bit  uint16
		text string
	}{{probe.ACSRequestRedirect, "request redirect"}, {probe.ACSCompletionRedirect, "completion redirect"}} {
		if acs&b.bit != 0 {
			out = append(out, b.text)
		}
	}
	return strings.Join(out, ", ")
}
