package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNCCLCUDAMismatch(t *testing.T) {
	testLog(t, "nccl-cuda-mismatch", []logCase{
		{name: "CUDA 13 on a driver for 12", log: []string{"a0 cudaDriverVersion 12040", "a0 NCCL version 2.28.3+cuda13.0"}, want: []string{"critical sure host:a"}, says: []string{"built with CUDA 13.0", "the driver offers CUDA 12", "580"}},
		{name: "newer minor", log: []string{"a0 cudaDriverVersion 12020", "a0 NCCL version 2.27.3+cuda12.9"}},
		{name: "older major", log: []string{"a0 cudaDriverVersion 13010", "a0 NCCL version 2.23.4+cuda12.6"}},
		{name: "the driver from another source", log: []string{"a0 NCCL version 2.28.3+cuda13.0"}, hosts: []*host{h100x8().named("a").with(func(h *host) {
			h.inv.Runtime = probe.Runtime{Driver: "570.86.10", Origins: []probe.Origin{{Source: probe.SourceNVML, Where: "system"}}}
		})}, want: []string{"critical sure host:a"}, says: []string{"driver 570.86.10"}},
		{name: "driver not known", log: []string{"a0 NCCL version 2.28.3+cuda13.0"}},
	})
}
