package text

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// PortsText is an HCA's ports in words: "400 Gb/s InfiniBand ACTIVE".
func PortsText(h *probe.HCA) string {
	var ports []string
	for _, p := range h.Ports {
		var words []string
		// The rate of a port that is down means nothing.
		if r, ok := p.Rate.Get(); ok && (p.Active() || p.State == "") {
			words = append(words, r.Gbps())
		}
		words = append(words, nonEmpty(p.LinkLayer, p.State)...)
		text := strings.Join(words, " ")
		if len(h.Ports) > 1 {
			text = fmt.Sprintf("port %d %s", p.Port, text)
		}
		ports = append(ports, text)
	}
	return strings.Join(ports, ", ")
}

// PCIeText is a PCIe link in words: "Gen5 x16 63.02 GB/s", and where it runs
// below what both ends can, "Gen5 x8 of Gen5 x16, 31.51 of 63.02 GB/s". A GPU
// with a chip-to-chip link keeps a token PCIe link.
func PCIeText(l *graph.Link) string {
	max, now := l.PCIeMax, l.PCIeCurrent
	switch {
	case l.A.Kind == graph.KindGPU && l.A.GPU.C2C != nil:
		return now.String() + ", control only"
	case max.String() == "unknown" && now.String() == "unknown":
		return "PCIe link unknown"
	case now.String() == "unknown" || now == max:
		if r, ok := l.Max.Get(); ok {
			return max.String() + " " + r.String()
		}
		return max.String()
	case max.String() == "unknown":
		return now.String() + " now, maximum unknown"
	}
	if rest := atRest(l); rest != "" {
		return max.String() + " " + l.Max.String() + ", now " + strings.SplitN(now.String(), " ", 2)[0] + " (" + rest + ")"
	}
	text := now.String() + " of " + max.String()
	c, cok := l.Current.Get()
	m, mok := l.Max.Get()
	if cok && mok {
		text += ", " + strings.TrimSuffix(c.String(), " GB/s") + " of " + m.String()
	}
	return text
}

// atRest says why a GPU's link at full width and lower speed is no fault: GPUs
// slow their link down while nothing runs. It is empty for any other link.
func atRest(l *graph.Link) string {
	if l.A.Kind != graph.KindGPU || l.PCIeCurrent.Width != l.PCIeMax.Width || l.A.GPU.Busy() {
		return ""
	}
	if l.A.GPU.PState.Known() || l.A.GPU.Events.Known() {
		return "idle"
	}
	return "load unknown"
}

// NVLinkCount is the number and generation of a bundle's links: "18 × NVLink4", or with
// links down "9 of 18 × NVLink4".
func NVLinkCount(b graph.NVLinkBundle) string {
	name := "NVLink"
	if g, ok := b.Generation.Get(); ok {
		name = fmt.Sprintf("NVLink%d", g)
	}
	if b.Up != b.All {
		return fmt.Sprintf("%d of %d × %s", b.Up, b.All, name)
	}
	return fmt.Sprintf("%d × %s", b.All, name)
}

// NVLinkRate is a bundle's rate, one direction: "450 GB/s", or with links down
// "225 of 450 GB/s".
func NVLinkRate(b graph.NVLinkBundle) string {
	m, ok := b.Max.Get()
	if !ok {
		return "rate unknown"
	}
	if c := b.Current.Or(m); c != m {
		return strings.TrimSuffix(c.String(), " GB/s") + " of " + m.String()
	}
	return m.String()
}

// NVLinkText is a bundle in words: "18 × NVLink4 to 4 NVSwitches, 450 GB/s".
func NVLinkText(b graph.NVLinkBundle) string {
	return NVLinkCount(b) + " to " + b.To + ", " + NVLinkRate(b)
}
