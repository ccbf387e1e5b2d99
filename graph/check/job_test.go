package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// jobCase is one job and what a rule must say about it.
type jobCase struct {
	name  string
	comms []probe.Comm
	hosts []*host
	want  []string
	says  []string
	gap   string
}

// testJob runs all rules on each job, as testRule does on machines.
func testJob(t *testing.T, id string, cases []jobCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cl := &probe.Cluster{Job: probe.Job{Comms: c.comms}}
			for _, h := range c.hosts {
				cl.Hosts = append(cl.Hosts, &h.inv)
			}
			res, err := RunCluster(cl, All())
			if err != nil {
				t.Fatal(err)
			}
			complete(t, res)
			var got []string
			texts := ""
			for _, f := range res.Findings {
				if f.Rule != id {
					if strings.HasPrefix(f.Rule, "job-") {
						t.Errorf("%s speaks too: %s", f.Rule, f.Observed)
					}
					continue
				}
				got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Certainty, strings.Join(f.Subjects, " ")))
				texts += f.Observed + "\n" + f.Fix + "\n"
				for _, e := range f.Evidence {
					texts += e.String() + "\n"
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings\n  %s\nwant\n  %s\n%s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "), texts)
			}
			for _, s := range c.says {
				if !strings.Contains(texts, s) {
					t.Errorf("%q is not said in\n%s", s, texts)
				}
			}
			gaps := ""
			for _, g := range res.Gaps {
				if g.Rule == id {
					gaps += g.Reason + "; "
				}
			}
			if (c.gap == "") != (gaps == "") || !strings.Contains(gaps, c.gap) {
				t.Errorf("gaps %q, want %q", gaps, c.gap)
			}
		})
	}
}

// rasRanks are n ranks of one communicator, eight on a host, as RAS reports them,
// all with the same count.
func rasRanks(n int, at string, allReduce int64) probe.Comm {
	c := probe.Comm{ID: "0xe94423cfbb2ef4a", Ranks: n}
	for r := range n {
		c.Members = append(c.Members, probe.Member{
			Rank: r, Host: fmt.Sprintf("10.1.0.%d", 1+r/8), PID: probe.Some(100 + r), GPU: probe.Some(r % 8), At: at,
			Progress: []probe.Progress{{Collective: "AllReduce", Issued: allReduce, At: at}, {Collective: "Broadcast", Issued: 3, At: at}},
			Origins:  []probe.Origin{{Source: probe.SourceNCCLRAS, Where: fmt.Sprintf("ras.json:%d", 15+18*r)}},
		})
	}
	return c
}

// change applies a change to one rank.
func change(c probe.Comm, rank int, f func(*probe.Member)) probe.Comm {
	f(&c.Members[rank])
	return c
}

func state(s, why string) func(*probe.Member) {
	return func(m *probe.Member) { m.State, m.Error, m.Progress = s, why, nil }
}

func issuedUpTo(n int64) func(*probe.Member) {
	return func(m *probe.Member) { m.Progress[0].Issued = n }
}

const (
	at0  = "2026-06-19 06:55:00"
	at10 = "2026-06-19 06:55:10"
	at60 = "2026-06-19 06:56:00"
)

// joined is what several looks at one communicator come to.
func joined(looks ...probe.Comm) []probe.Comm {
	var j probe.Job
	for _, l := range looks {
		j.AddJob(&probe.Job{Comms: []probe.Comm{l}})
	}
	return j.Comms
}
