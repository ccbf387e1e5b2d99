package check

var shmTooSmall = Rule{
	ID:    "shm-too-small",
	Title: "Shared memory (/dev/shm) is too small",
	Doc: `Fires for hosts or containers where NCCL cannot extend its segments in /dev/shm: "posix_fallocate
failed: No space left", "failed to extend /dev/shm/nccl-…".

critical.`,
	Across: runSHMTooSmall,
}

func runSHMTooSmall(a *Across) {
	said := a.said()
	if len(said) == 0 {
		return
	}
	hosts := eventHosts(said)
	a.Report(Finding{
		Severity: Critical, Subjects: hostKeys(hosts),
		Expected: "room for NCCL's segments in /dev/shm (1 GiB is enough for 8 GPUs)",
		Observed: "/dev/shm is full on " + listed(hosts),
		Evidence: quotes(said),
		Fix:      "whoever starts the container: --shm-size=1g or --ipc=host; on Kubernetes an emptyDir of medium Memory at /dev/shm. NCCL_SHM_DISABLE=1 is no cure: it sends the traffic through the network",
	})
}
