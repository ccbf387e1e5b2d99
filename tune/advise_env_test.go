package tune_test

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

// settings puts the settings of an env file beside a host.
func settings(t testing.TB, text string) func(*probe.Inventory) {
	t.Helper()
	f, err := ncclenv.Parse("job.env", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return func(inv *probe.Inventory) { inv.Env = f.Inventory().Env }
}

func setAndDeclined(p tune.Plan, name string) (value, declined string) {
	for _, v := range p.Variables {
		if v.Name == name {
			value = v.Value
		}
	}
	for _, d := range p.Declined {
		if d.Name == name {
			declined = d.Why
		}
	}
	return value, declined
}

// interfaces gives a host these; a + marks a physical one.
func interfaces(names ...string) func(*probe.Inventory) {
	return func(inv *probe.Inventory) {
		inv.HCAs, inv.NetDevs = nil, nil
		for i, n := range names {
			d := probe.NetDev{Name: n, Virtual: true, Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/net/" + n}}}
			if n[0] == '+' {
				d.Name, d.Virtual = n[1:], false
				d.Addr = probe.Some(probe.BDF{Bus: uint8(0xe0 + i)})
				inv.PCI = append(inv.PCI, probe.PCIDevice{Addr: d.Addr.Or(probe.BDF{}), Root: "pci0000:00", Class: probe.Some(probe.PCIClass(0x020000))})
			}
			inv.NetDevs = append(inv.NetDevs, d)
		}
	}
}

// A wrong choice of interfaces or HCAs is corrected, one that is not needed is
// left out, and a right one is nobody's business.
func TestSettingsAreCorrected(t *testing.T) {
	keep := func(*probe.Inventory) {}
	for _, c := range []struct {
		name, text string
		host       func(*probe.Inventory)
		variable   string
		value      string
		declined   string
	}{
		{"one interface", "NCCL_SOCKET_IFNAME=^docker0\n", interfaces("lo", "docker0", "+eth0"), "NCCL_SOCKET_IFNAME", "=eth0", ""},
		{"several interfaces", "NCCL_SOCKET_IFNAME=^docker0\n", interfaces("lo", "docker0", "+eth0", "+eth1"), "NCCL_SOCKET_IFNAME", "^docker0,lo", ""},
		{"which is routed is not known", "NCCL_SOCKET_IFNAME=ib0\n", interfaces("lo", "+eth0", "+eth1"), "NCCL_SOCKET_IFNAME", "", "see env-socket-ifname"},
		{"right interfaces", "NCCL_SOCKET_IFNAME=^docker0,lo\n", interfaces("lo", "docker0", "+eth0"), "NCCL_SOCKET_IFNAME", "", "only one physical interface"},
		{"all HCAs need no list", "NCCL_IB_HCA=mlx5_0\n", keep, "NCCL_IB_HCA", "", "it is set now, and should not be so (see env-ib-hca-subset)"},
		{"one does not exist", "NCCL_IB_HCA=^mlx5_0,mlx5_9\n", keep, "NCCL_IB_HCA", "", "see env-ib-hca-subset"},
		{"no fault", "NCCL_IB_HCA=mlx5\n", keep, "NCCL_IB_HCA", "", "all of one kind"},
		{"storage beside data", "NCCL_IB_HCA=mlx5_0,mlx5_1\n", func(inv *probe.Inventory) {
			inv.HCAs[7].Ports[0].Rate = probe.Some(probe.Mbps(100e3))
		}, "NCCL_IB_HCA", "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6", ""},
		{"set as it should not be", "NCCL_P2P_LEVEL=nvl\n", keep, "NCCL_P2P_LEVEL", "", "see env-bad-value"},
	} {
		p := analyse(t, "example:h100x8", func(inv *probe.Inventory) { c.host(inv); settings(t, c.text)(inv) }).Plan
		value, declined := setAndDeclined(p, c.variable)
		if value != c.value || !strings.Contains(declined, c.declined) || (value == "") == (declined == "") {
			t.Errorf("%s: %q, declined %q; want %q, %q", c.name, value, declined, c.value, c.declined)
		}
	}
}

func cluster(t *testing.T, change func(hosts []*probe.Inventory, c *probe.Cluster)) *probe.Cluster {
	t.Helper()
	var parts []probe.Part
	for _, name := range []string{"gx1", "gx2", "gx3"} {
		inv, err := open.ReadHost("example:h100x8")
		if err != nil {
			t.Fatal(err)
		}
		inv.Host.Name = name
		for i := range inv.GPUs {
			inv.GPUs[i].UUID = ""
		}
		parts = append(parts, probe.Part{Inv: inv, File: name})
	}
	c, err := probe.Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	change(c.Hosts, c)
	return c
}

func TestAdviseCluster(t *testing.T) {
	old := func(h *probe.Inventory) {
		h.Runtime.NCCL = "2.11.4"
		h.Runtime.Origins = append(h.Runtime.Origins, probe.Origin{Source: "test", Fields: []string{"nccl"}})
	}
	down := func(h *probe.Inventory) {
		links, _ := h.GPUs[3].NVLinks.Get()
		links[4] = probe.NVLink{Link: links[4].Link, State: probe.LinkDown}
	}
	advise := func(change func([]*probe.Inventory, *probe.Cluster)) tune.Plan {
		p, err := tune.AdviseCluster(cluster(t, change))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	same := advise(func([]*probe.Inventory, *probe.Cluster) {})
	if len(same.Variables) != 0 || len(same.Hosts) != 3 || len(same.Declined) == 0 || strings.Contains(same.Declined[0].Why, "gx1") {
		t.Errorf("hosts alike: %+v", same)
	}
	if one := analyse(t, "example:h100x8", nil).Plan; one.Fingerprint != same.Fingerprint {
		t.Error("hosts alike have one shape")
	}
	all := advise(func(hosts []*probe.Inventory, _ *probe.Cluster) {
		for _, h := range hosts {
			old(h)
			down(h)
		}
	})
	if v, _ := setAndDeclined(all, "NCCL_PROTO"); v != "^LL128" || len(all.Variables[0].Hosts) != 0 || len(all.Settings()) != 1 {
		t.Errorf("needed by all: %+v", all.Variables)
	}
	some := advise(func(hosts []*probe.Inventory, _ *probe.Cluster) {
		for _, h := range hosts {
			old(h)
		}
		down(hosts[1])
	})
	if len(some.Variables) != 1 || strings.Join(some.Variables[0].Hosts, " ") != "gx2" || len(some.Settings()) != 0 {
		t.Errorf("needed by one: %+v", some.Variables)
	}
	if head := strings.Join(some.Head(), "\n"); !strings.Contains(head, "only for gx2: NCCL_PROTO=^LL128") {
		t.Error(head)
	}
	mixed := advise(func(hosts []*probe.Inventory, _ *probe.Cluster) { hosts[2].HCAs = nil })
	if _, why := setAndDeclined(mixed, "NCCL_IB_HCA"); !strings.Contains(why, "(on gx1, gx2); no RDMA device") || !strings.Contains(why, "(on gx3)") {
		t.Errorf("reasons differ: %s", why)
	}
}

// Settings alone are something to advise on; a host that only a log shows is not,
// where another is known.
func TestAdviseWithoutHardware(t *testing.T) {
	var none probe.Inventory
	none.Schema = probe.Schema
	settings(t, "NCCL_SOCKET_IFNAME=^docker0\n")(&none)
	c, err := probe.Join([]probe.Part{{Inv: &none, File: "job.env"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := tune.AdviseCluster(c)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := setAndDeclined(p, "NCCL_SOCKET_IFNAME"); v != "^docker0,lo" || len(p.Findings) == 0 {
		t.Errorf("%+v", p)
	}
	logged := cluster(t, func(hosts []*probe.Inventory, c *probe.Cluster) {
		c.Hosts = hosts[:2]
		c.Hosts[1] = &probe.Inventory{Schema: probe.Schema, Host: probe.Host{Name: "gx2"}, GPUs: []probe.GPU{{Index: probe.Some(0), Origins: []probe.Origin{{Source: probe.SourceNCCLLog}}}}}
	})
	if p, err = tune.AdviseCluster(logged); err != nil || len(p.Hosts) != 0 {
		t.Errorf("%v %q", err, p.Hosts)
	}
}

// NCCL before 2.21 needs the index of the GID, later ones do not.
func TestGIDIndex(t *testing.T) {
	for version, want := range map[string]string{"2.14.3": "3", "2.28.3": "", "": ""} {
		p := analyse(t, "example:h100x8", func(inv *probe.Inventory) {
			for i := range inv.HCAs {
				port := &inv.HCAs[i].Ports[0]
				port.LinkLayer, port.GIDs = "Ethernet", []probe.GID{
					{Index: 1, GID: "fe80:0000:0000:0000:0e42:a1ff:feda:3e10", Type: "RoCE v2"},
					{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:c829:0906", Type: "RoCE v2"},
				}
			}
			settings(t, "NCCL_IB_GID_INDEX=1\n")(inv)
			if version != "" {
				inv.Versions = []probe.NCCLSeen{{NCCL: version}}
			}
		}).Plan
		if value, _ := setAndDeclined(p, "NCCL_IB_GID_INDEX"); value != want {
			t.Errorf("NCCL %q: %q, want %q", version, value, want)
		}
	}
}
