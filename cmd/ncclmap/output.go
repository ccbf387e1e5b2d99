package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ncclmap/ncclmap/probe"
)

// printJSON writes a document to stdout in the layout of inventories.
func (a *app) printJSON(doc any) error { return writeJSON(a.stdout, doc) }

func writeJSON(w io.Writer, doc any) error {
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = w.Write(probe.FormatJSON(raw))
	return err
}

// output is a file to write: its path and what writes it.
type output struct {
	path  string
	write func(io.Writer) error
}

// writeAll writes files so that either all are replaced or none: each goes to a
// temporary file in its folder, and only when all are complete are they renamed.
// A link is followed, a file keeps its mode, and what is no regular file (a
// pipe, a device) is written to as it is.
func writeAll(outputs []output) (err error) {
	type pending struct{ temp, path string }
	var files []pending
	defer func() {
		if err != nil {
			for _, f := range files {
				os.Remove(f.temp)
			}
		}
	}()
	for _, o := range outputs {
		path, mode, special, err := target(o.path)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
		if special {
			if err := writeSpecial(path, o.write); err != nil {
				return fmt.Errorf("write %s: %w", o.path, err)
			}
			continue
		}
		f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
		if err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
		files = append(files, pending{f.Name(), path})
		if err := errors.Join(o.write(f), f.Chmod(mode), f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
	}
	for _, f := range files {
		if err := os.Rename(f.temp, f.path); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	return nil
}

// target says where a path leads and how to write there.
func target(name string) (path string, mode os.FileMode, special bool, err error) {
	path, mode = name, 0o644
	if resolved, err := filepath.EvalSymlinks(name); err == nil {
		path = resolved
	} else if to, err := os.Readlink(name); err == nil { // to a file not yet there
		path = to
		if !filepath.IsAbs(to) {
			path = filepath.Join(filepath.Dir(name), to)
		}
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return path, mode, false, nil
	case err != nil:
		return "", 0, false, err
	case st.IsDir():
		return "", 0, false, errors.New("is a directory")
	case !st.Mode().IsRegular():
		return path, 0, true, nil
	case st.Mode().Perm()&0o222 == 0:
		return "", 0, false, errors.New("is read-only")
	}
	return path, st.Mode().Perm(), false, nil
}

func writeSpecial(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// writeTo writes one file, or stdout when path is "" or "-".
func (a *app) writeTo(path string, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return write(a.stdout)
	}
	if err := writeAll([]output{{path, write}}); err != nil {
		return err
	}
	a.talk("wrote %s", path)
	return nil
}
