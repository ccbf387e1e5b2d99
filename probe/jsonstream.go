package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// JSONStream reads JSON of any length value by value and knows where each stands.
// Its errors are *SyntaxError, or those of the reader.
type JSONStream struct {
	name string
	dec  *json.Decoder
	src  *jsonSource
	at   place // of the value that was asked for last
}

// NewJSONStream reads from r; name is used in error messages.
func NewJSONStream(name string, r io.Reader) *JSONStream {
	src := &jsonSource{r: r, start: place{1, 1}}
	return &JSONStream{name: name, dec: json.NewDecoder(src), src: src}
}

// jsonSource keeps what was read and not yet passed, to count lines.
type jsonSource struct {
	r     io.Reader
	ahead []byte
	given int   // of ahead, to the decoder
	pos   int64 // of ahead
	start place // of ahead
	err   error // of r
}

func (s *jsonSource) Read(p []byte) (int, error) {
	if s.given == len(s.ahead) && !s.fetch() {
		return 0, s.err
	}
	n := copy(p, s.ahead[s.given:])
	s.given += n
	return n, nil
}

// fetch reads on, and reports whether there was something.
func (s *jsonSource) fetch() bool {
	if len(s.ahead) > MaxInput {
		s.err = errLongValue
	}
	had := len(s.ahead)
	for s.err == nil && len(s.ahead) == had {
		s.ahead = slices.Grow(s.ahead, 32<<10)
		var n int
		n, s.err = s.r.Read(s.ahead[had : had+32<<10])
		s.ahead = s.ahead[:had+n]
	}
	return len(s.ahead) > had
}

var errLongValue = errors.New("a single value of more than 64 MiB")

// pass takes n bytes from ahead.
func (s *jsonSource) pass(n int) {
	s.start = s.start.after(s.ahead[:n])
	s.ahead = s.ahead[n:]
	s.given -= n
	s.pos += int64(n)
}

// place is a line and column, from 1.
type place struct{ line, col int }

// after is the place behind text that begins here.
func (p place) after(text []byte) place {
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		return place{p.line + bytes.Count(text, []byte("\n")), len(text) - i}
	}
	return place{p.line, p.col + len(text)}
}

// Line is the line on which the next value begins.
func (s *JSONStream) Line() int {
	src := s.src
	src.pass(int(s.dec.InputOffset() - src.pos))
	blank := func(b []byte) []byte { return b[:len(b)-len(bytes.TrimLeft(b, " \t\r\n,:"))] }
	for len(blank(src.ahead)) == len(src.ahead) && src.fetch() {
	}
	s.at = src.start.after(blank(src.ahead))
	return s.at.line
}

// More reports another value: in the object or array that is open, else another
// document.
func (s *JSONStream) More() bool { return s.dec.More() }

// Decode reads the next value into v.
func (s *JSONStream) Decode(v any) error {
	s.Line()
	return s.fail(s.dec.Decode(v))
}

// Object reads the object that comes next. f is called for each key and must read
// its value.
func (s *JSONStream) Object(f func(key string) error) error {
	return s.container('{', func() error {
		tok, err := s.dec.Token()
		if err != nil {
			return s.fail(err)
		}
		key, _ := tok.(string)
		return f(key)
	})
}

// Array reads the array that comes next. f is called for each element and must
// read it.
func (s *JSONStream) Array(f func() error) error { return s.container('[', f) }

func (s *JSONStream) container(open json.Delim, f func() error) error {
	s.Line()
	tok, err := s.dec.Token()
	if err != nil {
		return s.fail(err)
	}
	if tok != open {
		return s.Fault("%v where an %s is wanted", tok, map[json.Delim]string{'{': "object", '[': "array"}[open])
	}
	for s.dec.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err = s.dec.Token()
	return s.fail(err)
}

// maxJSONDepth is far above what any source nests.
const maxJSONDepth = 1000

// Skip reads the next value and forgets it.
func (s *JSONStream) Skip() error {
	for depth := 0; ; {
		if s.Line(); depth > maxJSONDepth {
			return s.Fault("nested more than %d deep", maxJSONDepth)
		}
		tok, err := s.dec.Token()
		if err != nil {
			return s.fail(err)
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// Fault is an error at the value that was read last.
func (s *JSONStream) Fault(format string, args ...any) error {
	return &SyntaxError{File: s.name, Line: s.at.line, Col: s.at.col, Msg: fmt.Sprintf(format, args...)}
}

func (s *JSONStream) fail(err error) error {
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case s.src.err != nil && !errors.Is(s.src.err, io.EOF):
		return fmt.Errorf("%s: %w", s.name, s.src.err)
	case errors.As(err, &typ):
		return s.Fault("%s: %s does not fit", typ.Field, typ.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.at = s.src.start.after(s.src.ahead)
		return s.Fault("the document is cut off")
	}
	return s.Fault("%s", strings.TrimPrefix(err.Error(), "json: "))
}
