package open

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/hwlocxml"
	"github.com/ncclmap/ncclmap/probe/kernlog"
	"github.com/ncclmap/ncclmap/probe/nccllog"
	"github.com/ncclmap/ncclmap/probe/nccltests"
	"github.com/ncclmap/ncclmap/probe/ncclxml"
	"github.com/ncclmap/ncclmap/probe/nvbandwidth"
	"github.com/ncclmap/ncclmap/probe/nvml"
	"github.com/ncclmap/ncclmap/probe/smiquery"
	"github.com/ncclmap/ncclmap/probe/smitopo"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

// ExamplePrefix marks a source that ships in the program.
const ExamplePrefix = "example:"

// Source is one thing that was named, and what it was recognised as.
type Source struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	inv  *probe.Inventory
}

// format is one kind of file: how it is recognised and read. Formats are tried
// in order, by content only.
type format struct {
	kind  string
	mixed bool // one text may hold several of these
	sniff func(head []byte) bool
	read  func(name string, text []byte) (*probe.Inventory, error)
}

const (
	kindInventory = "ncclmap inventory"
	kindNVML      = "NVML recording"
	kindNCCLXML   = "NCCL topology XML"
	kindSMITopo   = "nvidia-smi topo -m"
	kindNCCLLog   = "NCCL log"
	kindNCCLTests = "nccl-tests output"
	kindNVBand    = "nvbandwidth output"
	kindKernLog   = "kernel log"
	kindSMIQuery  = "nvidia-smi -q, nvlink or topo -p2p"
	kindHwlocXML  = "hwloc XML"
	kindRoot      = "recorded root"
)

var formats = []format{
	{kindInventory, false, isJSONWith(`"schema"`), func(name string, text []byte) (*probe.Inventory, error) { return probe.Decode(name, text) }},
	{kindNVML, false, isJSONWith(`"nvml"`, `"gpus"`), nvml.Replay},
	{kindNCCLXML, false, ncclxml.Sniff, func(name string, text []byte) (*probe.Inventory, error) {
		doc, err := ncclxml.Decode(name, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		return doc.Inventory()
	}},
	{kindSMITopo, false, smitopo.Sniff, func(name string, text []byte) (*probe.Inventory, error) {
		return smitopo.Decode(name, bytes.NewReader(text))
	}},
	{kindHwlocXML, false, hwlocxml.Sniff, func(name string, text []byte) (*probe.Inventory, error) {
		return hwlocxml.Decode(name, bytes.NewReader(text))
	}},
	{kindSMIQuery, false, smiquery.Sniff, func(name string, text []byte) (*probe.Inventory, error) {
		return smiquery.Decode(name, bytes.NewReader(text))
	}},
	{kindNCCLTests, true, nccltests.Sniff, streamed(nccltests.Read)},
	{kindNCCLLog, true, nccllog.Sniff, streamed(nccllog.Read)},
	{kindNVBand, true, nvbandwidth.Sniff, streamed(nvbandwidth.Read)},
	{kindKernLog, true, kernlog.Sniff, streamed(kernlog.Read)},
}

// streamed adapts a reader of endless text.
func streamed[D interface{ Inventory() *probe.Inventory }](read func(string, io.Reader) (D, error)) func(string, []byte) (*probe.Inventory, error) {
	return func(name string, text []byte) (*probe.Inventory, error) {
		doc, err := read(name, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		return doc.Inventory(), nil
	}
}

// Kinds lists what is recognised, for help texts and errors.
func Kinds() []string {
	var out []string
	for _, f := range formats {
		out = append(out, f.kind)
	}
	return append(out, kindRoot+" (a directory that holds sys/ or proc/)", ExamplePrefix+"NAME")
}

// isJSONWith recognises a JSON object whose text holds all the given keys.
func isJSONWith(keys ...string) func([]byte) bool {
	return func(text []byte) bool {
		if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
			return false
		}
		return !slices.ContainsFunc(keys, func(k string) bool { return !bytes.Contains(text, []byte(k)) })
	}
}

// ErrUnrecognised marks input that is none of the known kinds.
var ErrUnrecognised = errors.New("not recognised")

// Read reads every named source and joins them. stdin serves the name "-",
// which may appear once.
func Read(names []string, stdin io.Reader) (*probe.Inventory, []Source, error) {
	var sources []Source
	for _, name := range names {
		var s []Source
		var err error
		switch {
		case name == "-":
			if stdin == nil {
				return nil, nil, errors.New(`-: standard input is read once`)
			}
			s, err = readText("standard input", stdin)
			stdin = nil
		case strings.HasPrefix(name, ExamplePrefix):
			s, err = readExample(name)
		default:
			s, err = readPath(name)
		}
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, s...)
	}
	inv, err := join(sources)
	return inv, sources, err
}

func readPath(name string) ([]Source, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case st.IsDir():
		return ReadRoot(name, sysfs.Options{})
	case st.Mode().IsRegular() && st.Size() > probe.MaxInput:
		return nil, fmt.Errorf("%s: %w", name, probe.ErrTooLarge)
	}
	return readText(name, f)
}

// ReadRoot reads a directory that holds sys/ or proc/ of some machine. Links
// in it never lead out of it.
func ReadRoot(dir string, opt sysfs.Options) ([]Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	inv, err := sysfs.Read(root.FS(), opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return []Source{{Name: dir, Kind: kindRoot, inv: inv}}, nil
}

func readText(name string, r io.Reader) ([]Source, error) {
	text, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	base := name
	if name != "standard input" {
		base = filepath.Base(name)
	}
	return recognise(name, base, text)
}

// recognise finds the formats of a text and reads it. base is what error
// messages and origins call it.
func recognise(name, base string, text []byte) ([]Source, error) {
	text = probe.TrimBOM(text)
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, fmt.Errorf("%s: empty", name)
	}
	var out []Source
	for _, f := range formats {
		if len(out) > 0 && !f.mixed || !f.sniff(text) {
			continue
		}
		inv, err := f.read(base, text)
		if err != nil {
			return nil, err
		}
		out = append(out, Source{Name: name, Kind: f.kind, inv: inv})
		if !f.mixed {
			break
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	what := "text"
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, fmt.Errorf("%s: UTF-16 text %w; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)", name, ErrUnrecognised)
	}
	if bytes.IndexByte(text[:min(len(text), 8192)], 0) >= 0 {
		what = "binary data"
	}
	return nil, fmt.Errorf("%s: %s %w; readable are: %s", name, what, ErrUnrecognised, strings.Join(Kinds(), ", "))
}

func readExample(name string) ([]Source, error) {
	m, err := fixtures.Load(strings.TrimPrefix(name, ExamplePrefix))
	if err != nil {
		return nil, err
	}
	if m.Root == nil {
		return []Source{{Name: name, Kind: kindInventory, inv: m.Inventory}}, nil
	}
	// A recorded machine: its root, and what was recorded beside it.
	inv, err := sysfs.Read(m.Root, sysfs.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := []Source{{Name: name, Kind: kindRoot, inv: inv}}
	for _, file := range m.Files() {
		text, err := m.File(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		more, err := recognise(name+"/"+file, file, text)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// join merges the sources. A topology file beside a source that saw the machine
// itself is what somebody claims about it (a candidate for NCCL_TOPO_FILE); it
// is kept apart.
func join(sources []Source) (*probe.Inventory, error) {
	saw := slices.ContainsFunc(sources, func(s Source) bool {
		return s.Kind == kindRoot || s.Kind == kindNVML || s.Kind == kindSMIQuery || s.Kind == kindHwlocXML || s.Kind == kindInventory
	})
	var parts []*probe.Inventory
	var claim *Source
	for i, s := range sources {
		if !saw || s.Kind != kindNCCLXML {
			parts = append(parts, s.inv)
			continue
		}
		if claim != nil {
			return nil, fmt.Errorf("%s and %s: two topology files beside the machine itself; name the one to check", claim.Name, s.Name)
		}
		claim = &sources[i]
	}
	inv, err := probe.Merge(parts...)
	if err != nil {
		return nil, fmt.Errorf("joining %s: %w", nameAll(sources), err)
	}
	if claim != nil {
		inv.TopoFile = &probe.TopoFile{File: filepath.Base(claim.Name), Claims: claim.inv}
	}
	return inv, nil
}

func nameAll(sources []Source) string {
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
