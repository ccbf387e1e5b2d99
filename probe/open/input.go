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
	br = probe.UTF8Reader(br)
	head, err := io.ReadAll(io.LimitReader(br, headSize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	if len(head) < headSize {
		return recognise(p, head)
	}
	whole := io.Reader(io.MultiReader(bytes.NewReader(head), br))
	if streams := streamsOf(head); len(streams) > 0 {
		if !streams[0].document {
			whole = unpaste(head, whole)
		}
		return readStreams(p, streams, whole)
	}
	limit := int64(probe.MaxInput)
	if formats[0].sniff(head) {
		limit = maxCluster
	}
	text, err := probe.ReadUpTo(whole, limit)
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
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("%s: %w", p.name, errEmpty)
	}
	fs := formatsOf(text)
	if len(fs) == 1 && fs[0].document {
		return readText(p, text, fs)
	}
	plain, err := io.ReadAll(unpaste(text, bytes.NewReader(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	var out []Source
	documents, rest := takeDocuments(plain)
	if len(documents) > 0 || !bytes.Equal(rest, text) {
		fs = formatsOf(rest)
	}
	for _, d := range documents {
		s, err := readText(p, d, formatsOf(d))
		if err != nil {
			return nil, err
		}
		out = append(out, s...)
	}
	s, err := readText(p, rest, fs)
	if err != nil {
		return nil, err
	}
	if out = append(out, s...); len(out) == 0 {
		return nil, refuse(p, plain)
	}
	return out, nil
}

// formatsOf returns the formats of a whole text: one document, or what stands in it
// together.
func formatsOf(text []byte) []format {
	var out []format
	for _, f := range formats {
		if f.document && len(out) > 0 || !f.sniff(text) {
			continue
		}
		out = append(out, f)
		if f.document {
			break
		}
	}
	return out
}

// readText gives a whole text to its readers.
func readText(p place, text []byte, fs []format) ([]Source, error) {
	var out []Source
	for _, f := range fs {
		s, err := f.source(p, func(f format) ([]*probe.Inventory, error) {
			if f.stream != nil {
				return f.stream(p.base, bytes.NewReader(text))
			}
			return f.read(p.base, straighten(text))
		})
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
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
