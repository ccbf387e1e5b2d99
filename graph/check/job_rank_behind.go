package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var jobRankBehind = Rule{
	ID:    "job-rank-behind",
	Title: "A rank is behind the others of its communicator",
	Doc: `Fires for communicators of which some ranks have issued fewer collectives than others:
by the operation counts of NCCL's RAS service, or by the sequence numbers of PyTorch's
flight recorder, where a rank that waits in an operation proves that it is missing on
the rank that never issued it.

warning, likely: nothing moved for 30 s (two RAS reports with equal counts, or the
recorder's own times), or an operation exceeded its timeout. Proven is then who issued
less and that nothing moves; not whether that rank hangs, works for long (a checkpoint,
a slow batch) or took another branch of the program.
info, possible: one look shows a lag of two or more operations. A host issues ahead of
its GPU and ranks are asked one after the other, so a healthy job can look like that:
ask again.

Silent where counts differ by one at one moment or the lag moves on; where
communicators begin or end; where job-rank-missing or job-async-error tell the cause.
Send and receive are not judged: ranks need not issue equally many.`,
	Across: runJobRankBehind,
}

// standstill is for how long counts must not move, in seconds. A step of a healthy
// job may take tens of them.
const standstill = 30

func runJobRankBehind(a *Across) {
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		if !running(c) {
			continue
		}
		looks := looksAt(c)
		if len(looks) == 0 {
			continue
		}
		last := looks[len(looks)-1]
		if lags := last.lags(); len(lags) > 0 {
			a.judgeLag(c, looks, lags)
			continue
		}
		if w := last.waiting(); len(w) > 0 && len(last.entries) < c.Ranks {
			a.Gap("ranks wait in an operation, and not all ranks of their communicator left a record of theirs",
				"give the dumps of all ranks; one that wrote none is the first to look at", a.rankSubjects(w)...)
		}
	}
}

// running reports a communicator whose ranks are all in the middle of their work,
// as far as they are known.
func running(c *probe.Comm) bool {
	return !slices.ContainsFunc(c.Members, func(m probe.Member) bool { return m.State != "" && m.State != probe.RankTimedOut })
}

// look is what the ranks of a communicator had done at one time.
type look struct {
	at      string // "" = not told, or told by each rank's own clock
	entries []progress
}

type progress struct {
	m *probe.Member
	p *probe.Progress
}

// looksAt sorts what the ranks had done by when that was. Flight recorders each
// have a clock of their own: of them, the latest of each rank is one look.
func looksAt(c *probe.Comm) []look {
	var out []look
	at := map[string]int{}
	add := func(when string, e progress) {
		i, known := at[when]
		if !known {
			i = len(out)
			at[when] = i
			out = append(out, look{at: when})
		}
		out[i].entries = append(out[i].entries, e)
	}
	for i := range c.Members {
		m := &c.Members[i]
		var own *probe.Progress
		for j := range m.Progress {
			p := &m.Progress[j]
			switch {
			case !p.Finished.Known():
				add(p.At, progress{m, p})
			case own == nil || p.At > own.At:
				own = p
			}
		}
		if own != nil {
			add("", progress{m, own})
		}
	}
	slices.SortFunc(out, func(a, b look) int { return strings.Compare(a.at, b.at) })
	return out
}

// waiting lists the ranks that are known to wait in an operation.
func (l look) waiting() []*probe.Member {
	var out []*probe.Member
	for _, e := range l.entries {
		if _, waits := needs(e.p); waits {
			out = append(out, e.m)
		}
	}
	return out
}

// lag is a collective in which ranks are behind.
type lag struct {
	collective string
	upTo       int64 // what the foremost have issued, or wait in
	waits      bool  // they are known to wait in it
	ahead      []*probe.Member
	behind     []progress
	most       int64 // operations that a rank lacks
}

// lags compares the ranks, collective by collective.
func (l look) lags() []lag {
	var names []string
	by := map[string][]progress{}
	for _, e := range l.entries {
		if by[e.p.Collective] == nil {
			names = append(names, e.p.Collective)
		}
		by[e.p.Collective] = append(by[e.p.Collective], e)
	}
	slices.Sort(names)
	var out []lag
	for _, n := range names {
		if g := lagOf(n, by[n]); len(g.behind) > 0 {
			out = append(out, g)
		}
	}
	return out
}

func lagOf(name string, entries []progress) lag {
	g := lag{collective: name}
	for _, e := range entries {
		n, waits := needs(e.p)
		if n > g.upTo {
			g.upTo, g.waits = n, waits
		}
	}
	for _, e := range entries {
		switch n, _ := needs(e.p); {
		case e.p.Issued < g.upTo:
			g.behind = append(g.behind, e)
			g.most = max(g.most, g.upTo-e.p.Issued)
		case n == g.upTo:
			g.ahead = append(g.ahead, e.m)
		}
	}
	return g
}

// needs is the last operation that a rank shows the others must have issued too:
// the one it waits in where it is known what it has finished, else the last that it
// issued itself.
func needs(p *probe.Progress) (n int64, waits bool) {
	done, known := p.Finished.Get()
	switch {
	case !known:
		return p.Issued, false
	case done < p.Issued:
		return done + 1, true
	}
	return 0, false
}

func (a *Across) judgeLag(c *probe.Comm, looks []look, lags []lag) {
	last := looks[len(looks)-1]
	var said []string
	var proof []Evidence
	waits, most := false, int64(0)
	for _, g := range lags {
		waits, most = waits || g.waits, max(most, g.most)
		said = append(said, g.text())
		proof = append(proof, g.proof()...)
	}
	behind, crossed := oddOnes(lags)
	if crossed {
		said = append(said, "so they did not issue the same sequence")
	}
	still, why := stands(c, looks, last)
	f := Finding{
		Severity: Warning, Certainty: Likely, Subjects: a.rankSubjects(behind),
		Expected: "all ranks of a communicator issue the same collectives",
		Observed: commName(c) + ": " + strings.Join(said, "; "),
		Evidence: proof,
	}
	switch {
	case still:
		f.Observed += "; " + why + ". Not proven: whether the rank hangs, works for long or took another branch"
		f.Fix = "who runs the job: take a stack trace of the ranks named first (py-spy dump --pid, gdb -p): there is what they do instead of the collective"
	case most >= 2:
		f.Severity, f.Certainty = Info, Possible
		f.Observed += ". One look does not prove that they stand still"
		f.Fix = fmt.Sprintf("ask again after %d s or more and give both reports: equal counts mean a standstill", standstill)
	case waits:
		a.Gap("ranks have not issued an operation in which others wait, and nothing shows for how long",
			"if the dumps were written at a timeout, these ranks are the ones to look at (py-spy dump --pid); TORCH_NCCL_ENABLE_TIMING=1 puts the time into the next dump", f.Subjects...)
		return
	default:
		return
	}
	a.Report(f)
}

// oddOnes are the ranks to look at. Where ranks are behind in one collective and
// others in another, they are the fewest that are behind together.
func oddOnes(lags []lag) (ranks []*probe.Member, crossed bool) {
	fewest := slices.MinFunc(lags, func(a, b lag) int { return len(a.behind) - len(b.behind) })
	in := make(map[*probe.Member]bool, len(fewest.behind))
	add := func(g lag) {
		for _, e := range g.behind {
			if !in[e.m] {
				in[e.m] = true
				ranks = append(ranks, e.m)
			}
		}
	}
	add(fewest)
	for _, g := range lags {
		crossed = crossed || slices.ContainsFunc(g.ahead, func(m *probe.Member) bool { return in[m] })
	}
	for _, g := range lags {
		if !crossed {
			add(g)
		}
	}
	return ranks, crossed
}

// stands reports that nothing moves, and how that is known.
func stands(c *probe.Comm, looks []look, last look) (bool, string) {
	for i := range c.Members {
		if m := &c.Members[i]; m.State == probe.RankTimedOut {
			return true, fmt.Sprintf("an operation of %s exceeded its timeout", listRanks([]*probe.Member{m}))
		}
	}
	for _, e := range last.entries {
		if s := seconds(e.p.Since, e.p.At); s >= standstill && e.p.Since != "" {
			return true, fmt.Sprintf("%s waits for %.0f s", listRanks([]*probe.Member{e.m}), s)
		}
	}
	for _, early := range looks[:len(looks)-1] {
		if s := seconds(early.at, last.at); s >= standstill && sameCounts(early, last) {
			return true, fmt.Sprintf("no count moved for %.0f s", s)
		}
	}
	return false, ""
}

// sameCounts reports two looks at the same ranks with the same counts.
func sameCounts(a, b look) bool {
	type key struct {
		m          *probe.Member
		collective string
	}
	counts := make(map[key]int64, len(a.entries))
	for _, e := range a.entries {
		counts[key{e.m, e.p.Collective}] = e.p.Issued
	}
	return len(a.entries) == len(b.entries) && !slices.ContainsFunc(b.entries, func(e progress) bool {
		n, known := counts[key{e.m, e.p.Collective}]
		return !known || n != e.p.Issued
	})
}

// text says it as "AllReduce issued: rank 9 up to 3, 15 others up to 10".
func (g lag) text() string {
	name := "operations"
	if g.collective != probe.AllCollectives {
		name = g.collective
	}
	var parts []string
	for _, same := range byIssued(g.behind) {
		parts = append(parts, fmt.Sprintf("%s up to %d", listRanks(same.members), same.issued))
	}
	others := count(len(g.ahead), "other", "others") + " up to"
	if g.waits {
		others = count(len(g.ahead), "other waits in", "others wait in")
	}
	return fmt.Sprintf("%s issued: %s, %s %d", name, strings.Join(parts, ", "), others, g.upTo)
}

type issued struct {
	issued  int64
	members []*probe.Member
}

// byIssued groups ranks by how much they issued, the least first.
func byIssued(list []progress) []issued {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b progress) int { return int(min(max(a.p.Issued-b.p.Issued, -1), 1)) })
	var out []issued
	for _, e := range list {
		if len(out) == 0 || out[len(out)-1].issued != e.p.Issued {
			out = append(out, issued{issued: e.p.Issued})
		}
		g := &out[len(out)-1]
		g.members = append(g.members, e.m)
	}
	return out[:min(len(out), 8)]
}

func (g lag) proof() []Evidence {
	var out []Evidence
	for _, e := range g.behind[:min(len(g.behind), maxProof)] {
		out = append(out, jobEvidence(e.m, fmt.Sprintf("%s: %s issued up to %d", who(e.m), g.collective, e.p.Issued)))
	}
	m := g.ahead[0]
	did := "issued up to"
	if g.waits {
		did = "waits in"
	}
	return append(out, jobEvidence(m, fmt.Sprintf("%s: %s %s %d", who(m), g.collective, did, g.upTo)))
}
