package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// Settings that a log of 1,250 hosts confirms.
func BenchmarkSettingsOfManyHosts(b *testing.B) {
	c := set(1250, nil)
	for _, h := range c.Hosts {
		for i, s := range []string{"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_P2P_DISABLE", "NCCL_IB_TIMEOUT", "NCCL_DEBUG", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_ALGO"} {
			value := []string{"mlx5_1", "^docker0", "1", "22", "INFO", "0", "0", "Ring"}[i]
			c.Env = append(c.Env, probe.EnvSetting{Name: s, Value: value, How: probe.EnvVariable, Host: h.Host.Name,
				Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: fmt.Sprintf("nccl.log:%d", len(c.Env))}}})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := RunCluster(c, All()); err != nil {
			b.Fatal(err)
		}
	}
}
