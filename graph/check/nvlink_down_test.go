package check

import (
	"slices"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// bridged is a host with two cards on root ports, joined by n NVLinks.
func bridged(id string, cc, n int) *host {
	h := &host{}
	h.numa(1)
	h.gpu(rootChild(0), h.onRoot(0, 0), id, cc, 0, gen4, toGPU(rootChild(1), 0, n)...)
	h.gpu(rootChild(1), h.onRoot(1, 0), id, cc, 0, gen4, toGPU(rootChild(0), 0, n)...)
	return h
}

// cubeMesh is DGX-1V's wiring: links per pair of the 8 V100.
var cubeMesh = [8][8]int{
	{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
}

// v100x8 is a V100 cube mesh; cut removes one link of a pair on both sides.
func v100x8(cut ...[2]int) *host {
	h := &host{}
	h.numa(2)
	for i := range 8 {
		var links []probe.NVLink
		for j := range 8 {
			n := cubeMesh[i][j]
			if slices.Contains(cut, [2]int{min(i, j), max(i, j)}) {
				n--
			}
			links = append(links, toGPU(rootChild(j), len(links), n)...)
		}
		h.gpu(rootChild(i), h.onRoot(i, i/4), "10de:1db5", 70, i/4, gen3, links...)
	}
	return h
}

// linkLost takes one link between two GPUs down at both ends, as a driver shows
// it that still knows where it leads.
func (h *host) linkLost(a, b int) {
	for _, end := range [][2]int{{a, b}, {b, a}} {
		links, _ := h.inv.GPUs[end[0]].NVLinks.Get()
		i := slices.IndexFunc(links, func(l probe.NVLink) bool {
			return l.State == probe.LinkUp && l.Remote == h.inv.GPUs[end[1]].Addr
		})
		links[i].State = probe.LinkDown
	}
}

// switchLost takes all links of some GPUs to the n-th NVSwitch down; told says
// whether the driver still knows where they lead.
func (h *host) switchLost(n int, told bool, gpus ...int) {
	for _, g := range gpus {
		links, _ := h.inv.GPUs[g].NVLinks.Get()
		for i := range links {
			if links[i].Remote != probe.Some(h.inv.NVSwitches[n].Addr) {
				continue
			}
			if links[i].State = probe.LinkDown; !told {
				links[i].RemoteKind, links[i].Remote = "", probe.Opt[probe.BDF]{}
			}
		}
	}
}

func TestNVLinkDown(t *testing.T) {
	testRule(t, "nvlink-down", []ruleCase{
		{name: "two of 18 down", host: h100x8().linksDown(3, 7, 12), want: []string{"critical sure " + gpuKey(3)},
			says: []string{"18 NVLinks up per GPU (H100 SXM5 80GB), 450 GB/s per direction", "16 up on GPU3 (down: 7, 12), 400 GB/s per direction", "NCCL_PROTO=^LL128", "base board"}},
		{name: "NCCL version without the LL128 fault", host: h100x8().linksDown(3, 7).with(func(h *host) { h.inv.Runtime.NCCL = "2.28.3" }),
			want: []string{"critical sure " + gpuKey(3)}, says: []string{"No NCCL variable"}},
		{name: "idle GPUs count as well", host: h100x8().linksDown(0, 1).idle(), want: []string{"critical sure " + gpuKey(0)}},
		{name: "counts of a topology file", host: h100x8().with(func(h *host) { h.inv.GPUs[5].NVLinks = probe.Some(toSwitches(10)) }).asFile(),
			want: []string{"critical sure " + gpuKey(5)}},
		{name: "V100 cube mesh without one link", host: v100x8([2]int{0, 3}), want: []string{"critical sure gpu:" + rootChild(0) + " gpu:" + rootChild(3)},
			says: []string{"5 up on GPU0, GPU3, 125 GB/s per direction; what is missing joins the two"}},
		{name: "V100 cube mesh without two links of one GPU: that GPU first", host: v100x8([2]int{0, 3}, [2]int{3, 7}),
			want: []string{"critical sure gpu:" + rootChild(3) + " gpu:" + rootChild(0) + " gpu:" + rootChild(7)},
			says: []string{"4 up on GPU3, 100 GB/s per direction; 5 up on GPU0, GPU7, 125 GB/s per direction; what is missing joins GPU3 with GPU0, GPU7", "begin with GPU3"}},
		{name: "two links of GPUs that share none: the numbers do not tell which", host: v100x8([2]int{0, 3}, [2]int{5, 6}),
			want: []string{"critical sure gpu:" + rootChild(0) + " gpu:" + rootChild(3) + " gpu:" + rootChild(5) + " gpu:" + rootChild(6)}, says: []string{"joins these GPUs with each other"}},
		{name: "the same, and the driver says where they lead", host: v100x8().with(func(h *host) {
			h.linkLost(0, 3)
			h.linkLost(5, 6)
		}), want: []string{"critical sure gpu:" + rootChild(0) + " gpu:" + rootChild(3), "critical sure gpu:" + rootChild(5) + " gpu:" + rootChild(6)}},
		{name: "all links of one module: those of its neighbours lead there", host: v100x8().with(func(h *host) {
			for j := range 8 {
				for range cubeMesh[3][j] {
					h.linkLost(3, j)
				}
			}
		}), want: []string{"critical sure gpu:" + rootChild(3) + " gpu:" + rootChild(0) + " gpu:" + rootChild(1) + " gpu:" + rootChild(2) + " gpu:" + rootChild(7)},
			says: []string{"0 up on GPU3 (down: 0, 1, 2, 3, 4, 5)"}},
		{name: "a link that only one end misses", host: v100x8().linksDown(2, 0), want: []string{"critical sure gpu:" + rootChild(2)}},
		{name: "links to the CPU down on two GPUs are two causes", host: v100x8().with(func(h *host) {
			for _, g := range []int{1, 4} {
				links, _ := h.inv.GPUs[g].NVLinks.Get()
				links[0] = probe.NVLink{State: probe.LinkDown, RemoteKind: probe.RemoteCPU}
			}
		}), want: []string{"critical sure gpu:" + rootChild(1), "critical sure gpu:" + rootChild(4)}},
		{name: "two bridged pairs, a bad seat in each", host: bridged("10de:2230", 86, 3).with(func(h *host) {
			h.gpu(rootChild(2), h.onRoot(2, 0), "10de:2230", 86, 0, gen4, toGPU(rootChild(3), 0, 2)...)
			h.gpu(rootChild(3), h.onRoot(3, 0), "10de:2230", 86, 0, gen4, toGPU(rootChild(2), 0, 2)...)
		}), want: []string{"critical sure gpu:0000:11:00.0 gpu:0000:21:00.0", "critical sure gpu:0000:31:00.0 gpu:0000:41:00.0"}},
		{name: "one NVSwitch lost to all GPUs", host: h100x8().with(func(h *host) { h.switchLost(2, true, 0, 1, 2, 3, 4, 5, 6, 7) }),
			want: []string{"critical sure nvswitch:0000:07:00.0 " + gpuKey(0) + " " + gpuKey(1) + " " + gpuKey(2) + " " + gpuKey(3) + " " + gpuKey(4) + " " + gpuKey(5) + " " + gpuKey(6) + " " + gpuKey(7)},
			says: []string{"14 up on GPU0, GPU1, GPU2, GPU3, GPU4, GPU5, GPU6, GPU7 (down: 2, 6, 10, 14), 350 GB/s per direction; all that are missing lead to NVSwitch 0000:07:00.0", "replace the base board"}},
		{name: "far ends not told: the NVSwitch to which no link is left", host: h100x8().with(func(h *host) { h.switchLost(2, false, 1, 5) }),
			want: []string{"critical likely nvswitch:0000:07:00.0 " + gpuKey(1) + " " + gpuKey(5)}},
		{name: "an NVSwitch that no GPU uses is no cause", host: h100x8().linksDown(1, 7).linksDown(5, 7).with(func(h *host) {
			h.inv.NVSwitches = append(h.inv.NVSwitches, probe.NVSwitch{Addr: bdf("0000:0b:00.0")})
		}), want: []string{"critical sure " + gpuKey(1), "critical sure " + gpuKey(5)}},
		{name: "one GPU and one NVSwitch: the GPU", host: h100x8().with(func(h *host) { h.switchLost(2, true, 5) }), want: []string{"critical sure " + gpuKey(5)}},
		{name: "links to different NVSwitches are several causes", host: h100x8().with(func(h *host) {
			h.switchLost(2, true, 1)
			h.switchLost(3, true, 5)
		}), want: []string{"critical sure " + gpuKey(1), "critical sure " + gpuKey(5)}},
		{name: "links of unknown end on two GPUs are two causes", host: h100x8().linksDown(1, 7).linksDown(5, 7), want: []string{"critical sure " + gpuKey(1), "critical sure " + gpuKey(5)}},
		{name: "V100 cube mesh", host: v100x8()},
		{name: "bridge with a bad seat: one finding for the pair", host: bridged("10de:2230", 86, 3),
			want: []string{"critical sure gpu:0000:11:00.0 gpu:0000:21:00.0"}, says: []string{"reseat the NVLink bridges", "56.25 GB/s"}},
		{name: "matrix beside PCI ids", host: bridged("10de:2230", 86, 0).with(func(h *host) {
			h.inv.GPUs[0].NVLinks, h.inv.GPUs[1].NVLinks = probe.Opt[[]probe.NVLink]{}, probe.Opt[[]probe.NVLink]{}
			h.inv.Relations = []probe.Relation{{A: "GPU0", B: "GPU1", Code: "NV3", Origins: []probe.Origin{{Source: probe.SourceSMITopo, Where: "topo.txt:2"}}}}
		}), want: []string{"critical sure gpu:0000:11:00.0 gpu:0000:21:00.0"}},
		{name: "bridge complete", host: bridged("10de:2230", 86, 4)},
		{name: "no bridge fitted", host: bridged("10de:20b5", 80, 0)},
		{name: "A100 PCIe with three bridges", host: bridged("10de:20b5", 80, 12)},
		{name: "H100 NVL with 12 of 18", host: bridged("10de:2321", 90, 18).linksDown(0, 12, 13, 14, 15, 16, 17).linksDown(1, 12, 13, 14, 15, 16, 17)},
		{name: "A800 SXM with 8", host: h100x8().with(func(h *host) {
			for i := range 8 {
				h.inv.GPUs[i].NVLinks = probe.Some(toSwitches(8))
				h.dev(gpuAt(i)).Device = probe.Some(probe.PCIID(0x20f3))
			}
		})},
		{name: "H800 with 8", host: h100x8().with(func(h *host) {
			for i := range 8 {
				h.inv.GPUs[i].NVLinks = probe.Some(toSwitches(8))
				h.dev(gpuAt(i)).Device = probe.Some(probe.PCIID(0x2324))
			}
		})},
		{name: "POWER: links to the CPU count", host: (&host{}).with(func(h *host) {
			h.numa(1)
			for i := range 2 {
				links := toGPU(rootChild(1-i), 0, 3)
				for k := range 3 {
					links = append(links, probe.NVLink{Link: 3 + k, State: probe.LinkUp, RemoteKind: probe.RemoteCPU})
				}
				h.gpu(rootChild(i), h.onRoot(i, 0), "10de:1db1", 70, 0, gen3, links...)
			}
		})},
		{name: "MIG on", host: h100x8().linksDown(3, 7).with(func(h *host) { h.inv.GPUs[3].MIG = probe.Some(true) }), gap: "MIG"},
		{name: "fabric in progress", host: h100x8().linksDown(3, 7).with(func(h *host) { h.inv.GPUs[3].Fabric = &probe.Fabric{State: "in progress"} }), gap: "fabric"},
		{name: "board not in the table", host: bridged("10de:ffff", 90, 3), gap: "board 10de:ffff is not in the table"},
		{name: "links not in the sources", host: h100x8().idle().sysfsOnly(), gap: "NVLinks not in the sources"},
		{name: "matrix alone: board not known", host: matrix(2, nil, "X NV3", "NV3 X"), gap: "the board is not known"},
		{name: "half a cube mesh passed to a guest", host: v100x8().with(func(h *host) {
			for i := range 4 {
				var left []probe.NVLink
				links, _ := h.inv.GPUs[i].NVLinks.Get()
				for _, l := range links {
					if l.Remote.Or(probe.BDF{}).Bus < 0x51 {
						left = append(left, l)
					}
				}
				h.inv.GPUs[i].NVLinks = probe.Some(left)
			}
			h.inv.GPUs = h.inv.GPUs[:4]
		}).guest(), gap: "may not be visible"},
		{name: "whole cube mesh in a guest, one link gone", host: v100x8([2]int{0, 3}).guest(),
			want: []string{"critical sure gpu:" + rootChild(0) + " gpu:" + rootChild(3)}},
		{name: "NVSwitch in a guest, links gone", host: flatVM().linksDown(1, 0, 1), want: []string{"critical sure gpu:0000:00:07.0"}},
	})
}
