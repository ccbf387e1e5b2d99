package flightrec

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// Sniff reports whether a text is a dump of the flight recorder, or a pickle of
// one. head may end anywhere.
func Sniff(head []byte) bool {
	json := bytes.HasPrefix(bytes.TrimLeft(probe.TrimBOM(head), " \t\r\n"), []byte("{"))
	if !json && !isPickle(head) {
		return false
	}
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) }
	return has("collective_seq_id") && has("profiling_name") || has("pg_config") && has("pg_status")
}

// isPickle recognises the binary protocols 2 to 5.
func isPickle(head []byte) bool {
	return len(head) > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
}

// Bounds of what is kept of one dump.
const (
	maxGroups = 1 << 16
	maxRanks  = 1 << 20 // over all groups
)

// Read reads a dump of any length; name is the input's base name. A pickle, and
// JSON that is no dump, is cut or faulty, are a *probe.SyntaxError.
func Read(name string, r io.Reader) (*Dump, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if isPickle(head) {
		return nil, &probe.SyntaxError{File: name, Msg: "a pickled flight recorder dump: a pickle can run code when it is opened, so it is not read; " +
			"dump JSON in the job with torch._C._distributed_c10d._dump_nccl_trace_json(), or where you trust the file convert it: " +
			`python3 -c 'import json,pickle,sys; json.dump(pickle.load(sys.stdin.buffer),sys.stdout)' <dump >dump.json`}
	}
	if bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		_, _ = br.Discard(3)
	}
	d := reader{JSONStream: probe.NewJSONStream(name, br), out: &Dump{File: name}, ops: map[string]*ops{}, config: map[string]groupConfig{}}
	if err := d.document(); err != nil {
		return nil, err
	}
	return d.finish()
}

type reader struct {
	*probe.JSONStream
	out    *Dump
	ops    map[string]*ops // by group
	config map[string]groupConfig
	ranks  int
	newest int64
	known  bool // a key that only a dump has was seen
}

// ops is what is kept of a group's collectives. The dump ends with what says which
// ranks the group has.
type ops struct {
	line              int
	last              string
	issued, completed int64
	some              bool // one is completed
	pending           []pending
	groupRank         probe.Opt[int] // told by a send or receive
}

// pending is an operation that was not finished when it was read.
type pending struct {
	seq, created, timeout int64
	retired               bool
}

type groupConfig struct {
	Desc  string  `json:"desc"`
	Ranks intList `json:"ranks"`
}

// intList is a list of numbers, also one that is written as a string.
type intList []int

func (l *intList) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		b = []byte(text)
	}
	return json.Unmarshal(b, (*[]int)(l))
}

func (r *reader) document() error {
	err := r.Object(func(key string) error {
		switch key {
		case "version":
			if err := r.Decode(&r.out.Version); err != nil {
				return err
			}
			if major, _, _ := strings.Cut(r.out.Version, "."); major != "2" {
				return r.Fault("version %q of the flight recorder's dump; known is 2", probe.Excerpt(r.out.Version))
			}
			return nil
		case "nccl_version", "comm_lib_version": // up to 2.9, from 2.10
			err := r.Decode(&r.out.NCCL)
			r.out.NCCL = probe.OneLine(r.out.NCCL, 64)
			return err
		case "pg_config":
			r.known = true
			return r.Object(r.group)
		case "entries":
			r.known = true
			return r.Array(r.entry)
		}
		return r.Skip()
	})
	if err == nil && r.More() {
		r.Line()
		err = r.Fault("text after the document")
	}
	return err
}

func (r *reader) group(name string) error {
	var c groupConfig
	if err := r.Decode(&c); err != nil {
		return err
	}
	if r.ranks += len(c.Ranks); r.ranks > maxRanks || len(r.config) >= maxGroups {
		return r.Fault("more than %d groups or %d ranks", maxGroups, maxRanks)
	}
	if slices.ContainsFunc(c.Ranks, func(r int) bool { return r < 0 }) {
		return r.Fault("a rank below 0")
	}
	c.Desc = probe.OneLine(c.Desc, 128)
	r.config[probe.OneLine(name, 128)] = c
	return nil
}

type entry struct {
	Group     []string `json:"process_group"` // name, description
	Seq       int64    `json:"collective_seq_id"`
	Name      string   `json:"profiling_name"`
	State     string   `json:"state"`
	P2P       bool     `json:"is_p2p"`
	Retired   bool     `json:"retired"`
	Created   int64    `json:"time_created_ns"`
	Started   *int64   `json:"time_discovered_started_ns"`
	Completed *int64   `json:"time_discovered_completed_ns"`
	TimeoutMS int64    `json:"timeout_ms"`
}

func (r *reader) entry() error {
	line := r.Line()
	var e entry
	if err := r.Decode(&e); err != nil {
		return err
	}
	op, isNCCL := strings.CutPrefix(e.Name, "nccl:")
	if !isNCCL || len(e.Group) == 0 {
		r.out.Foreign++
		return nil
	}
	r.newest = max(r.newest, e.Created)
	for _, t := range []*int64{e.Started, e.Completed} {
		if t != nil {
			r.newest = max(r.newest, *t)
		}
	}
	name := probe.OneLine(e.Group[0], 128)
	o := r.ops[name]
	if o == nil {
		if len(r.ops) >= maxGroups {
			return r.Fault("more than %d groups", maxGroups)
		}
		o = &ops{}
		r.ops[name] = o
	}
	if p2p, ok := ownRank(op); ok {
		o.groupRank = probe.Some(p2p)
		return nil
	}
	if !e.P2P {
		o.collective(line, op, e)
	}
	return nil
}

// ownRank is the rank in the group of the process that sends ("send 1->2") or
// receives ("recv 2<-1").
func ownRank(op string) (int, bool) {
	what, ends, _ := strings.Cut(op, " ")
	var own string
	switch what {
	case "send":
		own, _, _ = strings.Cut(ends, "->")
	case "recv":
		own, _, _ = strings.Cut(ends, "<-")
	}
	n, err := strconv.Atoi(own)
	return n, err == nil && n >= 0
}

// maxPending is more than any process has in flight; the oldest count.
const maxPending = 1 << 14

func (o *ops) collective(line int, op string, e entry) {
	if e.Seq >= o.issued {
		o.issued, o.line, o.last = e.Seq, line, probe.OneLine(op, 64)
	}
	if e.State == "completed" {
		if !o.some || e.Seq > o.completed {
			o.completed, o.some = e.Seq, true
		}
		return
	}
	if len(o.pending) >= maxPending {
		o.pending = slices.DeleteFunc(o.pending, func(p pending) bool { return o.some && p.seq <= o.completed })
	}
	if len(o.pending) < maxPending {
		o.pending = append(o.pending, pending{e.Seq, e.Created, e.TimeoutMS, e.Retired})
	}
}

// finish puts groups and operations together.
func (r *reader) finish() (*Dump, error) {
	d := r.out
	if !r.known {
		return nil, &probe.SyntaxError{File: d.File, Msg: "JSON, but no dump of the flight recorder: no pg_config and no entries"}
	}
	if r.newest > 0 {
		d.Newest = time.Unix(0, r.newest)
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.config)) {
		c := r.config[name]
		if len(c.Ranks) == 0 {
			continue
		}
		g := Group{Name: name, Desc: c.Desc, Ranks: c.Ranks}
		if o := r.ops[name]; o != nil {
			used[name] = true
			r.settle(&g, o)
		}
		d.Groups = append(d.Groups, g)
	}
	if len(d.Groups) == 0 && len(r.ops) > 0 {
		return nil, &probe.SyntaxError{File: d.File, Msg: "the dump does not say which ranks its groups have (pg_config)"}
	}
	d.whose(used)
	return d, nil
}

// settle says how far a group has come. A process finishes the collectives of a
// group in their order.
func (r *reader) settle(g *Group, o *ops) {
	g.Line, g.Issued, g.Last = o.line, o.issued, o.last
	if rank, ok := o.groupRank.Get(); ok && rank < len(g.Ranks) {
		r.out.Rank = probe.Some(g.Ranks[rank])
	}
	open := slices.DeleteFunc(o.pending, func(p pending) bool { return o.some && p.seq <= o.completed })
	switch {
	case len(open) > 0:
		first := slices.MinFunc(open, func(a, b pending) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.created, b.created)) })
		g.Finished = probe.Some(first.seq - 1)
		if first.created <= 0 {
			return
		}
		g.Since = time.Unix(0, first.created)
		g.TimedOut = slices.ContainsFunc(open, func(p pending) bool { return p.seq == first.seq && p.retired }) ||
			first.timeout > 0 && (r.newest-first.created)/int64(time.Millisecond) >= first.timeout
	case o.some:
		g.Finished = probe.Some(o.completed)
	}
}
