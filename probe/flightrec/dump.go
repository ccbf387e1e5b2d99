package flightrec

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the origin's name of this reader.
const Source = probe.SourceFlightRec

// Dump is what one process recorded.
type Dump struct {
	File    string
	Version string         // of the dump
	NCCL    string         // version
	Rank    probe.Opt[int] // in the whole job
	Groups  []Group        // by name
	Foreign int            // operations that are not NCCL's
	Newest  time.Time      // of all times in the dump; zero = it holds none
}

// Group is one process group.
type Group struct {
	Name     string
	Desc     string         // default_pg, …
	Ranks    []int          // of the whole job, in the group's order
	Rank     probe.Opt[int] // this process, in the group
	Line     int            // of its last collective, else of the dump
	Issued   int64          // number of its last collective; 0 = none is recorded
	Finished probe.Opt[int64]
	Last     string    // name of its last collective
	Since    time.Time // when the first one that is not finished was issued; zero = all are
	TimedOut bool      // that one took longer than its timeout
}

// Inventories returns the groups as communicators with this process as a member,
// in the words of package probe.
func (d *Dump) Inventories() []*probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	if d.NCCL != "" {
		inv.Versions = []probe.NCCLSeen{{NCCL: d.NCCL, Origins: []probe.Origin{d.origin(0)}}}
	}
	for _, g := range d.Groups {
		inv.Comms = append(inv.Comms, d.comm(g))
	}
	gap := func(what, why, how string) {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: d.origin(0)})
	}
	if len(d.Groups) > 0 && !d.Rank.Known() {
		gap("rank", "the dump does not say of which rank it is", "PyTorch puts the rank into the file's name")
	}
	if d.Foreign > 0 {
		gap("operations", fmt.Sprintf("%d recorded operations are not NCCL's", d.Foreign), "")
	}
	inv.Normalize()
	return []*probe.Inventory{inv}
}

func (d *Dump) comm(g Group) probe.Comm {
	m := probe.Member{Rank: g.Rank.Or(probe.UnknownRank), Global: d.Rank, NCCL: d.NCCL, At: d.at(), Origins: []probe.Origin{d.origin(g.Line)}}
	if g.Issued > 0 {
		p := probe.Progress{Collective: probe.AllCollectives, Issued: g.Issued, Finished: g.Finished, At: d.at()}
		if !g.Since.IsZero() {
			p.Since = format(g.Since)
		}
		m.Progress = []probe.Progress{p}
	}
	if g.TimedOut {
		m.State = probe.RankTimedOut
	}
	return probe.Comm{
		ID: g.id(), Name: g.Desc, NCCL: d.NCCL, Ranks: len(g.Ranks), Members: []probe.Member{m}, Origins: []probe.Origin{d.origin(g.Line)},
	}
}

// id is the same for all members of a group and for no other group: names alone
// may repeat among groups of different ranks.
func (g Group) id() string {
	h := fnv.New32a()
	for _, r := range g.Ranks {
		fmt.Fprintf(h, "%d,", r)
	}
	return fmt.Sprintf("pg:%s/%08x", g.Name, h.Sum32())
}

func (d *Dump) at() string {
	if d.Newest.IsZero() {
		return ""
	}
	return format(d.Newest)
}

func format(t time.Time) string { return t.UTC().Format(probe.TimeLayout + ".000") }

func (d *Dump) origin(line int) probe.Origin { return probe.LineOf(Source, d.File, line) }

// whose finds the rank of the process: where the groups that it used have but one
// member in common, it is that one.
func (d *Dump) whose(used map[string]bool) {
	if !d.Rank.Known() {
		var common []int
		first := true
		for _, g := range d.Groups {
			switch {
			case !used[g.Name]:
			case first:
				common, first = slices.Clone(g.Ranks), false
			default:
				in := make(map[int]bool, len(g.Ranks))
				for _, r := range g.Ranks {
					in[r] = true
				}
				common = slices.DeleteFunc(common, func(r int) bool { return !in[r] })
			}
		}
		if len(common) == 1 {
			d.Rank = probe.Some(common[0])
		}
	}
	rank, ok := d.Rank.Get()
	if !ok {
		return
	}
	for i := range d.Groups {
		if at := slices.Index(d.Groups[i].Ranks, rank); at >= 0 {
			d.Groups[i].Rank = probe.Some(at)
		}
	}
}
