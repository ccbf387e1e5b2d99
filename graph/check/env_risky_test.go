package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvRisky(t *testing.T) {
	pcie := func() *host { // a GPU pair over the CPU
		return matrix(2, nil, "X SYS", "SYS X")
	}
	testEnv(t, "env-risky", []envCase{
		{name: "LL128 alone", text: "NCCL_PROTO=LL128\n", want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "LL128 in a list", text: "NCCL_PROTO=Simple,LL128\n", want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "LL128 left over", text: "NCCL_PROTO=^LL\n", want: []string{"warning sure env:NCCL_PROTO"}, says: []string{"a list that leaves LL128 forces it on"}},
		{name: "LL128 excluded", text: "NCCL_PROTO=^LL128\n"},
		{name: "LL128 for one collective", text: "NCCL_PROTO=allreduce:LL128\n", want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "over PCIe", text: "NCCL_PROTO=LL128\n", host: pcie(), want: []string{"critical sure env:NCCL_PROTO"}, says: []string{"GPU0 and GPU1 talk by SYS"}},
		{name: "one NVSwitch host", text: "NCCL_PROTO=LL128\n", host: h100x8(), job: nodes(1), want: []string{"info sure env:NCCL_PROTO"}},
		{name: "NVSwitch hosts", text: "NCCL_PROTO=LL128\n", host: h100x8(), job: nodes(2), want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "over TCP", text: "NCCL_PROTO=LL128\n", job: func(j *probe.Job) {
			nodes(2)(j)
			j.Networks = []probe.Network{{Name: "Socket", State: probe.NetUsed}}
		}, want: []string{"critical sure env:NCCL_PROTO"}},
		{name: "hides faults", text: "NCCL_IGNORE_DISABLED_P2P=1\nNCCL_IB_RETURN_ASYNC_EVENTS=0\n",
			want: []string{"warning sure env:NCCL_IB_RETURN_ASYNC_EVENTS", "warning sure env:NCCL_IGNORE_DISABLED_P2P"}},
		{name: "stale data and hangs", text: "NCCL_GDR_FLUSH_DISABLE=1\nNCCL_LEGACY_CUDA_REGISTER=1\nNCCL_GRAPH_FILE=/x.xml\n",
			want: []string{"warning sure env:NCCL_GDR_FLUSH_DISABLE", "warning sure env:NCCL_GRAPH_FILE", "warning sure env:NCCL_LEGACY_CUDA_REGISTER"}},
		{name: "timeout 0", text: "NCCL_IB_TIMEOUT=0\n", want: []string{"warning sure env:NCCL_IB_TIMEOUT"}},
		{name: "timeout 13", text: "NCCL_IB_TIMEOUT=13\n", want: []string{"warning sure env:NCCL_IB_TIMEOUT"}},
		{name: "timeout 32", text: "NCCL_IB_TIMEOUT=32\n", want: []string{"warning sure env:NCCL_IB_TIMEOUT"}},
		{name: "defaults and zeros", text: "NCCL_IB_TIMEOUT=14\nNCCL_IGNORE_DISABLED_P2P=0\nNCCL_GDR_FLUSH_DISABLE=0\nNCCL_IB_RETURN_ASYNC_EVENTS=1\nNCCL_GRAPH_FILE=\nNCCL_LEGACY_CUDA_REGISTER=0\nNCCL_NVLS_ENABLE=2\nNCCL_HOSTID=a\n"},
		{name: "multicast without asking", text: "NCCL_NVLS_ENABLE=1\n", host: v100(), want: []string{"warning sure env:NCCL_NVLS_ENABLE " + gpuKeyAt("0000:11:00.0")}, says: []string{"compute capability 7.0"}},
		{name: "multicast is there", text: "NCCL_NVLS_ENABLE=1\n", host: h100x8()},
		{name: "multicast not known", text: "NCCL_NVLS_ENABLE=1\n", gap: "the hardware that the setting meets"},
	})
}

// v100 is a host with two GPUs before NVSwitch 3, joined by NVLink.
func v100() *host {
	h := &host{}
	h.numa(1)
	for n := range 2 {
		h.gpu(rootChild(n), h.onRoot(n, 0), "10de:1db1", 70, 0, gen3, toGPU(rootChild(1-n), 0, 6)...)
	}
	return h
}

func gpuKeyAt(addr string) string { return "gpu:" + addr }

func TestEnvHostID(t *testing.T) {
	c := set(2, nil)
	for _, h := range c.Hosts {
		c.Env = append(c.Env, probe.EnvSetting{Name: "NCCL_HOSTID", Value: "box", How: probe.EnvVariable, Host: h.Host.Name,
			Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:1"}}})
	}
	count := func() (n int) {
		res, err := RunCluster(c, []Rule{envRisky})
		if err != nil {
			t.Fatal(err)
		}
		complete(t, res)
		return len(res.Findings)
	}
	if n := count(); n != 1 {
		t.Errorf("%d findings for one identity on two hosts", n)
	}
	if c.Env[1].Value = "other"; count() != 0 {
		t.Error("two identities are right")
	}
}
