package ncclxml

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Inventory returns the facts that the file states about its one host.
//
//   - <cpu>: a NUMA node, unless numaid is -1 or missing; then its devices have
//     an unknown node and carry the mask themselves. The file does not say how
//     many sockets there are: CPUs holds one package per distinct arch, vendor,
//     family and model, and NUMANode.Package stays unknown.
//   - <pci>: Parent is the enclosing <pci>, Root is "" since NCCL keeps only the
//     upstream ports of switches. Max is what NCCL plans with (the lower maximum
//     of both ends, GPUs in 2.30.7: the current link), Current is unknown.
//   - <gpu>: no <nvlink> is "has no NVLink" only where a rank says that NCCL
//     completed the element; else it is unknown, as NCCL would ask the driver.
//     Link numbers are ordinals in the file's order. A GPU function without
//     <gpu> is a GPU of which only the address is known.
//   - <net>: an HCA when its guid is not zero or its name is an RDMA device's,
//     else a NetDev. A port's state is unknown (NCCL lists only usable ports);
//     port 0 is a port whose number the file does not give.
//
// What NCCL would assume for a missing value is said in a gap. Attributes that
// the inventory has no field for are kept in Extra.
func (d *Document) Inventory() (*probe.Inventory, error) {
	if hosts := d.Hosts(); len(hosts) > 1 {
		return nil, fmt.Errorf("%s: describes %d hosts (host_hash), an inventory describes one", d.Name, len(hosts))
	}
	r := reader{
		doc: d, inv: &probe.Inventory{Schema: probe.Schema},
		classes: map[probe.BDF]probe.Opt[probe.PCIClass]{}, processors: map[processor]bool{}, numa: map[int]*Element{},
		devs: map[int]*Element{}, switches: map[probe.BDF]bool{}, nets: map[string]*Element{}, hcas: map[string]int{},
	}
	for _, i := range d.Refused {
		r.refuse(i.Line, i.Msg, "")
	}
	if n := d.Root.size(); n > ncclElements {
		r.refuse(d.Root.Line, fmt.Sprintf("%d elements, and NCCL reads %d of a rank", n, ncclElements), "")
	}
	r.index(d.Root)
	if err := r.system(d.Root); err != nil {
		return nil, err
	}
	r.inv.Normalize()
	if err := r.inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	return r.inv, nil
}

type reader struct {
	doc  *Document
	inv  *probe.Inventory
	bare int // GPU functions without <gpu>

	classes    map[probe.BDF]probe.Opt[probe.PCIClass] // of every <pci>
	processors map[processor]bool                      // in inv.CPUs
	numa       map[int]*Element                        // by numaid
	devs       map[int]*Element                        // by dev of the GPU
	switches   map[probe.BDF]bool                      // in inv.NVSwitches
	nets       map[string]*Element                     // the first of a name
	hcas       map[string]int                          // position in inv.HCAs
}

// place is where in the tree an element stands.
type place struct {
	numa   probe.Opt[int]
	none   bool         // numaid is -1
	cpus   probe.CPUSet // of an unknown node
	parent probe.Opt[probe.BDF]
}

func (r *reader) origin(e *Element) probe.Origin {
	return probe.LineOf(probe.SourceNCCLXML, r.doc.Name, e.Line)
}

func (r *reader) origins(e *Element) []probe.Origin { return []probe.Origin{r.origin(e)} }

func (r *reader) gap(e *Element, what, why, how string) {
	r.inv.Gaps = append(r.inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: r.origin(e)})
}

func (r *reader) fault(e *Element, format string, args ...any) error {
	return &probe.SyntaxError{File: r.doc.Name, Line: e.Line, Msg: fmt.Sprintf("<%s> %s", e.Name, fmt.Sprintf(format, args...))}
}

// ncclElements is how many elements NCCL reads of one host (xml.h MAX_NODES,
// 2.21 and later; 1024 before).
const ncclElements = 256

// refuse notes what NCCL does not read as it is meant; assumes is what it takes
// instead, "" where it refuses the file.
func (r *reader) refuse(line int, msg, assumes string) {
	r.inv.Refused = append(r.inv.Refused, probe.FileFault{File: r.doc.Name, Line: line, Msg: msg, Assumes: assumes})
}

func (r *reader) index(e *Element) {
	if addr, ok := e.BusID("busid").Get(); ok && e.Name == "pci" {
		r.classes[addr] = e.Class("class")
	}
	for _, c := range e.Children {
		r.index(c)
	}
}

// extra keeps the attributes that are not among known.
func extra(e *Element, known ...string) []probe.Attr {
	var out []probe.Attr
	for _, a := range e.Attrs {
		if !slices.Contains(known, a.Name) {
			out = append(out, a)
		}
	}
	return out
}

// ignored notes an element that NCCL does not look for where it stands.
func (r *reader) ignored(e, parent *Element) {
	r.gap(e, fmt.Sprintf("<%s> in <%s>", e.Name, parent.Name), "NCCL knows no such element there and ignores it; so does ncclmap", "")
}

func (r *reader) system(root *Element) error {
	cpus := root.kids("cpu")
	mixed := slices.ContainsFunc(cpus, func(c *Element) bool { return cpuOf(c) != cpuOf(cpus[0]) })
	for _, e := range root.Children {
		var err error
		switch e.Name {
		case "cpu":
			err = r.cpu(e, mixed)
		case "pci", "nic":
			why, how := "stands under no <cpu>; NCCL ignores it", "put it into the <cpu> of its NUMA node"
			if r.doc.Piece {
				why, how = "the text is a piece of a topology, cut out below <cpu>", "give the whole file"
			}
			r.gap(e, fmt.Sprintf("<%s> on line %d: numa", e.Name, e.Line), why, how)
			if err = r.pciOrNIC(e, root, place{}); err != nil {
				return err
			}
		default:
			r.ignored(e, root)
		}
		if err != nil {
			return err
		}
	}
	if r.bare > 0 {
		r.gap(root, "gpus: index, compute_capability, nvlinks",
			fmt.Sprintf("%d GPU functions have no <gpu>; NCCL asks the driver at run time", r.bare), "dump the topology of a run (NCCL_TOPO_DUMP_FILE)")
	}
	return nil
}

// processor is what a <cpu> says of its package.
type processor struct {
	arch, vendor  string
	family, model probe.Opt[int]
}

func cpuOf(e *Element) processor {
	arch, _ := e.Text("arch")
	vendor, _ := e.Text("vendor")
	return processor{arch, vendor, e.Int("familyid"), e.Int("modelid")}
}

func (r *reader) cpu(e *Element, mixed bool) error {
	p := cpuOf(e)
	if !r.processors[p] && p != (processor{}) {
		r.processors[p] = true
		r.inv.CPUs = append(r.inv.CPUs, probe.CPU{
			Package: len(r.inv.CPUs), Arch: p.arch, Vendor: p.vendor, Family: p.family, Model: p.model, Origins: r.origins(e),
		})
	}
	affinity, _ := e.Text("affinity")
	var cpus probe.CPUSet
	if affinity != "" {
		var err error
		if cpus, err = probe.ParseCPUMask(affinity); err != nil {
			return r.fault(e, "affinity: %v", err)
		}
	}
	at := place{cpus: cpus}
	id, ok := e.Int("numaid").Get()
	switch {
	case !ok:
		r.refuse(e.Line, "a <cpu> without numaid", "")
		r.gap(e, fmt.Sprintf("<cpu> on line %d: numa", e.Line), "has no numaid, without which NCCL refuses the topology", "write the number of the NUMA node")
	case id >= 0:
		if first := r.numa[id]; first != nil {
			return r.fault(e, "numaid %d stands on line %d already", id, first.Line)
		}
		r.numa[id] = e
		n := probe.NUMANode{ID: id, CPUs: cpus, Origins: r.origins(e)}
		// Which node is of which kind is only worth keeping where they differ.
		n.Extra = extra(e, "numaid", "affinity")
		if !mixed {
			n.Extra = extra(e, "numaid", "affinity", "arch", "vendor", "familyid", "modelid")
		}
		r.inv.NUMA = append(r.inv.NUMA, n)
		at = place{numa: probe.Some(id)}
	default:
		at.none = true
	}
	for _, c := range e.Children {
		if err := r.pciOrNIC(c, e, at); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) pciOrNIC(e, parent *Element, at place) error {
	switch e.Name {
	case "pci":
		return r.pci(e, at)
	case "nic":
		return r.nic(e, at)
	}
	r.ignored(e, parent)
	return nil
}

func (r *reader) pci(e *Element, at place) error {
	addr, ok := e.BusID("busid").Get()
	if !ok {
		return r.fault(e, "has no busid")
	}
	d := probe.PCIDevice{
		Addr: addr, Parent: at.parent, NUMA: at.numa, NUMANone: at.none, CPUs: at.cpus,
		Class: e.Class("class"), Vendor: e.ID("vendor"), Device: e.ID("device"),
		SubVendor: e.ID("subsystem_vendor"), SubDevice: e.ID("subsystem_device"),
		Max: r.link(e, addr), Origins: r.origins(e),
		Extra: extra(e, "busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"),
	}
	if s, ok := e.Text("link_speed"); ok && s == "" {
		d.Extra = append(d.Extra, probe.Attr{Name: "link_speed"}) // NCCL could not read it, and takes Gen3
	}
	for _, l := range e.kids("pcilink") {
		if target, ok := l.Text("target"); ok {
			d.Extra = append(d.Extra, probe.Attr{Name: "pcilink", Value: target})
		}
	}
	r.inv.PCI = append(r.inv.PCI, d)
	if err := r.gpus(e, d); err != nil {
		return err
	}
	at.parent = probe.Some(addr)
	for _, c := range e.Children {
		if c.Name == "gpu" || c.Name == "pcilink" {
			continue
		}
		if err := r.pciOrNIC(c, e, at); err != nil {
			return err
		}
	}
	return nil
}

// ncclSpeeds are the beginnings of link_speed that NCCL 2.30.7 recognises
// (kvDictPciGen, topo.cc); any other text counts as Gen3.
var ncclSpeeds = []string{
	"2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s",
	"5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe",
}

// link reads what NCCL takes for the device's PCIe link.
func (r *reader) link(e *Element, addr probe.BDF) probe.PCIeLink {
	var l probe.PCIeLink
	s, _ := e.Text("link_speed")
	l.Speed, _ = probe.ParsePCIeSpeed(s)
	if s != "" && !slices.ContainsFunc(ncclSpeeds, func(p string) bool { return strings.HasPrefix(s, p) }) {
		r.gap(e, fmt.Sprintf("pci:%s max_link.speed_gts", addr),
			fmt.Sprintf("link_speed %q is not a text that NCCL knows; it assumes Gen3", probe.Excerpt(s)), `write it as sysfs does, "32.0 GT/s PCIe"`)
		r.refuse(e.Line, fmt.Sprintf("link_speed %q of %s is no text that NCCL knows", probe.Excerpt(s), addr), "Gen3")
	}
	switch w, ok := e.Int("link_width").Get(); {
	case !ok || w == 0: // NCCL assumes 16
	case slices.Contains([]int{1, 2, 4, 8, 12, 16, 32}, w):
		l.Width = probe.Some(w)
	default:
		r.gap(e, fmt.Sprintf("pci:%s max_link.width", addr), fmt.Sprintf("link_width %d is no width of a PCIe link; NCCL multiplies with it", w), "")
	}
	return l
}

// gpus reads the <gpu> of a function; several are ranks that share the GPU, such
// as its halves (MLOPart).
func (r *reader) gpus(pci *Element, d probe.PCIDevice) error {
	elements := pci.kids("gpu")
	if len(elements) == 0 {
		c := d.Class.Or(0)
		// 0x0302 is a 3D controller; a VGA function of unknown vendor is
		// more likely the management controller's.
		if v := d.Vendor.Or(0); c.IsGPU() && (v == probe.VendorNVIDIA || v == 0 && c>>8 == 0x0302) {
			r.bare++
			r.inv.GPUs = append(r.inv.GPUs, probe.GPU{Addr: probe.Some(d.Addr), Origins: r.origins(pci)})
		}
		return nil
	}
	e := elements[0]
	g := probe.GPU{
		Addr: probe.Some(d.Addr), Index: notNegative(e.Int("dev")), CC: e.Int("sm"), Rank: notNegative(e.Int("rank")),
		GDR: flag(e.Int("gdr")), Extra: extra(e, "dev", "sm", "rank", "gdr"), Origins: r.origins(e),
	}
	if dev, ok := g.Index.Get(); ok {
		switch first := r.devs[dev]; {
		case first == nil:
			r.devs[dev] = e
		case !g.Rank.Known() || !first.Int("rank").Known() || g.Rank == first.Int("rank"):
			return r.fault(e, "dev %d stands on line %d already", dev, first.Line)
		default:
			// Hosts without host_hash in one file, as simulators write it.
			g.Index = probe.Opt[int]{}
			r.gap(e, "gpu:"+d.Addr.String()+" index", fmt.Sprintf("dev %d stands on line %d already; the ranks differ, by which NCCL goes", dev, first.Line), "give each host a host_hash, or a file of its own")
		}
	}
	for _, other := range elements[1:] {
		if other.Int("dev") != e.Int("dev") {
			return r.fault(other, "dev %v in the function of dev %v (line %d): one function is one GPU", other.Int("dev"), e.Int("dev"), e.Line)
		}
		r.gap(other, "gpu:"+d.Addr.String()+" rank", fmt.Sprintf("rank %v is on the same GPU (MLOPart or several ranks per GPU); ncclmap keeps the first", other.Int("rank")), "")
	}
	if err := r.nvlinks(e, &g); err != nil {
		return err
	}
	for _, c := range e.Children {
		switch c.Name {
		case "nvlink":
		case "c2c":
			r.c2c(c, &g)
		default:
			r.ignored(c, e)
		}
	}
	r.inv.GPUs = append(r.inv.GPUs, g)
	return nil
}

func (r *reader) nvlinks(e *Element, g *probe.GPU) error {
	elements := e.kids("nvlink")
	if len(elements) == 0 {
		if g.Rank.Known() {
			g.NVLinks = probe.Some([]probe.NVLink{})
		}
		return nil
	}
	addr, _ := g.Addr.Get()
	links := []probe.NVLink{}
	for _, l := range elements {
		count, ok := l.Int("count").Get()
		if !ok {
			r.gap(l, "gpu:"+addr.String()+" nvlinks", "an <nvlink> without count, which NCCL refuses", "")
			continue
		}
		kind, remote := r.remote(l)
		if remote == probe.Some(addr) {
			r.gap(l, "gpu:"+addr.String()+" nvlinks", "an <nvlink> that leads to the GPU itself; kept as it stands", "drop the element: NCCL asks the driver")
		}
		for range count {
			links = append(links, probe.NVLink{
				Link: len(links), State: probe.LinkUp, Generation: probe.NVLinkGenerationOf(g.CC), RemoteKind: kind, Remote: remote,
			})
		}
		if len(links) > maxLinks {
			return r.fault(l, "count: more than %d links of one GPU", maxLinks)
		}
		if b, ok := remote.Get(); ok && kind == probe.RemoteSwitch && count > 0 && !r.switches[b] {
			r.switches[b] = true
			r.inv.NVSwitches = append(r.inv.NVSwitches, probe.NVSwitch{Addr: b, Origins: r.origins(l)})
		}
	}
	g.NVLinks = probe.Some(links)
	return nil
}

// remote says what is at the far end of an <nvlink>. Without tclass, a hidden
// end is a switch (NCCL's assumption, and the only kind that is hidden), and one
// that the file lists is what its class says.
func (r *reader) remote(l *Element) (string, probe.Opt[probe.BDF]) {
	target, _ := l.Text("target")
	if hiddenTarget(target) {
		return probe.RemoteSwitch, probe.Opt[probe.BDF]{}
	}
	addr := l.BusID("target")
	c := l.Class("tclass")
	if b, ok := addr.Get(); ok && !c.Known() {
		c = r.classes[b]
	}
	switch v := c.Or(0); {
	case v.IsGPU():
		return probe.RemoteGPU, addr
	case v == probe.ClassNVSwitch:
		return probe.RemoteSwitch, addr
	case v == classNPU:
		return probe.RemoteCPU, addr
	}
	return "", addr
}

// classNPU is POWER's NVLink bridge, which NCCL takes for the CPU.
const classNPU probe.PCIClass = 0x068001

func (r *reader) c2c(e *Element, g *probe.GPU) {
	count, bw := e.Int("count").Or(0), e.Int("bw").Or(0) // bw: MB/s per link
	if count == 0 || bw == 0 || g.C2C != nil {
		r.gap(e, "gpu:"+g.Addr.String()+" c2c", "a <c2c> without links or rate, or a second one; left out", "")
		return
	}
	g.C2C = &probe.C2C{Links: count, PerLink: probe.Rate(bw) * 1e6}
}

func (r *reader) nic(e *Element, at place) error {
	for _, c := range e.Children {
		if c.Name != "net" {
			r.ignored(c, e)
			continue
		}
		if err := r.net(c, at.parent); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) net(e *Element, addr probe.Opt[probe.BDF]) error {
	name, ok := e.Text("name")
	if !ok {
		r.gap(e, fmt.Sprintf("<net> on line %d", e.Line), "has no name, by which NCCL finds its device; left out", "")
		return nil
	}
	first := r.nets[name]
	if first == nil {
		r.nets[name] = e
	}
	dev := notNegative(e.Int("dev"))
	rate := probe.Opt[probe.Rate]{}
	if mbps := e.Int("speed").Or(0); mbps > 0 {
		rate = probe.Some(probe.Mbps(float64(mbps)))
	} else {
		r.gap(e, "net "+name+" speed", "the file gives no speed; unless the network does at run time, NCCL assumes 10 Gb/s", "write it in Mb/s")
	}
	guid := e.Hex("guid").Or(0)
	if guid == 0 && !rdmaName(name) {
		if first != nil {
			return r.fault(e, "name %q stands on line %d already", probe.Excerpt(name), first.Line)
		}
		r.inv.NetDevs = append(r.inv.NetDevs, probe.NetDev{
			Name: name, Addr: addr, Speed: rate, NCCLDev: dev, Extra: extra(e, "name", "dev", "speed"), Origins: r.origins(e),
		})
		return nil
	}
	port := probe.HCAPort{Port: e.Int("port").Or(0), Rate: rate}
	if first != nil {
		// A second port of the same adapter.
		i, ok := r.hcas[name]
		if !ok || r.inv.HCAs[i].Addr != addr || slices.ContainsFunc(r.inv.HCAs[i].Ports, func(p probe.HCAPort) bool { return p.Port == port.Port }) {
			return r.fault(e, "name %q port %d stands on line %d already", probe.Excerpt(name), port.Port, first.Line)
		}
		h := &r.inv.HCAs[i]
		h.Ports = append(h.Ports, port)
		if d, ok := dev.Get(); ok {
			h.Extra = append(h.Extra, probe.Attr{Name: fmt.Sprintf("port %d dev", port.Port), Value: fmt.Sprint(d)})
		}
		h.Origins = append(h.Origins, r.origin(e))
		return nil
	}
	h := probe.HCA{
		Name: name, Addr: addr, Ports: []probe.HCAPort{port}, NCCLDev: dev, GDR: flag(e.Int("gdr")),
		Extra: extra(e, "name", "dev", "speed", "port", "guid", "gdr"), Origins: r.origins(e),
	}
	if guid != 0 {
		h.SysImageGUID = sysfsGUID(guid)
	}
	r.hcas[name] = len(r.inv.HCAs)
	r.inv.HCAs = append(r.inv.HCAs, h)
	return nil
}

// rdmaNames are the beginnings of RDMA device names: kernel drivers (mlx4,
// mlx5, bnxt_re, irdma, hfi1, hns, qedr, efa) and rdma-core's persistent names.
var rdmaNames = []string{"mlx4_", "mlx5_", "bnxt_re", "irdma", "hfi", "hns_", "qedr", "efa", "rdmap", "roce"}

func rdmaName(s string) bool {
	return slices.ContainsFunc(rdmaNames, func(p string) bool { return strings.HasPrefix(s, p) })
}

// sysfsGUID prints a <net> guid as sysfs prints sys_image_guid. NCCL's built-in
// IB transport takes the adapter's sys_image_guid, which is in network order, as
// a number of the host (net_ib init); all hosts with GPUs are little-endian.
func sysfsGUID(guid uint64) string {
	v := bits.ReverseBytes64(guid)
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

// notNegative makes NCCL's -1 unknown.
func notNegative(v probe.Opt[int]) probe.Opt[int] {
	if v.Or(0) < 0 {
		return probe.Opt[int]{}
	}
	return v
}

func flag(v probe.Opt[int]) probe.Opt[bool] {
	n, ok := v.Get()
	if !ok {
		return probe.Opt[bool]{}
	}
	return probe.Some(n != 0)
}
