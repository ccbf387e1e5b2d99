package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var pciePathBottleneck = Rule{
	ID:    "pcie-path-bottleneck",
	Title: "PCIe link between an HCA and its GPU is slower than the port",
	Doc: `Looks at every PCIe link between an HCA with an ACTIVE port and its nearest GPU, or
the root complex when no GPU is below the same one. Fires for the narrowest link
and the HCA when the link's encoded rate is below 95 % of the port's rate: wire
figure against wire figure. 200 Gb/s needs Gen4 x16, 400 Gb/s Gen5 x16.

warning; critical below half.

In an NCCL log alone, NCCL's figures are compared with each other: PCI[b] above NET[n].

Several GPUs that are near one HCA share its traffic: their links count together.

Silent in a guest, for ports that are not ACTIVE, and where the link's figure is
unknown. HCAs that an NCCL topology file lists count as ACTIVE. A link that
trained low is reported as that (pcie-width-degraded, pcie-speed-degraded).`,
	Replaces: []string{"pcie-shared-uplink"},
	Run:      runPCIePathBottleneck,
	Across:   acrossPCIePathBottleneck,
}

// enough is the share of a port's rate that its links must carry: a step of
// less than 5 % is no bottleneck (a NIC gives NCCL 24 of 25 GB/s and 48.5 of 50
// when healthy, NVIDIA/nccl#412, NVIDIA/nccl-tests#267).
const enough = 0.95

func runPCIePathBottleneck(p *Pass) {
	var found []bottleneck
	for h, n := range p.facts.hcas {
		if n.PCI == nil {
			p.Gap("PCI function not in the sources", readLive, n.Key)
			continue
		}
		switch usability(n.HCA) {
		case no:
			continue
		case unknown:
			p.Gap("port state not known", readLive, n.Key)
			continue
		}
		if len(p.Guest()) > 0 {
			p.Gap(inGuest, onHost, n.Key)
			continue
		}
		port, ok := fastestPort(n)
		if !ok {
			p.rateGap(n)
			continue
		}
		var narrow bottleneck
		var blind bool
		for _, l := range p.hcaPath(h) {
			b := bottleneck{link: l, gpus: 1}
			r, known := capacity(l).Get()
			if !known {
				blind = blind || !isVF(l.FuncA)
				continue
			}
			b.rate = r
			if l.A.Kind == graph.KindGPU {
				b.rate, b.gpus = p.nearGPUs(h)
			}
			if narrow.link == nil || b.rate < narrow.rate {
				narrow = b
			}
		}
		narrow.port = port.Rate.Or(0)
		if narrow.link == nil || float64(narrow.rate) >= enough*float64(narrow.port) {
			if blind {
				p.Gap("speed or width of a PCIe link on the way to the GPU is not known", readLive, n.Key)
			}
			continue
		}
		i := slices.IndexFunc(found, func(b bottleneck) bool { return sameSlot(b.link, narrow.link) })
		if i < 0 {
			i = len(found)
			found = append(found, narrow)
		}
		found[i].hcas = append(found[i].hcas, n)
		found[i].port = max(found[i].port, narrow.port)
	}
	for _, b := range found {
		p.reportBottleneck(b)
	}
}

// rateGap says why an HCA has no port whose rate is known.
func (p *Pass) rateGap(n *graph.Node) {
	for _, pt := range n.HCA.Ports {
		if why := notBelievable(n, pt); why != "" {
			p.Gap(why, readRate, portKey(n.HCA, pt))
			return
		}
	}
	p.Gap("port rate not known", readLive, n.Key)
}

// bottleneck is a link that carries less than the port behind it.
type bottleneck struct {
	link *graph.Link
	rate probe.Rate // of the link, or of those of all nearest GPUs together
	gpus int        // how many GPUs share the traffic; 1 for other links
	hcas []*graph.Node
	port probe.Rate // the fastest of the HCAs' ports
}

// nearGPUs sums what the links of the GPUs near an HCA carry: several share its
// traffic, so that each may be slower than the port.
func (p *Pass) nearGPUs(h int) (sum probe.Rate, gpus int) {
	for _, s := range p.facts.slots {
		if s.gpu == nil || len(s.links) == 0 {
			continue
		}
		g := slices.Index(p.facts.gpus, s.nodes[0])
		if g < 0 || !p.facts.class[g][h].Near() || s.token() {
			continue
		}
		if r, ok := capacity(s.links[0]).Get(); ok {
			sum += r
			gpus++
		}
	}
	return sum, gpus
}

func (p *Pass) reportBottleneck(b bottleneck) {
	severity, certainty := Warning, Sure
	if 2*b.rate < b.port {
		severity = Critical
	}
	if fromTopoFile(b.link.Origins) {
		certainty = Likely // the file may have been written by hand
	}
	subjects := []string{b.link.Key()}
	var proof []Evidence
	for _, n := range b.hcas {
		subjects = append(subjects, n.Key)
		if pt, ok := fastestPort(n); ok {
			proof = append(proof, rateEvidence(n.HCA, pt))
		}
	}
	observed := linkText(carrying(b.link))
	if b.gpus > 1 {
		observed = fmt.Sprintf("%s on each of %d GPUs, together %s", carrying(b.link), b.gpus, b.rate)
	}
	names := labels(b.hcas)
	p.Report(Finding{
		Severity:  severity,
		Certainty: certainty,
		Subjects:  subjects,
		Expected:  fmt.Sprintf("at least %s for the %s port of %s (%s)", b.port, b.port.Gbps(), names, slotFor(b.port)),
		Observed:  fmt.Sprintf("%s, %.0f %% of the port rate", observed, 100*float64(b.rate)/float64(b.port)),
		Evidence:  append(proof, linkEvidence(b.link)...),
		Fix:       b.fix(names, slices.ContainsFunc(p.facts.gpus, onChip)),
	})
}

// fix says what to do; soldered reports a host whose GPU is part of the board, as
// its adapters then are.
func (b bottleneck) fix(names string, soldered bool) string {
	l := b.link
	soldered = soldered && l.B.Kind == graph.KindNUMA
	switch most := l.PCIeMax.Encoded(); {
	case l.A.Kind == graph.KindGPU:
		return fmt.Sprintf("nothing to repair if the GPU was built so (its link can do %s): plan with %s instead of %s for %s. No NCCL variable lifts it", linkText(l.PCIeMax), b.rate, b.port, names)
	case float64(most.Or(0)) >= enough*float64(b.port):
		return fmt.Sprintf("hardware service: the link of %s trained low (it can do %s): reseat, other riser, BIOS slot setting; read both ends again (current_link_* in /sys/bus/pci/devices). No NCCL variable lifts it", whereLink(l), linkText(l.PCIeMax))
	case soldered:
		return fmt.Sprintf("nothing to repair where the adapter is part of the board, as on GB10: plan with %s instead of %s for %s. No NCCL variable lifts it", b.rate, b.port, names)
	}
	return fmt.Sprintf("administrator: read max_link_* of %s in /sys/bus/pci/devices to see which end is built so, and move %s to a %s slot; else plan with %s instead of %s. No NCCL variable lifts it",
		whereLink(l), names, slotFor(b.port), b.rate, b.port)
}

// whereLink names the PCI functions at the ends of a link, as far as they are
// visible: "0000:19:00.0 and the port above it, 0000:17:10.0".
func whereLink(l *graph.Link) string {
	if l.FuncB == nil {
		return l.FuncA.Addr.String() + " and the port above it"
	}
	return fmt.Sprintf("%s and the port above it, %s", l.FuncA.Addr, l.FuncB.Addr)
}

func linkEvidence(l *graph.Link) []Evidence {
	d := l.FuncA
	if d.Current.Known() {
		return []Evidence{
			evidence(d.Origins, "current_link.speed_gts", "current_link_speed", "current speed %s of %s", d.Current.Speed, d.Addr),
			evidence(d.Origins, "current_link.width", "current_link_width", "current width x%d of %s", d.Current.Width.Or(0), d.Addr),
		}
	}
	return []Evidence{evidence(d.Origins, "max_link.speed_gts", "max_link_speed", "%s at %s", carrying(l), d.Addr)}
}

// slotFor names the narrowest x16 link that carries a port's rate.
func slotFor(port probe.Rate) string {
	for gen := 1; ; gen++ {
		if _, ok := probe.PCIeSpeedOfGen(gen); !ok {
			return "faster"
		}
		l := probe.LinkOfGen(gen, 16)
		if float64(l.Encoded().Or(0)) >= enough*float64(port) {
			return l.String()
		}
	}
}

// carrying is the link as it serves traffic: its current state where one is
// known, else its maximum. A GPU that is not at work keeps its link low, so its
// maximum counts.
func carrying(l *graph.Link) probe.PCIeLink {
	if l.A.Kind == graph.KindGPU && !l.A.GPU.Busy() || !l.PCIeCurrent.Known() {
		return l.PCIeMax
	}
	return l.PCIeCurrent
}

func capacity(l *graph.Link) probe.Opt[probe.Rate] { return carrying(l).Encoded() }

// sameSlot reports two functions of one card: one physical link.
func sameSlot(a, b *graph.Link) bool {
	x, y := a.FuncA.Addr, b.FuncA.Addr
	return x.Domain == y.Domain && x.Bus == y.Bus && x.Dev == y.Dev
}

// hcaPath returns the PCIe links from an HCA to its nearest GPU; where no GPU
// is below the same root complex, those up to the root. Of several equally near
// GPUs the one with the widest way counts.
func (p *Pass) hcaPath(h int) []*graph.Link {
	n := p.facts.hcas[h]
	var best []*graph.Link
	var bestRate probe.Rate
	for g, gpu := range p.facts.gpus {
		if !p.facts.class[g][h].Near() || onChip(gpu) {
			continue
		}
		var links []*graph.Link
		rate := probe.Rate(1<<63 - 1)
		for _, hop := range p.Topo.Path(n, gpu).Hops {
			links = append(links, hop...)
			for _, l := range hop {
				if r, ok := capacity(l).Get(); ok {
					rate = min(rate, r)
				}
			}
		}
		if len(links) > 0 && (best == nil || rate > bestRate) {
			best, bestRate = links, rate
		}
	}
	if best != nil {
		return best
	}
	for at := n; at.Up != nil; at = at.Up {
		best = append(best, p.Topo.Between(at, at.Up)...)
	}
	return slices.DeleteFunc(best, func(l *graph.Link) bool { return l.Kind != graph.PCIe })
}
