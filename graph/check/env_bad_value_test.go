package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvBadValue(t *testing.T) {
	testEnv(t, "env-bad-value", []envCase{
		{name: "word", text: "NCCL_DEBUG=DEBUG\n", want: []string{"warning sure env:NCCL_DEBUG"}},
		{name: "text for a number", text: "NCCL_P2P_DISABLE=true\n", want: []string{"warning sure env:NCCL_P2P_DISABLE"}, says: []string{"NCCL takes 0", "NCCL_P2P_DISABLE=1"}},
		{name: "suffix", text: "NCCL_BUFFSIZE=8M\n", want: []string{"warning sure env:NCCL_BUFFSIZE"}, says: []string{"NCCL_BUFFSIZE=8388608"}},
		{name: "lower-case level", text: "NCCL_P2P_LEVEL=nvl\n", want: []string{"warning sure env:NCCL_P2P_LEVEL"}, says: []string{"NCCL_P2P_LEVEL=NVL"}},
		{name: "marks inside the list", text: "NCCL_IB_HCA=^=mlx5_8,^=mlx5_14\n", want: []string{"warning sure env:NCCL_IB_HCA"}, says: []string{"NCCL_IB_HCA=^=mlx5_8,mlx5_14"}},
		{name: "fails", text: "NCCL_ALGO=Fast\n", nccl: "2.28.3", want: []string{"critical sure env:NCCL_ALGO"}, says: []string{"refuses to start"}},
		{name: "skipped before 2.24", text: "NCCL_ALGO=Fast,Ring\n", nccl: "2.18.3", want: []string{"warning sure env:NCCL_ALGO"}},
		{name: "case does not matter", text: "NCCL_ALGO=ring\nNCCL_NET=ib\nNCCL_DEBUG=info\nNCCL_PROTO=^ll128\nNCCL_SOCKET_NTHREADS=\n"},
		{name: "good values", text: "NCCL_IB_HCA==mlx5_0\nNCCL_IB_TIMEOUT=22\nNCCL_CROSS_NIC=2\nNCCL_P2P_LEVEL=NVL\n"},
		{name: "a reference", text: "export NCCL_P2P_LEVEL=$LEVEL\nexport NCCL_DEBUG=$D\nexport NCCL_DEBUG=WARN\n", gap: "only known when the file is read"},
		{name: "one character is of env-socket-ifname", text: "NCCL_SOCKET_IFNAME=e\n"},
	})
}

func TestEnvRefused(t *testing.T) {
	c := envCase{name: "refused", log: "NCCL_MAX_NCHANNELS=99999999999999999999", want: []string{"warning sure env:NCCL_MAX_NCHANNELS"}, says: []string{"took its default"}}
	c.job = func(j *probe.Job) { j.Env[0].How = probe.EnvInvalid }
	testEnv(t, "env-bad-value", []envCase{c})
}
