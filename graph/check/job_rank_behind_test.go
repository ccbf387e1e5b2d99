package check

import (
	"fmt"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// recorded are ranks as their flight recorders show them, waiting since a time.
func recorded(ranks int, p ...probe.Progress) probe.Comm {
	c := probe.Comm{ID: "pg:0/1", Name: "default_pg", Ranks: ranks}
	for r := range p {
		p[r].Collective = probe.AllCollectives
		c.Members = append(c.Members, probe.Member{
			Rank: r, Global: probe.Some(8 + r), At: p[r].At, Progress: p[r : r+1],
			Origins: []probe.Origin{{Source: probe.SourceFlightRec, Where: fmt.Sprintf("trace_rank_%d.json:1", 8+r)}},
		})
	}
	return c
}

func done(n int64, at string) probe.Progress {
	return probe.Progress{Issued: n, Finished: probe.Some(n), At: at}
}

func waits(done, issued int64, since, at string) probe.Progress {
	return probe.Progress{Issued: issued, Finished: probe.Some(done), Since: since, At: at}
}

func TestJobRankBehind(t *testing.T) {
	behind := func(at string, all, nine int64) probe.Comm { return change(rasRanks(16, at, all), 9, issuedUpTo(nine)) }
	unknown := recorded(2, waits(4, 9, at0, at60), done(4, at0))
	for i := range unknown.Members {
		unknown.Members[i].Rank, unknown.Members[i].Global = probe.UnknownRank, probe.Opt[int]{}
	}
	const nine = "rank:9 10.1.0.2/gpu:1 host:10.1.0.2"
	testJob(t, "job-rank-behind", []jobCase{
		// By the counts of RAS.
		{name: "all alike", comms: []probe.Comm{rasRanks(16, at0, 7)}},
		{name: "one operation apart, once", comms: []probe.Comm{behind(at0, 7, 6)}},
		{name: "seven apart, once", comms: []probe.Comm{behind(at0, 10, 3)},
			want: []string{"info possible " + nine}, says: []string{"AllReduce issued: rank 9 up to 3, 15 others up to 10", "ask again"}},
		{name: "one apart and still so", comms: joined(behind(at0, 7, 6), behind(at60, 7, 6)),
			want: []string{"warning likely " + nine}, says: []string{"no count moved for 60 s", "Not proven", "ncclras ras.json:177: rank 9, GPU 1, process 109, host 10.1.0.2: AllReduce issued up to 6"}},
		{name: "given in the other order", comms: joined(behind(at60, 7, 6), behind(at0, 7, 6)), want: []string{"warning likely " + nine}},
		{name: "the same report twice", comms: joined(behind(at0, 7, 6), behind(at0, 7, 6))},
		{name: "still so, too soon to tell", comms: joined(behind(at0, 7, 6), behind(at10, 7, 6))},
		{name: "behind and moving", comms: joined(behind(at0, 7, 6), behind(at60, 8, 7))},
		{name: "behind before, not now", comms: joined(behind(at0, 9, 2), rasRanks(16, at60, 9))},
		{name: "another sequence", comms: joined(change(behind(at0, 7, 6), 9, func(m *probe.Member) { m.Progress[1].Issued = 4 }), change(behind(at60, 7, 6), 9, func(m *probe.Member) { m.Progress[1].Issued = 4 })),
			want: []string{"warning likely " + nine}, says: []string{"AllReduce issued: rank 9 up to 6, 15 others up to 7; Broadcast issued: ranks 0, 1, 2,", "not issue the same sequence"}},
		{name: "ending", comms: []probe.Comm{change(behind(at0, 9, 2), 3, func(m *probe.Member) { m.State = probe.RankFinished })}},
		// By the numbers of flight recorders.
		{name: "nobody waits", comms: []probe.Comm{recorded(2, done(5, at0), done(4, at0))}},
		{name: "both in the same operation", comms: []probe.Comm{recorded(2, waits(4, 9, at0, at60), waits(4, 5, at0, at60))}},
		{name: "one waits, for how long is not known", comms: []probe.Comm{recorded(2, waits(4, 9, at0, at10), done(4, at0))}, gap: "nothing shows for how long"},
		{name: "one waits for a minute", comms: []probe.Comm{recorded(2, waits(4, 9, at0, at60), done(4, at0))},
			want: []string{"warning likely rank:9"}, says: []string{"communicator pg:0/1 (default_pg): operations issued: rank 9 up to 4, 1 other waits in 5; rank 8 waits for 60 s", "trace_rank_9.json:1: rank 9 (1 in the group)"}},
		{name: "one has timed out", comms: []probe.Comm{change(recorded(2, waits(4, 9, at0, at0), done(4, at0)), 0, func(m *probe.Member) { m.State = probe.RankTimedOut })},
			want: []string{"warning likely rank:9"}, says: []string{"an operation of rank 8 exceeded its timeout"}},
		{name: "dumps that do not tell their rank", comms: []probe.Comm{unknown}, want: []string{"warning likely file:trace_rank_9.json"}, says: []string{"rank of trace_rank_9.json up to 4"}},
		{name: "a rank left no dump", comms: []probe.Comm{recorded(2, waits(4, 9, at0, at60))}, gap: "not all ranks"},
	})
}
