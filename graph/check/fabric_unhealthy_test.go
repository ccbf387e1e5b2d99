package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestFabricUnhealthy(t *testing.T) {
	testLog(t, "fabric-unhealthy", []logCase{
		{name: "degraded bandwidth", log: []string{"a0 MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x7ffe state 3 healthMask 0xa9"}, want: []string{"critical sure gpu:0009:01:00.0"}, says: []string{"degraded bandwidth"}},
		{name: "several, and a wrong configuration", log: []string{"a0 MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x7ffe state 3 healthMask 0x455"}, want: []string{"critical sure gpu:0009:01:00.0"},
			says: []string{"degraded bandwidth, route recovery in progress, route unhealthy, access timeout recovery in progress, no partition"}},
		{name: "0xaa is healthy", log: []string{"a0 MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x7ffe state 3 healthMask 0xaa"}},
		{name: "configuration none", log: []string{"a0 MNNVL busId 0x901000 fabric UUID 1.2 cliqueId 0x7ffe state 3 healthMask 0x1aa"}},
		{name: "not reported", log: []string{"a0 MNNVL busId 0x60 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0"}},
		{name: "the driver reports it", hosts: []*host{h100x8().with(func(h *host) {
			h.inv.GPUs[2].Fabric = &probe.Fabric{State: "completed", HealthMask: probe.Some(uint32(0x9a))}
		})},
			want: []string{"critical sure " + gpuKey(2)}, says: []string{"route unhealthy", "0x9a"}},
		{name: "the driver reports health", hosts: []*host{h100x8().with(func(h *host) {
			h.inv.GPUs[2].Fabric = &probe.Fabric{State: "completed", HealthMask: probe.Some(uint32(0xaa))}
		})}},
	})
}
