package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNUMAImplausible(t *testing.T) {
	sockets := func(h *host) {
		for i := range h.inv.NUMA {
			h.inv.NUMA[i].Package = probe.Some(i)
		}
	}
	// move gives everything below the root of an island another node.
	move := func(gpu, node int) func(*host) {
		return func(h *host) {
			root := h.dev(gpuAt(gpu)).Root
			for i := range h.inv.PCI {
				if h.inv.PCI[i].Root == root {
					h.inv.PCI[i].NUMA = probe.Some(node)
				}
			}
		}
	}
	testRule(t, "numa-implausible", []ruleCase{
		{name: "healthy", host: h100x8().with(sockets)},
		{name: "one island on the wrong socket", host: h100x8().with(sockets).with(move(2, 1)),
			want: []string{"warning possible " + gpuKey(2) + " hca:mlx5_2"}, says: []string{"NUMA node 1 for GPU2, mlx5_2", "NUMA node 0", "4 GPUs"}},
		{name: "the one beside the border: still two ranges, so a host may be built so", host: h100x8().with(sockets).with(move(3, 1))},
		{name: "two islands: which, cannot be told", host: h100x8().with(sockets).with(move(1, 1)).with(move(2, 1))},
		{name: "sub-NUMA nodes of one package", host: h100x8().with(move(2, 1)).with(func(h *host) {
			for i := range h.inv.NUMA {
				h.inv.NUMA[i].Package = probe.Some(0)
			}
		})},
		{name: "packages not known", host: h100x8().with(move(2, 1))},
		{name: "guest", host: h100x8().with(sockets).with(move(2, 1)).with(func(h *host) {
			h.inv.Settings.Guest = []probe.Mark{{What: "system vendor QEMU", Origin: probe.Origin{Source: probe.SourceSysfs}}}
		})},
	})
}
