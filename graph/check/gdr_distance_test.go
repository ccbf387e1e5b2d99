package check

import "testing"

func TestGDRDistance(t *testing.T) {
	testLog(t, "gdr-distance", []logCase{
		{name: "too far", log: []string{"a0 NET/IB : Using [0]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>", "a0 GPU Direct RDMA Disabled for GPU a1000 / HCA 0 (distance 6 > 4)"},
			want: []string{"warning sure gpu:0000:a1:00.0 hca:mlx5_2 host:a"}, says: []string{"distance 6 > 4", "NCCL_NET_GDR_LEVEL=PHB"}},
		{name: "since 2.20", log: []string{"a0 NET/IB : Using [0]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>", "a0 GPU Direct RDMA Disabled for GPU 0-a1000 / HCA 0-0 (distance 8 > 5)"}, want: []string{"warning sure gpu:0000:a1:00.0 hca:mlx5_2 host:a"}},
		{name: "it takes log-gdr-off in", log: lines(comm("ab", 1, "COMPLETE"), ibPair("", ""), []string{"a0 GPU Direct RDMA Disabled for GPU a1000 / HCA 0 (distance 6 > 4)", "b0 GPU Direct RDMA Disabled for GPU a1000 / HCA 0 (distance 6 > 4)"}),
			want: []string{"critical sure a/gpu:0000:a1:00.0 a/hca:0 host:a", "warning sure b/gpu:0000:a1:00.0 b/hca:0 host:b"}, says: []string{"uses GPUDirect RDMA"}},
		{name: "near enough", log: []string{"a0 GPU Direct RDMA Enabled for GPU 81000 / HCA 0 (distance 4 <= 4), read 0"}},
		{name: "meant", log: []string{"a0 NCCL_NET_GDR_LEVEL set by environment to PIX", "a0 GPU Direct RDMA Disabled for GPU a1000 / HCA 0 (distance 6 > 4)"}},
	})
}
