package check

import "testing"

func TestLogPluginMissing(t *testing.T) {
	testLog(t, "log-plugin-missing", []logCase{
		{name: "NCCL_NET names one", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Plugin: Could not find: libnccl-net.so.", "a0 NCCL_NET set by environment to AWS Libfabric", "b0 Using network AWS Libfabric"}),
			want: []string{"critical sure host:a"}, says: []string{"NCCL_NET=AWS Libfabric", "LD_LIBRARY_PATH"}},
		{name: "Google's plugin is set up", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Plugin : No plugin found (libnccl-net.so), using internal implementation", "a0 NCCL_FASTRAK_IFNAME set by environment to eth1"}),
			want: []string{"critical sure host:a"}},
		{name: "EFA on the bus", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Plugin: Could not find: libnccl-net.so."}),
			hosts: []*host{(&host{}).named("a").with(func(h *host) { h.numa(1); h.pci("0000:10:00.0", "", "1d0f:efa1", 0x020000, 0, gen4) })},
			want:  []string{"critical sure host:a"}, says: []string{"0000:10:00.0 is an EFA adapter"}},
		{name: "built-in IB", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Plugin: Could not find: libnccl-net.so.", "a0 Using network IB"})},
		{name: "NCCL_NET=IB is built in", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Plugin: Could not find: libnccl-net.so.", "a0 NCCL_NET set by environment to IB"})},
		{name: "the plugin was found another way", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NET/Plugin: Could not find: libnccl-net-x.so.", "a0 NCCL_NET set by environment to AWS Libfabric", "a0 Using network AWS Libfabric"})},
		{name: "one host", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 NET/Plugin: Could not find: libnccl-net.so.", "a0 NCCL_NET set by environment to AWS Libfabric"})},
		{name: "how far the job reaches is not known", log: []string{"a0 NET/Plugin: Could not find: libnccl-net.so.", "a0 NCCL_NET set by environment to AWS Libfabric"}, gap: "whether the job spans hosts"},
		{name: "collnet and tuner symbols", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_NET set by environment to AWS Libfabric", "a0 NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.", "a0 TUNER/Plugin: Could not find: libnccl-tuner.so."})},
	})
}
