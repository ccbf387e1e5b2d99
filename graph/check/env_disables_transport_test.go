package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvDisablesTransport(t *testing.T) {
	peermem := func(h *host) {
		h.inv.Settings.Modules = []probe.Module{{Name: "nvidia_peermem"}}
		h.inv.Settings.Origins = []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/module"}}
	}
	gdr := func(j *probe.Job) {
		j.Adapters = []probe.Adapter{{Network: "IB", Name: "mlx5_0", GDR: probe.Some(true), Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:3"}}}}
	}
	geforce := func(code string) *host {
		return matrix(2, nil, "X "+code, code+" X").with(func(h *host) {
			h.inv.GPUs[0].Name, h.inv.GPUs[1].Name = "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"
		})
	}
	domain := func(uuid string) *host {
		return h100x8().with(func(h *host) { h.inv.GPUs[0].Fabric = &probe.Fabric{State: "completed", ClusterUUID: uuid} })
	}
	testEnv(t, "env-disables-transport", []envCase{
		{name: "P2P with NVLink", text: "NCCL_P2P_DISABLE=1\n", host: h100x8(), want: []string{"warning sure env:NCCL_P2P_DISABLE"}, says: []string{"P2P between GPU0 and GPU1 (NVL)"}},
		{name: "P2P below one switch", text: "NCCL_P2P_DISABLE=1\n", host: matrix(2, nil, "X PIX", "PIX X"), want: []string{"warning sure env:NCCL_P2P_DISABLE"}},
		{name: "P2P over the CPU", text: "NCCL_P2P_DISABLE=1\n", host: matrix(2, nil, "X PHB", "PHB X")},
		{name: "GeForce", text: "NCCL_P2P_DISABLE=1\n", host: geforce("PIX")},
		{name: "GeForce with a bridge", text: "NCCL_P2P_DISABLE=1\n", host: geforce("NV4"), want: []string{"warning sure env:NCCL_P2P_DISABLE"}},
		{name: "P2P switch at 0", text: "NCCL_P2P_DISABLE=0\nNCCL_SHM_DISABLE=0\nNCCL_IB_DISABLE=0\n", host: h100x8()},
		{name: "P2P, host not known", text: "NCCL_P2P_DISABLE=1\n", gap: "whether it turns a path off"},
		{name: "shared memory across the CPU", text: "NCCL_SHM_DISABLE=1\n", host: matrix(2, nil, "X PHB", "PHB X"), want: []string{"warning sure env:NCCL_SHM_DISABLE"}},
		{name: "shared memory beside NVLink", text: "NCCL_SHM_DISABLE=1\n", host: h100x8()},
		{name: "shared memory, host not known", text: "NCCL_SHM_DISABLE=1\n", want: []string{"warning likely env:NCCL_SHM_DISABLE"}},
		{name: "InfiniBand", text: "NCCL_IB_DISABLE=1\n", host: h100x8(), want: []string{"warning sure env:NCCL_IB_DISABLE"}},
		{name: "InfiniBand, all ports down", text: "NCCL_IB_DISABLE=1\n", host: rails(1).with(func(h *host) { h.down(0, "DOWN", "Polling") })},
		{name: "InfiniBand without HCA", text: "NCCL_IB_DISABLE=1\n", host: nets("+eth0")},
		{name: "NVLS on Hopper", text: "NCCL_NVLS_ENABLE=0\n", host: h100x8(), want: []string{"warning sure env:NCCL_NVLS_ENABLE"}},
		{name: "NVLS on Volta", text: "NCCL_NVLS_ENABLE=0\n", host: v100()},
		{name: "NVLS on two GPUs", text: "NCCL_NVLS_ENABLE=0\n", host: flatVM()},
		{name: "cuMem with NVLink", text: "NCCL_CUMEM_ENABLE=0\n", host: h100x8(), want: []string{"warning sure env:NCCL_CUMEM_ENABLE"}},
		{name: "cuMem over PCIe", text: "NCCL_CUMEM_ENABLE=0\n", host: matrix(2, nil, "X PHB", "PHB X")},
		{name: "GDR with peermem", text: "NCCL_NET_GDR_LEVEL=LOC\nNCCL_NET_GDR_READ=0\n", host: h100x8().with(peermem),
			want: []string{"warning sure env:NCCL_NET_GDR_LEVEL", "warning sure env:NCCL_NET_GDR_READ"}},
		{name: "GDR in a log", text: "NCCL_NET_GDR_LEVEL=0\nNCCL_DMABUF_ENABLE=0\n", host: h100x8(), job: gdr, want: []string{"warning sure env:NCCL_DMABUF_ENABLE", "warning sure env:NCCL_NET_GDR_LEVEL"}},
		{name: "GDR not known", text: "NCCL_NET_GDR_READ=0\n", host: h100x8(), gap: "whether it turns a path off"},
		{name: "DMA-BUF beside peermem", text: "NCCL_DMABUF_ENABLE=0\n", host: h100x8().with(peermem), job: gdr},
		{name: "GDR without HCA", text: "NCCL_NET_GDR_LEVEL=LOC\n", host: v100()},
		{name: "without LL128", text: "NCCL_PROTO=^LL128\n", host: h100x8(), want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "without LL128, host not known", text: "NCCL_PROTO=^LL128\n", want: []string{"warning likely env:NCCL_PROTO"}},
		{name: "Simple", text: "NCCL_PROTO=Simple\n", host: h100x8(), want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "Simple over PCIe", text: "NCCL_PROTO=Simple\n", host: matrix(2, nil, "X PHB", "PHB X")},
		{name: "LL128 is of env-risky, LL of env-algo-forced", text: "NCCL_PROTO=LL128\n", log: "NCCL_PROTO=LL"},
		{name: "NVLink is down and NCCL old", text: "NCCL_PROTO=^LL128\n", nccl: "2.10.3", host: h100x8().linksDown(3, 1)},
		{name: "NVLink is down", text: "NCCL_PROTO=^LL128\n", nccl: "2.28.3", host: h100x8().linksDown(3, 1), want: []string{"info sure env:NCCL_PROTO"}, says: []string{"see nvlink-down"}},
		{name: "NVLink domain", text: "NCCL_MNNVL_ENABLE=0\n", host: domain("b2c1f4a0-1d2e-4c5b-9a8f-001122334455"), want: []string{"warning sure env:NCCL_MNNVL_ENABLE"}},
		{name: "NVLink on one host", text: "NCCL_MNNVL_ENABLE=0\n", host: domain("00000000-0000-0000-0000-000000000000")},
		{name: "PXN on rails", text: "NCCL_PXN_DISABLE=1\n", host: h100x8(), want: []string{"warning sure env:NCCL_PXN_DISABLE"}},
		{name: "PXN without NVLink", text: "NCCL_PXN_DISABLE=1\n", host: matrix(2, []string{"mlx5_0", "mlx5_1"}, "X PHB PIX SYS", "PHB X SYS PIX", "PIX SYS X SYS", "SYS PIX SYS X"), gap: "whether it turns a path off"},
	})
}

// What shows the fault that a switch works round makes it info, or silent.
func TestEnvDisablesTransportWorksRound(t *testing.T) {
	for rule, want := range map[string]string{"fabric-not-ready": "info", "log-nvls-failed": ""} {
		h := h100x8()
		h.inv.Env = settingsOf(t, "NCCL_NVLS_ENABLE=0\n", "")
		fault := Rule{ID: rule, Run: func(p *Pass) { p.Report(Finding{Severity: Critical, Subjects: []string{p.Host()}}) }}
		got := ""
		for _, f := range Run(h.topology(t), []Rule{fault, envDisablesTransport}).Findings {
			if f.Rule == "env-disables-transport" {
				got = f.Severity.String()
			}
		}
		if got != want {
			t.Errorf("beside %s: %q, want %q", rule, got, want)
		}
	}
}
