package check

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var pcieSpeedUnreadable = Rule{
	ID:    "pcie-speed-unreadable",
	Title: "NCCL cannot read a PCIe link speed and assumes Gen3",
	Doc: `Fires for devices whose link speed NCCL could not read and replaced by a value of its own:
"KV Convert to int : could not find value of ''", with the "could not read
…max_link_speed" lines beside it.

warning where the host has GPUs or adapters of PCIe Gen4 or newer, info otherwise.

Silent where only the bridge above a device is unreadable and no value was replaced, as
in most guests, and where NCCL_TOPO_FILE states the figure.`,
	Across: runPCIeSpeedUnreadable,
}

var unreadable = regexp.MustCompile(`could not read \S*/([0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(/\.\.)?/max_link_speed`)

func runPCIeSpeedUnreadable(a *Across) {
	said := a.said()
	for _, h := range eventHosts(said) {
		if _, given := a.setting("NCCL_TOPO_FILE", h); given {
			continue
		}
		var subjects []string
		var proof []probe.Event
		assumed := false
		for _, e := range said {
			if e.Host != h {
				continue
			}
			proof = append(proof, e)
			assumed = assumed || strings.HasPrefix(e.Text, "KV Convert")
			if m := unreadable.FindStringSubmatch(e.Text); m != nil {
				if addr, err := probe.ParseBDF(m[1]); err == nil {
					subjects = append(subjects, a.Key(h, a.deviceKey(h, addr)))
				}
			}
		}
		if !assumed {
			continue
		}
		slices.SortFunc(subjects, compareKeys)
		if subjects = slices.Compact(subjects); len(subjects) == 0 {
			subjects = []string{HostKey(h)}
		}
		severity := Info
		facts := few(quotes(proof))
		if e, ok := a.gen4(h); ok {
			severity = Warning
			facts = append(facts, e)
		}
		a.Report(Finding{
			Severity: severity, Subjects: subjects,
			Expected: "a link speed that NCCL can read",
			Observed: hostPrefix(h) + "the link speed is not readable, and NCCL assumes Gen3 x16 (12 GB/s in its model)",
			Evidence: facts,
			Fix:      "administrator: give NCCL_TOPO_FILE with the true link speeds, or a guest kernel and hypervisor that show them",
		})
	}
}

// deviceKey is the key of a function: that of the GPU of a rank where it is one.
func (a *Across) deviceKey(host string, addr probe.BDF) string {
	for _, c := range a.Job.Comms {
		for _, m := range c.Members {
			if m.Host == host && m.Addr == probe.Some(addr) {
				return "gpu:" + addr.String()
			}
		}
	}
	for _, t := range a.trees(host) {
		for _, n := range t.Nodes {
			if at, ok := treeAddr(n.Name); ok && at == addr && path.Dir(n.Name) == "GPU" {
				return "gpu:" + addr.String()
			}
		}
	}
	return "pci:" + addr.String()
}

// gen4 returns what shows a device on a host that needs PCIe Gen4: a GPU of Ampere
// or newer, or an adapter beyond 100 Gb/s.
func (a *Across) gen4(host string) (Evidence, bool) {
	for _, d := range a.Job.Adapters {
		if r, ok := d.Rate.Get(); ok && d.Host == host && r > probe.Mbps(100e3) {
			return evidence(d.Origins, "", "", "%s: port of %s", d.Name, r.Gbps()), true
		}
	}
	for _, g := range a.usedGPUs() {
		if g.host == host && (g.cc.Or(0) >= 80 || generationOf(g.product, g.cc) > 0 || strings.Contains(g.product, "A100")) {
			return g.proof, true
		}
	}
	return Evidence{}, false
}
