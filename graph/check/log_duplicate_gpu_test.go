package check

import "testing"

func TestLogDuplicateGPU(t *testing.T) {
	testLog(t, "log-duplicate-gpu", []logCase{
		{name: "up to 2.29", log: []string{"a0!init.cc:1 Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"}, want: []string{"critical sure gpu:0000:1b:00.0 rank:0 rank:1"}, says: []string{"MIG"}},
		{name: "2.30", log: []string{"a0!init.cc:1 Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1"}, want: []string{"critical sure host:a"}},
		{name: "allowed", log: []string{"a0 NCCL_MULTI_RANK_GPU_ENABLE set by environment to 1.", "a0!init.cc:1 Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"}},
		{name: "healthy", log: comm("a", 2, "COMPLETE")},
	})
}
