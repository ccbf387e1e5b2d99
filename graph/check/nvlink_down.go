package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var nvlinkDown = Rule{
	ID:    "nvlink-down",
	Title: "GPU has fewer NVLinks up than its board when complete",
	Doc: `Fires for a GPU whose board is known by its PCI id and that has some NVLinks up, but
fewer than that board has when complete (H100 SXM5 18, H100 NVL 12, A800 8, bridged
A6000 4 …). Counts links to GPUs, NVSwitches and CPUs (NVML, NCCL topology file,
topo -m row).

critical.

Silent for a board without any link up (no bridge fitted), with MIG on, while the
NVSwitch fabric is being set up, and in a guest or container that may hide the GPUs
at the other ends. A board that is not in the table is not judged.`,
	Replaces: []string{"nvlink-uneven"},
	Run:      runNVLinkDown,
}

func runNVLinkDown(p *Pass) {
	reported := map[*graph.Node]bool{}
	for _, n := range p.facts.gpus {
		board, inTable := BoardOf(n.PCI)
		if inTable && board.NVLinks == 0 || reported[n] {
			continue
		}
		l := p.nvlinkCount(n)
		switch {
		case !l.known:
			if inTable || len(p.facts.gpus) > 1 {
				p.Gap(noNVLinks, readNVLinks, n.Key)
			}
			continue
		case l.up == 0:
			continue
		case !inTable:
			reason := "the board is not known, so neither is its number of NVLinks"
			if id, ok := pciID(n.PCI); ok {
				reason = fmt.Sprintf("board %s is not in the table of NVLink counts", id)
			}
			p.Gap(reason, "compare with the board's data sheet; nvlink-uneven compares it with its siblings", n.Key)
			continue
		case l.up >= board.NVLinks:
			continue
		}
		if why := notComparable(n.GPU); why != "" {
			p.Gap(why, "run ncclmap again afterwards", n.Key)
			continue
		}
		if l.cut && !l.switched {
			p.Gap(cutShort, wholeTable, n.Key)
			continue
		}
		if !l.switched && p.mayHidePeers(n, board, l) {
			p.Gap("GPUs at the other ends of the NVLinks may not be visible here", onHost, n.Key)
			continue
		}
		nodes := []*graph.Node{n}
		if peer := p.pairOnly(n); !l.switched && peer != nil && p.nvlinkCount(peer).up == l.up && sameBoard(n, peer) {
			// One bridge, seen from both sides.
			nodes = append(nodes, peer)
		}
		var proof []Evidence
		for _, m := range nodes {
			reported[m] = true
			proof = append(proof, p.nvlinkCount(m).proof...)
		}
		if id, ok := pciID(n.PCI); ok {
			proof = append(proof, evidence(n.PCI.Origins, "device", "device", "PCI id %s of %s: %s", id, n.Label, board.Name))
		}
		p.Report(Finding{
			Severity: Critical,
			Subjects: keys(nodes),
			Expected: fmt.Sprintf("%d NVLinks up per GPU (%s)%s", board.NVLinks, board.Name, rateText(n, board.NVLinks)),
			Observed: fmt.Sprintf("%d up on %s%s%s", l.up, labels(nodes), downText(l.down), rateText(n, l.up)),
			Evidence: proof,
			Fix:      "administrator: drain the host and look at the links with nvidia-smi nvlink -s and -e. Hardware service: " + nvlinkRepair(board.Form) + ". " + p.ll128(),
		})
	}
}

// mayHidePeers reports links that are wired to other GPUs and that these GPUs,
// out of sight in a guest or container, may have taken down. A GPU of the same
// board with all links shows that the whole island is here.
func (p *Pass) mayHidePeers(n *graph.Node, board Board, l nvlinks) bool {
	if !p.isolated() {
		return false
	}
	if l.matrix {
		return true
	}
	for _, m := range p.facts.gpus {
		if m != n && sameBoard(n, m) && p.nvlinkCount(m).up >= board.NVLinks {
			return false
		}
	}
	return true
}

func sameBoard(a, b *graph.Node) bool {
	x, ok := BoardOf(a.PCI)
	y, ok2 := BoardOf(b.PCI)
	return ok && ok2 && x.Device == y.Device
}

func downText(down []int) string {
	if len(down) == 0 {
		return ""
	}
	return " (down: " + numbers(down) + ")"
}

// rateText prints what a number of links carries, by the data sheet.
func rateText(n *graph.Node, links int) string {
	gen := probe.NVLinkGenerationOf(n.GPU.CC)
	if list, _ := n.GPU.NVLinks.Get(); len(list) > 0 && list[0].Generation.Known() {
		gen = list[0].Generation
	}
	r, ok := probe.NVLinkRate(gen, n.GPU.CC).Get()
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %s per direction", r*probe.Rate(links))
}

func nvlinkRepair(f Form) string {
	switch f {
	case FormPCIe, FormNVL:
		return "reseat the NVLink bridges (all of them fitted), then replace bridge or board"
	case FormSuperchip:
		return "reseat or replace the NVLink cables and the compute tray"
	}
	return "replace the GPU module or the base board"
}

// ll128 warns of wrong results with LL128 over a reduced number of links, a
// fault of two NCCL versions (NVIDIA/nccl#596).
func (p *Pass) ll128() string {
	switch v := p.Inv.Runtime.NCCL; v {
	case "2.10.3", "2.11.4":
		return "NCCL " + v + " can compute wrong results meanwhile: set NCCL_PROTO=^LL128 until repaired"
	case "":
		return "NCCL 2.10.3 and 2.11.4 can compute wrong results meanwhile: with those, set NCCL_PROTO=^LL128 until repaired"
	}
	return "No NCCL variable repairs it"
}
