package check

import "testing"

func TestLogNetIntraNode(t *testing.T) {
	testLog(t, "log-net-intra-node", []logCase{
		{name: "P2P and SHM off, over sockets", log: lines(comm("a", 2, "COMPLETE"), netPair("Socket"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1.", "a0 NCCL_SHM_DISABLE set by environment to 1."}),
			want: []string{"critical sure rank:0 rank:1 env:NCCL_P2P_DISABLE env:NCCL_SHM_DISABLE"}, says: []string{"rank 0 to 1", "NCCL_SHM_DISABLE=1"}},
		{name: "the same over IB", log: lines(comm("a", 2, "COMPLETE"), netPair("IB"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1.", "a0 NCCL_SHM_DISABLE set by environment to 1."}),
			want: []string{"warning sure rank:0 rank:1 env:NCCL_P2P_DISABLE env:NCCL_SHM_DISABLE"}},
		{name: "containers that do not share memory", log: lines(comm("a", 2, "COMPLETE"), netPair("IB"), []string{"a0 comm 0x550 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0", "a1 comm 0x551 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0"}),
			want: []string{"warning sure rank:0 rank:1"}, says: []string{"NCCL counts 2 nodes on one host", "--ipc=host"}},
		{name: "the NIC is the better way", log: lines(comm("a", 2, "COMPLETE"), netPair("IB"))},
		{name: "P2P alone is off", log: lines(comm("a", 2, "COMPLETE"), netPair("IB"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1."})},
		{name: "between hosts", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0"})},
	})
}

func netPair(network string) []string {
	return []string{"a0 Channel 00/0 : 0[0] -> 1[1] [send] via NET/" + network + "/0", "a1 Channel 00/0 : 0[0] -> 1[1] [receive] via NET/" + network + "/0",
		"a1 Channel 00/0 : 1[1] -> 0[0] [send] via NET/" + network + "/0"}
}

// The finding takes in what the setting's own rule says.
func TestNetIntraNodeTakesTheSettingIn(t *testing.T) {
	testLog(t, "env-disables-transport", []logCase{
		{name: "with it", log: lines(comm("a", 2, "COMPLETE"), netPair("IB"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1.", "a0 NCCL_SHM_DISABLE set by environment to 1."}),
			gap: "NCCL_P2P_DISABLE=1"},
	})
}
