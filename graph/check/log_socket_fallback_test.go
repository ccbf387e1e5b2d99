package check

import "testing"

func TestLogSocketFallback(t *testing.T) {
	testLog(t, "log-socket-fallback", []logCase{
		{name: "adapter that cannot be opened", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Using network Socket", "b0 Using network Socket",
			"a0!net_ib.cc:1 NET/IB : Unable to open device mlx5_0", "b0!net_ib.cc:1 NET/IB : Unable to open device mlx5_0"}),
			want: []string{"critical sure host:a host:b"}, says: []string{"although RDMA is there or was tried", "Unable to open device mlx5_0"}},
		{name: "one host of the two", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Using network IB", "b0 Using network Socket", "b0 NCCL_IB_HCA set to mlx5_0"}),
			want: []string{"critical sure host:b"}, says: []string{"NCCL_IB_HCA=mlx5_0"}},
		{name: "the plugin falls back to tcp", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)", "a0 Using network AWS Libfabric",
			"b0 NET/OFI Selected Provider is efa (found 4 nics)", "b0 Using network AWS Libfabric"}), want: []string{"critical sure host:a"}},
		{name: "no device found", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/IB : No device found.", "b0 NET/IB : No device found.", "a0 Using network Socket", "b0 Using network Socket"}),
			want: []string{"info possible host:a host:b"}},
		{name: "another source shows an ACTIVE port", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Using network Socket", "b0 Using network IB"}),
			hosts: []*host{h100x8().named("a").with(noGPUs)}, want: []string{"critical sure host:a"}, says: []string{"port 1 of mlx5_0 is ACTIVE"}},
		{name: "nothing tells of adapters", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Using network Socket", "b0 Using network Socket"}), gap: "whether the hosts have RDMA adapters"},
		{name: "old log: the connections say it", log: []string{"a0 Channel 00 : 1[2000] -> 0[1000] [receive] via NET/Socket/0", "b0 Channel 00 : 1[2000] -> 0[1000] [send] via NET/Socket/0",
			"a0!net_ib.cc:1 NET/IB : Unable to open device mlx5_0"}, want: []string{"critical sure host:a"}, gap: "whether the hosts have RDMA adapters"},
		{name: "one host", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 Using network Socket", "a0 NCCL_IB_HCA set to mlx5_0"})},
		{name: "asked for", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_NET set by environment to socket", "b0 NCCL_IB_DISABLE set by environment to 1.", "a0 Using network Socket", "b0 Using network Socket",
			"a0 NCCL_IB_HCA set to mlx5_0", "b0 NCCL_IB_HCA set to mlx5_0"})},
		{name: "IB_DISABLE=0 asks for nothing", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_IB_DISABLE set by environment to 0.", "a0 Using network Socket", "b0 Using network IB", "a0 NCCL_IB_HCA set to mlx5_0"}),
			want: []string{"critical sure host:a"}},
		{name: "Google's TCP plugin", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Using network FastSocket", "b0 Using network FastSocket"})},
	})
}
