package nccllog

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

// indented takes texts that begin with a blank, a plus or an equals sign: the
// topology tree, a graph's channels and the tuning table.
func (s *state) indented(r *record, b []byte) bool {
	n := 0
	for n < len(b) && b[n] == ' ' {
		n++
	}
	rest := b[n:]
	if len(rest) == 0 {
		return false
	}
	switch c := rest[0]; {
	case c == '+':
		return s.topoNode(r, b)
	case c == '=' && n == 0:
		return s.system(r, b)
	case isDigit(c):
		return s.order(r, rest)
	case c-'A' < 26 && bytes.IndexByte(rest, '|') > 0:
		return s.tableRow(r, rest)
	}
	return s.info(r, rest)
}

// numbered takes texts that begin with a digit.
func (s *state) numbered(r *record, b []byte) bool {
	_, rest, ok := number(b)
	if !ok {
		return false
	}
	rest = blanks(rest)
	switch {
	case starts(rest, "coll channels"):
		return s.counts(r, b)
	case starts(rest, "Bytes -> "):
		return s.choice(r, nil, b)
	case starts(rest, ": "):
		return s.order(r, b)
	}
	return false
}

// pattern takes "4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, sameChannels 1".
func (s *state) pattern(r *record, b []byte) bool {
	var g Graph
	var ok [6]bool
	rest := b
	g.Pattern, rest, ok[0] = whole(rest)
	full := ok[0]
	for len(rest) > 0 {
		rest = bytes.TrimLeft(rest, ", ")
		var k, v []byte
		k, rest = word(rest)
		v, rest, _ = before(rest, ',')
		switch string(k) {
		case "crossNic":
			g.CrossNIC, _, ok[1] = whole(v)
		case "nChannels":
			g.Channels, _, ok[2] = whole(v)
		case "bw", "speed": // speed up to 2.11
			var inter []byte
			g.BWIntra, inter, ok[3] = decimal(v)
			if inter, more := lit(inter, "/"); more && ok[3] {
				g.BWInter, _, ok[3] = decimal(inter)
			} else {
				ok[3] = false
			}
		case "type":
			intra, inter, both := before(v, '/')
			g.TypeIntra, g.TypeInter, ok[4] = text(intra), text(inter), both
		case "sameChannels":
			n, _, good := whole(v)
			g.SameChans, ok[5] = n != 0, good
		}
	}
	for _, o := range ok {
		full = full && o
	}
	if !full {
		s.log.Torn++
		return true
	}
	t := r.t
	if t == nil {
		return true
	}
	s.endDrafts(t)
	g.First = s.at
	t.graph = &g
	s.current(t)
	return true
}

// noPath takes "Could not find a path for pattern 4, falling back to simple order",
// which stands before the line of that pattern or alone.
func (s *state) noPath(t *thread, b []byte) {
	n, _, ok := whole(b[len("Could not find a path for pattern "):])
	if !ok || t == nil {
		return
	}
	s.endDrafts(t)
	t.noPath = n
}

// order takes " 0 : GPU/0-60 GPU/0-70" behind a pattern.
func (s *state) order(r *record, b []byte) bool {
	_, rest, ok := whole(b)
	rest, ok1 := lit(blanks(rest), ": ")
	if !ok || !ok1 || r.t == nil || r.t.graph == nil {
		return false
	}
	rest = bytes.TrimSpace(rest)
	if !starts(rest, "GPU/") && !starts(rest, "NET/") {
		return false
	}
	g := r.t.graph
	if len(g.Orders) >= maxOrders || s.drafts >= maxDrafts {
		s.dropped["graph channels"]++
		return true
	}
	s.drafts++
	g.Orders = append(g.Orders, text(rest[:min(len(rest), maxNote)]))
	return true
}

// endDrafts keeps what a thread was printing over several lines.
func (s *state) endDrafts(t *thread) {
	if g := t.graph; g != nil {
		t.graph = nil
		s.drafts -= len(g.Orders)
		if t.noPath == g.Pattern {
			g.NoPath, t.noPath = true, 0
		}
		s.graphKey(t, g)
		p, fresh := get(s, &s.graphs, "graphs")
		if p != nil {
			if fresh {
				*p = *g
				p.Host = t.host
			}
			s.count(&p.Seen, t, g.First)
			if in := t.inst; in != nil {
				if len(in.graphs) < 64 {
					in.graphs = append(in.graphs, p)
				} else {
					s.dropped["graphs"]++
				}
			}
		}
	}
	if d := t.topo; d != nil {
		t.topo, t.indents = nil, nil
		s.drafts -= len(d.Nodes) + len(d.Paths)
		s.topoKey(t, d)
		p, fresh := get(s, &s.topologies, "topologies")
		if p == nil {
			return
		}
		if fresh {
			*p = *d
			p.Host = t.host
		}
		s.count(&p.Seen, t, d.First)
	}
}

// count is see for a fact that began at an earlier line.
func (s *state) count(f *Seen, t *thread, line int64) {
	now := s.at
	s.at = line
	if f.Count > 0 {
		f.First = min(f.First, line)
		s.at = max(f.Last, line)
	}
	s.see(f, t)
	s.at = now
}

func (s *state) graphKey(t *thread, g *Graph) {
	s.setKey(t)
	k := s.key
	for _, v := range []int{g.Pattern, g.CrossNIC, g.Channels} {
		k = append(strconv.AppendInt(k, int64(v), 10), 0)
	}
	for _, v := range []float64{g.BWIntra, g.BWInter} {
		k = append(strconv.AppendFloat(k, v, 'g', -1, 64), 0)
	}
	k = append(append(append(k, g.TypeIntra...), '/'), g.TypeInter...)
	k = strconv.AppendBool(strconv.AppendBool(k, g.SameChans), g.NoPath)
	for _, o := range g.Orders {
		k = append(append(k, 0), o...)
	}
	s.key = k
}

func (s *state) topoKey(t *thread, d *Topology) {
	s.setKey(t)
	k := s.key
	for _, v := range []float64{d.MaxBW.Or(-1), d.TotalBW.Or(-1)} {
		k = append(strconv.AppendFloat(k, v, 'g', -1, 64), 0)
	}
	for _, n := range d.Nodes {
		k = strconv.AppendInt(append(k, 0), int64(n.Depth), 10)
		k = append(append(append(k, n.Link...), 0), n.Name...)
		k = append(append(strconv.AppendFloat(append(k, 0), n.GBs, 'g', -1, 64), 0), n.Note...)
	}
	for _, p := range d.Paths {
		k = append(append(append(append(k, 0), p.From...), 0), p.To...)
		k = strconv.AppendInt(append(append(k, 0), p.Class...), int64(p.Hops), 10)
		k = strconv.AppendFloat(append(k, 0), p.GBs, 'g', -1, 64)
	}
	s.key = k
}

// system takes "=== System : maxBw 370.8 totalBw 370.8 ===" and the line that ends the tree.
func (s *state) system(r *record, b []byte) bool {
	rest, ok := lit(b, "=== System : maxBw ")
	if !ok {
		rest, ok = lit(b, "=== System : maxWidth ") // up to 2.13
	}
	if !ok {
		return starts(b, "=====")
	}
	if r.t == nil {
		return true
	}
	s.endDrafts(r.t)
	d := &Topology{Seen: Seen{First: s.at}}
	if v, after, ok := decimal(rest); ok {
		d.MaxBW = probe.Some(v)
		_, after = word(blanks(after))
		if v, _, ok := decimal(after); ok {
			d.TotalBW = probe.Some(v)
		}
	}
	r.t.topo, r.t.indents = d, nil
	return true
}

// topoNode takes "CPU/0-1 (1/1/4)" and "+ PCI[48.0] - GPU/0-60 (0)" with its indent.
func (s *state) topoNode(r *record, b []byte) bool {
	if i := bytes.IndexByte(b, ' '); b[0] == 'C' && i > 0 && i+1 < len(b) && b[i+1] == ':' {
		return s.topoPath(r, b)
	}
	if r.t == nil || r.t.topo == nil {
		return false
	}
	t, d := r.t, r.t.topo
	n := TopoNode{Line: s.at}
	indent := 0
	for indent < len(b) && b[indent] == ' ' {
		indent++
	}
	rest := b[indent:]
	if after, ok := lit(rest, "+ "); ok {
		link, after, ok1 := before(after, '[')
		gbs, after, ok2 := decimal(after)
		after, ok3 := lit(after, "] - ")
		if !ok1 || !ok2 || !ok3 {
			s.log.Torn++
			return true
		}
		n.Link, n.GBs, rest = s.intern(link), gbs, after
		for len(t.indents) > 0 && t.indents[len(t.indents)-1] >= indent {
			t.indents = t.indents[:len(t.indents)-1]
		}
		t.indents = append(t.indents, indent)
		n.Depth = len(t.indents)
	} else {
		t.indents = t.indents[:0]
	}
	name, note := word(rest)
	if bytes.IndexByte(name, '/') < 0 {
		s.log.Torn++
		return true
	}
	n.Name = s.intern(name[:min(len(name), 256)])
	n.Note = text(bytes.Trim(note[:min(len(note), 256)], " ()"))
	if len(d.Nodes) >= maxTopoLines || s.drafts >= maxDrafts {
		s.dropped["topology lines"]++
		return true
	}
	s.drafts++
	d.Nodes = append(d.Nodes, n)
	return true
}

// topoPath takes "GPU/0-60 :GPU/0-60 (0/5000.0/LOC) GPU/0-70 (2/370.8/NVL) ".
func (s *state) topoPath(r *record, b []byte) bool {
	from, rest := word(b)
	rest, ok := lit(rest, ":")
	if !ok {
		return false
	}
	if r.t == nil {
		return true
	}
	if r.t.topo == nil {
		r.t.topo = &Topology{Seen: Seen{First: s.at}}
	}
	d := r.t.topo
	a := s.intern(from[:min(len(from), 256)])
	for rest = blanks(rest); len(rest) > 0; {
		var to, val []byte
		to, rest = word(rest)
		val, rest = word(rest)
		hops, val, ok1 := whole(bytes.TrimPrefix(val, []byte("(")))
		val, ok2 := lit(val, "/")
		gbs, val, ok3 := decimal(val)
		val, ok4 := lit(val, "/")
		class, ok5 := bytes.CutSuffix(val, []byte(")"))
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
			s.log.Torn++
			return true
		}
		if len(d.Paths) >= maxTopoLines || s.drafts >= maxDrafts {
			s.dropped["topology paths"]++
			return true
		}
		s.drafts++
		d.Paths = append(d.Paths, TopoPath{a, s.intern(to[:min(len(to), 256)]), hops, gbs, s.intern(class[:min(len(class), 16)])})
	}
	return true
}

// tableRow takes the rows of the tuning table:
//
//	Algorithm   |   Tree   |   Ring   |   CollNetDirect  |
//	Protocol    |  LL | LL128 | Simple | LL | …
//	 AllReduce  | 8.0/ 61.1 | 16.5/ 180.6 | …
//
// and up to 2.17 one head row "Latency/AlgBw | Tree/ LL | Tree/ LL128 | …".
func (s *state) tableRow(r *record, b []byte) bool {
	name, rest, _ := before(b, '|')
	name = bytes.TrimRight(name, " ")
	t := r.t
	if t == nil {
		return false
	}
	switch string(name) {
	case "Algorithm":
		t.algos = t.algos[:0]
		s.cellsOf(rest, func(c []byte) { t.algos = append(t.algos, s.intern(c)) })
		t.pairs = false
		return true
	case "Latency/AlgBw":
		t.algos = t.algos[:0]
		s.cellsOf(rest, func(c []byte) {
			a, p, _ := before(c, '/')
			t.algos = append(t.algos, s.intern(bytes.TrimSpace(a))+"/"+s.intern(bytes.TrimSpace(p)))
		})
		t.pairs = true
		return true
	case "Protocol", "Max NThreads":
		return true
	}
	if len(t.algos) == 0 || !collective(name) {
		return false
	}
	in := s.current(t)
	i := 0
	fn := s.intern(name)
	protos := [...]string{"LL", "LL128", "Simple"}
	bad := false
	s.cellsOf(rest, func(c []byte) {
		lat, after, ok1 := decimal(c)
		after, ok2 := lit(after, "/")
		bw, after, ok3 := decimal(blanks(after))
		algo, proto := "", ""
		switch {
		case t.pairs && i < len(t.algos):
			before, after, _ := bytes.Cut([]byte(t.algos[i]), []byte("/"))
			algo, proto = s.intern(before), s.intern(after)
		case !t.pairs && i/3 < len(t.algos):
			algo, proto = t.algos[i/3], protos[i%3]
		}
		i++
		if !ok1 || !ok2 || !ok3 || len(after) > 0 || algo == "" {
			bad = true
			return
		}
		if in == nil || !s.room("tuning cells", s.cells, maxCells) {
			return
		}
		s.cells++
		in.cells = append(in.cells, Cell{fn, algo, protoName(proto), lat, bw, s.at})
	})
	if bad {
		s.log.Torn++
	}
	return true
}

// cellsOf calls f for each cell; what follows the last bar is no cell unless the
// table has none there.
func (s *state) cellsOf(b []byte, f func([]byte)) {
	for n := 0; n < 64; n++ {
		c, rest, more := before(b, '|')
		c = bytes.TrimSpace(c)
		if len(c) > 0 {
			f(c)
		}
		if !more {
			return
		}
		b = rest
	}
}

func collective(name []byte) bool {
	switch string(name) {
	case "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce":
		return true
	}
	return false
}

type callKey struct {
	fn                  string
	inst                int32
	count               int64
	typ, op, root, rank int
}

type callCount struct {
	callKey
	Seen
}

// operation takes what was planned, "AllReduce: 8 Bytes -> Algo RING proto LL
// channel{Lo..Hi}={0..0}", and what was called, "AllReduce: opCount 0 …".
func (s *state) operation(r *record, b []byte) bool {
	i := bytes.IndexByte(b[:min(len(b), 40)], ':')
	if i < 0 || i+2 >= len(b) || b[i+1] != ' ' {
		return false
	}
	fn, rest := b[:i], b[i+2:]
	if after, ok := lit(rest, "opCount "); ok {
		return s.call(r, fn, after)
	}
	if isDigit(rest[0]) {
		return s.choice(r, fn, rest)
	}
	return false
}

// choice takes what stands behind the function's name. Equal texts are equal
// choices, so only a new one is read.
func (s *state) choice(r *record, fn, b []byte) bool {
	all := r.text
	c := s.choices[string(all)]
	if c == nil {
		n, rest, ok := number(b)
		rest, ok2 := lit(rest, " Bytes -> ")
		if !ok || !ok2 {
			return false
		}
		if len(s.choices) >= maxKinds || len(all) > 256 {
			s.dropped["choices"]++
			return true
		}
		c = &Choice{Func: text(fn), Bytes: n}
		if !c.read(rest, r.whole) {
			s.log.Torn++
			return true
		}
		s.choices[string(all)] = c
		s.choiceList = append(s.choiceList, c)
	}
	s.see(&c.Seen, r.t)
	return true
}

// read takes "Algo RING proto LL channel{Lo..Hi}={0..0}", "Algo 1 proto 2 time
// 49.67" or "Kernel NAME nchannels 4 …".
func (c *Choice) read(b []byte, complete bool) bool {
	if rest, ok := lit(b, "Kernel "); ok {
		w, rest := word(rest)
		rest, ok := lit(rest, "nchannels ")
		n, _, ok2 := whole(rest)
		if !ok || !ok2 || n < 1 {
			return false
		}
		c.Kernel = text(w)
		c.Lo, c.Hi = probe.Some(0), probe.Some(n-1)
		return true
	}
	b, ok := lit(b, "Algo ")
	algo, rest := word(b)
	rest, ok2 := lit(rest, "proto ")
	proto, rest := word(rest)
	if !ok || !ok2 || len(proto) == 0 {
		return false
	}
	c.Algo, c.Proto = text(algo), text(proto)
	if after, ok := lit(rest, "channel{Lo..Hi}={"); ok {
		lo, after, ok1 := whole(after)
		after, ok2 := lit(after, "..")
		hi, after, ok3 := whole(after)
		_, ok4 := lit(after, "}")
		c.Lo, c.Hi = probe.Some(lo), probe.Some(hi)
		return ok1 && ok2 && ok3 && ok4
	}
	if after, ok := lit(rest, "time "); ok {
		v, after, ok := decimal(after)
		c.TimeUS = probe.Some(v)
		return ok && (complete || len(after) > 0)
	}
	return len(rest) == 0 && complete
}

// call takes "0 sendbuff 0x… recvbuff 0x… count 2 datatype 7 op 0 root 0 comm 0x… [nranks=2] stream 0x…".
// What differs from one call to the next stands in front of the count.
func (s *state) call(r *record, fn, b []byte) bool {
	i := bytes.Index(b, []byte(" count "))
	if i < 0 {
		s.log.Torn++
		return true
	}
	b = b[i+len(" count "):]
	end := bytes.IndexByte(b, ']')
	if end < 0 || end > 256 {
		s.log.Torn++
		return true
	}
	b = b[:end]
	proc := -1
	if r.t != nil {
		proc = r.t.proc
	}
	k := append(append(append(s.key[:0], fn...), 0), b...)
	k = binary.LittleEndian.AppendUint32(k, uint32(proc))
	s.key = binary.LittleEndian.AppendUint32(k, uint32(s.reused))
	c := s.calls[string(s.key)]
	if c == nil {
		if !s.room("calls", len(s.calls), 4*maxKinds) {
			return true
		}
		c = &callCount{}
		ptr, ok := c.read(b)
		if !ok {
			s.log.Torn++
			return true
		}
		c.fn, c.inst = text(fn), -1
		if in := s.byPtr[instKey{proc, ptr}]; in != nil && proc >= 0 {
			c.inst = in.n
		}
		s.calls[string(s.key)] = c
		s.callList = append(s.callList, c)
	}
	s.see(&c.Seen, r.t)
	return true
}

// read takes "2 datatype 7 op 0 root 0 comm 0x… [nranks=2".
func (c *callCount) read(b []byte) (ptr uint64, ok bool) {
	var o [11]bool
	c.count, b, o[0] = number(b)
	b, o[1] = lit(b, " datatype ")
	c.typ, b, o[2] = whole(b)
	b, o[3] = lit(b, " op ")
	c.op, b, o[4] = whole(b)
	b, o[5] = lit(b, " root ")
	c.root, b, o[6] = whole(b)
	b, o[7] = lit(b, " comm ")
	ptr, b, o[8] = hex(b)
	b, o[9] = lit(b, " [nranks=")
	c.rank, b, o[10] = whole(b)
	return ptr, len(b) == 0 && !slices.Contains(o[:], false)
}

// finishCalls joins the calls of the ranks of one communicator and names
// algorithms that old versions number.
func (s *state) finishCalls() {
	type key struct {
		callKey
		id string
	}
	where := map[key]int{}
	l := s.log
	for _, c := range s.callList {
		k := key{callKey: c.callKey}
		if c.inst >= 0 {
			if in := s.insts[c.inst]; in.hasID {
				k.id = hexID(in.id)
			}
		}
		k.inst = 0
		i, ok := where[k]
		if !ok {
			where[k] = len(l.Calls)
			l.Calls = append(l.Calls, Call{Func: c.fn, Count: c.count, DataType: c.typ, RedOp: c.op, Root: c.root, Ranks: c.rank, CommID: k.id, Seen: c.Seen})
			continue
		}
		f := &l.Calls[i].Seen
		f.Last, f.Count = max(f.Last, c.Last), f.Count+c.Count
		f.Procs = append(f.Procs, c.Procs...)
	}
	version := l.onlyVersion()
	for i := range l.Choices {
		c := &l.Choices[i]
		c.Algo, c.Proto = algoName(c.Algo, version), protoName(c.Proto)
	}
}

// algoName spells an algorithm as the rest of ncclmap does. The numbers above 1
// changed their meaning in 2.14.
func algoName(a, version string) string {
	names := [...]string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}
	if n, err := strconv.Atoi(a); err == nil {
		if n == 0 || n == 1 || n > 1 && n < len(names) && version != "" && !olderThan(version, 2, 14) {
			return names[n]
		}
		return a
	}
	switch a {
	case "TREE":
		return "Tree"
	case "RING":
		return "Ring"
	case "COLLNET_DIRECT", "COLLNETDIRECT":
		return "CollNetDirect"
	case "COLLNET_CHAIN", "COLLNETCHAIN":
		return "CollNetChain"
	case "NVLS_TREE", "NVLSTREE":
		return "NVLSTree"
	}
	return a
}

func protoName(p string) string {
	switch p {
	case "0":
		return "LL"
	case "1":
		return "LL128"
	case "2", "SIMPLE":
		return "Simple"
	}
	return p
}
