package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var jobRankMissing = Rule{
	ID:    "job-rank-missing",
	Title: "A rank's process does not answer",
	Doc: `Fires for the ranks whose process NCCL's RAS service could not reach, one finding a
host: what the report calls unresponsive, or dead after 60 s. RAS has a thread of
its own in every process and a network apart from the data, so a process that only
waits or computes answers. Collectives of its communicators do not end.

critical: the job stands still or will.

Silent for ranks whose process answers and is no member of the communicator, or no
longer: communicators that begin or end look like that. Of several reports the
latest counts. That a rank stands in no report at all is not a finding.`,
	Across: runJobRankMissing,
}

func runJobRankMissing(a *Across) {
	var hosts []string
	lost := map[string][]*probe.Member{}
	comms := map[string][]string{}
	for _, c := range a.largestFirst() {
		for j := range c.Members {
			m := &c.Members[j]
			if m.State != probe.RankMissing && m.State != probe.RankDead {
				continue
			}
			if lost[m.Host] == nil {
				hosts = append(hosts, m.Host)
			}
			lost[m.Host] = append(lost[m.Host], m)
			comms[m.Host] = append(comms[m.Host], commName(c))
		}
	}
	for _, h := range hosts {
		a.Report(a.missing(lost[h], comms[h]))
	}
}

// largestFirst lists the communicators of the job by their size.
func (a *Across) largestFirst() []*probe.Comm {
	out := make([]*probe.Comm, len(a.Job.Comms))
	for i := range a.Job.Comms {
		out[i] = &a.Job.Comms[i]
	}
	slices.SortStableFunc(out, func(a, b *probe.Comm) int { return cmp.Compare(b.Ranks, a.Ranks) })
	return out
}

// missing is the finding about the lost ranks of one host. A process is a rank of
// several communicators: it is named by its rank in the largest.
func (a *Across) missing(members []*probe.Member, comms []string) Finding {
	var named []*probe.Member
	var proof []Evidence
	dead := 0
	for i, m := range members {
		same := func(o *probe.Member) bool {
			return m.PID.Known() && o.PID == m.PID && o.GPU == m.GPU && o.CUDADev == m.CUDADev
		}
		if slices.ContainsFunc(named, same) {
			continue
		}
		named = append(named, m)
		how := "does not answer"
		if m.State == probe.RankDead {
			how = "is considered dead"
			dead++
		}
		if len(proof) < maxProof {
			proof = append(proof, jobEvidence(m, fmt.Sprintf("%s of %s %s", who(m), comms[i], how)))
		}
	}
	slices.Sort(comms)
	comms = slices.Compact(comms)
	where := ""
	if h := members[0].Host; h != "" {
		where = " on host " + h
	}
	observed := fmt.Sprintf("%s%s: no answer", listRanks(named), where)
	if dead > 0 {
		observed += fmt.Sprintf(", %d considered dead", dead)
	}
	return Finding{
		Severity: Critical, Subjects: a.rankSubjects(named),
		Expected: "every process of the job answers the RAS service",
		Observed: fmt.Sprintf("%s, in %s", observed, strings.Join(comms[:min(len(comms), 8)], ", ")),
		Evidence: proof,
		Fix: "who runs the job: look on that host whether the process lives, was stopped or killed (dmesg: Xid, out of memory), and whether the host is reachable; " +
			"end the job and start it again without that host",
	}
}

// maxProof is how many facts of one kind a finding lists.
const maxProof = 16
