package smiquery

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
// back into lines of text: UTF-16, byte order marks, control sequences, and the
// blanks of web pages.
func plainText(raw []byte) ([]string, error) {
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		raw = fromUTF16(raw[2:], binary.LittleEndian)
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		raw = fromUTF16(raw[2:], binary.BigEndian)
	default:
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		return nil, errors.New("binary data, not text")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, errors.New("empty: no output of nvidia-smi")
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("?"))
	}
	text := string(raw)
	if strings.ContainsAny(text, "\x1b\x07\x08\u009b") {
		text = escapes.ReplaceAllString(text, "")
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII && unicode.IsSpace(r) }) {
		text = strings.Map(func(r rune) rune {
			if r > unicode.MaxASCII && unicode.IsSpace(r) {
				return ' '
			}
			return r
		}, text)
	}
	return strings.Split(text, "\n"), nil
}

// escapes are control sequences (ECMA-48 CSI and OSC) and stray bells. None of
// them swallows the end of a line, so that lines keep their numbers.
var escapes = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|[\x07\x08]`)

func fromUTF16(b []byte, order binary.ByteOrder) []byte {
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(u)))
}

// clip keeps quoted input in messages short.
func clip(s string) string {
	const max = 60
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max], "") + "…"
}
