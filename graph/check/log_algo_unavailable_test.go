package check

import "testing"

func TestLogAlgoUnavailable(t *testing.T) {
	testLog(t, "log-algo-unavailable", []logCase{
		{name: "with NCCL_ALGO", log: []string{"a0 NCCL_ALGO set by environment to Tree", "a0!enqueue.cc:1 No algorithm/protocol available for function Broadcast with datatype ncclFloat32. NCCL_ALGO was set to Tree."},
			want: []string{"critical sure env:NCCL_ALGO host:a"}, says: []string{"allreduce:tree"}},
		{name: "without", log: []string{"a0!enqueue.cc:1 Error : no algorithm/protocol available for function AllReduce"}, want: []string{"critical sure host:a"}},
		{name: "healthy", log: []string{"a0 NCCL_ALGO set by environment to Ring"}},
	})
}
