package sysfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

const (
	maxAttr    = 1 << 20  // bytes of one attribute; the largest are CPU lists and GID tables' files of a few KiB
	maxCPUInfo = 16 << 20 // proc/cpuinfo holds about 1.5 KiB for each CPU
	maxTarget  = 4096     // bytes of a link's target, Linux' PATH_MAX
	maxLinks   = 40       // links from one to the next, as in Linux' path walk
	maxEntries = 1 << 16  // entries of one folder
)

var (
	errLoop   = fmt.Errorf("more than %d links lead from one to the next", maxLinks)
	errLeaves = errors.New("the link leads out of the root")
	errNotDir = errors.New("not a folder")
	errKind   = errors.New("neither a file nor a link")
)

// danglingError marks a link whose target is missing. It is no fs.ErrNotExist:
// the link itself says that something was there.
type danglingError struct{ target string }

func (e *danglingError) Error() string {
	return fmt.Sprintf("the link leads to %s, which is not there", e.target)
}

// tree reads a root. Every path that it hands to the file system has links only
// in its last part, so no file system has to follow one.
type tree struct {
	fsys fs.FS
	live bool
	dirs map[string]string // folders that were followed: path as asked for → path without links
}

// follow returns the path without links of a folder.
func (t *tree) follow(name string) (string, error) {
	budget := maxLinks
	return t.walk(name, &budget)
}

func (t *tree) walk(name string, budget *int) (string, error) {
	if name == "." {
		return name, nil
	}
	if real, ok := t.dirs[name]; ok {
		return real, nil
	}
	parent, err := t.walk(path.Dir(name), budget)
	if err != nil {
		return "", err
	}
	real := path.Join(parent, path.Base(name))
	target, info, err := t.link(real)
	switch {
	case err != nil:
		return "", err
	case target != "":
		if *budget--; *budget < 0 {
			return "", errLoop
		}
		next, err := join(parent, target)
		if err != nil {
			return "", err
		}
		if real, err = t.walk(next, budget); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = &danglingError{next}
			}
			return "", err
		}
	case !info.IsDir():
		return "", errNotDir
	}
	t.dirs[name] = real
	return real, nil
}

// join applies a link's target to the folder that holds the link.
func join(dir, target string) (string, error) {
	if path.IsAbs(target) {
		return "", errLeaves
	}
	next := path.Join(dir, target)
	if next == ".." || strings.HasPrefix(next, "../") {
		return "", errLeaves
	}
	return next, nil
}

// link returns the target of the link at name, or "" when there is something
// else. The folder of name has to be free of links.
//
// Tools that cannot make links (git with core.symlinks=false, some unpackers)
// leave a file that holds the target. Within a recording such a file counts as
// the link; sysfs' own links all begin with "..", and no attribute does.
func (t *tree) link(name string) (target string, info fs.FileInfo, err error) {
	info, err = fs.Lstat(t.fsys, name)
	if err != nil {
		return "", nil, err
	}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		if target, err = fs.ReadLink(t.fsys, name); err != nil {
			return "", nil, err
		}
		if target == "" || len(target) > maxTarget {
			return "", nil, fmt.Errorf("link target of %d bytes", len(target))
		}
	case info.Mode().IsRegular() && !t.live:
		text, err := t.read(name, maxTarget)
		if err == nil && isLinkText(text) {
			target = text
		}
	}
	return target, info, nil
}

func isLinkText(s string) bool {
	return (s == ".." || strings.HasPrefix(s, "../")) && !strings.ContainsAny(s, "\n\x00")
}

// linkTo returns the target of the link name within a folder without links, and
// "" where there is none.
func (t *tree) linkTo(dir, name string) (string, error) {
	target, _, err := t.link(path.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return target, err
}

// attr returns the text of an attribute without the white space around it.
func (t *tree) attr(dir, name string) (string, error) {
	s, err := t.text(path.Join(dir, name), maxAttr)
	return strings.TrimSpace(s), err
}

// text returns the content of a file of at most limit bytes.
func (t *tree) text(name string, limit int) (string, error) {
	for range maxLinks {
		dir, err := t.follow(path.Dir(name))
		if err != nil {
			return "", err
		}
		name = path.Join(dir, path.Base(name))
		if t.live {
			// The kernel's folders hold neither pipes nor links to files.
			return t.read(name, limit)
		}
		info, err := fs.Lstat(t.fsys, name)
		if err != nil {
			return "", err
		}
		switch info.Mode().Type() {
		case 0:
			return t.read(name, limit)
		case fs.ModeSymlink:
			target, err := fs.ReadLink(t.fsys, name)
			if err != nil {
				return "", err
			}
			if name, err = join(dir, target); err != nil {
				return "", err
			}
		default:
			// Opening a pipe could wait for ever.
			return "", errKind
		}
	}
	return "", errLoop
}

// read reads a regular file. Sizes in sysfs lie, so only the bytes count.
func (t *tree) read(name string, limit int) (string, error) {
	f, err := t.fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return "", err
	}
	if len(b) > limit {
		return "", fmt.Errorf("larger than %d bytes", limit)
	}
	return string(b), nil
}

// list returns the names in a folder in ascending order. Names that were read
// before an error are returned with it.
func (t *tree) list(name string) ([]string, error) {
	dir, err := t.follow(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.fsys, dir)
	if len(entries) > maxEntries {
		entries, err = entries[:maxEntries], fmt.Errorf("more than %d entries; the rest is left out", maxEntries)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return names, err
}

// exists reports a file, link or folder of any kind.
func (t *tree) exists(name string) bool {
	dir, err := t.follow(path.Dir(name))
	if err != nil {
		return false
	}
	_, err = fs.Lstat(t.fsys, path.Join(dir, path.Base(name)))
	return err == nil
}

func (t *tree) isDir(name string) bool {
	_, err := t.follow(name)
	return err == nil
}

// noValue reports an error with which the kernel says that an attribute has no
// value: the speed of an interface that is down, the link of a function without
// one, the interface of an unused GID.
func noValue(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL)
}
