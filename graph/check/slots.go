package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// slot is one physical PCIe link with the functions at its lower end: a GPU,
// the functions of one adapter, or the upstream port of a switch.
type slot struct {
	nodes []*graph.Node
	links []*graph.Link    // one per node; none where the bus was not seen
	dev   *probe.PCIDevice // the first node's function, nil where the bus was not seen
	port  *probe.PCIDevice // the port above, nil where it is not visible
	gpu   *probe.GPU       // when the node is a GPU

	cur, max   probe.PCIeLink // as it runs; what both ends can do
	bothWidths bool           // max.Width covers both ends
	bothSpeeds bool
}

// slots lists the links below which a GPU, HCA or switch sits. Virtual
// functions have no link of their own.
func slots(t *graph.Topology, gpus, hcas []*graph.Node) []slot {
	type position struct {
		domain   uint32
		bus, dev uint8
	}
	var out []slot
	at := map[position]int{}
	for _, l := range t.Links {
		if l.Kind != graph.PCIe || l.FuncA == nil || isVF(l.FuncA) || !judged(l.A) {
			continue
		}
		a := l.FuncA.Addr
		where := position{a.Domain, a.Bus, a.Dev}
		if i, ok := at[where]; ok {
			out[i].nodes = append(out[i].nodes, l.A)
			out[i].links = append(out[i].links, l)
			continue
		}
		at[where] = len(out)
		out = append(out, newSlot(l))
	}
	for _, n := range gpus {
		if n.PCI == nil {
			s := slot{nodes: []*graph.Node{n}, gpu: n.GPU, cur: n.GPU.Current, max: n.GPU.Max}
			s.bothWidths, s.bothSpeeds = s.max.Width.Known(), s.max.Speed.Known()
			out = append(out, s)
		}
	}
	for _, n := range hcas {
		if n.PCI == nil {
			out = append(out, slot{nodes: []*graph.Node{n}})
		}
	}
	return out
}

func judged(n *graph.Node) bool {
	return n.Kind == graph.KindGPU || n.Kind == graph.KindHCA || n.Kind == graph.KindSwitch
}

func newSlot(l *graph.Link) slot {
	s := slot{nodes: []*graph.Node{l.A}, links: []*graph.Link{l}, dev: l.FuncA, gpu: l.A.GPU, cur: l.PCIeCurrent, max: l.FuncA.Max}
	// In a topology file the entry above is the switch's own uplink, and the
	// device's figure is already the lower of both ends.
	if l.FuncB != nil && l.FuncA.Root != "" {
		s.port = l.FuncB
		s.max = s.max.Min(l.FuncB.Max)
		s.bothWidths = l.FuncA.Max.Width.Known() && l.FuncB.Max.Width.Known()
		s.bothSpeeds = l.FuncA.Max.Speed.Known() && l.FuncB.Max.Speed.Known()
	}
	if s.gpu != nil {
		// NVML's maximum is that of device and system together.
		s.max = s.max.Min(s.gpu.Max)
		s.bothWidths = s.bothWidths || s.gpu.Max.Width.Known()
		s.bothSpeeds = s.bothSpeeds || s.gpu.Max.Speed.Known()
		// The driver reads link and load together; sysfs may have been read when
		// the GPU was still idle.
		if s.gpu.Current.Speed.Known() {
			s.cur.Speed = s.gpu.Current.Speed
		}
	}
	return s
}

// subjects are the devices, their links, and the port above.
func (s slot) subjects() []string {
	out := keys(s.nodes)
	for _, l := range s.links {
		out = append(out, l.Key())
	}
	if s.port != nil {
		if k := "pci:" + s.port.Addr.String(); !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// token reports a link that carries no data worth judging.
func (s slot) token() bool { return s.gpu != nil && onChip(s.nodes[0]) }

// asleep returns the function of this link that is not powered up; its link
// registers mean nothing then (Linux up to 6.12 decodes them as all ones).
func (s slot) asleep() *probe.PCIDevice {
	for _, d := range []*probe.PCIDevice{s.dev, s.port} {
		if d != nil && slices.Contains([]string{"suspended", "suspending", "resuming", "error"}, d.Runtime) {
			return d
		}
	}
	return nil
}

// unknownMax says at which end of the link the maximum is not known.
func (s slot) unknownMax(what string, known func(probe.PCIeLink) bool) string {
	own := s.dev != nil && known(s.dev.Max) || s.gpu != nil && known(s.gpu.Max)
	switch {
	case own && s.port == nil:
		return fmt.Sprintf("the port above is not visible, so its maximum %s is not known", what)
	case own:
		return fmt.Sprintf("the maximum %s of the port above is not known", what)
	case s.port != nil && known(s.port.Max):
		return fmt.Sprintf("the device's own maximum %s is not known", what)
	}
	return fmt.Sprintf("the maximum %s is known of neither end of the link", what)
}

// widthEvidence and speedEvidence say what each end reports.
func (s slot) widthEvidence() []Evidence {
	return s.evidence("width", func(l probe.PCIeLink) (string, bool) {
		w, ok := l.Width.Get()
		return fmt.Sprintf("x%d", w), ok
	})
}

func (s slot) speedEvidence() []Evidence {
	return s.evidence("speed", func(l probe.PCIeLink) (string, bool) {
		v, ok := l.Speed.Get()
		return v.String(), ok
	})
}

func (s slot) evidence(what string, text func(probe.PCIeLink) (string, bool)) []Evidence {
	field := map[string]string{"width": "width", "speed": "speed_gts"}[what]
	var out []Evidence
	add := func(origins []probe.Origin, who, key, file, when string, l probe.PCIeLink) {
		if v, ok := text(l); ok {
			out = append(out, evidence(origins, key+"."+field, file, "%s %s %s of %s", when, what, v, who))
		}
	}
	if s.dev != nil {
		add(s.dev.Origins, s.dev.Addr.String(), "current_link", "current_link_"+what, "current", s.dev.Current)
		add(s.dev.Origins, s.dev.Addr.String(), "max_link", "max_link_"+what, "maximum", s.dev.Max)
	}
	if s.port != nil {
		add(s.port.Origins, "the port above, "+s.port.Addr.String(), "max_link", "max_link_"+what, "maximum", s.port.Max)
	}
	if s.gpu != nil {
		add(s.gpu.Origins, s.nodes[0].Label, "current_link", "", "current", s.gpu.Current)
		add(s.gpu.Origins, s.nodes[0].Label+" with its slot", "max_link", "", "maximum", s.gpu.Max)
	}
	return out
}

// where names the link for a fix: "mlx5_4 (0000:18:00.0, below port 0000:17:10.0)".
func (s slot) where() string {
	text := labels(s.nodes)
	if s.dev == nil {
		return text
	}
	text += " (" + s.dev.Addr.String()
	if s.port != nil {
		text += ", below port " + s.port.Addr.String()
	}
	return text + ")"
}

// linkText prints a link with its rate: "Gen5 x16, 63.02 GB/s".
func linkText(l probe.PCIeLink) string {
	if r, ok := l.Encoded().Get(); ok {
		return l.String() + ", " + r.String()
	}
	return l.String()
}
