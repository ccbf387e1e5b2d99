package nccltests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/ncclmap/ncclmap/probe"
)

// Sniff reports whether a text is output of nccl-tests: its header, its device
// list, its columns or a result row; or the JSON of -J. head may end anywhere.
func Sniff(head []byte) bool {
	if isJSON(head) {
		return bytes.Contains(head, []byte(`"start_time"`)) && bytes.Contains(head, []byte(`"args"`)) ||
			bytes.Contains(head, []byte(`"average_bus_bandwi`))
	}
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		if len(line) > 8<<10 {
			line = line[:8<<10]
		}
		if bytes.Contains(line, []byte("algbw")) && bytes.Contains(line, []byte("busbw")) && bytes.Contains(line, []byte("count")) ||
			bytes.Contains(line, []byte("nThread ")) && bytes.Contains(line, []byte("nGpus ")) ||
			bytes.Contains(line, []byte("nccl-tests version ")) ||
			bytes.Contains(line, []byte("# Avg bus bandwidth")) {
			return true
		}
		if f := fields(nil, clean(line)); len(f) >= 12 {
			if at := rowStart(f); at >= 0 && len(f)-at >= 11 {
				return true
			}
		}
	}
	return false
}

// Read reads the output of nccl-tests; name is the input's base name. An input
// that holds no run is a *probe.SyntaxError. JSON over probe.MaxInput is
// probe.ErrTooLarge; text may have any length.
func Read(name string, r io.Reader) (*Output, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if isJSON(head) {
		raw, err := probe.ReadAll(br)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return readJSON(name, raw)
	}
	s := newState(name)
	err = probe.EachLine(br, func(n int, line []byte, cut bool) bool {
		s.line(n, line, cut)
		return !s.binary
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s.finish()
}

func isJSON(head []byte) bool {
	head = bytes.TrimLeft(probe.TrimBOM(head), " \t\r\n")
	return len(head) > 1 && head[0] == '{' && bytes.IndexByte([]byte(" \t\r\n\""), head[1]) >= 0
}
