package check

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNVLinkAbsent(t *testing.T) {
	all := func(links func(int) []probe.NVLink) func(*host) {
		return func(h *host) {
			for i := range h.inv.GPUs {
				h.inv.GPUs[i].NVLinks = probe.Some(links(i))
			}
		}
	}
	empty := all(func(int) []probe.NVLink { return []probe.NVLink{} })
	down := all(func(int) []probe.NVLink {
		links := make([]probe.NVLink, 18)
		for i := range links {
			links[i] = probe.NVLink{Link: i, State: probe.LinkDown}
		}
		return links
	})
	board := func(id probe.PCIID, cc int) func(*host) {
		return func(h *host) {
			for i := range h.inv.GPUs {
				h.inv.GPUs[i].CC = probe.Some(cc)
				h.dev(h.inv.GPUs[i].Addr.Or(probe.BDF{}).String()).Device = idOf(id)
			}
		}
	}
	// PCI ids beside a topo -m that shows no NVLink.
	fromMatrix := func(h *host) {
		for i := range h.inv.GPUs {
			h.inv.GPUs[i].NVLinks = probe.Opt[[]probe.NVLink]{}
		}
		h.inv.Relations = matrix(2, nil, "X SYS", "- X").inv.Relations
	}
	container := func(h *host) {
		h.inv.Settings.Container = []probe.Mark{{What: "docker", Origin: probe.Origin{Source: probe.SourceSysfs, Where: ".dockerenv"}}}
	}
	var eight []string
	for n := range 8 {
		eight = append(eight, gpuKey(n))
	}
	sxm := []string{"critical sure " + strings.Join(eight, " ")}
	const pair = "gpu:0000:11:00.0 gpu:0000:21:00.0"
	testRule(t, "nvlink-absent", []ruleCase{
		{name: "HGX, lists known to be empty", host: h100x8().with(empty), want: sxm,
			says: []string{"18 NVLinks up per GPU (H100 SXM5 80GB), 450 GB/s per direction", "no NVLink up on any of 8 GPUs", "nvidia-fabricmanager"}},
		{name: "HGX, every link down", host: h100x8().with(down), want: sxm},
		{name: "HGX, some down, some empty, idle", host: h100x8().with(down).with(func(h *host) { h.inv.GPUs[2].NVLinks = toNothing }).idle(), want: sxm},
		{name: "in a guest all the same", host: h100x8().with(down).guest(), want: sxm},
		{name: "matrix shows none", host: bridged("10de:2330", 90, 0).with(fromMatrix), want: []string{"critical sure " + pair}},
		{name: "two H100 NVL", host: bridged("10de:2321", 90, 0), want: []string{"warning sure " + pair},
			says: []string{"NV12 between bridged GPUs (H100 NVL 94GB), 300 GB/s per direction", "bridges are fitted"}},
		{name: "two H200 NVL", host: bridged("10de:233b", 90, 0).with(down), want: []string{"warning sure " + pair}, says: []string{"NV18"}},
		{name: "two H100 NVL of a guest may be of different pairs", host: bridged("10de:2321", 90, 0).guest(), want: []string{"warning likely " + pair}, says: []string{"both GPUs of a bridged pair"}},
		{name: "one link is up", host: h100x8().with(down).with(func(h *host) { h.inv.GPUs[5].NVLinks = probe.Some(toSwitches(1)) })},
		{name: "healthy", host: h100x8()},
		{name: "idle and healthy", host: h100x8().idle()},
		{name: "bridged pair plus a single", host: bridged("10de:2321", 90, 12).with(func(h *host) {
			h.gpu(rootChild(2), h.onRoot(2, 0), "10de:2321", 90, 0, gen4)
		})},
		{name: "two pairs, one without its bridge", host: bridged("10de:2321", 90, 12).with(func(h *host) {
			h.gpu(rootChild(2), h.onRoot(2, 0), "10de:2321", 90, 0, gen4)
			h.gpu(rootChild(3), h.onRoot(3, 0), "10de:2321", 90, 0, gen4)
		})},
		{name: "one GPU", host: h100x8().with(down).with(func(h *host) { h.inv.GPUs = h.inv.GPUs[:1] })},
		{name: "one module beside a card", host: bridged("10de:2330", 90, 0).with(func(h *host) { h.dev(rootChild(1)).Device = idOf(0x26b9) })},
		{name: "A100 PCIe without bridges", host: bridged("10de:20b5", 80, 0)},
		{name: "RTX 3090 without bridges", host: bridged("10de:2204", 86, 0)},
		{name: "L40S has none", host: bridged("10de:26b9", 89, 0)},
		{name: "POWER: links to the CPU count", host: bridged("10de:1db1", 70, 0).with(all(func(int) []probe.NVLink {
			return []probe.NVLink{{State: probe.LinkUp, RemoteKind: probe.RemoteCPU}}
		}))},
		{name: "MIG on everywhere", host: h100x8().with(down).with(func(h *host) {
			for i := range h.inv.GPUs {
				h.inv.GPUs[i].MIG = probe.Some(true)
			}
		}), gap: "MIG"},
		{name: "fabric in progress", host: h100x8().with(down).with(func(h *host) {
			for i := range h.inv.GPUs {
				h.inv.GPUs[i].Fabric = &probe.Fabric{State: fabricInProgress}
			}
		}), gap: "fabric"},
		{name: "not in the sources", host: h100x8().idle().sysfsOnly(), gap: "NVLinks not in the sources"},
		{name: "one GPU not told", host: h100x8().with(down).with(func(h *host) { h.inv.GPUs[4].NVLinks = probe.Opt[[]probe.NVLink]{} }), gap: "NVLinks not in the sources"},
		{name: "matrix cut short", host: bridged("10de:2330", 90, 0).with(fromMatrix).with(func(h *host) {
			h.gpu(rootChild(2), h.onRoot(2, 0), "10de:2330", 90, 0, gen4)
			h.inv.GPUs[2].NVLinks = probe.Opt[[]probe.NVLink]{}
		}), gap: "cut short"},
		{name: "two V100 of a mesh in a guest", host: bridged("10de:1db5", 70, 0).guest(), gap: "may not be visible"},
		{name: "two V100 of a mesh in a container, by topo -m", host: bridged("10de:1db5", 70, 0).with(fromMatrix).with(container), gap: "may not be visible"},
		{name: "two V100 in a container, by the driver", host: bridged("10de:1db5", 70, 0).with(down).with(container), want: []string{"critical sure " + pair}},
		{name: "matrix alone: board not known", host: matrix(2, nil, "X SYS", "- X"), gap: "the board is not known"},
		{name: "matrix alone with NVLink", host: matrix(2, nil, "X NV12", "- X")},
		{name: "board not in the table", host: bridged("10de:ffff", 90, 0), gap: "board 10de:ffff is not in the table"},
		{name: "display adapter beside joined GPUs", host: h100x8().with(func(h *host) {
			h.gpu(rootChild(14), h.onRoot(14, 1), "10de:1cb3", 61, 1, gen3)
		})},
		{name: "superchips that the machine may not join", host: bridged("10de:2342", 90, 0), gap: "joins its superchips"},
		{name: "GB10 has none", host: bridged("10de:2e12", 121, 0)},
		{name: "A100 SXM4 in a topology file", host: h100x8().with(board(0x20b2, 80)).with(empty).asFile(), want: sxm},
	})
}

// No NVLink on any GPU is one finding: the rules that compare GPUs with each
// other, or with a complete board, have nothing to add.
func TestAbsentSpeaksAlone(t *testing.T) {
	h := h100x8()
	for i := range h.inv.GPUs {
		h.inv.GPUs[i].NVLinks = toNothing
	}
	if got := brief(Run(h.topology(t), All())); len(got) != 1 || !strings.HasPrefix(got[0], "nvlink-absent critical") {
		t.Errorf("%q", got)
	}
}
