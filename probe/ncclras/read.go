package ncclras

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ncclmap/ncclmap/probe"
)

// Sniff reports whether a text is an answer of the RAS service, in JSON or as
// text. head may end anywhere.
func Sniff(head []byte) bool {
	if isJSON(head) {
		return bytes.Contains(head, []byte(`"communicators"`)) && (bytes.Contains(head, []byte(`"secondary_hash"`)) || bytes.Contains(head, []byte(`"communicators_count"`)))
	}
	return bytes.Contains(head, []byte("  per node  per comm  in group")) && bytes.Contains(head, []byte("Communicators..."))
}

func isJSON(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(probe.TrimBOM(head), " \t\r\n"), []byte("{"))
}

// Bounds of what is kept of one file.
const (
	maxComms = 1 << 16
	maxRanks = 1 << 20 // over all communicators
	maxSize  = 1 << 20 // ranks of one communicator
)

// Read reads reports of any length; name is the input's base name. JSON that is
// none of the service, is cut or faulty is a *probe.SyntaxError.
func Read(name string, r io.Reader) (*Report, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		_, _ = br.Discard(3)
	}
	if isJSON(head) {
		return readJSON(name, br)
	}
	return readText(name, br)
}
