package hwlocxml

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the name of this source in origins.
const Source = probe.SourceHwlocXML

// Decode reads an hwloc topology. name is the file's base name. Faults in the
// text are *probe.SyntaxError with the line; an input over probe.MaxInput is
// probe.ErrTooLarge.
//
// A PCI function is near a NUMA node if the place of its host bridge has exactly
// one node with processors. Only what hwloc kept is there: with lstopo's
// defaults, bridges and functions that it finds unimportant are missing.
func Decode(name string, r io.Reader) (*probe.Inventory, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	root, err := parse(name, raw)
	if err != nil {
		return nil, err
	}
	d := decoder{file: name, hcas: map[string]int{}, nets: map[string]int{}, gp: map[string]string{}, indices: map[int]int{}}
	if err := d.topology(root); err != nil {
		return nil, err
	}
	inv := &d.inv
	inv.Normalize()
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return inv, nil
}

type decoder struct {
	file    string
	version int // 1 to 3
	inv     probe.Inventory
	arch    string

	nodes    []node
	packages []pack
	places   []place // of the PCI functions, parallel to inv.PCI
	seen     map[probe.BDF]int
	hcas     map[string]int // name → line
	nets     map[string]int
	indices  map[int]int       // NVML index → line
	gp       map[string]string // object id of a matrix → name
	rates    bool              // a PCI rate that is no link was seen
}

// node is a NUMA node before its processors are told from its neighbours'.
type node struct {
	probe.NUMANode
	set    []int // processors, or those near by
	memory bool  // it says itself that it is memory only
	line   int
}

type pack struct {
	index int
	set   []int
}

// place is where in the tree of processors a host bridge hangs.
type place struct {
	cpuset  string
	nodeset string
	line    int
}

func (d *decoder) fault(e *element, format string, args ...any) error {
	return &probe.SyntaxError{File: d.file, Line: e.line, Msg: fmt.Sprintf(format, args...)}
}

func (d *decoder) origin(line int) probe.Origin {
	return probe.Origin{Source: Source, Where: fmt.Sprintf("%s:%d", d.file, line)}
}

func (d *decoder) gap(line int, what, why, how string) {
	d.inv.Gaps = append(d.inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: d.origin(line)})
}

// plain makes one line of printable text of what hwloc copied from firmware.
func plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "")))
}

// infos are the <info> of an element.
func infos(e *element) map[string]string {
	out := map[string]string{}
	for _, i := range e.named("info") {
		if n := i.attrs["name"]; n != "" && out[n] == "" {
			out[n] = plain(i.attrs["value"])
		}
	}
	return out
}

func (d *decoder) topology(root *element) error {
	d.inv.Schema = probe.Schema
	d.seen = map[probe.BDF]int{}
	d.version = 1
	if v := root.attrs["version"]; v != "" {
		major, _, _ := strings.Cut(v, ".")
		n, err := strconv.Atoi(major)
		if err != nil || n < 1 || n > 3 {
			return d.fault(root, "topology version %q: want 1 to 3", probe.Excerpt(v))
		}
		d.version = n
	}
	objects := root.named("object")
	if len(objects) != 1 || objects[0].attrs["type"] != "Machine" {
		if len(objects) == 1 && objects[0].attrs["type"] == "System" {
			return d.fault(objects[0], "a topology of several machines; one file is one host")
		}
		return d.fault(root, "want one object of type Machine below <topology>")
	}
	machine := objects[0]
	d.machine(infos(machine), infos(root), machine.line)
	if err := d.object(machine, scope{place: place{machine.attrs["cpuset"], machine.attrs["nodeset"], machine.line}}); err != nil {
		return err
	}
	if err := d.numa(); err != nil {
		return err
	}
	if err := d.locality(machine.line); err != nil {
		return err
	}
	if err := d.matrices(root, machine); err != nil {
		return err
	}
	for i := range d.inv.HCAs {
		h := &d.inv.HCAs[i]
		for _, n := range d.inv.NetDevs {
			if h.Addr.Known() && n.Addr == h.Addr {
				h.NetDevs = append(h.NetDevs, n.Name)
			}
		}
		slices.SortFunc(h.NetDevs, probe.CompareNames)
	}
	if d.rates {
		d.gap(root.line, "PCIe links", "hwloc keeps at most one rate of a device, and several generations and widths have it", "add the machine's sys directory, or lspci -vv")
	}
	return nil
}

// machine reads what stands about the host as a whole; format 3 has it beside
// the machine, earlier ones in it.
func (d *decoder) machine(of, beside map[string]string, line int) {
	get := func(names ...string) string {
		for _, n := range names {
			if v := cmp.Or(of[n], beside[n]); v != "" {
				return v
			}
		}
		return ""
	}
	o := []probe.Origin{d.origin(line)}
	d.arch = archOf(get("Architecture"))
	if d.inv.Host = (probe.Host{Name: get("HostName"), Kernel: get("OSRelease")}); d.inv.Host.Name+d.inv.Host.Kernel != "" {
		d.inv.Host.Origins = o
	}
	p := probe.Product{Vendor: get("DMISysVendor"), Name: get("DMIProductName", "PlatformModel"), Board: get("DMIBoardName")}
	if p.Vendor+p.Name+p.Board != "" {
		p.Origins = o
		d.inv.Product = p
	}
}

// scope is what an object inherits from those above it.
type scope struct {
	place  place
	root   string               // root bus
	bridge probe.Opt[probe.BDF] // bridge directly above
	device int                  // place in inv.PCI plus 1, of the function above
}

func (d *decoder) object(e *element, s scope) error {
	if e.name != "object" {
		return nil
	}
	var err error
	switch e.attrs["type"] {
	case "NUMANode":
		err = d.node(e)
	case "Package", "Socket":
		err = d.pack(e)
	case "Bridge":
		s, err = d.bridge(e, s)
	case "PCIDev":
		s, err = d.function(e, s)
	case "OSDev":
		err = d.osDevice(e, s)
	case "System":
		return d.fault(e, "a topology of several machines; one file is one host")
	}
	if err != nil {
		return err
	}
	if set, ok := e.attrs["cpuset"]; ok && e.attrs["type"] != "OSDev" && e.attrs["type"] != "PCIDev" && e.attrs["type"] != "Bridge" {
		s.place = place{set, e.attrs["nodeset"], e.line}
	}
	for _, k := range e.kids {
		if err := d.object(k, s); err != nil {
			return err
		}
	}
	return nil
}

// index reads os_index.
func (d *decoder) index(e *element) (int, error) {
	n, err := strconv.Atoi(e.attrs["os_index"])
	if err != nil || n < 0 || n >= 1<<16 {
		return 0, d.fault(e, "%s os_index %q: not a number below %d", e.attrs["type"], probe.Excerpt(e.attrs["os_index"]), 1<<16)
	}
	return n, nil
}

func (d *decoder) set(e *element, attr string) (probe.CPUSet, []int, error) {
	s := e.attrs[attr]
	if s == "" {
		return "", nil, nil
	}
	set, err := parseSet(s)
	if err != nil {
		return "", nil, d.fault(e, "%s %s: %v", e.attrs["type"], attr, err)
	}
	return set, set.CPUs(), nil
}

// maxObjects bounds NUMA nodes and packages; it is probe's own bound on nodes.
const maxObjects = 256

func (d *decoder) node(e *element) error {
	if e.attrs["os_index"] == "" {
		return nil // a machine without NUMA
	}
	id, err := d.index(e)
	if err != nil {
		return err
	}
	set, cpus, err := d.set(e, "cpuset")
	if err != nil {
		return err
	}
	if len(d.nodes) == maxObjects {
		return d.fault(e, "more than %d NUMA nodes", maxObjects)
	}
	for _, n := range d.nodes {
		if n.ID == id {
			return d.fault(e, "NUMA node %d stands on line %d already", id, n.line)
		}
	}
	n := node{NUMANode: probe.NUMANode{ID: id, CPUs: set, Origins: []probe.Origin{d.origin(e.line)}}, set: cpus, line: e.line}
	for _, a := range []string{"local_memory", "subtype"} {
		if v := plain(e.attrs[a]); v != "" && v != "0" {
			n.Extra = append(n.Extra, probe.Attr{Name: a, Value: v})
		}
	}
	switch e.attrs["subtype"] {
	case "MCDRAM", "HBM", "GPUMemory", "CXL-DRAM", "CXL-HBM", "NVM":
		n.memory = true
	}
	d.gp["NUMANode:"+e.attrs["gp_index"]] = strconv.Itoa(id)
	d.nodes = append(d.nodes, n)
	return nil
}

func (d *decoder) pack(e *element) error {
	if e.attrs["os_index"] == "" {
		return nil
	}
	index, err := d.index(e)
	if err != nil {
		return err
	}
	_, cpus, err := d.set(e, "cpuset")
	if err != nil {
		return err
	}
	in := infos(e)
	number := func(name string) (probe.Opt[int], error) {
		s := in[name]
		if s == "" {
			return probe.Opt[int]{}, nil
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 1<<16 {
			return probe.Opt[int]{}, d.fault(e, "%s %q: not a number up to %d", name, probe.Excerpt(s), 1<<16)
		}
		return probe.Some(n), nil
	}
	c := probe.CPU{Package: index, Arch: d.arch, Vendor: in["CPUVendor"], Name: in["CPUModel"], Origins: []probe.Origin{d.origin(e.line)}}
	if c.Vendor == "Shanghai" {
		c.Vendor = "  Shanghai  " // the blanks belong to it, and plain took them
	}
	if c.Family, err = number("CPUFamilyNumber"); err != nil {
		return err
	}
	if f, ok := c.Family.Get(); ok {
		c.Family = probe.Some(signature(f))
	}
	if c.Model, err = number("CPUModelNumber"); err != nil {
		return err
	}
	if len(d.packages) == maxObjects {
		return d.fault(e, "more than %d packages", maxObjects)
	}
	for _, p := range d.packages {
		if p.index == index {
			return d.fault(e, "package %d appears twice", index)
		}
	}
	d.packages = append(d.packages, pack{index, cpus})
	d.inv.CPUs = append(d.inv.CPUs, c)
	return nil
}

// bridge reads a host bridge, which gives the root bus, or a PCI bridge.
func (d *decoder) bridge(e *element, s scope) (scope, error) {
	upstream, _, ok := strings.Cut(e.attrs["bridge_type"], "-")
	if !ok || upstream != "0" && upstream != "1" {
		return s, d.fault(e, "bridge_type %q: want 0-1 or 1-1", probe.Excerpt(e.attrs["bridge_type"]))
	}
	if upstream == "1" {
		s, err := d.function(e, s)
		s.bridge, s.device = probe.Some(d.inv.PCI[len(d.inv.PCI)-1].Addr), 0
		return s, err
	}
	if r := e.attrs["bridge_pci"]; r != "" {
		root, err := rootOf(r)
		if err != nil {
			return s, d.fault(e, "%v", err)
		}
		s.root, s.bridge = root, probe.Opt[probe.BDF]{}
	}
	return s, nil
}

// function reads a PCI function; on success and on error inv.PCI has one more.
func (d *decoder) function(e *element, s scope) (scope, error) {
	dev := probe.PCIDevice{Parent: s.bridge, Root: s.root, Origins: []probe.Origin{d.origin(e.line)}}
	err := d.functionFacts(&dev, e)
	d.inv.PCI = append(d.inv.PCI, dev)
	d.places = append(d.places, s.place)
	if err != nil {
		return s, err
	}
	s.device = len(d.inv.PCI)
	d.gp["PCIDev:"+e.attrs["gp_index"]] = dev.Addr.String()
	if v, _ := dev.Vendor.Get(); v == probe.VendorNVIDIA && dev.Class.Or(0).IsGPU() {
		d.inv.GPUs = append(d.inv.GPUs, probe.GPU{Addr: probe.Some(dev.Addr), Origins: []probe.Origin{d.origin(e.line)}})
	}
	return s, nil
}

func (d *decoder) functionFacts(dev *probe.PCIDevice, e *element) error {
	addr, err := probe.ParseBDF(e.attrs["pci_busid"])
	if err != nil {
		return d.fault(e, "pci_busid: %v", err)
	}
	if first, ok := d.seen[addr]; ok {
		return d.fault(e, "PCI function %v stands on line %d already", addr, first)
	}
	d.seen[addr], dev.Addr = e.line, addr
	if t := e.attrs["pci_type"]; t != "" {
		if err := setType(dev, strings.TrimSpace(t)); err != nil {
			return d.fault(e, "%v", err)
		}
	}
	if r := e.attrs["bridge_pci"]; r != "" {
		if _, err := rootOf(r); err != nil {
			return d.fault(e, "%v", err)
		}
		dev.Extra = append(dev.Extra, probe.Attr{Name: "bridge_pci", Value: r})
	}
	if s := e.attrs["pci_link_speed"]; s != "" {
		gbs, err := strconv.ParseFloat(s, 64)
		if err != nil || !(gbs >= 0 && gbs <= 10_000) {
			return d.fault(e, "pci_link_speed %q: not a number of GB/s", probe.Excerpt(s))
		}
		if gbs > 0 { // 0 is unknown
			dev.Extra = append(dev.Extra, probe.Attr{Name: "pci_link_speed", Value: s})
			dev.Current = linkOf(gbs)
		}
		d.rates = d.rates || !dev.Current.Known()
	}
	in := infos(e)
	for _, n := range []string{"PCIVendor", "PCIDevice", "PCISlot"} {
		if in[n] != "" {
			dev.Extra = append(dev.Extra, probe.Attr{Name: n, Value: in[n]})
		}
	}
	return nil
}

// numa tells the processors of a node from those that are merely near it: in
// format 2 a node of memory alone has the processors of its surroundings.
func (d *decoder) numa() error {
	slices.SortStableFunc(d.nodes, func(a, b node) int { return cmp.Compare(a.ID, b.ID) })
	taken := map[int]int{} // processor → node
	for _, second := range []bool{false, true} {
		for i := range d.nodes {
			n := &d.nodes[i]
			if n.memory != second {
				continue
			}
			// The kernel numbers nodes with processors first, and no processor
			// belongs to two nodes.
			owner, shared := 0, n.memory && len(n.set) > 0
			for _, c := range n.set {
				if o, ok := taken[c]; ok {
					owner, shared = o, true
					break
				}
			}
			if shared {
				n.Extra = append(n.Extra, probe.Attr{Name: "near_cpus", Value: string(n.CPUs)})
				if !n.memory {
					d.gap(n.line, fmt.Sprintf("numa %d cpus", n.ID), fmt.Sprintf("hwloc shows it beside processors of node %d: it is taken for memory alone", owner), "")
				}
				n.CPUs, n.set = "", nil
				continue
			}
			for _, c := range n.set {
				taken[c] = n.ID
			}
		}
	}
	in := map[int]int{} // processor → package
	for _, p := range d.packages {
		for _, c := range p.set {
			in[c] = p.index
		}
	}
	for i := range d.nodes {
		n := &d.nodes[i]
		if len(n.set) > 0 {
			if p, ok := in[n.set[0]]; ok && !slices.ContainsFunc(n.set, func(c int) bool { q, ok := in[c]; return !ok || q != p }) {
				n.Package = probe.Some(p)
			}
		}
		d.inv.NUMA = append(d.inv.NUMA, n.NUMANode)
	}
	return nil
}

// locality gives each PCI function the node and processors of its place.
func (d *decoder) locality(line int) error {
	type near struct {
		node probe.Opt[int]
		cpus probe.CPUSet
	}
	known := map[place]near{}
	unknown := 0
	for i := range d.inv.PCI {
		p := d.places[i]
		n, ok := known[p]
		if !ok {
			e := &element{line: p.line, attrs: map[string]string{"type": "object", "cpuset": p.cpuset, "nodeset": p.nodeset}}
			set, _, err := d.set(e, "cpuset")
			if err != nil {
				return err
			}
			_, nodes, err := d.set(e, "nodeset")
			if err != nil {
				return err
			}
			var with []node
			for _, id := range nodes {
				if j := slices.IndexFunc(d.nodes, func(x node) bool { return x.ID == id && len(x.set) > 0 }); j >= 0 {
					with = append(with, d.nodes[j])
				}
			}
			if len(with) == 1 {
				n = near{probe.Some(with[0].ID), set}
			}
			known[p] = n
		}
		d.inv.PCI[i].NUMA, d.inv.PCI[i].CPUs = n.node, n.cpus
		if !n.node.Known() {
			unknown++
		}
	}
	if unknown > 0 && len(d.nodes) > 0 {
		d.gap(line, "PCI NUMA nodes", fmt.Sprintf("%d functions hang on a place with several nodes: hwloc was not told which is near", unknown), "")
	}
	return nil
}

var (
	nvmlName = regexp.MustCompile(`^nvml(\d{1,3})$`)
	cudaName = regexp.MustCompile(`^cuda(\d{1,3})$`)
	portInfo = regexp.MustCompile(`^Port(\d{1,3})(State|LID|GID(\d{1,4}))$`)
)

// kinds of OS devices that are of interest.
func (d *decoder) kindOf(e *element, in map[string]string) string {
	name, typ := e.attrs["name"], e.attrs["osdev_type"]
	switch {
	case nvmlName.MatchString(name):
		return "nvml"
	case cudaName.MatchString(name):
		return "cuda"
	case in["NodeGUID"] != "", in["SysImageGUID"] != "", strings.Contains(typ, "OpenFabrics"):
		return "hca"
	case strings.EqualFold(typ, "Network"):
		return "net"
	}
	n, err := strconv.ParseUint(typ, 0, 32)
	switch {
	case err != nil:
	// Formats 1 and 2 number the types, format 3 adds bits up.
	case d.version < 3 && n == 3, d.version == 3 && n&(1<<5) != 0:
		return "hca"
	case d.version < 3 && n == 2, d.version == 3 && n&(1<<4) != 0:
		return "net"
	}
	return ""
}

func (d *decoder) osDevice(e *element, s scope) error {
	in := infos(e)
	name := plain(e.attrs["name"])
	addr := probe.Opt[probe.BDF]{}
	if s.device > 0 {
		addr = probe.Some(d.inv.PCI[s.device-1].Addr)
	}
	d.gp["OSDev:"+e.attrs["gp_index"]] = name
	switch d.kindOf(e, in) {
	case "nvml", "cuda":
		return d.gpu(e, name, in, addr, s)
	case "hca":
		return d.hca(e, name, in, addr)
	case "net":
		if first, ok := d.nets[name]; ok {
			return d.fault(e, "interface %s stands on line %d already", probe.Excerpt(name), first)
		}
		d.nets[name] = e.line
		n := probe.NetDev{Name: name, Addr: addr, Origins: []probe.Origin{d.origin(e.line)}}
		if v := in["Address"]; v != "" {
			n.Extra = []probe.Attr{{Name: "address", Value: v}}
		}
		d.inv.NetDevs = append(d.inv.NetDevs, n)
	}
	return nil
}

// gpu reads what NVML and CUDA call a GPU. NVML's number is the index; CUDA's
// depends on the environment of the process and is only kept.
func (d *decoder) gpu(e *element, name string, in map[string]string, addr probe.Opt[probe.BDF], s scope) error {
	i := slices.IndexFunc(d.inv.GPUs, func(g probe.GPU) bool { return addr.Known() && g.Addr == addr })
	if i < 0 {
		if in["GPUVendor"] != "" && !strings.HasPrefix(in["GPUVendor"], "NVIDIA") {
			return nil
		}
		if !addr.Known() && !nvmlName.MatchString(name) {
			return nil // a CUDA device of which nothing is known
		}
		d.inv.GPUs = append(d.inv.GPUs, probe.GPU{Addr: addr, Origins: []probe.Origin{d.origin(e.line)}})
		i = len(d.inv.GPUs) - 1
	}
	g := &d.inv.GPUs[i]
	g.Name = cmp.Or(g.Name, in["GPUModel"])
	if !nvmlName.MatchString(name) {
		g.Extra = append(g.Extra, probe.Attr{Name: "cuda", Value: name})
		return nil
	}
	n, err := strconv.Atoi(nvmlName.FindStringSubmatch(name)[1])
	if err != nil {
		return d.fault(e, "%s: no index", probe.Excerpt(name))
	}
	if first, ok := d.indices[n]; ok {
		return d.fault(e, "%s stands on line %d already", name, first)
	}
	if g.Index.Known() {
		return d.fault(e, "%s hangs on the function of nvml%v", name, g.Index)
	}
	d.indices[n] = e.line
	g.Index, g.UUID = probe.Some(n), in["NVIDIAUUID"]
	if s.device > 0 {
		// NVML's maximum stands in the function's rate, so that is no current link.
		d.inv.PCI[s.device-1].Current = probe.PCIeLink{}
	}
	return nil
}

func (d *decoder) hca(e *element, name string, in map[string]string, addr probe.Opt[probe.BDF]) error {
	if first, ok := d.hcas[name]; ok {
		return d.fault(e, "adapter %s stands on line %d already", probe.Excerpt(name), first)
	}
	d.hcas[name] = e.line
	h := probe.HCA{Name: name, Addr: addr, Origins: []probe.Origin{d.origin(e.line)}}
	var err error
	if s := in["NodeGUID"]; s != "" {
		if h.NodeGUID, err = groups("NodeGUID", s, 4); err != nil {
			return d.fault(e, "%s: %v", probe.Excerpt(name), err)
		}
	}
	if s := in["SysImageGUID"]; s != "" {
		if h.SysImageGUID, err = groups("SysImageGUID", s, 4); err != nil {
			return d.fault(e, "%s: %v", probe.Excerpt(name), err)
		}
	}
	ports := map[int]*probe.HCAPort{}
	for _, i := range e.named("info") {
		m := portInfo.FindStringSubmatch(i.attrs["name"])
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if ports[n] == nil {
			ports[n] = &probe.HCAPort{Port: n}
		}
		p, v := ports[n], plain(i.attrs["value"])
		switch {
		case m[2] == "State":
			if p.State, err = portState(v); err != nil {
				return d.fault(i, "%s port %d: %v", probe.Excerpt(name), n, err)
			}
		case m[2] == "LID":
			p.LID = v
		default:
			gid, err := groups("GID", v, 8)
			if err != nil {
				return d.fault(i, "%s port %d: %v", probe.Excerpt(name), n, err)
			}
			index, _ := strconv.Atoi(m[3])
			if gid != "" {
				p.GIDs = append(p.GIDs, probe.GID{Index: index, GID: gid})
			}
		}
	}
	for _, p := range ports {
		h.Ports = append(h.Ports, *p)
	}
	slices.SortFunc(h.Ports, func(a, b probe.HCAPort) int { return cmp.Compare(a.Port, b.Port) })
	d.inv.HCAs = append(d.inv.HCAs, h)
	return nil
}

// maxMatrix bounds the objects of a matrix.
const maxMatrix = 1024

// matrices reads the distances between NUMA nodes and the matrix of NVLinks.
func (d *decoder) matrices(root, machine *element) error {
	for _, e := range machine.named("distances") {
		if err := d.oldDistances(e); err != nil {
			return err
		}
	}
	for _, kind := range []string{"distances2", "distances2hetero"} {
		for _, e := range root.named(kind) {
			switch {
			case e.attrs["name"] == "NUMALatency" || e.attrs["name"] == "" && e.attrs["type"] == "NUMANode":
				if err := d.latency(e); err != nil {
					return err
				}
			case e.attrs["name"] == "NVLinkBandwidth":
				if err := d.nvlinks(e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// oldDistances reads format 1: relative values with their base, between the
// nodes in the order of their numbers.
func (d *decoder) oldDistances(e *element) error {
	n, err := strconv.Atoi(e.attrs["nbobjs"])
	values := e.named("latency")
	if err != nil || n < 1 || n > maxMatrix || len(values) != n*n {
		return d.fault(e, "distances of %q objects have %d values", probe.Excerpt(e.attrs["nbobjs"]), len(values))
	}
	if n != len(d.nodes) {
		return nil // between other objects than nodes
	}
	base, err := strconv.ParseFloat(e.attrs["latency_base"], 64)
	if err != nil || !(base > 0 && base < 1e6) {
		return d.fault(e, "latency_base %q: not a number", probe.Excerpt(e.attrs["latency_base"]))
	}
	cells := make([]int, len(values))
	for i, v := range values {
		f, err := strconv.ParseFloat(v.attrs["value"], 64)
		if err != nil || !(f >= 0 && f < 1e6) {
			return d.fault(v, "latency %q: not a number", probe.Excerpt(v.attrs["value"]))
		}
		cells[i] = int(math.Round(f * base))
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = d.nodes[i].ID
	}
	d.distances(ids, cells)
	return nil
}

// distances stores a matrix whose rows and columns are the nodes ids. Only one
// between all nodes has the inventory's form, an entry for each node in order.
func (d *decoder) distances(ids, cells []int) {
	order := make([]int, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
	if len(ids) != len(d.nodes) {
		return
	}
	for i, at := range order {
		if ids[at] != d.inv.NUMA[i].ID {
			return
		}
	}
	for i, row := range order {
		out := make([]int, len(ids))
		for j, column := range order {
			out[j] = cells[row*len(ids)+column]
		}
		d.inv.NUMA[i].Distances = out
	}
}

// matrix reads a matrix of formats 2 and 3. A list that is long is cut into
// several elements.
func (d *decoder) matrix(e *element) (indexes []string, values []uint64, err error) {
	n, err := strconv.Atoi(e.attrs["nbobjs"])
	if err != nil || n < 1 || n > maxMatrix {
		return nil, nil, d.fault(e, "<%s> nbobjs %q: not a number up to %d", e.name, probe.Excerpt(e.attrs["nbobjs"]), maxMatrix)
	}
	for _, k := range e.kids {
		switch k.name {
		case "indexes":
			indexes = append(indexes, strings.Fields(k.text)...)
		case "u64values":
			for _, f := range strings.Fields(k.text) {
				v, err := strconv.ParseUint(f, 10, 64)
				if err != nil {
					return nil, nil, d.fault(k, "%q is not a number", probe.Excerpt(f))
				}
				values = append(values, v)
			}
		}
	}
	if len(indexes) != n || len(values) != n*n {
		return nil, nil, d.fault(e, "<%s> of %d objects has %d indexes and %d values", e.name, n, len(indexes), len(values))
	}
	return indexes, values, nil
}

func (d *decoder) latency(e *element) error {
	indexes, values, err := d.matrix(e)
	if err != nil {
		return err
	}
	ids, cells := make([]int, len(indexes)), make([]int, len(values))
	for i, s := range indexes {
		if e.attrs["indexing"] == "gp" {
			s = d.gp["NUMANode:"+s]
		}
		if ids[i], err = strconv.Atoi(s); err != nil {
			return d.fault(e, "index %q is no NUMA node", probe.Excerpt(indexes[i]))
		}
	}
	for i, v := range values {
		if v > 1e6 {
			return d.fault(e, "latency %d is out of range", v)
		}
		cells[i] = int(v)
	}
	d.distances(ids, cells)
	return nil
}

// nvlinks reads the matrix of the sums of NVLink rates in MB/s. It says that
// there are NVLinks and where they lead, but neither how many nor in what state,
// so the figures are only kept.
func (d *decoder) nvlinks(e *element) error {
	indexes, values, err := d.matrix(e)
	if err != nil {
		return err
	}
	name := func(s string) string {
		if !strings.Contains(s, ":") {
			s = cmp.Or(e.attrs["type"], "OSDev") + ":" + s
		}
		return d.gp[s]
	}
	linked := false
	for i, from := range indexes {
		m := nvmlName.FindStringSubmatch(name(from))
		if m == nil {
			continue
		}
		g := slices.IndexFunc(d.inv.GPUs, func(g probe.GPU) bool { return g.Index.String() == m[1] })
		if g < 0 {
			continue
		}
		for j, to := range indexes {
			if v := values[i*len(indexes)+j]; i != j && v > 0 {
				linked = true
				d.inv.GPUs[g].Extra = append(d.inv.GPUs[g].Extra, probe.Attr{
					Name: "nvlink_mbs " + cmp.Or(plain(name(to)), plain(to)), Value: strconv.FormatUint(v, 10),
				})
			}
		}
	}
	if linked {
		d.gap(e.line, "gpu nvlinks", "hwloc has the sum of the links' rates between devices, not the links", "add the output of nvidia-smi nvlink -s")
	}
	return nil
}
