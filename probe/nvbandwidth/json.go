package nvbandwidth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// cell is a figure of a matrix, which the program writes as a string.
type cell string

func (c *cell) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = cell(strings.TrimSpace(s))
		return nil
	}
	if *c = cell(b); string(b) == "null" {
		*c = "N/A"
	}
	return nil
}

type jsonTest struct {
	Name        string   `json:"name"`
	Status      string   `json:"status"`
	Description string   `json:"bandwidth_description"`
	Matrix      [][]cell `json:"bandwidth_matrix"`
	Sum         cell     `json:"sum"`
	Error       string   `json:"error"`
}

// json reads the document of nvbandwidth -j. Rows and columns have no names in
// it; they are numbered from 0 as in the text.
func (p *parser) json(raw []byte) (*Output, error) {
	o := p.out
	o.Form = FormJSON
	d := json.NewDecoder(bytes.NewReader(raw))
	at := func() int { line, _ := probe.PositionOf(raw, d.InputOffset()); return line }
	fail := func(err error) error {
		off := d.InputOffset()
		var syn *json.SyntaxError
		if errors.As(err, &syn) {
			off = syn.Offset
		}
		line, col := probe.PositionOf(raw, off)
		msg := "JSON: " + plain(err.Error())
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			msg = "JSON: the document is cut"
		}
		return &probe.SyntaxError{File: o.File, Line: line, Col: col, Msg: msg}
	}
	want := func(delim json.Delim) error {
		tok, err := d.Token()
		if err == nil && tok != delim {
			err = errors.New("unexpected structure")
		}
		return err
	}
	if err := want('{'); err != nil {
		return nil, fail(err)
	}
	found := false
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return nil, fail(err)
		}
		if tok != "nvbandwidth" {
			var skip json.RawMessage
			if err := d.Decode(&skip); err != nil {
				return nil, fail(err)
			}
			continue
		}
		found = true
		if err := want('{'); err != nil {
			return nil, fail(err)
		}
		for d.More() {
			tok, err := d.Token()
			if err != nil {
				return nil, fail(err)
			}
			key, _ := tok.(string)
			if key == "testcases" {
				if err := want('['); err != nil {
					return nil, fail(err)
				}
				for d.More() {
					var t jsonTest
					if err := d.Decode(&t); err != nil {
						return nil, fail(err)
					}
					if err := p.jsonTest(at(), t); err != nil {
						return nil, err
					}
				}
				if err := want(']'); err != nil {
					return nil, fail(err)
				}
				continue
			}
			var v json.RawMessage
			if err := d.Decode(&v); err != nil {
				return nil, fail(err)
			}
			if err := p.jsonKey(at(), key, v); err != nil {
				return nil, err
			}
		}
		if err := want('}'); err != nil {
			return nil, fail(err)
		}
	}
	if err := want('}'); err != nil {
		return nil, fail(err)
	}
	if !found {
		return nil, p.fault(0, "JSON, but not that of nvbandwidth")
	}
	return o, nil
}

func (p *parser) jsonKey(line int, key string, raw json.RawMessage) error {
	var list []string
	if json.Unmarshal(raw, &list) == nil && strings.Contains(strings.ToLower(key), "device") {
		for _, x := range list {
			num, name, ok := strings.Cut(x, ":")
			n, err := strconv.Atoi(strings.TrimSpace(num))
			if !ok || err != nil {
				continue
			}
			dev := Device{Line: line, Index: n}
			dev.Name, dev.Addr = nameAndAddress(name)
			if err := p.addDevice(line, dev); err != nil {
				return err
			}
		}
		return nil
	}
	var c cell
	if c.UnmarshalJSON(raw) != nil {
		return nil
	}
	v := plain(string(c))
	switch key {
	case "version":
		p.out.Version = v
	case "CUDA Runtime Version":
		p.out.CUDA = v
	case "Driver Version":
		p.out.Driver, p.out.driverAt = v, line
	case "error", "warning":
		p.note(line, key+": "+v)
	}
	return nil
}

func (p *parser) jsonTest(line int, t jsonTest) error {
	p.test = plain(t.Name)
	if len(t.Matrix) == 0 {
		if t.Error != "" || t.Status != "" && t.Status != "Passed" {
			p.note(line, strings.TrimSpace(t.Status+" "+t.Error))
		}
		return nil
	}
	if len(p.out.Matrices) >= maxMatrices {
		return p.fault(line, "more than %d matrices", maxMatrices)
	}
	m, ok := title(strings.TrimSpace(t.Description))
	if !ok {
		m = Matrix{Description: plain(t.Description)}
	}
	m.Line, m.Test = line, p.test
	side := len(t.Matrix[0])
	if side > maxSide || len(t.Matrix) > maxSide {
		return p.fault(line, "test %s: a matrix of %d × %d, at most %d are believed", p.test, len(t.Matrix), side, maxSide)
	}
	for j := range side {
		m.Columns = append(m.Columns, j)
	}
	for i, row := range t.Matrix {
		if len(row) != side {
			return p.fault(line, "test %s: row %d has %d figures for %d columns", p.test, i, len(row), side)
		}
		values := make([]probe.Opt[float64], side)
		for j, c := range row {
			v, known, ok := value(string(c))
			if !ok {
				return p.fault(line, "test %s: row %d: %q in column %d is no figure", p.test, i, plain(string(c)), j)
			}
			if known {
				values[j] = probe.Some(v)
			}
		}
		if err := p.addRow(line, &m, i, values); err != nil {
			return err
		}
	}
	if v, known, ok := value(string(t.Sum)); ok && known {
		m.Sum = probe.Some(v)
	}
	m.Rows = slices.Clip(m.Rows)
	p.out.Matrices = append(p.out.Matrices, m)
	return nil
}
