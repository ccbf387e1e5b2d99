package graphviz

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// PrivateCache returns the folder for [Engine.CacheDir], an absolute path, and
// a function to call when drawing is done.
//
// It is ncclmap/graphviz below userCacheDir, made if need be, provided that
// nobody but this user and root could put a file there or exchange the folder
// or one above it: the engine runs the native code that it finds there. Where
// that cannot be had (no or a read-only home, another user's home under sudo,
// loose permissions) it is a fresh temporary folder, which cleanup removes;
// the engine then compiles anew each time.
func PrivateCache(userCacheDir string) (dir string, cleanup func(), err error) {
	dir, cacheErr := userCache(userCacheDir)
	if cacheErr == nil {
		return dir, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "ncclmap-graphviz-")
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("graphviz cache: %w; nor a temporary folder: %w", cacheErr, err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

func userCache(base string) (string, error) {
	if !filepath.IsAbs(base) {
		return "", fmt.Errorf("user cache %q: not an absolute path", base)
	}
	// What exists is checked before anything is made in it: under sudo the
	// home is another user's, and a folder of root's there would be in the way.
	existing, missing := base, []string{"ncclmap", "graphviz"}
	for _, err := os.Stat(existing); err != nil; _, err = os.Stat(existing) {
		if existing == filepath.Dir(existing) {
			return "", err
		}
		missing = append([]string{filepath.Base(existing)}, missing...)
		existing = filepath.Dir(existing)
	}
	// Homes are often reached through links. Their targets are checked, and
	// the result no longer depends on the links.
	dir, err := filepath.EvalSymlinks(existing)
	if err != nil {
		return "", err
	}
	for above := dir; ; above = filepath.Dir(above) {
		if err := checkDir(above, true); err != nil {
			return "", err
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	for _, name := range missing {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		if err := checkDir(dir, false); err != nil {
			return "", err
		}
	}
	// A read-only file system shows only when something is written.
	probe, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// checkDir refuses a folder whose entries somebody else could change. A folder
// above ours may also be root's, and may be open to all if it is sticky, as
// /tmp is: what we own in there stays ours.
func checkDir(dir string, above bool) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a folder", dir)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: owner unknown", dir)
	}
	if uid := os.Getuid(); int(stat.Uid) != uid && !(above && stat.Uid == 0) {
		return fmt.Errorf("%s: owned by user %d, not by user %d", dir, stat.Uid, uid)
	}
	sticky := above && info.Mode()&os.ModeSticky != 0
	if info.Mode().Perm()&0o022 != 0 && !sticky {
		return fmt.Errorf("%s: others can write there (%v)", dir, info.Mode())
	}
	return nil
}
