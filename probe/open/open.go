package open

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

// ExamplePrefix marks a source that ships in the program.
const ExamplePrefix = "example:"

// Source is one thing that was named or found, and what it was recognised as.
type Source struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"` // "" = skipped
	Skip string `json:"skipped,omitempty"`
	// Broken marks a skipped file that is of a known kind and could not be read.
	Broken bool `json:"broken,omitempty"`

	parts []probe.Part
}

// ErrUnrecognised marks input that is none of the known kinds.
var ErrUnrecognised = errors.New("not recognised")

// errEmpty marks input of blanks alone.
var errEmpty = errors.New("empty")

// skipped makes the source of a file that could not be read. What is none of the
// known kinds was likely not meant; anything else is missing.
func skipped(name string, err error) Source {
	s := Source{Name: name, Skip: strings.TrimPrefix(err.Error(), name+": ")}
	switch {
	case errors.Is(err, ErrUnrecognised) && strings.Contains(s.Skip, "readable are"):
		s.Skip = ErrUnrecognised.Error()
	case !errors.Is(err, ErrUnrecognised) && !errors.Is(err, errEmpty):
		s.Broken = true
	}
	return s
}

// Read reads every named source and joins them host by host. stdin serves the
// name "-", which may appear once. What was named must be readable; of a
// directory or an archive, what is not is skipped with a reason, as long as
// something in it is read.
func Read(names []string, stdin io.Reader) (*probe.Cluster, []Source, error) {
	var sources []Source
	for _, name := range names {
		s, err := readNamed(name, stdin)
		if err != nil {
			return nil, nil, err
		}
		if name == "-" {
			stdin = nil
		}
		sources = append(sources, s...)
	}
	var parts []probe.Part
	for _, s := range sources {
		parts = append(parts, s.parts...)
	}
	c, err := probe.Join(parts)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range sources {
		if s.Kind == "" {
			c.Gaps = append(c.Gaps, probe.Gap{What: s.Name, Why: "skipped: " + s.Skip, Origin: probe.Origin{Source: probe.SourceInferred, Where: s.Name}})
		}
	}
	return c, sources, nil
}

// ReadHost reads sources that are all of one host.
func ReadHost(names ...string) (*probe.Inventory, error) {
	c, _, err := Read(names, nil)
	if err != nil {
		return nil, err
	}
	inv, ok := c.Single()
	if !ok {
		return nil, fmt.Errorf("%s: %d hosts, want one", strings.Join(names, ", "), len(c.Hosts))
	}
	return inv, nil
}

func readNamed(name string, stdin io.Reader) ([]Source, error) {
	switch {
	case name == "-" && stdin == nil:
		return nil, errors.New(`-: standard input is read once`)
	case name == "-":
		return readInput(place{name: "standard input", base: "standard input"}, stdin)
	case strings.HasPrefix(name, ExamplePrefix):
		return readExample(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return readFolder(name)
	}
	return readInput(place{name: name, base: filepath.Base(name)}, f)
}

// ReadRoot reads a directory that holds sys/ or proc/ of some machine. Links
// in it never lead out of it.
func ReadRoot(dir string, opt sysfs.Options) (*probe.Inventory, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	inv, err := sysfs.Read(root.FS(), opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return inv, nil
}

func readExample(name string) ([]Source, error) {
	m, err := fixtures.Load(strings.TrimPrefix(name, ExamplePrefix))
	if err != nil {
		return nil, err
	}
	if m.Root == nil {
		return []Source{{Name: name, Kind: kindInventory, parts: []probe.Part{{Inv: m.Inventory, File: name}}}}, nil
	}
	// A recorded machine: its root, and what was recorded beside it.
	inv, err := sysfs.Read(m.Root, sysfs.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := []Source{{Name: name, Kind: kindRoot, parts: []probe.Part{{Inv: inv, File: name}}}}
	for _, file := range m.Files() {
		text, err := m.File(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		more, err := recognise(place{name: name + "/" + file, base: file}, text)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}
