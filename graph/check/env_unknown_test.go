package check

import "testing"

func TestEnvUnknown(t *testing.T) {
	testEnv(t, "env-unknown", []envCase{
		{name: "first letter lost", text: "CCL_NET_GDR_LEVEL=PHB\nNCCL_DEBUG=WARN\n", want: []string{"warning sure env:CCL_NET_GDR_LEVEL"}, says: []string{"write NCCL_NET_GDR_LEVEL"}},
		{name: "transposed", text: "export NCCL_IB_HAC=mlx5_0\n", want: []string{"warning sure env:NCCL_IB_HAC"}, says: []string{"write NCCL_IB_HCA"}},
		{name: "nothing near", text: "NCCL_TURBO=1\n", want: []string{"warning sure env:NCCL_TURBO"}, says: []string{"delete it, or look"}},
		{name: "old PyTorch names", text: "NCCL_BLOCKING_WAIT=1\nNCCL_ASYNC_ERROR_HANDLING=1\n",
			want: []string{"info sure env:NCCL_ASYNC_ERROR_HANDLING", "info sure env:NCCL_BLOCKING_WAIT"}, says: []string{"write TORCH_NCCL_BLOCKING_WAIT"}},
		{name: "of others", text: "NCCL_VERSION=2.28.3\nNCCL_HOME=/usr\nNCCL_FASTRAK_IFNAME=eth1\nNCCL_TUNER_CONFIG_PATH=/x\nTORCH_NCCL_BLOCKING_WAIT=1\nNCCL_TESTS_DEVICE=0\nNCCL_IBEXT_DISABLE=1\nNCCL_DEBUG=WARN\n"},
		{name: "NCCL printed it", log: "NCCL_FUTURE=1"},
		{name: "only in a branch", text: "export NCCL_DEBUG=WARN\nif x; then export NCCL_TURBO=1; fi\n", want: []string{"warning possible env:NCCL_TURBO"}},
	})
}
