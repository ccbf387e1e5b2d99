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
	if order := utf16Order(raw); order != nil {
		raw = fromUTF16(raw, order)
	}
	raw = TrimBOM(raw)
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", errors.New("binary data, not text")
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("?"))
	}
	return string(raw), nil
}

// utf16Order returns the byte order of a text in UTF-16, nil of any other. Without
// a byte order mark it is known by the zeros of ASCII characters.
func utf16Order(head []byte) binary.ByteOrder {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return binary.LittleEndian
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return binary.BigEndian
	}
	head = head[:min(len(head)&^1, 512)]
	little, big := 0, 0
	for i := 0; i < len(head); i += 2 {
		switch a, b := head[i], head[i+1]; {
		case b == 0 && isASCIIText(a):
			little++
		case a == 0 && isASCIIText(b):
			big++
		}
	}
	switch most := len(head) / 2 * 9 / 10; {
	case len(head) < 16:
	case little >= most:
		return binary.LittleEndian
	case big >= most:
		return binary.BigEndian
	}
	return nil
}

func isASCIIText(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\r' || c == '\t' }

func fromUTF16(b []byte, order binary.ByteOrder) []byte {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(u)))
}

// UTF8Reader gives a text as UTF-8: one in UTF-16 is converted as it comes, any
// other is left as it is, without the byte order mark.
func UTF8Reader(r *bufio.Reader) *bufio.Reader {
	head, _ := r.Peek(512) // an error comes again when it is read
	if order := utf16Order(head); order != nil {
		r = bufio.NewReaderSize(&utf16Reader{r: r, order: order}, 64<<10)
	}
	if head, _ := r.Peek(3); len(TrimBOM(head)) < len(head) {
		_, _ = r.Discard(3)
	}
	return r
}

type utf16Reader struct {
	r     io.Reader
	order binary.ByteOrder
	raw   [8 << 10]byte
	n     int // bytes of raw that could not be converted yet
	out   []byte
	err   error
}

func (u *utf16Reader) Read(b []byte) (int, error) {
	for len(u.out) == 0 && u.err == nil {
		var n int
		n, u.err = io.ReadAtLeast(u.r, u.raw[u.n:], 1)
		u.n += n
		whole := u.n &^ 1
		// The second half of a pair may be still to come.
		if u.err == nil && whole >= 2 && utf16.IsSurrogate(rune(u.order.Uint16(u.raw[whole-2:]))) && u.order.Uint16(u.raw[whole-2:]) < 0xdc00 {
			whole -= 2
		}
		u.out = fromUTF16(u.raw[:whole], u.order)
		u.n = copy(u.raw[:], u.raw[whole:u.n])
	}
	n := copy(b, u.out)
	if u.out = u.out[n:]; n > 0 {
		return n, nil
	}
	return 0, u.err
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
