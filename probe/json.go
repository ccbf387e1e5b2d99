package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Encode writes the inventory as one JSON document: sorted, validated, two
// equal inventories give the same bytes. Short objects stand on one line, so
// that a difference between two machines is a line.
func (inv *Inventory) Encode(w io.Writer) error {
	out := *inv
	out.Schema = Schema
	out.Normalize()
	if err := out.Validate(); err != nil {
		return err
	}
	raw, err := json.Marshal(&out)
	if err != nil {
		return err
	}
	_, err = w.Write(FormatJSON(raw))
	return err
}

// Decode reads an inventory document and validates it. name is used in error
// messages.
func Decode(name string, text []byte) (*Inventory, error) {
	if err := checkElements(name, text, maxElements); err != nil {
		return nil, err
	}
	var inv Inventory
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&inv); err != nil {
		return nil, jsonError(name, text, dec.InputOffset(), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, jsonError(name, text, dec.InputOffset(), errTrailing)
	}
	if inv.Schema != Schema {
		return nil, &SyntaxError{File: name, Msg: fmt.Sprintf("schema is %q, want %q", clip(inv.Schema), Schema)}
	}
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	inv.Normalize()
	return &inv, nil
}

// maxElements is the most objects that an inventory may hold; one of a host has a
// few thousand. In memory each takes far more room than the "{}," of a bomb.
const maxElements = 1 << 18

// checkElements refuses a text with more objects, or nulls in their place, than
// limit.
func checkElements(name string, text []byte, limit int) error {
	n, last := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\n', '\r', '\t':
			continue
		case '"':
			i = stringEnd(text, i) - 1
		case '{':
			n++
		case 'n':
			if last == '[' || last == ',' {
				n++
			}
		}
		if i < len(text) {
			last = text[i]
		}
		if n > limit {
			line, col := PositionOf(text, int64(i))
			return &SyntaxError{File: name, Line: line, Col: col, Msg: fmt.Sprintf("more than %d objects, which no such document holds; refused", limit)}
		}
	}
	return nil
}

var errTrailing = errors.New("text after the document")

func jsonError(name string, text []byte, offset int64, err error) error {
	var syn *json.SyntaxError
	var typ *json.UnmarshalTypeError
	var val *valueError
	msg := strings.TrimPrefix(err.Error(), "json: ")
	switch {
	case errors.As(err, &syn):
		offset = syn.Offset
	case errors.As(err, &typ):
		offset = typ.Offset
		msg = fmt.Sprintf("%s: %s does not fit", typ.Field, typ.Value)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		offset, msg = int64(len(text)), "the document is cut off"
	case errors.As(err, &val) && bytes.Count(text, []byte(val.raw)) == 1:
		offset = int64(bytes.Index(text, []byte(val.raw)))
	case !errors.Is(err, errTrailing):
		// The value stands in the message; where it is, the decoder does not say.
		return &SyntaxError{File: name, Msg: msg}
	}
	line, col := PositionOf(text, offset)
	return &SyntaxError{File: name, Line: line, Col: col, Msg: msg}
}

// FormatJSON lays out valid compact JSON: one member or element a line, but
// objects and arrays that are short on a single line. The result ends with a
// newline.
func FormatJSON(compact []byte) []byte {
	var out bytes.Buffer
	f := jsonFormatter{in: compact, out: &out}
	f.value(0)
	out.WriteByte('\n')
	return out.Bytes()
}

// leafWidth is the longest object or array, in compact form, that stays on one
// line.
const leafWidth = 160

type jsonFormatter struct {
	in  []byte
	pos int
	out *bytes.Buffer
}

func (f *jsonFormatter) value(depth int) {
	c := f.in[f.pos]
	if c != '{' && c != '[' {
		f.out.Write(f.in[f.pos:f.scalarEnd()])
		f.pos = f.scalarEnd()
		return
	}
	if leaf, end := f.leaf(); leaf {
		f.flat(end)
		return
	}
	f.out.WriteByte(c)
	f.pos++
	for first := true; ; first = false {
		if f.in[f.pos] == ',' {
			f.pos++
			f.out.WriteByte(',')
		}
		if c := f.in[f.pos]; c == '}' || c == ']' {
			f.pos++
			if !first {
				f.newline(depth)
			}
			f.out.WriteByte(c)
			return
		}
		f.newline(depth + 1)
		if c == '{' {
			end := f.scalarEnd()
			f.out.Write(f.in[f.pos:end])
			f.out.WriteString(": ")
			f.pos = end + 1
		}
		f.value(depth + 1)
	}
}

// leaf reports whether the container at pos is short, and where it ends.
func (f *jsonFormatter) leaf() (bool, int) {
	depth := 0
	for i := f.pos; i < len(f.in) && i-f.pos < leafWidth; i++ {
		switch f.in[i] {
		case '"':
			i = stringEnd(f.in, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return true, i + 1
			}
		}
	}
	return false, 0
}

func (f *jsonFormatter) flat(end int) {
	for i := f.pos; i < end; i++ {
		switch c := f.in[i]; c {
		case '"':
			e := stringEnd(f.in, i)
			f.out.Write(f.in[i:e])
			i = e - 1
		case ',', ':':
			f.out.WriteByte(c)
			f.out.WriteByte(' ')
		default:
			f.out.WriteByte(c)
		}
	}
	f.pos = end
}

func (f *jsonFormatter) scalarEnd() int {
	if f.in[f.pos] == '"' {
		return stringEnd(f.in, f.pos)
	}
	i := f.pos
	for i < len(f.in) && !bytes.ContainsRune([]byte(",}]"), rune(f.in[i])) {
		i++
	}
	return i
}

func (f *jsonFormatter) newline(depth int) {
	f.out.WriteByte('\n')
	for range depth {
		f.out.WriteByte(' ')
	}
}

// stringEnd returns the index after the closing quote of the string at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
