package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvConflict(t *testing.T) {
	testEnv(t, "env-conflict", []envCase{
		{name: "InfiniBand off with settings", text: "NCCL_IB_DISABLE=1\nNCCL_IB_HCA=mlx5_0\nNCCL_IB_TIMEOUT=22\n",
			want: []string{"warning sure env:NCCL_IB_HCA env:NCCL_IB_TIMEOUT env:NCCL_IB_DISABLE"}, says: []string{"NCCL_IB_DISABLE wins"}},
		{name: "sockets with settings", text: "NCCL_NET=socket\nNCCL_IB_HCA=mlx5_0\n", want: []string{"warning sure env:NCCL_IB_HCA env:NCCL_NET"}},
		{name: "InfiniBand on", text: "NCCL_IB_DISABLE=0\nNCCL_NET=IB\nNCCL_IB_HCA=mlx5_0\n"},
		{name: "only InfiniBand off", text: "NCCL_IB_DISABLE=1\nNCCL_SOCKET_IFNAME=eth0\n"},
		{name: "nothing left", text: "NCCL_NVLS_ENABLE=0\nNCCL_ALGO=NVLS,NVLSTree\n", want: []string{"critical sure env:NCCL_ALGO env:NCCL_NVLS_ENABLE"}},
		{name: "Ring is left", text: "NCCL_NVLS_ENABLE=0\nNCCL_ALGO=NVLS,Ring\n"},
		{name: "channels", text: "NCCL_MIN_NCHANNELS=32\nNCCL_MAX_NCHANNELS=8\n", want: []string{"warning sure env:NCCL_MIN_NCHANNELS env:NCCL_MAX_NCHANNELS"}},
		{name: "CTAs in a log", log: "NCCL_MIN_CTAS=32 NCCL_MAX_CTAS=8", want: []string{"warning sure env:NCCL_MIN_CTAS env:NCCL_MAX_CTAS"}},
		{name: "channels in order", text: "NCCL_MIN_NCHANNELS=8\nNCCL_MAX_NCHANNELS=8\n"},
		{name: "P2P off with a level", text: "NCCL_P2P_DISABLE=1\nNCCL_P2P_LEVEL=NVL\n", want: []string{"warning sure env:NCCL_P2P_LEVEL env:NCCL_P2P_DISABLE"}},
		{name: "GID by index and range", text: "NCCL_IB_GID_INDEX=3\nNCCL_IB_ADDR_RANGE=10.0.0.0/8\n", want: []string{"warning sure env:NCCL_IB_ADDR_RANGE env:NCCL_IB_GID_INDEX"}},
		{name: "GID by range", text: "NCCL_IB_GID_INDEX=-1\nNCCL_IB_ADDR_RANGE=10.0.0.0/8\n"},
		{name: "twice", text: "NCCL_ALGO=Ring\nNCCL_DEBUG=WARN\nNCCL_ALGO=Tree\n", want: []string{"warning sure env:NCCL_ALGO file:job.env"}, says: []string{"the later line wins, line 3"}},
		{name: "twice in nccl.conf", text: "nccl.conf:\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\n", want: []string{"warning sure env:NCCL_ALGO file:nccl.conf"}, says: []string{"first line of nccl.conf, line 1"}},
		{name: "equal repeats", text: "NCCL_ALGO=Ring\nNCCL_ALGO=Ring\n"},
		{name: "branches and commands", text: "if x; then export NCCL_ALGO=Ring; else export NCCL_ALGO=Tree; fi\nNCCL_NET=IB ./a\nNCCL_NET=Socket ./a\n"},
		{name: "in different files", text: "NCCL_IB_DISABLE=1\n", log: "NCCL_IB_HCA=mlx5_0"},
		{name: "plugin", log: "NCCL_IB_DISABLE=1", want: []string{"warning sure env:NCCL_IB_DISABLE"}, says: []string{"AWS Libfabric"}, job: func(j *probe.Job) {
			j.Networks = []probe.Network{{Name: "AWS Libfabric", State: probe.NetUsed, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:9"}}}}
		}},
	})
}
