package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// Advise decides on every variable of the catalogue for one machine.
func Advise(topo *graph.Topology, res check.Result) Plan { return advise(topo, &topo.Inv.Job, res) }

func advise(topo *graph.Topology, job *probe.Job, res check.Result) Plan {
	in := newFacts(topo, job, res)
	p := Plan{Schema: Schema, Fingerprint: Fingerprint(topo), Variables: []Variable{}, Declined: []Declined{}, Findings: res.Findings, Gaps: res.Gaps}
	if v, ok := statedVersion([]*probe.Inventory{topo.Inv}, job); ok {
		p.NCCL = v.String()
	}
	for _, d := range decisions {
		if v, ok := d.set(in); ok {
			v.Name = d.name
			p.Variables = append(p.Variables, v)
			continue
		}
		why, ev := d.decline(in)
		p.Declined = append(p.Declined, Declined{Name: d.name, Why: why + in.remark(d.name), Evidence: ev})
	}
	return p
}

// facts is what the decisions look at.
type facts struct {
	topo *graph.Topology
	inv  *probe.Inventory
	job  *probe.Job // of this host and others
	res  check.Result
	gpus []*graph.Node
	hcas []*graph.Node
	nets []*graph.Node
}

func newFacts(topo *graph.Topology, job *probe.Job, res check.Result) *facts {
	return &facts{
		topo: topo, inv: topo.Inv, job: job, res: res,
		gpus: topo.Of(graph.KindGPU), hcas: topo.Of(graph.KindHCA), nets: topo.Of(graph.KindNet),
	}
}

// finding returns the first finding of a rule.
func (f *facts) finding(rule string) (check.Finding, bool) {
	i := slices.IndexFunc(f.res.Findings, func(x check.Finding) bool { return x.Rule == rule })
	if i < 0 {
		return check.Finding{}, false
	}
	return f.res.Findings[i], true
}

// decision is one row of the catalogue's section 11: when to set a variable,
// and what to say when it is left alone.
type decision struct {
	name    string
	set     func(*facts) (Variable, bool)
	decline func(*facts) (string, []check.Evidence)
}

func never(*facts) (Variable, bool) { return Variable{}, false }

func because(why string) func(*facts) (string, []check.Evidence) {
	return func(*facts) (string, []check.Evidence) { return why, nil }
}

// decisions in the order in which an env file lists them. Rows whose findings
// no rule of this version can give only ever decline, and say so.
var decisions = []decision{
	{"NCCL_IB_HCA", (*facts).setHCA, (*facts).declineHCA},
	{"NCCL_SOCKET_IFNAME", (*facts).setIfname, (*facts).declineIfname},
	{"NCCL_IB_GID_INDEX", (*facts).setGID, (*facts).declineGID},
	{"NCCL_CROSS_NIC", (*facts).setCrossNIC, (*facts).declineCrossNIC},
	{"NCCL_IB_QPS_PER_CONNECTION", (*facts).setQPs, (*facts).declineQPs},
	{"NCCL_NET_GDR_LEVEL", never, (*facts).declineGDRLevel},
	{"NCCL_P2P_LEVEL", never, (*facts).declineP2PLevel},
	{"NCCL_DMABUF_ENABLE", (*facts).setDMABUF, because("no log shows the registration of DMA-BUF memory failing")},
	{"NCCL_NVLS_ENABLE", (*facts).setNVLS, because("no log shows NVLink SHARP failing; NCCL turns it on where the switches can reduce")},
	{"NCCL_PROTO", (*facts).setProto, (*facts).declineProto},
	{"NCCL_ALGO", never, because("no measured run shows another algorithm winning; NCCL chooses per size")},
	{"NCCL_TOPO_FILE", never, (*facts).declineTopoFile},
}

// hcaEvidence is a line per HCA with its ports.
func (f *facts) hcaEvidence() []check.Evidence {
	var ev []check.Evidence
	for _, n := range f.hcas {
		o := probe.OriginOf(n.HCA.Origins, "ports")
		var ports []string
		for _, p := range n.HCA.Ports {
			ports = append(ports, fmt.Sprintf("port %d %s %s %s", p.Port, orUnknown(p.State), orUnknown(p.LinkLayer), rateText(p)))
		}
		ev = append(ev, check.Evidence{Source: o.Source, Where: o.Where, Fact: n.HCA.Name + ": " + strings.Join(ports, ", ")})
	}
	return ev
}

func rateText(p probe.HCAPort) string {
	if r, ok := p.Rate.Get(); ok {
		return r.Gbps()
	}
	return "rate unknown"
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

const noRDMA = "no RDMA device was seen on this machine"

func (f *facts) declineHCA() (string, []check.Evidence) {
	kinds, known := f.hcaKinds()
	switch {
	case len(f.hcas) == 0:
		return noRDMA + ": there is nothing to choose from", nil
	case len(kinds) == 0 && f.allDown():
		return fmt.Sprintf("no port of the %s is ACTIVE: a list cannot repair that", plural(len(f.hcas), "HCA")), f.hcaEvidence()
	case !known:
		return fmt.Sprintf("%s, but model, link layer or rate of some are not known: which are rails cannot be told", plural(len(f.hcas), "HCA")), f.hcaEvidence()
	case len(kinds) == 1:
		down := ""
		if n := f.downHCAs(); n > 0 {
			down = fmt.Sprintf("; %d of them not ACTIVE, which NCCL leaves out itself", n)
		}
		return fmt.Sprintf("%s, all of one kind (%s): NCCL picks the nearest for each GPU%s", plural(len(f.hcas), "HCA"), kinds[0], down), f.hcaEvidence()
	default:
		return fmt.Sprintf("HCAs of %d kinds (%s), but nothing seen shows which of them are rails; a wrong list costs bandwidth", len(kinds), strings.Join(kinds, "; ")), f.hcaEvidence()
	}
}

// downHCAs counts the HCAs whose ports are all known not to be ACTIVE.
func (f *facts) downHCAs() int {
	n := 0
	for _, h := range f.hcas {
		if len(h.HCA.Ports) > 0 && !slices.ContainsFunc(h.HCA.Ports, func(p probe.HCAPort) bool { return p.Active() || p.State == "" }) {
			n++
		}
	}
	return n
}

func (f *facts) allDown() bool { return f.downHCAs() == len(f.hcas) }

// hcaKinds describes the different kinds of HCA: device, link layer, rate. A
// port that is down has a rate that means nothing and does not count. known is
// false where some HCA cannot be described.
func (f *facts) hcaKinds() (kinds []string, known bool) {
	known = true
	for _, n := range f.hcas {
		if n.PCI == nil || !n.PCI.Vendor.Known() || !n.PCI.Device.Known() || len(n.HCA.Ports) == 0 {
			known = false
			continue
		}
		for _, p := range n.HCA.Ports {
			switch {
			case p.State != "" && !p.Active():
			case p.State == "" || p.LinkLayer == "" || !p.Rate.Known():
				known = false
			default:
				kinds = append(kinds, fmt.Sprintf("%04x:%04x, %s, %s", uint16(n.PCI.Vendor.Or(0)), uint16(n.PCI.Device.Or(0)), p.LinkLayer, rateText(p)))
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), known && len(kinds) > 0
}

func (f *facts) declineIfname() (string, []check.Evidence) {
	var names []string
	var ev []check.Evidence
	add := func(name string, origins []probe.Origin) {
		names = append(names, name)
		o := probe.OriginOf(origins, "name")
		ev = append(ev, check.Evidence{Source: o.Source, Where: o.Where, Fact: "interface " + name})
	}
	for _, n := range f.nets {
		add(n.NetDev.Name, n.NetDev.Origins)
	}
	for _, n := range f.hcas {
		for _, dev := range n.HCA.NetDevs {
			add(dev, n.HCA.Origins)
		}
	}
	list := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		return "no physical interface was seen; NCCL's own choice stands", nil
	case len(names) == 1:
		return fmt.Sprintf("only one physical interface, %s: NCCL finds it", list), ev
	case len(f.hcas) > 0:
		return fmt.Sprintf("RDMA carries the data; an interface (%s) only serves start-up, and no log shows a wrong one", list), ev
	}
	return fmt.Sprintf("several interfaces (%s) and no log or route that shows a wrong choice", list), ev
}

func (f *facts) declineGID() (string, []check.Evidence) {
	switch {
	case len(f.hcas) == 0:
		return noRDMA, nil
	case f.anyPort(func(p probe.HCAPort) bool { return p.LinkLayer == "Ethernet" }):
	case !f.portsKnown(func(p probe.HCAPort) bool { return p.LinkLayer != "" }):
		return "whether any port is RoCE is not known; InfiniBand has no GID to choose", nil
	default:
		return "no RoCE port; InfiniBand has no GID to choose", nil
	}
	return "NCCL 2.21 and later choose the RoCE v2 entry themselves; setting an index blocks that", nil
}

func (f *facts) declineCrossNIC() (string, []check.Evidence) {
	if len(f.hcas) == 0 {
		return noRDMA, nil
	}
	if f.activePorts() < 2 && f.portsKnown(func(p probe.HCAPort) bool { return p.State != "" }) {
		return fmt.Sprintf("%s: there are no rails to keep apart", plural(f.activePorts(), "active RDMA port")), nil
	}
	return "nothing proves that the rails cannot reach each other (no fabric map, no NIC-to-NIC matrix, no failed queue pair)", nil
}

func (f *facts) declineQPs() (string, []check.Evidence) {
	if len(f.hcas) == 0 {
		return noRDMA, nil
	}
	for _, n := range f.hcas {
		if strings.Contains(n.HCA.Name, "bond") {
			return fmt.Sprintf("%s looks bonded, but neither its mode nor its slaves were read", n.HCA.Name), nil
		}
	}
	return "no bonded HCA: one queue pair per connection fills a port", nil
}

func (f *facts) declineGDRLevel() (string, []check.Evidence) {
	if len(f.hcas) == 0 {
		return noRDMA, nil
	}
	return "no measured gain from another distance; the default (PXB, P2C on C2C machines) is safe", nil
}

func (f *facts) declineP2PLevel() (string, []check.Evidence) {
	if classes := f.gpuClasses(); len(classes) > 0 && classes[len(classes)-1] <= graph.NVB {
		return fmt.Sprintf("every GPU pair talks over NVLink (%s): the level decides nothing", names(classes)), f.linkEvidence()
	}
	return "no measured gain from another level; a wider one can be slower or hang with ACS on", nil
}

// gpuClasses lists the path classes between GPUs, best first.
func (f *facts) gpuClasses() []graph.PathClass {
	var out []graph.PathClass
	for i, a := range f.gpus {
		for _, b := range f.gpus[i+1:] {
			if c := f.topo.Class(a, b); c == graph.Unknown {
				return nil
			} else {
				out = append(out, c)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func names(classes []graph.PathClass) string {
	var out []string
	for _, c := range classes {
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

func (f *facts) linkEvidence() []check.Evidence {
	var ev []check.Evidence
	for _, n := range f.gpus {
		links, ok := n.GPU.NVLinks.Get()
		if !ok {
			continue
		}
		up := 0
		for _, l := range links {
			if l.State == probe.LinkUp {
				up++
			}
		}
		o := probe.OriginOf(n.GPU.Origins, "nvlinks")
		ev = append(ev, check.Evidence{Source: o.Source, Where: o.Where, Fact: fmt.Sprintf("%s: %d of %d NVLinks up", n.Label, up, len(links))})
	}
	return ev
}

// ll128Broken lists the NCCL versions whose LL128 corrupts data while an NVLink
// is down (NVIDIA/nccl issue 596).
var ll128Broken = []string{"2.10.3", "2.11.4"}

func (f *facts) setProto() (Variable, bool) {
	down, ok := f.finding("nvlink-down")
	if !ok || !slices.Contains(ll128Broken, f.inv.Runtime.NCCL) {
		return Variable{}, false
	}
	o := probe.OriginOf(f.inv.Runtime.Origins, "nccl")
	return Variable{
		Value:    "^LL128",
		Why:      fmt.Sprintf("an NVLink is down and NCCL %s computes wrong results with LL128 then (NVIDIA/nccl issue 596). Stop-gap: the repair is the link or a newer NCCL.", f.inv.Runtime.NCCL),
		Evidence: append(slices.Clone(down.Evidence), check.Evidence{Source: o.Source, Where: o.Where, Fact: "NCCL " + f.inv.Runtime.NCCL}),
		Risk:     "medium sizes lose up to half their bandwidth; remove it after the repair",
		Since:    "2.4",
		Until:    "2.11.4",
		Verify:   "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING prints 0.0 for every LL128 column",
	}, true
}

func (f *facts) declineProto() (string, []check.Evidence) {
	if _, ok := f.finding("nvlink-down"); ok {
		v := f.inv.Runtime.NCCL
		if v == "" {
			return "an NVLink is down, but the NCCL version is not known; only 2.10.3 and 2.11.4 need ^LL128 then", nil
		}
		return fmt.Sprintf("an NVLink is down, but NCCL %s keeps LL128 right (only 2.10.3 and 2.11.4 do not)", v), nil
	}
	return "no measured run shows another protocol winning, and LL128 is never forced on", nil
}

func (f *facts) declineTopoFile() (string, []check.Evidence) {
	flat, ok := f.finding("vm-flat-pci")
	switch {
	case !ok && !f.treeKnown():
		return "where GPUs and HCAs hang on PCIe was not seen, so a file could only guess", nil
	case !ok:
		return "the PCI tree is visible, so NCCL finds it itself", nil
	case len(f.hcas) == 0 && f.allNVLink():
		return "the hypervisor hides the PCI tree, but GPUs talk over NVLink and there is no HCA to place: a file would change nothing", flat.Evidence
	default:
		return "the hypervisor hides the PCI tree; a file would help, but which GPU and HCA share a switch is not known here. Take the cloud's file, or the bare-metal dump with this guest's bus ids", flat.Evidence
	}
}

// treeKnown reports that the place of every GPU and HCA on PCIe was seen.
func (f *facts) treeKnown() bool {
	return !slices.ContainsFunc(slices.Concat(f.gpus, f.hcas), func(n *graph.Node) bool { return n.Up == nil })
}

func (f *facts) allNVLink() bool {
	c := f.gpuClasses()
	return len(c) > 0 && c[len(c)-1] <= graph.NVB
}

func (f *facts) anyPort(is func(probe.HCAPort) bool) bool {
	return slices.ContainsFunc(f.hcas, func(n *graph.Node) bool { return slices.ContainsFunc(n.HCA.Ports, is) })
}

// portsKnown reports that every HCA lists its ports and that a fact is known of
// each of them.
func (f *facts) portsKnown(is func(probe.HCAPort) bool) bool {
	return !slices.ContainsFunc(f.hcas, func(n *graph.Node) bool { return len(n.HCA.Ports) == 0 }) &&
		!f.anyPort(func(p probe.HCAPort) bool { return !is(p) })
}

func (f *facts) activePorts() int {
	n := 0
	for _, h := range f.hcas {
		for _, p := range h.HCA.Ports {
			if p.Active() {
				n++
			}
		}
	}
	return n
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
