package check

import (
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

var imexMissing = Rule{
	ID:    "imex-missing",
	Title: "Multi-node NVLink without IMEX",
	Doc: `Fires for hosts of a job over several hosts of one NVLink domain where NCCL meets CUDA
error 800 (operation not permitted), or says that multi-node NVLink is there but does
not work.

critical.

Silent on one host, and for boards without multi-node NVLink, whose fabric has no cluster
UUID: HGX H100 reports a completed fabric too.`,
	Across: runIMEXMissing,
}

func runIMEXMissing(a *Across) {
	domain := a.nvlinkDomain()
	var events []probe.Event
	for _, e := range a.said() {
		if slices.Contains(domain, e.Host) {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return
	}
	hosts := eventHosts(events)
	proof := quotes(events)
	for _, f := range a.Job.Fabrics {
		if f.Host == hosts[0] {
			proof = append(proof, evidence(f.Origins, "", "", "%sfabric UUID %s", hostPrefix(f.Host), f.UUID))
			break
		}
	}
	a.Report(Finding{
		Severity: Critical, Subjects: hostKeys(hosts),
		Expected: "memory of GPUs on other hosts of the NVLink domain can be imported",
		Observed: "NCCL may not import memory over multi-node NVLink on " + listed(hosts),
		Evidence: proof,
		Fix:      "administrator: start nvidia-imex on all hosts of the domain with one nodes_config.cfg, create the channel (nvidia-modprobe -c 0), and pass /dev/nvidia-caps-imex-channels into the container",
	})
}

// nvlinkDomain returns hosts that share a cluster UUID with another host.
func (a *Across) nvlinkDomain() []string {
	byUUID := map[string][]string{}
	for _, f := range a.Job.Fabrics {
		if f.UUID != "" && f.UUID != "0.0" {
			byUUID[f.UUID] = append(byUUID[f.UUID], f.Host)
		}
	}
	var out []string
	for _, hosts := range byUUID {
		if hosts = names(hosts); len(hosts) > 1 {
			out = append(out, hosts...)
		}
	}
	return names(out)
}
