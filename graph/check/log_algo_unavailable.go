package check

import "slices"

var logAlgoUnavailable = Rule{
	ID:    "log-algo-unavailable",
	Title: "No algorithm is left for a collective",
	Doc: `Fires where NCCL reports that no algorithm or protocol is available for a function:
NCCL_ALGO or NCCL_PROTO leave none, or CollNet lacks the data type.

critical.`,
	Across: runLogAlgoUnavailable,
}

func runLogAlgoUnavailable(a *Across) {
	said := a.said()
	if len(said) == 0 {
		return
	}
	var subjects []string
	proof := quotes(said)
	for _, name := range []string{"NCCL_ALGO", "NCCL_PROTO"} {
		for _, h := range eventHosts(said) {
			if e, ok := a.setting(name, h); ok && !slices.Contains(subjects, "env:"+name) {
				subjects = append(subjects, "env:"+name)
				proof = append(proof, settingEvidence(e))
			}
		}
	}
	a.Report(Finding{
		Severity: Critical, Subjects: append(subjects, hostKeys(eventHosts(said))...),
		Expected: "an algorithm for each collective that the job calls",
		Observed: clip(firstText(said), 200),
		Evidence: proof,
		Fix:      "user: delete NCCL_ALGO and NCCL_PROTO, or name the function they are for (NCCL_ALGO=allreduce:tree, NCCL 2.24 and later); the other collectives then keep NCCL's choice",
	})
}
