package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// MaxInput is the largest single input that is read, in bytes. No topology,
// matrix or inventory comes near it; what is larger was named by mistake.
const MaxInput = 64 << 20

// ErrTooLarge marks an input over MaxInput.
var ErrTooLarge = errors.New("larger than 64 MiB, which no topology or inventory is; refused")

// ReadAll reads r to its end and refuses what is larger than MaxInput.
func ReadAll(r io.Reader) ([]byte, error) { return ReadUpTo(r, MaxInput) }

// ReadUpTo reads r to its end and refuses what is larger than limit bytes.
func ReadUpTo(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, ErrTooLarge
	}
	return b, nil
}

// SyntaxError is a fault in a text at a place.
type SyntaxError struct {
	File string // base name or "-"; may be empty
	Line int    // from 1; 0 = the file as a whole
	Col  int    // from 1; 0 = the line as a whole
	Msg  string
}

func (e *SyntaxError) Error() string {
	at := e.File
	if at == "" {
		at = "input"
	}
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
		if e.Col > 0 {
			at = fmt.Sprintf("%s:%d", at, e.Col)
		}
	}
	return at + ": " + e.Msg
}

// PositionOf turns a byte offset into a line and column, both from 1; columns
// count bytes.
func PositionOf(text []byte, offset int64) (line, col int) {
	n := min(max(int(offset), 0), len(text))
	line = 1 + bytes.Count(text[:n], []byte("\n"))
	return line, n - bytes.LastIndexByte(text[:n], '\n')
}

// checkText reports the first reason why s is not a plain one-line text.
func checkText(s string) error {
	const maxText = 4096
	if len(s) > maxText {
		return fmt.Errorf("text of %d bytes is longer than %d", len(s), maxText)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not valid UTF-8", clip(s))
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return fmt.Errorf("%q holds a control character", clip(s))
		}
	}
	return nil
}
