package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
)

var nvlinkAbsent = Rule{
	ID:    "nvlink-absent",
	Title: "No NVLink is up on boards that are sold with it",
	Doc: `Fires when a host has two or more SXM boards (by PCI id) and no NVLink is up on any of
them; or two or more H100 NVL or H200 NVL and no two of them are joined. Links that are
down and a list that is known to be empty count alike (NVML, NCCL topology file,
topo -m row).

critical for SXM, warning for NVL.

Silent for other boards that take bridges and have none (A100 PCIe, A6000, RTX 3090 …),
for one GPU, for a bridged pair plus a single, with MIG on, while the NVSwitch fabric
is being set up, and in a guest for P100 and V100 modules, whose mesh leaves some pairs
unjoined. Superchips, which not every machine joins, and boards that are not in
the table leave a gap.`,
	Run: runNVLinkAbsent,
}

func runNVLinkAbsent(p *Pass) {
	if len(p.facts.gpus) < 2 {
		return
	}
	p.absentOn(FormSXM, Critical)
	p.absentOn(FormNVL, Warning)
	p.absentUnclear()
}

// absentOn judges the boards of one form together.
func (p *Pass) absentOn(form Form, severity Severity) {
	type unclear struct{ reason, how, key string }
	var gaps []unclear
	var dead []*graph.Node
	var board Board
	var proof []Evidence
	partOnly := false
	told := true // of every GPU that can have links now
	for _, n := range p.facts.gpus {
		b, ok := BoardOfGPU(n)
		if !ok || b.Form != form {
			continue
		}
		l := p.nvlinkCount(n)
		switch busy := notComparable(n.GPU); {
		case l.up > 0:
			return
		case !l.known:
			gaps = append(gaps, unclear{noNVLinks, readNVLinks, n.Key})
			told = false
		case busy != "":
			gaps = append(gaps, unclear{busy, "run ncclmap again afterwards", n.Key})
		case l.cut:
			gaps = append(gaps, unclear{cutShort, wholeTable, n.Key})
			told = false
		case p.partOnly(l) && b.meshed():
			gaps = append(gaps, unclear{"GPUs at the other ends of the NVLinks may not be visible here", onHost, n.Key})
		default:
			if len(dead) == 0 {
				board = b
			}
			dead, proof = append(dead, n), append(proof, l.proof...)
			partOnly = partOnly || p.partOnly(l)
		}
	}
	for _, g := range gaps {
		p.Gap(g.reason, g.how, g.key)
	}
	if !told || len(dead) < 2 {
		return
	}
	if id, ok := pciID(dead[0].PCI); ok {
		proof = append(proof, evidence(dead[0].PCI.Origins, "device", "device", "PCI id %s of %s: %s", id, dead[0].Label, board.Name))
	}
	f := Finding{
		Severity: severity,
		Subjects: keys(dead),
		Expected: fmt.Sprintf("%d NVLinks up per GPU (%s)%s", board.NVLinks, board.Name, rateText(dead[0], board.NVLinks)),
		Observed: fmt.Sprintf("no NVLink up on any of %d GPUs: %s; what they exchange goes over PCIe", len(dead), labels(dead)),
		Evidence: proof,
		Fix:      "administrator: reboot, and check that the driver loads without Xid or SXid lines in the kernel log; on a machine with NVSwitch, that nvidia-fabricmanager runs in the driver's version. If the links stay down, hardware service: base board. No NCCL variable repairs it",
	}
	if form == FormNVL {
		f.Expected = fmt.Sprintf("NV%d between bridged GPUs (%s)%s", board.NVLinks, board.Name, rateText(dead[0], board.NVLinks))
		// One driver image brought the links up in 21 of 50 boots (Azure/azhpc-images#443).
		f.Fix = "administrator: reboot, as the links can be missing after one boot and there after the next, then try a newer driver. Hardware service: check that the NVLink bridges are fitted and seated. No NCCL variable repairs it"
		if partOnly {
			f.Certainty = Likely
			f.Fix += ". Operator of the host: give this guest or container both GPUs of a bridged pair"
		}
	}
	p.Report(f)
}

// partOnly reports that what a GPU is joined with may be out of sight: a guest's
// driver sees the links to its own GPUs, and topo -m has no column for others.
func (p *Pass) partOnly(l nvlinks) bool {
	return len(p.Guest()) > 0 || l.matrix && p.isolated()
}

// meshed reports a board of machines in which NVLink joins some pairs of GPUs
// only, so that two visible ones need not be joined.
func (b Board) meshed() bool { return b.Form == FormSXM && b.NVLinks <= 6 }

// absentUnclear leaves gaps for GPUs without a link of which nothing says whether
// they should have some, unless a GPU of the host has links.
func (p *Pass) absentUnclear() {
	var boards, chips []*graph.Node
	for _, n := range p.facts.gpus {
		l := p.nvlinkCount(n)
		b, ok := BoardOfGPU(n)
		switch {
		case l.up > 0:
			return
		case !l.known:
		case !ok:
			boards = append(boards, n)
		case b.Form == FormSuperchip && b.NVLinks > 0:
			chips = append(chips, n)
		}
	}
	for _, n := range boards {
		p.Gap(unknownBoard(n), "name a source with its PCI id, or look up whether the board has NVLink", n.Key)
	}
	if len(chips) > 1 {
		p.Gap("no NVLink is up, and whether this machine joins its superchips is not known", "compare with the machine's data sheet", keys(chips)...)
	}
}
