package open

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

// maxFiles is how many files of one folder are read.
const maxFiles = 200_000

// readFolder reads a recorded root, or a folder of files and of recorded roots,
// at any depth. Links are not followed, except inside a root, which they never
// leave.
func readFolder(dir string) ([]Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f := folder{dir: dir, root: root}
	if err := f.walk("."); err != nil {
		return nil, err
	}
	return usable(dir, f.read())
}

type folder struct {
	dir  string
	root *os.Root
	jobs []func() []Source

	isRoot bool // dir itself is a recorded root
}

// walk lists what there is to read, folder by folder in order.
func (f *folder) walk(dir string) error {
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		if dir == "." {
			return fmt.Errorf("%s: %w", f.dir, err)
		}
		f.skip(dir, err.Error())
		return nil
	}
	isRoot := slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.IsDir() && (e.Name() == "sys" || e.Name() == "proc")
	})
	if isRoot {
		f.isRoot = f.isRoot || dir == "."
		f.jobs = append(f.jobs, func() []Source { return f.recordedRoot(dir) })
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case len(f.jobs) >= maxFiles:
			return fmt.Errorf("%s: more than %d files; name a smaller folder", f.dir, maxFiles)
		case e.IsDir() && !isRoot:
			if err := f.walk(name); err != nil {
				return err
			}
		case e.Type().IsRegular() && (!isRoot || dir != "." || f.dir != "/"):
			f.jobs = append(f.jobs, func() []Source { return f.file(name) })
		case e.Type()&fs.ModeSymlink != 0 && !isRoot:
			f.skip(name, "a link; name its target")
		}
	}
	return nil
}

// read does the reading, several files at a time, and keeps the order.
func (f *folder) read() []Source {
	out := make([][]Source, len(f.jobs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				out[i] = f.jobs[i]()
			}
		})
	}
	for i := range f.jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	return slices.Concat(out...)
}

func (f *folder) skip(name, why string) {
	f.jobs = append(f.jobs, func() []Source { return []Source{{Name: filepath.Join(f.dir, name), Skip: why}} })
}

func (f *folder) file(name string) []Source {
	p := place{name: filepath.Join(f.dir, name), base: path.Base(name), folder: filepath.Join(f.dir, path.Dir(name))}
	if f.isRoot && path.Dir(name) == "." {
		p.folder = ""
	}
	s, err := func() ([]Source, error) {
		file, err := f.root.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readInput(p, file)
	}()
	if err != nil {
		return []Source{skipped(p.name, err)}
	}
	return s
}

func (f *folder) recordedRoot(dir string) []Source {
	full := filepath.Join(f.dir, dir)
	folder := full
	if dir == "." {
		folder = "" // it was named itself
	}
	inv, err := func() (*probe.Inventory, error) {
		sub, err := f.root.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer sub.Close()
		return sysfs.Read(sub.FS(), sysfs.Options{})
	}()
	if err != nil {
		return []Source{skipped(full, err)}
	}
	return []Source{{Name: full, Kind: kindRoot, parts: []probe.Part{{Inv: inv, File: full, Folder: folder}}}}
}
