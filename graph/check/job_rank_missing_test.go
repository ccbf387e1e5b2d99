package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestJobRankMissing(t *testing.T) {
	small := rasRanks(16, at0, 7)
	small.ID, small.Ranks, small.Members = "0x2", 2, small.Members[8:10] // the same processes under other ranks
	small.Members[0].Rank, small.Members[1].Rank = 0, 1
	node := h100x8()
	node.inv.Host.Name = "10.1.0.2"
	testJob(t, "job-rank-missing", []jobCase{
		{name: "all answer", comms: []probe.Comm{rasRanks(16, at0, 7)}},
		{name: "one does not", comms: []probe.Comm{change(rasRanks(16, at0, 7), 9, state(probe.RankMissing, ""))},
			want: []string{"critical sure rank:9 10.1.0.2/gpu:1 host:10.1.0.2"},
			says: []string{"rank 9 on host 10.1.0.2: no answer, in communicator 0xe94423cfbb2ef4a", "ncclras ras.json:177: rank 9, GPU 1, process 109, host 10.1.0.2"}},
		{name: "dead, its host at hand", comms: []probe.Comm{change(rasRanks(16, at0, 7), 9, state(probe.RankDead, ""))}, hosts: []*host{node},
			want: []string{"critical sure rank:9 10.1.0.2/gpu:0000:28:00.0 host:10.1.0.2"}, says: []string{"1 considered dead"}},
		{name: "several hosts", comms: []probe.Comm{change(change(change(rasRanks(16, at0, 7), 9, state(probe.RankDead, "")), 8, state(probe.RankMissing, "")), 0, state(probe.RankMissing, ""))},
			want: []string{"critical sure rank:0 10.1.0.1/gpu:0 host:10.1.0.1", "critical sure rank:8 rank:9 10.1.0.2/gpu:0 10.1.0.2/gpu:1 host:10.1.0.2"},
			says: []string{"ranks 8, 9 on host 10.1.0.2: no answer, 1 considered dead"}},
		{name: "one process in two communicators", comms: []probe.Comm{change(small, 1, state(probe.RankMissing, "")), change(rasRanks(16, at0, 7), 9, state(probe.RankMissing, ""))},
			want: []string{"critical sure rank:9 10.1.0.2/gpu:1 host:10.1.0.2"}, says: []string{"communicator 0x2, communicator 0xe94423cfbb2ef4a"}},
		{name: "no longer a member", comms: []probe.Comm{change(rasRanks(16, at0, 7), 9, state(probe.RankGone, ""))}},
		{name: "recovered", comms: joined(change(rasRanks(16, at0, 7), 9, state(probe.RankMissing, "")), rasRanks(16, at10, 7))},
		{name: "lost since", comms: joined(rasRanks(16, at0, 7), change(rasRanks(16, at10, 7), 9, state(probe.RankMissing, ""))),
			want: []string{"critical sure rank:9 10.1.0.2/gpu:1 host:10.1.0.2"}},
		{name: "a rank of which nothing is known", comms: []probe.Comm{{ID: "0x1", Ranks: 16, Members: rasRanks(8, at0, 7).Members}}},
	})
}
