package check

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var pcieSpeedUnreadable = Rule{
	ID:    "pcie-speed-unreadable",
	Title: "NCCL cannot read the PCIe speed and assumes Gen3",
	Doc: `Fires, because something is unknown, for GPUs and HCAs whose link speed the kernel or the
topology file gives as "Unknown" or empty: NCCL then takes Gen3 x16, 12 GB/s in its model.
In a log: "KV Convert to int : could not find value of ''", with the "could not read
…max_link_speed" lines beside it.

warning for Gen4 and newer devices (GPUs from compute capability 8.0 on, HCAs of 200 Gb/s
and more); info otherwise.

Silent where only the width is unknown (NCCL's x16 is right), where only the bridge above a
device is unreadable and no value was replaced, as in most guests, and where a topology
file beside the host, or NCCL_TOPO_FILE in a log, states the speed.`,
	Run:    runPCIeSpeedUnreadable,
	Across: acrossPCIeSpeedUnreadable,
}

func runPCIeSpeedUnreadable(p *Pass) {
	c, ok := p.claims()
	beside := ok && c.beside
	var blind []*graph.Node
	var proof []Evidence
	severity := Info
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		if n.PCI == nil || n.PCI.Max.Speed.Known() {
			continue
		}
		i := slices.IndexFunc(n.PCI.Extra, func(a probe.Attr) bool { return a.Name == "link_speed" || a.Name == "max_link_speed" })
		if i < 0 || beside && c.at[n.PCI.Addr] != nil && c.at[n.PCI.Addr].Max.Speed.Known() {
			continue
		}
		if gen4OrNewer(n) {
			severity = Warning
		}
		a := n.PCI.Extra[i]
		blind = append(blind, n)
		proof = append(proof, evidence(n.PCI.Origins, "max_link.speed_gts", a.Name, "%s of %s is %q", a.Name, n.Label, a.Value))
	}
	if len(blind) == 0 {
		return
	}
	p.Report(Finding{
		Severity: severity,
		Subjects: keys(blind),
		Expected: "link speeds that NCCL can read, such as 32.0 GT/s PCIe",
		Observed: fmt.Sprintf("no speed for %s: NCCL assumes Gen3 x16 (12 GB/s)", labels(blind)),
		Evidence: proof,
		Fix:      "whoever starts the jobs: give NCCL a topology file (NCCL_TOPO_FILE) with the true link_speed and link_width; administrator: a newer kernel reads newer speeds",
	})
}

// gen4OrNewer reports devices whose PCIe interface is Gen4 or newer.
func gen4OrNewer(n *graph.Node) bool {
	gen4, _ := probe.PCIeSpeedOfGen(4)
	if n.PCI.Current.Speed.Or(0) >= gen4 {
		return true
	}
	if n.GPU != nil {
		return n.GPU.CC.Or(0) >= 80
	}
	a, ok := AdapterOf(n.PCI)
	return ok && a.Fastest >= probe.Mbps(200e3)
}

var unreadable = regexp.MustCompile(`could not read \S*/([0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(/\.\.)?/max_link_speed`)

func acrossPCIeSpeedUnreadable(a *Across) {
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
