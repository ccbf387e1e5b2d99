package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var logSHMFallback = Rule{
	ID:    "log-shm-fallback",
	Title: "GPUs with a direct path talk through host memory",
	Doc: `Fires for hosts on which ranks are connected via SHM although their GPUs have NVLink
or share PCIe switches (NVL, NVB, PIX, PXB by NCCL's own print-out or another source).

warning.

Silent for PHB, NODE and SYS pairs, where it is the default, for GeForce GPUs, which
have no P2P over PCIe, with MIG, and where NCCL_P2P_DISABLE or NCCL_P2P_LEVEL asks for
it (env-disables-transport speaks). Where the path is not known, that is a gap.`,
	Across: runLogSHMFallback,
}

func runLogSHMFallback(a *Across) {
	type found struct {
		subjects []string
		pairs    []string
		proof    []Evidence
	}
	byHost := map[string]*found{}
	var hosts []string
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		for _, k := range c.Conns {
			x, y := member(c, k.From), member(c, k.To)
			if k.Via != probe.ViaSHM || x == nil || y == nil || a.p2pRefused(x.Host) {
				continue
			}
			class, proof := a.pairClass(x, y)
			if class == graph.Unknown {
				a.Gap("ranks talk through host memory (SHM), and the path between their GPUs is not known", askGraph, HostKey(x.Host))
				continue
			}
			if class > graph.PXB || class == graph.LOC {
				continue
			}
			f := byHost[x.Host]
			if f == nil {
				f = &found{}
				byHost[x.Host] = f
				hosts = append(hosts, x.Host)
			}
			for _, m := range []*probe.Member{x, y} {
				if key := a.Key(m.Host, a.gpuKey(m)); !slices.Contains(f.subjects, key) {
					f.subjects = append(f.subjects, key, rankKey(m))
				}
			}
			f.pairs = append(f.pairs, fmt.Sprintf("%d to %d (%s)", k.From, k.To, class))
			f.proof = append(append(f.proof, evidence(k.Origins, "", "", "rank %d to %d via SHM", k.From, k.To)), proof...)
		}
	}
	for _, h := range names(hosts) {
		f := byHost[h]
		a.Report(Finding{
			Severity: Warning, Subjects: f.subjects,
			Expected: "P2P between GPUs with NVLink or a common PCIe switch",
			Observed: hostPrefix(h) + "via host memory (SHM): rank " + listed(f.pairs),
			Evidence: few(f.proof),
			Fix:      "administrator: find what refuses P2P: ACS on the bridges between them (lspci -vvv), a container that sees only part of the GPUs or has its own PID namespace, or the hardware (nvidia-smi topo -p2p r)",
		})
	}
}

// p2pRefused reports hosts on which SHM is no surprise: settings ask for it, or
// the GPUs do not know P2P.
func (a *Across) p2pRefused(host string) bool {
	if _, set := a.setting("NCCL_P2P_LEVEL", host); set {
		return true
	}
	if _, off := a.switchedOn("NCCL_P2P_DISABLE", host); off {
		return true
	}
	h := a.Host(host)
	return h != nil && slices.ContainsFunc(h.Inv.GPUs, func(g probe.GPU) bool {
		return strings.Contains(g.Name, "GeForce") || g.MIG.Or(false)
	})
}
