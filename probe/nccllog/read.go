package nccllog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Sniff reports whether a text holds a line of an NCCL log. head may end in the
// middle of a line.
func Sniff(head []byte) bool {
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		head = rest
		if bytes.IndexByte(line, 0x1b) >= 0 {
			line = plain(nil, line)
		}
		if isBareWarning(line) || bareConnection(line) != nil {
			return true
		}
		for from := 0; ; {
			i := bytes.Index(line[from:], []byte("NCCL "))
			if i < 0 {
				break
			}
			at := from + i
			if level(line[at+5:]) != 0 {
				if e, ok := findEnvelope(line, 0, at); ok && (e.hasHost || e.loc != nil) {
					return true
				}
			}
			if _, ok := bareVersion(line, at); ok {
				return true
			}
			from = at + 5
		}
	}
	return false
}

// Read reads a log to its end; name is the input's base name. The only errors
// are those of r: a text without an NCCL record gives a Log with Records 0.
// Memory is bounded however long the input is.
func Read(name string, r io.Reader) (*Log, error) {
	s := newState(name)
	buf := make([]byte, 64<<10)
	start, end := 0, 0
	skipping := false // inside a line over probe.MaxLine
	for empty := 0; ; {
		n, err := r.Read(buf[end:])
		if n < 0 || n > len(buf)-end {
			return nil, fmt.Errorf("%s: reader returned an impossible count", name)
		}
		// Once for the block, as most logs have none.
		s.escapes = s.escapes || bytes.IndexByte(buf[end:end+n], 0x1b) >= 0
		end += n
		for {
			i := bytes.IndexByte(buf[start:end], '\n')
			if i < 0 {
				break
			}
			if skipping {
				skipping = false
			} else {
				s.line(buf[start : start+i])
			}
			start += i + 1
		}
		if skipping {
			start = end
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if start < end {
				s.line(buf[start:end])
			}
			return s.finish(), nil
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty > 100 {
			return nil, fmt.Errorf("%s: %w", name, io.ErrNoProgress)
		}
		if end < len(buf) {
			continue
		}
		copy(buf, buf[start:end])
		start, end = 0, end-start
		if end < len(buf) {
			continue
		}
		if len(buf) < probe.MaxLine {
			buf = append(buf, make([]byte, min(len(buf), probe.MaxLine-len(buf)))...)
			continue
		}
		s.cut = true
		s.line(buf)
		s.cut = false
		s.log.CutLong++
		skipping, end = true, 0
	}
}

// Levels of a record.
const (
	levelInfo = iota + 1
	levelWarn
	levelTrace
	levelCall
	levelDiag
)

// level recognises the word behind "NCCL ".
func level(b []byte) uint8 {
	if len(b) < 4 || len(b) > 4 && b[4] != ' ' && !(b[4] == 'E' && starts(b, "TRACE")) {
		return 0
	}
	switch string(b[:4]) {
	case "INFO":
		return levelInfo
	case "WARN":
		return levelWarn
	case "TRAC":
		return levelTrace
	case "CALL":
		return levelCall
	case "DIAG":
		return levelDiag
	}
	return 0
}

// envelope is what stands before "NCCL INFO" and its like.
type envelope struct {
	start    int // of the host, or of what is there
	host     []byte
	pid, tid int
	dev      int    // -1 = not printed
	loc      []byte // file:line
	fn       []byte
	hasHost  bool
}

// findEnvelope reads backwards from b[at:], which begins with "NCCL ", not
// further than low. Shapes, each with a blank before NCCL:
//
//	host:pid:tid [dev]
//	host:pid:tid
//	host:pid:tid [dev] file:line
//	host:pid:tid [dev] file:line (func)
//	host:pid:tid [dev] ms func:line
//	file:line                           (cut on its left)
func findEnvelope(b []byte, low, at int) (envelope, bool) {
	e := envelope{start: at, dev: -1}
	if at == low || at > 0 && b[at-1] != ' ' {
		// A record without anything in front, as people paste it.
		return e, at == 0
	}
	i := at - 1
	for range 3 {
		if hostEnd, ok := devAndThread(b, low, i, &e); ok {
			return e, hostBefore(b, low, hostEnd, &e)
		}
		j := i
		for j > low && b[j-1] != ' ' {
			j--
		}
		switch tok := b[j:i]; {
		case len(tok) == 0:
			return e, false
		case tok[0] == '(' && tok[len(tok)-1] == ')' && e.loc == nil:
			e.fn = tok[1 : len(tok)-1]
		case e.loc == nil && isLoc(tok):
			e.loc, e.start = tok, j
		case e.loc != nil && isDigit(tok[0]):
			// milliseconds of a TRACE
		default:
			return e, e.loc != nil
		}
		if j == low {
			return e, e.loc != nil
		}
		i = j - 1
	}
	return e, e.loc != nil
}

// devAndThread reads "[dev]" that ends at i and ":pid:tid " before it, or
// ":pid:tid" alone, and returns where the host ends.
func devAndThread(b []byte, low, i int, e *envelope) (hostEnd int, ok bool) {
	dev := -1
	if i > low && b[i-1] == ']' {
		j := i - 1
		for j > low && isDigit(b[j-1]) {
			j--
		}
		if j-2 < low || b[j-1] != '[' || b[j-2] != ' ' || j == i-1 || i-1-j > 9 {
			return 0, false
		}
		dev = small(b[j : i-1])
		i = j - 2
	}
	j := i
	for j > low && isDigit(b[j-1]) {
		j--
	}
	if j == i || i-j > 9 || j == low || b[j-1] != ':' {
		return 0, false
	}
	k := j - 1
	for k > low && isDigit(b[k-1]) {
		k--
	}
	if k == j-1 || j-1-k > 9 || k == low || b[k-1] != ':' {
		return 0, false
	}
	e.dev, e.pid, e.tid = dev, small(b[k:j-1]), small(b[j:i])
	return k - 1, true
}

func small(digits []byte) int {
	v := 0
	for _, c := range digits {
		v = v*10 + int(c-'0')
	}
	return v
}

func hostBefore(b []byte, low, end int, e *envelope) bool {
	j := end
	for j > low && isHost(b[j-1]) {
		j--
	}
	if j == end || end-j > 256 || j > low && b[j-1] == ':' && onlyDigits(b[j:end]) {
		return false // none, or a number of another record that was torn
	}
	e.start, e.host, e.hasHost = j, b[j:end], true
	return true
}

func onlyDigits(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return !isDigit(c) })
}

func isHost(c byte) bool {
	return c-'a' < 26 || isDigit(c) || c == '-' || c-'A' < 26 || c == '_' || c == '.'
}

// isLoc reports file:line or func:line.
func isLoc(t []byte) bool {
	i := len(t)
	for i > 0 && isDigit(t[i-1]) {
		i--
	}
	return i < len(t) && i > 1 && t[i-1] == ':' && len(t)-i < 10
}

// bareVersion recognises "NCCL version 2.28.3+cuda13.0" as level VERSION prints
// it: alone on its line, perhaps behind a launcher's prefix.
func bareVersion(b []byte, at int) ([]byte, bool) {
	rest, ok := lit(b[at:], "NCCL version ")
	if !ok || len(rest) == 0 || !isDigit(rest[0]) {
		return nil, false
	}
	head := bytes.TrimRight(b[:at], " ")
	if len(head) > 0 {
		switch c := head[len(head)-1]; c {
		case ':', '>', ']', ')', '|', 'Z':
		default:
			return nil, false
		}
	}
	v, _ := word(rest)
	return v, bytes.Count(v, []byte(".")) > 0
}

// record is one NCCL record; its slices live as long as the line.
type record struct {
	envelope
	level uint8
	text  []byte
	time  []byte
	whole bool // it ends where its line ends
	t     *thread
}

// line reads one physical line.
func (s *state) line(b []byte) {
	s.at++
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	if s.escapes && bytes.IndexByte(b, 0x1b) >= 0 {
		s.escaped = plain(s.escaped[:0], b)
		b = s.escaped
	}
	i := bytes.Index(b, []byte("NCCL "))
	if i < 0 {
		if len(b) > 0 {
			s.plainLine(b)
		}
		return
	}
	var (
		cur  = &s.rec
		have = false
		low  = 0
	)
	for from := 0; i >= 0; i = bytes.Index(b[from:], []byte("NCCL ")) {
		at := from + i
		from = at + 5
		lv := level(b[from:])
		if lv == 0 {
			if !have {
				if v, ok := bareVersion(b, at); ok {
					s.version(nil, v)
					s.log.Records++
				}
			}
			continue
		}
		e, ok := findEnvelope(b, low, at)
		if !ok && lv == levelDiag && !have {
			e, ok = envelope{start: at, dev: -1}, true
		}
		if !ok || have && !e.hasHost {
			continue
		}
		var t *thread
		if e.hasHost {
			var cut int
			t, cut = s.threadOf(&e, have, b[:e.start])
			e.start += cut
		}
		if have {
			cur.text, cur.whole = b[low:e.start], false
			s.record(cur)
		}
		n := 4
		if lv == levelTrace {
			n = 5
		}
		low = min(from+n+1, len(b))
		*cur = record{envelope: e, level: lv, t: t}
		if lv == levelWarn {
			cur.time = stamp(b[:e.start])
		}
		have, from = true, low
	}
	if have {
		cur.text, cur.whole = b[low:], !s.cut
		s.record(cur)
	}
}

// stamp returns what stands in brackets at the end of a prefix.
func stamp(b []byte) []byte {
	b = bytes.TrimRight(b, " ")
	if len(b) == 0 || b[len(b)-1] != ']' {
		return nil
	}
	i := bytes.LastIndexByte(b, '[')
	if i < 0 || len(b)-i > 64 || !bytes.ContainsAny(b[i:], ":-") {
		return nil
	}
	return b[i+1 : len(b)-1]
}

// isRow reports the begin of a result row of nccl-tests, which ends without a
// newline while a measurement runs.
func isRow(b []byte) bool {
	fields := 0
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != ' ' && c != '.' && c != '-' && c != '/' && !isDigit(c) && !(c-'a' < 26) && !(c-'A' < 26) && c != '_' {
			return false
		}
		if c != ' ' && (i == 0 || b[i-1] == ' ') {
			if fields++; fields == 1 && !isDigit(c) {
				return false
			}
		}
	}
	return fields >= 2
}

// thread is one thread of a process and what it is in the middle of.
type thread struct {
	host     string
	raw      string // as it stood in the line
	pid, tid int
	proc     int // index, -1 = not kept
	dev      int
	inst     *instance
	topo     *Topology
	indents  []int
	graph    *Graph
	algos    []string
	pairs    bool // the head of the table names algorithm and protocol
	noPath   int  // pattern whose search failed
}

type threadKey struct {
	host     string
	pid, tid int
}

// threadOf finds the thread of an envelope that may stand behind another record
// or, as head shows, in a result row. Where the host's name is glued to the text
// before it, cut says how many bytes of it belong to that text; a host that
// nothing else names cannot be told from it and gives nil.
func (s *state) threadOf(e *envelope, behind bool, head []byte) (t *thread, cut int) {
	slot := &s.cache[(e.tid*31+e.pid)&(len(s.cache)-1)]
	if t := *slot; t != nil && t.tid == e.tid && t.pid == e.pid && t.raw == string(e.host) {
		t.dev = e.dev
		return t, 0
	}
	host := e.host
	if !s.knows(host, e.pid) {
		inside := behind || isRow(head) || s.endsInEnvelope(head)
		n, ok := s.unglue(host, e.pid)
		switch known := s.hostEnding(e); {
		case ok && (inside || s.knows(host[n:], e.pid)):
			host, cut = host[n:], n
		case known != "":
			host = []byte(known)
		case inside:
			return nil, 0
		}
	}
	if i := bytes.IndexByte(host, '.'); i > 0 {
		host = host[:i] // NCCL cuts it there itself
	}
	t = s.threads[threadKey{string(host), e.pid, e.tid}]
	if t == nil {
		name := s.intern(host)
		t = &thread{host: name, raw: name, pid: e.pid, tid: e.tid, proc: s.proc(name, e.pid)}
		if s.room("threads", len(s.threads), maxThreads) {
			s.threads[threadKey{name, e.pid, e.tid}] = t
			s.threadList = append(s.threadList, t)
		}
	}
	t.dev = e.dev
	*slot = t
	return t, cut
}

// endsInEnvelope reports a head that ends as the begin of another record does,
// which was torn there.
func (s *state) endsInEnvelope(head []byte) bool {
	head = bytes.TrimRight(head, " ")
	e := envelope{}
	end, ok := devAndThread(head, 0, len(head), &e)
	return ok && hostBefore(head, 0, end, &e) && s.knows(e.host, e.pid)
}

// hostEnding returns the known host of whose name only the end is there, as another
// process wrote into the line; the thread tells that it is this host.
func (s *state) hostEnding(e *envelope) string {
	for _, h := range s.hosts {
		if len(h) > len(e.host) && strings.HasSuffix(h, string(e.host)) && s.threads[threadKey{h, e.pid, e.tid}] != nil {
			return h
		}
	}
	return ""
}

func (s *state) knows(host []byte, pid int) bool {
	_, ok := s.procs[procKey{string(host), pid}]
	return ok
}

// unglue returns how much of a token stands before the name of a known host.
func (s *state) unglue(token []byte, pid int) (cut int, ok bool) {
	best := -1
	for _, h := range s.hosts {
		if len(h) > len(token) || !strings.HasSuffix(string(token), h) {
			continue
		}
		// Of several the one that has this process, else the longest.
		if s.knows([]byte(h), pid) {
			return len(token) - len(h), true
		}
		if best < 0 || len(token)-len(h) < best {
			best = len(token) - len(h)
		}
	}
	return best, best >= 0
}
