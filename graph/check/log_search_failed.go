package check

import "github.com/ncclmap/ncclmap/probe"

var logSearchFailed = Rule{
	ID:    "log-search-failed",
	Title: "NCCL found no path for its rings or trees",
	Doc: `Fires for hosts whose search for a pattern ended without a path ("Could not find a path
for pattern …, falling back to simple order"): one channel, in the order of the ranks,
at a nominal 0.1 GB/s.

warning.

NCCL does not print the line for NVLS and CollNet, which may have no channel rightly.`,
	Across: runLogSearchFailed,
}

func runLogSearchFailed(a *Across) {
	events := a.said()
	if len(events) == 0 {
		return
	}
	var proof []Evidence
	for _, c := range a.Job.Comms {
		for _, g := range c.Graphs {
			if g.NoPath {
				proof = append(proof, evidence(g.Origins, "", "", "%s: %d channel of %.1f/%.1f GB/s, %s/%s", patternText(g), g.Channels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter))
			}
		}
	}
	a.Report(Finding{
		Severity: Warning, Subjects: hostKeys(eventHosts(events)),
		Expected: "rings and trees over the host's links",
		Observed: "NCCL's search found no path on " + listed(eventHosts(events)) + " and took the order of the ranks",
		Evidence: append(quotes(events), few(proof)...),
		Fix:      "administrator: see what NCCL sees with NCCL_TOPO_DUMP_FILE: a GPU or NIC without a path, a PCI tree that a guest shows flat, levels (NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL) that forbid every way. Give a right NCCL_TOPO_FILE, or try another NCCL version",
	})
}

func patternText(g probe.Graph) string {
	if g.Pattern == "" {
		return "search"
	}
	return g.Pattern + " search"
}
