package nvml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

// value is a JSON value that knows its place, so that an error about its meaning
// can name line and column.
type value struct {
	offset int
	scalar any // nil, bool, string or json.Number
	array  []*value
	object map[string]*value
	kind   byte // '{', '[', or 's' for a scalar
}

// document parses a recording.
type document struct {
	name string
	text []byte
	dec  *json.Decoder
}

// maxDepth is far deeper than any recording.
const maxDepth = 32

func parseJSON(name string, text []byte) (*document, *value, error) {
	d := &document{name: name, text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	d.dec.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.dec.Token(); err != io.EOF {
		return nil, nil, d.errorf(int(d.dec.InputOffset()), "text after the document")
	}
	return d, v, nil
}

func (d *document) errorf(offset int, format string, args ...any) error {
	line, col := probe.PositionOf(d.text, int64(offset))
	return &probe.SyntaxError{File: d.name, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}
}

// token returns the next token and where it begins.
func (d *document) token() (json.Token, int, error) {
	at := int(d.dec.InputOffset())
	for at < len(d.text) && bytes.IndexByte([]byte(" \t\r\n,:"), d.text[at]) >= 0 {
		at++
	}
	t, err := d.dec.Token()
	var syn *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, at, d.errorf(len(d.text), "the document is cut off")
	case errors.As(err, &syn):
		return nil, at, d.errorf(int(syn.Offset), "%v", syn)
	case err != nil:
		return nil, at, d.errorf(at, "%v", err)
	}
	return t, at, nil
}

func (d *document) value(depth int) (*value, error) {
	t, at, err := d.token()
	if err != nil {
		return nil, err
	}
	v := &value{offset: at, kind: 's', scalar: t}
	delim, ok := t.(json.Delim)
	if !ok {
		return v, nil
	}
	if depth == maxDepth {
		return nil, d.errorf(at, "nested deeper than %d levels", maxDepth)
	}
	v.kind, v.scalar = byte(delim), nil
	if delim == '{' {
		v.object = map[string]*value{}
	}
	for d.dec.More() {
		key := ""
		if delim == '{' {
			k, at, err := d.token()
			if err != nil {
				return nil, err
			}
			key = k.(string) // the decoder takes nothing else before a colon
			if v.object[key] != nil {
				return nil, d.errorf(at, "%q appears twice", key)
			}
		}
		e, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if delim == '{' {
			v.object[key] = e
		} else {
			v.array = append(v.array, e)
		}
	}
	_, _, err = d.token()
	return v, err
}

// failed returns the code of {"error": …, "code": …}.
func (v *value) failed() (status, bool) {
	if v.kind != '{' || v.object["error"] == nil || v.object["code"] == nil {
		return 0, false
	}
	n, ok := v.object["code"].integer()
	return status(n), ok && (n > 0 || status(n) == noAnswer)
}

func (v *value) text() (string, bool) {
	s, ok := v.scalar.(string)
	return s, ok
}

// integer returns a whole number that fits an int.
func (v *value) integer() (int, bool) {
	n, ok := v.scalar.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}

func (v *value) unsigned() (uint64, bool) {
	n, ok := v.scalar.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseUint(n.String(), 10, 64)
	return i, err == nil
}

// integers returns an array of whole numbers.
func (v *value) integers() ([]int, bool) {
	if v.kind != '[' {
		return nil, false
	}
	out := make([]int, len(v.array))
	for i, e := range v.array {
		n, ok := e.integer()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}
