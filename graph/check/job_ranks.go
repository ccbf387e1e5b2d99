package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// commName names a communicator in a sentence.
func commName(c *probe.Comm) string {
	if c.Name == "" {
		return "communicator " + c.ID
	}
	return fmt.Sprintf("communicator %s (%s)", c.ID, c.Name)
}

// rankOf is the rank that users know: of the whole job where it is known, else of
// the communicator.
func rankOf(m *probe.Member) int { return m.Global.Or(m.Rank) }

// rankKey is the subject for a rank, the file of its process where that does not
// tell its rank.
func rankKey(m *probe.Member) string {
	if r := rankOf(m); r != probe.UnknownRank {
		return fmt.Sprintf("rank:%d", r)
	}
	file, _, _ := strings.Cut(probe.OriginOf(m.Origins, "").Where, ":")
	return "file:" + file
}

// rankSubjects are ranks with their GPUs and hosts, as far as they are known.
func (a *Across) rankSubjects(members []*probe.Member) []string {
	var ranks, gpus, hosts []string
	for _, m := range members {
		ranks = append(ranks, rankKey(m))
		if k := a.gpuKey(m); k != "" {
			gpus = append(gpus, a.Key(m.Host, k))
		}
		if m.Host != "" {
			hosts = append(hosts, HostKey(m.Host))
		}
	}
	var out []string
	for _, keys := range [][]string{ranks, gpus, hosts} {
		slices.SortFunc(keys, compareKeys)
		out = append(out, slices.Compact(keys)...)
	}
	return out
}

// gpuKey is the node key of a rank's GPU; "" = not known.
func (a *Across) gpuKey(m *probe.Member) string {
	if addr, ok := m.Addr.Get(); ok {
		return "gpu:" + addr.String()
	}
	index, ok := m.GPU.Get()
	if !ok {
		return ""
	}
	if h := a.Host(m.Host); h != nil {
		for _, n := range h.Inv.GPUs {
			if addr, known := n.Addr.Get(); known && n.Index == m.GPU {
				return "gpu:" + addr.String()
			}
		}
	}
	return fmt.Sprintf("gpu:%d", index)
}

// who says where a rank runs.
func who(m *probe.Member) string {
	parts := []string{strings.Replace(rankKey(m), ":", " ", 1)}
	if m.Global.Known() && m.Rank != m.Global.Or(m.Rank) {
		parts[0] += fmt.Sprintf(" (%d in the group)", m.Rank)
	}
	if g, ok := m.GPU.Get(); ok {
		parts = append(parts, fmt.Sprintf("GPU %d", g))
	}
	if p, ok := m.PID.Get(); ok {
		parts = append(parts, fmt.Sprintf("process %d", p))
	}
	if m.Host != "" {
		parts = append(parts, "host "+m.Host)
	}
	return strings.Join(parts, ", ")
}

// jobEvidence is the evidence for something that a member's source says.
func jobEvidence(m *probe.Member, fact string) Evidence {
	o := probe.OriginOf(m.Origins, "")
	for _, x := range m.Origins {
		if x.Source == probe.SourceNCCLRAS || x.Source == probe.SourceFlightRec {
			o = x
		}
	}
	if m.At != "" {
		fact += ", at " + m.At
	}
	return Evidence{Source: o.Source, Where: o.Where, Fact: fact}
}

// listRanks prints "rank 3", "ranks 1, 2, 5" or, of many, the first with their
// number.
func listRanks(members []*probe.Member) string {
	const most = 16
	ms := slices.Clone(members)
	slices.SortStableFunc(ms, func(a, b *probe.Member) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), compareKeys(rankKey(a), rankKey(b)))
	})
	var names []string
	for _, m := range ms[:min(len(ms), most)] {
		kind, name, _ := strings.Cut(rankKey(m), ":")
		if kind == "file" {
			name = "of " + name
		}
		names = append(names, name)
	}
	text := strings.Join(slices.Compact(names), ", ")
	switch {
	case len(ms) > most:
		return fmt.Sprintf("%d ranks (%s, …)", len(ms), text)
	case len(names) > 1:
		return "ranks " + text
	}
	return "rank " + text
}

// seconds is the time between two times of one clock; 0 where one is not known.
func seconds(from, to string) float64 {
	a, errA := time.Parse(probe.TimeLayout, from)
	b, errB := time.Parse(probe.TimeLayout, to)
	if errA != nil || errB != nil {
		return 0
	}
	return max(0, b.Sub(a).Seconds())
}
