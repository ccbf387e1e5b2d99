package check

import (
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var logGDROff = Rule{
	ID:    "log-gdr-off",
	Title: "InfiniBand or RoCE without GPUDirect RDMA",
	Doc: `Fires for the hosts of a communicator over several hosts whose NET/IB connections are
in the log and none of which carries /GDRDMA.

critical.

Silent where GPUDirect RDMA is switched off by setting (NCCL_NET_GDR_LEVEL=LOC or 0,
NCCL_IB_CUDA_SUPPORT=0), for GeForce GPUs and systems on chip, which have none, and
where gdr-distance explains it. Connections that are not printed are no sign: since
NCCL 2.22 they are made at first use.`,
	Across: runLogGDROff,
}

func runLogGDROff(a *Across) {
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		if spreadOf(c) != manyHosts {
			continue
		}
		var hosts []string
		var proof []Evidence
		with := false
		for _, k := range c.Conns {
			if k.Via != probe.ViaNET || !strings.HasPrefix(k.Network, "IB") {
				continue
			}
			end := k.From
			if k.Side == probe.SideReceive {
				end = k.To
			}
			h := hostOfRank(c, end)
			with = with || k.GDR == probe.Some(true)
			if h != "" && !a.gdrRefused(h) {
				hosts = append(hosts, h)
				proof = append(proof, evidence(k.Origins, "", "", "%srank %d to %d [%s] via NET/%s/%d, no GDRDMA", hostPrefix(h), k.From, k.To, k.Side, k.Network, k.Device.Or(0)))
			}
		}
		if with || len(hosts) == 0 {
			continue
		}
		hosts = names(hosts)
		for _, d := range a.Job.Adapters {
			if d.GDR.Known() && strings.HasPrefix(d.Network, "IB") {
				word := "Disabled"
				if d.GDR.Or(false) {
					word = "Enabled"
				}
				proof = append([]Evidence{evidence(d.Origins, "", "", "%sGPU Direct RDMA %s for HCA %d '%s'", hostPrefix(d.Host), word, d.Index, d.Name)}, proof...)
				break
			}
		}
		a.Report(Finding{
			Severity: Critical, Subjects: hostKeys(hosts),
			Expected: "connections between hosts with /GDRDMA",
			Observed: "no connection between " + listed(hosts) + " uses GPUDirect RDMA: all data goes through host memory, at about a third of the rate",
			Evidence: few(proof),
			Fix:      `administrator: modprobe nvidia-peermem on every node, at boot, or open kernel modules with DMA-BUF. NCCL_DEBUG_SUBSYS=INIT,NET tells the causes apart: "Disabled for HCA" is the driver, "Disabled for GPU … (distance a > b)" is where the card sits`,
		})
	}
}

// gdrRefused reports hosts on which connections without GPUDirect RDMA are no
// surprise.
func (a *Across) gdrRefused(host string) bool {
	level, set := a.setting("NCCL_NET_GDR_LEVEL", host)
	if _, off := a.switchedOff("NCCL_IB_CUDA_SUPPORT", host); off || set && (level.Value == "LOC" || level.Value == "0") {
		return true
	}
	h := a.Host(host)
	if h == nil {
		return false
	}
	for _, g := range h.Inv.GPUs {
		if strings.Contains(g.Name, "GeForce") || strings.Contains(g.Name, "GB10") {
			return true
		}
	}
	return false
}
