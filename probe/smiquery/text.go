package smiquery

import (
	"errors"
	"regexp"
	"strings"
	"unicode"

	"github.com/ncclmap/ncclmap/probe"
)

// plainText turns what a terminal, an editor or PowerShell made of the output
// back into lines of text: UTF-16, byte order marks, control sequences, and the
// blanks of web pages.
func plainText(raw []byte) ([]string, error) {
	text, err := probe.DecodeText(raw)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("empty: no output of nvidia-smi")
	}
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
