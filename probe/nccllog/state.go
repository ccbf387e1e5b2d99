package nccllog

import (
	"slices"
	"strings"
)

// Caps of what is kept. They are far above any job's real logs; what goes over
// one is counted in Log.Dropped.
const (
	maxProcs     = 1 << 14
	maxHosts     = 1 << 13
	maxThreads   = 1 << 16
	maxInstances = 1 << 15
	maxConns     = 1 << 18
	maxKinds     = 1 << 14 // distinct facts of one kind
	maxTopoLines = 1 << 12 // of one print-out
	maxOrders    = 1 << 7  // channels of one graph
	maxHops      = 1 << 18 // rings' and trees' entries of all ranks
	maxRingRanks = 1 << 20 // of all ring orders
	maxCells     = 1 << 15
	maxSeenProcs = 1 << 8 // processes that one fact names
	maxChannels  = 128
	maxNote      = 1 << 10 // bytes
	maxPart      = 1 << 12 // bytes of a text that tell it from others
	maxKept      = 1 << 26 // bytes of all texts
	maxDrafts    = 1 << 18 // lines of print-outs that have not ended
)

type procKey struct {
	host string
	pid  int
}

// state is a reading in progress.
type state struct {
	log     *Log
	at      int64 // line
	cut     bool  // the line is the head of a longer one
	escapes bool  // an escape character was seen
	escaped []byte
	rec     record
	key     []byte

	cache      [512]*thread // by pid and tid
	threads    map[threadKey]*thread
	threadList []*thread
	procs      map[procKey]int
	hosts      []string
	names      map[string]string
	dropped    map[string]int64
	matrix     int // lines of a matrix that may follow

	versions   bag[Version]
	networks   bag[Network]
	ibLists    bag[IBList]
	ibDevices  bag[IBDevice]
	interfaces bag[Interface]
	gdr        bag[GDR]
	gdrPairs   bag[GDRPair]
	env        bag[Env]
	topologies bag[Topology]
	fabrics    bag[Fabric]
	warnings   bag[Warning]
	unwinds    bag[Unwind]
	notes      bag[Note]
	graphs     bag[Graph]

	choices     map[string]*Choice // by text
	choiceList  []*Choice
	calls       map[string]*callCount // by process and the part of the text that repeats
	reused      int32                 // communicator pointers that were used again
	callList    []*callCount
	transports  map[string]int32
	transportAt []Transport

	insts    []*instance
	byPtr    map[instKey]*instance
	groups   []*group
	byID     map[groupKey]*group
	byProc   map[int][]*instance
	conns    map[connKey]*connValue
	connList []connKey
	kept     int // bytes of keys
	drafts   int // lines in threads' print-outs
	hops     int
	ringRank int
	cells    int
}

func newState(name string) *state {
	return &state{
		log:        &Log{Name: name},
		threads:    map[threadKey]*thread{},
		procs:      map[procKey]int{},
		names:      map[string]string{},
		dropped:    map[string]int64{},
		choices:    map[string]*Choice{},
		calls:      map[string]*callCount{},
		transports: map[string]int32{},
		byPtr:      map[instKey]*instance{},
		byID:       map[groupKey]*group{},
		byProc:     map[int][]*instance{},
		conns:      map[connKey]*connValue{},
	}
}

// room reports whether one more fits, and counts what does not.
func (s *state) room(what string, n, limit int) bool {
	if n < limit {
		return true
	}
	s.dropped[what]++
	return false
}

// intern keeps one copy of a short name.
func (s *state) intern(b []byte) string {
	if n, ok := s.names[string(b)]; ok {
		return n
	}
	n := text(b)
	if len(s.names) < maxKinds && len(n) <= 256 {
		s.names[n] = n
	}
	return n
}

func (s *state) proc(host string, pid int) int {
	k := procKey{host, pid}
	if p, ok := s.procs[k]; ok {
		return p
	}
	if !s.room("processes", len(s.log.Procs), maxProcs) {
		return -1
	}
	p := len(s.log.Procs)
	s.procs[k] = p
	s.log.Procs = append(s.log.Procs, Proc{Host: host, PID: pid, First: s.at})
	if len(s.hosts) < maxHosts && !slices.Contains(s.hosts, host) {
		s.hosts = append(s.hosts, host)
	}
	return p
}

// procOf returns the process of a thread, nil where it is not kept.
func (s *state) procOf(t *thread) *Proc {
	if t == nil || t.proc < 0 {
		return nil
	}
	return &s.log.Procs[t.proc]
}

// see counts one more sight of a fact.
func (s *state) see(f *Seen, t *thread) {
	if f.Count == 0 {
		f.First = s.at
		if t != nil {
			f.Host = t.host
		}
	}
	f.Last = s.at
	f.Count++
	if t == nil || t.proc < 0 {
		return
	}
	if n := len(f.Procs); n > 0 && f.Procs[n-1] == t.proc || n >= maxSeenProcs || slices.Contains(f.Procs, t.proc) {
		return
	}
	f.Procs = append(f.Procs, t.proc)
}

// bag keeps one copy of each fact of a kind, found by a key.
type bag[T any] struct {
	index map[string]*T
	list  []*T
}

// get returns the fact with the key that stands in s.key, or a new one; nil
// where the kind is full.
func get[T any](s *state, b *bag[T], what string) (fact *T, fresh bool) {
	if f, ok := b.index[string(s.key)]; ok {
		return f, false
	}
	if !s.room(what, len(b.list), maxKinds) || !s.room(what, s.kept+len(s.key), maxKept) {
		return nil, false
	}
	s.kept += len(s.key)
	if b.index == nil {
		b.index = map[string]*T{}
	}
	f := new(T)
	b.index[string(s.key)] = f
	b.list = append(b.list, f)
	return f, true
}

func (b *bag[T]) values() []T {
	if len(b.list) == 0 {
		return nil
	}
	out := make([]T, len(b.list))
	for i, f := range b.list {
		out[i] = *f
	}
	return out
}

// setKey makes s.key of the host and some texts.
func (s *state) setKey(t *thread, parts ...[]byte) {
	s.key = s.key[:0]
	if t != nil {
		s.key = append(s.key, t.host...)
	}
	for _, p := range parts {
		s.key = append(append(s.key, 0), p[:min(len(p), maxPart)]...)
	}
}

func (s *state) note(t *thread, class string, b []byte) {
	s.setKey(t, b)
	s.key = append(append(s.key, 0), class...)
	if n, fresh := get(s, &s.notes, "notes"); n != nil {
		if fresh {
			n.Class, n.Text = class, text(b[:min(len(b), maxNote)])
		}
		s.see(&n.Seen, t)
	}
}

// firsts orders what maps gave in no order.
func firsts[T any](list []T, first func(*T) int64) {
	slices.SortStableFunc(list, func(a, b T) int {
		x, y := first(&a), first(&b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

func (s *state) drops() []Drop {
	var out []Drop
	for what, n := range s.dropped {
		out = append(out, Drop{what, n})
	}
	slices.SortFunc(out, func(a, b Drop) int { return strings.Compare(a.What, b.What) })
	return out
}
