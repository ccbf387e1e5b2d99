package check

import (
	"fmt"
	"testing"
)

func TestEnvDisablesTransportInLogs(t *testing.T) {
	testLog(t, "env-disables-transport", []logCase{
		{name: "P2P off with NVLink", log: lines(comm("a", 2, "COMPLETE"), switchTree(2, 240), []string{"a0 NCCL_P2P_DISABLE set by environment to 1."}), want: []string{"warning sure env:NCCL_P2P_DISABLE"}, says: []string{"NVS/0-0 at NVL[240.0]"}},
		{name: "P2P off behind one switch", log: lines(comm("a", 2, "COMPLETE"), shmPair("PIX"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1."}), want: []string{"warning sure env:NCCL_P2P_DISABLE"}},
		{name: "P2P off across the host bridge", log: lines(comm("a", 2, "COMPLETE"), shmPair("PHB"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1."})},
		{name: "P2P off, path not known", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1."}), gap: "NCCL_P2P_DISABLE=1 is set"},
		{name: "=0 is harmless", log: lines(comm("a", 2, "COMPLETE"), switchTree(2, 240), []string{"a0 NCCL_P2P_DISABLE set by environment to 0.", "a0 NCCL_IB_DISABLE set by environment to 0."})},
		{name: "NVLS off on H100", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_NVLS_ENABLE set by environment to 0."}), want: []string{"warning sure env:NCCL_NVLS_ENABLE"}, says: []string{"4 GPUs, each with NVL[370.8] to NVS/0-0"}},
		{name: "NVLS off while it fails", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_NVLS_ENABLE set by environment to 0.", "b0!transport/nvls.cc:1 Cuda failure 'invalid argument'"})},
		{name: "NVLS off with two GPUs", log: lines(comm("a", 2, "COMPLETE"), switchTree(2, 370.8), []string{"a0 NCCL_NVLS_ENABLE set by environment to 0."})},
		{name: "NVLS off on A100", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 240), []string{"a0 NCCL_NVLS_ENABLE set by environment to 0."})},
		{name: "NVLS off, machine from another source", log: []string{"a0 NCCL_NVLS_ENABLE set by environment to 0."}, hosts: []*host{h100x8().named("a")}, want: []string{"warning sure env:NCCL_NVLS_ENABLE"}},
		{name: "cuMem off", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL version 2.28.3+cuda13.0", "a0 NCCL_CUMEM_ENABLE set by environment to 0."}), want: []string{"warning sure env:NCCL_CUMEM_ENABLE"}},
		{name: "cuMem off where it was the default", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL version 2.18.3+cuda12.2", "a0 NCCL_CUMEM_ENABLE set by environment to 0."})},
		{name: "GPUDirect RDMA off", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_NET_GDR_LEVEL set by environment to LOC", "a0 NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"}), want: []string{"warning sure a/env:NCCL_NET_GDR_LEVEL"}},
		{name: "GPUDirect RDMA is not there", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_NET_GDR_LEVEL set by environment to LOC", "a0 NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"})},
		{name: "a higher level", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_NET_GDR_LEVEL set by environment to SYS", "a0 NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"})},
		{name: "IB off with ACTIVE ports", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_IB_DISABLE set by environment to 1."}), hosts: []*host{h100x8().named("a").with(noGPUs)}, want: []string{"warning sure a/env:NCCL_IB_DISABLE"}},
		{name: "IB off, adapters not known", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL_IB_DISABLE set by environment to 1."}), gap: "NCCL_IB_DISABLE=1 is set"},
		{name: "LL128 left out", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_PROTO set by environment to ^LL128"}), want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "PXN off over two hosts", log: lines(comm("ab", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_PXN_DISABLE set by environment to 1."}), want: []string{"warning sure a/env:NCCL_PXN_DISABLE"}},
		{name: "PXN off on one", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_PXN_DISABLE set by environment to 1."})},
		{name: "multi-node NVLink off", log: lines(comm("ab", 1, "COMPLETE"), domainOf("ab"), []string{"a0 NCCL_MNNVL_ENABLE set by environment to 0."}), want: []string{"warning sure a/env:NCCL_MNNVL_ENABLE"}},
		{name: "SHM off with NVLink: not missed", log: lines(comm("a", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_SHM_DISABLE set by environment to 1."})},
		{name: "on several hosts once", log: lines(comm("ab", 4, "COMPLETE"), switchTree(4, 370.8), []string{"a0 NCCL_NVLS_ENABLE set by environment to 0.", "b0 NCCL_NVLS_ENABLE set by environment to 0."}), want: []string{"warning sure a/env:NCCL_NVLS_ENABLE"}},
	})
}

// switchTree is NCCL's print-out of host a with GPUs at one NVSwitch.
func switchTree(gpus int, gbs float64) []string {
	out := []string{"a0 === System : maxBw 1.0 totalBw 1.0 ===", "a0 CPU/0-0 (1/2/-1)"}
	for i := range gpus {
		out = append(out, fmt.Sprintf("a0 + PCI[48.0] - GPU/0-%x (%d)", 0x1b000+i<<12, i), fmt.Sprintf("a0               + NVL[%.1f] - NVS/0-0", gbs))
	}
	return append(out, "a0 ==========================================")
}
