package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNCCLGPUUnsupported(t *testing.T) {
	testLog(t, "nccl-gpu-unsupported", []logCase{
		{name: "Hopper", log: []string{"a0 NCCL version 2.15.5+cuda11.8"}, hosts: []*host{h100x8().named("a")}, want: []string{"critical sure host:a"}, says: []string{"NCCL 2.16 or later for Hopper"}},
		{name: "Hopper with 2.16", log: []string{"a0 NCCL version 2.16.2+cuda11.8"}, hosts: []*host{h100x8().named("a")}},
		{name: "Blackwell by its name", log: []string{"a0 NCCL version 2.25.0+cuda12.8"}, hosts: []*host{nvlinkPair("NVIDIA B200").with(func(h *host) { h.inv.GPUs[0].CC, h.inv.GPUs[1].CC = probe.Opt[int]{}, probe.Opt[int]{} })},
			want: []string{"critical sure host:a"}, says: []string{"2.25.1"}},
		{name: "Blackwell with 2.25.1", log: []string{"a0 NCCL version 2.25.1+cuda12.8"}, hosts: []*host{nvlinkPair("NVIDIA B200").with(func(h *host) { h.inv.GPUs[0].CC = probe.Some(100) })}},
		{name: "Volta with CUDA 13", log: []string{"a0 NCCL version 2.28.3+cuda13.0"}, hosts: []*host{nvlinkPair("Tesla V100-SXM2-32GB").with(func(h *host) { h.inv.GPUs[0].CC = probe.Some(70) })}, want: []string{"critical sure host:a"}, says: []string{"CUDA 12"}},
		{name: "Ampere with anything", log: []string{"a0 NCCL version 2.11.4+cuda11.4"}, hosts: []*host{nvlinkPair("NVIDIA A100-SXM4-80GB")}},
		{name: "version not known", hosts: []*host{h100x8()}},
	})
}
