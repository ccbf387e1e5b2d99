package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNUMAUnknown(t *testing.T) {
	lost := func(h *host) {
		for i := range h.inv.PCI {
			h.inv.PCI[i].NUMA, h.inv.PCI[i].NUMANone = probe.Opt[int]{}, true
		}
	}
	pair := func(nodes int) *host {
		h := &host{}
		h.numa(nodes)
		h.gpu(rootChild(0), h.onRoot(0, -1), "10de:26b9", 89, -1, gen4)
		h.hca("mlx5_0", rootChild(1), h.onRoot(1, -1), "15b3:101b", -1, gen4, 200)
		return h
	}
	testRule(t, "numa-unknown", []ruleCase{
		{name: "two NUMA nodes, distances depend on it", host: pair(2), want: []string{"warning sure gpu:0000:11:00.0 hca:mlx5_0"},
			says: []string{"numa_node is -1 for 1 GPU, 1 HCA, and the distance between GPUs and HCAs depends on it", "CPU node -1"}},
		{name: "no HCA", host: pair(2).with(func(h *host) { h.inv.HCAs = nil }), want: []string{"info sure gpu:0000:11:00.0"}},
		{name: "each GPU has its HCA behind its switch, one island", host: h100x8().with(lost).with(func(h *host) { h.inv.GPUs, h.inv.HCAs = h.inv.GPUs[:1], h.inv.HCAs[:1] }),
			want: []string{"info sure " + gpuKey(0) + " hca:mlx5_0"}},
		{name: "guest with one node", host: flatVM(), want: []string{"info sure gpu:0000:00:06.0 gpu:0000:00:07.0"}, says: []string{"hypervisor", "numa_node is -1 for 2 GPUs;"}},
		{name: "bare metal with one node", host: pair(1)},
		{name: "one node with CPUs beside GPU memory nodes", host: pair(1).with(func(h *host) { h.inv.NUMA = append(h.inv.NUMA, probe.NUMANode{ID: 8}, probe.NUMANode{ID: 9}) })},
		{name: "number of nodes not known", host: pair(0), gap: "how many NUMA nodes"},
		{name: "topology file, two <cpu>", host: pair(2).asFile(), want: []string{"warning sure gpu:0000:11:00.0 hca:mlx5_0"}},
		{name: "the bridge above knows", host: pair(2).with(func(h *host) {
			for n, rp := range []string{"0000:10:01.0", "0000:20:01.0"} {
				h.dev(rp).NUMA, h.dev(rp).NUMANone = probe.Some(n), false
			}
		})},
		{name: "matrix alone", host: matrix(2, nil, "X SYS", "- X"), gap: "NUMA node not in the sources"},
		{name: "not stated: no -1 to show", host: pair(2).with(func(h *host) {
			for i := range h.inv.PCI {
				h.inv.PCI[i].NUMANone = false
			}
		}), gap: "NUMA node not in the sources"},
		{name: "only the bridges say -1", host: pair(2).with(func(h *host) {
			h.dev(rootChild(0)).NUMANone, h.dev(rootChild(1)).NUMANone = false, false
		}), gap: "NUMA node not in the sources"},
		{name: "one device says -1, the other nothing", host: pair(2).with(func(h *host) { h.dev(rootChild(1)).NUMANone = false }),
			want: []string{"warning sure gpu:0000:11:00.0"}, gap: "NUMA node not in the sources"},
		{name: "<cpu> without numaid", host: pair(2).with(func(h *host) {
			for i := range h.inv.PCI {
				h.inv.PCI[i].NUMANone = false
			}
		}).asFile(), gap: "NUMA node not in the sources"},
	})
}
