package nccltests

import (
	"bytes"

	"github.com/ncclmap/ncclmap/probe"
)

// Caps of what is kept of one input; what is over them is counted in Dropped.
const (
	maxTables   = 8192
	maxRows     = 1 << 17
	maxDevices  = 1 << 16
	maxSettings = 256 // of one table
	maxNotes    = 64  // of one table
	maxStrings  = 1 << 14
)

// stage orders the lines of a header; one that comes again begins a run.
type stage int

const (
	stageVersion stage = iota + 1
	stageProgram
	stageConfig
	stageDevices
	stageColumns
	stageRows
	stageFooter
)

// layout is what the line of column names says.
type layout struct {
	op, root bool
	half     []string // of out-of-place; in-place has the same
}

var modern = layout{op: true, root: true, half: []string{"time", "algbw", "busbw", "wrong"}}

type state struct {
	out    *Output
	file   string
	lines  int
	binary bool

	at      stage
	layout  layout
	pending []Setting // seen between two runs
	told    bool      // so were NCCL's own lines
	program string    // named between two runs, as in a command line
	op      string    // collective that the run's own NCCL log names
	hosts   [][]byte  // of the current table
	rows    int
	devices int
	strings map[string]string

	partial struct { // a row whose end has not come yet
		line int
		f    []string
	}
	f [][]byte
}

func newState(file string) *state {
	return &state{out: &Output{File: file}, file: file, layout: modern, strings: map[string]string{}}
}

func (s *state) fault(line int, msg string) error {
	return &probe.SyntaxError{File: s.file, Line: line, Msg: msg}
}

// text returns a copy of b that is safe to print, the same string for the same
// bytes as long as there are few.
func (s *state) text(b []byte) string {
	if t, ok := s.strings[string(b)]; ok {
		return t
	}
	t := plain(string(b))
	if len(s.strings) < maxStrings && len(b) <= 256 {
		s.strings[string(b)] = t
	}
	return t
}

func plain(t string) string { return probe.OneLine(t, 512) }

func (s *state) cur() *Table {
	if n := len(s.out.Tables); n > 0 {
		return &s.out.Tables[n-1]
	}
	return nil
}

// running returns the table of a run that has not ended.
func (s *state) running() *Table {
	if t := s.cur(); t != nil && !t.done {
		return t
	}
	return nil
}

// table returns the table that a line of the given stage belongs to, a new one
// where the line cannot belong to the current; nil when there are too many.
func (s *state) table(n int, at stage) *Table {
	t := s.running()
	if t != nil && (at > s.at || at == s.at && at >= stageRows) {
		s.at = at
		return t
	}
	s.closeRow()
	if t := s.cur(); t != nil {
		s.settle(t)
	}
	if len(s.out.Tables) >= maxTables {
		s.out.Dropped++
		return nil
	}
	s.out.Tables = append(s.out.Tables, Table{Line: n, Program: s.program, Settings: s.pending, Told: s.told})
	s.at, s.layout, s.pending, s.told, s.program, s.op, s.hosts = at, modern, nil, false, "", "", nil
	return s.cur()
}

func (s *state) line(n int, raw []byte, cut bool) {
	s.lines = n
	if cut {
		s.out.CutLong++
	}
	if n <= 16 && bytes.IndexByte(raw, 0) >= 0 {
		s.binary = true
	}
	if s.binary || s.foreign(raw) {
		return
	}
	b := clean(raw)
	if at := recordAt(b); at >= 0 {
		start := s.recordStart(b, at)
		s.record(n, b[at:])
		b = b[:start]
	}
	b = bytes.TrimRight(b, " \t")
	if len(bytes.TrimLeft(b, " \t")) == 0 {
		return
	}
	// Rows are most of what is left: they begin with a digit.
	if first := bytes.TrimLeft(b, " \t")[0]; first >= '0' && first <= '9' || first == 'N' || first == '-' {
		if s.rowText(n, b) {
			return
		}
	}
	if s.header(n, b) {
		return
	}
	s.rowText(n, b)
}

// finish ends the input.
func (s *state) finish() (*Output, error) {
	s.closeRow()
	if t := s.cur(); t != nil {
		s.settle(t)
	}
	s.agree()
	switch {
	case s.binary:
		return nil, s.fault(0, "binary data, not the output of nccl-tests")
	case s.lines == 0:
		return nil, s.fault(0, "empty: no output of nccl-tests")
	}
	// A header or failure alone is a run that came to nothing, which is worth
	// knowing; a line of column names alone is a text about nccl-tests.
	for _, t := range s.out.Tables {
		if len(t.Rows) > 0 || len(t.Devices) > 0 || len(t.Failures) > 0 || t.Config.Threads.Known() {
			return s.out, nil
		}
	}
	return nil, s.fault(0, "no result row, device list or header of nccl-tests")
}
