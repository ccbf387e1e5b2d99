package check

import "testing"

func TestHCALinkLayerMixed(t *testing.T) {
	testLog(t, "hca-link-layer-mixed", []logCase{
		{name: "one RoCE port among InfiniBand", log: []string{"a0 NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/RoCE [2]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"}, want: []string{"warning sure hca:mlx5_2"}, says: []string{"NCCL_IB_HCA=^=mlx5_2"}},
		{name: "a queue pair failed", log: []string{"a0 NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/RoCE [2]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>", "a0!ibvwrap.cc:1 Call to ibv_modify_qp failed with error Invalid argument"},
			want: []string{"critical sure hca:mlx5_2"}},
		{name: "one InfiniBand port among RoCE", log: []string{"a0 NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_2:1/RoCE [2]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"}, want: []string{"warning sure hca:mlx5_1"}},
		{name: "one kind", log: []string{"a0 NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"}},
		{name: "kinds by host", log: []string{"a0 NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>", "b0 NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.2<0>"}},
		{name: "ACTIVE ports of a host", hosts: []*host{h100x8().with(ethernet)}, want: []string{"warning sure hca:mlx5_7"}, says: []string{"port 1 of mlx5_7 is ACTIVE, Ethernet"}},
		{name: "the log shows what NCCL_IB_HCA left", log: []string{"a0 NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>"}, hosts: []*host{h100x8().with(ethernet).named("a")}},
		{name: "the Ethernet port is down", hosts: []*host{h100x8().with(ethernet).with(func(h *host) { h.down(7, "DOWN", "Disabled") })}},
	})
}

func ethernet(h *host) { h.inv.HCAs[7].Ports[0].LinkLayer = "Ethernet" }
