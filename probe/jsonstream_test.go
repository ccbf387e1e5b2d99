package probe

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestJSONStream(t *testing.T) {
	text := "{\n \"skip\": {\"a\": [1, {\"b\": \"}\"}]},\n \"list\": [\n  7,\n  8 ],\n\n \"last\": \"x\" }\n{\"list\": [9]}"
	s := NewJSONStream("f", iotest.OneByteReader(strings.NewReader(text)))
	var got []string
	for s.More() {
		err := s.Object(func(key string) error {
			if key != "list" {
				got = append(got, fmt.Sprintf("%s at %d", key, s.Line()))
				return s.Skip()
			}
			return s.Array(func() error {
				line, n := s.Line(), 0
				err := s.Decode(&n)
				got = append(got, fmt.Sprintf("%d at %d", n, line))
				return err
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := "[skip at 2 7 at 4 8 at 5 last at 7 9 at 8]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestJSONStreamFaults(t *testing.T) {
	read := func(r io.Reader) error {
		s := NewJSONStream("f", r)
		return s.Object(func(string) error {
			return s.Array(func() error {
				var n struct{ N int }
				return s.Decode(&n)
			})
		})
	}
	for text, want := range map[string]string{
		"":                              "f:1:1: the document is cut off",
		"[]":                            "f:1:1: [ where an object is wanted",
		"{\"a\":\n null}":               "f:2:2: <nil> where an array is wanted",
		"{\"a\": [\n  {\"N\": \"x\"}]}": "f:2:3: N: string does not fit",
		"{\"a\": [\n  {\"N\": 1":        "f:2:10: the document is cut off",
		"{\"a\": [{}\n  {}]}":           "f:",
		"{\"a\": [\n{\"N\" 1}]}":        "f:2:1: invalid character '1' after object key",
	} {
		err := read(strings.NewReader(text))
		var syn *SyntaxError
		if !errors.As(err, &syn) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	broken := errors.New("broken")
	if err := read(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
	long := io.MultiReader(strings.NewReader(`{"a": ["`), io.LimitReader(letters{}, 2*MaxInput))
	if err := read(long); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("endless string: %v", err)
	}
}

// Skipping costs no memory and no more than the reading.
func TestJSONStreamSkip(t *testing.T) {
	s := NewJSONStream("f", strings.NewReader("["+strings.Repeat("1,", 300_000)+"1] 7"))
	if err := s.Skip(); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.Decode(&n); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
	if err := NewJSONStream("f", strings.NewReader(strings.Repeat("[", 2000))).Skip(); err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("%v", err)
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
