package check

import "testing"

func TestVerbsMissing(t *testing.T) {
	testLog(t, "verbs-missing", []logCase{
		{name: "adapter named", log: []string{"a0!ibvwrap.cc:1 Call to ibv_open_device failed", "a0!net_ib.cc:1 NET/IB : Unable to open device mlx5_0"}, want: []string{"critical sure hca:mlx5_0 host:a"}, says: []string{"--device=/dev/infiniband"}},
		{name: "no library, adapters known", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Failed to open libibverbs.so[.1]"}), hosts: []*host{h100x8().named("a").with(noGPUs)}, want: []string{"critical sure host:a"}},
		{name: "no library on one host", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 Failed to open libibverbs.so[.1]"})},
		{name: "no library, adapters not known", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Failed to open libibverbs.so[.1]"}), gap: "whether the host has RDMA adapters"},
	})
}
