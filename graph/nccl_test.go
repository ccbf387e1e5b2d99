package graph

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclxml"
)

func readView(t testing.TB, file string, o NCCLOptions) *NCCLView {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	return viewOf(t, decode(t, filepath.Base(file), f), o)
}

func decode(t testing.TB, name string, r io.Reader) *probe.Inventory {
	t.Helper()
	doc, err := ncclxml.Decode(name, r)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := doc.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func viewOf(t testing.TB, inv *probe.Inventory, o NCCLOptions) *NCCLView {
	t.Helper()
	top, err := Build(inv)
	if err != nil {
		t.Fatal(err)
	}
	v, err := top.NCCL(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNCCLConstants(t *testing.T) {
	for _, c := range []struct {
		link probe.PCIeLink
		gbs  float64
	}{
		{probe.LinkOfGen(1, 16), 3}, {probe.LinkOfGen(2, 16), 6}, {probe.LinkOfGen(3, 16), 12}, {probe.LinkOfGen(4, 16), 24},
		{probe.LinkOfGen(5, 16), 48}, {probe.LinkOfGen(6, 16), 96}, {probe.LinkOfGen(5, 8), 24}, {probe.LinkOfGen(1, 1), 0.1875},
		{probe.PCIeLink{}, 12}, {probe.PCIeLink{Width: probe.Some(8)}, 6}, {probe.PCIeLink{Speed: probe.LinkOfGen(5, 1).Speed}, 48},
	} {
		gbs, assumed := NCCLPCIeGBs(c.link)
		if gbs != c.gbs || (assumed == "") != c.link.Known() {
			t.Errorf("%v: %g GB/s (%s), want %g", c.link, gbs, assumed, c.gbs)
		}
	}
	for cc, gbs := range map[int]float64{52: 20, 60: 18, 61: 18, 70: 20, 75: 20, 80: 20, 86: 12, 89: 20, 90: 20.6, 100: 40.1, 103: 40.1, 120: 40.1} {
		if got := NCCLNVLinkGBs(cc, NewestNCCL); got != gbs {
			t.Errorf("sm_%d: %g GB/s per NVLink, want %g", cc, got, gbs)
		}
	}
	intel := func(family, model int) probe.CPU {
		return probe.CPU{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(family), Model: probe.Some(model)}
	}
	for _, c := range []struct {
		cpu  probe.CPU
		gbs  float64
		sure bool
	}{
		{intel(6, 0x4f), 6, true}, {intel(6, 0x55), 10, true}, {intel(6, 0x6a), 10, true}, {intel(6, 0x8f), 22, true}, {intel(6, 0xcf), 40, true},
		{intel(15, 0xcf), 6, true}, {probe.CPU{Arch: "x86_64", Vendor: "GenuineIntel"}, 6, false},
		{probe.CPU{Arch: "x86_64", Vendor: "AuthenticAMD"}, 16, true},
		{probe.CPU{Arch: "x86_64", Vendor: "  Shanghai  ", Family: probe.Some(7), Model: probe.Some(0x5b)}, 9, true},
		{probe.CPU{Arch: "x86_64", Vendor: "CentaurHauls"}, 6, true},
		{probe.CPU{Arch: "x86_64", Vendor: "HygonGenuine"}, 5000, true},
		{probe.CPU{Arch: "arm64"}, 6, true}, {probe.CPU{Arch: "aarch64"}, 6, true}, {probe.CPU{Arch: "ppc64le"}, 32, true},
		{probe.CPU{Arch: "x86_64"}, 6, false}, {probe.CPU{}, 6, false},
	} {
		p, assumed := ncclProcessor(c.cpu, NewestNCCL)
		if p.GBs != c.gbs || (assumed == "") != c.sure {
			t.Errorf("%+v: %s, %g GB/s (%s), want %g", c.cpu, p.Name, p.GBs, assumed, c.gbs)
		}
	}
}

// describe prints a view without what only one kind of source states.
func describe(v *NCCLView) string {
	var b strings.Builder
	for i := range v.GPUs {
		for j := range v.GPUs {
			p := v.Path(i, j)
			fmt.Fprintf(&b, "GPU %d to %d: %v %g GB/s %d hops:", p.A, p.B, p.Class, p.GBs, p.Hops)
			for _, l := range p.Links {
				fmt.Fprintf(&b, " %s %g %v", v.Links[l].Type, v.Links[l].GBs, v.Nodes[v.Links[l].To].Kind)
			}
			b.WriteByte('\n')
		}
	}
	kinds := map[NCCLKind]int{}
	for _, n := range v.Nodes {
		kinds[n.Kind]++
	}
	fmt.Fprintln(&b, kinds, len(v.Links), v.Processor.Name, v.Groups)
	return b.String()
}

// The same host as sysfs shows it (root ports, both ports of every switch) and
// as NCCL writes it (one entry per switch).
func TestNCCLViewOfBothSources(t *testing.T) {
	m := twoSwitches()
	m.inv.CPUs = []probe.CPU{{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(143)}}
	// The slot of GPU1 is narrower than the GPU.
	for i := range m.inv.PCI {
		if m.inv.PCI[i].Addr == probe.MustBDF("0000:12:01.0") {
			m.inv.PCI[i].Max = probe.LinkOfGen(4, 8)
		}
	}
	const link = `link_speed="32.0 GT/s PCIe" link_width="16"`
	gpu := func(addr string, dev int, link string) string {
		return fmt.Sprintf(`<pci busid=%q class="0x030200" %s><gpu dev="%d" sm="90" rank="%d" gdr="1"/></pci>`, addr, link, dev, dev)
	}
	nic := func(addr string, dev int) string {
		return fmt.Sprintf(`<pci busid=%q class="0x020700" %s><nic><net name="mlx5_%d" dev="%d" speed="400000" port="1" guid="0x%d" gdr="1"/></nic></pci>`, addr, link, dev, dev, dev+1)
	}
	const cpu = `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"`
	file := `<system version="1"><cpu numaid="0" ` + cpu + `><pci busid="0000:11:00.0" class="0x060400" ` + link + `>` +
		gpu("0000:13:00.0", 0, link) + gpu("0000:14:00.0", 1, `link_speed="16.0 GT/s PCIe" link_width="8"`) + nic("0000:15:00.0", 0) +
		`<pci busid="0000:16:00.0" class="0x060400" ` + link + `>` + gpu("0000:18:00.0", 2, link) + `</pci></pci>` + nic("0000:41:00.0", 1) +
		`</cpu><cpu numaid="1" ` + cpu + `>` + gpu("0000:81:00.0", 3, link) + `</cpu></system>`
	sysfs := viewOf(t, &m.inv, NCCLOptions{})
	dump := viewOf(t, decode(t, "topo.xml", strings.NewReader(file)), NCCLOptions{})
	if a, b := describe(sysfs), describe(dump); a != b {
		t.Errorf("from sysfs:\n%sfrom the topology file:\n%s", a, b)
	}
	if p := sysfs.Path(0, 1); p.Class != PIX || p.GBs != 12 {
		t.Errorf("GPU 0 to 1: %v %g GB/s, want PIX and 12 (Gen4 x8)", p.Class, p.GBs)
	}
	if p := sysfs.Path(0, 2); p.Class != PXB || !p.P2P || p.Hops != 5 {
		t.Errorf("GPU 0 to 2: %+v", p)
	}
	if p := sysfs.Path(0, 3); p.Class != SYS || p.GBs != 22 || p.P2P {
		t.Errorf("GPU 0 to 3: %+v", p)
	}
}

// A guest: NVML does not say where the NVLinks lead, sysfs gives no NUMA node.
func TestNCCLViewOfGuest(t *testing.T) {
	m := &machine{}
	m.inv.CPUs = []probe.CPU{{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(207)}}
	m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0-31"}}
	m.gpu("0000:00:06.0", "", -1, nvlinks(18, "", "")...)
	m.gpu("0000:00:07.0", "", -1, nvlinks(18, "", "")...)
	m.inv.PCI[1].Root = "pci0000:01" // two root complexes are still one CPU -1
	m.inv.NetDevs = []probe.NetDev{{Name: "eth0", State: "up"}}
	v := viewOf(t, &m.inv, NCCLOptions{})
	if p := v.Path(0, 1); p.Class != NVL || math.Abs(p.GBs-370.8) > 1e-9 || p.Hops != 4 {
		t.Errorf("%+v, want NVL, 370.8 GB/s, 4 hops", p)
	}
	file := readView(t, "../../shared/captures/2xh200-vm/topo-dump.xml", NCCLOptions{})
	if a, b := describe(v), describe(file); a != b {
		t.Errorf("from the driver:\n%sfrom NCCL's dump:\n%s", a, b)
	}
	text := fmt.Sprint(v.Assumptions)
	for _, want := range []string{"18 NVLinks is not visible: NCCL takes an NVSwitch", "CPU -1", "port speed unknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("assumptions %s: no %q", text, want)
		}
	}
}

func TestNCCLPeerAccess(t *testing.T) {
	host := func(gpus int, vendor string) *machine {
		m := &machine{}
		m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0-31"}}
		m.inv.CPUs = []probe.CPU{{Arch: "x86_64", Vendor: vendor, Family: probe.Some(6), Model: probe.Some(106)}}
		up := m.bridge("0000:11:00.0", m.bridge("0000:10:01.0", "", 0), 0)
		for i := range gpus {
			m.gpu(fmt.Sprintf("0000:%d:00.0", 20+i), m.bridge(fmt.Sprintf("0000:12:0%d.0", i), up, 0), 0)
		}
		m.gpu("0000:41:00.0", m.bridge("0000:40:01.0", "", 0), 0)
		return m
	}
	for _, c := range []struct {
		name       string
		m          *machine
		o          NCCLOptions
		near, far  bool
		class      PathClass // of the near pair
		assumption bool
	}{
		{"default", host(2, "GenuineIntel"), NCCLOptions{}, true, false, PIX, true},
		{"level PIX", host(2, "GenuineIntel"), NCCLOptions{P2PLevel: PIX}, true, false, PIX, true},
		{"level SYS", host(2, "GenuineIntel"), NCCLOptions{P2PLevel: SYS}, true, true, PIX, true},
		{"off by setting", host(2, "GenuineIntel"), NCCLOptions{P2PLevel: LOC}, false, false, PHB, false},
		{"refused", host(2, "GenuineIntel"), NCCLOptions{NoP2P: true}, false, false, PHB, false},
		{"three GPUs on AMD", host(2, "AuthenticAMD"), NCCLOptions{}, true, false, PIX, true},
		{"two of three on AMD", host(2, "AuthenticAMD"), NCCLOptions{GPUs: []int{0, 2}}, true, true, PHB, true},
	} {
		v := viewOf(t, &c.m.inv, c.o)
		last := len(v.GPUs) - 1
		near, far := v.Path(0, 1), v.Path(0, last)
		if near.P2P != c.near || far.P2P != c.far || near.Class != c.class || far.Class != PHB {
			t.Errorf("%s: %v P2P %v and %v P2P %v", c.name, near.Class, near.P2P, far.Class, far.P2P)
		}
		if got := strings.Contains(fmt.Sprint(v.Assumptions), "peer access"); got != c.assumption {
			t.Errorf("%s: assumptions %v", c.name, v.Assumptions)
		}
	}
	m := host(2, "GenuineIntel")
	for _, p := range []string{"read", "write"} {
		m.inv.GPUs[0].Peers = append(m.inv.GPUs[0].Peers, probe.PeerAccess{GPU: 1, Capability: p, Status: "chipset not supported"}, probe.PeerAccess{GPU: 2, Capability: p, Status: "ok"})
	}
	v := viewOf(t, &m.inv, NCCLOptions{})
	if p := v.Path(0, 1); p.P2P || p.Class != PHB {
		t.Errorf("the driver refuses GPU 0 and 1, yet %+v", p)
	}
}

func TestNCCLGPUs(t *testing.T) {
	m := twoSwitches()
	if _, err := build(t, m).NCCL(NCCLOptions{GPUs: []int{0, 7}}); err == nil || !strings.Contains(err.Error(), "GPU 7") {
		t.Errorf("error %v, want one about GPU 7", err)
	}
	v := viewOf(t, &m.inv, NCCLOptions{GPUs: []int{3, 1, 3}})
	if len(v.GPUs) != 2 || v.Dev(0) != 1 || v.Dev(1) != 3 {
		t.Errorf("GPUs %v", v.GPUs)
	}
	if got := v.Paths(); len(got) != 2 || got[0].A != 1 || got[0].B != 3 || got[1].A != 3 {
		t.Errorf("paths %+v", got)
	}
	// The driver counts in another order than the bus.
	m = twoSwitches()
	m.inv.GPUs[0].Index, m.inv.GPUs[3].Index = probe.Some(3), probe.Some(0)
	v = viewOf(t, &m.inv, NCCLOptions{})
	if got := keyOf(v, 0); got != "gpu:0000:81:00.0" {
		t.Errorf("dev 0 is %v", got)
	}
	m.inv.GPUs[1].Index = probe.Opt[int]{}
	v = viewOf(t, &m.inv, NCCLOptions{})
	if got := keyOf(v, 1); got != "gpu:0000:14:00.0" {
		t.Errorf("the GPU without number is not dev 1 but %v is", got)
	}
}

func keyOf(v *NCCLView, dev int) string {
	for i, g := range v.GPUs {
		if v.Dev(i) == dev {
			return v.Nodes[g].Node.Key
		}
	}
	return ""
}

// NCCL reads the current link of GPUs. One that idles at Gen1 is no slow one.
func TestNCCLIdleGPU(t *testing.T) {
	m := &machine{}
	m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0"}}
	for i := range 3 {
		m.gpu(fmt.Sprintf("0000:1%d:00.0", i), "", 0)
		m.inv.PCI[i].Current = probe.LinkOfGen(1, 16)
	}
	m.inv.GPUs[1].PState, m.inv.GPUs[1].Utilization = probe.Some(0), probe.Some(90)
	m.inv.PCI[2].Current = probe.LinkOfGen(5, 8)
	v := viewOf(t, &m.inv, NCCLOptions{})
	up := func(i int) float64 {
		for _, l := range v.Links {
			if l.From == v.GPUs[i] {
				return l.GBs
			}
		}
		return 0
	}
	if up(0) != 48 || up(1) != 3 || up(2) != 24 {
		t.Errorf("%g, %g, %g GB/s; want 48 (idle), 3 (at work), 24 (trained at x8)", up(0), up(1), up(2))
	}
	if text := fmt.Sprint(v.Assumptions); !strings.Contains(text, "gpu:0000:10:00.0: its link runs at Gen1 of Gen5") || strings.Contains(text, "0000:11:00.0") {
		t.Errorf("assumptions %s", text)
	}
}

func TestNCCLBroadcomSwitch(t *testing.T) {
	m := twoSwitches()
	v := viewOf(t, &m.inv, NCCLOptions{})
	if c := v.Path(0, 2).Class; c != PXB {
		t.Errorf("two switches: %v", c)
	}
	for i := range m.inv.PCI {
		d := &m.inv.PCI[i]
		switch d.Addr {
		case probe.MustBDF("0000:11:00.0"):
			d.Device, d.SubVendor, d.SubDevice = probe.Some(probe.PCIID(0xc030)), probe.Some(probe.PCIID(0x1000)), probe.Some(probe.PCIID(0x0004))
		case probe.MustBDF("0000:16:00.0"):
			d.Device, d.SubVendor, d.SubDevice = probe.Some(probe.PCIID(0xc030)), probe.Some(probe.PCIID(0x1000)), probe.Some(probe.PCIID(0x1004))
		}
	}
	v = viewOf(t, &m.inv, NCCLOptions{})
	if p := v.Path(0, 2); p.Class != PIX || len(p.Links) != 2 {
		t.Errorf("two levels of one switch: %v over %d links, want PIX over 2", p.Class, len(p.Links))
	}
}

// Without a place on the PCI tree nothing is made up.
func TestNCCLUnplaced(t *testing.T) {
	inv := &probe.Inventory{GPUs: []probe.GPU{{Index: probe.Some(0)}, {Index: probe.Some(1)}}}
	v := viewOf(t, inv, NCCLOptions{})
	if p := v.Path(0, 1); p.Class != DIS || p.GBs != 0 || len(v.Groups) != 1 {
		t.Errorf("%+v, groups %v", p, v.Groups)
	}
}

func BenchmarkNCCL(b *testing.B) {
	top := func() *Topology {
		f, err := os.Open(filepath.Join(oracleDir, "h100x8-8nic.xml"))
		if err != nil {
			b.Skip(err)
		}
		defer f.Close()
		top, err := Build(decode(b, "h100x8-8nic.xml", f))
		if err != nil {
			b.Fatal(err)
		}
		return top
	}()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := top.NCCL(NCCLOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
