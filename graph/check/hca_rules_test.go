package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// job adds what a job shows: settings and the NCCL version.
func jobOf(version string, env ...string) func(*host) {
	return func(h *host) {
		if version != "" {
			h.inv.Versions = append(h.inv.Versions, probe.NCCLSeen{NCCL: version, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "job.log:1"}}})
		}
		for i := 0; i+1 < len(env); i += 2 {
			h.inv.Env = append(h.inv.Env, probe.EnvSetting{Name: env[i], Value: env[i+1], How: probe.EnvVariable,
				Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:3"}}})
		}
	}
}

func TestHCANearNoGPU(t *testing.T) {
	storage := func(id string, gbps float64) func(*host) {
		return func(h *host) { h.hca("mlx5_8", rootChild(14), h.onRoot(14, 0), id, 0, gen5, gbps) }
	}
	used := func(h *host) {
		h.inv.Adapters = []probe.Adapter{{Network: "IB", Name: "mlx5_8", Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:9"}}}}
	}
	oneNear := func(h *host) { h.inv.HCAs = h.inv.HCAs[:1] }
	testRule(t, "hca-near-no-gpu", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "storage adapter", host: h100x8().with(storage("15b3:101b", 200)), want: []string{"info sure hca:mlx5_8"}, says: []string{"NCCL_IB_HCA=^=mlx5_8"}},
		{name: "NCCL uses it", host: h100x8().with(storage("15b3:101b", 200)).with(used), want: []string{"warning sure hca:mlx5_8"}},
		{name: "of the same model", host: h100x8().with(storage("15b3:1021", 400)), want: []string{"info sure hca:mlx5_8"}},
		{name: "one is near, this one is another model", host: h100x8().with(oneNear).with(storage("15b3:101b", 200)), want: []string{"info sure hca:mlx5_8"}},
		{name: "one is near, this one is like it", host: h100x8().with(oneNear).with(storage("15b3:1021", 400))},
		{name: "left out by the setting", host: h100x8().with(storage("15b3:101b", 200)).with(jobOf("", "NCCL_IB_HCA", "^=mlx5_8"))},
		{name: "not ACTIVE", host: h100x8().with(storage("15b3:101b", 200)).with(func(h *host) { h.down(8, "DOWN", "Disabled") })},
		{name: "none is near", host: l40s(2).with(storage("15b3:101b", 200))},
		{name: "guest", host: h100x8().with(storage("15b3:101b", 200)).guest()},
	})
}

func TestHCASharedByGPUs(t *testing.T) {
	// tree puts GPUs and HCAs behind switches, "gg h" is two GPUs and an HCA behind
	// one and nothing else.
	tree := func(switches ...string) *host {
		h := &host{}
		h.numa(1)
		gpus, hcas := 0, 0
		for s, parts := range switches {
			rp := h.onRoot(s, 0)
			up := h.bridge(fmt.Sprintf("0000:%02x:00.0", 0x11+0x10*s), rp, "1000:c030", 0, gen5)
			for k, p := range parts {
				down := h.bridge(fmt.Sprintf("0000:%02x:%02x.0", 0x12+0x10*s, k), up, "1000:c030", 0, gen5)
				at := fmt.Sprintf("0000:%02x:00.0", 0x13+0x10*s+k)
				if p == 'g' {
					h.gpu(at, down, "10de:26b9", 89, 0, gen4)
					gpus++
					continue
				}
				h.hca(fmt.Sprintf("mlx5_%d", hcas), at, down, "15b3:101b", 0, gen4, 200)
				hcas++
			}
		}
		return h
	}
	// deeper hangs a second HCA one switch further from the GPUs.
	deeper := func(h *host) {
		at := h.bridge("0000:18:00.0", h.bridge("0000:17:00.0", h.bridge("0000:12:03.0", "0000:11:00.0", "1000:c030", 0, gen5), "1000:c030", 0, gen5), "1000:c030", 0, gen5)
		h.hca("mlx5_1", "0000:19:00.0", at, "15b3:101b", 0, gen4, 200)
	}
	testRule(t, "hca-shared-by-gpus", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "two GPUs on each of two", host: tree("ggh", "ggh")},
		{name: "three on one, one on the other", host: tree("gggh", "gh")},
		{name: "guest", host: tree("gggh", "gh").guest()},
		{name: "an HCA that no GPU is nearest to", host: tree("ggh").with(deeper), want: []string{"warning sure hca:mlx5_0 gpu:0000:13:00.0 gpu:0000:14:00.0"}, says: []string{"mlx5_1 of none"}},
	})
}

func TestHCAFunctionsSharePort(t *testing.T) {
	guid := func(names ...int) func(*host) {
		return func(h *host) {
			for i := range h.inv.HCAs {
				h.inv.HCAs[i].SysImageGUID = fmt.Sprintf("9803:9b03:00aa:%04x", i)
			}
			for _, i := range names {
				h.inv.HCAs[i].SysImageGUID = "9803:9b03:00aa:ffff"
			}
		}
	}
	vf := func(h *host) {
		for _, n := range []int{0, 1} {
			h.dev(hcaAt(n)).PhysFn = probe.Some(bdf(hcaAt(7)))
		}
	}
	testRule(t, "hca-functions-share-port", []ruleCase{
		{name: "healthy", host: h100x8().with(guid())},
		{name: "one adapter on two buses", host: h100x8().with(guid(0, 1)), want: []string{"info likely hca:mlx5_0 hca:mlx5_1"}, says: []string{"2 devices, 1 cable"}},
		{name: "three", host: h100x8().with(guid(0, 1, 2)), want: []string{"warning likely hca:mlx5_0 hca:mlx5_1 hca:mlx5_2"}},
		{name: "two ports of one card", host: h100x8().with(guid(0, 1)).with(func(h *host) {
			d := h.dev(hcaAt(1))
			d.Addr.Fn = 1
			h.inv.HCAs[1].Addr = probe.Some(d.Addr)
		})},
		{name: "virtual functions", host: h100x8().with(guid()).with(vf), want: []string{"info likely hca:mlx5_0 hca:mlx5_1"}},
		{name: "entries of a file", host: h100x8().with(guid(0, 1)).asFile(), want: []string{"info likely hca:mlx5_0 hca:mlx5_1"}},
		{name: "one is down", host: h100x8().with(guid(0, 1)).with(func(h *host) { h.down(1, "DOWN", "Polling") })},
	})
}

func TestHCABondOneQP(t *testing.T) {
	bond := func(mode string, slaves ...string) func(*host) {
		return func(h *host) {
			h.inv.HCAs = h.inv.HCAs[:1]
			n := &h.inv.HCAs[0]
			n.Name, n.NetDevs, n.Ports[0].LinkLayer = "mlx5_bond_0", []string{"ens1f0"}, "Ethernet"
			n.Ports[0].GIDs = usableGIDs()
			if mode != "" {
				h.inv.NetDevs = []probe.NetDev{{Name: "bond0", Virtual: true, Bond: &probe.Bond{Mode: mode, Slaves: slaves},
					Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/net/bond0"}}}}
			}
		}
	}
	lacp := bond("802.3ad", "ens1f0", "ens1f1")
	testRule(t, "hca-bond-one-qp", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "NCCL's default", host: h100x8().with(lacp), want: []string{"warning likely hca:mlx5_bond_0 net:bond0"}, says: []string{"NCCL_IB_QPS_PER_CONNECTION=2"}},
		{name: "set to one", host: h100x8().with(lacp).with(jobOf("2.20.5", "NCCL_IB_QPS_PER_CONNECTION", "1")), want: []string{"warning sure hca:mlx5_bond_0 net:bond0"}},
		{name: "set to four", host: h100x8().with(lacp).with(jobOf("2.20.5", "NCCL_IB_QPS_PER_CONNECTION", "4"))},
		{name: "balance-xor", host: h100x8().with(bond("balance-xor", "ens1f0", "ens1f1")), want: []string{"warning likely hca:mlx5_bond_0 net:bond0"}},
		{name: "active-backup", host: h100x8().with(bond("active-backup", "ens1f0", "ens1f1"))},
		{name: "one slave", host: h100x8().with(bond("802.3ad", "ens1f0"))},
		{name: "mode not recorded", host: h100x8().with(bond("")), gap: "mode of the bond"},
		{name: "down", host: h100x8().with(lacp).with(func(h *host) { h.down(0, "DOWN", "Disabled") })},
	})
}

const (
	linkLocal = "fe80:0000:0000:0000:ba3f:d2ff:fe44:90c2"
	mapped    = "0000:0000:0000:0000:0000:ffff:0a37:0215"
	global6   = "2001:0db8:0000:0000:0000:0000:0000:0001"
)

// usableGIDs is the table of a healthy RoCE port with an IPv4 address.
func usableGIDs() []probe.GID {
	return []probe.GID{
		{Index: 0, GID: linkLocal, Type: "IB/RoCE v1"}, {Index: 1, GID: linkLocal, Type: "RoCE v2"},
		{Index: 2, GID: mapped, Type: "IB/RoCE v1"}, {Index: 3, GID: mapped, Type: "RoCE v2"},
	}
}

func TestHCAGIDUnusable(t *testing.T) {
	roce := func(gids ...probe.GID) *host {
		return h100x8().with(func(h *host) {
			h.inv.HCAs = h.inv.HCAs[:1]
			h.inv.HCAs[0].Ports[0].LinkLayer, h.inv.HCAs[0].Ports[0].GIDs = "Ethernet", gids
		})
	}
	index := func(version, n string) func(*host) { return jobOf(version, "NCCL_IB_GID_INDEX", n) }
	v6 := probe.GID{Index: 1, GID: global6, Type: "RoCE v2"}
	env := []string{"critical sure port:mlx5_0/1 env:NCCL_IB_GID_INDEX"}
	port := []string{"critical sure port:mlx5_0/1"}
	testRule(t, "hca-gid-unusable", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "NCCL chooses", host: roce(usableGIDs()...)},
		{name: "the right index", host: roce(usableGIDs()...).with(index("2.14.3", "3"))},
		{name: "link-local", host: roce(usableGIDs()...).with(index("2.14.3", "1")), want: env, says: []string{"GID index 1 is link-local: fe80::ba3f:d2ff:fe44:90c2", "NCCL_IB_GID_INDEX=3"}},
		{name: "RoCE v1", host: roce(usableGIDs()...).with(index("2.22.3", "2")), want: env, says: []string{"RoCE v1"}},
		{name: "empty", host: roce(usableGIDs()...).with(index("", "7")), want: env, says: []string{"GID index 7 is empty"}},
		{name: "index 0 before 2.21", host: roce(usableGIDs()...).with(jobOf("2.18.3")), gap: "one Ethernet segment"},
		{name: "index 0 before 2.21, connections fail", host: roce(usableGIDs()...).with(jobOf("2.18.3")).with(func(h *host) {
			h.inv.Events = []probe.Event{{Kind: probe.EventWarning, Text: "Call to ibv_modify_qp failed with error Connection timed out",
				Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:40"}}}}
		}), want: port},
		{name: "-1 is NCCL's choice", host: roce(usableGIDs()...).with(index("2.22.3", "-1"))},
		{name: "no address", host: roce(usableGIDs()[:2]...), want: port, says: []string{"no RoCE v2 entry with an IPv4 address", "give the interface of this port an IPv4 address"}},
		{name: "IPv6 alone", host: roce(v6), want: port},
		{name: "IPv6 by the family", host: roce(v6).with(jobOf("2.22.3", "NCCL_IB_ADDR_FAMILY", "AF_INET6"))},
		{name: "table not recorded", host: roce(), gap: "GID table"},
		{name: "settings of a host that is not this one", host: roce(usableGIDs()...).with(index("2.14.3", "1")).with(func(h *host) { h.inv.Env[0].Host = "roce-a" }), want: env},
	})
}

func TestHCAErrors(t *testing.T) {
	counters := func(hca int, name string, n uint64) func(*host) {
		return func(h *host) { h.inv.HCAs[hca].Ports[0].Counters = []probe.Counter{{Name: name, Value: n}} }
	}
	testRule(t, "hca-errors", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "one port flaps", host: h100x8().with(counters(3, "link_downed", 5)), want: []string{"critical sure port:mlx5_3/1 hca:mlx5_3"}, says: []string{"went down 5 times"}},
		{name: "not often enough", host: h100x8().with(counters(3, "link_downed", 4)), gap: "one reading"},
		{name: "all alike", host: h100x8().with(func(h *host) {
			for i := range h.inv.HCAs {
				counters(i, "link_downed", 9)(h)
			}
		}), gap: "one reading"},
		{name: "no sibling", host: h100x8().with(counters(0, "link_downed", 9)).with(func(h *host) { h.inv.HCAs = h.inv.HCAs[:1] }), gap: "one reading"},
		{name: "symbol errors of one reading", host: h100x8().with(counters(3, "symbol_error", 900)), gap: "one reading"},
		{name: "not recorded", host: h100x8().with(func(h *host) { h.inv.HCAs[2].Ports[0].Counters = nil }), gap: "not in the sources"},
		{name: "down", host: h100x8().with(counters(3, "link_downed", 9)).with(func(h *host) { h.down(3, "DOWN", "Polling") })},
	})
}

func TestNetVirtualInterfaces(t *testing.T) {
	nets := func(mbps float64, names ...string) func(*host) {
		return func(h *host) {
			for _, n := range names {
				d := probe.NetDev{Name: n, Virtual: n != "eth0", Carrier: probe.Some(true), Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/net/" + n}}}
				if n == "eth0" && mbps > 0 {
					d.Speed = probe.Some(probe.Mbps(mbps))
				}
				h.inv.NetDevs = append(h.inv.NetDevs, d)
			}
		}
	}
	testRule(t, "net-virtual-interfaces", []ruleCase{
		{name: "healthy", host: h100x8().with(nets(10e3, "eth0", "veth1"))},
		{name: "container interfaces", host: l40s(1).with(nets(10e3, "lo", "eth0", "docker0", "veth12", "br-4f", "cali9")), want: []string{"warning possible net:veth12 net:br-4f net:cali9"}, says: []string{"NCCL_SOCKET_IFNAME=eth0"}},
		{name: "a job uses one", host: l40s(1).with(nets(10e3, "eth0", "br-4f")).with(func(h *host) {
			h.inv.Interfaces = []probe.Interface{{Use: probe.UseSocket, Name: "br-4f", Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:2"}}}}
		}), want: []string{"warning sure net:br-4f"}},
		{name: "docker0 alone", host: l40s(1).with(nets(10e3, "lo", "eth0", "docker0"))},
		{name: "the user's exclusion admits docker0", host: l40s(1).with(nets(10e3, "lo", "eth0", "docker0")).with(jobOf("", "NCCL_SOCKET_IFNAME", "^lo")), want: []string{"warning possible net:docker0"}},
		{name: "a faster interface", host: l40s(1).with(nets(100e3, "eth0", "veth12"))},
		{name: "speed not known", host: l40s(1).with(nets(0, "eth0", "veth12")), want: []string{"warning possible net:veth12"}},
		{name: "named", host: l40s(1).with(nets(10e3, "eth0", "veth12")).with(jobOf("", "NCCL_SOCKET_IFNAME", "eth0"))},
		{name: "without carrier", host: l40s(1).with(nets(10e3, "eth0", "veth12")).with(func(h *host) { h.inv.NetDevs[1].Carrier = probe.Some(false) })},
	})
}
