package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
)

var nvlinkRingBroken = Rule{
	ID:    "nvlink-ring-broken",
	Title: "No ring over NVLink passes all of these GPUs",
	Doc: `Fires for three or more GPUs that NVLinks join directly, at least one of them with two
peers, when no closed way over NVLinks passes all of them: a part of a cube mesh, such
as GPUs 1, 2, 4 and 5 of eight. GPUs that no NVLink joins at all are judged apart.

warning; info where one relay through a GPU between closes the ring (NCCL 2.10 and later;
the newest is assumed).

Silent with NVSwitch, for boards joined in pairs, and while an NVLink of them is down.`,
	Run: runNVLinkRingBroken,
}

// mostRingGPUs bounds the search for a ring; no mesh without NVSwitch is larger.
const mostRingGPUs = 16

func runNVLinkRingBroken(p *Pass) {
	for _, gpus := range p.nvlinkIslands() {
		if len(gpus) < 3 || len(gpus) > mostRingGPUs || p.closes(gpus, 0) {
			continue
		}
		severity, observed := Warning, "no ring over NVLink passes all of them"
		if p.closes(gpus, 1) && !NCCLBefore(p.Inv.Runtime.NCCL, 2, 10) {
			severity, observed = Info, "a ring over NVLink closes only with a relay through another GPU"
		}
		var proof []Evidence
		for _, n := range gpus {
			peers := p.nvlinkPeers(n)
			e := p.nvlinkCount(n).proof
			text := fmt.Sprintf("NVLink peers of %s: %s", n.Label, labels(peers))
			if len(e) > 0 {
				proof = append(proof, Evidence{Source: e[0].Source, Where: e[0].Where, Fact: text})
			}
		}
		p.Report(Finding{
			Severity:  severity,
			Certainty: Sure,
			Subjects:  keys(gpus),
			Expected:  "a ring over NVLink through " + labels(gpus),
			Observed:  observed + "; NCCL goes over PCIe for the gap",
			Evidence:  proof,
			Fix:       "whoever starts the job: choose GPUs that NVLinks join in a ring with CUDA_VISIBLE_DEVICES (on a cube mesh of eight: 0 to 3, 4 to 7, or all); ask the scheduler for such sets. NCCL does not choose GPUs itself",
		})
	}
}

// nvlinkIslands groups the GPUs that direct NVLinks join, none of which is down.
func (p *Pass) nvlinkIslands() [][]*graph.Node {
	var out [][]*graph.Node
	seen := map[*graph.Node]bool{}
	for _, first := range p.facts.gpus {
		if seen[first] || p.nvlinkCount(first).switched {
			continue
		}
		seen[first] = true
		island, direct := []*graph.Node{}, true
		queue := []*graph.Node{first}
		for len(queue) > 0 {
			n := queue[0]
			queue = queue[1:]
			island = append(island, n)
			links := p.nvlinkCount(n)
			direct = direct && !links.switched && len(links.down) == 0
			for _, m := range p.nvlinkPeers(n) {
				if !seen[m] {
					seen[m] = true
					queue = append(queue, m)
				}
			}
		}
		if direct {
			out = append(out, inOrder(p.facts.gpus, island))
		}
	}
	return out
}

// inOrder puts a part of a list into the list's order.
func inOrder(all, part []*graph.Node) []*graph.Node {
	in := map[*graph.Node]bool{}
	for _, n := range part {
		in[n] = true
	}
	var out []*graph.Node
	for _, n := range all {
		if in[n] {
			out = append(out, n)
		}
	}
	return out
}

// closes reports a ring over direct NVLinks through all GPUs, of which at most so
// many steps, 0 or 1, are relayed through one other GPU.
func (p *Pass) closes(gpus []*graph.Node, relays int) bool {
	n := len(gpus)
	joined := [2][]uint{make([]uint, n), make([]uint, n)} // directly, by a relay
	for i, a := range gpus {
		for j, b := range gpus {
			switch c := p.Topo.Class(a, b); {
			case i != j && c == graph.NVL:
				joined[0][i] |= 1 << j
			case c == graph.NVB:
				joined[1][i] |= 1 << j
			}
		}
	}
	// ends[r][set] holds the GPUs at which a way can end that begins at the first,
	// passes exactly the set, and takes r relays.
	ends := [2][]uint{make([]uint, 1<<n), make([]uint, 1<<n)}
	ends[0][1] = 1
	all := uint(1)<<n - 1
	for set := uint(1); set <= all; set += 2 {
		for used := 0; used <= relays; used++ {
			for i := range n {
				if ends[used][set]&(1<<i) == 0 {
					continue
				}
				for step := 0; used+step <= relays; step++ {
					next := joined[step][i]
					if set == all && next&1 != 0 {
						return true
					}
					for j := range n {
						if next&(1<<j) != 0 && set&(1<<j) == 0 {
							ends[used+step][set|1<<j] |= 1 << j
						}
					}
				}
			}
		}
	}
	return false
}
