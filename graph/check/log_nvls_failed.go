package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

var logNVLSFailed = Rule{
	ID:    "log-nvls-failed",
	Title: "NVLink SHARP (NVLS) cannot be set up",
	Doc: `Fires for hosts where NCCL fails in its NVLS transport, cannot bind multicast memory, or
meets CUDA error 401.

critical.

Silent where NVLS is off by setting. 0 NVLS channels are right on A100 and older boards
and with two GPUs: only an error counts.`,
	Across: runLogNVLSFailed,
}

func runLogNVLSFailed(a *Across) {
	var events []probe.Event
	for _, e := range a.said() {
		if _, off := a.switchedOff("NCCL_NVLS_ENABLE", e.Host); !off && e.Kind == probe.EventWarning {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		return
	}
	first := clip(events[0].Text, 120)
	if events[0].Site != "" {
		first = events[0].Site + ": " + first
	}
	a.Report(Finding{
		Severity: Critical, Subjects: hostKeys(eventHosts(events)),
		Expected: "NVSwitch multicast works, or the driver says that there is none",
		Observed: fmt.Sprintf("NVLS fails on %s: %s", listed(eventHosts(events)), first),
		Evidence: quotes(events),
		Fix:      "administrator: the fabric manager was restarted or does not run: start the one of the driver's version, then reset the GPUs or reboot. NCCL_NVLS_ENABLE=0 lets the job run until then, without NVLink SHARP",
	})
}
