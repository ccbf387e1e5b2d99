package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var jobAsyncError = Rule{
	ID:    "job-async-error",
	Title: "A communicator reports an error",
	Doc: `Fires for communicators of which ranks report an error to NCCL's RAS service: an
asynchronous one (what ncclCommGetAsyncError would return), or one of their
initialization. Ranks that report a remote process error have lost a peer and are
not the cause; they are named only where no other rank reports an error.

critical: NCCL does not recover such a communicator, the application must abort it.

Silent while an operation or the initialization is in progress.`,
	Across: runJobAsyncError,
}

// remoteError is NCCL's error of a rank that has lost a peer (ncclRemoteError).
const remoteError = "remote process error"

func runJobAsyncError(a *Across) {
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		var own, remote []*probe.Member
		for j := range c.Members {
			switch m := &c.Members[j]; {
			case m.State != probe.RankError:
			case strings.Contains(m.Error, remoteError):
				remote = append(remote, m)
			default:
				own = append(own, m)
			}
		}
		if len(own)+len(remote) > 0 {
			a.Report(a.asyncError(c, own, remote))
		}
	}
}

func (a *Across) asyncError(c *probe.Comm, own, remote []*probe.Member) Finding {
	blamed := own
	if len(own) == 0 {
		blamed = remote
	}
	var errors []string
	by := map[string][]*probe.Member{}
	for _, m := range blamed {
		if by[m.Error] == nil {
			errors = append(errors, m.Error)
		}
		by[m.Error] = append(by[m.Error], m)
	}
	slices.Sort(errors)
	var said []string
	var proof []Evidence
	for _, e := range errors {
		said = append(said, fmt.Sprintf("%s: %s", listRanks(by[e]), e))
		for _, m := range by[e][:min(len(by[e]), maxProof)] {
			proof = append(proof, jobEvidence(m, fmt.Sprintf("%s: %s", who(m), e)))
		}
	}
	fix := "who runs the job: read the NCCL WARN lines and the kernel log of these ranks, then restart the job; NCCL_DEBUG=WARN in the next run"
	switch {
	case len(own) > 0 && len(remote) > 0:
		said = append(said, fmt.Sprintf("%s lost a peer (%s)", count(len(remote), "other rank has", "other ranks have"), remoteError))
	case len(own) == 0:
		fix = "who runs the job: these ranks have lost a peer; look for a rank that died, or for a failed link between their hosts, in the NCCL WARN lines and kernel logs; then restart the job"
	}
	return Finding{
		Severity: Critical, Subjects: a.rankSubjects(blamed),
		Expected: "no rank reports an error",
		Observed: commName(c) + ": " + strings.Join(said, "; "),
		Evidence: proof,
		Fix:      fix,
	}
}
