package inspector

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the origin's name of this reader.
const Source = probe.SourceInspector

// Dump is what one file holds.
type Dump struct {
	File    string
	Comms   []Comm // in the order of their ids
	Points  []Point
	Records int64 // of collectives that are in Points

	// What is not in Points, in records.
	P2P           int64
	CPUTimed      int64            // timed around the launch
	Untimed       int64            // 0 µs
	Contradictory int64            // bandwidth, size and time do not fit
	Unknown       map[string]int64 // collectives of which it is not known what their size means
	Overwritten   uint64           // lost by the plugin, whose buffer was full
	Torn          int64            // no JSON, or without what is needed
	Dropped       int64            // over what is kept of one file
	firstTorn     int
}

// Comm is one communicator as the file's process sees it.
type Comm struct {
	Line    int
	ID      string // 0x…
	Name    string
	Ranks   int
	Nodes   probe.Opt[int]
	Members []Member
}

// Member is a rank that the process drives.
type Member struct {
	Line int
	Rank int
	Host string
	PID  probe.Opt[int]
}

// Point is all operations of one kind and size.
type Point struct {
	Key
	Line   int // of the first
	Count  int64
	TimeUS float64 // median
	MinUS  float64
}

// Key is what operations of one Point share.
type Key struct {
	Comm       string
	Collective string
	Bytes      int64 // the total
	Ranks      int
	Nodes      int
	Algorithm  string // "" = not stated
	Protocol   string
	Channels   probe.Opt[int]
}

// Inventories returns communicators and samples in the words of package probe.
func (d *Dump) Inventories() []*probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	for _, c := range d.Comms {
		out := probe.Comm{ID: c.ID, Name: c.Name, Ranks: c.Ranks, Nodes: c.Nodes, Origins: d.origins(c.Line)}
		for _, m := range c.Members {
			out.Members = append(out.Members, probe.Member{Rank: m.Rank, Host: m.Host, PID: m.PID, Origins: d.origins(m.Line)})
		}
		inv.Comms = append(inv.Comms, out)
	}
	for _, p := range d.Points {
		factor, _ := probe.BusFactor(p.Collective, p.Ranks)
		algbw := float64(p.Bytes) / p.TimeUS / 1e3
		inv.Samples = append(inv.Samples, probe.Sample{
			Collective: p.Collective, Bytes: p.Bytes, Ranks: probe.Some(p.Ranks), Nodes: probe.Some(p.Nodes), Algorithm: p.Algorithm, Protocol: p.Protocol, Channels: p.Channels,
			TimeUS: p.TimeUS, MinUS: p.MinUS, Count: p.Count, AlgBW: algbw, BusBW: algbw * factor, Origins: d.origins(p.Line),
		})
	}
	inv.Gaps = d.gaps()
	inv.Normalize()
	return []*probe.Inventory{inv}
}

func (d *Dump) gaps() []probe.Gap {
	var out []probe.Gap
	gap := func(n int64, line int, why, how string) {
		if n > 0 {
			out = append(out, probe.Gap{What: "samples", Why: fmt.Sprintf("%s: %d", why, n), How: how, Origin: probe.LineOf(Source, d.File, line)})
		}
	}
	gap(d.P2P, 0, "point-to-point operations, which give no sample", "")
	gap(d.CPUTimed, 0, "operations timed by the CPU around their launch, which says nothing of how long they ran", "set NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1")
	gap(d.Untimed, 0, "operations of less than a microsecond, in which the plugin counts", "")
	gap(d.Contradictory, 0, "records whose bandwidth does not follow from their size and time", "")
	for _, name := range slices.Sorted(maps.Keys(d.Unknown)) {
		gap(d.Unknown[name], 0, "records of "+name+", of which it is not known whether their size is that of one rank", "")
	}
	gap(int64(min(d.Overwritten, 1<<62)), 0, "operations overwritten in the plugin's buffer before it wrote them", "raise NCCL_INSPECTOR_DUMP_COLL_RING_SIZE or write more often (NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS)")
	gap(d.Torn, d.firstTorn, "lines that are cut or lack their header (the first stands here)", "")
	gap(d.Dropped, 0, "operations over what is kept of one file", "split the file")
	return out
}

func (d *Dump) origins(line int) []probe.Origin {
	return []probe.Origin{probe.LineOf(Source, d.File, line)}
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(a.Comm, b.Comm), strings.Compare(a.Collective, b.Collective), cmp.Compare(a.Bytes, b.Bytes),
		strings.Compare(a.Algorithm, b.Algorithm), strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Channels.Or(0), b.Channels.Or(0)),
		cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Nodes, b.Nodes))
}
