package check

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Pass is the whole world of a rule: one host as it was seen.
type Pass struct {
	Inv  *probe.Inventory
	Topo *graph.Topology
	// Job is what jobs show of themselves, on this host and on others; see
	// [Pass.Here].
	Job *probe.Job

	reporter
	facts  *facts
	before *earlier // nil where totals are all there is
}

// facts is what several rules need, gathered once.
type facts struct {
	host       string
	guest      []Evidence
	gpus, hcas []*graph.Node
	class      [][]graph.PathClass // [gpu][hca]
	slots      []slot
	nvlinks    map[*graph.Node]nvlinks // see nvlinkCount
	pci        map[probe.BDF]*probe.PCIDevice
}

func gather(t *graph.Topology) *facts {
	f := &facts{host: "host:localhost", nvlinks: map[*graph.Node]nvlinks{}, gpus: t.Of(graph.KindGPU), hcas: t.Of(graph.KindHCA),
		pci: make(map[probe.BDF]*probe.PCIDevice, len(t.Inv.PCI))}
	for i := range t.Inv.PCI {
		f.pci[t.Inv.PCI[i].Addr] = &t.Inv.PCI[i]
	}
	if t.Inv.Host.Name != "" {
		f.host = "host:" + t.Inv.Host.Name
	}
	// Where not all indices are known, the topology orders addresses by their
	// decimal digits.
	slices.SortStableFunc(f.gpus, func(a, b *graph.Node) int {
		if a.GPU.Index.Known() && b.GPU.Index.Known() {
			return cmp.Compare(a.GPU.Index.Or(0), b.GPU.Index.Or(0))
		}
		return compareKeys(a.Key, b.Key)
	})
	f.guest = GuestMarks(t)
	f.class = make([][]graph.PathClass, len(f.gpus))
	for i, g := range f.gpus {
		f.class[i] = make([]graph.PathClass, len(f.hcas))
		for j, h := range f.hcas {
			f.class[i][j] = t.Class(g, h)
		}
	}
	f.slots = slots(t, f.gpus, f.hcas)
	return f
}

// Host returns the key of the host: "host:gx07", or "host:localhost" where the
// name is not known.
func (p *Pass) Host() string { return p.facts.host }

// Guest returns the [GuestMarks] of this host. In a guest, PCIe speed, width, NUMA node and distance are claims of
// the hypervisor.
func (p *Pass) Guest() []Evidence { return p.facts.guest }

// Report records a finding of the rule that runs.
func (p reporter) Report(f Finding) {
	f.Rule = p.rule.ID
	if f.Evidence == nil {
		f.Evidence = []Evidence{}
	}
	p.out.Findings = append(p.out.Findings, f)
}

// Gap records that the rule could not judge the subjects, why, and how to get
// the missing fact. Equal gaps of one rule are joined.
func (p reporter) Gap(reason, how string, subjects ...string) {
	if len(subjects) == 0 {
		return
	}
	gaps := p.out.Gaps
	i := slices.IndexFunc(gaps, func(g Gap) bool { return g.Rule == p.rule.ID && g.Reason == reason && g.How == how })
	if i < 0 {
		p.out.Gaps = append(gaps, Gap{Rule: p.rule.ID, Subjects: slices.Clone(subjects), Reason: reason, How: how})
		return
	}
	for _, s := range subjects {
		if !slices.Contains(gaps[i].Subjects, s) {
			gaps[i].Subjects = append(gaps[i].Subjects, s)
		}
	}
}

// Reasons that several rules give.
const (
	inGuest    = "in a guest, PCIe links and distances are what the hypervisor claims"
	onHost     = "run ncclmap on the bare-metal host"
	noLiveLink = "current PCIe link not in the sources"
	noDriver   = "what the driver reports of the GPU is not in the sources"
	askDriver  = "run ncclmap on the host itself, or add nvidia-smi -q"
	noCounters = "error counters not in the sources"
	readLive   = "run ncclmap on the host itself, or name its recorded /sys beside the other sources"
)

// Here reports that a job's fact of the named host concerns this one: it bears
// that name, or no name tells them apart.
func (p *Pass) Here(host string) bool {
	own := p.Inv.Host.Name
	return host == "" || own == "" || probe.SameHostName(own, host)
}

// bridgesAbove lists the bridges above a function, nearest first.
func (p *Pass) bridgesAbove(d *probe.PCIDevice) []*probe.PCIDevice {
	var out []*probe.PCIDevice
	for up, ok := d.Parent.Get(); ok; {
		b := p.facts.pci[up]
		if b == nil {
			break
		}
		out = append(out, b)
		up, ok = b.Parent.Get()
	}
	return out
}

// overPCIe reports two GPUs whose traffic goes over PCIe, as far as known: no
// NVLink joins them, and their boards are none that NVLink joins by design.
func (p *Pass) overPCIe(a, b *graph.Node) bool {
	switch class := p.Topo.Class(a, b); class {
	case graph.NVL, graph.NVB:
		return false
	case graph.Unknown:
		x, okX := BoardOfGPU(a)
		y, okY := BoardOfGPU(b)
		return !(okX && okY && x.Form != FormPCIe && y.Form != FormPCIe)
	}
	return !onChip(a) && !onChip(b)
}

// evidence makes the evidence for one field of an object. field is its JSON
// name in the inventory, file the file below the object's folder that holds it.
func evidence(origins []probe.Origin, field, file, format string, args ...any) Evidence {
	o := probe.OriginOf(origins, field)
	if o.Source == probe.SourceSysfs && file != "" && path.Base(o.Where) != path.Base(file) {
		o.Where = path.Join(o.Where, file)
	}
	return Evidence{Source: o.Source, Where: o.Where, Fact: fmt.Sprintf(format, args...)}
}

// fromTopoFile reports facts that an NCCL topology file states.
func fromTopoFile(origins []probe.Origin) bool {
	return slices.ContainsFunc(origins, func(o probe.Origin) bool { return o.Source == probe.SourceNCCLXML })
}

func keys(nodes []*graph.Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Key
	}
	return out
}

func labels(nodes []*graph.Node) string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Label
	}
	return strings.Join(out, ", ")
}

// pciID prints a function's id as lspci does, "10de:2330".
func pciID(d *probe.PCIDevice) (id string, ok bool) {
	if d == nil || !d.Vendor.Known() || !d.Device.Known() {
		return "", false
	}
	return fmt.Sprintf("%04x:%04x", uint16(d.Vendor.Or(0)), uint16(d.Device.Or(0))), true
}

// isVF reports a virtual function: it has no PCIe link of its own.
func isVF(d *probe.PCIDevice) bool {
	if d == nil {
		return false
	}
	if d.PhysFn.Known() {
		return true
	}
	a, ok := AdapterOf(d)
	return ok && a.VF
}

// NCCLBefore reports an NCCL version that is known and older than a release, given
// as major, minor and perhaps patch level.
func NCCLBefore(version string, release ...int) bool {
	c, ok := compareNCCL(version, release)
	return ok && c < 0
}

// ncclFrom reports an NCCL version that is known and not older than a release.
func ncclFrom(version string, release ...int) bool {
	c, ok := compareNCCL(version, release)
	return ok && c >= 0
}

// compareNCCL needs as many numbers of the version as the release has.
func compareNCCL(version string, release []int) (c int, ok bool) {
	var v [3]int
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2])
	if n < len(release) {
		return 0, false
	}
	return slices.Compare(v[:len(release)], release), true
}

// usable says whether NCCL can use an HCA.
type usable int

const (
	no      usable = iota // every port is known not to be ACTIVE
	unknown               // no source states a port's state
	yes                   // a port is ACTIVE, or a topology file of NCCL lists it
)

// usability judges an HCA by its ports. NCCL lists in its topology only what it
// uses, so an HCA from such a file counts as usable.
func usability(h *probe.HCA) usable {
	u := no
	if len(h.Ports) == 0 {
		u = unknown
	}
	for _, p := range h.Ports {
		switch p.State {
		case probe.PortActive:
			return yes
		case "":
			u = unknown
		}
	}
	if u == unknown && fromTopoFile(h.Origins) {
		return yes
	}
	return u
}

// fastestPort returns the usable port of the highest known rate; ok is false
// where there is none. A rate that is not believable is not known.
func fastestPort(n *graph.Node) (port probe.HCAPort, ok bool) {
	for _, p := range n.HCA.Ports {
		if !p.Active() && (p.State != "" || !fromTopoFile(n.HCA.Origins)) || notBelievable(n, p) != "" {
			continue
		}
		if r, known := p.Rate.Get(); known && r > 0 && (!ok || r > port.Rate.Or(0)) {
			port, ok = p, true
		}
	}
	return port, ok
}

// notBelievable says why a port's rate is not believed: no port of its adapter is
// that fast. It is empty for all other rates.
func notBelievable(n *graph.Node, p probe.HCAPort) string {
	a, ok := AdapterOf(n.PCI)
	rate, known := p.Rate.Get()
	if !ok || !known || a.Fastest == 0 || rate <= a.Fastest {
		return ""
	}
	return fmt.Sprintf("the port reads %s, and no port of a %s does more than %s", rate.Gbps(), a.Name, a.Fastest.Gbps())
}

const readRate = "read the speed with mlxlink or ibstat, or update the kernel"

// rateEvidence is the evidence for a port's rate.
func rateEvidence(h *probe.HCA, p probe.HCAPort) Evidence {
	text := p.RateText
	if text == "" {
		text = p.Rate.Or(0).Gbps()
	}
	return evidence(h.Origins, "ports", fmt.Sprintf("ports/%d/rate", p.Port), "rate %s", text)
}

// nearest returns the HCAs for which keep holds that are closest to GPU g, by
// class. Pairs whose distance is unknown are left out; class is graph.Unknown
// when nothing is left.
func (p *Pass) nearest(g int, keep func(h int) bool) (class graph.PathClass, hcas []int) {
	for h := range p.facts.hcas {
		c := p.facts.class[g][h]
		if c == graph.Unknown || !keep(h) {
			continue
		}
		switch {
		case class == graph.Unknown || c < class:
			class, hcas = c, []int{h}
		case c == class:
			hcas = append(hcas, h)
		}
	}
	return class, hcas
}

// nearSomeGPU reports, per HCA, whether no other HCA is closer to some GPU.
// known is false where no distance is.
func (p *Pass) nearSomeGPU() (near []bool, known bool) {
	near = make([]bool, len(p.facts.hcas))
	for g := range p.facts.gpus {
		class, hcas := p.nearest(g, func(int) bool { return true })
		known = known || class != graph.Unknown
		for _, h := range hcas {
			near[h] = true
		}
	}
	return near, known
}
