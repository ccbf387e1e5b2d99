package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// acrossPCIePathBottleneck compares NCCL's figures with each other in its own
// print-out: the PCI links above a NET, up to the switch that also holds a GPU or
// to the CPU. Hosts that another source shows are judged by their wire figures.
func acrossPCIePathBottleneck(a *Across) {
	type fault struct{ link, net float64 }
	for _, t := range a.Job.Systems {
		if h := a.Host(t.Host); h != nil && len(h.Inv.PCI) > 0 {
			continue
		}
		for i, n := range t.Nodes {
			if n.Link != "NET" {
				continue
			}
			worst := fault{net: n.GBs}
			var at probe.SystemNode
			for j := i; j >= 0; j = parentOf(t.Nodes, j) {
				x := t.Nodes[j]
				if x.Link == "PCI" && (at.Name == "" || x.GBs < worst.link) {
					worst.link, at = x.GBs, x
				}
				if p := parentOf(t.Nodes, j); p >= 0 && holdsGPU(t.Nodes, p) {
					break
				}
			}
			if at.Name == "" || worst.link >= enough*n.GBs || a.speedAssumed(t.Host) {
				continue
			}
			severity := Warning
			if 2*worst.link < worst.net {
				severity = Critical
			}
			key := at.Name
			if addr, ok := treeAddr(at.Name); ok {
				key = addr.String()
			}
			a.Report(Finding{
				Severity: severity, Certainty: Likely, Subjects: []string{a.Key(t.Host, "pci:"+key), a.Key(t.Host, "net:"+n.Name)},
				Expected: fmt.Sprintf("at least %.1f GB/s of PCIe for %s (NCCL's figures)", n.GBs, n.Name),
				Observed: fmt.Sprintf("%sNCCL sees PCI[%.1f] at %s above NET[%.1f], %.0f %% of it", hostPrefix(t.Host), worst.link, at.Name, n.GBs, 100*worst.link/worst.net),
				Evidence: []Evidence{
					evidence(lineOf(t, at.Line), "", "", "PCI[%.1f] - %s", at.GBs, at.Name),
					evidence(lineOf(t, n.Line), "", "", "NET[%.1f] - %s", n.GBs, n.Name),
				},
				Fix: "administrator: read speed and width of the link at both ends (/sys/bus/pci/devices/*/current_link_*, max_link_*): a slot that is too narrow, or a link that trained low. 200 Gb/s needs Gen4 x16, 400 Gb/s Gen5 x16; no variable lifts it",
			})
		}
	}
}

// parentOf returns the node above another in a print-out, -1 at a root.
func parentOf(nodes []probe.SystemNode, i int) int {
	for j := i - 1; j >= 0; j-- {
		if nodes[j].Depth < nodes[i].Depth {
			return j
		}
	}
	return -1
}

// holdsGPU reports a GPU directly below a node.
func holdsGPU(nodes []probe.SystemNode, i int) bool {
	for j := i + 1; j < len(nodes) && nodes[j].Depth > nodes[i].Depth; j++ {
		if nodes[j].Depth == nodes[i].Depth+1 && strings.HasPrefix(nodes[j].Name, "GPU/") {
			return true
		}
	}
	return false
}

// speedAssumed reports a host on which NCCL replaced a link speed that it could
// not read.
func (a *Across) speedAssumed(host string) bool {
	for _, e := range a.Job.Events {
		if e.Host == host && strings.HasPrefix(e.Text, "KV Convert to int") {
			return true
		}
	}
	return false
}

// lineOf is the origin of one line of a print-out.
func lineOf(t probe.SystemTree, line int64) []probe.Origin {
	o := probe.OriginOf(t.Origins, "")
	file, _, _ := strings.Cut(o.Where, ":")
	return []probe.Origin{probe.LineOf(o.Source, file, line)}
}
