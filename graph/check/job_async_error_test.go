package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestJobAsyncError(t *testing.T) {
	failed := func(c probe.Comm, rank int, why string) probe.Comm {
		return change(c, rank, state(probe.RankError, why))
	}
	const remote, cuda = "remote process error (6)", "unhandled CUDA error (1)"
	testJob(t, "job-async-error", []jobCase{
		{name: "none", comms: []probe.Comm{rasRanks(16, at0, 7)}},
		{name: "initializing", comms: []probe.Comm{change(rasRanks(16, at0, 7), 3, state(probe.RankInit, ""))}},
		{name: "aborting", comms: []probe.Comm{change(rasRanks(16, at0, 7), 3, state(probe.RankAborting, ""))}},
		{name: "one", comms: []probe.Comm{failed(rasRanks(16, at0, 7), 3, cuda)},
			want: []string{"critical sure rank:3 10.1.0.1/gpu:3 host:10.1.0.1"}, says: []string{"communicator 0xe94423cfbb2ef4a: rank 3: unhandled CUDA error (1)"}},
		{name: "the cause among those that lost it", comms: []probe.Comm{failed(failed(failed(rasRanks(16, at0, 7), 3, cuda), 9, remote), 10, remote)},
			want: []string{"critical sure rank:3 10.1.0.1/gpu:3 host:10.1.0.1"}, says: []string{"rank 3: unhandled CUDA error (1); 2 other ranks have lost a peer"}},
		{name: "only those that lost it", comms: []probe.Comm{failed(failed(rasRanks(16, at0, 7), 9, remote), 10, remote)},
			want: []string{"critical sure rank:9 rank:10 10.1.0.2/gpu:1 10.1.0.2/gpu:2 host:10.1.0.2"}, says: []string{"ranks 9, 10: remote process error", "look for a rank that died"}},
	})
}
