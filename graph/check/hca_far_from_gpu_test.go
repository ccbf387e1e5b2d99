package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestHCAFarFromGPU(t *testing.T) {
	// A PCIe host with a GPU per socket and one HCA on socket 0.
	oneSided := func() *host {
		h := &host{}
		h.numa(2)
		h.gpu(rootChild(0), h.onRoot(0, 0), "10de:20b5", 80, 0, gen4)
		h.gpu(rootChild(1), h.onRoot(1, 1), "10de:20b5", 80, 1, gen4)
		h.hca("mlx5_0", rootChild(2), h.onRoot(2, 0), "15b3:101b", 0, gen4, 200)
		return h
	}
	// h100x8 without the HCAs of socket 1, NVLink or not.
	half := func(h *host) { h.inv.HCAs = h.inv.HCAs[:4] }
	noNVLink := func(h *host) {
		for i := range h.inv.GPUs {
			h.inv.GPUs[i].NVLinks = toNothing
		}
	}
	socket1 := gpuKey(4) + " " + gpuKey(5) + " " + gpuKey(6) + " " + gpuKey(7) + " hca:mlx5_0 hca:mlx5_1 hca:mlx5_2 hca:mlx5_3"
	testRule(t, "hca-far-from-gpu", []ruleCase{
		{name: "HCA on the other socket", host: oneSided(), want: []string{"warning sure gpu:0000:21:00.0 hca:mlx5_0"},
			says: []string{"nearest HCA of GPU1 is SYS away: mlx5_0", "move an HCA to the socket"}},
		{name: "four GPUs, one cause", host: h100x8().with(half).with(noNVLink), want: []string{"warning sure " + socket1},
			says: []string{"as other GPUs of this host have"}},
		{name: "reached over NVLink", host: h100x8().with(half), want: []string{"info sure " + socket1}, says: []string{"(PXN)"}},
		{name: "NCCL older than PXN", host: h100x8().with(half).with(func(h *host) {
			h.inv.Runtime = probe.Runtime{NCCL: "2.11.4", Origins: []probe.Origin{{Source: probe.SourceNCCLTests, Where: "run.txt:1"}}}
		}), want: []string{"warning sure " + socket1}},
		{name: "host bridge where another GPU has a switch", host: h100x8().with(noNVLink).with(func(h *host) { h.inv.HCAs = append(h.inv.HCAs[:3:3], h.inv.HCAs[4:]...) }),
			want: []string{"info sure " + gpuKey(3) + " hca:mlx5_0 hca:mlx5_1 hca:mlx5_2"}, says: []string{"NODE away"}},
		{name: "host bridge, but a switch over NVLink", host: h100x8().with(func(h *host) { h.inv.HCAs = append(h.inv.HCAs[:3:3], h.inv.HCAs[4:]...) })},
		{name: "the near one is down: hca-port-down speaks", host: h100x8().with(noNVLink).with(func(h *host) { h.down(3, "DOWN", "Polling") })},
		{name: "the near virtual function is down", host: h100x8().with(noNVLink).with(func(h *host) {
			h.down(3, "DOWN", "Polling")
			h.dev(hcaAt(3)).Device = idOf(0x101e)
		}), want: []string{"info sure " + gpuKey(3) + " hca:mlx5_0 hca:mlx5_1 hca:mlx5_2"}},
		{name: "all at the host bridge alike", host: oneSided().with(func(h *host) {
			h.dev(rootChild(1)).NUMA, h.dev("0000:20:01.0").NUMA = h.inv.PCI[0].NUMA, h.inv.PCI[0].NUMA
		})},
		{name: "matrix alone, states not known: every HCA is far", host: matrix(2, []string{"mlx5_0", "mlx5_1"}, "X SYS NODE NODE", "- X SYS SYS", "- - X PIX", "- - - X"),
			want: []string{"warning likely gpu:1 hca:mlx5_0 hca:mlx5_1"}, gap: "port state"},
		{name: "matrix alone, near", host: matrix(1, []string{"mlx5_0"}, "X PIX", "- X"), gap: "port state"},
		{name: "matrix without a cell", host: matrix(2, []string{"mlx5_0"}, "X SYS -", "- X SYS", "- - X"), want: []string{"warning likely gpu:1 hca:mlx5_0"}, gap: "distance"},
		{name: "topology file", host: oneSided().asFile(), want: []string{"warning sure gpu:0000:21:00.0 hca:mlx5_0"}},
		{name: "two GPUs per HCA", host: h100x8().with(func(h *host) {
			for n := range 4 {
				h.gpu("0000:"+hcaAt(2*n + 1)[5:7]+":01.0", downAt(2*n, 16), "10de:2330", 90, n/2, gen5, toSwitches(18)...)
			}
		})},
		{name: "superchip", host: oneSided().with(func(h *host) {
			h.dev(rootChild(0)).Device, h.dev(rootChild(1)).Device = idOf(0x2941), idOf(0x2941)
		})},
		{name: "no HCA at all", host: h100x8().with(func(h *host) { h.inv.HCAs = nil })},
		{name: "guest", host: oneSided().guest(), gap: "hypervisor"},
	})
}
