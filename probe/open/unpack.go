package open

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxDepth is how many archives and compressions may stand in one another.
	maxDepth = 4
	// What unpacks to more than maxRatio times its size, beyond ratioFrom, was made
	// to exhaust the reader; no log compresses so well.
	maxRatio  = 1000
	ratioFrom = 256 << 20
	// maxUnpacked is the most that one input may unpack to.
	maxUnpacked = 64 << 30
	// zstdMemory bounds the window that a zstd stream may ask for.
	zstdMemory = 256 << 20
)

// compression is one way to compress a stream.
type compression struct {
	name, magic string
	open        func(io.Reader) (io.Reader, error)
}

var compressions = []compression{
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMemory))
	}},
	{"bzip2", "BZh", func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }},
}

func compressionOf(magic []byte) *compression {
	for i, c := range compressions {
		if bytes.HasPrefix(magic, []byte(c.magic)) && (c.magic != "BZh" || len(magic) > 9 && bytes.HasPrefix(magic[4:], []byte("1AY&SY"))) {
			return &compressions[i]
		}
	}
	return nil
}

// read unpacks the stream and reads what is in it.
func (c *compression) read(p place, r io.Reader) ([]Source, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("%s: more than %d archives or compressions stand in one another; refused", p.name, maxDepth)
	}
	in := &counter{r: r}
	out, err := c.open(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", p.name, c.name, err)
	}
	if d, ok := out.(*zstd.Decoder); ok {
		defer d.Close()
	}
	return readInput(p, &unpacked{c: c, in: in, r: out})
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// unpacked refuses a stream that unpacks to too much, and names the compression
// in errors.
type unpacked struct {
	c  *compression
	in *counter
	r  io.Reader
	n  int64
}

func (u *unpacked) Read(b []byte) (int, error) {
	n, err := u.r.Read(b)
	u.n += int64(n)
	switch {
	case u.n > ratioFrom && u.n > maxRatio*u.in.n:
		return n, fmt.Errorf("%s: unpacks to more than %d times its size; refused", u.c.name, maxRatio)
	case u.n > maxUnpacked:
		return n, fmt.Errorf("%s: unpacks to more than %d GiB; refused", u.c.name, maxUnpacked>>30)
	case err != nil && err != io.EOF:
		return n, fmt.Errorf("%s: %w", u.c.name, err)
	}
	return n, err
}
