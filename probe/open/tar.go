package open

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

const (
	tarMagicAt  = 257
	tarMagicEnd = tarMagicAt + 5

	// Bounds of one archive; a recording of a thousand hosts stays below them.
	maxMembers   = 1 << 20
	maxRootFile  = 16 << 20
	maxRootBytes = 1 << 30
)

func isTar(magic []byte) bool {
	return len(magic) >= tarMagicEnd && string(magic[tarMagicAt:tarMagicEnd]) == "ustar"
}

// rootFolders are the folders of a recorded root. A member below one of them
// belongs to the root that holds the folder.
var rootFolders = []string{"sys", "proc", "dev", "etc"}

// readTar reads an archive as readFolder reads a folder: what is below sys/,
// proc/, dev/ or etc/ makes a recorded root, every other file is recognised by
// its content. Nothing is written to disk; members and links that would leave
// the archive make it refused.
func readTar(p place, r io.Reader) ([]Source, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("%s: more than %d archives or compressions stand in one another; refused", p.name, maxDepth)
	}
	a := archive{place: p, roots: map[string]fstest.MapFS{}}
	tr := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return a.finish()
		}
		if err == nil && n >= maxMembers {
			err = fmt.Errorf("more than %d members; refused", maxMembers)
		}
		if err == nil {
			err = a.member(h, tr)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
}

type archive struct {
	place
	roots   map[string]fstest.MapFS // by the path of the root in the archive
	bytes   int64                   // kept of roots
	sources []Source
}

// member takes in one member. An error refuses the archive.
func (a *archive) member(h *tar.Header, r io.Reader) error {
	name := path.Clean(h.Name)
	if path.IsAbs(h.Name) || name == ".." || strings.HasPrefix(name, "../") {
		return fmt.Errorf("member %q leaves the archive; refused", probe.Excerpt(h.Name))
	}
	root, below := splitRoot(name)
	switch h.Typeflag {
	case tar.TypeReg:
		if below != "" {
			return a.rootFile(root, below, h, r)
		}
		a.file(name, r)
	case tar.TypeSymlink, tar.TypeLink:
		return a.link(name, root, below, h)
	case tar.TypeChar, tar.TypeBlock:
		// Of a device node only its being there counts.
		if below != "" {
			a.put(root, below, &fstest.MapFile{Mode: 0o444})
		}
	case tar.TypeDir:
		if below != "" {
			a.put(root, below, &fstest.MapFile{Mode: fs.ModeDir | 0o555})
		}
	}
	return nil
}

// splitRoot splits a member's path at the first folder of a recorded root.
func splitRoot(name string) (root, below string) {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if slices.Contains(rootFolders, p) {
			return path.Join(parts[:i]...), path.Join(parts[i:]...)
		}
	}
	return "", ""
}

func (a *archive) put(root, below string, f *fstest.MapFile) {
	if a.roots[root] == nil {
		a.roots[root] = fstest.MapFS{}
	}
	a.roots[root][below] = f
}

func (a *archive) rootFile(root, below string, h *tar.Header, r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxRootFile+1))
	if err != nil {
		return fmt.Errorf("member %q: %w", probe.Excerpt(h.Name), err)
	}
	if len(text) > maxRootFile {
		a.skip(h.Name, fmt.Sprintf("larger than %d MiB, which no file of a recorded root is", maxRootFile>>20))
		return nil
	}
	if a.bytes += int64(len(text)); a.bytes > maxRootBytes {
		return fmt.Errorf("its recorded roots hold more than %d GiB; refused", maxRootBytes>>30)
	}
	a.put(root, below, &fstest.MapFile{Data: text, Mode: 0o444})
	return nil
}

// file reads a member that is no part of a root.
func (a *archive) file(name string, r io.Reader) {
	p := place{name: a.name + "/" + name, base: path.Base(name), folder: path.Join(a.name, path.Dir(name)), depth: a.depth}
	s, err := readInput(p, r)
	if err != nil {
		a.sources = append(a.sources, skipped(p.name, err))
		return
	}
	a.sources = append(a.sources, s...)
}

// link takes in a link of a root. Links between other members name what is read
// anyway.
func (a *archive) link(name, root, below string, h *tar.Header) error {
	target := h.Linkname
	if h.Typeflag == tar.TypeLink {
		target = "/" + target // hard links are relative to the archive
	}
	full := path.Join(path.Dir(name), target)
	if path.IsAbs(target) {
		full = path.Clean(strings.TrimPrefix(target, "/"))
		if h.Typeflag == tar.TypeSymlink {
			if below != "" && (strings.HasPrefix(below, "dev/") || strings.HasPrefix(below, "proc/") || strings.HasPrefix(below, "etc/")) {
				return nil // the kernel's and the system's own, such as dev/core; not followed
			}
			return fmt.Errorf("link %q leads out of the archive, to %q; refused", probe.Excerpt(h.Name), probe.Excerpt(h.Linkname))
		}
	}
	if full == ".." || strings.HasPrefix(full, "../") {
		return fmt.Errorf("link %q leads out of the archive, to %q; refused", probe.Excerpt(h.Name), probe.Excerpt(h.Linkname))
	}
	if below == "" {
		return nil
	}
	if h.Typeflag == tar.TypeLink {
		if to, rest := splitRoot(full); to == root && a.roots[root][rest] != nil {
			a.put(root, below, a.roots[root][rest])
		}
		return nil
	}
	a.put(root, below, &fstest.MapFile{Data: []byte(h.Linkname), Mode: fs.ModeSymlink | 0o777})
	return nil
}

func (a *archive) skip(name, why string) {
	a.sources = append(a.sources, Source{Name: a.name + "/" + name, Skip: why})
}

// finish reads the roots that were collected.
func (a *archive) finish() ([]Source, error) {
	var names []string
	for name := range a.roots {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		inv, err := sysfs.Read(a.roots[name], sysfs.Options{})
		if err != nil {
			a.sources = append(a.sources, skipped(path.Join(a.name, name), err))
			continue
		}
		full := path.Join(a.name, name)
		a.sources = append(a.sources, Source{Name: full, Kind: kindRoot, parts: []probe.Part{{Inv: inv, File: full, Folder: full}}})
	}
	return usable(a.name, a.sources)
}

// usable refuses a folder or an archive of which nothing was read.
func usable(name string, sources []Source) ([]Source, error) {
	var why []string
	for _, s := range sources {
		if s.Kind != "" {
			return sources, nil
		}
		if len(why) < 3 {
			why = append(why, strings.TrimPrefix(s.Name, name+"/")+": "+s.Skip)
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: %w", name, errEmpty)
	}
	return nil, fmt.Errorf("%s: nothing in it is %w (%s)", name, ErrUnrecognised, strings.Join(why, "; "))
}
