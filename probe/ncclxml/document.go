package ncclxml

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Document is one topology file.
type Document struct {
	Name string   // base name of the file, for messages and origins
	Root *Element // <system>
	// Piece marks a piece that was cut out of a file, without <system>; Root then
	// stands for the missing one.
	Piece bool
	// Refused lists what NCCL's own parser would not read, or would read
	// differently, although it is well-formed XML: in the order of the text, at
	// most ten.
	Refused []Issue
}

// Issue is a remark on a line of the file.
type Issue struct {
	Line int
	Msg  string
}

// Element is one XML element. Decode has checked the values of all attributes
// that NCCL knows, so the typed readers of a decoded element are unknown only
// where the attribute is missing or empty.
type Element struct {
	Name     string
	Attrs    []probe.Attr // in the file's order, known or not
	Children []*Element
	Line     int // of its opening bracket, from 1; 0 = not from a file
}

// Text returns an attribute's text and whether it is there.
func (e *Element) Text(name string) (string, bool) {
	for _, a := range e.Attrs {
		if a.Name == name {
			return a.Value, true
		}
	}
	return "", false
}

// Int reads an attribute as NCCL does: strtol with base 0.
func (e *Element) Int(name string) probe.Opt[int] {
	return typed(e, name, func(s string) (int, error) {
		v, err := parseInt(s)
		return int(v), err
	})
}

// Hex reads a 64-bit hexadecimal attribute: host_hash, guid.
func (e *Element) Hex(name string) probe.Opt[uint64] {
	return typed(e, name, func(s string) (uint64, error) { return probe.ParseHex(s, 64) })
}

// BusID reads a bus id; the target of an NVLink whose far end is hidden has none.
func (e *Element) BusID(name string) probe.Opt[probe.BDF] { return typed(e, name, parseBusID) }

// Class reads a PCI class.
func (e *Element) Class(name string) probe.Opt[probe.PCIClass] { return typed(e, name, parseClass) }

// ID reads a PCI vendor, device or subsystem id.
func (e *Element) ID(name string) probe.Opt[probe.PCIID] {
	return typed(e, name, func(s string) (probe.PCIID, error) {
		v, err := probe.ParseHex(s, 16)
		return probe.PCIID(v), err
	})
}

func typed[T any](e *Element, name string, parse func(string) (T, error)) probe.Opt[T] {
	s, _ := e.Text(name)
	if s == "" {
		return probe.Opt[T]{}
	}
	v, err := parse(s)
	if err != nil {
		return probe.Opt[T]{}
	}
	return probe.Some(v)
}

// kids returns the children of one name.
func (e *Element) kids(name string) []*Element {
	var out []*Element
	for _, c := range e.Children {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// size counts the element and all below it.
func (e *Element) size() int {
	n := 1
	for _, c := range e.Children {
		n += c.size()
	}
	return n
}

// set appends an attribute. An empty value is unknown and is left out; so is one
// that Decode would refuse.
func (e *Element) set(name, value string) {
	if value == "" || hasControl(value) {
		return
	}
	if a := attributeOf(attributes, e.Name, name); a != nil && a.check(value) != nil {
		return
	}
	e.Attrs = append(e.Attrs, probe.Attr{Name: name, Value: value})
}

// Hosts returns one document per host_hash, in order of appearance: NCCL writes
// the hosts of one multi-node NVLink domain into one file. A file of one host
// gives the document itself.
func (d *Document) Hosts() []*Document {
	hosts := d.hostOf()
	at := map[string]*Document{}
	var out []*Document
	for _, c := range d.Root.Children {
		doc := at[hosts[c]]
		if doc == nil {
			root := *d.Root
			root.Children = nil
			doc = &Document{Name: d.Name, Root: &root, Piece: d.Piece, Refused: d.Refused}
			at[hosts[c]] = doc
			out = append(out, doc)
		}
		doc.Root.Children = append(doc.Root.Children, c)
	}
	if len(out) < 2 {
		return []*Document{d}
	}
	return out
}

// hostOf gives each child of the root the host_hash it stands under; what is no
// <cpu> counts for the first host.
func (d *Document) hostOf() map[*Element]string {
	first := ""
	if cpus := d.Root.kids("cpu"); len(cpus) > 0 {
		first, _ = cpus[0].Text("host_hash")
	}
	out := map[*Element]string{}
	for _, c := range d.Root.Children {
		out[c] = first
		if c.Name == "cpu" {
			out[c], _ = c.Text("host_hash")
		}
	}
	return out
}

// kind is the type of an attribute's value.
type kind int

const (
	text kind = iota
	whole
	decimal
	hex64
	hex16
	class
	mask
	busID
	nvlinkTarget // a bus id, or NVML's mark for a hidden end
	pathType
	device // of a graph file
)

// attribute is one that NCCL knows. Blank values are let through where NCCL
// itself writes what sysfs gave it, even if that was nothing.
type attribute struct {
	element, name string
	kind          kind
	min, max      int64 // of whole
	blank         bool
}

const anyInt = math.MaxInt32

// attributes are those of NCCL 2.30.7 (xml.cc, topo.cc, in the order in which it
// writes them). Upper bounds are ours: far above any machine.
var attributes = []attribute{
	{"system", "version", whole, 0, anyInt, false},
	{"system", "name", text, 0, 0, true},

	{"cpu", "host_hash", hex64, 0, 0, false},
	{"cpu", "numaid", whole, -1, 1 << 20, false},
	{"cpu", "affinity", mask, 0, 0, true},
	{"cpu", "arch", text, 0, 0, true},
	{"cpu", "vendor", text, 0, 0, true},
	{"cpu", "familyid", whole, 0, 1 << 20, false},
	{"cpu", "modelid", whole, 0, 1 << 20, false},

	{"pci", "busid", busID, 0, 0, false},
	{"pci", "class", class, 0, 0, true},
	{"pci", "vendor", hex16, 0, 0, true},
	{"pci", "device", hex16, 0, 0, true},
	{"pci", "subsystem_vendor", hex16, 0, 0, true},
	{"pci", "subsystem_device", hex16, 0, 0, true},
	{"pci", "link_speed", text, 0, 0, true},
	{"pci", "link_width", whole, 0, 1 << 16, true},

	{"gpu", "dev", whole, -1, 1023, false},
	{"gpu", "sm", whole, 0, 9999, false},
	{"gpu", "mlopart", whole, -1, 63, false},
	{"gpu", "rank", whole, -1, anyInt, false},
	{"gpu", "gdr", whole, 0, 1, false},

	{"nvlink", "target", nvlinkTarget, 0, 0, false},
	{"nvlink", "count", whole, 0, maxLinks, false},
	{"nvlink", "tclass", class, 0, 0, true},

	{"c2c", "bw", whole, 0, anyInt, false},
	{"c2c", "count", whole, 0, maxLinks, false},

	{"net", "name", text, 0, 0, false},
	{"net", "dev", whole, -1, anyInt, false},
	{"net", "latency", decimal, 0, 0, false},
	{"net", "speed", whole, -anyInt, anyInt, false},
	{"net", "port", whole, 0, 255, false},
	{"net", "guid", hex64, 0, 0, false},
	{"net", "maxconn", whole, -anyInt, anyInt, false},
	{"net", "gdr", whole, 0, 1, false},
	{"net", "coll", whole, 0, anyInt, false},
	{"net", "net", whole, 0, anyInt, false},
	{"net", "gin", whole, 0, anyInt, false},
	{"net", "rma", whole, 0, anyInt, false},
	{"net", "rail", whole, -1, anyInt, false},
	{"net", "plane", whole, -1, anyInt, false},

	{"pcilink", "target", busID, 0, 0, false},
}

// maxLinks is the most NVLink or C2C links of one GPU that are believed.
const maxLinks = 64

func attributeOf(table []attribute, element, name string) *attribute {
	for i := range table {
		if a := &table[i]; a.element == element && a.name == name {
			return a
		}
	}
	return nil
}

// check reports why a value does not fit the attribute.
func (a *attribute) check(s string) error {
	if s == "" {
		if a.blank {
			return nil
		}
		return errors.New("empty")
	}
	var err error
	want := ""
	switch a.kind {
	case whole:
		v, err := parseInt(s)
		if err == nil && (v < a.min || v > a.max) {
			err = fmt.Errorf("not between %d and %d", a.min, a.max)
		}
		return err
	case decimal:
		var v float64
		if v, err = strconv.ParseFloat(s, 64); math.IsInf(v, 0) || math.IsNaN(v) {
			err = strconv.ErrRange
		}
		want = "a number"
	case hex64:
		_, err = probe.ParseHex(s, 64)
		want = "a hexadecimal number of up to 64 bits"
	case hex16:
		_, err = probe.ParseHex(s, 16)
		want = "a hexadecimal number of up to 16 bits"
	case class:
		_, err = parseClass(s)
		want = "a PCI class, a hexadecimal number of up to 24 bits"
	case mask:
		_, err = probe.ParseCPUMask(s)
		want = "a CPU mask, hexadecimal in groups of 32 bits"
	case pathType:
		if !slices.Contains(pathTypes, s) {
			return errors.New("none of the path types that NCCL reads: " + strings.Join(pathTypes, " "))
		}
		return nil
	case device:
		_, _, err = parseDevice(s)
		want = "the number of a device"
	case busID, nvlinkTarget:
		if a.kind == nvlinkTarget && hiddenTarget(s) {
			return nil
		}
		_, err = parseBusID(s)
		want = "a PCI address domain:bus:device.function"
	}
	if err != nil {
		return errors.New("not " + want)
	}
	return nil
}

// parseInt reads what strtol reads with base 0, and nothing behind it.
func parseInt(s string) (int64, error) {
	v, err := strconv.ParseInt(s, 0, 32)
	hex := strings.ContainsAny(s, "xX")
	if err != nil || strings.Contains(s, "_") || !hex && strings.ContainsAny(s, "oObB") {
		return 0, errors.New("not a whole number of 32 bits")
	}
	return v, nil
}

// parseClass reads a class; NCCL compares prefixes and itself writes "0x03" for
// a GPU that has no entry in sysfs, so missing digits are those on the right.
func parseClass(s string) (probe.PCIClass, error) {
	v, err := probe.ParseHex(s, 24)
	if err != nil {
		return 0, err
	}
	digits := len(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "0x"))
	for ; digits < 6; digits++ {
		v <<= 4
	}
	return probe.PCIClass(v), nil
}

// shortBusID is what simulators write. NCCL strings all digits of a bus id
// together, function last, then two digits of device, two of bus (busIdToInt64).
var shortBusID = regexp.MustCompile(`^[0-9a-fA-F]{4}:[01][0-9a-fA-F]\.[0-7]$`)

func parseBusID(s string) (probe.BDF, error) {
	if shortBusID.MatchString(s) {
		s = "00" + s[:2] + ":" + s[2:]
	}
	return probe.ParseBDF(s)
}

// hiddenTarget recognises what NVML gives as the bus id of an NVLink end that a
// hypervisor hides; NCCL versions print it as "fffffff:ffff:ff" or
// "fffffff:ff:ff.0".
func hiddenTarget(s string) bool { return strings.HasPrefix(strings.ToLower(s), "fffffff:") }
