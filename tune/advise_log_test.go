package tune_test

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// What a log shows failing is worked round, and only that.
func TestFaultsInLogs(t *testing.T) {
	warn := func(host, text string) probe.Event {
		return probe.Event{Kind: probe.EventWarning, Host: host, Text: text, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "nccl.log:1"}}}
	}
	qp := func(host, dev string, local, remote int) probe.Event {
		return warn(host, fmt.Sprintf("Call to ibv_modify_qp failed with 110 Connection timed out, on dev %s:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.0.0.%d, remote GID ::ffff:10.0.0.%d", dev, local, remote))
	}
	adapters := func(names ...string) (out []probe.Adapter) {
		for i, n := range names {
			out = append(out, probe.Adapter{Network: "IB", Index: i % 2, Name: n, Host: []string{"a", "b"}[i/2]})
		}
		return out
	}
	same := adapters("mlx5_0", "mlx5_1", "mlx5_0", "mlx5_1")
	for _, c := range []struct {
		name     string
		events   []probe.Event
		adapters []probe.Adapter
		variable string
		value    string
	}{
		{"NVLS fails", []probe.Event{warn("a", "Failed to bind NVLink SHARP (NVLS) Multicast memory")}, nil, "NCCL_NVLS_ENABLE", "0"},
		{"NVLS does not", nil, nil, "NCCL_NVLS_ENABLE", ""},
		{"DMA-BUF fails", []probe.Event{warn("a", "Call to ibv_reg_dmabuf_mr failed with error Operation not supported")}, nil, "NCCL_DMABUF_ENABLE", "0"},
		{"across rails", []probe.Event{qp("a", "mlx5_0", 1, 4), qp("b", "mlx5_1", 4, 1)}, same, "NCCL_CROSS_NIC", "0"},
		{"on one rail too", []probe.Event{qp("a", "mlx5_0", 1, 4), qp("b", "mlx5_1", 4, 1), qp("a", "mlx5_1", 2, 4)}, same, "NCCL_CROSS_NIC", ""},
		{"the other end is not known", []probe.Event{qp("a", "mlx5_0", 1, 9)}, same, "NCCL_CROSS_NIC", ""},
		{"hosts name their adapters each their own way", []probe.Event{qp("a", "mlx5_0", 1, 4), qp("b", "mlx5_1", 4, 1)}, adapters("mlx5_0", "mlx5_1", "mlx5_1", "mlx5_2"), "NCCL_CROSS_NIC", ""},
	} {
		p := analyse(t, "example:h100x8", func(inv *probe.Inventory) { inv.Events, inv.Adapters = c.events, c.adapters }).Plan
		if value, declined := setAndDeclined(p, c.variable); value != c.value || (value == "") == (declined == "") {
			t.Errorf("%s: %q, declined %q", c.name, value, declined)
		}
	}
}
