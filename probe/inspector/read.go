package inspector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	versionKey = `"inspector_output_format_version"`
	promMetric = "nccl_bus_bandwidth_gbs{"
	promOther  = "nccl_p2p_bus_bandwidth_gbs{"
)

// Sniff reports whether a text is of the Inspector: JSON lines, or its Prometheus
// file. head may end anywhere.
func Sniff(head []byte) bool {
	text := bytes.TrimLeft(probe.TrimBOM(head), " \t\r\n")
	return bytes.Contains(head, []byte(versionKey)) && bytes.Contains(head, []byte(`"n_ranks"`)) || isProm(text)
}

func isProm(text []byte) bool {
	return bytes.HasPrefix(text, []byte(promMetric)) || bytes.HasPrefix(text, []byte(promOther))
}

// How the plugin begins the parts of a record.
var (
	headerKey = []byte(`{"header":{`)
	metaKey   = []byte(`,"metadata":{`)
	collKey   = []byte(`,"coll_perf":`)
)

// Bounds of what is kept of one file.
const (
	maxMembers = 1 << 16
	maxPoints  = 1 << 16
	maxTimes   = 1 << 20 // different times of all points
)

// Read reads a file of any length; name is its base name. Lines that are cut are
// counted. A file without any record, and the plugin's Prometheus file, are a
// *probe.SyntaxError.
func Read(name string, r io.Reader) (*Dump, error) {
	p := reader{out: &Dump{File: name, Unknown: map[string]int64{}}, comms: map[commKey]*Comm{}, members: map[memberKey]bool{}, points: map[Key]*times{}, timesLeft: maxTimes}
	err := probe.EachLine(r, func(n int, line []byte, cut bool) bool {
		if n == 1 {
			line = probe.TrimBOM(line)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return true
		}
		if n == 1 && isProm(line) {
			p.prom = true
			return false
		}
		p.line(n, line, cut)
		return true
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case p.prom:
		return nil, &probe.SyntaxError{File: name, Msg: "the Inspector's Prometheus file: its message sizes are ranges, from which no sample follows; run with NCCL_INSPECTOR_PROM_DUMP=0, which writes JSON"}
	case p.records == 0:
		return nil, &probe.SyntaxError{File: name, Line: p.out.firstTorn, Msg: "no record of the Inspector"}
	}
	return p.finish(), nil
}

type commKey struct {
	id    string
	ranks int
}

type memberKey struct {
	commKey
	rank int
}

type reader struct {
	out       *Dump
	comms     map[commKey]*Comm
	members   map[memberKey]bool
	points    map[Key]*times
	timesLeft int
	records   int64
	prom      bool
	last      struct { // record with a header
		text   []byte // up to its metadata
		header *header
		comm   commKey
	}
	// The header that holds for the next records, see format v4.3.
	above      *record
	collsLeft  int64
	othersLeft int64
}

type header struct {
	ID    string         `json:"id"`
	Name  string         `json:"comm_name"`
	Rank  int            `json:"rank"`
	Ranks int            `json:"n_ranks"`
	Nodes probe.Opt[int] `json:"nnodes"`
}

type record struct {
	Header *header `json:"header"`
	Meta   *struct {
		Version string         `json:"inspector_output_format_version"`
		Host    string         `json:"hostname"`
		PID     probe.Opt[int] `json:"pid"`
	} `json:"metadata"`
	Coll  *collPerf `json:"coll_perf"`
	P2P   *struct{} `json:"p2p_perf"`
	Proxy *struct{} `json:"proxy_trace"`
	Stats *struct {
		Colls int64  `json:"coll_records"`
		P2P   int64  `json:"p2p_records"`
		Proxy int64  `json:"proxy_records"`
		Lost  uint64 `json:"coll_dropped_since_last_dump"`
	} `json:"dump_stats"`
}

type collPerf struct {
	Name   string  `json:"coll"`
	Algo   string  `json:"coll_algo"`
	Proto  string  `json:"coll_proto"`
	Bytes  int64   `json:"coll_msg_size_bytes"`
	TimeUS float64 `json:"coll_exec_time_us"`
	Timing string  `json:"coll_timing_source"`
	AlgBW  float64 `json:"coll_algobw_gbs"`
	Trace  struct {
		Kernels []struct{} `json:"kernel_events"` // one for each channel
	} `json:"event_trace_sn"`
}

func (p *reader) line(n int, line []byte, cut bool) {
	if perf, ok := p.again(line); ok && !cut {
		p.records++
		p.collective(n, p.last.comm.id, &record{Header: p.last.header, Coll: perf})
		return
	}
	var r record
	if cut || json.Unmarshal(line, &r) != nil {
		p.torn(n)
		p.above = nil // what follows may be of a dump whose header was lost
		return
	}
	if r.Header == nil && !p.inherit(&r) || r.Header.Ranks < 1 || r.Header.Rank < 0 || r.Header.Rank >= r.Header.Ranks {
		p.torn(n)
		return
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(r.Header.ID, "0x"), 16, 64)
	if err != nil {
		p.torn(n)
		return
	}
	p.records++
	comm := commKey{fmt.Sprintf("0x%x", id), r.Header.Ranks}
	p.member(n, comm, &r)
	if i := bytes.Index(line, metaKey); i > 0 && bytes.HasPrefix(line, headerKey) {
		p.last.text, p.last.header, p.last.comm = append(p.last.text[:0], line[:i]...), r.Header, comm
	}
	switch {
	case r.Stats != nil:
		p.stats(&r)
	case r.Coll != nil:
		p.collective(n, comm.id, &r)
	case r.P2P != nil:
		p.out.P2P++
	}
}

// again decodes a record of a collective whose header is that of the record before,
// as most are, without decoding the header: that halves the work.
func (p *reader) again(line []byte) (*collPerf, bool) {
	if len(p.last.text) == 0 || !bytes.HasPrefix(line, p.last.text) {
		return nil, false
	}
	rest := line[len(p.last.text):]
	i := bytes.Index(rest, collKey)
	if !bytes.HasPrefix(rest, metaKey) || i < 0 || !bytes.HasSuffix(rest, []byte("}")) {
		return nil, false
	}
	var c collPerf
	if json.Unmarshal(rest[i+len(collKey):len(rest)-1], &c) != nil {
		return nil, false
	}
	return &c, true
}

func (p *reader) torn(n int) {
	if p.out.Torn++; p.out.firstTorn == 0 {
		p.out.firstTorn = n
	}
}

// stats takes the record that begins a dump of one communicator. From format v4.3
// on the records below have no header of their own.
func (p *reader) stats(r *record) {
	p.out.Overwritten += r.Stats.Lost
	p.above, p.collsLeft, p.othersLeft = r, r.Stats.Colls, r.Stats.P2P+r.Stats.Proxy
}

// inherit gives a record the header above, if that announced it.
func (p *reader) inherit(r *record) bool {
	left := &p.othersLeft
	if r.Coll != nil {
		left = &p.collsLeft
	}
	if p.above == nil || *left <= 0 {
		return false
	}
	*left--
	r.Header, r.Meta = p.above.Header, p.above.Meta
	return true
}

func (p *reader) member(n int, key commKey, r *record) {
	m := memberKey{key, r.Header.Rank}
	if p.members[m] {
		return
	}
	if len(p.members) >= maxMembers {
		p.out.Dropped++
		return
	}
	p.members[m] = true
	c := p.comms[key]
	if c == nil {
		c = &Comm{Line: n, ID: key.id, Ranks: key.ranks, Nodes: r.Header.Nodes}
		if name := probe.OneLine(r.Header.Name, 128); name != unknown {
			c.Name = name
		}
		p.comms[key] = c
	}
	one := Member{Line: n, Rank: r.Header.Rank}
	if r.Meta != nil {
		one.Host, one.PID = probe.OneLine(r.Meta.Host, 255), r.Meta.PID
	}
	c.Members = append(c.Members, one)
}

// unknown is the plugin's word for what it does not know.
const unknown = "unknown"

func (p *reader) collective(n int, comm string, r *record) {
	c := r.Coll
	key := Key{Comm: comm, Collective: probe.OneLine(c.Name, 64), Bytes: c.Bytes, Ranks: r.Header.Ranks, Nodes: r.Header.Nodes.Or(0)}
	switch key.Collective {
	case "AllReduce", "Broadcast", "Reduce":
	case "AllGather", "ReduceScatter":
		if c.Bytes > math.MaxInt64/int64(key.Ranks) {
			p.torn(n)
			return
		}
		key.Bytes *= int64(key.Ranks)
	default:
		if len(p.out.Unknown) < 64 {
			p.out.Unknown[key.Collective]++
		}
		return
	}
	switch {
	case c.Bytes < 0 || key.Nodes < 1 || c.TimeUS < 0 || c.TimeUS > 1e12:
		p.torn(n)
		return
	case c.Timing == "collective_cpu":
		p.out.CPUTimed++
		return
	case c.TimeUS == 0:
		p.out.Untimed++
		return
	case !agrees(key.Bytes, c):
		p.out.Contradictory++
		return
	}
	if c.Algo != unknown {
		key.Algorithm = probe.OneLine(c.Algo, 32)
	}
	if c.Proto != unknown {
		key.Protocol = probe.OneLine(c.Proto, 32)
	}
	if k := len(c.Trace.Kernels); k > 0 {
		key.Channels = probe.Some(k)
	}
	t := p.points[key]
	if t == nil {
		if len(p.points) >= maxPoints {
			p.out.Dropped++
			return
		}
		t = &times{line: n, by: map[float64]int64{}}
		p.points[key] = t
	}
	if !t.add(c.TimeUS, &p.timesLeft) {
		p.out.Dropped++
		return
	}
	p.out.Records++
}

// agrees reports that a record's bandwidth follows from the total size and its
// time, to the microsecond in which the plugin counts; a bandwidth of 0 is not
// stated.
func agrees(total int64, c *collPerf) bool {
	if c.AlgBW == 0 {
		return true
	}
	want := float64(total) / 1e3 / c.AlgBW
	return math.Abs(want-c.TimeUS) <= 1+0.01*c.TimeUS
}

func (p *reader) finish() *Dump {
	d := p.out
	for _, c := range p.comms {
		d.Comms = append(d.Comms, *c)
	}
	for key, t := range p.points {
		if t.count == 0 {
			continue // it came when no room for times was left
		}
		d.Points = append(d.Points, Point{Key: key, Line: t.line, Count: t.count, TimeUS: t.median(), MinUS: t.min})
	}
	slices.SortFunc(d.Comms, func(a, b Comm) int { return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.Ranks, b.Ranks)) })
	slices.SortFunc(d.Points, func(a, b Point) int { return compareKeys(a.Key, b.Key) })
	return d
}
