package nccltests

import (
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

// rowText reads a row, the beginning of one or more of one that has begun. It
// reports whether b was any of these.
func (s *state) rowText(n int, b []byte) bool {
	if len(b) > 8192 {
		return false
	}
	f := fields(s.f[:0], b)
	s.f = f
	if at := rowStart(f); at >= 0 {
		s.closeRow()
		t := s.table(n, stageRows)
		if t == nil {
			return true
		}
		s.partial.line = n
		s.take(f[at:at+3], 3)
		rest := f[at+3:]
		if len(rest) > 0 && isOp(rest[0]) {
			s.take(rest[:1], 1)
			rest = rest[1:]
		}
		s.take(rest, len(rest))
		s.tryRow(false)
		return true
	}
	if s.partial.line == 0 || len(f) == 0 || !isNumber(f[0]) {
		return false
	}
	s.take(f, len(f))
	s.tryRow(false)
	return true
}

// take adds fields to the row that is open; from the fourth on up to the first
// that is no figure.
func (s *state) take(f [][]byte, n int) {
	for _, x := range f[:n] {
		if len(s.partial.f) >= 64 {
			return
		}
		if k := len(s.partial.f); k > 3 && !isNumber(x) || k == 3 && !isNumber(x) && !isOp(x) {
			return
		}
		s.partial.f = append(s.partial.f, s.text(x))
	}
}

// closeRow ends the row that is open with what has come.
func (s *state) closeRow() {
	if s.partial.line > 0 {
		s.tryRow(true)
	}
}

// tryRow turns the open row into a Row once it is whole, or when nothing more
// comes (last): then its first half is enough.
func (s *state) tryRow(last bool) {
	f := s.partial.f
	j := 3
	var r Row
	if s.layout.op && j < len(f) && isOp([]byte(f[j])) {
		if f[j] != "none" {
			r.Op = f[j]
		}
		j++
	}
	if s.layout.root && j < len(f) {
		root, err := strconv.Atoi(f[j])
		if err != nil {
			s.drop()
			return
		}
		if root >= 0 {
			r.Root = probe.Some(root)
		}
		j++
	}
	half := len(s.layout.half)
	have := max(len(f)-j, 0)
	if have < 2*half && !last {
		return
	}
	if have < half || have > 2*half {
		s.drop()
		return
	}
	line := s.partial.line
	s.partial.line, s.partial.f = 0, f[:0]
	size, err1 := strconv.ParseInt(f[0], 10, 64)
	count, err2 := strconv.ParseInt(f[1], 10, 64)
	t := s.running()
	if err1 != nil || err2 != nil || t == nil {
		s.out.Torn++
		return
	}
	r.Line, r.Bytes, r.Count, r.Type = line, size, count, f[2]
	r.OutOfPlace = s.result(f[j : j+half])
	if have == 2*half {
		r.InPlace = s.result(f[j+half:])
	}
	s.addRow(t, r)
}

func (s *state) addRow(t *Table, r Row) {
	if s.rows >= maxRows {
		s.out.Dropped++
		return
	}
	s.rows++
	t.Rows = append(t.Rows, r)
}

// drop gives up the open row.
func (s *state) drop() {
	s.partial.line, s.partial.f = 0, s.partial.f[:0]
	s.out.Torn++
}

func (s *state) result(f []string) Result {
	var r Result
	for i, name := range s.layout.half {
		v, known, _ := parseNumber([]byte(f[i]))
		if !known {
			continue
		}
		switch name {
		case "cputime":
			r.CPUTime = true
			fallthrough
		case "time":
			r.TimeUS, r.halves[0] = probe.Some(v.v), v.half
		case "algbw":
			r.AlgBW, r.halves[1] = probe.Some(v.v), v.half
		case "busbw":
			r.BusBW, r.halves[2] = probe.Some(v.v), v.half
		case "wrong":
			r.Wrong = probe.Some(v.v)
		case "error", "res":
			r.MaxError = probe.Some(v.v)
		}
	}
	return r
}
