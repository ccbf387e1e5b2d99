package check

import "testing"

func TestLogGDROff(t *testing.T) {
	testLog(t, "log-gdr-off", []logCase{
		{name: "none with GDRDMA", log: lines(comm("ab", 1, "COMPLETE"), ibPair("", ""), []string{"a0 NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"}), want: []string{"critical sure host:a host:b"},
			says: []string{"modprobe nvidia-peermem", "GPU Direct RDMA Disabled for HCA 0", "[send] via NET/IB/0, no GDRDMA"}},
		{name: "with it", log: lines(comm("ab", 1, "COMPLETE"), ibPair("/GDRDMA", "/GDRDMA"))},
		{name: "at one end: another rule", log: lines(comm("ab", 1, "COMPLETE"), ibPair("/GDRDMA", ""))},
		{name: "switched off", log: lines(comm("ab", 1, "COMPLETE"), ibPair("", ""), []string{"a0 NCCL_NET_GDR_LEVEL set by environment to LOC", "b0 NCCL_NET_GDR_LEVEL set by environment to 0"})},
		{name: "by distance: another rule", log: lines(comm("ab", 1, "COMPLETE"), ibPair("", ""), []string{"a0 GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 6 > 4)", "b0 GPU Direct RDMA Disabled for GPU 1b000 / HCA 0 (distance 6 > 4)"})},
		{name: "connections not printed", log: comm("ab", 1, "COMPLETE")},
		{name: "one host", log: lines(comm("a", 2, "COMPLETE"), netPair("IB"))},
		{name: "sockets", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"})},
		{name: "GeForce has none", log: lines(comm("ab", 1, "COMPLETE"), ibPair("", "")), hosts: []*host{nvlinkPair("NVIDIA GeForce RTX 3090"), nvlinkPair("NVIDIA GeForce RTX 3090").named("b")}},
	})
}

// ibPair is ranks 0 on host a and 1 on host b, with what stands behind their ends.
func ibPair(a, b string) []string {
	return []string{
		"a0 Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0" + a, "b0 Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0" + b,
		"b0 Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0" + b, "a0 Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0" + a,
	}
}
