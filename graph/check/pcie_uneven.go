package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var pcieUneven = Rule{
	ID:    "pcie-uneven",
	Title: "PCIe link is slower than those of its siblings",
	Doc: `Judges sources that give one figure for each device: NCCL topology files, and hwloc for
HCAs. Fires for a GPU or HCA whose link has a lower rate than that of most of its siblings
(at least three of one PCI id and subsystem).

warning; critical below half.

Silent in a guest, for GPUs in hwloc, whose speed may be that of an idle GPU, and where the
device sits below another kind of bridge than most: a slot that is built so.`,
	Run: runPCIeUneven,
}

// rated is a device with its one link figure.
type rated struct {
	node   *graph.Node
	rate   probe.Rate
	text   string
	bridge string // id of the bridge above
	proof  Evidence
}

const fewestSiblings = 3

func runPCIeUneven(p *Pass) {
	if len(p.Guest()) > 0 {
		return
	}
	var kinds []string
	by := map[string][]rated{}
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		r, ok := p.oneFigure(n)
		if !ok {
			continue
		}
		kind := fmt.Sprintf("%v:%v %v:%v", n.PCI.Vendor, n.PCI.Device, n.PCI.SubVendor, n.PCI.SubDevice)
		if by[kind] == nil {
			kinds = append(kinds, kind)
		}
		by[kind] = append(by[kind], r)
	}
	for _, kind := range kinds {
		list := by[kind]
		if len(list) < fewestSiblings {
			continue
		}
		usual, votes := list[0], 0
		for _, r := range list {
			same := 0
			for _, o := range list {
				if o.rate == r.rate {
					same++
				}
			}
			if same > votes {
				usual, votes = r, same
			}
		}
		for _, r := range list {
			if r.rate >= usual.rate || r.bridge != usual.bridge {
				continue
			}
			severity := Warning
			if 2*r.rate < usual.rate {
				severity = Critical
			}
			p.Report(Finding{
				Severity:  severity,
				Certainty: Likely,
				Subjects:  []string{r.node.Key},
				Expected:  fmt.Sprintf("%s, as %s has, and %d of %d devices alike", usual.text, usual.node.Label, votes, len(list)),
				Observed:  r.text,
				Evidence:  []Evidence{r.proof, usual.proof},
				Fix:       fmt.Sprintf("hardware service: compare the slot of %s with its siblings'; drain and power off the host, reseat the card, then another slot, riser or retimer. Read current_link_* of both ends in /sys/bus/pci/devices. No NCCL variable repairs it", r.node.Label),
			})
		}
	}
}

// oneFigure returns the only figure that a topology file or hwloc gives.
func (p *Pass) oneFigure(n *graph.Node) (r rated, ok bool) {
	d := n.PCI
	if d == nil || !d.Vendor.Known() || !d.Device.Known() || n.GPU != nil && onChip(n) {
		return r, false
	}
	r.node = n
	if up := p.bridgesAbove(d); len(up) > 0 {
		r.bridge, _ = pciID(up[0])
	}
	if fromTopoFile(d.Origins) && d.Root == "" {
		rate, known := d.Max.Encoded().Get()
		r.rate, r.text = rate, linkText(d.Max)
		r.proof = evidence(d.Origins, "max_link.speed_gts", "", "link of %s: %s", n.Label, r.text)
		return r, known
	}
	if n.HCA == nil || d.Current.Known() || d.Max.Known() {
		return r, false
	}
	i := slices.IndexFunc(d.Extra, func(a probe.Attr) bool { return a.Name == "pci_link_speed" })
	if i < 0 {
		return r, false
	}
	gbs, err := strconv.ParseFloat(strings.TrimSpace(d.Extra[i].Value), 64)
	r.rate, r.text = probe.Rate(gbs*1e9), d.Extra[i].Value+" GB/s"
	r.proof = evidence(d.Origins, "", "", "pci_link_speed %s of %s", d.Extra[i].Value, n.Label)
	return r, err == nil && gbs > 0
}
