package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Of two looks at a running job the later one says how a rank is; both keep what
// was counted, and processes that do not tell their rank stay apart.
func TestJoinRunningJob(t *testing.T) {
	seen := func(file, at, state string, issued int64) *Job {
		return &Job{Comms: []Comm{{ID: "0x1", Ranks: 2, Members: []Member{
			{Rank: 1, State: state, At: at, Progress: []Progress{{Collective: "AllReduce", Issued: issued, At: at}}, Origins: []Origin{{Where: file}}},
			{Rank: UnknownRank, Origins: []Origin{{Where: file}}},
		}}}}
	}
	for _, reversed := range []bool{false, true} {
		looks := []*Job{seen("a", "2026-01-01 00:00:00", RankMissing, 5), seen("b", "2026-01-01 00:00:30", "", 6)}
		if reversed {
			looks[0], looks[1] = looks[1], looks[0]
		}
		var j Job
		for _, l := range looks {
			j.AddJob(l)
		}
		j.normalizeJob()
		if len(j.Comms) != 1 || len(j.Comms[0].Members) != 3 {
			t.Fatalf("%+v", j.Comms)
		}
		m := j.Comms[0].Members
		if m[0].Rank != UnknownRank || m[1].Rank != UnknownRank || m[2].State != "" || m[2].At != "2026-01-01 00:00:30" || len(m[2].Progress) != 2 {
			t.Errorf("reversed %v: %+v", reversed, m)
		}
	}
}

func TestBusFactor(t *testing.T) {
	got := map[string]float64{}
	for _, c := range []string{"AllReduce", "AllGather", "Broadcast"} {
		got[c], _ = BusFactor(c, 8)
	}
	if diff := cmp.Diff(map[string]float64{"AllReduce": 1.75, "AllGather": 0.875, "Broadcast": 1}, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := BusFactor("AllReduce", 0); ok {
		t.Error("a factor of no ranks")
	}
	if _, ok := BusFactor("Barrier", 8); ok {
		t.Error("a factor of an unknown collective")
	}
}
