package check

import "testing"

func TestLogNVLSFailed(t *testing.T) {
	testLog(t, "log-nvls-failed", []logCase{
		{name: "in the transport", log: []string{"a0!transport/nvls.cc:165 Cuda failure 'invalid argument'"}, want: []string{"critical sure host:a"}, says: []string{"transport/nvls.cc:165", "NCCL_NVLS_ENABLE=0"}},
		{name: "cannot bind", log: []string{"a0!x.cc:1 Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1"}, want: []string{"critical sure host:a"}},
		{name: "CUDA 401", log: []string{"a0!x.cc:1 Cuda failure 401 'the operation cannot be performed in the present state'"}, want: []string{"critical sure host:a"}},
		{name: "off by setting", log: []string{"a0 NCCL_NVLS_ENABLE set by environment to 0.", "a0!transport/nvls.cc:165 Cuda failure 'invalid argument'"}},
		{name: "no NVLS on A100", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 NVLS multicast support is not available on dev 0", "a0 4 coll channels, 0 collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer"})},
	})
}
