package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestEnvAlgoForced(t *testing.T) {
	testEnv(t, "env-algo-forced", []envCase{
		{name: "Tree for all", text: "NCCL_ALGO=Tree\n", nccl: "2.28.3", want: []string{"critical sure env:NCCL_ALGO"}, says: []string{"Broadcast, Reduce, AllGather, ReduceScatter: their calls fail"}},
		{name: "Tree before 2.24", text: "NCCL_ALGO=Tree\n", nccl: "2.20.5", want: []string{"warning sure env:NCCL_ALGO"}, says: []string{"falls back to Ring, and NCCL_PROTO is lost"}},
		{name: "Tree, version not known", text: "NCCL_ALGO=Tree\n", want: []string{"warning sure env:NCCL_ALGO"}, says: []string{"fail from NCCL 2.24 on"}},
		{name: "Tree for AllReduce, the only one used", text: "NCCL_ALGO=Tree\n", nccl: "2.28.3", want: []string{"warning sure env:NCCL_ALGO"}, job: func(j *probe.Job) {
			j.Choices = []probe.Choice{{Collective: "AllReduce", Bytes: 8, Algorithm: "Tree", Protocol: "LL", Count: 1}}
		}},
		{name: "per function", text: "NCCL_ALGO=allreduce:tree\n", nccl: "2.28.3", want: []string{"warning sure env:NCCL_ALGO"}, says: []string{"no measurement"}},
		{name: "Ring", text: "NCCL_ALGO=Ring\n", nccl: "2.28.3", want: []string{"warning sure env:NCCL_ALGO"}},
		{name: "LL only", text: "NCCL_PROTO=LL\n", want: []string{"warning sure env:NCCL_PROTO"}},
		{name: "^LL128", text: "NCCL_PROTO=^LL128\n"},
		{name: "of other rules", text: "NCCL_PROTO=LL128\nNCCL_ALGO=Fast\n", nccl: "2.28.3"},
		{name: "unset", text: "NCCL_ALGO=\nNCCL_DEBUG=WARN\n"},
	})
}

// A measurement speaks for the value.
func TestEnvAlgoMeasured(t *testing.T) {
	h := &host{}
	h.inv.Env = settingsOf(t, "NCCL_ALGO=allreduce:tree\n", "")
	better := Rule{ID: "measured-alternative-better", Across: func(a *Across) {
		a.Report(Finding{Subjects: []string{"env:NCCL_ALGO"}, Expected: "a", Observed: "b", Fix: "c"})
	}}
	if res := Run(h.topology(t), []Rule{better, envAlgoForced}); len(res.Findings) != 1 {
		t.Errorf("%q", brief(res))
	}
}
