package probe

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxLine is the longest line of a log that is read whole, in bytes.
const MaxLine = 1 << 20

// EachLine calls f with each line of r, its number from 1 and whether it was cut
// at MaxLine, until f returns false. The bytes, without the end of the line, are
// valid until f returns. The only errors are those of r.
func EachLine(r io.Reader, f func(n int, line []byte, cut bool) bool) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for n := 1; ; n++ {
		line, err := br.ReadSlice('\n')
		cut := false
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], line...)
			for errors.Is(err, bufio.ErrBufferFull) {
				line, err = br.ReadSlice('\n')
				keep := min(len(line), MaxLine-len(long))
				long = append(long, line[:keep]...)
				cut = cut || keep < len(line)
			}
			line = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 && !f(n, bytes.TrimRight(line, "\r\n"), cut) || err != nil {
			return nil
		}
	}
}

// TrimBOM removes the byte order mark of UTF-8.
func TrimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }

// DecodeText turns what a terminal, an editor or PowerShell saved into UTF-8:
// UTF-16 is converted, byte order marks go, and "?" stands for bytes of another
// encoding. Binary data is an error.
func DecodeText(raw []byte) (string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		raw = fromUTF16(raw[2:], binary.LittleEndian)
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		raw = fromUTF16(raw[2:], binary.BigEndian)
	default:
		raw = TrimBOM(raw)
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", errors.New("binary data, not text")
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("?"))
	}
	return string(raw), nil
}

func fromUTF16(b []byte, order binary.ByteOrder) []byte {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(u)))
}

// OneLine makes one line of printable text of the first limit bytes of a line
// of a log.
func OneLine(s string, limit int) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), limit)], "?")))
}

// Excerpt keeps quoted input in messages short.
func Excerpt(s string) string {
	const limit = 60
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
