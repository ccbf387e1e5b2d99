package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNVLinkP2PDisabled(t *testing.T) {
	testLog(t, "nvlink-p2p-disabled", []logCase{
		{name: "NCCL warns", log: lines(comm("a", 2, "START"), []string{"a0!graph/paths.cc:346 P2P is disabled between NVLINK connected GPUs 1 and 0. This should not be the case"}),
			want: []string{"critical sure gpu:0000:1b:00.0 gpu:0000:1c:00.0"}, says: []string{"only hides it"}},
		{name: "addresses not known", log: []string{"a0!graph/paths.cc:346 P2P is disabled between NVLINK connected GPUs 1 and 0. This"}, want: []string{"critical sure gpu:0 gpu:1"}},
		{name: "by setting", log: []string{"a0 NCCL_P2P_LEVEL set by environment to LOC", "a0!graph/paths.cc:346 P2P is disabled between NVLINK connected GPUs 1 and 0. This"}},
		{name: "PCIe pair", log: []string{"a0 P2P is disabled between connected GPUs 1 and 0. You can repress this message"}},
		{name: "the driver says it", hosts: []*host{nvlinkPair("NVIDIA A100").peers("chipset not supported")}, want: []string{"critical sure gpu:0000:1b:00.0 gpu:0000:1c:00.0"}, says: []string{"P2P is chipset not supported"}},
		{name: "the driver says ok", hosts: []*host{nvlinkPair("NVIDIA A100").peers("ok")}},
		{name: "the driver was not asked", hosts: []*host{nvlinkPair("NVIDIA A100")}},
	})
}

// peers sets the driver's status for reading, all GPUs to all others.
func (h *host) peers(status string) *host {
	for i := range h.inv.GPUs {
		for j := range h.inv.GPUs {
			if i != j {
				h.inv.GPUs[i].Peers = append(h.inv.GPUs[i].Peers, probe.PeerAccess{GPU: j, Capability: "read", Status: status})
			}
		}
	}
	return h
}
