package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var topoNVLinkTarget = Rule{
	ID:    "topo-nvlink-target",
	Title: "NVLink of a topology file leads nowhere",
	Doc: `Fires for <nvlink> elements of an NCCL topology file whose target is the GPU itself, a
function that the file does not have, or a GPU that does not name this one with as many
links.

warning.

Silent for NVSwitches and CPUs as targets, for targets that a hypervisor hides
(fffffff:…), and for a target that lists no NVLinks, of which NCCL asks the driver.`,
	Run: runTopoNVLinkTarget,
}

func runTopoNVLinkTarget(p *Pass) {
	c, ok := p.claims()
	if !ok {
		return
	}
	links := map[probe.BDF]map[probe.BDF]int{}
	for _, g := range c.GPUs {
		list, known := g.NVLinks.Get()
		addr, placed := g.Addr.Get()
		if !known || !placed || !fromTopoFile(g.Origins) {
			continue
		}
		links[addr] = map[probe.BDF]int{}
		for _, l := range list {
			if to, ok := l.Remote.Get(); ok && l.RemoteKind != probe.RemoteSwitch && l.RemoteKind != probe.RemoteCPU {
				links[addr][to]++
			}
		}
	}
	f := Finding{Severity: Warning, Expected: "targets that the file has, with equal counts at both ends"}
	var observed []string
	for _, g := range c.GPUs {
		addr, _ := g.Addr.Get()
		targets := make([]probe.BDF, 0, len(links[addr]))
		for to := range links[addr] {
			targets = append(targets, to)
		}
		slices.SortFunc(targets, probe.BDF.Compare)
		for _, to := range targets {
			n := links[addr][to]
			back, told := links[to]
			why := ""
			switch {
			case to == addr:
				why = "the GPU itself"
			case c.at[to] == nil:
				why = fmt.Sprintf("%s, which the file does not have", to)
			case told && len(back) > 0 && back[addr] != n:
				why = fmt.Sprintf("%s with %d links, which names it with %d", to, n, back[addr])
			default:
				continue
			}
			key := p.keyOf(addr)
			if !slices.Contains(f.Subjects, key) {
				f.Subjects = append(f.Subjects, key)
			}
			text := fmt.Sprintf("%s leads to %s", addr, why)
			observed = append(observed, text)
			f.Evidence = append(f.Evidence, evidence(g.Origins, "nvlinks", "", "<nvlink> of %s", text))
		}
	}
	if len(observed) == 0 {
		return
	}
	f.Subjects = append(f.Subjects, c.key())
	f.Observed = strings.Join(observed, "; ")
	f.Fix = fmt.Sprintf("whoever keeps %s: correct the target, or drop the <nvlink> elements: NCCL asks the driver for what is not there", c.file)
	p.Report(f)
}
