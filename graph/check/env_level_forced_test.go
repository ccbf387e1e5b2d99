package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvLevelForced(t *testing.T) {
	cpu := func(vendor string, rows ...string) *host {
		h := matrix(len(rows), nil, rows...)
		h.inv.CPUs = []probe.CPU{{Arch: "x86_64", Vendor: vendor}}
		return h
	}
	two := []string{"X PHB", "PHB X"}
	testEnv(t, "env-level-forced", []envCase{
		{name: "SYS on Intel", text: "NCCL_P2P_LEVEL=SYS\n", host: cpu("GenuineIntel", two...), want: []string{"warning likely env:NCCL_P2P_LEVEL gpu:0 gpu:1"}},
		{name: "PHB on Intel", text: "NCCL_P2P_LEVEL=PHB\n", host: cpu("GenuineIntel", two...), want: []string{"warning likely env:NCCL_P2P_LEVEL gpu:0 gpu:1"}},
		{name: "number on Intel", text: "NCCL_P2P_LEVEL=3\n", host: cpu("GenuineIntel", two...), want: []string{"warning likely env:NCCL_P2P_LEVEL gpu:0 gpu:1"}},
		{name: "AMD with two", text: "NCCL_P2P_LEVEL=SYS\n", host: cpu("AuthenticAMD", two...)},
		{name: "AMD with three", text: "NCCL_P2P_LEVEL=SYS\n", host: cpu("AuthenticAMD", "X PHB SYS", "PHB X SYS", "SYS SYS X"), want: []string{"warning likely env:NCCL_P2P_LEVEL gpu:0 gpu:1"}},
		{name: "two GPUs of an unknown processor", text: "NCCL_P2P_LEVEL=SYS\n", host: matrix(2, nil, two...), gap: "the processor is not known"},
		{name: "NVLink joins all", text: "NCCL_P2P_LEVEL=SYS\n", host: h100x8()},
		{name: "host not known", text: "NCCL_P2P_LEVEL=SYS\n", gap: noHardware},
		{name: "up to PXB", text: "NCCL_P2P_LEVEL=PXB\nNCCL_NET_GDR_LEVEL=PXB\n", nccl: "2.28.3", host: cpu("GenuineIntel", two...)},
		{name: "NVL", text: "NCCL_P2P_LEVEL=NVL\n", host: cpu("GenuineIntel", two...)},
		{name: "number of the same meaning", text: "NCCL_P2P_LEVEL=2\n", want: []string{"info sure env:NCCL_P2P_LEVEL"}, says: []string{"reads as PXB"}},
		{name: "GDR on 2.27", text: "NCCL_NET_GDR_LEVEL=PHB\n", nccl: "2.27.3", want: []string{"warning likely env:NCCL_NET_GDR_LEVEL"}},
		{name: "GDR before", text: "NCCL_NET_GDR_LEVEL=SYS\n", nccl: "2.26.2"},
		{name: "GDR, version not known", text: "NCCL_NET_GDR_LEVEL=SYS\n", gap: "2.27 or later"},
		{name: "C2C off", text: "NCCL_NET_GDR_C2C=0\n", nccl: "2.28.3", want: []string{"warning likely env:NCCL_NET_GDR_C2C"}},
		{name: "C2C as by default", text: "NCCL_NET_GDR_C2C=1\n", nccl: "2.28.3"},
	})
}
