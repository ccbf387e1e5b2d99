package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNVLinkUneven(t *testing.T) {
	unknownBoards := func(h *host) {
		for i := range 8 {
			h.dev(gpuAt(i)).Device = probe.Some(probe.PCIID(0xfff0))
		}
	}
	nv := "NV18 NV18 NV18 NV18 NV18 NV18 NV18"
	testRule(t, "nvlink-uneven", []ruleCase{
		{name: "no link at all on one GPU", host: h100x8().with(func(h *host) { h.inv.GPUs[6].NVLinks = probe.Some([]probe.NVLink{}) }),
			want: []string{"critical sure " + gpuKey(6)},
			says: []string{"18 NVLinks, as 7 other GPUs of the same model have, 450 GB/s per direction", "no NVLink up on GPU6", "Xid 145 to 150"}},
		{name: "no link at all on most GPUs", host: h100x8().with(func(h *host) {
			for i := range 7 {
				h.inv.GPUs[i].NVLinks = toNothing
			}
			h.inv.GPUs[0].NVLinks = h.inv.GPUs[7].NVLinks
		}), want: []string{"critical sure " + gpuKey(1), "critical sure " + gpuKey(2), "critical sure " + gpuKey(3), "critical sure " + gpuKey(4), "critical sure " + gpuKey(5), "critical sure " + gpuKey(6)},
			says: []string{"as 2 other GPUs of the same model have"}},
		{name: "one GPU alone has its links", host: h100x8().with(func(h *host) {
			h.inv.GPUs = h.inv.GPUs[:2]
			h.inv.GPUs[0].NVLinks = toNothing
		}), want: []string{"critical sure " + gpuKey(0)}, says: []string{"as 1 other GPU of the same model has"}},
		{name: "board not in the table, two links down", host: h100x8().linksDown(2, 0, 1).with(unknownBoards),
			want: []string{"critical sure " + gpuKey(2)}, says: []string{"16 on GPU2 (down: 0, 1)"}},
		{name: "nvlink-down speaks instead", host: h100x8().linksDown(2, 0, 1)},
		{name: "4 SXM GPUs, one without links", host: h100x8().with(func(h *host) {
			h.inv.GPUs = h.inv.GPUs[:4]
			h.inv.GPUs[1].NVLinks = probe.Some([]probe.NVLink{})
		}), want: []string{"critical sure " + gpuKey(1)}},
		{name: "matrix: one row without NVLink", host: matrix(8, nil,
			"X NV18 NV18 NV18 NV18 NV18 NV18 SYS", "- X NV18 NV18 NV18 NV18 NV18 SYS", "- - X NV18 NV18 NV18 NV18 SYS", "- - - X NV18 NV18 NV18 SYS",
			"- - - - X NV18 NV18 NODE", "- - - - - X NV18 NODE", "- - - - - - X NODE", "- - - - - - - X"),
			want: []string{"critical possible gpu:7"}},
		{name: "matrix: one row lower", host: matrix(8, nil,
			"X NV18 NV18 NV18 NV16 NV18 NV18 NV18", "- X NV18 NV18 NV16 NV18 NV18 NV18", "- - X NV18 NV16 NV18 NV18 NV18", "- - - X NV16 NV18 NV18 NV18",
			"- - - - X NV16 NV16 NV16", "- - - - - X NV18 NV18", "- - - - - - X NV18", "- - - - - - - X"),
			want: []string{"critical likely gpu:4"}},
		{name: "matrix, all alike", host: matrix(8, nil, "X "+nv, "- X NV18 NV18 NV18 NV18 NV18 NV18", "- - X NV18 NV18 NV18 NV18 NV18", "- - - X NV18 NV18 NV18 NV18",
			"- - - - X NV18 NV18 NV18", "- - - - - X NV18 NV18", "- - - - - - X NV18", "- - - - - - - X")},
		{name: "matrix cut short", host: matrix(4, nil, "X NV4 NV4 SYS", "- X NV4 SYS"), gap: "cut short"},
		{name: "part of a cube mesh is visible", host: matrix(4, nil, "X NV2 SYS NV2", "- X SYS SYS", "- - X NV1", "- - - X")},
		{name: "cube mesh: equal sums", host: v100x8()},
		{name: "cube mesh without one link, board not in the table", host: v100x8([2]int{1, 2}).with(func(h *host) {
			for i := range 8 {
				h.dev(rootChild(i)).Device = probe.Some(probe.PCIID(0xfff0))
			}
		}), want: []string{"critical sure gpu:" + rootChild(1), "critical sure gpu:" + rootChild(2)}},
		{name: "bridged pair plus a single", host: bridged("10de:2230", 86, 4).with(func(h *host) {
			h.gpu(rootChild(2), h.onRoot(2, 0), "10de:2230", 86, 0, gen4)
		})},
		{name: "two bridged pairs, one without its bridge", host: bridged("10de:2321", 90, 12).with(func(h *host) {
			h.gpu(rootChild(2), h.onRoot(2, 0), "10de:2321", 90, 0, gen4)
			h.gpu(rootChild(3), h.onRoot(3, 0), "10de:2321", 90, 0, gen4)
		})},
		{name: "display adapter of another model", host: h100x8().with(func(h *host) {
			h.gpu(rootChild(14), h.onRoot(14, 1), "10de:1cb3", 61, 1, gen3)
		})},
		{name: "MIG on", host: h100x8().with(func(h *host) {
			h.inv.GPUs[6].NVLinks, h.inv.GPUs[6].MIG = probe.Some([]probe.NVLink{}), probe.Some(true)
		}), gap: "MIG"},
		{name: "one GPU", host: h100x8().with(func(h *host) { h.inv.GPUs = h.inv.GPUs[:1] })},
		{name: "links not in the sources", host: h100x8().idle().sysfsOnly(), gap: "NVLinks not in the sources"},
	})
}
