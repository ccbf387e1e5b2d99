package nccllog

import (
	"bytes"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// instance is one rank of one communicator while it is read. Before NCCL 2.18
// the line that names the rank comes last, so an instance may be without one.
type instance struct {
	n     int32 // in state.insts
	m     Member
	ranks int
	id    uint64
	hasID bool
	bound bool // a communicator line named it
	done  bool // Init COMPLETE was seen
	group *group
	first int64
	last  int64

	graphs []*Graph
	rings  []Ring
	trees  []TreeNode
	hops   []hop
	cells  []Cell
}

// hop is a rank's place in a ring.
type hop struct {
	channel, prev, next int
	line                int64
}

type instKey struct {
	proc int
	ptr  uint64
}

type groupKey struct {
	id    uint64
	ranks int
}

// group is a communicator.
type group struct {
	id      uint64
	hasID   bool
	ranks   int
	insts   []*instance
	guessed bool
}

func (s *state) newInstance(t *thread) *instance {
	if !s.room("ranks", len(s.insts), maxInstances) {
		return nil
	}
	in := &instance{n: int32(len(s.insts)), first: s.at, last: s.at}
	in.m.Rank, in.m.Proc = -1, -1
	if t != nil {
		in.m.Host, in.m.PID, in.m.Proc = t.host, t.pid, t.proc
	}
	s.insts = append(s.insts, in)
	return in
}

// current returns the rank that a thread sets up. A line of the set-up after its
// end begins another communicator, whose rank is not known yet.
func (s *state) current(t *thread) *instance {
	if t == nil {
		return nil
	}
	if t.inst == nil || t.inst.done {
		t.inst = s.newInstance(t)
	}
	if t.inst != nil {
		t.inst.last = s.at
	}
	return t.inst
}

// ofRank returns the latest communicator of a process in which it has a rank.
func (s *state) ofRank(t *thread, rank int) *instance {
	if t == nil {
		return nil
	}
	if t.inst != nil && (!t.inst.bound || t.inst.m.Rank == rank) {
		return t.inst
	}
	if t.proc < 0 {
		return nil
	}
	return s.latest(t, func(in *instance) bool { return in.m.Rank == rank })
}

// latest returns the youngest communicator of a thread's process that fits. It
// looks at as many as a process has at one time.
func (s *state) latest(t *thread, fits func(*instance) bool) *instance {
	list := s.byProc[t.proc]
	for i := len(list) - 1; i >= max(0, len(list)-1024); i-- {
		if fits(list[i]) {
			return list[i]
		}
	}
	return nil
}

// commLine is what stands behind "comm 0x…".
type commLine struct {
	ptr                                        uint64
	rank, ranks                                int
	cudaDev, nvmlDev, nodes, localRank, locals probe.Opt[int]
	busID, id, parent                          probe.Opt[uint64]
	mnnvl                                      probe.Opt[bool]
	end                                        []byte // Init START
}

// parseComm reads the words behind "comm ". ok is false unless pointer, rank and
// number of ranks are there.
func parseComm(b []byte) (c commLine, ok bool) {
	c.rank = -1
	if c.ptr, b, ok = hex(b); !ok {
		return c, false
	}
	b = blanks(b)
	shape := false // nRanks: the line with the numbers of nodes and local ranks
	for len(b) > 0 {
		var name []byte
		if name, b = word(b); len(name) == 1 && name[0] == '-' {
			c.end = bytes.TrimRight(b, " ")
			break
		}
		v, rest := word(b)
		switch string(name) {
		case "rank":
			if c.rank, ok = intWord(v); !ok || c.rank < 0 {
				return c, false
			}
		case "nranks", "nRanks":
			if c.ranks, ok = intWord(v); !ok || c.ranks < 1 {
				return c, false
			}
			shape = name[1] == 'R'
		case "cudaDev":
			setInt(&c.cudaDev, v)
		case "nvmlDev":
			setInt(&c.nvmlDev, v)
		case "nNodes":
			setInt(&c.nodes, v)
		case "localRanks":
			setInt(&c.locals, v)
		case "localRank":
			setInt(&c.localRank, v)
		case "MNNVL":
			if n, ok := intWord(v); ok {
				c.mnnvl = probe.Some(n != 0)
			}
		case "busId":
			setHex(&c.busID, v)
		case "commId":
			setHex(&c.id, v)
		case "parent":
			setHex(&c.parent, v)
		case "splitCount", "childCount", "color", "key":
		default:
			continue
		}
		b = rest
	}
	switch string(c.end) {
	case "":
		ok = shape // the others lost their end, and perhaps digits of it
	case "Init START", "Init COMPLETE", "Abort START", "Abort COMPLETE", "Destroy COMPLETE":
		ok = true
	default:
		ok = false
	}
	return c, ok && c.rank >= 0 && c.ranks >= 1 && c.rank < c.ranks
}

func intWord(b []byte) (int, bool) {
	v, rest, ok := whole(b)
	return v, ok && len(rest) == 0
}

func setInt(o *probe.Opt[int], b []byte) {
	if v, ok := intWord(b); ok && v >= 0 {
		*o = probe.Some(v)
	}
}

func setHex(o *probe.Opt[uint64], b []byte) {
	if v, rest, ok := hex(b); ok && len(rest) == 0 {
		*o = probe.Some(v)
	}
}

func setKnown[T any](o *probe.Opt[T], v probe.Opt[T]) {
	if v.Known() {
		*o = v
	}
}

// comm takes a communicator line.
func (s *state) comm(r *record, api, b []byte) {
	c, ok := parseComm(b)
	if !ok {
		s.log.Torn++
		return
	}
	t := r.t
	if t == nil {
		t = &thread{proc: -1} // a line that lost its begin: good for itself
	}
	end := string(c.end)
	in := s.byPtr[instKey{t.proc, c.ptr}]
	if t.proc < 0 {
		in = nil
	}
	if in != nil && (in.m.Rank != c.rank || in.ranks != c.ranks ||
		c.id.Known() && in.hasID && c.id.Or(0) != in.id ||
		end == "Init START" && in.m.Started > 0 ||
		in.m.Destroyed > 0 && end != "Destroy COMPLETE") {
		in = nil // the pointer was used again
		s.reused++
	}
	if in == nil {
		if t.inst != nil && !t.inst.bound && !t.inst.done && end != "Init START" {
			in = t.inst
		} else {
			in = s.newInstance(t)
		}
		if in == nil {
			return
		}
		in.bound, in.ranks, in.m.Rank, in.m.Pointer = true, c.ranks, c.rank, c.ptr
		if t.proc >= 0 {
			s.byPtr[instKey{t.proc, c.ptr}] = in
			s.byProc[t.proc] = append(s.byProc[t.proc], in)
		}
	}
	in.last = s.at
	if len(api) > 0 {
		in.m.API = s.intern(api)
	}
	setKnown(&in.m.CUDADev, c.cudaDev)
	setKnown(&in.m.NVMLDev, c.nvmlDev)
	setKnown(&in.m.BusID, c.busID)
	setKnown(&in.m.Nodes, c.nodes)
	setKnown(&in.m.LocalRank, c.localRank)
	setKnown(&in.m.LocalRanks, c.locals)
	setKnown(&in.m.MNNVL, c.mnnvl)
	setKnown(&in.m.Parent, c.parent)
	if id, ok := c.id.Get(); ok && !in.hasID {
		in.id, in.hasID = id, true
	}
	switch end {
	case "Init START":
		in.m.Started = s.at
		t.inst = in
	case "Init COMPLETE":
		in.m.Completed, in.done = s.at, true
		t.inst = in
	case "Abort START", "Abort COMPLETE":
		in.m.Aborted = s.at
	case "Destroy COMPLETE":
		in.m.Destroyed = s.at
	case "":
		if t.inst == nil || t.inst.done {
			t.inst = in
		}
	}
}

// join puts the ranks into communicators. Those without an id are put together
// by size: the first communicator that lacks the rank takes it, so the n-th time
// that a rank appears it belongs to the n-th one.
func (s *state) join() {
	type place struct{ ranks, rank int }
	times := map[place]int{}
	guessed := map[int][]*group{}
	for _, in := range s.insts {
		switch {
		case !in.bound:
		case in.hasID:
			k := groupKey{in.id, in.ranks}
			g := s.byID[k]
			if g == nil {
				g = &group{id: in.id, hasID: true, ranks: in.ranks}
				s.byID[k] = g
				s.groups = append(s.groups, g)
			}
			g.insts = append(g.insts, in)
			in.group = g
		default:
			p := place{in.ranks, in.m.Rank}
			n := times[p]
			times[p]++
			if n == len(guessed[in.ranks]) {
				g := &group{ranks: in.ranks, guessed: true}
				s.groups = append(s.groups, g)
				guessed[in.ranks] = append(guessed[in.ranks], g)
			}
			in.group = guessed[in.ranks][n]
			in.group.insts = append(in.group.insts, in)
		}
	}
}

// finish makes the Log of what was read.
func (s *state) finish() *Log {
	l := s.log
	l.Lines = s.at
	for _, t := range s.threadList {
		s.endDrafts(t)
	}
	s.join()
	l.Versions = s.versions.values()
	l.Networks = s.networks.values()
	l.IBLists = s.ibLists.values()
	l.IBDevices = s.ibDevices.values()
	l.Interfaces = s.interfaces.values()
	l.GDR = s.gdr.values()
	l.GDRPairs = s.gdrPairs.values()
	l.Env = s.env.values()
	l.Topologies = s.topologies.values()
	firsts(l.Topologies, func(t *Topology) int64 { return t.First })
	l.Fabrics = s.fabrics.values()
	l.Warnings = s.warnings.values()
	l.Unwinds = s.unwinds.values()
	l.Notes = s.notes.values()
	for _, c := range s.choiceList {
		l.Choices = append(l.Choices, *c)
	}
	for i, b := range l.IBLists {
		for _, p := range b.Procs {
			l.Procs[p].IBLists = append(l.Procs[p].IBLists, i)
		}
	}
	at := make(map[*group]int, len(s.groups))
	for i, g := range s.groups {
		at[g] = i
		l.Comms = append(l.Comms, s.commOf(g.insts, g))
	}
	var loose []*instance
	for _, in := range s.insts {
		if in.group == nil {
			loose = append(loose, in)
		}
	}
	l.Loose = s.commOf(loose, nil)
	l.Loose.Members = nil
	s.spreadConns(at)
	s.finishCalls()
	firsts(l.Comms, func(c *Comm) int64 { return c.First })
	l.Dropped = s.drops()
	return l
}

// agree returns what all that know say; unknown where they differ.
func agree[T comparable](list []*instance, of func(*Member) probe.Opt[T]) (v probe.Opt[T]) {
	for _, in := range list {
		x := of(&in.m)
		switch {
		case !x.Known():
		case !v.Known():
			v = x
		case v != x:
			return probe.Opt[T]{}
		}
	}
	return v
}

func (s *state) commOf(insts []*instance, g *group) Comm {
	var c Comm
	if g != nil {
		c.Ranks, c.Guessed = g.ranks, g.guessed
		if g.hasID {
			c.ID = hexID(g.id)
		}
		c.Nodes = agree(insts, func(m *Member) probe.Opt[int] { return m.Nodes })
		c.MNNVL = agree(insts, func(m *Member) probe.Opt[bool] { return m.MNNVL })
		c.Counts = ChannelCounts{
			Coll:       agree(insts, func(m *Member) probe.Opt[int] { return m.Counts.Coll }),
			CollNet:    agree(insts, func(m *Member) probe.Opt[int] { return m.Counts.CollNet }),
			NVLS:       agree(insts, func(m *Member) probe.Opt[int] { return m.Counts.NVLS }),
			P2P:        agree(insts, func(m *Member) probe.Opt[int] { return m.Counts.P2P }),
			P2PPerPeer: agree(insts, func(m *Member) probe.Opt[int] { return m.Counts.P2PPerPeer }),
		}
	}
	c.NCCL = s.versionOf(insts)
	graphs := map[*Graph]int{}
	for _, in := range insts {
		if c.First == 0 || in.first < c.First {
			c.First = in.first
		}
		c.Last = max(c.Last, in.last)
		c.Members = append(c.Members, in.m)
		c.Rings = append(c.Rings, in.rings...)
		c.Trees = append(c.Trees, in.trees...)
		c.Tuning = append(c.Tuning, in.cells...)
		for _, gr := range in.graphs {
			i, ok := graphs[gr]
			if !ok {
				i = len(c.Graphs)
				graphs[gr] = i
				c.Graphs = append(c.Graphs, *gr)
			}
			if in.bound {
				c.Graphs[i].Ranks = append(c.Graphs[i].Ranks, in.m.Rank)
			}
		}
	}
	for i := range c.Graphs {
		r := c.Graphs[i].Ranks
		slices.Sort(r)
		c.Graphs[i].Ranks = slices.Compact(r)
	}
	slices.SortStableFunc(c.Members, func(a, b Member) int { return a.Rank - b.Rank })
	slices.SortStableFunc(c.Trees, func(a, b TreeNode) int {
		if a.Channel != b.Channel {
			return a.Channel - b.Channel
		}
		return a.Rank - b.Rank
	})
	c.Trees = slices.CompactFunc(c.Trees, func(a, b TreeNode) bool {
		return a.Channel == b.Channel && a.Rank == b.Rank && a.Up == b.Up && a.Down == b.Down
	})
	if g != nil {
		c.Rings = append(c.Rings, joinHops(insts, c.Rings, g.ranks)...)
	}
	slices.SortStableFunc(c.Rings, func(a, b Ring) int { return a.Channel - b.Channel })
	return c
}

// joinHops makes rings of what each rank says about its neighbours, for channels
// whose order was not printed whole.
func joinHops(insts []*instance, known []Ring, ranks int) []Ring {
	type place struct {
		next int
		line int64
	}
	rings := map[int]map[int]place{}
	for _, in := range insts {
		for _, h := range in.hops {
			if rings[h.channel] == nil {
				rings[h.channel] = map[int]place{}
			}
			rings[h.channel][in.m.Rank] = place{h.next, h.line}
		}
	}
	for _, r := range known {
		if !r.Cut {
			delete(rings, r.Channel)
		}
	}
	var out []Ring
	for ch, ring := range rings {
		if len(ring) != ranks {
			continue
		}
		r := Ring{Channel: ch, Joined: true, Line: ring[0].line}
		for at := 0; len(r.Ranks) < ranks; at = ring[at].next {
			if _, ok := ring[at]; !ok || len(r.Ranks) > 0 && at == 0 {
				break
			}
			r.Ranks = append(r.Ranks, at)
		}
		if len(r.Ranks) == ranks && ring[r.Ranks[ranks-1]].next == 0 {
			out = append(out, r)
		}
	}
	return out
}

// versionOf returns the NCCL version of some ranks: what their processes printed
// or, as often rank 0 alone prints it, the only one in the log.
func (s *state) versionOf(insts []*instance) string {
	seen := ""
	for _, in := range insts {
		if in.m.Proc < 0 {
			continue
		}
		v := s.log.Procs[in.m.Proc].NCCL
		if v != "" && seen != "" && v != seen {
			return ""
		}
		if v != "" {
			seen = v
		}
	}
	if seen == "" {
		seen = s.log.onlyVersion()
	}
	return seen
}

// onlyVersion returns the version if the log names exactly one.
func (l *Log) onlyVersion() string {
	v := ""
	for _, x := range l.Versions {
		if v != "" && x.NCCL != v {
			return ""
		}
		v = x.NCCL
	}
	return v
}
