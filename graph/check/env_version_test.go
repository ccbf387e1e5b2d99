package check

import "testing"

func TestEnvVersion(t *testing.T) {
	testEnv(t, "env-version", []envCase{
		{name: "removed", text: "NCCL_IB_CUDA_SUPPORT=1\n", nccl: "2.28.3", want: []string{"warning sure env:NCCL_IB_CUDA_SUPPORT"}, says: []string{"versions before 2.4", "NCCL_NET_GDR_LEVEL"}},
		{name: "removed, version not known", text: "NCCL_LL_THRESHOLD=0\n", want: []string{"info likely env:NCCL_LL_THRESHOLD"}, says: []string{"the newest is assumed"}},
		{name: "too new", text: "NCCL_MNNVL_ENABLE=1\n", nccl: "2.18.3", want: []string{"warning sure env:NCCL_MNNVL_ENABLE"}, says: []string{"2.21.5 and later"}},
		{name: "read", text: "NCCL_MNNVL=1\n", nccl: "2.20.5"},
		{name: "current, version not known", text: "NCCL_NVLS_ENABLE=2\nNCCL_TURBO=1\n"},
		{name: "no patch level", text: "NCCL_NVLS_ENABLE=2\n", nccl: "2.17"},
		{name: "no patch level that decides", text: "NCCL_MNNVL=1\n", nccl: "2.21", gap: "whether NCCL 2.21 reads"},
		{name: "newer than the table", text: "NCCL_NVLS_ENABLE=2\n", nccl: "2.99.1"},
		{name: "removed before a newer one", text: "NCCL_RINGS=1\n", nccl: "2.99.1", gap: "whether NCCL 2.99.1 reads"},
		{name: "NCCL read it", log: "NCCL_IB_CUDA_SUPPORT=1", nccl: "2.28.3"},
	})
}
