package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var logVersionMixed = Rule{
	ID:    "log-version-mixed",
	Title: "Ranks of one communicator loaded different NCCL versions",
	Doc: `Fires for the hosts of a communicator whose ranks printed different NCCL versions, and
where NCCL itself reports the mismatch.

critical.

Silent where rank 0 alone prints its version, and for versions of runs that share
nothing but the file.`,
	Across: runLogVersionMixed,
}

func runLogVersionMixed(a *Across) {
	var done []string
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		hosts := map[string][]string{} // by version
		var versions []string
		proof := map[string]Evidence{}
		for _, m := range c.Members {
			v := m.NCCL
			if v == "" {
				continue
			}
			if hosts[v] == nil {
				versions = append(versions, v)
				proof[v] = evidence(m.Origins, "", "", "%srank %d has NCCL %s", hostPrefix(m.Host), m.Rank, v)
			}
			hosts[v] = append(hosts[v], m.Host)
		}
		if len(versions) < 2 {
			continue
		}
		// The fewest first: most likely they are wrong.
		slices.SortFunc(versions, func(x, y string) int { return len(hosts[x]) - len(hosts[y]) })
		var subjects, said []string
		var facts []Evidence
		for n, v := range versions {
			h := names(hosts[v])
			if n < len(versions)-1 {
				subjects = append(subjects, hostKeys(h)...)
			}
			said = append(said, fmt.Sprintf("NCCL %s on %s", v, listed(h)))
			facts = append(facts, proof[v])
		}
		observed := strings.Join(said, ", ")
		if slices.Contains(done, observed) {
			continue // a communicator of the same processes
		}
		done = append(done, observed)
		a.Report(Finding{Severity: Critical, Subjects: subjects, Expected: "one NCCL version in a communicator", Observed: observed, Evidence: few(facts), Fix: sameLibrary})
	}
	if said := a.said(); len(said) > 0 && len(done) == 0 {
		a.Report(Finding{
			Severity: Critical, Subjects: hostKeys(eventHosts(said)),
			Expected: "one NCCL version in a communicator",
			Observed: clip(firstText(said), 200),
			Evidence: quotes(said), Fix: sameLibrary,
		})
	}
}

const sameLibrary = "user: load the same libnccl on every host: same image and wheel (nvidia-nccl-cu12 and -cu13 in one folder overwrite each other), same LD_LIBRARY_PATH; grep libnccl /proc/PID/maps names the file that a rank has"

func firstText(events []probe.Event) string {
	if len(events) == 0 {
		return ""
	}
	return events[0].Text
}
