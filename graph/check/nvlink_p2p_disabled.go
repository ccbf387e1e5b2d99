package check

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var nvlinkP2PDisabled = Rule{
	ID:    "nvlink-p2p-disabled",
	Title: "P2P is refused between GPUs that NVLink joins",
	Doc: `Fires for pairs of GPUs with NVLink between them whose P2P status the driver gives as not
ok, and where NCCL warns that P2P is disabled between NVLINK connected GPUs.

critical.

Silent where NCCL_P2P_DISABLE or NCCL_P2P_LEVEL is set, and for PCIe pairs, of which NCCL
speaks as "connected GPUs".`,
	Run:    runNVLinkP2PDisabled,
	Across: acrossNVLinkP2PDisabled,
}

const p2pFix = "administrator: this is a fault of the hardware or the driver: look for Xid lines, reset the GPUs, and have the boards or the bridge inspected if it stays. NCCL_IGNORE_DISABLED_P2P=1 only hides it"

func runNVLinkP2PDisabled(p *Pass) {
	for i, m := range p.facts.gpus {
		for _, n := range p.facts.gpus[i+1:] {
			if p.Topo.Class(m, n) != graph.NVL {
				continue
			}
			status := p2pStatus(m, n)
			if status == "" || status == "ok" {
				continue
			}
			p.Report(Finding{
				Severity: Critical, Subjects: []string{m.Key, n.Key},
				Expected: "P2P between GPUs joined by NVLink",
				Observed: fmt.Sprintf("%s and %s: P2P is %s", m.Label, n.Label, status),
				Evidence: []Evidence{evidence(m.GPU.Origins, "peers", "", "P2P read of %s to %s: %s", m.Label, n.Label, status)},
				Fix:      p2pFix,
			})
		}
	}
}

// p2pStatus is what the driver says about reading from one GPU to the other, ""
// where it was not asked.
func p2pStatus(m, n *graph.Node) string {
	for _, x := range m.GPU.Peers {
		if x.Capability == "read" && n.GPU.Index == probe.Some(x.GPU) {
			return x.Status
		}
	}
	return ""
}

var disabledPair = regexp.MustCompile(`connected GPUs (\d+) and (\d+)`)

func acrossNVLinkP2PDisabled(a *Across) {
	var events []probe.Event
	var subjects []string
	for _, e := range a.said() {
		if _, set := a.setting("NCCL_P2P_LEVEL", e.Host); set {
			continue
		}
		if _, off := a.switchedOn("NCCL_P2P_DISABLE", e.Host); off {
			continue
		}
		events = append(events, e)
		m := disabledPair.FindStringSubmatch(e.Text)
		if m == nil {
			subjects = append(subjects, HostKey(e.Host))
			continue
		}
		for _, index := range m[1:] {
			subjects = append(subjects, a.gpuOfIndex(e.Host, index))
		}
	}
	if len(events) == 0 {
		return
	}
	slices.SortFunc(subjects, compareKeys)
	a.Report(Finding{
		Severity: Critical, Subjects: slices.Compact(subjects),
		Expected: "P2P between GPUs joined by NVLink",
		Observed: "NCCL finds P2P disabled between GPUs that NVLink joins on " + listed(eventHosts(events)),
		Evidence: quotes(events), Fix: p2pFix,
	})
}

// gpuOfIndex returns the key of a host's GPU of that NVML index: by address where
// a rank shows it.
func (a *Across) gpuOfIndex(host, index string) string {
	for _, c := range a.Job.Comms {
		for i := range c.Members {
			if m := &c.Members[i]; m.Host == host && m.Addr.Known() && fmt.Sprint(m.GPU.Or(-1)) == index {
				return a.Key(host, a.gpuKey(m))
			}
		}
	}
	return a.Key(host, "gpu:"+index)
}
