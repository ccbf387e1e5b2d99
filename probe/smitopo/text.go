package smitopo

import (
	"errors"
	"regexp"
	"strings"
	"unicode"

	"github.com/ncclmap/ncclmap/probe"
)

// plainText turns what a terminal, an editor or PowerShell made of the output
// back into text: UTF-16 and UTF-8 with a byte order mark, terminal control
// sequences.
func plainText(raw []byte) (string, error) {
	text, err := probe.DecodeText(raw)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", errors.New("empty: no matrix")
	}
	if mayEscape(text) {
		text = escapes.ReplaceAllString(text, "")
	}
	return text, nil
}

// mayEscape reports a text that may hold a match of escapes: the search itself is
// slow, and long logs are tried too.
func mayEscape(text string) bool {
	for _, mark := range []string{"\x1b", "\u241b", "^[", "\u009b", "\x07", "\x08", "\x0e", "\x0f"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "[")
		if !found {
			return false
		}
		rest = after
		if n := len(after) - len(strings.TrimLeft(after, "0123456789;")); n > 0 && n < len(after) && after[n] == 'm' {
			return true
		}
	}
}

// escapes are control sequences (ECMA-48 CSI and OSC), and colour codes whose
// escape character was lost or made visible on the way.
var escapes = regexp.MustCompile(`(?:(?:\x1b|\x{241b}|\^\[)\[|\x{9b})[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;]+m|\x1b[()][A-Z0-9]|[\x07\x08\x0e\x0f]`)

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
		if strings.HasPrefix(l, "[") {
			out[i] = rankPrefix.ReplaceAllString(l, "")
		}
	}
	return out
}
