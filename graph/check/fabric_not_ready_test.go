package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestFabricNotReady(t *testing.T) {
	fabric := func(gpu int, state string, status probe.Opt[int]) func(*host) {
		return func(h *host) { h.inv.GPUs[gpu].Fabric = &probe.Fabric{State: state, Status: status} }
	}
	ok := probe.Some(0)
	testRule(t, "fabric-not-ready", []ruleCase{
		{name: "healthy", host: h100x8().with(fabric(0, "completed", ok))},
		{name: "takes no part", host: h100x8().with(fabric(0, "not supported", probe.Opt[int]{}))},
		{name: "completed, status not told", host: h100x8().with(fabric(0, "completed", probe.Opt[int]{}))},
		{name: "never started", host: h100x8().with(fabric(2, "not started", ok)).with(fabric(5, "not started", ok)),
			want: []string{"critical sure " + gpuKey(2) + " " + gpuKey(5)}, says: []string{"not started"}},
		{name: "failed", host: h100x8().with(fabric(2, "completed", probe.Some(999))), want: []string{"critical sure " + gpuKey(2)}, says: []string{"error 999"}},
		{name: "in progress", host: h100x8().with(fabric(2, "in progress", ok)), want: []string{"warning sure " + gpuKey(2)}},
		{name: "a word that no driver says", host: h100x8().with(fabric(2, "in_progress", ok)), want: []string{"critical sure " + gpuKey(2)}},
		{name: "not read", host: h100x8().with(fabric(2, "", ok)), gap: "was not read"},
	})
}
