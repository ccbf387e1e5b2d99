package check

import "testing"

func TestEnvDiffers(t *testing.T) {
	testLog(t, "env-differs", []logCase{
		{name: "by rank of one host", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 NCCL_IB_HCA set to mlx5_0", "a1 NCCL_IB_HCA set to mlx5_1"}), want: []string{"critical sure env:NCCL_IB_HCA rank:1"}, says: []string{"mlx5_0 on rank 0, mlx5_1 on rank 1"}},
		{name: "must match", log: lines(comm("abc", 1, "COMPLETE"), []string{"a0 NCCL_ALGO set by environment to Ring", "b0 NCCL_ALGO set by environment to Tree", "c0 NCCL_ALGO set by environment to Ring"}),
			want: []string{"critical sure env:NCCL_ALGO rank:1"}, says: []string{"Ring on rank 0, 2, Tree on rank 1"}},
		{name: "adapters by host, equally many", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_IB_HCA set to mlx5_0", "b0 NCCL_IB_HCA set to ibp1s0", "a0 NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "b0 NET/IB : Using [0]ibp1s0:1/IB [RO]; OOB eth0:10.0.0.2<0>"})},
		{name: "adapters by host, not equally many", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_IB_HCA set to mlx5_0", "b0 NCCL_IB_HCA set to mlx5", "a0 NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
			"b0 NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.2<0>"}), want: []string{"critical sure env:NCCL_IB_HCA rank:1"}},
		{name: "printed by one rank", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_ALGO set by environment to Ring"})},
		{name: "a host's own", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_SOCKET_IFNAME set by environment to eth0", "b0 NCCL_SOCKET_IFNAME set by environment to ens1", "a0 NCCL_IB_GID_INDEX set by environment to 3.", "b0 NCCL_IB_GID_INDEX set by environment to 5."})},
		{name: "two jobs", log: []string{"a0 comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE", "a0 NCCL_ALGO set by environment to Ring",
			"b0 comm 0x2 rank 0 nranks 1 cudaDev 0 busId 1000 commId 0x2 - Init COMPLETE", "b0 NCCL_ALGO set by environment to Tree"}},
	})
}
