package check

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var logPluginMissing = Rule{
	ID:    "log-plugin-missing",
	Title: "Network plugin that the platform needs is not found",
	Doc: `Fires for hosts of a job over several hosts whose log says that no network plugin was
found although one is needed: an EFA adapter on the bus, settings of Google's
FasTrak or TCPX plugin, or NCCL_NET or NCCL_NET_PLUGIN that names one.

critical.

Silent on one host, with NCCL's own IB transport, and where another plugin carries the
traffic: the line is normal there. So are missing collnet and tuner symbols.`,
	Across: runLogPluginMissing,
}

func runLogPluginMissing(a *Across) {
	wide := a.wideHosts()
	var hosts []string
	var proof []Evidence
	for _, e := range a.said() {
		needs := a.pluginNeeds(e.Host)
		loaded := slices.ContainsFunc(a.used(e.Host), func(n probe.Network) bool { return n.Name != "IB" && n.Name != "Socket" })
		if len(needs) == 0 || loaded || slices.Contains(hosts, e.Host) {
			continue
		}
		if !slices.Contains(wide, e.Host) {
			if a.jobSpread() == spreadUnknown {
				a.Gap("a network plugin is asked for and not found; whether the job spans hosts is not in the log", askRanks, HostKey(e.Host))
			}
			continue
		}
		hosts = append(hosts, e.Host)
		proof = append(append(proof, quotes([]probe.Event{e})...), needs...)
	}
	if len(hosts) == 0 {
		return
	}
	hosts = names(hosts)
	a.Report(Finding{
		Severity: Critical, Subjects: hostKeys(hosts),
		Expected: "the network plugin of the platform is loaded",
		Observed: "NCCL finds no network plugin on " + listed(hosts) + " and falls back to what it has built in",
		Evidence: few(proof),
		Fix:      "whoever builds the image: install the plugin (aws-ofi-nccl for EFA, the FasTrak or TCPX installer on Google Cloud) and put its folder into LD_LIBRARY_PATH of the launched ranks, not of the login shell alone",
	})
}

// efaDevices are PCI device ids of Amazon's EFA, by their vendor 1d0f (pci.ids).
var efaDevices = []probe.PCIID{0xefa0, 0xefa1, 0xefa2, 0xefa3}

// pluginNeeds returns what shows that a host cannot do without a plugin.
func (a *Across) pluginNeeds(host string) []Evidence {
	var out []Evidence
	for _, e := range a.Job.Env {
		if e.Host != host && e.Host != "" {
			continue
		}
		builtIn := slices.ContainsFunc([]string{"", "IB", "Socket", "none"}, func(n string) bool { return strings.EqualFold(n, e.Value) })
		named := (e.Name == "NCCL_NET" || e.Name == "NCCL_NET_PLUGIN") && !builtIn
		if named || strings.HasPrefix(e.Name, "NCCL_FASTRAK_") || strings.HasPrefix(e.Name, "NCCL_GPUDIRECTTCPX_") {
			out = append(out, settingEvidence(e))
		}
	}
	if h := a.Host(host); h != nil {
		for _, d := range h.Inv.PCI {
			if d.Vendor == probe.Some(probe.PCIID(0x1d0f)) && slices.Contains(efaDevices, d.Device.Or(0)) {
				out = append(out, evidence(d.Origins, "device", "device", "%s is an EFA adapter", d.Addr))
			}
		}
	}
	return few(out)
}
