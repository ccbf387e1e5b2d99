package check

import (
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

var logDMABUFFailed = Rule{
	ID:    "log-dmabuf-failed",
	Title: "Registering GPU memory through DMA-BUF fails",
	Doc: `Fires for hosts where ibv_reg_dmabuf_mr failed and a rank's initialisation did not end
well.

critical.

Silent where every rank of the host completed its initialisation: the line was a probe
with a working fallback.`,
	Across: runLogDMABUFFailed,
}

func runLogDMABUFFailed(a *Across) {
	var events []probe.Event
	for _, e := range a.said() {
		if !a.initialised(e.Host) {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return
	}
	a.Report(Finding{
		Severity: Critical, Subjects: hostKeys(eventHosts(events)),
		Expected: "GPU memory can be registered with the adapter",
		Observed: "ibv_reg_dmabuf_mr failed on " + listed(eventHosts(events)) + ", and the job did not start",
		Evidence: quotes(events),
		Fix:      "administrator: update NCCL, or the RDMA driver stack and kernel of the host. Until then NCCL_DMABUF_ENABLE=0, which needs nvidia-peermem for GPUDirect RDMA",
	})
}

// initialised reports a host whose ranks all completed, as far as the log shows
// any.
func (a *Across) initialised(host string) bool {
	done := false
	for _, c := range a.Job.Comms {
		for _, m := range c.Members {
			if m.Host != host || m.Init == "" {
				continue
			}
			if !slices.Contains([]string{probe.InitCompleted, probe.InitDestroyed}, m.Init) {
				return false
			}
			done = true
		}
	}
	return done
}
