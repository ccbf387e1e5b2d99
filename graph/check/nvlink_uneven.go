package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
)

var nvlinkUneven = Rule{
	ID:    "nvlink-uneven",
	Title: "GPU has fewer NVLinks than the other GPUs of its model",
	Doc: `Compares the NVLink totals of the GPUs of one model in one host (NVML, NCCL topology
file, topo -m). Fires for a GPU with a lower total, 0 included, when more than half
of its siblings share one higher total and reach 3 or more GPUs over NVLink (one or more
for SXM modules, which have no bridges). Among SXM modules of a known board one complete
module is enough.

critical.

Silent for boards joined in pairs by bridges, for a mesh whose totals differ among
the siblings too (part of it is not visible), for a topo -m table that was cut
short, with MIG on, while the NVSwitch fabric is being set up, and where
nvlink-down speaks.`,
	Run: runNVLinkUneven,
}

// needPeers is the number of GPUs that a sibling must reach. Fewer than three
// may be bridged pairs, which need not be alike; SXM modules have no bridges.
func needPeers(n *graph.Node) int {
	if b, ok := BoardOfGPU(n); ok && b.Form == FormSXM {
		return 1
	}
	return 3
}

func runNVLinkUneven(p *Pass) {
	type member struct {
		node *graph.Node
		nvlinks
	}
	var order []string
	groups := map[string][]member{}
	if len(p.facts.gpus) < 2 {
		return
	}
	for _, n := range p.facts.gpus {
		if b, ok := BoardOfGPU(n); ok && b.NVLinks == 0 {
			continue
		}
		l := p.nvlinkCount(n)
		switch why := notComparable(n.GPU); {
		case !l.known:
			p.Gap(noNVLinks, readNVLinks, n.Key)
			continue
		case why != "":
			p.Gap(why, "run ncclmap again afterwards", n.Key)
			continue
		case l.cut:
			p.Gap(cutShort, wholeTable, n.Key)
			continue
		}
		name := model(n)
		if _, ok := groups[name]; !ok {
			order = append(order, name)
		}
		groups[name] = append(groups[name], member{n, l})
	}
	for _, name := range order {
		group := groups[name]
		totals := map[int]int{}
		for _, m := range group {
			totals[m.up]++
		}
		var usual int
		for total, n := range totals {
			if 2*n > len(group) {
				usual = total
			}
		}
		need := needPeers(group[0].node)
		if b, ok := BoardOfGPU(group[0].node); ok && b.Form == FormSXM && totals[b.NVLinks] > 0 && !(p.isolated() && b.meshed()) {
			usual, need = b.NVLinks, 0
		}
		var good, low []member
		alike := true
		for _, m := range group {
			switch {
			case m.up < usual:
				low = append(low, m)
			case m.up == usual && len(p.nvlinkPeers(m.node)) >= need:
				good = append(good, m)
			default:
				alike = false
			}
		}
		if !alike || len(low) == 0 || len(good) == 0 {
			continue
		}
		for _, m := range low {
			certainty := Sure
			if name == "" {
				certainty = Likely
				if m.up == 0 {
					certainty = Possible // a display adapter has none by design
				}
			}
			observed := fmt.Sprintf("%d on %s%s%s", m.up, m.node.Label, downText(m.down), rateText(m.node, m.up))
			if m.up == 0 {
				observed = "no NVLink up on " + m.node.Label
			}
			p.Report(Finding{
				Severity:  Critical,
				Certainty: certainty,
				Subjects:  []string{m.node.Key},
				Expected:  fmt.Sprintf("%d NVLinks, as %s%s", usual, count(len(good), "other GPU of the same model has", "other GPUs of the same model have"), rateText(m.node, usual)),
				Observed:  observed,
				Evidence:  append(append([]Evidence{}, m.proof...), good[0].proof...),
				Fix:       p.unevenFix(m.node, m.up),
			})
		}
	}
}

func (p *Pass) unevenFix(n *graph.Node, up int) string {
	form := FormSXM
	if b, ok := BoardOfGPU(n); ok {
		form = b.Form
	}
	fix := "administrator: drain the host and look at the links with nvidia-smi nvlink -s and -e. "
	if up == 0 {
		// Seen to return after a reboot and to fail again (gpud#1085, open-gpu-kernel-modules#1150).
		fix += "A reboot often brings the links back for a while: search the kernel log for Xid 145 to 150 before trusting the GPU again. "
	}
	return fix + "Hardware service: " + nvlinkRepair(form) + ". " + p.ll128()
}
