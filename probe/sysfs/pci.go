package sysfs

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	pciFolder = "sys/bus/pci/devices"

	// classDataDirect is the second host interface of a ConnectX-8, which NCCL
	// takes for a PCI switch (NCCL src/graph/topo.cc).
	classDataDirect probe.PCIClass = 0x080100

	// emulatedSwitch is a Texas Instruments switch port of Gen1 x1 that QEMU
	// emulates. Above a Gen4 device it cannot be silicon.
	emulatedSwitch probe.PCIID = 0x8232

	// What an inventory holds at most, see probe.Inventory.Validate.
	maxFunctions = 16384
	maxGPUs      = 1024
)

// function is a PCI function before it is known whether it matters.
type function struct {
	addr   probe.BDF
	dir    string // without links
	class  probe.Opt[probe.PCIClass]
	vendor probe.Opt[probe.PCIID]
}

// pci reads the PCI functions that matter to collectives, so that the inventory
// stays small: NVIDIA GPUs and NVSwitches, network controllers (class 02),
// data-direct functions, whatever an RDMA device or interface hangs on, and
// every bridge above one of these. Of the functions that give away a hypervisor
// the first of each vendor is kept as evidence; host bridges are not kept.
func (r *reader) pci() {
	names, _ := r.folder("PCI functions", pciFolder, true)
	found := make(map[probe.BDF]function, len(names))
	wanted := maps.Clone(r.keep)
	marked := map[probe.PCIID]bool{}
	for _, name := range names {
		f, ok := r.function(name)
		if !ok {
			continue
		}
		found[f.addr] = f
		if matters(f.class.Or(0), f.vendor.Or(0)) {
			wanted[f.addr] = f.dir
		}
		v := f.vendor.Or(0)
		if hypervisorVendor(v) != "" && !marked[v] {
			marked[v] = true
			wanted[f.addr] = f.dir
			r.guest("PCI vendor "+v.String()+" ("+hypervisorVendor(v)+")", path.Join(pciFolder, name, "vendor"))
		}
	}
	kept := r.withBridges(wanted, found)
	parents := map[probe.BDF]probe.BDF{}
	for _, addr := range slices.SortedFunc(maps.Keys(kept), probe.BDF.Compare) {
		d := r.device(kept[addr])
		if p, ok := d.Parent.Get(); ok {
			_, known := kept[p]
			if !known || leadsTo(parents, p, addr) {
				r.gap("pci "+addr.String()+" parent", kept[addr].dir, fmt.Errorf("the bus knows %s in another place", p))
				d.Parent = probe.Opt[probe.BDF]{}
			} else {
				parents[addr] = p
			}
		}
		r.inv.PCI = append(r.inv.PCI, d)
		r.named(d)
	}
	r.emulatedLinks()
}

// function finds one entry of the PCI folder.
func (r *reader) function(name string) (function, bool) {
	where := path.Join(pciFolder, name)
	addr, err := probe.ParseBDF(name)
	if err == nil && addr.String() != name {
		err = fmt.Errorf("the kernel writes this address as %s", addr)
	}
	var dir string
	if err == nil {
		if dir, err = r.follow(where); err == nil && path.Base(dir) != name {
			err = fmt.Errorf("the link leads to %s", dir)
		}
	}
	if err != nil {
		r.gap("pci "+name, where, err)
		return function{}, false
	}
	return r.identify(addr, dir), true
}

// identify reads what kind of function it is.
func (r *reader) identify(addr probe.BDF, dir string) function {
	object := "pci " + addr.String()
	f := function{
		addr:   addr,
		dir:    dir,
		class:  get(r, object, dir, "class", parseClass),
		vendor: get(r, object, dir, "vendor", parseID),
	}
	if !f.class.Known() && !r.exists(path.Join(dir, "class")) {
		r.gap(object+" class", path.Join(dir, "class"), errors.New("the function has no such file"))
	}
	return f
}

// matters reports the functions that are kept for their own sake.
func matters(class probe.PCIClass, vendor probe.PCIID) bool {
	switch vendor {
	case probe.VendorNVIDIA:
		return class.IsGPU() || class.IsNIC() || class == probe.ClassNVSwitch
	case probe.VendorMellanox:
		return class.IsNIC() || class == classDataDirect
	}
	return class.IsNIC()
}

// hypervisorVendor names the hypervisor behind a vendor id that no hardware
// carries; "" for all others.
func hypervisorVendor(v probe.PCIID) string {
	switch v {
	case probe.VendorRedHat:
		return "Red Hat, QEMU"
	case probe.VendorMicrosoft:
		return "Microsoft Hyper-V"
	case probe.VendorVirtio:
		return "virtio"
	}
	return ""
}

// withBridges adds to the wanted functions all bridges above them. wanted gives
// each function's folder.
func (r *reader) withBridges(wanted map[probe.BDF]string, found map[probe.BDF]function) map[probe.BDF]function {
	out := map[probe.BDF]function{}
	for _, addr := range slices.SortedFunc(maps.Keys(wanted), probe.BDF.Compare) {
		_, above := position(wanted[addr])
		if len(out)+1+len(above) > maxFunctions {
			r.gap("PCI functions", pciFolder, fmt.Errorf("more than %d matter; what comes from %s on is left out", maxFunctions, addr))
			break
		}
		for _, dir := range append([]string{wanted[addr]}, above...) {
			a := probe.MustBDF(path.Base(dir))
			if _, ok := out[a]; ok {
				continue
			}
			f, ok := found[a]
			if !ok {
				f = r.identify(a, dir)
			}
			out[a] = f
		}
	}
	return out
}

// position tells from a function's folder, for example
// sys/devices/pci0000:14/0000:14:01.0/0000:15:00.0, its root bus and the folders
// of the bridges above it, nearest first. Root buses can lie deep (Hyper-V,
// Intel VMD, Arm platforms); the one nearest to the function counts.
func position(dir string) (root string, above []string) {
	for up := path.Dir(dir); ; up = path.Dir(up) {
		base := path.Base(up)
		if isBDF(base) {
			above = append(above, up)
			continue
		}
		if isRootBus(base) {
			root = base
		}
		return root, above
	}
}

func isBDF(s string) bool {
	b, err := probe.ParseBDF(s)
	return err == nil && b.String() == s
}

// isRootBus reports pciDDDD:BB.
func isRootBus(s string) bool {
	domain, bus, ok := strings.Cut(strings.TrimPrefix(s, "pci"), ":")
	return ok && strings.HasPrefix(s, "pci") && isBDF(domain+":"+bus+":00.0")
}

// leadsTo reports whether to is at or above from.
func leadsTo(parents map[probe.BDF]probe.BDF, from, to probe.BDF) bool {
	for range len(parents) + 1 {
		if from == to {
			return true
		}
		up, ok := parents[from]
		if !ok {
			return false
		}
		from = up
	}
	return true
}

// device reads one function.
func (r *reader) device(f function) probe.PCIDevice {
	addr, dir := f.addr, f.dir
	object := "pci " + addr.String()
	root, above := position(dir)
	numa := get(r, object, dir, "numa_node", parseNUMA)
	none := numa == probe.Some(-1)
	if none {
		numa = probe.Opt[int]{}
	}
	d := probe.PCIDevice{
		Addr:      addr,
		Root:      root,
		Class:     f.class,
		Vendor:    f.vendor,
		Device:    get(r, object, dir, "device", parseID),
		SubVendor: get(r, object, dir, "subsystem_vendor", parseID),
		SubDevice: get(r, object, dir, "subsystem_device", parseID),
		NUMA:      numa,
		NUMANone:  none,
		CPUs:      get(r, object, dir, "local_cpulist", parseCPUs).Or(""),
		Driver:    r.linkBase(object, dir, "driver"),
		Runtime:   r.str(object, dir, "power/runtime_status"),
		IOMMU:     r.iommuType(object, dir),
		Origins:   []probe.Origin{origin(path.Join(pciFolder, addr.String()))},
	}
	if len(above) > 0 {
		d.Parent = probe.Some(probe.MustBDF(path.Base(above[0])))
	} else if root == "" {
		r.gap(object+" place in the tree", dir, errors.New("the function's folder is below no root bus"))
	}
	if pf := r.linkBase(object, dir, "physfn"); pf != "" {
		if b, err := probe.ParseBDF(pf); err != nil {
			r.gap(object+" physfn", path.Join(dir, "physfn"), err)
		} else {
			d.PhysFn = probe.Some(b)
		}
	}
	// A function that sleeps answers with all ones or is woken by the question.
	if d.Runtime == "suspended" || d.Runtime == "suspending" {
		r.gap(object+" link", dir, fmt.Errorf("the function is %s, so its link was not read", d.Runtime))
		return d
	}
	d.Current = probe.PCIeLink{
		Speed: get(r, object, dir, "current_link_speed", probe.ParsePCIeSpeed),
		Width: get(r, object, dir, "current_link_width", parseWidth),
	}
	d.Max = probe.PCIeLink{
		Speed: get(r, object, dir, "max_link_speed", probe.ParsePCIeSpeed),
		Width: get(r, object, dir, "max_link_width", parseWidth),
	}
	if s, err := r.attr(dir, "max_link_speed"); err == nil && !d.Max.Speed.Known() {
		d.Extra = append(d.Extra, probe.Attr{Name: "max_link_speed", Value: plain(s)}) // what NCCL reads too
	}
	d.Errors = r.errorCounters(object, dir)
	r.config(&d, dir)
	return d
}

// linkBase returns the last part of a link's target, "" where there is none.
func (r *reader) linkBase(object, dir, name string) string {
	target, err := r.linkTo(dir, name)
	if err != nil {
		r.gap(object+" "+name, path.Join(dir, name), err)
		return ""
	}
	if target == "" {
		return ""
	}
	return plain(path.Base(target))
}

// iommuType reads how the IOMMU treats the function: DMA, DMA-FQ, identity.
func (r *reader) iommuType(object, dir string) string {
	group, err := r.linkTo(dir, "iommu_group")
	if group == "" && err == nil {
		return ""
	}
	const name = "iommu_group/type"
	var kind string
	if err == nil {
		kind, err = r.attr(dir, name)
	}
	if err != nil {
		// Kernels before 5.11 have groups without a type.
		if !noValue(err) {
			r.gap(object+" "+name, path.Join(dir, name), err)
		}
		return ""
	}
	return plain(kind)
}

// named lists what the function is beyond its place on the bus. The virtual
// functions of a GPU belong to guests.
func (r *reader) named(d probe.PCIDevice) {
	class, vendor := d.Class.Or(0), d.Vendor.Or(0)
	if vendor != probe.VendorNVIDIA || d.PhysFn.Known() {
		return
	}
	switch {
	case class.IsGPU() && len(r.inv.GPUs) < maxGPUs:
		r.inv.GPUs = append(r.inv.GPUs, probe.GPU{Addr: probe.Some(d.Addr), Origins: d.Origins})
	case class == probe.ClassNVSwitch:
		r.inv.NVSwitches = append(r.inv.NVSwitches, probe.NVSwitch{Addr: d.Addr, Origins: d.Origins})
	}
}

// emulatedLinks looks for emulated switch ports above devices that are far too
// fast for them.
func (r *reader) emulatedLinks() {
	at := make(map[probe.BDF]probe.PCIDevice, len(r.inv.PCI))
	for _, d := range r.inv.PCI {
		at[d.Addr] = d
	}
	gen4, _ := probe.PCIeSpeedOfGen(4)
	seen := map[probe.BDF]bool{}
	for _, d := range r.inv.PCI {
		if d.Max.Speed.Or(0) < gen4 {
			continue
		}
		for up, ok := d.Parent.Get(); ok; up, ok = at[up].Parent.Get() {
			b := at[up]
			if b.Vendor.Or(0) == probe.VendorTI && b.Device.Or(0) == emulatedSwitch && !seen[up] {
				seen[up] = true
				r.guest(fmt.Sprintf("emulated switch port 104c:8232 above a Gen%d device", d.Max.Speed.Or(0).Gen()), path.Join(pciFolder, up.String(), "device"))
			}
		}
	}
}

func parseClass(s string) (probe.Opt[probe.PCIClass], error) {
	v, err := probe.ParseHex(s, 24)
	if err != nil {
		return probe.Opt[probe.PCIClass]{}, err
	}
	return probe.Some(probe.PCIClass(v)), nil
}

func parseID(s string) (probe.Opt[probe.PCIID], error) {
	v, err := probe.ParseHex(s, 16)
	if err != nil {
		return probe.Opt[probe.PCIID]{}, err
	}
	return probe.Some(probe.PCIID(v)), nil
}

// parseNUMA reads numa_node; -1 says that the platform does not tell.
func parseNUMA(s string) (probe.Opt[int], error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < -1 {
		return probe.Opt[int]{}, fmt.Errorf("NUMA node %.20q: not a number from -1 on", s)
	}
	return probe.Some(n), nil
}

// parseWidth reads a link width in lanes. 0 is no link, 255 what the kernel says
// when it does not know, 63 the answer of a function that does not answer.
func parseWidth(s string) (probe.Opt[int], error) {
	if s == "" || strings.HasPrefix(s, "Unknown") {
		return probe.Opt[int]{}, nil
	}
	switch n, err := strconv.Atoi(strings.TrimPrefix(s, "x")); {
	case err != nil:
		return probe.Opt[int]{}, fmt.Errorf("link width %.20q: not a number", s)
	case n == 0 || n == 63 || n == 255:
		return probe.Opt[int]{}, nil
	case !slices.Contains([]int{1, 2, 4, 8, 12, 16, 32}, n):
		return probe.Opt[int]{}, fmt.Errorf("link width %d: none of x1 to x32", n)
	default:
		return probe.Some(n), nil
	}
}

func parseCPUs(s string) (probe.Opt[probe.CPUSet], error) {
	set, err := probe.ParseCPUList(s)
	if err != nil {
		return probe.Opt[probe.CPUSet]{}, err
	}
	return probe.Some(set), nil
}
