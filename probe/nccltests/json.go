package nccltests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// figure is a JSON number, also one that is written as a string ("nan",
// "    -1") or is null.
type figure string

func (f *figure) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*f = ""
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*f = figure(strings.TrimSpace(s))
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		*f = figure(b)
	default:
		return fmt.Errorf("%s is no number", b[:min(len(b), 20)])
	}
	return nil
}

func (f figure) int() probe.Opt[int] {
	if v, err := strconv.Atoi(string(f)); err == nil {
		return probe.Some(v)
	}
	return probe.Opt[int]{}
}

func (f figure) int64() probe.Opt[int64] {
	if v, err := strconv.ParseInt(string(f), 10, 64); err == nil {
		return probe.Some(v)
	}
	return probe.Opt[int64]{}
}

func (f figure) float() (probe.Opt[float64], float64) {
	if v, known, ok := parseNumber([]byte(f)); ok && known {
		return probe.Some(v.v), v.half
	}
	return probe.Opt[float64]{}, 0
}

type jsonHalf struct {
	Time    figure `json:"time"`
	CPUTime figure `json:"cpu_time"`
	AlgBW   figure `json:"alg_bw"`
	BusBW   figure `json:"bus_bw"`
	Wrong   figure `json:"nwrong"`
}

func (h *jsonHalf) result() Result {
	var r Result
	if h == nil {
		return r
	}
	r.TimeUS, r.halves[0] = h.Time.float()
	if h.Time == "" && h.CPUTime != "" {
		r.TimeUS, r.halves[0] = h.CPUTime.float()
		r.CPUTime = true
	}
	r.AlgBW, r.halves[1] = h.AlgBW.float()
	r.BusBW, r.halves[2] = h.BusBW.float()
	r.Wrong, _ = h.Wrong.float()
	return r
}

type jsonRow struct {
	Size  figure    `json:"size"`
	Count figure    `json:"count"`
	Type  string    `json:"type"`
	Op    string    `json:"redop"`
	Root  figure    `json:"root"`
	Out   *jsonHalf `json:"out_of_place"`
	In    *jsonHalf `json:"in_place"`
}

type jsonDevice struct {
	Rank   figure `json:"rank"`
	Group  figure `json:"group"`
	PID    figure `json:"pid"`
	Host   string `json:"hostname"`
	Device figure `json:"device"`
	Bus    string `json:"device_hex"`
	Name   string `json:"device_info"`
}

type jsonConfig struct {
	Threads    figure       `json:"nthreads"`
	GPUs       figure       `json:"ngpus"`
	Min        figure       `json:"minimum_bytes"`
	Max        figure       `json:"maximum_bytes"`
	StepFactor figure       `json:"step_factor"`
	StepBytes  figure       `json:"step_bytes"`
	Warmup     figure       `json:"warmup_iters"`
	Iters      figure       `json:"iterations"`
	Agg        figure       `json:"aggregated_iterations"`
	Validation figure       `json:"validation"`
	Graph      figure       `json:"graph"`
	Devices    []jsonDevice `json:"devices"`
}

// readJSON reads the document of -J. Of its environment only NCCL_ variables
// are kept.
func readJSON(name string, raw []byte) (*Output, error) {
	text, cut := mend(raw)
	s := newState(name)
	s.out.JSON, s.out.Cut = true, cut
	s.out.Tables = []Table{{Line: 1}}
	t := s.cur()
	d := json.NewDecoder(bytes.NewReader(text))
	lines := lineCounter{text: text, line: 1}
	fail := func(err error) error {
		at := d.InputOffset()
		var syn *json.SyntaxError
		if errors.As(err, &syn) {
			at = syn.Offset
		}
		line, col := probe.PositionOf(text, at)
		msg := "JSON: " + err.Error()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			msg = "JSON: the document is cut"
		}
		return &probe.SyntaxError{File: name, Line: line, Col: col, Msg: plain(msg)}
	}
	if _, err := d.Token(); err != nil {
		return nil, fail(err)
	}
	known := false
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return nil, fail(err)
		}
		key, _ := tok.(string)
		switch key {
		case "args", "env", "errors":
			var list []string
			if err := d.Decode(&list); err != nil {
				return nil, fail(err)
			}
			line := lines.at(d.InputOffset())
			t.Told = t.Told || key == "env"
			for i, x := range list {
				switch {
				case key == "args" && i == 0:
					t.Program = plain(x[strings.LastIndexByte(x, '/')+1:])
				case key == "errors" && strings.TrimSpace(x) != "":
					s.note(&t.Failures, line, []byte(x))
				case key == "env" && strings.HasPrefix(x, "NCCL_"):
					if n, v, ok := strings.Cut(x, "="); ok && isName([]byte(n)) {
						s.setting(Setting{Name: n, Value: plain(v), Line: line})
					}
				}
			}
		case "nccl_version":
			var v figure
			if err := d.Decode(&v); err != nil {
				return nil, fail(err)
			}
			t.NCCL = versionOf(string(v))
		case "config":
			var c jsonConfig
			if err := d.Decode(&c); err != nil {
				return nil, fail(err)
			}
			known = true
			s.config(t, c, lines.at(d.InputOffset()))
		case "results":
			tok, err := d.Token()
			if err != nil || tok != json.Delim('[') {
				return nil, fail(cmpErr(err, "results is no list"))
			}
			known = true
			for d.More() {
				from := d.InputOffset()
				var r jsonRow
				if err := d.Decode(&r); err != nil {
					return nil, fail(err)
				}
				s.jsonRow(t, r, lines.at(from+int64(blanks(text[from:]))))
			}
			if _, err := d.Token(); err != nil {
				return nil, fail(err)
			}
		case "out_of_bounds":
			var v struct {
				Count figure `json:"count"`
			}
			if err := d.Decode(&v); err != nil {
				return nil, fail(err)
			}
			t.OutOfBounds = v.Count.int64()
		case "average_bus_bandwidth", "average_bus_bandwidith":
			var v struct {
				Right figure `json:"bandwidth"`
				Wrong figure `json:"bandwidith"`
			}
			if err := d.Decode(&v); err != nil {
				return nil, fail(err)
			}
			if v.Right == "" {
				v.Right = v.Wrong
			}
			t.AvgBusBW, _ = v.Right.float()
			known = true
		default:
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return nil, fail(err)
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fail(err)
	}
	if !known {
		return nil, s.fault(0, "JSON, but not that of nccl-tests: no config and no results")
	}
	s.settle(t)
	t.done = true
	return s.out, nil
}

func cmpErr(err error, msg string) error {
	if err != nil {
		return err
	}
	return errors.New(msg)
}

func (s *state) config(t *Table, c jsonConfig, line int) {
	t.Config = Config{
		Threads: c.Threads.int(), GPUs: c.GPUs.int(), MinBytes: c.Min.int64(), MaxBytes: c.Max.int64(),
		StepFactor: c.StepFactor.int64(), StepBytes: c.StepBytes.int64(), Warmup: c.Warmup.int(),
		Iters: c.Iters.int(), Agg: c.Agg.int(), Validation: c.Validation.int(), Graph: c.Graph.int(),
	}
	for _, x := range c.Devices {
		rank, ok1 := x.Rank.int().Get()
		pid, ok2 := x.PID.int().Get()
		dev, ok3 := x.Device.int().Get()
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		if s.devices >= maxDevices {
			s.out.Dropped++
			continue
		}
		s.devices++
		d := Device{Line: line, Rank: rank, Group: x.Group.int(), PID: pid, Host: plain(x.Host), Device: dev, Bus: plain(x.Bus), Name: plain(x.Name)}
		if a, err := probe.ParseBDF(d.Bus); err == nil {
			d.Addr = probe.Some(a)
		}
		t.Devices = append(t.Devices, d)
	}
	// The program records only the first GPU of each process.
	if k := t.Config.Threads.Or(1) * t.Config.GPUs.Or(1); k > 1 && k <= 1024 {
		t.perRecord = k
	}
}

func (s *state) jsonRow(t *Table, r jsonRow, line int) {
	size, ok1 := r.Size.int64().Get()
	count, ok2 := r.Count.int64().Get()
	if !ok1 || !ok2 || r.Out == nil || size < 0 {
		s.out.Torn++
		return
	}
	row := Row{Line: line, Bytes: size, Count: count, Type: plain(r.Type), OutOfPlace: r.Out.result(), InPlace: r.In.result()}
	if op := strings.TrimSpace(r.Op); op != "none" {
		row.Op = plain(op)
	}
	if root, ok := r.Root.int().Get(); ok && root >= 0 {
		row.Root = probe.Some(root)
	}
	s.addRow(t, row)
}

// lineCounter turns rising offsets into line numbers.
type lineCounter struct {
	text []byte
	off  int
	line int
}

func (c *lineCounter) at(off int64) int {
	to := min(int(off), len(c.text))
	if to > c.off {
		c.line += bytes.Count(c.text[c.off:to], []byte("\n"))
		c.off = to
	}
	return c.line
}

func blanks(b []byte) int {
	n := 0
	for n < len(b) && (b[n] == ' ' || b[n] == '\t' || b[n] == '\r' || b[n] == '\n' || b[n] == ',') {
		n++
	}
	return n
}

// mend makes JSON of what the programs write: a bare inf or nan becomes a
// string of the same length, and a document that an early error left open is
// closed behind its last whole value.
func mend(raw []byte) (text []byte, cut bool) {
	raw = probe.TrimBOM(raw)
	out := bytes.Clone(raw)
	var open []byte
	var whole int        // end of the last place where the text can be closed
	var wholeOpen []byte // what is open there
	keyNext := false     // the next string is a key
	valueDone := func(i int) {
		whole = i
		wholeOpen = append(wholeOpen[:0], open...)
	}
	const maxDepth = 64
	for i := 0; i < len(out); {
		c := out[i]
		switch {
		case c == '"':
			j := i + 1
			for j < len(out) && out[j] != '"' {
				if out[j] == '\\' {
					j++
				}
				j++
			}
			if j >= len(out) {
				i = len(out)
				continue
			}
			i = j + 1
			if keyNext {
				keyNext = false
			} else {
				valueDone(i)
			}
			continue
		case c == '{' || c == '[':
			if len(open) >= maxDepth {
				return out, false // no such document; the decoder refuses it
			}
			open = append(open, c+2)
			keyNext = c == '{'
			i++
			valueDone(i)
			continue
		case c == '}' || c == ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
			i++
			keyNext = false
			valueDone(i)
			if len(open) == 0 {
				return out[:i], false
			}
			continue
		case c == ',':
			keyNext = len(open) > 0 && open[len(open)-1] == '}'
		case c == '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			j := i
			for j < len(out) && (out[j] == '-' || out[j] == '+' || out[j] == '.' || out[j] >= 'a' && out[j] <= 'z' || out[j] >= 'A' && out[j] <= 'Z' || out[j] >= '0' && out[j] <= '9') {
				j++
			}
			switch w := strings.TrimPrefix(string(out[i:min(j, i+12)]), "-"); w {
			case "inf", "nan", "Infinity", "NaN":
				out[i], out[i+1] = '"', '"'
				for k := i + 2; k < j; k++ {
					out[k] = ' '
				}
			}
			i = j
			if j < len(out) {
				valueDone(j)
			}
			continue
		}
		i++
	}
	if len(open) == 0 || whole == 0 {
		return out, false
	}
	out = out[:whole]
	for i := len(wholeOpen) - 1; i >= 0; i-- {
		out = append(out, wholeOpen[i])
	}
	return out, true
}
