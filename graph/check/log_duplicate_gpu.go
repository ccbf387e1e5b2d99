package check

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

var logDuplicateGPU = Rule{
	ID:    "log-duplicate-gpu",
	Title: "Two ranks use one GPU",
	Doc: `Fires where NCCL refuses a communicator because several of its ranks use the same GPU.

critical.

Silent with NCCL_MULTI_RANK_GPU_ENABLE=1.`,
	Across: runLogDuplicateGPU,
}

var duplicateGPU = regexp.MustCompile(`rank (\d+) and rank (\d+) both on CUDA device ([0-9a-fA-F]+)`)

func runLogDuplicateGPU(a *Across) {
	var events []probe.Event
	var subjects []string
	add := func(s string) {
		if !slices.Contains(subjects, s) {
			subjects = append(subjects, s)
		}
	}
	for _, e := range a.said() {
		if _, on := a.switchedOn("NCCL_MULTI_RANK_GPU_ENABLE", e.Host); on {
			continue
		}
		events = append(events, e)
		m := duplicateGPU.FindStringSubmatch(e.Text)
		if m == nil {
			add(HostKey(e.Host))
			continue
		}
		if id, err := strconv.ParseUint(m[3], 16, 64); err == nil {
			if addr, ok := probe.BDFOfBusID(id); ok {
				add(a.Key(e.Host, "gpu:"+addr.String()))
			}
		}
		add("rank:" + m[1])
		add("rank:" + m[2])
	}
	if len(events) == 0 {
		return
	}
	slices.SortFunc(subjects, compareKeys)
	a.Report(Finding{
		Severity: Critical, Subjects: subjects,
		Expected: "one rank for each GPU",
		Observed: "several ranks use the same GPU on " + listed(eventHosts(events)),
		Evidence: quotes(events),
		Fix:      "user: give each rank its own GPU: cudaSetDevice with the local rank, or CUDA_VISIBLE_DEVICES per rank, and no more ranks than GPUs on a host. MIG slices and MPS clients of one board count as one GPU",
	})
}
