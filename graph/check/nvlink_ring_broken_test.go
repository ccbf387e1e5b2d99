package check

import "testing"

func TestNVLinkRingBroken(t *testing.T) {
	all := "gpu:0 gpu:1 gpu:2 gpu:3"
	testRule(t, "nvlink-ring-broken", []ruleCase{
		{name: "healthy", host: h100x8()},
		{name: "part of a cube mesh", host: matrix(4, nil, "X NV2 SYS NV2", "- X SYS SYS", "- - X NV1", "- - - X"),
			want: []string{"warning sure " + all}, says: []string{"NCCL goes over PCIe for the gap", "CUDA_VISIBLE_DEVICES"}},
		{name: "one relay closes it", host: matrix(3, nil, "X NV2 NV2", "- X SYS", "- - X"), want: []string{"info sure gpu:0 gpu:1 gpu:2"}},
		{name: "one relay, NCCL 2.8", host: matrix(3, nil, "X NV2 NV2", "- X SYS", "- - X").with(func(h *host) { h.inv.Runtime.NCCL = "2.8.3" }), want: []string{"warning sure gpu:0 gpu:1 gpu:2"}},
		{name: "quad of a cube mesh", host: matrix(4, nil, "X NV1 NV1 NV2", "- X NV2 NV1", "- - X NV2", "- - - X")},
		{name: "a square", host: matrix(4, nil, "X NV1 SYS NV1", "- X NV1 SYS", "- - X NV1", "- - - X")},
		{name: "pairs", host: matrix(4, nil, "X NV4 SYS SYS", "- X SYS SYS", "- - X NV4", "- - - X")},
		{name: "two islands", host: matrix(6, nil, "X NV1 NV1 SYS SYS SYS", "- X NV1 SYS SYS SYS", "- - X SYS SYS SYS", "- - - X NV1 NV1", "- - - - X NV1", "- - - - - X")},
		{name: "NVSwitch", host: matrix(4, nil, "X NV18 NV18 NV18", "- X NV18 NV18", "- - X NV18", "- - - X")},
		{name: "no NVLink", host: matrix(3, nil, "X SYS SYS", "- X SYS", "- - X")},
	})
}
