package check

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// What shows that a path is there on a host, mostly by a log: the proof is empty
// where there is no such path, and known is false where the sources cannot tell.

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
