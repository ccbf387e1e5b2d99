package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvChannelsCapped(t *testing.T) {
	logged := func(j *probe.Job) {
		j.Comms = []probe.Comm{{Ranks: 8, Nodes: probe.Some(1), Channels: probe.Some(24), Graphs: []probe.Graph{{Pattern: "ring", Channels: 12, BWIntra: 30,
			Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:7"}}}}}}
	}
	testEnv(t, "env-channels-capped", []envCase{
		{name: "too few", text: "NCCL_MAX_NCHANNELS=4\n", host: h100x8(), job: nodes(1), want: []string{"warning likely env:NCCL_MAX_NCHANNELS"}, says: []string{"12 channels of 30 GB/s", "at most 120 of 360 GB/s"}},
		{name: "a log shows the search", text: "NCCL_MAX_CTAS=8\n", host: h100x8(), job: logged, want: []string{"warning likely env:NCCL_MAX_CTAS"}, says: []string{"at most 240 of 360 GB/s"}},
		{name: "fewer than HCAs", text: "NCCL_MAX_CTAS=4\n", host: h100x8(), want: []string{"warning likely env:NCCL_MAX_CTAS hca:mlx5_0 hca:mlx5_1 hca:mlx5_2 hca:mlx5_3 hca:mlx5_4 hca:mlx5_5 hca:mlx5_6 hca:mlx5_7"}},
		{name: "enough", text: "NCCL_MAX_NCHANNELS=16\nNCCL_MAX_CTAS=32\n", host: h100x8()},
		{name: "threads", text: "NCCL_NTHREADS=128\n", host: h100x8(), job: logged, want: []string{"warning likely env:NCCL_NTHREADS"}, says: []string{"128 of 512 threads"}},
		{name: "threads enough", text: "NCCL_NTHREADS=256\n", host: h100x8(), job: logged},
		{name: "buffer", text: "NCCL_BUFFSIZE=524288\n", want: []string{"warning sure env:NCCL_BUFFSIZE"}},
		{name: "buffers of the default and more", text: "NCCL_BUFFSIZE=4194304\n"},
		{name: "host not known", text: "NCCL_MAX_CTAS=4\n", gap: noHardware},
		{name: "paths not known", text: "NCCL_MAX_CTAS=4\n", host: h100x8().sysfsOnly(), job: nodes(1), gap: "the paths between GPUs are not known"},
	})
}
