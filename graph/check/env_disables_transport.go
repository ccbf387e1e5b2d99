package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

var envDisablesTransport = Rule{
	ID:    "env-disables-transport",
	Title: "a setting turns off a path that works",
	Doc: `Holds switches against what the hosts have, by their inventories or by what a log
prints. Fires for NCCL_P2P_DISABLE=1 with GPU pairs on NVLink or one PCIe switch,
NCCL_SHM_DISABLE=1 where GPUs talk across the CPU, NCCL_IB_DISABLE=1 with ACTIVE HCAs,
NCCL_NVLS_ENABLE=0 with more than two GPUs on NVSwitch 3 or later, NCCL_CUMEM_ENABLE=0
with NVLink, NCCL_NET_GDR_LEVEL=LOC, NCCL_NET_GDR_READ=0 and NCCL_DMABUF_ENABLE=0 where
GPUDirect RDMA is possible, NCCL_PROTO without LL128 (^LL128, Simple) with NVLink,
NCCL_MNNVL_ENABLE=0 in an NVLink domain of several hosts, and NCCL_PXN_DISABLE=1 where
GPUs with NVLink share several HCAs. Warning; info where another finding shows the fault
that it works round. NCCL_SHM_DISABLE and NCCL_PROTO in a file also without a host
(likely).
Silent: ^LL128 with an NVLink down and NCCL up to 2.11, NCCL_NVLS_ENABLE=0 where a log
shows NVLS failing; GeForce boards without P2P; =0 on a disable switch.`,
	Across: runEnvDisablesTransport,
}

// offSwitch is a setting that turns a path off.
type offSwitch struct {
	name string
	off  func(setting) bool
	// found says which working path of a host it takes away; known is false where
	// the host's inventory does not tell. logged is the same from what jobs print.
	found  func(meeting) (path string, ev []Evidence, known bool)
	logged func(a *Across, host string) (proof []Evidence, known bool)
	cost   string
	// common paths are those that nearly every host has.
	common bool
	// faults are the rules whose findings the setting works round; silent, those
	// that make it right as long as they fire.
	faults, silent []string
}

func zero(s setting) bool { return s.is(0) }
func one(s setting) bool  { return s.is(1) }

var offSwitches = []offSwitch{
	{name: "NCCL_P2P_DISABLE", off: one, found: meeting.nearPair, logged: p2pPath, cost: "GPUs talk through host memory instead, and NVLink SHARP is off too",
		faults: []string{"acs-redirects-p2p", "iommu-translates", "nvlink-p2p-disabled"}},
	{name: "NCCL_SHM_DISABLE", off: one, found: meeting.sharedMemory, logged: shmPath, cost: "processes of one host that have no P2P talk through the network",
		common: true, faults: []string{"shm-too-small"}},
	{name: "NCCL_IB_DISABLE", off: one, found: meeting.activeHCA, cost: "traffic between hosts goes over TCP",
		faults: []string{"verbs-missing", "log-qp-failed", "memlock-low"}},
	{name: "NCCL_NVLS_ENABLE", off: zero, found: meeting.multicast, logged: nvlsPath, cost: "the switches no longer reduce (NVLink SHARP)",
		faults: []string{"fabric-not-ready", "nvlink-down"}, silent: []string{"log-nvls-failed"}},
	// By default only since 2.19.
	{name: "NCCL_CUMEM_ENABLE", off: func(s setting) bool { return s.is(0) && !NCCLBefore(s.nccl, 2, 19) }, found: meeting.nvlinkPair, logged: nvlinkPath,
		cost: "no NVLink between hosts, no NVLink SHARP on user buffers, no symmetric memory"},
	{name: "NCCL_NET_GDR_LEVEL", off: func(s setting) bool { return s.effect.Value == "LOC" }, found: meeting.gdrPossible, logged: gdrPath, cost: "data to and from NICs goes through host memory",
		faults: []string{"gdr-unavailable", "gdr-one-sided", "acs-redirects-p2p"}},
	{name: "NCCL_NET_GDR_READ", off: zero, found: meeting.gdrPossible, logged: gdrPath, cost: "what is sent goes through host memory",
		faults: []string{"acs-redirects-p2p", "pcie-path-bottleneck"}},
	{name: "NCCL_DMABUF_ENABLE", off: zero, found: meeting.gdrByDMABUF, cost: "GPUDirect RDMA is left to nvidia-peermem, and is off without it",
		silent: []string{"log-dmabuf-failed"}},
	{name: "NCCL_PROTO", off: setting.withoutLL128, found: meeting.ll128, logged: nvlinkPath, cost: "medium sizes lose up to half their bandwidth without LL128",
		common: true, faults: []string{"nvlink-down", "measured-wrong-data"}},
	{name: "NCCL_MNNVL_ENABLE", off: zero, found: meeting.nvlinkDomain, logged: domainPath, cost: "hosts of one NVLink domain talk over the network",
		faults: []string{"imex-missing", "fabric-not-ready"}},
	{name: "NCCL_PXN_DISABLE", off: one, found: meeting.railed, logged: pxnPath, cost: "GPUs no longer send through the GPU next to the NIC, which costs all-to-all on rails",
		faults: []string{"log-qp-failed"}},
}

func runEnvDisablesTransport(a *Across) {
	for _, o := range offSwitches {
		for _, s := range a.settings(o.name) {
			if o.off(s) && a.fired(o.silent) == "" && !a.protectsData(s) {
				o.judge(a, s)
			}
		}
	}
}

// judge looks for the path on every host where the setting holds, and reports all
// of them together.
func (o offSwitch) judge(a *Across, s setting) {
	f := Finding{Severity: Warning, Certainty: Sure, Expected: "unset: NCCL uses what works",
		Fix: "user: find what sets " + s.name + " (job script, framework, image, /etc/nccl.conf), delete it and test"}
	if rule := a.fired(o.faults); rule != "" {
		f.Severity = Info
		f.Fix = fmt.Sprintf("user: delete %s once the fault that it works round is repaired (see %s)", s.name, rule)
	}
	var on, blind []string
	for _, h := range s.places() {
		path, ev, known := o.at(a, s, h)
		switch {
		case h == spot{} && o.common && !s.confirmed:
			f.Observed, f.Certainty = fmt.Sprintf("%s: %s", s, o.cost), Likely
			on = []string{""}
		case path != "":
			if len(on) == 0 {
				f.Observed = fmt.Sprintf("%s: %s; it turns off %s", s, o.cost, path)
			}
			on, f.Evidence = append(on, h.name), append(f.Evidence, ev...)
		case !known:
			blind = append(blind, h.name)
		}
	}
	if len(blind) > 0 && len(on) == 0 {
		a.Gap(s.String()+" is set, and whether it turns a path off is not known", askGraph, a.keysFor(s.name, s.hosts)...)
	}
	if len(on) == 0 {
		return
	}
	if len(on) > 1 {
		f.Observed += fmt.Sprintf(" on %s", someNames(on))
	}
	f.Evidence = append(s.evidence(), few(f.Evidence)...)
	f.Subjects, f.Certainty = a.keysFor(s.name, on), s.certainty(f.Certainty)
	a.Report(f)
}

// spot is a host where a setting holds; topo is nil where nothing tells of its
// hardware.
type spot struct {
	name string
	topo *graph.Topology
}

// places lists the hosts where a setting holds; one without a name where none is
// known.
func (s setting) places() []spot {
	var out []spot
	for _, t := range s.on {
		out = append(out, spot{t.Inv.Host.Name, t})
	}
	for _, h := range s.hosts {
		if h != "" && !slices.ContainsFunc(out, func(o spot) bool { return probe.SameHostName(o.name, h) }) {
			out = append(out, spot{name: h})
		}
	}
	if len(out) == 0 {
		out = append(out, spot{})
	}
	return out
}

// at looks for the path on one host: in its inventory, else in what jobs print.
func (o offSwitch) at(a *Across, s setting, h spot) (path string, ev []Evidence, known bool) {
	if h.topo != nil && !OnlyInJobs(h.topo.Inv) {
		path, ev, known = o.found(meeting{Across: a, setting: s, topo: h.topo, facts: a.factsOf(h.topo)})
	}
	if path != "" || known || o.logged == nil || len(a.Job.Logs)+len(a.Job.Comms) == 0 {
		return path, ev, known
	}
	if ev, known = o.logged(a, h.name); len(ev) > 0 {
		path = "what the log shows: " + ev[0].Fact
	}
	return path, ev, known
}

// fired returns the first of the rules that has a finding.
func (a *Across) fired(rules []string) string {
	for _, r := range rules {
		if slices.ContainsFunc(a.out.Findings, func(f Finding) bool { return f.Rule == r }) {
			return r
		}
	}
	return ""
}

// protectsData reports NCCL_PROTO=^LL128 where LL128 corrupts data: an NVLink is
// down and NCCL is 2.11 or older (NVIDIA/nccl issue 596).
func (a *Across) protectsData(s setting) bool {
	return s.name == "NCCL_PROTO" && NCCLBefore(s.nccl, 2, 12) && a.fired([]string{"nvlink-down"}) != ""
}

// withoutLL128 reports a value of NCCL_PROTO that leaves Simple and takes LL128
// away.
func (s setting) withoutLL128() bool {
	return s.selects(func(r ncclenv.Selection) bool {
		return slices.Contains(r.Allowed, "Simple") && !slices.Contains(r.Allowed, "LL128")
	})
}

// noPeerBoards are the boards to which the driver gives no P2P over PCIe.
var noPeerBoards = []string{"GeForce", "RTX 20", "RTX 30", "RTX 40", "RTX 50", "Titan RTX"}

func noPeer(n *graph.Node) bool {
	name := n.GPU.Name
	if b, ok := BoardOfGPU(n); ok {
		name += " " + b.Name
	}
	return slices.ContainsFunc(noPeerBoards, func(b string) bool { return strings.Contains(name, b) })
}

// nearPair finds two GPUs on NVLink or behind one PCIe switch.
func (m meeting) nearPair() (path string, ev []Evidence, known bool) {
	return m.pair(func(g, h *graph.Node, c graph.PathClass) bool {
		return c <= graph.NVB || c.Near() && !noPeer(g) && !noPeer(h)
	})
}

func (m meeting) nvlinkPair() (path string, ev []Evidence, known bool) {
	return m.pair(func(_, _ *graph.Node, c graph.PathClass) bool { return c <= graph.NVB })
}

// pair finds two GPUs by their path.
func (m meeting) pair(fits func(g, h *graph.Node, c graph.PathClass) bool) (path string, ev []Evidence, known bool) {
	known = true
	for i, g := range m.facts.gpus {
		for _, h := range m.facts.gpus[i+1:] {
			c := m.topo.Class(g, h)
			switch {
			case c == graph.Unknown:
				known = false
			case fits(g, h, c):
				return fmt.Sprintf("P2P between %s and %s (%s)", g.Label, h.Label, c), pairEvidence(m.topo, g, h), true
			}
		}
	}
	return "", nil, known
}

// ll128 finds NVLink between GPUs; over PCIe alone NCCL leaves LL128 off.
func (m meeting) ll128() (path string, ev []Evidence, known bool) { return m.nvlinkPair() }

// sharedMemory is there on every host, and missed where P2P does not join all
// GPUs.
func (m meeting) sharedMemory() (path string, ev []Evidence, known bool) {
	if path, ev, _ = m.pair(func(_, _ *graph.Node, c graph.PathClass) bool { return c == graph.PHB || c == graph.SYS }); path != "" {
		return "shared memory, for want of " + path, ev, true
	}
	_, _, known = m.pair(func(_, _ *graph.Node, _ graph.PathClass) bool { return false })
	return "", nil, known
}

// pairEvidence says from where the way between two GPUs is known.
func pairEvidence(t *graph.Topology, g, h *graph.Node) []Evidence {
	if r, ok := t.Relation(g, h); ok {
		return []Evidence{evidence(r.Origins, "code", "", "%s %s %s", r.A, r.Code, r.B)}
	}
	if links, ok := g.GPU.NVLinks.Get(); ok && len(links) > 0 {
		return []Evidence{evidence(g.GPU.Origins, "nvlinks", "", "%s: %d NVLinks", g.Label, len(links))}
	}
	if g.PCI != nil {
		return []Evidence{evidence(g.PCI.Origins, "parent", "", "%s at %s, %s", g.Label, g.PCI.Addr, t.Class(g, h))}
	}
	return nil
}

func (m meeting) activeHCA() (path string, ev []Evidence, known bool) {
	known = true
	var active []string
	for _, n := range m.facts.hcas {
		switch usability(n.HCA) {
		case yes:
			active = append(active, n.HCA.Name)
			ev = append(ev, evidence(n.HCA.Origins, "ports", "", "%s has an ACTIVE port", n.HCA.Name))
		case unknown:
			known = false
		}
	}
	if len(active) == 0 {
		return "", nil, known
	}
	return "the HCAs " + someNames(active), ev[:min(len(ev), 4)], true
}

// multicast finds GPUs whose NVSwitches reduce: NVSwitch 3 came with Hopper. NCCL
// uses it for more than two GPUs (transport/nvls.cc).
func (m meeting) multicast() (path string, ev []Evidence, known bool) {
	const reduction = "NVLink SHARP of the NVSwitches"
	if len(m.facts.gpus) <= 2 {
		return "", nil, len(m.facts.gpus) > 0
	}
	for _, n := range m.facts.gpus {
		cc, ok := n.GPU.CC.Get()
		_, linked := n.GPU.NVLinks.Get()
		switch {
		case ok && cc < multicastCC:
			return "", nil, true
		case !ok || !linked:
			return "", nil, false
		}
	}
	if !toSwitch(m.facts.gpus) {
		return "", nil, true
	}
	n := m.facts.gpus[0]
	return reduction, []Evidence{evidence(n.GPU.Origins, "nvlinks", "", "%s: NVLinks to NVSwitches, compute capability %d.%d", n.Label, n.GPU.CC.Or(0)/10, n.GPU.CC.Or(0)%10)}, true
}

// gdrPossible finds what proves that GPUDirect RDMA works on the host.
func (m meeting) gdrPossible() (path string, ev []Evidence, known bool) {
	if len(m.facts.gpus) == 0 || !slices.ContainsFunc(m.facts.hcas, func(n *graph.Node) bool { return usability(n.HCA) != no }) {
		return "", nil, true
	}
	if ev := m.peermem(); ev != nil {
		return "GPUDirect RDMA, for which nvidia-peermem is loaded", ev, true
	}
	for _, n := range m.facts.hcas {
		if n.HCA.GDR.Or(false) {
			return "GPUDirect RDMA", []Evidence{evidence(n.HCA.Origins, "gdr", "", "%s: gdr 1", n.HCA.Name)}, true
		}
	}
	for _, d := range m.Job.Adapters {
		if d.GDR.Or(false) && (d.Host == "" || probe.SameHostName(d.Host, m.topo.Inv.Host.Name)) {
			return "GPUDirect RDMA", []Evidence{evidence(d.Origins, "", "", "GPUDirect RDMA is on for %s", d.Name)}, true
		}
	}
	return "", nil, false
}

// peermem is the evidence that nvidia-peermem is loaded; nil where it is not.
func (m meeting) peermem() []Evidence {
	for _, mod := range m.topo.Inv.Settings.Modules {
		if mod.Name == "nvidia_peermem" || mod.Name == "nv_peer_mem" {
			return []Evidence{evidence(m.topo.Inv.Settings.Origins, "modules", "", "module %s is loaded", mod.Name)}
		}
	}
	return nil
}

// gdrByDMABUF is gdrPossible where nvidia-peermem would not take over.
func (m meeting) gdrByDMABUF() (path string, ev []Evidence, known bool) {
	if m.peermem() != nil {
		return "", nil, true
	}
	return m.gdrPossible()
}

// nvlinkDomain finds GPUs that are registered in an NVLink domain of several
// hosts: on boards of one host the cluster UUID is zero.
func (m meeting) nvlinkDomain() (path string, ev []Evidence, known bool) {
	for _, n := range m.facts.gpus {
		f := n.GPU.Fabric
		switch {
		case f == nil:
		case strings.Trim(f.ClusterUUID, "0-") != "":
			return "NVLink between the hosts of domain " + f.ClusterUUID, []Evidence{evidence(n.GPU.Origins, "fabric", "", "%s: cluster UUID %s", n.Label, f.ClusterUUID)}, true
		default:
			known = true
		}
		if b, ok := BoardOfGPU(n); ok && b.Form != FormSuperchip {
			known = true
		}
	}
	return "", nil, known
}

// railed finds GPUs that could send through each other's HCAs.
func (m meeting) railed() (path string, ev []Evidence, known bool) {
	data := m.facts.dataHCAs()
	if len(m.facts.gpus) < 2 || len(m.facts.hcas) < 2 || m.jobSpread() == oneHost {
		return "", nil, true
	}
	g, h := m.facts.gpus[0], m.facts.gpus[1]
	c := m.topo.Class(g, h)
	if c == graph.Unknown || len(data) == 0 {
		return "", nil, false
	}
	if c > graph.NVB || len(data) < 2 {
		return "", nil, true
	}
	return fmt.Sprintf("sending through the %d data HCAs of other GPUs", len(data)), pairEvidence(m.topo, g, h), true
}
