package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// dualPorts gives each island of h100x8 a second function of its HCA.
func dualPorts(state, phys string) *host {
	h := h100x8()
	for n := range 8 {
		fn1 := fmt.Sprintf("%s1", hcaAt(n)[:len(hcaAt(n))-1])
		h.hca(fmt.Sprintf("mlx5_%d", 8+n), fn1, downAt(n, 16), "15b3:1021", n/4, gen5, 400)
		if state != probe.PortActive {
			h.down(8+n, state, phys)
		}
	}
	return h
}

func TestHCAPortDown(t *testing.T) {
	far := func(h *host) {
		h.hca("mlx5_8", rootChild(14), h.onRoot(14, 1), "15b3:1021", 1, gen5, 400)
	}
	testRule(t, "hca-port-down", []ruleCase{
		{name: "rail polling", host: h100x8().with(func(h *host) { h.down(4, "DOWN", "Polling") }),
			want: []string{"critical sure port:mlx5_4/1 hca:mlx5_4 " + gpuKey(4)},
			says: []string{"no other usable HCA is as near to GPU4", "state ACTIVE, LinkUp, as on 7 other ports of the same model", "state DOWN, phys_state Polling", "check cable, optics and switch port of mlx5_4 port 1"}},
		{name: "no subnet manager", host: h100x8().with(func(h *host) { h.down(4, "INIT", "LinkUp") }),
			want: []string{"warning sure port:mlx5_4/1 hca:mlx5_4 " + gpuKey(4)}, says: []string{"no subnet manager has configured mlx5_4 port 1", "sminfo"}},
		{name: "disabled near a GPU", host: h100x8().with(func(h *host) { h.down(4, "DOWN", "Disabled") }),
			want: []string{"info sure port:mlx5_4/1 hca:mlx5_4 " + gpuKey(4)}, says: []string{"NCCL_IB_HCA"}},
		{name: "the only HCA", host: h100x8().with(func(h *host) {
			h.inv.GPUs, h.inv.HCAs = h.inv.GPUs[:1], h.inv.HCAs[:1]
			h.down(0, "DOWN", "Polling")
		}), want: []string{"warning sure port:mlx5_0/1 hca:mlx5_0 " + gpuKey(0)}},
		{name: "no cable on an HCA near no GPU", host: h100x8().with(far).with(func(h *host) { h.down(8, "DOWN", "Polling") }),
			want: []string{"info sure port:mlx5_8/1 hca:mlx5_8"}},
		{name: "disabled HCA near no GPU", host: h100x8().with(far).with(func(h *host) { h.down(8, "DOWN", "Disabled") })},
		{name: "second ports disabled at 10 Gb/sec (4X SDR)", host: dualPorts("DOWN", "Disabled")},
		{name: "second ports without cables", host: dualPorts("DOWN", "Polling"),
			want: func() (out []string) {
				for n := range 8 {
					out = append(out, fmt.Sprintf("info sure port:mlx5_%d/1 hca:mlx5_%d", 8+n, 8+n))
				}
				return
			}()},
		{name: "second port down where the sibling cards use theirs", host: dualPorts(probe.PortActive, "").with(func(h *host) { h.down(11, "DOWN", "Polling") }),
			want: []string{"critical sure port:mlx5_11/1 hca:mlx5_11"}},
		{name: "second port of one function", host: h100x8().with(func(h *host) {
			h.inv.HCAs[0].Ports = append(h.inv.HCAs[0].Ports, probe.HCAPort{Port: 2, State: "DOWN", PhysState: "Polling"})
		}), want: []string{"info sure port:mlx5_0/2 hca:mlx5_0"}},
		{name: "virtual function", host: h100x8().with(func(h *host) {
			h.dev(hcaAt(4)).Device = probe.Some(probe.PCIID(0x101e))
			h.down(4, "DOWN", "Disabled")
		})},
		{name: "guest: distances are not known", host: h100x8().guest().with(func(h *host) { h.down(4, "DOWN", "Polling") }),
			want: []string{"warning sure port:mlx5_4/1 hca:mlx5_4"}},
		{name: "topology file", host: h100x8().asFile(), gap: "port state"},
		{name: "matrix", host: matrix(1, []string{"mlx5_0"}, "X PIX"), gap: "port state"},
	})
}
