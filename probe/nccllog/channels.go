package nccllog

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

type connKey struct {
	inst               int32 // -2-proc where no communicator is known, -1 without a process
	from, to           int32
	fromLabel, toLabel uint64
	conn               int8
	dir                uint8
	via                int32
}

type connValue struct {
	channels [maxChannels / 64]uint64
	Seen
}

// channel takes what stands behind "Channel ": a connection
//
//	00/0 : 0[0] -> 1[1] [send] via NET/IB/0
//	00 : 0[1000] -> 1[2000] via SHM/direct/direct
//
// or the order of a ring
//
//	00/24 : 0 1 2 3
func (s *state) channel(r *record, b []byte) bool {
	ch, rest, ok := whole(b)
	if !ok || ch < 0 {
		s.log.Torn++
		return true
	}
	second := -1
	if len(rest) > 0 && rest[0] == '/' {
		if second, rest, ok = whole(rest[1:]); !ok {
			s.log.Torn++
			return true
		}
	}
	rest, ok = lit(blanks(rest), ":")
	rest = blanks(rest)
	if !ok || len(rest) == 0 {
		s.log.Torn++
		return true
	}
	i := 0
	for i < len(rest) && (isDigit(rest[i]) || rest[i] == '-') {
		i++
	}
	if i < len(rest) && rest[i] == '[' {
		if !s.connection(r, ch, second, rest) {
			s.log.Torn++
		}
		return true
	}
	return s.ring(r, ch, second, rest)
}

// connection takes "0[0] -> 1[1] [send] via NET/IB/0".
func (s *state) connection(r *record, ch, conn int, b []byte) bool {
	from, fromLabel, b, ok := peer(b)
	if !ok {
		return false
	}
	if b, ok = lit(b, " -> "); !ok {
		return false
	}
	to, toLabel, b, ok := peer(b)
	if !ok {
		return false
	}
	b = blanks(b)
	k := connKey{from: int32(from), to: int32(to), fromLabel: fromLabel, toLabel: toLabel, conn: int8(min(conn, 127))}
	printer := from
	if rest, ok := lit(b, "[send] "); ok {
		b, k.dir = rest, 1
	} else if rest, ok := lit(b, "[receive] "); ok {
		b, k.dir, printer = rest, 2, to
	}
	if b, ok = lit(b, "via "); !ok {
		return false
	}
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	if k.via = s.transport(b); k.via < 0 {
		return false
	}
	k.inst = -1
	if in := s.ofRank(r.t, printer); in != nil {
		k.inst = in.n
		in.last = s.at
	} else if r.t != nil && r.t.proc >= 0 {
		k.inst = int32(-2 - r.t.proc)
	}
	v := s.conns[k]
	if v == nil {
		if !s.room("connections", len(s.conns), maxConns) {
			return true
		}
		v = &connValue{}
		s.conns[k] = v
		s.connList = append(s.connList, k)
	}
	if ch >= maxChannels {
		s.dropped["channels"]++
	} else if ch >= 0 {
		v.channels[ch/64] |= 1 << (ch % 64)
	}
	s.see(&v.Seen, r.t)
	return true
}

// peer takes "12[1a000]".
func peer(b []byte) (rank int, label uint64, rest []byte, ok bool) {
	if rank, b, ok = whole(b); !ok || rank < 0 || len(b) == 0 || b[0] != '[' {
		return 0, 0, b, false
	}
	if label, b, ok = hex(b[1:]); !ok || len(b) == 0 || b[0] != ']' {
		return 0, 0, b, false
	}
	return rank, label, b[1:], true
}

// transport returns the number of a transport text, -1 where it is torn.
func (s *state) transport(b []byte) int32 {
	if n, ok := s.transports[string(b)]; ok {
		return n
	}
	if len(b) == 0 || len(b) > 256 || !s.room("transports", len(s.transports), maxKinds) {
		return -1
	}
	t, ok := parseTransport(text(b))
	n := int32(-1)
	if ok {
		n = int32(len(s.transportAt))
		s.transportAt = append(s.transportAt, t)
	}
	s.transports[string(b)] = n
	return n
}

// parseTransport reads the part behind "via". ok is false for the begin of
// something longer.
func parseTransport(t string) (Transport, bool) {
	v := Transport{Text: t}
	if t == "direct shared memory" { // up to 2.15
		v.Kind, v.Variant = "SHM", "direct"
		return v, true
	}
	// Another process wrote into the line.
	if strings.Contains(t, " -> ") || strings.Contains(t, "NCCL ") || strings.ContainsRune(t, ':') {
		return v, false
	}
	kind, rest, more := strings.Cut(t, "/")
	parts := strings.Split(rest, "/")
	switch v.Kind = kind; kind {
	case "P2P":
		v.Variant = parts[0]
		known := []string{"direct pointer", "CUMEM", "MNNVL", "IPC", "indirect"}
		if !slices.Contains(known, v.Variant) {
			if prefixOf(v.Variant, known) {
				return v, false
			}
			v.Variant = "" // a later version's, or two that were torn
		}
		for _, p := range parts[1:] {
			switch {
			case p == "read":
				v.Read = true
			case p == "CE":
				v.CE = true
			case v.Variant == "indirect" && !v.Proxy.Known():
				n, _, ok := whole([]byte(p))
				if !ok {
					return v, false
				}
				v.Proxy = probe.Some(n)
			case prefixOf(p, []string{"read", "CE"}):
				return v, false
			}
		}
		return v, true
	case "SHM":
		v.Variant = rest
		v.CE = strings.Contains(rest, "CE")
		last := parts[len(parts)-1]
		return v, last == "CE" || !prefixOf(last, []string{"direct", "CE"}) || last == "direct"
	case "NET", "COLLNET":
		if len(parts) < 2 {
			return v, false
		}
		v.Network = parts[0]
		dev, rest, ok := whole([]byte(parts[1]))
		if !ok {
			return v, false
		}
		v.NetDev = probe.Some(dev)
		if len(rest) > 0 {
			inner, ok := bytes.CutSuffix(rest, []byte(")"))
			if !ok || len(inner) == 0 || inner[0] != '(' {
				return v, false
			}
			if via, ok := intWord(inner[1:]); ok {
				v.Proxy = probe.Some(via)
			}
		}
		for _, p := range parts[2:] {
			switch {
			case p == "GDRDMA":
				v.GDR = true
			case p == "GDRDMA(PCI)":
				v.GDR, v.GDRPCI = true, true
			case strings.EqualFold(p, "shared"):
				v.Shared = true
			case prefixOf(p, []string{"GDRDMA(PCI)", "Shared", "shared"}):
				return v, false
			}
		}
		return v, true
	}
	// A transport of a later version, unless it is made of two names.
	return v, more && len(kind) > 2 && !strings.Contains(kind, "P2P") && !strings.ContainsFunc(kind, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

func prefixOf(s string, of []string) bool {
	return slices.ContainsFunc(of, func(o string) bool { return strings.HasPrefix(o, s) })
}

// ring takes the order of a ring. Long ones are cut with "...".
func (s *state) ring(r *record, ch, of int, b []byte) bool {
	in := s.current(r.t)
	if in == nil {
		if r.t != nil {
			return true
		}
		if in = s.newInstance(nil); in == nil {
			return true
		}
	}
	ring := Ring{Channel: ch, Line: s.at}
	if of > 0 {
		ring.Of = probe.Some(of)
	}
	for len(b) > 0 {
		if b[0] == ' ' {
			b = b[1:]
			continue
		}
		n, rest, ok := whole(b)
		if !ok || n < 0 || len(rest) > 0 && rest[0] != ' ' && rest[0] != '.' {
			ring.Cut = true
			break
		}
		if !s.room("ring ranks", s.ringRank, maxRingRanks) {
			ring.Cut = true
			break
		}
		s.ringRank++
		ring.Ranks = append(ring.Ranks, n)
		b = rest
	}
	if n := len(ring.Ranks); in.bound && n > 0 && (n != in.ranks || slices.Contains(ring.Ranks[:n-1], ring.Ranks[n-1])) {
		ring.Cut = true // its end is missing, or the last number's
	}
	if len(ring.Ranks) == 0 {
		s.log.Torn++
		return true
	}
	if len(in.rings) >= maxChannels {
		s.dropped["rings"]++
		return true
	}
	in.rings = append(in.rings, ring)
	return true
}

// ringLine takes "00 : 1 -> 0 -> 1", and before 2.7 "00 : 0[1a000] -> 1[2b000] via P2P/IPC".
func (s *state) ringLine(r *record, b []byte) bool {
	ch, rest, ok := whole(b)
	if !ok || ch < 0 {
		return false
	}
	rest, ok = lit(blanks(rest), ":")
	rest = blanks(rest)
	if !ok {
		s.log.Torn++
		return true
	}
	prev, after, ok := whole(rest)
	if ok && len(after) > 0 && after[0] == '[' {
		if !s.connection(r, ch, -1, rest) {
			s.log.Torn++
		}
		return true
	}
	after, ok1 := lit(after, " -> ")
	me, after, ok2 := whole(after)
	after, ok3 := lit(after, " -> ")
	next, after, ok4 := whole(after)
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 || me < 0 || !r.whole && len(after) > 0 {
		s.log.Torn++
		return true
	}
	if in := s.current(r.t); in != nil && s.room("ring hops", s.hops, maxHops) {
		s.hops++
		in.hops = append(in.hops, hop{ch, prev, next, s.at})
	}
	return true
}

// trees takes "[0] 1/-1/-1->0->-1 [1] …".
func (s *state) trees(r *record, b []byte) bool {
	in := s.current(r.t)
	for len(b) > 0 {
		b = blanks(b)
		rest, ok := lit(b, "[")
		ch, rest, ok1 := whole(rest)
		rest, ok2 := lit(rest, "] ")
		if !ok || !ok1 || !ok2 || ch < 0 {
			if len(b) > 0 {
				s.log.Torn++
			}
			return true
		}
		var w []byte
		w, b = word(rest)
		if two := bytes.IndexByte(w, '|'); two >= 0 {
			w = w[:two] // both trees, up to 2.7
		}
		n, ok := treeDown(ch, w)
		if !ok || !r.whole && len(b) == 0 && n.Up != -1 && len(w) > 0 && !in.whole(n) {
			s.log.Torn++
			return true
		}
		s.addTree(in, n)
	}
	return true
}

// whole reports that a tree entry at the end of a torn record cannot have lost a
// digit of its last rank.
func (in *instance) whole(n TreeNode) bool {
	return in != nil && in.bound && n.Up*10 >= in.ranks
}

// treeDown reads "1/-1/-1->0->-1".
func treeDown(ch int, b []byte) (TreeNode, bool) {
	n := TreeNode{Channel: ch, Down: [3]int{-1, -1, -1}}
	var ok bool
	for i := range n.Down {
		if n.Down[i], b, ok = whole(b); !ok {
			return n, false
		}
		if b, ok = lit(b, "/"); !ok {
			break
		}
	}
	b, ok1 := lit(b, "->")
	me, b, ok2 := whole(b)
	b, ok3 := lit(b, "->")
	up, b, ok4 := whole(b)
	n.Rank, n.Up = me, up
	return n, ok1 && ok2 && ok3 && ok4 && len(b) == 0 && me >= 0 && up >= -1
}

// treeLine takes "0 : -1 -> 0 -> 1/-1/-1", the other way round than Trees.
func (s *state) treeLine(r *record, b []byte) bool {
	ch, rest, ok := whole(b)
	if !ok || ch < 0 {
		return false
	}
	rest, ok = lit(blanks(rest), ":")
	up, rest, ok1 := whole(blanks(rest))
	rest, ok2 := lit(rest, " -> ")
	me, rest, ok3 := whole(rest)
	rest, ok4 := lit(rest, " -> ")
	if !ok || !ok1 || !ok2 || !ok3 || !ok4 || me < 0 {
		s.log.Torn++
		return true
	}
	n := TreeNode{Channel: ch, Rank: me, Up: up, Down: [3]int{-1, -1, -1}}
	for i := range n.Down {
		if n.Down[i], rest, ok = whole(rest); !ok {
			s.log.Torn++
			return true
		}
		if rest, ok = lit(rest, "/"); !ok {
			break
		}
	}
	s.addTree(s.current(r.t), n)
	return true
}

func (s *state) addTree(in *instance, n TreeNode) {
	if in == nil {
		return
	}
	// Both kinds of line say the same.
	for i := len(in.trees) - 1; i >= 0; i-- {
		if e := &in.trees[i]; e.Channel == n.Channel && e.Rank == n.Rank && e.Up == n.Up && e.Down == n.Down {
			return
		}
	}
	if len(in.trees) >= 2*maxChannels || !s.room("tree entries", s.hops, maxHops) {
		return
	}
	s.hops++
	n.Line = s.at
	in.trees = append(in.trees, n)
}

// collNet takes "00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA".
func (s *state) collNet(r *record, b []byte) bool {
	s.note(r.t, NoteNetwork, append([]byte("CollNet "), b...))
	return true
}

// connected takes "Connected all rings, use ring PXN 0 GDR 1" and its like.
func (s *state) connected(r *record, b []byte) bool {
	if starts(b, "Connected to proxy") {
		return false
	}
	if r.t == nil {
		return true
	}
	rest, ok := lit(b, "Connected all rings")
	if !ok {
		return starts(b, "Connected all trees") || starts(b, "Connected NVLS")
	}
	in := r.t.inst
	if in == nil && r.t.proc >= 0 {
		// The thread that connects late serves one device; so does its rank.
		in = s.latest(r.t, func(in *instance) bool { return in.m.CUDADev == probe.Some(r.dev) })
	}
	if in == nil {
		return true
	}
	in.last, in.m.Rings = s.at, s.at
	if rest, ok = lit(rest, ", use ring PXN "); ok {
		pxn, rest, ok1 := whole(rest)
		rest, ok2 := lit(rest, " GDR ")
		gdr, _, ok3 := whole(rest)
		if ok1 && ok2 && ok3 {
			in.m.RingPXN, in.m.RingGDR = probe.Some(pxn != 0), probe.Some(gdr != 0)
		}
	}
	return true
}

// timings takes " - ncclCommInitRankConfig: rank 0 nranks 2 total 0.52 (kernels 0.43, …)"
// and ": rank 0 …".
func (s *state) timings(r *record, b []byte) bool {
	_, rest, ok := before(b, ':')
	rest, ok1 := lit(blanks(rest), "rank ")
	rank, rest, ok2 := whole(rest)
	i := bytes.Index(rest, []byte("total "))
	end := bytes.LastIndexByte(rest, ')')
	if !ok || !ok1 || !ok2 || i < 0 || end < i {
		s.log.Torn++
		return true
	}
	in := s.ofRank(r.t, rank)
	if in == nil {
		return true
	}
	var list []Timing
	rest = rest[i:end]
	for len(rest) > 0 && len(list) < 16 {
		var w []byte
		w, rest = word(rest)
		sec, after, ok := decimal(rest)
		if !ok {
			s.log.Torn++
			return true
		}
		list = append(list, Timing{s.intern(w), sec})
		rest = bytes.TrimLeft(after, " (,")
	}
	in.m.Timings = list
	return true
}

// counts takes "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer".
func (s *state) counts(r *record, b []byte) bool {
	var c ChannelCounts
	n := 0
	for len(b) > 0 {
		v, rest, ok := whole(b)
		if !ok || v < 0 {
			s.log.Torn++
			return true
		}
		name, more, _ := before(blanks(rest), ',')
		switch string(bytes.TrimRight(name, " ")) {
		case "coll channels":
			c.Coll = probe.Some(v)
		case "collnet channels":
			c.CollNet = probe.Some(v)
		case "nvls channels":
			c.NVLS = probe.Some(v)
		case "p2p channels":
			c.P2P = probe.Some(v)
		case "p2p channels per peer":
			c.P2PPerPeer = probe.Some(v)
		default:
			s.log.Torn++
			return true
		}
		n++
		b = blanks(more)
	}
	if in := s.current(r.t); in != nil && n > 1 {
		in.m.Counts = c
	}
	return true
}

// spreadConns gives the connections to their communicators; at is the index of
// each in Log.Comms.
func (s *state) spreadConns(at map[*group]int) {
	l := s.log
	type key struct {
		comm, from, to     int
		fromLabel, toLabel uint64
		conn               int8
		dir                uint8
		via                int32
	}
	where := map[key]int{}
	for _, k := range s.connList {
		v := s.conns[k]
		comm := -1
		c := &l.Loose
		if k.inst >= 0 {
			if g := s.insts[k.inst].group; g != nil {
				comm = at[g]
				c = &l.Comms[comm]
			}
		}
		mk := key{comm, int(k.from), int(k.to), k.fromLabel, k.toLabel, k.conn, k.dir, k.via}
		i, ok := where[mk]
		if !ok {
			i = len(c.Conns)
			where[mk] = i
			con := Connection{
				From: Peer{Rank: int(k.from), Label: strconv.FormatUint(k.fromLabel, 16)},
				To:   Peer{Rank: int(k.to), Label: strconv.FormatUint(k.toLabel, 16)},
				Via:  s.transportAt[k.via],
				Dir:  [...]string{"", DirSend, DirReceive}[k.dir],
				Seen: v.Seen,
			}
			if k.conn >= 0 {
				con.Conn = probe.Some(int(k.conn))
			}
			c.Conns = append(c.Conns, con)
		} else {
			f := &c.Conns[i].Seen
			f.First, f.Last, f.Count = min(f.First, v.First), max(f.Last, v.Last), f.Count+v.Count
			f.Procs = append(f.Procs, v.Procs...)
		}
		con := &c.Conns[i]
		for w, set := range v.channels {
			for ; set != 0; set &= set - 1 {
				con.Channels = append(con.Channels, w*64+bits.TrailingZeros64(set))
			}
		}
	}
	for i := range l.Comms {
		nameEnds(&l.Comms[i])
	}
	nameEnds(&l.Loose)
}

// nameEnds says of each label whether it is an index or a bus id, and sorts.
func nameEnds(c *Comm) {
	members := map[int]*Member{}
	for i := range c.Members {
		if m := &c.Members[i]; members[m.Rank] == nil {
			members[m.Rank] = m
		}
	}
	for i := range c.Conns {
		con := &c.Conns[i]
		for _, p := range []*Peer{&con.From, &con.To} {
			p.name(members[p.Rank], c.NCCL)
		}
		slices.Sort(con.Channels)
		con.Channels = slices.Compact(con.Channels)
		slices.Sort(con.Procs)
		con.Procs = slices.Compact(con.Procs)
	}
	slices.SortStableFunc(c.Conns, func(a, b Connection) int {
		return cmp.Or(a.From.Rank-b.From.Rank, a.To.Rank-b.To.Rank, cmp.Compare(a.Conn.Or(-1), b.Conn.Or(-1)),
			cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Via.Text, b.Via.Text))
	})
}

func (p *Peer) name(m *Member, nccl string) {
	index, err := strconv.Atoi(p.Label)
	isIndex := err == nil
	bus, _ := strconv.ParseUint(p.Label, 16, 64)
	if m != nil {
		dev, known := m.NVMLDev.Get()
		fits := known && isIndex && dev == index
		if id, ok := m.BusID.Get(); ok && id == bus && !fits {
			p.BusID = probe.Some(bus)
			return
		}
		if fits {
			p.NVML = probe.Some(index)
			return
		}
	}
	switch {
	case len(p.Label) > 3 || !isIndex:
		p.BusID = probe.Some(bus)
	case nccl == "":
	case olderThan(nccl, 2, 18, 5):
		p.BusID = probe.Some(bus)
	default:
		p.NVML = probe.Some(index)
	}
}

// olderThan compares a version "2.18.5"; one that does not read is not older.
func olderThan(v string, want ...int) bool {
	parts := strings.Split(v, ".")
	for i, w := range want {
		if i >= len(parts) {
			return true
		}
		n, _, ok := whole([]byte(parts[i]))
		if !ok || n > w {
			return false
		}
		if n < w {
			return true
		}
	}
	return false
}
