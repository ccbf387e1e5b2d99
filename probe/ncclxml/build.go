package ncclxml

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// FromInventory builds the topology file that NCCL would find on the host: the
// encoder side of ncclmap convert.
//
// Of the PCI tree NCCL keeps the functions with a GPU or an adapter and, above
// them, every second bridge: of a switch its upstream port; root ports go. What
// comes from a topology file was reduced so already and is kept as it is.
// link_speed and link_width are the lower maximum of the device and of the port
// above it.
//
// What is unknown is left out, never invented: NCCL completes a missing
// attribute from sysfs, NVML or the CPU when it loads the file, while it would
// believe an empty one (link_speed "" is Gen3 to it). So rank and gdr are there
// only if the inventory has them, and <nvlink> only if the links are known: one
// per far end, counting links that are up. An end that is no known address is
// written as NCCL writes a hidden one; a direct link to a GPU of unknown address
// cannot be written.
//
// An adapter gets one <net> per port that is ACTIVE or of unknown state; network
// interfaces are listed if there is no such port, as NCCL uses sockets only
// then. Numbers (dev) that are not known count on in name order; NCCL replaces
// them by its own. <cpu> elements stand in the order of their numaid, functions
// in that of their address.
func FromInventory(inv *probe.Inventory) (*Document, error) {
	if err := inv.Validate(); err != nil {
		return nil, err
	}
	ordered := *inv
	ordered.Normalize()
	inv = &ordered
	b := writer{inv: inv, pci: map[probe.BDF]*probe.PCIDevice{}, nodes: map[probe.BDF]*Element{}, cpus: map[int]*Element{}}
	for i := range inv.PCI {
		b.pci[inv.PCI[i].Addr] = &inv.PCI[i]
	}
	for _, n := range inv.NUMA {
		b.groups = max(b.groups, strings.Count(n.CPUs.Mask(), ",")+1)
	}
	for i := range inv.PCI {
		if d := &inv.PCI[i]; reduced(d) {
			b.node(d.Addr)
		}
	}
	if err := b.gpus(); err != nil {
		return nil, err
	}
	b.nets()
	if len(b.cpus) == 0 {
		return nil, errors.New("the inventory lists no GPU and no adapter with a PCI address: no topology to write")
	}
	return &Document{Root: b.root()}, nil
}

// reduced reports a function that a topology file describes and sysfs does not:
// only the latter names root buses.
func reduced(d *probe.PCIDevice) bool {
	return d.Root == "" && slices.ContainsFunc(d.Origins, func(o probe.Origin) bool { return o.Source == probe.SourceNCCLXML })
}

type writer struct {
	inv   *probe.Inventory
	pci   map[probe.BDF]*probe.PCIDevice
	nodes map[probe.BDF]*Element // the <pci> written so far
	cpus  map[int]*Element       // by numaid
	loose []*Element             // <net> without a PCI function

	groups int // of 32 bits in the widest CPU mask
}

// node returns the <pci> of a function and makes it, and those above, if needed.
func (b *writer) node(addr probe.BDF) *Element {
	if e := b.nodes[addr]; e != nil {
		return e
	}
	e := &Element{Name: "pci"}
	b.nodes[addr] = e
	e.set("busid", addr.String())
	d := b.pci[addr]
	if d == nil {
		// A driver knows the function, nobody described it.
		parent := b.cpu(-1)
		parent.Children = append(parent.Children, e)
		return e
	}
	e.set("class", opt(d.Class))
	e.set("vendor", opt(d.Vendor))
	e.set("device", opt(d.Device))
	e.set("subsystem_vendor", opt(d.SubVendor))
	e.set("subsystem_device", opt(d.SubDevice))
	setLink(e, b.link(d))
	for _, a := range d.Extra {
		l := &Element{Name: "pcilink"}
		if l.set("target", a.Value); a.Name == "pcilink" && len(l.Attrs) > 0 {
			e.Children = append(e.Children, l)
		}
	}
	var parent *Element
	if up, ok := b.above(d).Get(); ok {
		parent = b.node(up)
	} else {
		parent = b.cpu(b.numa(d))
	}
	parent.Children = append(parent.Children, e)
	return e
}

func setLink(e *Element, l probe.PCIeLink) {
	if s, ok := l.Speed.Get(); ok {
		e.set("link_speed", s.String()+" PCIe")
	}
	e.set("link_width", opt(l.Width))
}

// above returns the bridge under which NCCL hangs a function.
func (b *writer) above(d *probe.PCIDevice) probe.Opt[probe.BDF] {
	port, ok := d.Parent.Get()
	if !ok || reduced(d) {
		return d.Parent
	}
	up := b.pci[port]
	if up == nil {
		return probe.Opt[probe.BDF]{}
	}
	return up.Parent
}

// link returns the lower maximum of the function and of the port above it; a GPU
// of which the bus says nothing has what its driver says.
func (b *writer) link(d *probe.PCIDevice) probe.PCIeLink {
	l := d.Max
	if !reduced(d) {
		if port := b.pci[d.Parent.Or(probe.BDF{})]; d.Parent.Known() && port != nil {
			l = l.Min(port.Max)
		}
	}
	for _, g := range b.inv.GPUs {
		if g.Addr == probe.Some(d.Addr) {
			if !l.Speed.Known() {
				l.Speed = g.Max.Speed
			}
			if !l.Width.Known() {
				l.Width = g.Max.Width
			}
		}
	}
	return l
}

// numa returns the node of the function at the top of NCCL's tree, or of the
// port above it that NCCL leaves out; -1 where neither is known.
func (b *writer) numa(d *probe.PCIDevice) int {
	for at := d; at != nil; at = b.pci[at.Parent.Or(probe.BDF{})] {
		if n, ok := at.NUMA.Get(); ok {
			return n
		}
		if !at.Parent.Known() {
			break
		}
	}
	return -1
}

func (b *writer) cpu(numaid int) *Element {
	if e := b.cpus[numaid]; e != nil {
		return e
	}
	e := &Element{Name: "cpu"}
	b.cpus[numaid] = e
	i := slices.IndexFunc(b.inv.NUMA, func(n probe.NUMANode) bool { return n.ID == numaid })
	var node probe.NUMANode
	if i >= 0 {
		node = b.inv.NUMA[i]
	}
	fromFile := func(name string) string {
		for _, a := range node.Extra {
			if a.Name == name {
				return a.Value
			}
		}
		return ""
	}
	e.set("host_hash", b.hostHash())
	e.set("numaid", strconv.Itoa(numaid))
	if node.CPUs != "" {
		e.set("affinity", b.mask(node.CPUs))
	}
	p := b.processor(node)
	for _, a := range []struct{ name, value string }{
		{"arch", ncclArch(p.arch)}, {"vendor", p.vendor}, {"familyid", opt(p.family)}, {"modelid", opt(p.model)},
	} {
		e.set(a.name, cmp.Or(fromFile(a.name), a.value))
	}
	return e
}

// hostHash returns the host_hash that a topology file gave the host. All <cpu>
// get it, else they would count as several hosts; NCCL replaces it anyway.
func (b *writer) hostHash() string {
	for _, n := range b.inv.NUMA {
		for _, a := range n.Extra {
			if a.Name == "host_hash" {
				return a.Value
			}
		}
	}
	return ""
}

// mask prints a node's CPUs with as many groups as the widest mask has, as the
// kernel does.
func (b *writer) mask(cpus probe.CPUSet) string {
	m := cpus.Mask()
	return strings.Repeat("00000000,", b.groups-strings.Count(m, ",")-1) + m
}

// processor returns the package of a node: the one that the node names, else
// the kind that all packages are of.
func (b *writer) processor(n probe.NUMANode) processor {
	var kinds []processor
	for _, c := range b.inv.CPUs {
		p := processor{c.Arch, c.Vendor, c.Family, c.Model}
		if n.Package == probe.Some(c.Package) {
			return p
		}
		if !slices.Contains(kinds, p) {
			kinds = append(kinds, p)
		}
	}
	if len(kinds) == 1 {
		return kinds[0]
	}
	return processor{}
}

// ncclArch turns the kernel's machine names into NCCL's.
func ncclArch(s string) string {
	switch s {
	case "amd64":
		return "x86_64"
	case "aarch64":
		return "arm64"
	case "ppc64le":
		return "ppc64"
	}
	return s
}

func (b *writer) gpus() error {
	for _, g := range b.inv.GPUs {
		addr, ok := g.Addr.Get()
		if !ok {
			return fmt.Errorf("gpu %v: no PCI address is known; a topology file names GPUs by it", g.Index)
		}
		pci := b.node(addr)
		if b.pci[addr] == nil {
			setLink(pci, g.Max)
		}
		e := &Element{Name: "gpu"}
		e.set("dev", opt(g.Index))
		e.set("sm", opt(g.CC))
		e.set("rank", opt(g.Rank))
		e.set("gdr", bit(g.GDR))
		b.nvlinks(e, g)
		if g.C2C != nil {
			c := &Element{Name: "c2c"}
			c.set("bw", strconv.FormatInt(int64(g.C2C.PerLink)/1e6, 10))
			c.set("count", strconv.Itoa(g.C2C.Links))
			e.Children = append(e.Children, c)
		}
		if len(e.Attrs)+len(e.Children) > 0 {
			pci.Children = append(pci.Children, e)
		}
	}
	return nil
}

// hiddenEnd is how NCCL 2.28 writes the far end of a link that a hypervisor
// hides.
const hiddenEnd = "fffffff:ff:ff.0"

func (b *writer) nvlinks(e *Element, g probe.GPU) {
	type end struct{ target, class string }
	counts := map[end]int{}
	var ends []end
	links, _ := g.NVLinks.Get()
	for _, l := range links {
		addr, known := l.Remote.Get()
		if l.State != probe.LinkUp || !known && (l.RemoteKind == probe.RemoteGPU || l.RemoteKind == probe.RemoteCPU) {
			continue
		}
		to := end{hiddenEnd, probe.ClassNVSwitch.String()}
		if known {
			to.target = addr.String()
			switch l.RemoteKind {
			case probe.RemoteGPU:
				to.class = probe.PCIClass(0x030200).String()
			case probe.RemoteCPU:
				to.class = classNPU.String()
			case "":
				to.class = "" // NCCL reads it from sysfs
			}
			if d := b.pci[addr]; d != nil && d.Class.Known() {
				to.class = opt(d.Class)
			}
		}
		if counts[to]++; counts[to] == 1 {
			ends = append(ends, to)
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.class, b.class)) })
	for _, to := range ends {
		l := &Element{Name: "nvlink"}
		l.set("target", to.target)
		l.set("count", strconv.Itoa(counts[to]))
		l.set("tclass", to.class)
		e.Children = append(e.Children, l)
	}
}

// net is a <net> to be written and the function it belongs to.
type net struct {
	addr probe.Opt[probe.BDF]
	dev  probe.Opt[int]
	e    *Element
}

func (b *writer) nets() {
	var nets []net
	for _, h := range b.inv.HCAs {
		dev := h.NCCLDev
		for _, p := range usable(h) {
			nets = append(nets, net{h.Addr, dev, netElement(h.Name, h.Extra, p.Rate, opt(probe.Some(p.Port)), h.SysImageGUID, h.GDR)})
			dev = probe.Opt[int]{}
		}
	}
	sockets := len(nets) == 0
	for _, n := range b.inv.NetDevs {
		if n.NCCLDev.Known() || sockets && !n.Virtual && n.Name != "lo" {
			nets = append(nets, net{n.Addr, n.NCCLDev, netElement(n.Name, n.Extra, n.Speed, "", "", probe.Opt[bool]{})})
		}
	}
	taken := map[int]bool{}
	for _, n := range nets {
		if d, ok := n.dev.Get(); ok {
			taken[d] = true
		}
	}
	next := 0
	for _, n := range nets {
		if !n.dev.Known() {
			for taken[next] {
				next++
			}
			n.dev = probe.Some(next)
			taken[next] = true
		}
		n.e.Attrs = slices.Insert(n.e.Attrs, 1, probe.Attr{Name: "dev", Value: opt(n.dev)})
		addr, ok := n.addr.Get()
		if d := b.pci[addr]; !ok || d != nil && d.Vendor == probe.Some(probe.VendorVirtio) {
			// A virtio interface is a virtio device, not a PCI one, to NCCL.
			b.loose = append(b.loose, n.e)
			continue
		}
		parent := b.node(addr)
		nics := parent.kids("nic")
		if len(nics) == 0 {
			nics = []*Element{{Name: "nic"}}
			parent.Children = append(parent.Children, nics[0])
		}
		nics[0].Children = append(nics[0].Children, n.e)
	}
	if len(b.loose) > 0 && len(b.cpus) == 0 {
		b.cpu(-1)
	}
}

// usable returns the ports that NCCL would list; an adapter of which no port is
// described gets one.
func usable(h probe.HCA) []probe.HCAPort {
	if len(h.Ports) == 0 {
		return []probe.HCAPort{{}}
	}
	return slices.DeleteFunc(slices.Clone(h.Ports), func(p probe.HCAPort) bool { return p.State != "" && !p.Active() })
}

// netElement writes attributes in the order of NCCL 2.28 and later; extra gives
// back what another topology file said of the device.
func netElement(name string, extra []probe.Attr, rate probe.Opt[probe.Rate], port, guid string, gdr probe.Opt[bool]) *Element {
	e := &Element{Name: "net"}
	fromFile := func(names ...string) {
		for _, n := range names {
			for _, a := range extra {
				if a.Name == n {
					e.set(n, a.Value)
				}
			}
		}
	}
	e.set("name", name)
	fromFile("latency")
	if r, ok := rate.Get(); ok && r > 0 {
		e.set("speed", strconv.FormatInt(int64(r)/mbps, 10))
	}
	if port == "" {
		fromFile("port")
	} else if port != "0" {
		e.set("port", port)
	}
	if guid == "" {
		fromFile("guid")
	} else {
		e.set("guid", ncclGUID(guid))
	}
	fromFile("maxconn")
	if gdr.Known() {
		e.set("gdr", bit(gdr))
	} else {
		fromFile("gdr")
	}
	fromFile("coll", "net", "gin", "rma", "rail", "plane")
	return e
}

// mbps is one megabit per second in bytes per second.
const mbps = 1e6 / 8

// ncclGUID is the inverse of sysfsGUID; "" when the text is no GUID.
func ncclGUID(s string) string {
	v, err := probe.ParseHex(strings.ReplaceAll(s, ":", ""), 64)
	if err != nil || v == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", bits.ReverseBytes64(v))
}

func (b *writer) root() *Element {
	root := &Element{Name: "system"}
	root.set("version", "1")
	ids := make([]int, 0, len(b.cpus))
	for id := range b.cpus {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for i, id := range ids {
		e := b.cpus[id]
		if i == 0 && len(b.loose) > 0 {
			// NCCL hangs what is no PCI function below its first CPU.
			e.Children = append(e.Children, &Element{Name: "nic", Children: b.loose})
		}
		sortTree(e)
		root.Children = append(root.Children, e)
	}
	return root
}

// sortTree puts functions into the order of their addresses and behind what
// else an element holds (a <nic> of a <cpu> comes last).
func sortTree(e *Element) {
	rank := func(c *Element) int {
		switch {
		case c.Name == "pci":
			return 1
		case e.Name == "cpu":
			return 2
		}
		return 0
	}
	slices.SortStableFunc(e.Children, func(a, b *Element) int {
		return cmp.Or(rank(a)-rank(b), a.BusID("busid").Or(probe.BDF{}).Compare(b.BusID("busid").Or(probe.BDF{})))
	})
	for _, c := range e.Children {
		sortTree(c)
	}
}

// opt prints a known value; unknown is "".
func opt[T any](v probe.Opt[T]) string {
	if !v.Known() {
		return ""
	}
	return v.String()
}

func bit(v probe.Opt[bool]) string {
	switch on, ok := v.Get(); {
	case !ok:
		return ""
	case on:
		return "1"
	}
	return "0"
}
