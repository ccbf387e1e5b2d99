package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var gdrUnavailable = Rule{
	ID:    "gdr-unavailable",
	Title: "GPUDirect RDMA is not possible on this host",
	Doc: `Fires for a host with GPUs and an ACTIVE RDMA HCA that has no peer memory module
(none of the places where NCCL looks: memory_peers/nv_mem*, module nvidia_peermem) and
cannot use DMA-BUF either, which takes the open kernel modules and Linux 5.12. Also
where nvidia_peermem is loaded but not registered with the RDMA stack (likely).

critical: the network then reaches about a third of its bandwidth.

Silent where DMA-BUF is possible (a gap says that it is not proven), without an RDMA
HCA, on GB10, which has no GPUDirect RDMA, and for EFA, which has a way of its own.`,
	Run: runGDRUnavailable,
}

// ncclPeerMemory are the beginnings of the names that NCCL looks for (net_ib/gdr.cc).
const ncclPeerMemory = "nv_mem"

func runGDRUnavailable(p *Pass) {
	s := &p.Inv.Settings
	if len(p.facts.gpus) == 0 || !p.hasRDMA() {
		return
	}
	peers, peersRead := s.PeerMemory.Get()
	if slices.ContainsFunc(peers, func(n string) bool { return strings.HasPrefix(n, ncclPeerMemory) }) {
		return
	}
	loaded := slices.ContainsFunc(s.Modules, func(m probe.Module) bool { return m.Name == "nvidia_peermem" })
	if loaded && !peersRead {
		return
	}
	const how = "run ncclmap on the host itself, or record sys/kernel/mm, sys/module and proc/driver/nvidia too"
	if !loaded && (!peersRead || len(s.Modules) == 0) {
		p.Gap("which modules give the HCAs access to GPU memory is not in the sources", how, p.Host())
		return
	}
	impossible, known := p.noDMABuf()
	switch {
	case !known:
		p.Gap("no peer memory module is loaded, and whether DMA-BUF is possible is not in the sources", how, p.Host())
		return
	case impossible == "":
		p.Gap("no peer memory module is loaded; DMA-BUF is possible, but not proven", "run a job with NCCL_DEBUG=INFO and look for DMA-BUF and GDRDMA", p.Host())
		return
	}
	observed, certainty := "no peer memory module is loaded", Sure
	if loaded {
		observed, certainty = "nvidia_peermem is loaded, but not registered with the RDMA stack", Likely
	}
	p.Report(Finding{
		Severity:  Critical,
		Certainty: certainty,
		Subjects:  []string{p.Host()},
		Expected:  "nvidia_peermem loaded and registered, or open kernel modules with Linux 5.12 or later for DMA-BUF",
		Observed:  observed + "; " + impossible,
		Evidence: []Evidence{
			evidence(s.Origins, "peer_memory", "", "peer memory modules: %s", orNone(peers)),
			evidence(s.Origins, "modules", "", "module nvidia_peermem: %s", map[bool]string{true: "loaded", false: "not loaded"}[loaded]),
			p.noDMABufEvidence(impossible),
		},
		Fix: "administrator: modprobe nvidia-peermem on every node, and at every boot (/etc/modules-load.d); or install the open kernel modules on Linux 5.12 or later, which use DMA-BUF. In an NCCL log PHB then stands for 'no GPUDirect RDMA', not for the cabling",
	})
}

// hasRDMA reports an HCA of the host itself whose port is ACTIVE and that relies
// on GPUDirect RDMA of the kernel.
func (p *Pass) hasRDMA() bool {
	if slices.ContainsFunc(p.facts.gpus, func(n *graph.Node) bool { b, ok := BoardOfGPU(n); return ok && b.Name == "GB10" }) {
		return false
	}
	return slices.ContainsFunc(p.facts.hcas, func(n *graph.Node) bool {
		return slices.ContainsFunc(n.HCA.Ports, probe.HCAPort.Active) && !isEFA(n)
	})
}

// isEFA reports an adapter of Amazon's that NCCL reaches through a plugin.
func isEFA(n *graph.Node) bool {
	if v, ok := pciID(n.PCI); ok {
		return strings.HasPrefix(v, "1d0f:")
	}
	return strings.HasPrefix(n.HCA.Name, "efa") || strings.HasPrefix(n.HCA.Name, "rdmap")
}

// noDMABuf says what rules DMA-BUF out, "" if nothing does; known is false where
// the facts do not tell.
func (p *Pass) noDMABuf() (why string, known bool) {
	open, openKnown := p.Inv.Settings.OpenModule.Get()
	major, minor, kernelKnown := kernelVersion(p.Inv.Host.Kernel)
	old := kernelKnown && (major < 5 || major == 5 && minor < 12)
	switch {
	case openKnown && !open:
		return "DMA-BUF needs the open kernel modules, and these are the closed ones", true
	case old:
		return fmt.Sprintf("DMA-BUF needs Linux 5.12, and this is %s", p.Inv.Host.Kernel), true
	}
	return "", openKnown && kernelKnown
}

func (p *Pass) noDMABufEvidence(why string) Evidence {
	if p.Inv.Settings.OpenModule == probe.Some(false) {
		return evidence(p.Inv.Settings.Origins, "open_kernel_module", "", "closed NVIDIA kernel modules")
	}
	return evidence(p.Inv.Host.Origins, "kernel", "", "%s", why)
}

func kernelVersion(release string) (major, minor int, ok bool) {
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major, minor, err == nil
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
