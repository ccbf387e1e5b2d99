package sysfs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ncclmap/ncclmap/probe"
)

// Options says what the root is.
type Options struct {
	// Live says that the root is "/" of the machine that this process runs on.
	// What is missing is then absent, never "not recorded", and the RDMA devices
	// of network interfaces are asked for through rdmamap, which reads /sys.
	Live bool
}

// Read reads a root. Paths below it are as on Linux without the first slash:
// "sys/…", "proc/…". What could not be read is in Gaps. The only error is a root
// that holds neither sys/ nor proc/.
func Read(fsys fs.FS, opts Options) (*probe.Inventory, error) {
	r := &reader{
		tree: tree{fsys: fsys, live: opts.Live, dirs: map[string]string{}},
		inv:  &probe.Inventory{Schema: probe.Schema},
		keep: map[probe.BDF]string{},
	}
	hasSys, hasProc := r.isDir("sys"), r.isDir("proc")
	switch {
	case !hasSys && !hasProc:
		return nil, errors.New("read root: it holds neither sys/ nor proc/")
	case !hasSys:
		r.notRecorded("PCI, NUMA, network and everything else that the kernel shows of devices", "sys")
	case !hasProc:
		r.notRecorded("host name, kernel, command line, processor type", "proc")
	}
	if hasProc {
		r.host()
	}
	cpu := r.processorType()
	if hasSys {
		r.product()
		r.numa()
		r.infiniband()
		r.netdevs()
		r.pci()
		r.kernel()
	}
	r.processors(cpu)
	r.marks(cpu)
	if opts.Live {
		r.liveRDMA()
	}
	r.inv.Normalize()
	return r.inv, nil
}

// reader collects the inventory.
type reader struct {
	tree
	inv *probe.Inventory
	// keep holds the PCI functions of RDMA devices and interfaces with their
	// folders.
	keep map[probe.BDF]string
	// packageOf gives the package of each online CPU, as far as known.
	packageOf map[int]int
}

func origin(where string, fields ...string) probe.Origin {
	return probe.Origin{Source: probe.SourceSysfs, Where: where, Fields: fields}
}

// gap notes what could not be read.
func (r *reader) gap(what, where string, err error) {
	g := probe.Gap{What: plain(what), Why: plain(reason(err)), Origin: origin(plain(where))}
	if errors.Is(err, fs.ErrPermission) {
		g.How = "read it as root"
	}
	r.inv.Gaps = append(r.inv.Gaps, g)
}

// notRecorded notes a folder or file that a recording lacks, or that a kernel
// always has and does not show here.
func (r *reader) notRecorded(what, where string) {
	g := probe.Gap{What: what, Why: where + " was not recorded", How: "record " + where + " too", Origin: origin(where)}
	if r.live {
		g.Why, g.How = where+" is not there; a container or sandbox may hide it", "run outside of the container"
	}
	r.inv.Gaps = append(r.inv.Gaps, g)
}

// folder lists a folder that facts depend on. A missing one is unknown in a
// recording; on a live machine it is absent, unless the kernel always has it.
func (r *reader) folder(what, where string, always bool) (names []string, ok bool) {
	names, err := r.list(where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if always || !r.live {
			r.notRecorded(what, where)
		}
		return nil, false
	case err != nil:
		r.gap(what, where, err)
		return names, len(names) > 0
	}
	return names, true
}

// get reads and parses one attribute of an object.
func get[T any](r *reader, object, dir, name string, parse func(string) (probe.Opt[T], error)) probe.Opt[T] {
	s, err := r.attr(dir, name)
	if err == nil {
		v, perr := parse(s)
		if perr == nil {
			return v
		}
		err = perr
	} else if noValue(err) {
		return probe.Opt[T]{}
	}
	r.gap(object+" "+name, path.Join(dir, name), err)
	return probe.Opt[T]{}
}

// str reads one attribute of an object as text; "" is unknown.
func (r *reader) str(object, dir, name string) string {
	return get(r, object, dir, name, parseText).Or("")
}

// always reads a file that every kernel has, so that its absence is a gap.
func (r *reader) always(what, where string) string {
	s, err := r.attr(path.Dir(where), path.Base(where))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.notRecorded(what, where)
	case err != nil:
		r.gap(what, where, err)
	}
	return plain(s)
}

func parseText(s string) (probe.Opt[string], error) { return probe.Some(plain(s)), nil }

// maxText is the longest text that an inventory holds.
const maxText = 4096

// plain makes one line of valid text out of what a kernel, a firmware or a file
// name may hold.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
	if len(s) > maxText {
		n := maxText
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.TrimSpace(s)
}

// isName reports what an inventory takes as a device name.
func isName(s string) bool {
	return s != "" && len(s) <= 128 && s == plain(s) && !strings.ContainsAny(s, " /\"'\\,")
}

// reason is the part of an error that is not the path, which Origin gives.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Op + ": " + pe.Err.Error()
	}
	return err.Error()
}
