package open

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/ncclmap/ncclmap/probe"
)

// headSize is how much of an input is looked at to recognise it. What is shorter
// is read whole, so that any part of it counts.
const headSize = 4 << 20

// place is where an input came from.
type place struct {
	name   string // for messages
	base   string // what origins call it
	folder string // see probe.Part
	depth  int    // of archives and compressions around it
}

// readInput reads one input: unpacks it, recognises it, reads it.
func readInput(p place, r io.Reader) ([]Source, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	magic, err := br.Peek(tarMagicEnd)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if c := compressionOf(magic); c != nil {
		return c.read(p, br)
	}
	if isTar(magic) {
		return readTar(p, br)
	}
	head, err := io.ReadAll(io.LimitReader(br, headSize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if len(head) < headSize {
		return recognise(p, head)
	}
	if streams := streamsOf(head); len(streams) > 0 {
		return readStreams(p, streams, io.MultiReader(bytes.NewReader(head), br))
	}
	limit := int64(probe.MaxInput)
	if formats[0].sniff(head) {
		limit = maxCluster
	}
	text, err := probe.ReadUpTo(io.MultiReader(bytes.NewReader(head), br), limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return recognise(p, text)
}

// maxCluster is the largest cluster document, which holds the inventories of
// many hosts.
const maxCluster = 512 << 20

// streamsOf returns the formats of a text of which only the head is known; none
// where a format that reads the whole text at once claims it.
func streamsOf(head []byte) []format {
	var out []format
	for _, f := range formats {
		switch {
		case !f.sniff(head):
		case f.document && f.stream != nil:
			return []format{f}
		case f.document:
			return nil
		case f.stream != nil:
			out = append(out, f)
		}
	}
	return out
}

// readStreams gives a text to several readers at once, as it comes.
func readStreams(p place, streams []format, r io.Reader) ([]Source, error) {
	if len(streams) == 1 {
		s, err := streams[0].source(p, func(f format) ([]*probe.Inventory, error) { return f.stream(p.base, r) })
		return []Source{s}, err
	}
	out := make([]Source, len(streams))
	errs := make([]error, len(streams))
	writers := make([]io.Writer, len(streams))
	pipes := make([]*io.PipeWriter, len(streams))
	var wg sync.WaitGroup
	for i, f := range streams {
		pr, pw := io.Pipe()
		pipes[i], writers[i] = pw, pw
		wg.Go(func() {
			out[i], errs[i] = f.source(p, func(f format) ([]*probe.Inventory, error) { return f.stream(p.base, pr) })
			// A reader that gave up must not hold up the others.
			_, _ = io.Copy(io.Discard, pr)
		})
	}
	_, err := io.CopyBuffer(io.MultiWriter(writers...), r, make([]byte, 256<<10))
	for _, w := range pipes {
		w.CloseWithError(err)
	}
	wg.Wait()
	return out, errors.Join(append(errs, err)...)
}

// recognise finds the formats of a whole text and reads it.
func recognise(p place, text []byte) ([]Source, error) {
	text = plain(text)
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("%s: empty", p.name)
	}
	var out []Source
	for _, f := range formats {
		if !f.sniff(text) {
			continue
		}
		s, err := f.source(p, func(f format) ([]*probe.Inventory, error) {
			if f.stream != nil {
				return f.stream(p.base, bytes.NewReader(text))
			}
			return f.read(p.base, text)
		})
		if err != nil {
			return nil, err
		}
		out = append(out, s)
		if f.document {
			break
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	what := "text"
	switch head := text[:min(len(text), 8192)]; {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")), bytes.HasPrefix(head, []byte("7z\xbc\xaf\x27\x1c")):
		return nil, fmt.Errorf("%s: a zip, xz or 7z archive is %w; unpack it and name its folder", p.name, ErrUnrecognised)
	case bytes.IndexByte(head, 0) >= 0:
		what = "binary data"
	}
	return nil, fmt.Errorf("%s: %s %w; readable are: %s", p.name, what, ErrUnrecognised, strings.Join(Kinds(), ", "))
}

// plain turns UTF-16, as PowerShell and some editors save it, into UTF-8; other
// texts are left to their readers.
func plain(text []byte) []byte {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		if s, err := probe.DecodeText(text); err == nil {
			return []byte(s)
		}
	}
	return probe.TrimBOM(text)
}

// source makes the source of what the format's reader returns.
func (f format) source(p place, read func(format) ([]*probe.Inventory, error)) (Source, error) {
	invs, err := read(f)
	if err != nil {
		return Source{}, p.locate(err)
	}
	s := Source{Name: p.name, Kind: f.kind}
	for _, inv := range invs {
		s.parts = append(s.parts, probe.Part{Inv: inv, File: p.name, Folder: p.folder, Claim: f.kind == kindNCCLXML})
	}
	return s, nil
}

// locate adds to an error, which names the file, the archive or folder it is in.
func (p place) locate(err error) error {
	if where := strings.TrimSuffix(p.name, p.base); p.folder != "" && where != "" {
		return fmt.Errorf("%s: %w", strings.TrimRight(where, "/:"), err)
	}
	return err
}
