package check

var memlockLow = Rule{
	ID:    "memlock-low",
	Title: "Limit of locked memory is too low for RDMA",
	Doc: `Fires for hosts where RDMA memory cannot be registered: "ibv_reg_mr… Cannot allocate
memory", "ibv_create_qp failed".

critical.

likely: the limit is the usual cause, and the log does not print it.`,
	Across: runMemlockLow,
}

func runMemlockLow(a *Across) {
	said := a.said()
	if len(said) == 0 {
		return
	}
	hosts := eventHosts(said)
	a.Report(Finding{
		Severity: Critical, Certainty: Likely, Subjects: hostKeys(hosts),
		Expected: "RDMA memory and queue pairs can be made (locked memory unlimited)",
		Observed: clip(firstText(said), 160) + " on " + listed(hosts),
		Evidence: quotes(said),
		Fix:      "whoever starts the job: ulimit -l unlimited where the ranks start: --ulimit memlock=-1 and IPC_LOCK for a container, LimitMEMLOCK=infinity for slurmd or the kubelet; ulimit -l inside mpirun or srun shows what a rank gets",
	})
}
