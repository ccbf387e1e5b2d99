package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// l40s is a host of PCIe cards on root ports of their own, two sockets.
func l40s(gpus int) *host {
	h := &host{}
	h.inv.Host.Name = "pcie"
	h.numa(2)
	for n := range gpus {
		numa := n * 2 / gpus
		h.gpu(rootChild(n), h.onRoot(n, numa), "10de:26b9", 89, numa, gen4)
	}
	return h
}

func TestACSRedirectsP2P(t *testing.T) {
	set := func(acs uint16, at ...string) func(*host) {
		return func(h *host) {
			for _, a := range at {
				h.dev(a).ACS = probe.Some(acs)
			}
		}
	}
	ports := []string{"0000:10:01.0", "0000:20:01.0"}
	testRule(t, "acs-redirects-p2p", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "root ports between two cards", host: l40s(2).with(set(0x1d, ports...)),
			want: []string{"warning sure pci:0000:10:01.0 pci:0000:20:01.0"}, says: []string{"setpci -s 0000:10:01.0 ECAP_ACS+0x6.w=0", "removes the isolation"}},
		{name: "completion redirect alone", host: l40s(2).with(set(0x08, ports[0])), want: []string{"warning sure pci:0000:10:01.0"}},
		{name: "source validation alone", host: l40s(2).with(set(0x01, ports...))},
		{name: "inside a switch", host: h100x8().with(set(0x1d, downAt(0, 0), downAt(0, 16))), want: []string{"critical sure pci:" + downAt(0, 0) + " pci:" + downAt(0, 16)}},
		{name: "above the switch that GPU and HCA share, GPUs on NVLink", host: h100x8().with(set(0x1d, rootAt(0), rootAt(1)))},
		{name: "guest", host: l40s(2).with(set(0x1d, ports...)).guest()},
		{name: "one card", host: l40s(1).with(set(0x1d, ports[0]))},
		{name: "ATS with direct translated P2P", host: l40s(2).with(set(0x5d, ports...)).with(func(h *host) {
			for n := range 2 {
				h.dev(rootChild(n)).ATS = probe.Some(true)
			}
		})},
		{name: "ATS, translated requests redirected", host: l40s(2).with(set(0x1d, ports[0])).with(func(h *host) {
			for n := range 2 {
				h.dev(rootChild(n)).ATS = probe.Some(true)
			}
		}), want: []string{"warning sure pci:0000:10:01.0"}},
		{name: "not root", host: l40s(2).with(func(h *host) { h.dev(ports[0]).ACS = probe.Opt[uint16]{} }), gap: "were not read"},
		{name: "topology file", host: l40s(2).asFile(), gap: "not in the sources"},
		{name: "matrix alone", host: matrix(2, nil, "X SYS", "- X"), gap: "not in the sources"},
		{name: "NVLink by the matrix", host: matrix(2, nil, "X NV4", "- X")},
	})
}
