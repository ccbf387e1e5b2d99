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
func writeAll(outputs []output) (err error) {
	temps := make([]string, 0, len(outputs))
	defer func() {
		if err != nil {
			for _, t := range temps {
				os.Remove(t)
			}
		}
	}()
	for _, o := range outputs {
		f, err := os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*")
		if err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
		temps = append(temps, f.Name())
		if err := errors.Join(o.write(f), f.Chmod(0o644), f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
	}
	for i, o := range outputs {
		if err := os.Rename(temps[i], o.path); err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
	}
	return nil
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
