package sysfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/probe"
)

// machine builds a root from lines "path = text", "path -> target" and "path/".
func machine(t testing.TB, parts ...string) fstest.MapFS {
	t.Helper()
	root := fstest.MapFS{}
	for line := range strings.Lines(strings.Join(parts, "\n")) {
		line = strings.TrimSpace(line)
		if name, target, ok := strings.Cut(line, " -> "); ok {
			root[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		} else if name, text, ok := strings.Cut(line, " ="); ok {
			root[name] = &fstest.MapFile{Data: []byte(strings.TrimPrefix(text, " ") + "\n"), Mode: 0o444}
		} else if name, ok := strings.CutSuffix(line, "/"); ok {
			root[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o555}
		} else if line != "" {
			t.Fatalf("line %q", line)
		}
	}
	return root
}

// function is one PCI function by its folder below sys/devices, with the files
// that every function has.
func pciFunction(dir, class, vendor, device string, more ...string) string {
	at := "sys/devices/" + dir
	lines := []string{
		"sys/bus/pci/devices/" + path.Base(dir) + " -> ../../../devices/" + dir,
		at + "/class = " + class, at + "/vendor = " + vendor, at + "/device = " + device,
	}
	for _, m := range more {
		lines = append(lines, at+"/"+m)
	}
	return strings.Join(lines, "\n")
}

func gen(speed, width string) []string {
	return []string{
		"current_link_speed = " + speed, "current_link_width = " + width,
		"max_link_speed = " + speed, "max_link_width = " + width,
	}
}

func mustRead(t testing.TB, fsys fs.FS, live bool) *probe.Inventory {
	t.Helper()
	inv, err := Read(fsys, Options{Live: live})
	if err != nil {
		t.Fatal(err)
	}
	if err := inv.Validate(); err != nil {
		t.Fatalf("not valid: %v", err)
	}
	return inv
}

func at(t testing.TB, inv *probe.Inventory, addr string) probe.PCIDevice {
	t.Helper()
	i := slices.IndexFunc(inv.PCI, func(d probe.PCIDevice) bool { return d.Addr.String() == addr })
	if i < 0 {
		t.Fatalf("no function %s", addr)
	}
	return inv.PCI[i]
}

// gaps lists "what | why | where" of the gaps that mention a text.
func gaps(inv *probe.Inventory, about string) []string {
	var out []string
	for _, g := range inv.Gaps {
		if s := g.What + " | " + g.Why + " | " + g.Origin.Where; strings.Contains(s, about) {
			out = append(out, s)
		}
	}
	return out
}

func wantGap(t testing.TB, inv *probe.Inventory, about string) {
	t.Helper()
	if len(gaps(inv, about)) == 0 {
		t.Errorf("no gap about %q in\n%s", about, strings.Join(gaps(inv, ""), "\n"))
	}
}

// switched is a bare-metal host: one PCIe switch with a GPU, an HCA with a
// virtual function and its data-direct function, an NVSwitch on a root port, and
// functions that do not matter.
func switched(t testing.TB) fstest.MapFS {
	const down1 = "pci0000:14/0000:14:01.0/0000:15:00.0/0000:16:00.0"
	const down2 = "pci0000:14/0000:14:01.0/0000:15:00.0/0000:16:04.0"
	gen5 := gen("32.0 GT/s PCIe", "16")
	return machine(t,
		pciFunction("pci0000:14/0000:14:00.0", "0x060000", "0x8086", "0x09a2"),
		pciFunction("pci0000:14/0000:14:01.0", "0x060400", "0x8086", "0x352a", append(gen5, "numa_node = 0", "driver -> ../../../bus/pci/drivers/pcieport")...),
		pciFunction("pci0000:14/0000:14:01.0/0000:15:00.0", "0x060400", "0x1000", "0xc030", gen5...),
		pciFunction(down1, "0x060400", "0x1000", "0xc030", append(gen5, "subsystem_vendor = 0x1000", "subsystem_device = 0x100b")...),
		pciFunction(down1+"/0000:17:00.0", "0x030200", "0x10de", "0x2330",
			"current_link_speed = 2.5 GT/s PCIe", "current_link_width = 16", "max_link_speed = 32.0 GT/s PCIe", "max_link_width = 16",
			"numa_node = 0", "local_cpulist = 0-31", "power/runtime_status = active",
			"driver -> ../../../../../../bus/pci/drivers/nvidia", "iommu_group -> ../../../../../../kernel/iommu_groups/24"),
		"sys/kernel/iommu_groups/24/type = DMA-FQ",
		pciFunction(down2, "0x060400", "0x1000", "0xc030", gen5...),
		pciFunction(down2+"/0000:18:00.0", "0x020700", "0x15b3", "0x1023", append(gen("Unknown", "255"), "numa_node = -1")...),
		pciFunction(down2+"/0000:18:00.1", "0x080100", "0x15b3", "0x1023"),
		pciFunction(down2+"/0000:18:00.2", "0x020000", "0x15b3", "0x101e", append(gen("Unknown", "0"), "physfn -> ../0000:18:00.0")...),
		pciFunction("pci0000:30/0000:30:01.0", "0x060400", "0x8086", "0x352b"),
		pciFunction("pci0000:30/0000:30:01.0/0000:31:00.0", "0x068000", "0x10de", "0x22a3"),
		pciFunction("pci0000:30/0000:30:02.0", "0x010802", "0x144d", "0xa824"),
		pciFunction("pci0000:30/0000:30:03.0", "0x040300", "0x10de", "0x10f7"),
		"sys/devices/system/node/node0/cpulist = 0-31,64-95", "sys/devices/system/node/node0/distance = 10 21",
		"sys/devices/system/node/node1/cpulist = 32-63,96-127", "sys/devices/system/node/node1/distance = 21 10",
		"sys/devices/system/node/node2/cpulist =", "sys/devices/system/node/node10/cpumap = 00000000",
		"sys/devices/system/node/has_cpu = 0-1",
		"sys/devices/system/cpu/online = 0-127",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id = 0", "sys/devices/system/cpu/cpu0/topology/package_cpus_list = 0-31,64-95",
		"sys/devices/system/cpu/cpu32/topology/physical_package_id = 1", "sys/devices/system/cpu/cpu32/topology/core_siblings_list = 32-63,96-127",
		"sys/class/iommu/dmar0 -> ../../devices/virtual/iommu/dmar0",
		"sys/class/infiniband/", "sys/class/net/", "sys/class/dmi/id/sys_vendor = Supermicro", "sys/class/dmi/id/product_name = SYS-821GE-TNHR",
		"sys/module/nvidia/version = 550.54.15", "sys/module/ib_core/refcnt = 3", "sys/module/usbcore/version = 1",
		"proc/cmdline = BOOT_IMAGE=/vmlinuz ro iommu=pt", "proc/sys/kernel/hostname = gx01", "proc/sys/kernel/osrelease = 6.8.0-52-generic",
		"proc/1/cgroup = 0::/init.scope",
	)
}

func TestSwitchChain(t *testing.T) {
	root := switched(t)
	root["proc/cpuinfo"] = &fstest.MapFile{Data: []byte(xeon)}
	inv := mustRead(t, root, false)
	if g := gaps(inv, ""); len(g) > 0 {
		t.Errorf("gaps on a whole machine:\n%s", strings.Join(g, "\n"))
	}
	var addrs []string
	for _, d := range inv.PCI {
		addrs = append(addrs, d.Addr.String())
	}
	// Neither the host bridge nor the disk nor the GPU's sound function.
	want := "0000:14:01.0 0000:15:00.0 0000:16:00.0 0000:16:04.0 0000:17:00.0 0000:18:00.0 0000:18:00.1 0000:18:00.2 0000:30:01.0 0000:31:00.0"
	if got := strings.Join(addrs, " "); got != want {
		t.Errorf("functions\n got %s\nwant %s", got, want)
	}
	gpu := at(t, inv, "0000:17:00.0")
	wantGPU := probe.PCIDevice{
		Addr: probe.MustBDF("17:00.0"), Parent: probe.Some(probe.MustBDF("16:00.0")), Root: "pci0000:14",
		Class: probe.Some(probe.PCIClass(0x030200)), Vendor: probe.Some(probe.VendorNVIDIA), Device: probe.Some(probe.PCIID(0x2330)),
		NUMA: probe.Some(0), CPUs: "0-31", Current: probe.LinkOfGen(1, 16), Max: probe.LinkOfGen(5, 16),
		Driver: "nvidia", Runtime: "active", IOMMU: "DMA-FQ",
		Origins: []probe.Origin{{Source: "sysfs", Where: "sys/bus/pci/devices/0000:17:00.0"}},
	}
	if d := cmp.Diff(fmt.Sprintf("%+v", wantGPU), fmt.Sprintf("%+v", gpu)); d != "" {
		t.Error(d)
	}
	if top := at(t, inv, "0000:14:01.0"); top.Parent.Known() || top.Driver != "pcieport" {
		t.Errorf("root port: %+v", top)
	}
	if hca := at(t, inv, "0000:18:00.0"); hca.NUMA.Known() || hca.Current.Speed.Known() || hca.Max.Width.Known() {
		t.Errorf("unknown figures became known: %+v", hca)
	}
	if dd := at(t, inv, "0000:18:00.1"); dd.NUMA.Known() || dd.SubVendor.Known() || dd.Driver != "" || dd.IOMMU != "" {
		t.Errorf("missing files became facts: %+v", dd)
	}
	if vf := at(t, inv, "0000:18:00.2"); vf.PhysFn != probe.Some(probe.MustBDF("18:00.0")) || vf.Parent != probe.Some(probe.MustBDF("16:04.0")) {
		t.Errorf("virtual function: %+v", vf)
	}
	if len(inv.GPUs) != 1 || inv.GPUs[0].Addr != probe.Some(probe.MustBDF("17:00.0")) || inv.GPUs[0].Index.Known() {
		t.Errorf("GPUs: %+v", inv.GPUs)
	}
	if len(inv.NVSwitches) != 1 || inv.NVSwitches[0].Addr != probe.MustBDF("31:00.0") {
		t.Errorf("NVSwitches: %+v", inv.NVSwitches)
	}
	if len(inv.NUMA) != 4 || inv.NUMA[1].Package != probe.Some(1) || inv.NUMA[2].CPUs != "" || inv.NUMA[2].Package.Known() || inv.NUMA[3].ID != 10 {
		t.Errorf("NUMA: %+v", inv.NUMA)
	}
	if len(inv.CPUs) != 2 || inv.CPUs[1].Model != probe.Some(143) || probe.OriginOf(inv.CPUs[1].Origins, "model").Where != "proc/cpuinfo" {
		t.Errorf("CPUs: %+v", inv.CPUs)
	}
	s := inv.Settings
	if s.IOMMU != probe.Some(true) || s.Cmdline != "BOOT_IMAGE=/vmlinuz ro iommu=pt" || len(s.Guest)+len(s.Container) > 0 {
		t.Errorf("settings: %+v", s)
	}
	if d := cmp.Diff([]probe.Module{{Name: "ib_core"}, {Name: "nvidia", Version: "550.54.15"}}, s.Modules); d != "" {
		t.Error(d)
	}
	if inv.Runtime.Driver != "550.54.15" || inv.Host.Name != "gx01" || inv.Host.Kernel != "6.8.0-52-generic" || inv.Product.Name != "SYS-821GE-TNHR" {
		t.Errorf("%+v %+v %+v", inv.Runtime, inv.Host, inv.Product)
	}
}

func TestSleepingFunctionIsNotRead(t *testing.T) {
	root := machine(t, pciFunction("pci0000:00/0000:00:06.0", "0x030200", "0x10de", "0x2330",
		append(gen("64.0 GT/s PCIe", "63"), "power/runtime_status = suspended")...))
	inv := mustRead(t, root, false)
	if d := at(t, inv, "0000:00:06.0"); d.Current.Speed.Known() || d.Max.Speed.Known() || d.Runtime != "suspended" {
		t.Errorf("%+v", d)
	}
	wantGap(t, inv, "the function is suspended")
}

// twoPorts is an adapter with one InfiniBand and one Ethernet port, a software
// device and a device of an auxiliary function.
func twoPorts(t testing.TB) fstest.MapFS {
	const fn = "pci0000:14/0000:14:01.0/0000:18:00.0"
	const ib = "sys/devices/" + fn + "/infiniband/mlx5_10"
	const sf = "sys/devices/" + fn + "/mlx5_core.sf.4/infiniband/mlx5_2"
	return machine(t,
		pciFunction("pci0000:14/0000:14:01.0", "0x060400", "0x8086", "0x352a"),
		pciFunction(fn, "0x020700", "0x15b3", "0x1021"),
		"sys/class/infiniband/mlx5_10 -> ../../devices/"+fn+"/infiniband/mlx5_10",
		"sys/class/infiniband/mlx5_2 -> ../../devices/"+fn+"/mlx5_core.sf.4/infiniband/mlx5_2",
		"sys/class/infiniband/rxe0 -> ../../devices/virtual/infiniband/rxe0",
		"sys/devices/virtual/infiniband/rxe0/ports/1/state = 1: DOWN",
		"sys/devices/virtual/infiniband/rxe0/node_guid = 0000:0000:0000:0000",
		ib+"/device -> ../../../0000:18:00.0", ib+"/node_guid = b8ce:f603:00a1:7c00", ib+"/sys_image_guid = b8ce:f603:00a1:7c00",
		ib+"/board_id = MT_0000000838", ib+"/fw_ver = 28.39.3560",
		ib+"/ports/1/state = 4: ACTIVE", ib+"/ports/1/phys_state = 5: LinkUp", ib+"/ports/1/rate = 400 Gb/sec (4X NDR)",
		ib+"/ports/1/link_layer = InfiniBand", ib+"/ports/1/lid = 0x31",
		ib+"/ports/1/gids/0 = fe80:0000:0000:0000:b8ce:f603:00a1:7c00", ib+"/ports/1/gids/1 = 0000:0000:0000:0000:0000:0000:0000:0000",
		ib+"/ports/2/state = 1: DOWN", ib+"/ports/2/phys_state = 3: Disabled", ib+"/ports/2/rate = 10 Gb/sec (4X SDR)",
		ib+"/ports/2/link_layer = Ethernet", ib+"/ports/2/lid = 0x0",
		ib+"/ports/2/gids/0 = fe80:0000:0000:0000:ba3f:d2ff:fe44:90c2", ib+"/ports/2/gid_attrs/types/0 = IB/RoCE v1", ib+"/ports/2/gid_attrs/ndevs/0 = bond0",
		ib+"/ports/2/gids/10 = 0000:0000:0000:0000:0000:ffff:0a37:0215", ib+"/ports/2/gid_attrs/types/10 = RoCE v2", ib+"/ports/2/gid_attrs/ndevs/10 = bond0",
		ib+"/ports/2/gids/2 = 0000:0000:0000:0000:0000:0000:0000:0000", ib+"/ports/2/gid_attrs/types/2 = IB/RoCE v1",
		sf+"/device -> ../../../mlx5_core.sf.4", sf+"/ports/1/state = 4: ACTIVE",
		"sys/devices/"+fn+"/net/ib0/mtu = 4092", "sys/devices/"+fn+"/net/ib0/device -> ../../../0000:18:00.0",
		"sys/class/net/ib0 -> ../../devices/"+fn+"/net/ib0",
		"sys/class/net/bond0 -> ../../devices/virtual/net/bond0", "sys/devices/virtual/net/bond0/speed = 200000", "sys/devices/virtual/net/bond0/operstate = up",
		"sys/class/net/bonding_masters = bond0",
		"sys/class/net/enx0 -> ../../devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/net/enx0",
		"sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0/net/enx0/device -> ../../../1-1:1.0",
	)
}

func TestInfiniBand(t *testing.T) {
	inv := mustRead(t, twoPorts(t), false)
	if g := gaps(inv, "mlx5"); len(g) > 0 {
		t.Errorf("gaps:\n%s", strings.Join(g, "\n"))
	}
	if len(inv.HCAs) != 3 || inv.HCAs[0].Name != "mlx5_2" || inv.HCAs[1].Name != "mlx5_10" || inv.HCAs[2].Name != "rxe0" {
		t.Fatalf("%+v", inv.HCAs)
	}
	want := probe.HCA{
		Name: "mlx5_10", Addr: probe.Some(probe.MustBDF("18:00.0")), NodeGUID: "b8ce:f603:00a1:7c00", SysImageGUID: "b8ce:f603:00a1:7c00",
		Board: "MT_0000000838", Firmware: "28.39.3560", NetDevs: []string{"bond0", "ib0"},
		Ports: []probe.HCAPort{
			{Port: 1, LinkLayer: "InfiniBand", State: "ACTIVE", PhysState: "LinkUp", Rate: probe.Some(probe.Rate(50e9)), RateText: "400 Gb/sec (4X NDR)", LID: "0x31",
				GIDs: []probe.GID{{Index: 0, GID: "fe80:0000:0000:0000:b8ce:f603:00a1:7c00"}}},
			{Port: 2, LinkLayer: "Ethernet", State: "DOWN", PhysState: "Disabled", Rate: probe.Some(probe.Rate(1.25e9)), RateText: "10 Gb/sec (4X SDR)", LID: "0x0",
				GIDs: []probe.GID{
					{Index: 0, GID: "fe80:0000:0000:0000:ba3f:d2ff:fe44:90c2", Type: "IB/RoCE v1", NetDev: "bond0"},
					{Index: 10, GID: "0000:0000:0000:0000:0000:ffff:0a37:0215", Type: "RoCE v2", NetDev: "bond0"},
				}},
		},
		Origins: []probe.Origin{{Source: "sysfs", Where: "sys/class/infiniband/mlx5_10"}},
	}
	if d := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", inv.HCAs[1])); d != "" {
		t.Error(d)
	}
	if sf := inv.HCAs[0]; sf.Addr != probe.Some(probe.MustBDF("18:00.0")) {
		t.Errorf("device of an auxiliary function: %+v", sf)
	}
	if rxe := inv.HCAs[2]; rxe.Addr.Known() || rxe.NodeGUID != "" {
		t.Errorf("software device: %+v", rxe)
	}
	if len(inv.NetDevs) != 3 {
		t.Fatalf("%+v", inv.NetDevs)
	}
	if b := inv.NetDevs[0]; b.Name != "bond0" || !b.Virtual || b.Speed != probe.Some(probe.Rate(25e9)) || b.State != "up" {
		t.Errorf("%+v", b)
	}
	if u := inv.NetDevs[1]; u.Name != "enx0" || u.Virtual || u.Addr.Known() {
		t.Errorf("a USB interface is no PCI function: %+v", u)
	}
	if n := inv.NetDevs[2]; n.Addr != probe.Some(probe.MustBDF("18:00.0")) || n.Virtual || n.MTU != probe.Some(4092) {
		t.Errorf("%+v", n)
	}
}

// TestFunctionOfAnAdapterIsKept: sys/bus was not recorded, so the adapter is the
// only way to its function and the bridge above.
func TestFunctionOfAnAdapterIsKept(t *testing.T) {
	root := twoPorts(t)
	maps.DeleteFunc(root, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, "sys/bus/") })
	inv := mustRead(t, root, false)
	if len(inv.PCI) != 2 || inv.PCI[1].Parent != probe.Some(probe.MustBDF("14:01.0")) {
		t.Errorf("%+v", inv.PCI)
	}
	wantGap(t, inv, "sys/bus/pci/devices was not recorded")
}

func TestBrokenEntries(t *testing.T) {
	const gpu = "pci0000:00/0000:00:06.0"
	root := machine(t,
		pciFunction(gpu, "0x030200", "0x10de", "0x2330", "numa_node = 99x", "current_link_width = 3", "max_link_speed = fast", "driver -> "+strings.Repeat("a/", 3000),
			"iommu_group -> ../../../kernel/iommu_groups/9", "physfn -> ../eth0", "local_cpulist -> ../0000:00:06.0/local_cpulist"),
		pciFunction("pci0000:00/0000:00:07.0", "GPU", "0x10de", "0x2330"),
		"sys/devices/pci0000:00/0000:00:08.0/vendor = 0x10de", "sys/bus/pci/devices/0000:00:08.0 -> ../../../devices/pci0000:00/0000:00:08.0",
		"sys/bus/pci/devices/0000:00:09.0 -> ../../../devices/pci0000:00/0000:00:09.0",
		"sys/bus/pci/devices/0000:00:0a.0 -> 0000:00:0b.0", "sys/bus/pci/devices/0000:00:0b.0 -> 0000:00:0a.0",
		"sys/bus/pci/devices/0000:00:0c.0 -> ../../../../../etc", "sys/bus/pci/devices/0000:00:0d.0 -> /etc",
		"sys/bus/pci/devices/0000:00:0e.0 -> ../../../devices/"+gpu, "sys/bus/pci/devices/0000:00:0f.0 = a file",
		"sys/bus/pci/devices/eth0 -> ../../../devices/"+gpu, "sys/bus/pci/devices/0000:00:1A.0 -> ../../../devices/"+gpu,
		"sys/devices/"+gpu+"/a/b/0000:00:10.0/class = 0x030000", "sys/devices/"+gpu+"/a/b/0000:00:10.0/vendor = 0x10de", "sys/bus/pci/devices/0000:00:10.0 -> ../../../devices/"+gpu+"/a/b/0000:00:10.0",
		"sys/class/infiniband/a b -> ../../devices/"+gpu, "sys/class/infiniband/mlx5_0 -> mlx5_0", "sys/class/infiniband/mlx5_1/ports/x/state = 4: ACTIVE",
		"sys/class/infiniband/mlx5_1/ports/1/state = ACTIVE", "sys/class/infiniband/mlx5_1/ports/1/rate = fast", "sys/class/infiniband/mlx5_1/ports/1/gids/x = 1",
		"sys/class/infiniband/mlx5_1/ports/1/gids/0 = fe80", "sys/class/infiniband/mlx5_1/device -> ../../../nowhere",
		"sys/class/net/lo -> ../../devices/virtual/net/lo", "sys/class/net/eth1 -> ../../devices/pci0000:00/0000:00:11.0/net/eth1", "sys/class/net/eth2 = no link",
		"sys/devices/system/node/node0 -> node1", "sys/devices/system/node/node1 -> node0", "sys/devices/system/node/node2/cpulist = 9-1",
		"sys/module/nvidia -> nvidia", "sys/class/dmi/id/sys_vendor =  \x00\xff ",
	)
	inv := mustRead(t, root, false)
	for _, about := range []string{
		"pci 0000:00:06.0 numa_node | NUMA node", "pci 0000:00:06.0 current_link_width | link width 3", "pci 0000:00:06.0 max_link_speed |",
		"pci 0000:00:06.0 driver | link target", "pci 0000:00:06.0 iommu_group/type | the link leads to sys/kernel/iommu_groups/9, which is not there",
		"pci 0000:00:06.0 physfn |", "pci 0000:00:06.0 local_cpulist | more than 40 links",
		`pci 0000:00:07.0 class | "GPU"`, "pci 0000:00:08.0 class | the function has no such file",
		"pci 0000:00:09.0 | the link leads to sys/devices/pci0000:00/0000:00:09.0, which is not there",
		"pci 0000:00:0a.0 | more than 40 links", "pci 0000:00:0c.0 | the link leads out of the root", "pci 0000:00:0d.0 | the link leads out of the root",
		"pci 0000:00:0e.0 | the link leads to sys/devices/pci0000:00/0000:00:06.0", "pci 0000:00:0f.0 | not a folder",
		"pci eth0 | PCI address", "pci 0000:00:1A.0 | the kernel writes this address as 0000:00:1a.0", "pci 0000:00:10.0 place in the tree",
		`RDMA device | "a b" is not a device name`, "hca mlx5_0 | more than 40 links", `hca mlx5_1 port x | "x" is no port number`, "hca mlx5_1 port 1 state |",
		"hca mlx5_1 port 1 rate |", `hca mlx5_1 port 1 gids | "x" is not an index`, "hca mlx5_1 port 1 gid 0 |", "hca mlx5_1 device | the link leads to sys/nowhere",
		"net lo | the link leads to sys/devices/virtual/net/lo", "net eth1 | the link leads to", "net eth2 | not a folder",
		"numa 0 | more than 40 links", "numa 2 cpulist |", "module nvidia | more than 40 links",
	} {
		wantGap(t, inv, about)
	}
	if len(inv.GPUs) != 2 || len(inv.HCAs) != 1 || inv.HCAs[0].Ports[0].State != "" || len(inv.NUMA) != 1 {
		t.Errorf("GPUs %+v\nHCAs %+v\nNUMA %+v", inv.GPUs, inv.HCAs, inv.NUMA)
	}
	if len(inv.NetDevs) != 2 || inv.NetDevs[0].Virtual || !inv.NetDevs[1].Virtual {
		t.Errorf("interfaces: %+v", inv.NetDevs)
	}
	if d := at(t, inv, "0000:00:06.0"); d.NUMA.Known() || d.Current.Width.Known() || d.PhysFn.Known() || d.Driver != "" {
		t.Errorf("%+v", d)
	}
}

// TestContradictingPaths: two functions that are each below the other, and one
// whose bridge the bus knows elsewhere.
func TestContradictingPaths(t *testing.T) {
	root := machine(t,
		pciFunction("pci0000:00/0000:01:00.0/0000:02:00.0", "0x020000", "0x15b3", "0x1021"),
		pciFunction("pci0000:00/0000:02:00.0/0000:01:00.0", "0x020000", "0x15b3", "0x1021"),
		pciFunction("pci0000:00/0000:03:00.0/0000:04:00.0", "0x020000", "0x15b3", "0x1021"),
		pciFunction("pci0000:00/0000:05:00.0/0000:03:00.0", "0x060400", "0x15b3", "0x1021"),
	)
	inv := mustRead(t, root, false)
	wantGap(t, inv, "the bus knows")
	if len(inv.PCI) < 4 {
		t.Errorf("%+v", inv.PCI)
	}
}

// faulty answers some paths with an error.
type faulty struct {
	fstest.MapFS
	faults map[string]error // path → error on opening
}

func (f faulty) Open(name string) (fs.File, error) {
	if err := f.faults[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f.MapFS.Open(name)
}

func (f faulty) Lstat(name string) (fs.FileInfo, error) {
	if err := f.faults["lstat "+name]; err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	return f.MapFS.Lstat(name)
}

func (f faulty) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.faults[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f.MapFS.ReadDir(name)
}

func TestReadErrors(t *testing.T) {
	const gpu = "sys/devices/pci0000:14/0000:14:01.0/0000:15:00.0/0000:16:00.0/0000:17:00.0"
	const port = "sys/devices/pci0000:14/0000:14:01.0/0000:18:00.0/infiniband/mlx5_10/ports/2"
	root := switched(t)
	maps.Copy(root, twoPorts(t))
	inv := mustRead(t, faulty{root, map[string]error{
		gpu + "/current_link_speed":           syscall.EIO,
		gpu + "/power/runtime_status":         fs.ErrPermission,
		"lstat " + gpu + "/iommu_group":       fs.ErrPermission,
		"sys/devices/system/node":             fs.ErrPermission,
		"proc/cmdline":                        fs.ErrPermission,
		"sys/module/nvidia/version":           syscall.EIO,
		port + "/gids":                        syscall.EIO,
		"sys/devices/virtual/net/bond0/speed": syscall.EINVAL,
		port + "/rate":                        syscall.EINVAL,
	}}, false)
	for _, about := range []string{
		"pci 0000:17:00.0 current_link_speed | open: input/output error | " + gpu + "/current_link_speed",
		"pci 0000:17:00.0 power/runtime_status | open: permission denied",
		"pci 0000:17:00.0 iommu_group/type | lstat: permission denied",
		"NUMA nodes | open: permission denied | sys/devices/system/node",
		"kernel command line | open: permission denied",
		"module nvidia version |", "hca mlx5_10 port 2 gids |",
	} {
		wantGap(t, inv, about)
	}
	for _, g := range inv.Gaps {
		if strings.Contains(g.Why, "permission") && g.How == "" {
			t.Errorf("%+v does not say what to do", g)
		}
	}
	if g := gaps(inv, "speed"); len(g) != 1 {
		t.Errorf("EINVAL is no gap: %q", g)
	}
	if d := at(t, inv, "0000:17:00.0"); d.Current.Speed.Known() || d.Max.Speed != probe.LinkOfGen(5, 16).Speed {
		t.Errorf("%+v", d)
	}
}

func TestTooLarge(t *testing.T) {
	root := switched(t)
	root["proc/cmdline"] = &fstest.MapFile{Data: bytes.Repeat([]byte("x"), maxAttr+1)}
	root["proc/sys/kernel/hostname"] = &fstest.MapFile{Data: bytes.Repeat([]byte("x"), maxText+1)}
	inv := mustRead(t, root, false)
	wantGap(t, inv, "kernel command line | larger than")
	if len(inv.Host.Name) != maxText {
		t.Errorf("host name of %d bytes", len(inv.Host.Name))
	}
}

func TestAbsentAndNotRecorded(t *testing.T) {
	root := machine(t, "sys/class/net/", "proc/version = Linux")
	inv := mustRead(t, root, false)
	for _, where := range []string{"sys/bus/pci/devices", "sys/devices/system/node", "sys/devices/system/cpu", "sys/class/infiniband", "sys/class/iommu", "sys/class/dmi/id", "sys/module", "proc/cmdline", "proc/cpuinfo"} {
		wantGap(t, inv, where+" was not recorded")
	}
	if len(gaps(inv, "sys/class/net")) > 0 || inv.Settings.IOMMU.Known() {
		t.Errorf("%q, IOMMU %v", gaps(inv, "sys/class/net"), inv.Settings.IOMMU)
	}
	// On a live machine what is optional is absent, and the rest is hidden.
	inv = mustRead(t, root, true)
	if inv.Settings.IOMMU != probe.Some(false) || len(gaps(inv, "sys/class")) > 0 {
		t.Errorf("IOMMU %v, %q", inv.Settings.IOMMU, gaps(inv, "sys/class"))
	}
	wantGap(t, inv, "sys/bus/pci/devices is not there")

	inv = mustRead(t, machine(t, "proc/cmdline = ro"), false)
	if inv.Settings.Cmdline != "" && len(inv.PCI) > 0 {
		t.Errorf("%+v", inv.Settings)
	}
	wantGap(t, inv, "| sys was not recorded")
	inv = mustRead(t, machine(t, "sys/module/nvidia/version = 1"), false)
	wantGap(t, inv, "| proc was not recorded")
	if len(gaps(inv, "proc/")) > 0 {
		t.Errorf("one gap is enough: %q", gaps(inv, "proc/"))
	}

	for _, bad := range []fs.FS{machine(t), machine(t, "etc/hostname = a"), machine(t, "sys = a file"), machine(t, "sys -> sys")} {
		if inv, err := Read(bad, Options{}); err == nil {
			t.Errorf("%+v", inv)
		}
	}
}

func TestMarks(t *testing.T) {
	for name, c := range map[string]struct {
		lines            []string
		guest, container string
	}{
		"bare metal":   {[]string{"sys/class/dmi/id/sys_vendor = Dell Inc.", "proc/cpuinfo = vendor_id : a"}, "", ""},
		"azure":        {[]string{"sys/class/dmi/id/sys_vendor = Microsoft Corporation", "sys/class/dmi/id/product_name = Virtual Machine"}, "system vendor Microsoft Corporation", ""},
		"kvm":          {[]string{"sys/class/dmi/id/sys_vendor = QEMU"}, "system vendor QEMU", ""},
		"ec2 metal":    {[]string{"sys/class/dmi/id/sys_vendor = Amazon EC2", "sys/class/dmi/id/product_name = p4d.metal"}, "", ""},
		"virtio":       {[]string{pciFunction("pci0000:00/0000:00:01.0", "0x010000", "0x1af4", "0x1042"), pciFunction("pci0000:00/0000:00:02.0", "0x010000", "0x1af4", "0x1042")}, "PCI vendor 0x1af4 (virtio)", ""},
		"qemu port":    {[]string{pciFunction("pci0000:00/0000:00:01.0", "0x060400", "0x1b36", "0x000c")}, "PCI vendor 0x1b36 (Red Hat, QEMU)", ""},
		"hyper-v":      {[]string{pciFunction("pci0000:00/0000:00:01.0", "0x020000", "0x1414", "0x00ba")}, "PCI vendor 0x1414 (Microsoft Hyper-V)", ""},
		"docker":       {[]string{".dockerenv =", "proc/1/cgroup = 0::/"}, "", "docker .dockerenv"},
		"podman":       {[]string{"run/.containerenv ="}, "", "podman run/.containerenv"},
		"kubernetes":   {[]string{"proc/1/cgroup = 0::/kubepods.slice/a"}, "", "kubepods proc/1/cgroup"},
		"emulated":     {[]string{pciFunction("pci0000:00/0000:00:01.0", "0x060400", "0x104c", "0x8232", gen("2.5 GT/s PCIe", "1")...), pciFunction("pci0000:00/0000:00:01.0/0000:01:00.0", "0x030200", "0x10de", "0x2330", gen("32.0 GT/s PCIe", "16")...)}, "emulated switch port 104c:8232 above a Gen5 device", ""},
		"real TI port": {[]string{pciFunction("pci0000:00/0000:00:01.0", "0x060400", "0x104c", "0x8232", gen("2.5 GT/s PCIe", "1")...), pciFunction("pci0000:00/0000:00:01.0/0000:01:00.0", "0x020000", "0x8086", "0x1533", gen("2.5 GT/s PCIe", "1")...)}, "", ""},
	} {
		inv := mustRead(t, machine(t, append(c.lines, "sys/module/")...), false)
		var guest, container []string
		for _, m := range inv.Settings.Guest {
			guest = append(guest, m.What)
		}
		for _, m := range inv.Settings.Container {
			container = append(container, m.What+" "+m.Origin.Where)
		}
		if g, k := strings.Join(guest, "; "), strings.Join(container, "; "); g != c.guest || k != c.container {
			t.Errorf("%s: guest %q, container %q", name, g, k)
		}
	}
	// The function that gave the guest away is kept, its likes are not.
	inv := mustRead(t, machine(t, pciFunction("pci0000:00/0000:00:01.0", "0x010000", "0x1af4", "0x1042"), pciFunction("pci0000:00/0000:00:02.0", "0x010000", "0x1af4", "0x1042")), false)
	if len(inv.PCI) != 1 {
		t.Errorf("%+v", inv.PCI)
	}
}

// TestLinksAsFiles: an archive that was unpacked without links reads like the
// machine it came from.
func TestLinksAsFiles(t *testing.T) {
	root := switched(t)
	maps.Copy(root, twoPorts(t))
	want := mustRead(t, root, false)
	for name, f := range root {
		if f.Mode.Type() == fs.ModeSymlink {
			root[name] = &fstest.MapFile{Data: f.Data, Mode: 0o444}
		}
	}
	got := mustRead(t, root, false)
	if d := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); d != "" {
		t.Error(d)
	}
	// The live kernel has real links; a file there is a file.
	live := mustRead(t, machine(t, "sys/module/", "sys/class/net/", "sys/class/net/lo = ../../devices/virtual/net/lo"), true)
	if len(live.NetDevs) > 0 {
		t.Errorf("%+v", live.NetDevs)
	}
}

func TestAttachNetDevs(t *testing.T) {
	inv := mustRead(t, twoPorts(t), false)
	r := &reader{tree: tree{fsys: fstest.MapFS{}, dirs: map[string]string{}}, inv: inv}
	inv.NetDevs = append(inv.NetDevs, probe.NetDev{Name: "docker0", Virtual: true}, probe.NetDev{Name: "eth9", Addr: probe.Some(probe.MustBDF("18:00.0"))})
	var asked []string
	r.attachNetDevs(func(n string) (string, error) {
		asked = append(asked, n)
		switch n {
		case "ib0":
			return "mlx5_2", nil
		case "eth9":
			return "mlx5_77", nil
		}
		return "", errors.New("no answer")
	})
	if got := strings.Join(asked, " "); got != "bond0 ib0 eth9" {
		t.Errorf("asked for %s", got)
	}
	if got := inv.HCAs[0].NetDevs; !slices.Equal(got, []string{"ib0"}) {
		t.Errorf("mlx5_2: %q", got)
	}
	wantGap(t, inv, "RDMA device of net bond0 | no answer")
	wantGap(t, inv, `RDMA device of net eth9 | rdmamap names "mlx5_77"`)
}

func TestCapture(t *testing.T) {
	const dir = "../../../shared/captures/2xh200-vm/sysroot"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recording is not here: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	checkVM(t, mustRead(t, root.FS(), false))
}

func TestEmbeddedMachine(t *testing.T) { checkVM(t, mustRead(t, embedded(t), false)) }

func embedded(t testing.TB) fs.FS {
	t.Helper()
	m, err := fixtures.Load("2xh200-vm")
	if err != nil {
		t.Fatal(err)
	}
	return m.Root
}

func checkVM(t *testing.T, inv *probe.Inventory) {
	t.Helper()
	if len(inv.GPUs) != 2 || inv.GPUs[0].Addr != probe.Some(probe.MustBDF("00:06.0")) {
		t.Errorf("GPUs: %+v", inv.GPUs)
	}
	gpu := at(t, inv, "0000:00:07.0")
	if gpu.Parent.Known() || gpu.Root != "pci0000:00" || gpu.NUMA.Known() || gpu.Current != probe.LinkOfGen(5, 16) || gpu.Max != probe.LinkOfGen(5, 16) || gpu.CPUs != "0-31" {
		t.Errorf("%+v", gpu)
	}
	if len(inv.NUMA) != 1 || inv.NUMA[0].Package != probe.Some(0) || len(inv.CPUs) != 1 || inv.CPUs[0].Family != probe.Some(6) || inv.CPUs[0].Model != probe.Some(207) {
		t.Errorf("NUMA %+v, CPUs %+v", inv.NUMA, inv.CPUs)
	}
	if len(inv.HCAs) != 0 || len(inv.NetDevs) != 4 || inv.NetDevs[0].Addr != probe.Some(probe.MustBDF("00:03.0")) || inv.NetDevs[0].Speed.Known() {
		t.Errorf("HCAs %+v, interfaces %+v", inv.HCAs, inv.NetDevs)
	}
	if inv.Runtime.Driver != "580.159.04" || len(inv.Settings.Guest) != 2 || inv.Settings.IOMMU.Known() {
		t.Errorf("%+v %+v", inv.Runtime, inv.Settings)
	}
	wantGap(t, inv, "sys/class/infiniband was not recorded")
	wantGap(t, inv, "proc was not recorded")
}

// TestRealFolders reads links and a pipe that a file system really has.
func TestRealFolders(t *testing.T) {
	dir := t.TempDir()
	for name, f := range switched(t) {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case f.Mode.IsDir():
			err = os.MkdirAll(p, 0o755)
		case f.Mode.Type() == fs.ModeSymlink:
			err = os.Symlink(string(f.Data), p)
		default:
			err = os.WriteFile(p, f.Data, 0o644)
		}
		if err != nil {
			t.Skipf("this file system cannot hold the machine: %v", err)
		}
	}
	read := func() *probe.Inventory {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		return mustRead(t, root.FS(), false)
	}
	if d := cmp.Diff(fmt.Sprintf("%+v", mustRead(t, switched(t), false)), fmt.Sprintf("%+v", read())); d != "" {
		t.Error(d)
	}
	for name, target := range map[string]string{"out": "/etc", "up": "../../../../../../etc", "self": "self", "dangling": "../../devices/virtual/net/dangling"} {
		if err := os.Symlink(target, filepath.Join(dir, "sys/class/net", name)); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(dir, "sys/module/nvidia/version")
	if err := errors.Join(os.Remove(pipe), makePipe(pipe)); err != nil {
		t.Skip(err)
	}
	inv := read()
	for _, about := range []string{"net out | the link leads out", "net up | the link leads out", "net self | more than 40 links", "net dangling | the link leads to", "module nvidia version | neither a file nor a link"} {
		wantGap(t, inv, about)
	}
}

// archive writes a root as ParseRoot reads it.
func archive(root fstest.MapFS) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(root)) {
		switch file := root[name]; {
		case file.Mode.IsDir():
			fmt.Fprintf(&b, "-- %s/ --\n", name)
		case file.Mode.Type() == fs.ModeSymlink:
			fmt.Fprintf(&b, "-- %s -> %s --\n", name, file.Data)
		default:
			fmt.Fprintf(&b, "-- %s --\n%s", name, file.Data)
		}
	}
	return b.String()
}

func FuzzRead(f *testing.F) {
	f.Add(archive(switched(f)))
	f.Add(archive(twoPorts(f)))
	f.Add("-- sys/bus/pci/devices/0000:00:06.0 -> ../../../devices/pci0000:00/0000:00:06.0 --\n-- sys/devices/pci0000:00/0000:00:06.0/class --\n0x030200\n-- sys/devices/pci0000:00/0000:00:06.0/vendor --\n0x10de\n")
	f.Add("-- sys/class/infiniband/mlx5_0/ports/1/state --\n4: ACTIVE\n-- sys/class/infiniband/mlx5_0/ports/1/gids/0 --\nfe80:0000:0000:0000:0c42:a103:0095:7e2c\n-- proc/cpuinfo --\nvendor_id : GenuineIntel\ncpu family : 6\n")
	f.Add("-- sys/class/net/a -> b --\n-- sys/class/net/b -> a --\n-- sys/devices/system/node/node0/cpulist --\n0-3\n-- sys/devices/system/cpu/cpu0/topology/physical_package_id --\n0\n")
	f.Fuzz(func(t *testing.T, archive string) {
		root, err := fixtures.ParseRoot("f", []byte(archive))
		if err != nil {
			return
		}
		inv, err := Read(root, Options{})
		if err != nil {
			return
		}
		if err := inv.Encode(&bytes.Buffer{}); err != nil {
			t.Fatalf("%v\n%+v", err, inv)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	root := embedded(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(root, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadSwitched is a bare-metal host of eight GPUs, eight two-port HCAs
// and 200 functions that do not matter.
func BenchmarkReadSwitched(b *testing.B) {
	var parts []string
	for i := range 8 {
		up := fmt.Sprintf("pci0000:%02x/0000:%02[1]x:01.0/0000:%02[2]x:00.0", 16*i+1, 16*i+2)
		parts = append(parts,
			pciFunction(path.Dir(up), "0x060400", "0x8086", "0x352a", gen("32.0 GT/s PCIe", "16")...),
			pciFunction(up, "0x060400", "0x1000", "0xc030", gen("32.0 GT/s PCIe", "16")...),
			pciFunction(fmt.Sprintf("%s/0000:%02x:00.0", up, 16*i+3), "0x030200", "0x10de", "0x2330", gen("32.0 GT/s PCIe", "16")...),
			pciFunction(fmt.Sprintf("%s/0000:%02x:00.0", up, 16*i+4), "0x020700", "0x15b3", "0x1021", gen("32.0 GT/s PCIe", "16")...))
		ib := fmt.Sprintf("sys/devices/%s/0000:%02x:00.0/infiniband/mlx5_%d", up, 16*i+4, i)
		parts = append(parts, fmt.Sprintf("sys/class/infiniband/mlx5_%d -> ../../%s", i, strings.TrimPrefix(ib, "sys/")), ib+"/device -> ../..")
		for p := 1; p <= 2; p++ {
			parts = append(parts, fmt.Sprintf("%s/ports/%d/state = 4: ACTIVE\n%s/ports/%d/rate = 400 Gb/sec (4X NDR)", ib, p, ib, p))
		}
	}
	for i := range 200 {
		parts = append(parts, pciFunction(fmt.Sprintf("pci0000:ff/0000:ff:%02x.%d", i/8, i%8), "0x088000", "0x8086", "0x3250"))
	}
	dir := b.TempDir()
	for name, f := range machine(b, parts...) {
		p := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if f.Mode.Type() == fs.ModeSymlink {
			err = errors.Join(err, os.Symlink(string(f.Data), p))
		} else {
			err = errors.Join(err, os.WriteFile(p, f.Data, 0o644))
		}
		if err != nil {
			b.Skip(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(root.FS(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// -1 says that the platform does not tell; a file that is missing says nothing.
func TestNUMANotToldIsNotUnread(t *testing.T) {
	const dir = "sys/devices/pci0000:00/0000:00:06.0/"
	for _, c := range []struct {
		numa string // "" = no such file
		want probe.Opt[int]
		none bool
	}{{"-1", probe.Opt[int]{}, true}, {"", probe.Opt[int]{}, false}, {"1", probe.Some(1), false}} {
		fsys := fstest.MapFS{
			"sys/bus/pci/devices/0000:00:06.0": {Data: []byte("../../../devices/pci0000:00/0000:00:06.0"), Mode: fs.ModeSymlink},
			dir + "class":                      {Data: []byte("0x030200\n")},
			dir + "vendor":                     {Data: []byte("0x10de\n")},
			dir + "device":                     {Data: []byte("0x2335\n")},
		}
		if c.numa != "" {
			fsys[dir+"numa_node"] = &fstest.MapFile{Data: []byte(c.numa + "\n")}
		}
		inv, err := Read(fsys, Options{})
		if err != nil || len(inv.PCI) != 1 {
			t.Fatalf("%v, %d functions", err, len(inv.PCI))
		}
		if d := inv.PCI[0]; d.NUMA != c.want || d.NUMANone != c.none {
			t.Errorf("numa_node %q: %v, none %v", c.numa, d.NUMA, d.NUMANone)
		}
	}
}
