package nccltests

import (
	"fmt"
	"math"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// settle draws what follows from a whole table.
func (s *state) settle(t *Table) {
	if t.settled {
		return
	}
	t.settled = true
	t.Collective = collectiveOf(t.Program)
	s.devicesOf(t)
	if t.Collective == "" {
		s.inferCollective(t)
	}
	inferRanks(t)
	for i := range t.Rows {
		checkRow(t, &t.Rows[i])
	}
	s.overlap(t)
}

// devicesOf counts ranks, hosts and processes.
func (s *state) devicesOf(t *Table) {
	type process struct {
		host string
		pid  int
	}
	groups := map[int]int{}
	groupHosts := map[int]map[string]bool{}
	hosts := map[string]bool{}
	processes := map[process]int{}
	ranks := map[int]bool{}
	for _, d := range t.Devices {
		g := d.Group.Or(0)
		groups[g]++
		if groupHosts[g] == nil {
			groupHosts[g] = map[string]bool{}
		}
		groupHosts[g][d.Host] = true
		hosts[d.Host] = true
		processes[process{d.Host, d.PID}]++
		ranks[d.Rank] = true
	}
	n := len(t.Devices)
	if n == 0 {
		if c := t.Config; c.Threads.Or(0) == 1 && c.GPUs.Or(0) == 1 {
			t.Launch = LaunchPerGPU
		}
		return
	}
	t.Groups = len(groups)
	switch {
	case len(processes) == n:
		t.Launch = LaunchPerGPU
	case len(processes) == len(hosts):
		t.Launch = LaunchSingle
	}
	if k := t.perRecord; k > 1 && len(processes) == n {
		t.Launch = ""
		if len(hosts) == n {
			t.Launch = LaunchSingle
		}
		for i, d := range t.Devices {
			if d.Rank != i*k {
				return
			}
		}
		if len(groups) == 1 {
			t.Ranks, t.Nodes = probe.Some(n*k), probe.Some(len(hosts))
		}
		return
	}
	// A list that was cut, or that two runs wrote into, counts nothing.
	for i := range n {
		if !ranks[i] {
			return
		}
	}
	size, across := 0, 0
	for g, k := range groups {
		if size != 0 && (k != size || len(groupHosts[g]) != across) {
			return
		}
		size, across = k, len(groupHosts[g])
	}
	t.Ranks, t.Nodes = probe.Some(size), probe.Some(across)
}

// ratio is busbw over algbw where it can be told best, and half its spread.
func ratio(t *Table) (f, spread float64, ok bool) {
	best := 0.0
	for _, r := range t.Rows {
		for _, h := range []Result{r.OutOfPlace, r.InPlace} {
			a, okA := h.AlgBW.Get()
			b, okB := h.BusBW.Get()
			if okA && okB && a > best && b > 0 {
				best, f = a, b/a
				spread = f * (h.halves[1]/a + h.halves[2]/b)
			}
		}
	}
	return f, spread, best > 0 && spread < 0.05
}

// inferCollective names the test by its log or by what its rows show, where
// the output does not name it.
func (s *state) inferCollective(t *Table) {
	name := ""
	switch s.op {
	case "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce":
		name = s.op
	default:
		name = byFigures(t)
	}
	if name != "" {
		t.Collective = name
		t.Inferred = append(t.Inferred, "collective")
	}
}

func byFigures(t *Table) string {
	f, spread, ok := ratio(t)
	if !ok || len(t.Rows) == 0 {
		return ""
	}
	r := t.Rows[0]
	reduces, rooted := r.Op != "", r.Root.Known()
	// Tests without an in-place form never check it.
	inPlace := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.InPlace.Wrong.Known() })
	n, nOK := t.Ranks.Get()
	near := func(want float64) bool { return math.Abs(f-want) <= spread+1e-3 }
	switch {
	case rooted && near(1) && reduces:
		return "Reduce"
	case rooted && near(1):
		return "Broadcast"
	case rooted:
		return ""
	case reduces && f > 1+spread+1e-3 && (!nOK || near(2*float64(n-1)/float64(n))):
		return "AllReduce"
	case reduces && near(1) && (inPlace || nOK && n == 2 && r.OutOfPlace.MaxError.Known()):
		if !nOK || n == 2 {
			return "AllReduce"
		}
	case reduces && near(1) && nOK && n > 2:
		return "SendRecv"
	case nOK && n > 2 && near(float64(n-1)/float64(n)) || nOK && n == 2 && near(0.5):
		if reduces {
			return "ReduceScatter"
		}
		if inPlace {
			return "AllGather"
		}
	}
	return ""
}

// inferRanks finds the number of ranks whose factor the rows show, if there is
// exactly one.
func inferRanks(t *Table) {
	f, spread, ok := ratio(t)
	if t.Ranks.Known() || len(t.Devices) > 0 || t.Collective == "" || !ok {
		return
	}
	found := 0
	for n := 2; n <= 4096; n++ {
		if want, ok := probe.BusFactor(t.Collective, n); ok && math.Abs(f-want) <= spread+1e-6 {
			if found > 0 {
				return
			}
			found = n
		}
	}
	if found > 0 {
		t.Ranks = probe.Some(found)
		t.Inferred = append(t.Inferred, "ranks")
	}
}

// checkRow notes where time, algbw and busbw of a row cannot belong together,
// with the rounding of each granted.
func checkRow(t *Table, r *Row) {
	const slack = 0.003
	for _, h := range []struct {
		name string
		Result
	}{{"out-of-place", r.OutOfPlace}, {"in-place", r.InPlace}} {
		us, okT := h.TimeUS.Get()
		alg, okA := h.AlgBW.Get()
		bus, okB := h.BusBW.Get()
		// These two count other bytes than the size column, and the time
		// of a launch is not the time of the transfer.
		if t.Collective != "HyperCube" && t.Collective != "AllToAllV" && !h.CPUTime && okT && okA && us > 0 && us > h.halves[0] {
			lo, hi := float64(r.Bytes)/(us+h.halves[0])/1e3, float64(r.Bytes)/(us-h.halves[0])/1e3
			if alg+h.halves[1] < lo*(1-slack) || alg-h.halves[1] > hi*(1+slack) {
				r.Notes = append(r.Notes, fmt.Sprintf("%s: %d bytes in %g us are %.2f GB/s, not algbw %g", h.name, r.Bytes, us, float64(r.Bytes)/us/1e3, alg))
			}
		}
		n, okN := t.Ranks.Get()
		if factor, ok := probe.BusFactor(t.Collective, n); okN && ok && okA && okB {
			lo, hi := (alg-h.halves[1])*factor, (alg+h.halves[1])*factor
			if bus+h.halves[2] < lo*(1-slack) || bus-h.halves[2] > hi*(1+slack) {
				r.Notes = append(r.Notes, fmt.Sprintf("%s: algbw %g × %.4g is busbw %.2f, not %g (%s of %d ranks)", h.name, alg, factor, alg*factor, bus, t.Collective, n))
			}
		}
	}
}

// overlap recognises a program without MPI that a launcher started several
// times: headers without rows before a table in which sizes come back.
func (s *state) overlap(t *Table) {
	repeats := false
	for i := 1; i < len(t.Rows); i++ {
		repeats = repeats || t.Rows[i].Bytes == t.Rows[i-1].Bytes && t.Rows[i].Type == t.Rows[i-1].Type && t.Rows[i].Op == t.Rows[i-1].Op
	}
	if !repeats {
		return
	}
	for i := len(s.out.Tables) - 1; i > 0; i-- {
		before := &s.out.Tables[i-1]
		if before.done || len(before.Rows) > 0 || len(before.Failures) > 0 || len(before.Devices) == 0 {
			break
		}
		before.Overlap, t.Overlap = true, true
	}
}

// agree lends the collective that all other runs of the file show to runs too
// small to show theirs; scripts that call one program once for each size write
// such files.
func (s *state) agree() {
	name, same := "", true
	for _, t := range s.out.Tables {
		if t.Collective != "" {
			same = same && (name == "" || name == t.Collective)
			name = t.Collective
		}
	}
	if name == "" || !same {
		return
	}
	for i := range s.out.Tables {
		t := &s.out.Tables[i]
		if t.Collective != "" || len(t.Rows) == 0 {
			continue
		}
		t.Collective = name
		t.Inferred = append(t.Inferred, "collective")
		for j := range t.Rows {
			t.Rows[j].Notes = nil
			checkRow(t, &t.Rows[j])
		}
	}
}
