package check

import "testing"

func TestLogDMABUFFailed(t *testing.T) {
	testLog(t, "log-dmabuf-failed", []logCase{
		{name: "init stops", log: lines(comm("a", 2, "START"), []string{"a0!ibvwrap.cc:1 Call to ibv_reg_dmabuf_mr failed with error Operation not supported"}), want: []string{"critical sure host:a"}, says: []string{"NCCL_DMABUF_ENABLE=0"}},
		{name: "a probe with a fallback", log: lines(comm("a", 2, "COMPLETE"), []string{"a0!ibvwrap.cc:1 Call to ibv_reg_dmabuf_mr failed with error Operation not supported"})},
		{name: "healthy", log: comm("a", 2, "COMPLETE")},
	})
}
