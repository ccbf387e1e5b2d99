package probe

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

func TestEachLine(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct {
		in   string
		want []string // number:length:cut
	}{
		{"", nil},
		{"a", []string{"1:1:false"}},
		{"ab\r\n\nc\n", []string{"1:2:false", "2:0:false", "3:1:false"}},
		{strings.Repeat("y", 100_000) + "\nz", []string{"1:100000:false", "2:1:false"}},
		{long + "\nz", []string{"1:1048576:true", "2:1:false"}}, // with its end it is over MaxLine
		{long[1:] + "\nz", []string{"1:1048575:false", "2:1:false"}},
		{long + "more", []string{"1:1048576:true"}},
	} {
		var got []string
		err := EachLine(strings.NewReader(c.in), func(n int, line []byte, cut bool) bool {
			got = append(got, fmt.Sprintf("%d:%d:%v", n, len(line), cut))
			return true
		})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%.20q of %d bytes: %v %v, want %v", c.in, len(c.in), got, err, c.want)
		}
	}
	n := 0
	if err := EachLine(strings.NewReader("1\n2\n3\n"), func(int, []byte, bool) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("stopped after %d lines: %v", n, err)
	}
	want := errors.New("disk")
	if err := EachLine(iotest.ErrReader(want), func(int, []byte, bool) bool { return true }); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestDecodeText(t *testing.T) {
	for in, want := range map[string]string{
		"GPU0":                       "GPU0",
		"\xef\xbb\xbfGPU0":           "GPU0",
		"\xff\xfeG\x00P\x00\xac\x20": "GP€",
		"\xfe\xff\x00G\x00P\x20\xac": "GP€",
		"\xff\xfeG\x00P":             "G", // cut within a character
		"na\xefve":                   "na?ve",
		"":                           "",
	} {
		if got, err := DecodeText([]byte(in)); got != want || err != nil {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"\x7fELF\x00", "\xff\xfe\x00\x00"} {
		if got, err := DecodeText([]byte(in)); err == nil {
			t.Errorf("%q: %q, want an error", in, got)
		}
	}
}

func TestOneLineAndExcerpt(t *testing.T) {
	if got := OneLine(" a\tb\x1b[1m\xffé ", 64); got != "a b [1m?é" {
		t.Errorf("OneLine %q", got)
	}
	if got := OneLine("aé", 2); got != "a?" {
		t.Errorf("OneLine cut within a character: %q", got)
	}
	if got := Excerpt(strings.Repeat("a", 60)); got != strings.Repeat("a", 60) {
		t.Errorf("Excerpt of 60 bytes: %q", got)
	}
	if got := Excerpt(strings.Repeat("a", 59) + "é"); got != strings.Repeat("a", 59)+"…" {
		t.Errorf("Excerpt cut within a character: %q", got)
	}
}

func TestParseHexGroups(t *testing.T) {
	for _, c := range []struct {
		in     string
		groups int
		want   string
		bad    bool
	}{
		{"9803:9B03:00aa:bb01", 4, "9803:9b03:00aa:bb01", false},
		{"0000:0000:0000:0000", 4, "", false},
		{"fe80:0000:0000:0000:9803:9b03:00aa:bb01", 8, "fe80:0000:0000:0000:9803:9b03:00aa:bb01", false},
		{"9803:9b03:00aa:bb01", 8, "", true},
		{"9803:9b03:0aa:bb01", 4, "", true},
		{"9803:9b03:00ag:bb01", 4, "", true},
		{"", 4, "", true},
	} {
		if got, err := ParseHexGroups(c.in, c.groups); got != c.want || (err != nil) != c.bad {
			t.Errorf("%q of %d: %q %v, want %q", c.in, c.groups, got, err, c.want)
		}
	}
}

// UTF8Reader converts UTF-16 wherever the pieces end, and leaves other texts.
func TestUTF8Reader(t *testing.T) {
	text := strings.Repeat("rank 0 \u2192 rank 1, \U0001f600 caf\u00e9\r\n", 3000)
	encode := func(order binary.AppendByteOrder, mark bool) []byte {
		var b []byte
		if mark {
			b = order.AppendUint16(b, 0xfeff)
		}
		for _, u := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, u)
		}
		return b
	}
	ascii := []byte("x\x00y\x00\n\x00x\x00y\x00z\x00 \x00a\x00b\x00c\x00")
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"plain": {[]byte(text), text}, "UTF-8 mark": {[]byte("\xef\xbb\xbf" + text), text},
		"little": {encode(binary.LittleEndian, true), text}, "big": {encode(binary.BigEndian, true), text},
		"no mark": {ascii, "xy\nxyz abc"}, "odd end": {append(slices.Clone(ascii), 'd'), "xy\nxyz abc"}, "zeros": {make([]byte, 64), string(make([]byte, 64))}, "empty": {nil, ""},
	} {
		for _, r := range []io.Reader{bytes.NewReader(c.in), iotest.OneByteReader(bytes.NewReader(c.in))} {
			got, err := io.ReadAll(UTF8Reader(bufio.NewReader(r)))
			if err != nil || string(got) != c.want {
				t.Errorf("%s: %v, %.80q", name, err, got)
			}
		}
		if got, err := DecodeText(c.in); name != "zeros" && (err != nil || got != c.want) {
			t.Errorf("%s: DecodeText: %v, %.80q", name, err, got)
		}
	}
}

func TestCheckElements(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [{}, {}], "b": "{{{,null"}`: "", `{"a": [{}, {}, {}]}`: "x:1:16: more than 3 objects", `{"a": [null, null, null], "b": null}`: "x:1:", `{"a`: "",
	} {
		err := checkElements("x", []byte(text), 3)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
