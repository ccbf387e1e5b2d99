package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestHCARateLow(t *testing.T) {
	rate := func(h *host, hca int, gbps float64, text string) {
		p := &h.inv.HCAs[hca].Ports[0]
		p.Rate, p.RateText = probe.Some(probe.Mbps(1000*gbps)), text
	}
	all := func(gbps float64, text string) func(*host) {
		return func(h *host) {
			for i := range h.inv.HCAs {
				rate(h, i, gbps, text)
			}
		}
	}
	testRule(t, "hca-rate-low", []ruleCase{
		{name: "one rail at half", host: h100x8().with(func(h *host) { rate(h, 3, 200, "200 Gb/sec (2X NDR)") }),
			want: []string{"critical sure port:mlx5_3/1 hca:mlx5_3"},
			says: []string{"400 Gb/s, as mlx5_0 of the same model", "200 Gb/s (200 Gb/sec (2X NDR))"}},
		{name: "above half", host: h100x8().with(all(100, "100 Gb/sec (4X EDR)")).with(func(h *host) { rate(h, 3, 56, "56 Gb/sec (4X FDR)") }),
			want: []string{"warning sure port:mlx5_3/1 hca:mlx5_3"}},
		{name: "all alike below what a ConnectX-7 can", host: h100x8().with(all(200, "200 Gb/sec (4X HDR)")),
			want: []string{"info possible port:mlx5_0/1 port:mlx5_1/1 port:mlx5_2/1 port:mlx5_3/1 port:mlx5_4/1 port:mlx5_5/1 port:mlx5_6/1 port:mlx5_7/1"},
			says: []string{"up to 400 Gb/s, the fastest port of a ConnectX-7", "200 Gb/s on 8 ports, all alike"}},
		{name: "rate of a port that is down", host: h100x8().with(func(h *host) { h.down(3, "DOWN", "Disabled") })},
		{name: "management adapter of another model", host: h100x8().with(func(h *host) {
			h.hca("mlx5_8", rootChild(14), h.onRoot(14, 1), "15b3:1015", 1, probe.LinkOfGen(3, 8), 40)
		})},
		{name: "storage adapter of the same chip, other board", host: h100x8().with(func(h *host) {
			h.hca("mlx5_8", rootChild(14), h.onRoot(14, 1), "15b3:1021", 1, gen5, 200)
			h.inv.HCAs[8].Board = "MT_0000000834"
		})},
		{name: "same chip, Ethernet beside InfiniBand", host: h100x8().with(func(h *host) {
			h.hca("mlx5_8", rootChild(14), h.onRoot(14, 1), "15b3:1021", 1, gen5, 200)
			h.inv.HCAs[8].Ports[0].LinkLayer = "Ethernet"
		})},
		{name: "virtual function", host: h100x8().with(func(h *host) {
			h.hca("mlx5_8", rootChild(14), h.onRoot(14, 1), "15b3:101e", 1, gen5, 100)
		})},
		{name: "ACTIVE and SDR: a speed that the kernel does not know", host: h100x8().with(func(h *host) { rate(h, 3, 10, "10 Gb/sec (4X SDR)") }), gap: "reads SDR"},
		{name: "faster than the adapter can be: not believed, and no measure for its siblings", host: h100x8().with(func(h *host) { rate(h, 3, 800, "800 Gb/sec (4X XDR)") }),
			gap: "the port reads 800 Gb/s, and no port of a ConnectX-7 does more than 400 Gb/s"},
		{name: "800 Gb/s where the adapter can", host: h100x8().with(func(h *host) {
			for i := range h.inv.HCAs {
				rate(h, i, 800, "800 Gb/sec (4X XDR)")
				h.dev(hcaAt(i)).Device = idOf(0x1023)
			}
		})},
		{name: "rate not known", host: h100x8().with(func(h *host) { h.inv.HCAs[3].Ports[0].Rate = probe.Opt[probe.Rate]{} }), gap: "port rate not known"},
		{name: "adapter not in the table", host: h100x8().with(func(h *host) {
			h.hca("efa_0", rootChild(14), h.onRoot(14, 1), "1d0f:efa2", 1, gen5, 200)
		}), gap: "not in the table"},
		{name: "no GPU here: nothing says which adapters are rails", host: h100x8().with(all(200, "200 Gb/sec (4X HDR)")).with(func(h *host) { h.inv.GPUs = nil })},
		{name: "guest: the fastest adapters are the rails", host: h100x8().guest().with(all(200, "200 Gb/sec (4X HDR)")).with(func(h *host) { h.inv.HCAs = h.inv.HCAs[:1] }),
			want: []string{"info possible port:mlx5_0/1"}},
		{name: "topology file", host: h100x8().asFile(), gap: "port state"},
	})
}
