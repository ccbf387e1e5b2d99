package check

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

var logPortError = Rule{
	ID:    "log-port-error",
	Title: "Network port went down or flaps during the job",
	Doc: `Fires for ports of which NCCL reports asynchronous events: port error, port active again,
or a fatal one.

critical.

Silent for a single event of a host whose ranks have all ended well: the network was
taken down after the job.`,
	Across: runLogPortError,
}

var asyncPort = regexp.MustCompile(`NET/IB ?: ([\w+-]+):(\d+) `)

func runLogPortError(a *Across) {
	var events []probe.Event
	var subjects []string
	for _, e := range a.said() {
		if e.Count <= 1 && a.ended(e.Host) {
			continue
		}
		events = append(events, e)
		subject := HostKey(e.Host)
		if m := asyncPort.FindStringSubmatch(e.Text); m != nil {
			subject = a.Key(e.Host, fmt.Sprintf("port:%s/%s", m[1], m[2]))
		}
		subjects = append(subjects, subject)
	}
	if len(events) == 0 {
		return
	}
	slices.SortFunc(subjects, compareKeys)
	a.Report(Finding{
		Severity: Critical, Subjects: slices.Compact(subjects),
		Expected: "ports that stay ACTIVE while the job runs",
		Observed: "NCCL was told of port errors on " + listed(eventHosts(events)),
		Evidence: quotes(events),
		Fix:      "network administrator: replace cable or optics of the port, or move it to another switch port; ibqueryerrors and mlxlink show which end counts the errors",
	})
}

// ended reports a host all of whose ranks ended well.
func (a *Across) ended(host string) bool {
	any := false
	for _, c := range a.Job.Comms {
		for _, m := range c.Members {
			if m.Host == host && m.Init != probe.InitDestroyed {
				return false
			}
			any = any || m.Host == host
		}
	}
	return any
}
