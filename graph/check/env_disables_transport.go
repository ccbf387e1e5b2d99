package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var envDisablesTransport = Rule{
	ID:    "env-disables-transport",
	Title: "A setting turns a healthy path off",
	Doc: `Fires for switches that are set against a path that the log or another source shows:
NCCL_P2P_DISABLE=1 and NCCL_PROTO without LL128 with NVLink, NCCL_NVLS_ENABLE=0 with
NVSwitch of Hopper or newer and more than two GPUs, NCCL_CUMEM_ENABLE=0 with NVLink,
NCCL_IB_DISABLE=1 with ACTIVE adapters, NCCL_NET_GDR_LEVEL=LOC and NCCL_NET_GDR_READ=0
with GPUDirect RDMA, NCCL_MNNVL_ENABLE=0 in an NVLink domain of several hosts,
NCCL_PXN_DISABLE=1 with NVLink over several hosts, NCCL_SHM_DISABLE=1 where ranks of one
host then use the network.

warning; info where another finding shows the fault that the setting works round.

=0 on a disable switch is harmless. Where the path is not known, that is a gap.`,
	Across: runEnvDisablesTransport,
}

// transportSwitch is a setting that turns something off.
type transportSwitch struct {
	name string
	off  func(value string) bool
	// path returns what shows, on a host, that the path is there; known is false
	// where the sources cannot tell.
	path func(a *Across, host string) (proof []Evidence, known bool)
	lost string // what the path would give
	// fault is the rule of the fault that the setting works round, "" = none.
	fault string
}

func isOn(v string) bool  { return settingInt(v) != 0 }
func isOff(v string) bool { return settingInt(v) == 0 }

var transportSwitches = []transportSwitch{
	{name: "NCCL_P2P_DISABLE", off: isOn, path: p2pPath, lost: "direct access between the GPUs"},
	{name: "NCCL_SHM_DISABLE", off: isOn, path: shmPath, lost: "shared memory between ranks of one host"},
	{name: "NCCL_IB_DISABLE", off: isOn, path: adapterPath, lost: "the RDMA network"},
	{name: "NCCL_NVLS_ENABLE", off: isOff, path: nvlsPath, lost: "NVLink SHARP, which adds up inside the switch", fault: "log-nvls-failed"},
	{name: "NCCL_CUMEM_ENABLE", off: isOff, path: cuMemPath, lost: "NVLink SHARP, registered buffers and multi-node NVLink"},
	{name: "NCCL_NET_GDR_LEVEL", off: func(v string) bool { return strings.EqualFold(v, "LOC") || v == "0" }, path: gdrPath, lost: "GPUDirect RDMA, and with it about two thirds of the network's bandwidth"},
	{name: "NCCL_NET_GDR_READ", off: isOff, path: gdrPath, lost: "GPUDirect RDMA for sending"},
	{name: "NCCL_PROTO", off: noLL128, path: nvlinkPath, lost: "LL128, the best protocol for middle sizes over NVLink"},
	{name: "NCCL_MNNVL_ENABLE", off: isOff, path: domainPath, lost: "NVLink between the hosts", fault: "imex-missing"},
	{name: "NCCL_PXN_DISABLE", off: isOn, path: pxnPath, lost: "sending through the NIC of another GPU, on its rail"},
}

func noLL128(v string) bool {
	return strings.EqualFold(v, "^LL128") || strings.EqualFold(v, "Simple")
}

func runEnvDisablesTransport(a *Across) {
	for _, s := range transportSwitches {
		var hosts, blind []string
		var proof []Evidence
		value := ""
		for _, e := range a.Job.Env {
			if e.Name != s.name || e.How != probe.EnvVariable || !s.off(e.Value) || slices.Contains(hosts, e.Host) || slices.Contains(blind, e.Host) {
				continue
			}
			facts, known := s.path(a, e.Host)
			switch {
			case !known:
				blind = append(blind, e.Host)
				value = e.Value
			case len(facts) > 0:
				hosts = append(hosts, e.Host)
				proof = append(append(proof, settingEvidence(e)), facts...)
				value = e.Value
			}
		}
		setting := s.name + "=" + value
		if len(hosts) == 0 {
			if len(blind) > 0 {
				a.Gap(setting+" is set, and whether it turns a path off is not in the log", askGraph, "env:"+s.name)
			}
			continue
		}
		severity := Warning
		if s.fault != "" && len(a.saidOf(s.fault)) > 0 {
			severity = Info
		}
		a.Report(Finding{
			Severity: severity, Subjects: []string{"env:" + s.name},
			Expected: "NCCL's default, which uses " + s.lost,
			Observed: fmt.Sprintf("%s on %s, where the path is there", setting, listed(names(hosts))),
			Evidence: few(proof),
			Fix:      "user: find what exports " + s.name + " (job script, framework, image, /etc/nccl.conf), delete it, and test; it costs " + s.lost,
		})
	}
}

func nvlinkPath(a *Across, host string) ([]Evidence, bool) {
	proof := a.nvlinkAt(host)
	return proof, len(proof) > 0 || a.linksKnown(host)
}

// linksKnown reports a host of which NCCL's print-out, or a source, shows how its
// GPUs are joined.
func (a *Across) linksKnown(host string) bool {
	for _, t := range a.trees(host) {
		if slices.ContainsFunc(t.Nodes, func(n probe.SystemNode) bool { return strings.HasPrefix(n.Name, "GPU/") }) {
			return true
		}
	}
	h := a.Host(host)
	if h == nil {
		return false
	}
	gpus := h.Of(graph.KindGPU)
	return len(gpus) > 0 && !slices.ContainsFunc(gpus, func(n *graph.Node) bool { return !n.GPU.NVLinks.Known() })
}

func p2pPath(a *Across, host string) ([]Evidence, bool) {
	if proof, known := nvlinkPath(a, host); len(proof) > 0 || !known {
		return proof, known
	}
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		for j := range c.Members {
			for k := range c.Members[j+1:] {
				x, y := &c.Members[j], &c.Members[j+1+k]
				if x.Host != host || y.Host != host {
					continue
				}
				if class, proof := a.pairClass(x, y); class == graph.PIX || class == graph.PXB {
					return proof, true
				}
			}
		}
	}
	return nil, true
}

// shmPath shows ranks of one host that use the network for lack of shared memory.
func shmPath(a *Across, host string) ([]Evidence, bool) {
	local, printed := 0, false
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		here := 0
		for _, m := range c.Members {
			if m.Host == host {
				here++
			}
		}
		local = max(local, here)
		for _, k := range c.Conns {
			if hostOfRank(c, k.From) != host || hostOfRank(c, k.To) != host {
				continue
			}
			printed = true
			if k.Via == probe.ViaNET {
				return []Evidence{evidence(k.Origins, "", "", "%srank %d to %d via NET/%s", hostPrefix(host), k.From, k.To, k.Network)}, true
			}
		}
	}
	return nil, printed || local == 1 || len(a.nvlinkAt(host)) > 0
}

func adapterPath(a *Across, host string) ([]Evidence, bool) {
	h := a.Host(host)
	if h == nil || len(h.Inv.PCI)+len(h.Inv.HCAs) == 0 {
		return nil, false
	}
	for _, d := range h.Inv.HCAs {
		for _, p := range d.Ports {
			if p.Active() {
				return []Evidence{evidence(d.Origins, "ports", "", "port %d of %s is ACTIVE", p.Port, d.Name)}, true
			}
		}
	}
	return nil, true
}

// hopperNVLink is the bandwidth that NCCL gives a GPU of a Hopper board at its
// switch at least, in GB/s: 18 × 20.6 = 370.8; an A100 has 240.
const hopperNVLink = 300

// nvlsPath shows an NVSwitch that can add up. With two GPUs NCCL does not use it
// (transport/nvls.cc, up to 2.28).
func nvlsPath(a *Across, host string) ([]Evidence, bool) {
	for _, t := range a.trees(host) {
		gpus := 0
		var at *probe.SystemNode
		for i, n := range t.Nodes {
			if strings.HasPrefix(n.Name, "GPU/") {
				gpus++
			}
			if n.Link == "NVL" && strings.HasPrefix(n.Name, "NVS/") && n.GBs >= hopperNVLink {
				at = &t.Nodes[i]
			}
		}
		if at != nil && gpus > 2 {
			return []Evidence{evidence(t.Origins, "", "", "%s%d GPUs, each with NVL[%.1f] to %s", hostPrefix(host), gpus, at.GBs, at.Name)}, true
		}
	}
	if len(a.trees(host)) > 0 {
		return nil, true
	}
	for _, c := range a.Job.Comms {
		if reaches(&c, host) && spreadOf(&c) == oneHost && c.Ranks > 0 && c.Ranks <= 2 {
			return nil, true
		}
	}
	h := a.Host(host)
	if h == nil || len(h.Of(graph.KindGPU)) == 0 {
		return nil, false
	}
	gpus := h.Of(graph.KindGPU)
	links, known := gpus[0].GPU.NVLinks.Get()
	cc, ccKnown := gpus[0].GPU.CC.Get()
	if !known || !ccKnown {
		return nil, false
	}
	onSwitch := slices.ContainsFunc(links, func(l probe.NVLink) bool { return l.RemoteKind == probe.RemoteSwitch })
	if !onSwitch || cc < 90 || len(gpus) <= 2 {
		return nil, true
	}
	return []Evidence{evidence(gpus[0].GPU.Origins, "nvlinks", "", "%d GPUs at NVSwitches", len(gpus))}, true
}

// cuMemPath is NVLink with an NCCL that uses cuMem by itself (2.19 and later).
func cuMemPath(a *Across, host string) ([]Evidence, bool) {
	version, _ := a.ncclOf(host)
	if ncclBefore(version, 2, 19) {
		return nil, true
	}
	proof, known := nvlinkPath(a, host)
	return proof, known && version != ""
}

func gdrPath(a *Across, host string) ([]Evidence, bool) {
	known := false
	for _, d := range a.Job.Adapters {
		on, ok := d.GDR.Get()
		if d.Host != host || !ok {
			continue
		}
		if on {
			return []Evidence{evidence(d.Origins, "", "", "%sGPU Direct RDMA Enabled for HCA %d '%s'", hostPrefix(host), d.Index, d.Name)}, true
		}
		known = true
	}
	return nil, known || !slices.Contains(a.wideHosts(), host)
}

func domainPath(a *Across, host string) ([]Evidence, bool) {
	if !slices.Contains(a.nvlinkDomain(), host) {
		return nil, true
	}
	for _, f := range a.Job.Fabrics {
		if f.Host == host {
			return []Evidence{evidence(f.Origins, "", "", "%sfabric UUID %s, shared with another host", hostPrefix(host), f.UUID)}, true
		}
	}
	return nil, true
}

func pxnPath(a *Across, host string) ([]Evidence, bool) {
	if !slices.Contains(a.wideHosts(), host) {
		return nil, true
	}
	return nvlinkPath(a, host)
}
