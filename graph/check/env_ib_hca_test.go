package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// rails is a host with n HCAs on switches of their own, each beside a GPU.
func rails(n int) *host {
	h := &host{}
	h.numa(1)
	for i := range n {
		up := h.bridge(fmt.Sprintf("0000:%02x:00.0", 0x11+0x10*(i%12)), h.bridge(fmt.Sprintf("0000:%02x:01.0", 0x10+0x10*(i%12)), "", "8086:352a", 0, gen5), "1000:c030", 0, gen5)
		h.gpu(fmt.Sprintf("0000:%02x:00.0", 0x13+0x10*i), h.bridge(fmt.Sprintf("0000:%02x:00.0", 0x12+0x10*i), up, "1000:c030", 0, gen5), "10de:2330", 90, 0, gen5, toSwitches(18)...)
		h.hca(fmt.Sprintf("mlx5_%d", i), fmt.Sprintf("0000:%02x:00.0", 0x15+0x10*i), h.bridge(fmt.Sprintf("0000:%02x:01.0", 0x12+0x10*i), up, "1000:c030", 0, gen5), "15b3:1021", 0, gen5, 400)
	}
	return h
}

// storage adds an HCA of another model on a root port of its own.
func (h *host) storage(name string) *host {
	h.hca(name, "0000:f1:00.0", h.bridge("0000:f0:01.0", "", "8086:352a", 0, gen5), "15b3:101b", 0, gen4, 200)
	return h
}

func TestEnvIBHCAPrefix(t *testing.T) {
	testEnv(t, "env-ib-hca-prefix", []envCase{
		{name: "prefix", text: "NCCL_IB_HCA=mlx5_1\n", host: rails(12), want: []string{"warning sure env:NCCL_IB_HCA hca:mlx5_10 hca:mlx5_11"}, says: []string{"NCCL_IB_HCA==mlx5_1"}},
		{name: "excluded prefix", text: "NCCL_IB_HCA=^mlx5_1\n", host: rails(12), want: []string{"warning sure env:NCCL_IB_HCA hca:mlx5_10 hca:mlx5_11"}, says: []string{"leaves out", "NCCL_IB_HCA=^=mlx5_1"}},
		{name: "with a port", text: "NCCL_IB_HCA=mlx5_1:1\n", host: rails(11), want: []string{"warning sure env:NCCL_IB_HCA hca:mlx5_10"}},
		{name: "exact", text: "NCCL_IB_HCA==mlx5_1\n", host: rails(12)},
		{name: "ten HCAs", text: "NCCL_IB_HCA=mlx5_1\n", host: rails(10)},
		{name: "all named", text: "NCCL_IB_HCA=mlx5_1,mlx5_10,mlx5_11\n", host: rails(12)},
		{name: "no whole name", text: "NCCL_IB_HCA=mlx5\n", host: rails(12)},
		{name: "host not known", text: "NCCL_IB_HCA=mlx5_1\n", gap: noHardware},
	})
}

func TestEnvIBHCASubset(t *testing.T) {
	testEnv(t, "env-ib-hca-subset", []envCase{
		{name: "one of four", text: "NCCL_IB_HCA=mlx5_0\n", host: rails(4), want: []string{"critical sure env:NCCL_IB_HCA hca:mlx5_1 hca:mlx5_2 hca:mlx5_3"}, says: []string{"from 1600 Gb/s to 400 Gb/s"}},
		{name: "half", text: "NCCL_IB_HCA=mlx5_0,mlx5_1\n", host: rails(4), want: []string{"critical sure env:NCCL_IB_HCA hca:mlx5_2 hca:mlx5_3"}},
		{name: "three of four", text: "NCCL_IB_HCA=^mlx5_3\n", host: rails(4), want: []string{"warning sure env:NCCL_IB_HCA hca:mlx5_3"}},
		{name: "all", text: "NCCL_IB_HCA=mlx5\n", host: rails(4)},
		{name: "storage left out", text: "NCCL_IB_HCA=mlx5\n", host: rails(4).storage("stor0")},
		{name: "storage excluded", text: "NCCL_IB_HCA=^=stor0\n", host: rails(4).storage("stor0")},
		{name: "left out is down", text: "NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2\n", host: rails(4).with(func(h *host) { h.down(3, "DOWN", "Polling") })},
		{name: "each rank its own", log: "NCCL_IB_HCA=mlx5_0 NCCL_IB_HCA=mlx5_1 NCCL_IB_HCA=mlx5_2 NCCL_IB_HCA=mlx5_3", host: rails(4)},
		{name: "ports not known", text: "NCCL_IB_HCA=mlx5_0\n", host: rails(4).with(func(h *host) {
			for i := range h.inv.HCAs {
				h.inv.HCAs[i].Ports = nil
			}
		}), gap: "which HCAs carry data is not known"},
		{name: "no HCA", text: "NCCL_IB_HCA=mlx5_0\n", host: nets("lo", "+eth0")},
	})
}

func TestEnvIBHCAMissing(t *testing.T) {
	subnet := func(odd ...int) func(*host) {
		return func(h *host) {
			for i := range h.inv.HCAs {
				gid := "fe80:0000:0000:0000:0000:0000:0000:0001"
				for _, o := range odd {
					if o == i {
						gid = "fec0:0000:0000:0001:0000:0000:0000:0001"
					}
				}
				h.inv.HCAs[i].Ports[0].GIDs = []probe.GID{{Index: 0, GID: gid}}
			}
		}
	}
	testEnv(t, "env-ib-hca-missing", []envCase{
		{name: "all there", text: "NCCL_IB_HCA=mlx5_0,mlx5_1\n", host: rails(4)},
		{name: "one is not", text: "NCCL_IB_HCA=mlx5_0,mlx5_9\n", host: rails(4), want: []string{"warning sure env:NCCL_IB_HCA"}, says: []string{"mlx5_9 does not exist", "the host has mlx5_0, mlx5_1"}},
		{name: "none is", text: "NCCL_IB_HCA=ib0\n", host: rails(4), want: []string{"critical sure env:NCCL_IB_HCA"}, says: []string{"no HCA is left"}},
		{name: "exact", text: "NCCL_IB_HCA==mlx5\n", host: rails(4), want: []string{"critical sure env:NCCL_IB_HCA"}},
		{name: "excluded and absent", text: "NCCL_IB_HCA=^mlx5_9\n", host: rails(4)},
		{name: "all excluded", text: "NCCL_IB_HCA=^mlx5\n", host: rails(4), want: []string{"critical sure env:NCCL_IB_HCA"}},
		{name: "port down", text: "NCCL_IB_HCA=mlx5_0,mlx5_2\n", host: rails(4).with(func(h *host) { h.down(2, "DOWN", "Polling") }),
			want: []string{"warning sure env:NCCL_IB_HCA hca:mlx5_2"}, says: []string{"mlx5_2 has no ACTIVE port"}},
		{name: "port not there", text: "NCCL_IB_HCA=mlx5_0,mlx5_1:2\n", host: rails(4), want: []string{"warning sure env:NCCL_IB_HCA hca:mlx5_1"}, says: []string{"port 2 of mlx5_1"}},
		{name: "another subnet", text: "NCCL_IB_HCA=mlx5\n", host: rails(4).with(subnet(3)), want: []string{"warning likely env:NCCL_IB_HCA hca:mlx5_3"}, says: []string{"fec0:0000:0000:0001"}},
		{name: "another subnet is not chosen", text: "NCCL_IB_HCA=^mlx5_3\n", host: rails(4).with(subnet(3))},
		{name: "two subnets", text: "NCCL_IB_HCA=mlx5\n", host: rails(4).with(subnet(2, 3))},
	})
}

// A list may cover the names of several hosts.
func TestEnvIBHCAOfSeveralHosts(t *testing.T) {
	c := set(2, map[int]func(*host){2: func(h *host) {
		for i := range h.inv.HCAs {
			h.inv.HCAs[i].Name = fmt.Sprintf("rdma%d", i)
		}
	}})
	for text, want := range map[string]int{"NCCL_IB_HCA=mlx5,rdma\n": 0, "NCCL_IB_HCA=mlx5\n": 1, "NCCL_IB_HCA=mlx5,rdma,ib9\n": 2} {
		c.Env = settingsOf(t, text, "")
		res, err := RunCluster(c, []Rule{envIBHCAMissing})
		if err != nil {
			t.Fatal(err)
		}
		complete(t, res)
		if len(res.Findings) != want {
			t.Errorf("%s: %q", text, brief(res))
		}
	}
}
