package check

import (
	"fmt"
	"slices"
	"strings"

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

One cause is one finding: GPUs whose lost links all lead to one NVSwitch, with that
NVSwitch first; and GPUs whose lost links lead to each other (bridge, mesh), with the
one that they share first. Where the far end of a lost link is not known, it is the
NVSwitch to which the GPU has no other link, or the GPUs whose numbers of lost links
match; likely then if it names an NVSwitch.

critical.

Silent for a board without any link up (no bridge fitted, or nvlink-absent and
nvlink-uneven speak), with MIG on, while the NVSwitch fabric is being set up, and in a
guest or container that may hide the GPUs at the other ends. A board that is not in
the table is not judged.`,
	Replaces: []string{"nvlink-uneven"},
	Run:      runNVLinkDown,
}

func runNVLinkDown(p *Pass) {
	var direct []shortfall
	var toSwitches []nvlinkCause
	for _, n := range p.facts.gpus {
		s, ok := p.shortfallOf(n)
		if !ok {
			continue
		}
		if !s.switched {
			direct = append(direct, s)
			continue
		}
		sw, certainty := p.lostSwitch(s)
		i := -1
		if sw != nil {
			i = slices.IndexFunc(toSwitches, func(c nvlinkCause) bool { return c.sw == sw })
		}
		if i < 0 {
			toSwitches = append(toSwitches, nvlinkCause{sw: sw, certainty: certainty, gpus: []shortfall{s}})
			continue
		}
		toSwitches[i].gpus = append(toSwitches[i].gpus, s)
		toSwitches[i].certainty = max(toSwitches[i].certainty, certainty)
	}
	for _, c := range append(toSwitches, p.meshCauses(direct)...) {
		p.reportNVLinks(c)
	}
}

// shortfallOf judges one GPU; ok is false for a complete one and for one that
// cannot be judged. SXM modules without any link are in: they may be where the
// lost links of others lead.
func (p *Pass) shortfallOf(n *graph.Node) (s shortfall, ok bool) {
	board, inTable := BoardOfGPU(n)
	if inTable && board.NVLinks == 0 {
		return s, false
	}
	l := p.nvlinkCount(n)
	switch {
	case !l.known:
		if inTable || len(p.facts.gpus) > 1 {
			p.Gap(noNVLinks, readNVLinks, n.Key)
		}
		return s, false
	case l.up == 0 && board.Form != FormSXM:
		return s, false
	case !inTable:
		p.Gap(unknownBoard(n), "compare with the board's data sheet; nvlink-uneven compares it with its siblings", n.Key)
		return s, false
	case l.up >= board.NVLinks:
		return s, false
	}
	var reason, how string
	switch {
	case notComparable(n.GPU) != "":
		reason, how = notComparable(n.GPU), "run ncclmap again afterwards"
	case l.cut && !l.switched:
		reason, how = cutShort, wholeTable
	case !l.switched && p.mayHidePeers(n, board, l):
		reason, how = "GPUs at the other ends of the NVLinks may not be visible here", onHost
	}
	if reason != "" {
		if l.up > 0 {
			p.Gap(reason, how, n.Key)
		}
		return s, false
	}
	return shortfall{node: n, board: board, nvlinks: l, lost: board.NVLinks - l.up, ends: lostEnds(n.GPU)}, true
}

func (p *Pass) reportNVLinks(c nvlinkCause) {
	first := c.gpus[0]
	nodes := make([]*graph.Node, len(c.gpus))
	var proof []Evidence
	for i, s := range c.gpus {
		nodes[i] = s.node
		proof = append(proof, s.proof...)
	}
	if id, ok := pciID(first.node.PCI); ok {
		proof = append(proof, evidence(first.node.PCI.Origins, "device", "device", "PCI id %s of %s: %s", id, first.node.Label, first.board.Name))
	}
	f := Finding{
		Severity: Critical,
		Subjects: keys(nodes),
		Expected: fmt.Sprintf("%d NVLinks up per GPU (%s)%s", first.board.NVLinks, first.board.Name, rateText(first.node, first.board.NVLinks)),
		Observed: upText(c.gpus),
		Evidence: proof,
	}
	repair := nvlinkRepair(first.board.Form)
	switch {
	case c.sw != nil && len(c.gpus) > 1:
		f.Certainty = c.certainty
		f.Subjects = append([]string{c.sw.Key}, f.Subjects...)
		f.Observed += "; all that are missing lead to " + c.sw.Label
		repair = fmt.Sprintf("%s is common to all of them: replace the base board", c.sw.Label)
	case c.mutual && len(c.gpus) == 2:
		f.Observed += "; what is missing joins the two"
	case c.mutual && 2*first.lost == totalLost(c.gpus):
		f.Observed += fmt.Sprintf("; what is missing joins %s with %s", first.node.Label, labels(nodes[1:]))
		repair += fmt.Sprintf("; begin with %s, which is at one end of every missing link", first.node.Label)
	case c.mutual:
		f.Observed += "; what is missing joins these GPUs with each other"
	}
	f.Fix = "administrator: drain the host and look at the links with nvidia-smi nvlink -s and -e. Hardware service: " + repair + ". " + p.ll128()
	p.Report(f)
}

func totalLost(gpus []shortfall) int {
	sum := 0
	for _, s := range gpus {
		sum += s.lost
	}
	return sum
}

// upText prints how many links are up, once for GPUs that are alike: "4 up on
// GPU3, 100 GB/s per direction; 5 up on GPU0, GPU7, 125 GB/s per direction".
func upText(gpus []shortfall) string {
	var parts []string
	alike := func(a, b shortfall) bool { return a.up == b.up && slices.Equal(a.down, b.down) }
	for i, s := range gpus {
		if slices.ContainsFunc(gpus[:i], func(o shortfall) bool { return alike(o, s) }) {
			continue
		}
		var nodes []*graph.Node
		for _, o := range gpus[i:] {
			if alike(o, s) {
				nodes = append(nodes, o.node)
			}
		}
		parts = append(parts, fmt.Sprintf("%d up on %s%s%s", s.up, labels(nodes), downText(s.down), rateText(s.node, s.up)))
	}
	return strings.Join(parts, "; ")
}

// unknownBoard says why a board's number of NVLinks is not known.
func unknownBoard(n *graph.Node) string {
	if id, ok := pciID(n.PCI); ok {
		return fmt.Sprintf("board %s is not in the table of NVLink counts", id)
	}
	return "the board is not known, so neither is its number of NVLinks"
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
	x, ok := BoardOfGPU(a)
	y, ok2 := BoardOfGPU(b)
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
