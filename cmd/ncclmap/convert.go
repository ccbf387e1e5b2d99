package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclxml"
)

// converterFor picks the writer by a file's ending.
func converterFor(file string) (func(io.Writer, *probe.Inventory) error, error) {
	switch ext := filepath.Ext(file); ext {
	case ".json":
		return func(w io.Writer, inv *probe.Inventory) error { return inv.Encode(w) }, nil
	case ".xml":
		return func(w io.Writer, inv *probe.Inventory) error {
			doc, err := ncclxml.FromInventory(inv)
			if err != nil {
				return err
			}
			return ncclxml.Encode(w, doc)
		}, nil
	case "":
		return nil, errors.New("convert -o: want a file ending in .json or .xml")
	default:
		return nil, fmt.Errorf("convert -o %s: ending %s is neither .json nor .xml", file, ext)
	}
}
