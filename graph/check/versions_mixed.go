package check

import (
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var versionsMixed = Rule{
	ID:    "versions-mixed",
	Title: "hosts run different software",
	Doc: `Compares driver, kernel, NCCL and HCA firmware of the hosts of one set, in the manner
of host-differs. Warning.
Silent: fewer than two hosts; a version that a source does not give.`,
	Across: func(a *Across) { a.odd(software, "install the same version everywhere") },
}

var software = []feature{
	{"driver", func(t *graph.Topology) string { return t.Inv.Runtime.Driver }, nil},
	{"kernel", func(t *graph.Topology) string { return t.Inv.Host.Kernel }, nil},
	{"NCCL", func(t *graph.Topology) string { return t.Inv.Runtime.NCCL }, []string{"log-version-mixed"}},
	{"HCA firmware", func(t *graph.Topology) string {
		return tally(t.Inv.HCAs, func(h probe.HCA) string {
			if h.Firmware == "" {
				return ""
			}
			return strings.TrimSpace(h.Board + " " + h.Firmware)
		})
	}, nil},
}
