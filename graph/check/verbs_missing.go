package check

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var verbsMissing = Rule{
	ID:    "verbs-missing",
	Title: "RDMA adapters cannot be opened",
	Doc: `Fires for hosts and adapters that NCCL cannot open: "ibv_open_device failed", "Unable to
open device", or a missing libibverbs where the host is known to have an adapter.

critical.

Silent for a missing libibverbs on one host. Where several hosts lack it and nothing tells
whether they have adapters, that is a gap.`,
	Across: runVerbsMissing,
}

var unopened = regexp.MustCompile(`Unable to open device ([\w+-]+)`)

func runVerbsMissing(a *Across) {
	var events []probe.Event
	var adapters []string
	for _, e := range a.said() {
		if strings.Contains(e.Text, "libibverbs") && !a.hasHCA(e.Host) {
			if slices.Contains(a.wideHosts(), e.Host) {
				a.Gap("libibverbs is not installed, and whether the host has RDMA adapters is not known", askHost, HostKey(e.Host))
			}
			continue
		}
		events = append(events, e)
		if m := unopened.FindStringSubmatch(e.Text); m != nil {
			adapters = append(adapters, a.Key(e.Host, "hca:"+m[1]))
		}
	}
	if len(events) == 0 {
		return
	}
	hosts := eventHosts(events)
	slices.SortFunc(adapters, compareKeys)
	a.Report(Finding{
		Severity: Critical, Subjects: append(slices.Compact(adapters), hostKeys(hosts)...),
		Expected: "the job can open the RDMA adapters",
		Observed: "RDMA adapters cannot be opened on " + listed(hosts),
		Evidence: quotes(events),
		Fix:      "whoever starts the container: pass --device=/dev/infiniband and --cap-add=IPC_LOCK, with --ulimit memlock=-1; in the image, install libibverbs and the adapter's provider (rdma-core)",
	})
}

// hasHCA reports a host that another source, or a setting, gives RDMA adapters.
func (a *Across) hasHCA(host string) bool {
	if _, set := a.setting("NCCL_IB_HCA", host); set {
		return true
	}
	h := a.Host(host)
	return h != nil && len(h.Inv.HCAs) > 0
}
