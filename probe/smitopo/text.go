package smitopo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// plainText turns what a terminal, an editor or PowerShell made of the output
// back into text: UTF-16 and UTF-8 with a byte order mark, terminal control
// sequences.
func plainText(raw []byte) (string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		raw = fromUTF16(raw[2:], binary.LittleEndian)
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		raw = fromUTF16(raw[2:], binary.BigEndian)
	default:
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return "", errors.New("binary data, not text")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return "", errors.New("empty: no matrix")
	}
	if !utf8.Valid(raw) {
		// A prompt in another encoding does no harm to the matrix.
		raw = bytes.ToValidUTF8(raw, []byte("?"))
	}
	return escapes.ReplaceAllString(string(raw), ""), nil
}

// escapes are control sequences (ECMA-48 CSI and OSC), and colour codes whose
// escape character was lost or made visible on the way.
var escapes = regexp.MustCompile(`(?:(?:\x1b|\x{241b}|\^\[)\[|\x{9b})[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;]+m|\x1b[()][A-Z0-9]|[\x07\x08\x0e\x0f]`)

func fromUTF16(b []byte, order binary.ByteOrder) []byte {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(u)))
}

// rankPrefix is what mpirun --tag-output puts before each line.
var rankPrefix = regexp.MustCompile(`^\[\d+,\d+\]<std(?:out|err)>: ?`)

// lines splits a text; the no-break and other blanks of web pages become plain
// ones.
func lines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) && r != '\t' && r != '\n' {
			return ' '
		}
		return r
	}, text)
	out := strings.Split(text, "\n")
	for i, l := range out {
		out[i] = rankPrefix.ReplaceAllString(l, "")
	}
	return out
}
