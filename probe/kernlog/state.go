package kernlog

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

// Caps of what is kept of one log; what is over them is counted in Dropped.
const (
	maxRecords = 4096
	maxHosts   = 256
	maxUUIDs   = 256
	maxText    = 512
)

type state struct {
	log    *Log
	index  map[string]int
	key    []byte
	binary int // line

	// of the line at hand
	n     int
	parts parts
}

func newState(name string) *state {
	return &state{log: &Log{File: name, UUIDs: map[probe.BDF]string{}}, index: map[string]int{}}
}

func (s *state) line(n int, b []byte, cut bool) bool {
	l := s.log
	l.Lines = n
	if cut {
		l.CutLong++
	}
	if n <= 16 && bytes.IndexByte(b, 0) >= 0 {
		s.binary = n
		return false
	}
	if bytes.IndexByte(b, 0x1b) >= 0 {
		b = uncolour(b)
	}
	s.n, s.parts = n, splitLine(b)
	if s.parts.kernel {
		l.Messages++
		s.host()
	}
	s.message(s.parts.msg)
	return true
}

// host notes the host of the line at hand.
func (s *state) host() {
	h := s.parts.host
	if len(h) == 0 || len(h) > 128 {
		return
	}
	// Most logs are of one host.
	for _, have := range s.log.hosts {
		if have == string(h) {
			return
		}
	}
	if len(s.log.hosts) < maxHosts {
		s.log.hosts = append(s.log.hosts, plain(h))
	}
}

// uncolour removes terminal control sequences.
func uncolour(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != 0x1b {
			out = append(out, b[i])
			continue
		}
		if i+1 < len(b) && b[i+1] == '[' {
			for i += 2; i < len(b) && (b[i] < 0x40 || b[i] > 0x7e); i++ {
			}
		}
	}
	return out
}

func plain(b []byte) string { return plainUpTo(b, maxText) }

func plainUpTo(b []byte, n int) string { return probe.OneLine(string(b[:min(len(b), n)]), n) }

// event is one message before it is counted.
type event struct {
	kind     string
	class    string // messages of one kind and subject that are not the same
	code     int    // -1 = none
	addr     probe.BDF
	hasAddr  bool
	gpu      bool // addr is that of a GPU
	link     int  // -1 = none
	severity Severity
	text     []byte
	process  string
	report   bool // announces an error that another line describes
	limit    *PCIeLimit
}

func newEvent(kind string, severity Severity, text []byte) event {
	return event{kind: kind, code: -1, link: -1, severity: severity, text: text}
}

// add counts a message.
func (s *state) add(e event) {
	l := s.log
	k := append(s.key[:0], e.kind...)
	k = append(k, 0)
	k = append(k, e.class...)
	k = append(k, 0)
	k = append(k, s.parts.host...)
	k = append(k, 0)
	k = strconv.AppendInt(k, int64(e.code), 10)
	k = append(k, 0)
	k = strconv.AppendInt(k, int64(e.link), 10)
	if e.hasAddr {
		k = append(k, 0)
		k = strconv.AppendUint(k, uint64(e.addr.Domain)<<16|uint64(e.addr.Bus)<<8|uint64(e.addr.Dev)<<3|uint64(e.addr.Fn), 16)
	}
	s.key = k
	i, ok := s.index[string(k)]
	if !ok {
		if len(l.Records) >= maxRecords {
			l.Dropped++
			return
		}
		i = len(l.Records)
		s.index[string(k)] = i
		r := Record{
			Kind: e.kind, Host: plain(s.parts.host), Severity: e.severity, Text: plain(e.text), Process: e.process,
			First: s.n, FirstAt: plain(s.parts.time), PCIe: e.limit,
		}
		if e.code >= 0 {
			r.Code = probe.Some(e.code)
		}
		if e.link >= 0 {
			r.Link = probe.Some(e.link)
		}
		if e.hasAddr {
			r.Addr = probe.Some(e.addr)
			if r.Subject = "pci:" + e.addr.String(); e.gpu {
				r.Subject = "gpu:" + e.addr.String()
			}
		}
		l.Records = append(l.Records, r)
	}
	r := &l.Records[i]
	if e.report {
		r.reports++
	} else {
		r.Count++
	}
	if e.severity.rank() > r.Severity.rank() {
		r.Severity = e.severity
	}
	if r.LastAt != string(s.parts.time) {
		r.LastAt = plain(s.parts.time)
	}
	r.Last, r.LastBoot = s.n, l.Boots
}

func (s *state) finish() (*Log, error) {
	l := s.log
	switch {
	case s.binary > 0:
		return nil, s.fault(s.binary, "binary data, not kernel log text; print a journal with journalctl -k")
	case l.Lines == 0:
		return nil, s.fault(0, "empty: no kernel log")
	case l.Messages == 0 && len(l.Records) == 0 && l.Driver == "":
		return nil, s.fault(0, "no line has the form of a kernel message")
	}
	for i := range l.Records {
		// A port announces an error and the device's line describes it, or
		// one of the two is suppressed: the larger number is that of errors.
		r := &l.Records[i]
		r.Count = max(r.Count, r.reports)
	}
	slices.Sort(l.hosts)
	return l, nil
}
