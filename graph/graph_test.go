package graph

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/graph/topo"

	"github.com/ncclmap/ncclmap/probe"
)

// machine describes a small host in a few words; see twoSwitches.
type machine struct{ inv probe.Inventory }

func (m *machine) bridge(addr, parent string, numa int) string {
	m.pci(addr, parent, numa, probe.ClassBridgePCI, 0x1000)
	return addr
}

func (m *machine) pci(addr, parent string, numa int, class probe.PCIClass, vendor probe.PCIID) {
	d := probe.PCIDevice{
		Addr: probe.MustBDF(addr), Root: "pci0000:" + addr[5:7], Class: probe.Some(class), Vendor: probe.Some(vendor),
		Current: probe.LinkOfGen(5, 16), Max: probe.LinkOfGen(5, 16), Origins: []probe.Origin{{Source: "test"}},
	}
	if numa >= 0 {
		d.NUMA = probe.Some(numa)
	}
	if parent != "" {
		d.Parent = probe.Some(probe.MustBDF(parent))
		for _, p := range m.inv.PCI {
			if p.Addr == probe.MustBDF(parent) {
				d.Root = p.Root
			}
		}
	}
	m.inv.PCI = append(m.inv.PCI, d)
}

func (m *machine) gpu(addr, parent string, numa int, links ...probe.NVLink) {
	m.pci(addr, parent, numa, 0x030200, probe.VendorNVIDIA)
	m.inv.GPUs = append(m.inv.GPUs, probe.GPU{
		Index: probe.Some(len(m.inv.GPUs)), Addr: probe.Some(probe.MustBDF(addr)), CC: probe.Some(90), NVLinks: probe.Some(links),
		Origins: []probe.Origin{{Source: "test"}},
	})
}

func (m *machine) hca(name, addr, parent string, numa int) {
	m.pci(addr, parent, numa, 0x020700, probe.VendorMellanox)
	m.inv.HCAs = append(m.inv.HCAs, probe.HCA{Name: name, Addr: probe.Some(probe.MustBDF(addr)),
		Ports: []probe.HCAPort{{Port: 1, State: probe.PortActive, Rate: probe.Some(probe.Mbps(400e3))}}})
}

func nvlinks(n int, remote string, kind string) []probe.NVLink {
	var out []probe.NVLink
	for i := range n {
		l := probe.NVLink{Link: i, State: probe.LinkUp, Generation: probe.Some(4), RemoteKind: kind}
		if remote != "" {
			l.Remote = probe.Some(probe.MustBDF(remote))
		}
		out = append(out, l)
	}
	return out
}

// twoSwitches is a two-socket host. Below one root port of NUMA 0 a switch with
// GPU0, GPU1 and mlx5_0, and below that a second switch with GPU2; on a root
// port of its own mlx5_1; on NUMA 1 GPU3.
func twoSwitches() *machine {
	m := &machine{}
	m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0-31"}, {ID: 1, CPUs: "32-63"}}
	rp := m.bridge("0000:10:01.0", "", 0)
	up := m.bridge("0000:11:00.0", rp, 0)
	for i := range 4 {
		m.bridge(fmt.Sprintf("0000:12:0%d.0", i), up, 0)
	}
	m.gpu("0000:13:00.0", "0000:12:00.0", 0)
	m.gpu("0000:14:00.0", "0000:12:01.0", 0)
	m.hca("mlx5_0", "0000:15:00.0", "0000:12:02.0", 0)
	up2 := m.bridge("0000:16:00.0", "0000:12:03.0", 0)
	dp2 := m.bridge("0000:17:00.0", up2, 0)
	m.gpu("0000:18:00.0", dp2, 0)
	rp2 := m.bridge("0000:40:01.0", "", 0)
	m.hca("mlx5_1", "0000:41:00.0", rp2, 0)
	rp3 := m.bridge("0000:80:01.0", "", 1)
	m.gpu("0000:81:00.0", rp3, 1)
	return m
}

func build(t *testing.T, m *machine) *Topology {
	t.Helper()
	topo, err := Build(&m.inv)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func TestPathClasses(t *testing.T) {
	top := build(t, twoSwitches())
	gpu := top.Of(KindGPU)
	hca := top.Of(KindHCA)
	for _, c := range []struct {
		a, b *Node
		want PathClass
		smi  string
	}{
		{gpu[0], gpu[0], LOC, "X"},
		{gpu[0], gpu[1], PIX, "PIX"},
		{gpu[0], hca[0], PIX, "PIX"},
		{gpu[0], gpu[2], PXB, "PXB"},
		{gpu[2], hca[0], PXB, "PXB"},
		{gpu[0], hca[1], PHB, "NODE"}, // two host bridges of one NUMA node
		{gpu[0], gpu[3], SYS, "SYS"},
		{gpu[3], hca[1], SYS, "SYS"},
		{hca[0], hca[1], PHB, "NODE"},
	} {
		for _, pair := range [][2]*Node{{c.a, c.b}, {c.b, c.a}} {
			if got := top.Class(pair[0], pair[1]); got != c.want {
				t.Errorf("%s–%s: class %v, want %v", pair[0].Label, pair[1].Label, got, c.want)
			}
			if got := top.SMICode(pair[0], pair[1]); got != c.smi {
				t.Errorf("%s–%s: topo -m code %s, want %s", pair[0].Label, pair[1].Label, got, c.smi)
			}
		}
	}
	if p := top.Path(gpu[0], hca[0]); len(p.Hops) != 2 || p.Rate.Or(0).String() != "63.02 GB/s" {
		t.Errorf("GPU0–mlx5_0: %d hops, %v", len(p.Hops), p.Rate)
	}
	// One link per physical link: 4 GPUs, 2 HCAs, 2 switches upwards, 1 SMP.
	if len(top.Links) != 9 {
		t.Errorf("%d links", len(top.Links))
	}
}

func TestNVLinkPaths(t *testing.T) {
	m := &machine{}
	m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0"}}
	a, b, c := "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"
	number := func(l []probe.NVLink, from int) []probe.NVLink {
		for i := range l {
			l[i].Link = from + i
		}
		return l
	}
	// A cube-mesh corner: 0–1 and 1–2 joined, 0 and 2 not; the second link 0–1 is down as GPU 1 sees it.
	back := nvlinks(2, a, probe.RemoteGPU)
	back[1].State = probe.LinkDown
	m.gpu(a, "", 0, nvlinks(2, b, probe.RemoteGPU)...)
	m.gpu(b, "", 0, append(back, number(nvlinks(2, c, probe.RemoteGPU), 2)...)...)
	m.gpu(c, "", 0, nvlinks(2, b, probe.RemoteGPU)...)
	top := build(t, m)
	g := top.Of(KindGPU)
	if got := top.Class(g[0], g[1]); got != NVL {
		t.Errorf("0–1: %v", got)
	}
	if got := top.SMICode(g[0], g[1]); got != "NV1" {
		t.Errorf("0–1: %s, want NV1 (one of two is down)", got)
	}
	if got := top.Class(g[0], g[2]); got != NVB {
		t.Errorf("0–2: %v", got)
	}
	n := 0
	for _, l := range top.Links {
		if l.Kind == NVLink {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d NVLinks, want 4 physical ones", n)
	}
}

func TestNVSwitchPath(t *testing.T) {
	m := &machine{}
	m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0"}}
	for i := range 2 {
		var links []probe.NVLink
		for s, n := range []int{5, 4, 4, 5} {
			for _, l := range nvlinks(n, fmt.Sprintf("0000:0%d:00.0", 5+s), probe.RemoteSwitch) {
				l.Link = len(links)
				links = append(links, l)
			}
		}
		m.gpu(fmt.Sprintf("0000:1%d:00.0", i), "", 0, links...)
	}
	top := build(t, m)
	g := top.Of(KindGPU)
	p := top.Path(g[0], g[1])
	if p.Class != NVL || p.Rate.Or(0) != probe.GBs(450) {
		t.Errorf("class %v rate %v, want NVL 450 GB/s over all switches", p.Class, p.Rate)
	}
	if got := top.SMICode(g[0], g[1]); got != "NV18" {
		t.Errorf("code %s", got)
	}
	if len(top.Of(KindNVSwitch)) != 4 {
		t.Errorf("%d switches", len(top.Of(KindNVSwitch)))
	}
	// gonum's view has one component and one line per physical link.
	if c := topo.ConnectedComponents(top.multi); len(c) != 1 {
		t.Errorf("%d components", len(c))
	}
	lines := 0
	for _, l := range top.LinksOf(g[0]) {
		if l.Kind == NVLink {
			lines++
		}
	}
	if lines != 18 {
		t.Errorf("%d NVLinks of GPU0", lines)
	}
}

func TestUnknownStaysUnknown(t *testing.T) {
	m := &machine{}
	m.inv.NUMA = []probe.NUMANode{{ID: 0, CPUs: "0-31"}}
	// Two root complexes without NUMA node: one socket or two, nobody says.
	m.gpu("0000:10:00.0", "", -1)
	m.gpu("0000:10:01.0", "", -1)
	m.gpu("0001:20:00.0", "", -1)
	m.inv.PCI[0].Root, m.inv.PCI[1].Root, m.inv.PCI[2].Root = "pci0000:10", "pci0000:10", "pci0001:20"
	top := build(t, m)
	g := top.Of(KindGPU)
	if got := top.Class(g[0], g[1]); got != PHB {
		t.Errorf("same root complex: %v", got)
	}
	if got := top.Class(g[0], g[2]); got != Unknown {
		t.Errorf("different root complexes of unknown NUMA node: %v", got)
	}
}

func TestMatrixAlone(t *testing.T) {
	inv := probe.Inventory{}
	for i := range 8 {
		inv.GPUs = append(inv.GPUs, probe.GPU{Index: probe.Some(i)})
		for j := range i {
			inv.Relations = append(inv.Relations, probe.Relation{A: fmt.Sprintf("GPU%d", j), B: fmt.Sprintf("GPU%d", i), Code: "NV18"})
		}
	}
	inv.HCAs = []probe.HCA{{Name: "mlx5_0"}}
	inv.Relations = append(inv.Relations, probe.Relation{A: "GPU0", B: "mlx5_0", Code: "PXB"})
	top, err := Build(&inv)
	if err != nil {
		t.Fatal(err)
	}
	g := top.Of(KindGPU)
	if got := top.SMICode(g[0], g[7]); got != "NV18" {
		t.Errorf("GPU0–GPU7: %s", got)
	}
	if got := top.Class(g[0], top.Node("hca:mlx5_0")); got != PXB {
		t.Errorf("GPU0–mlx5_0: %v", got)
	}
	if got := top.Class(g[1], top.Node("hca:mlx5_0")); got != Unknown {
		t.Errorf("GPU1–mlx5_0: %v, the matrix does not say", got)
	}
	if sw := top.Of(KindNVSwitch); len(sw) != 1 || !sw[0].Hidden {
		t.Errorf("7 × 18 links per GPU can only run through switches: %v", sw)
	}
}

func TestAgrees(t *testing.T) {
	for code, class := range map[string]PathClass{"NV18": NVL, "PIX": PIX, "PXB": PXB, "PHB": PHB, "NODE": PHB, "SYS": SYS} {
		for c := LOC; c <= DIS; c++ {
			want := c == class || c == NVB && code[:2] != "NV" || c == P2C && (code == "PHB" || code == "NODE")
			if got := c.Agrees(code); got != want {
				t.Errorf("%v agrees with %s: %v", c, code, got)
			}
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	m := twoSwitches()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(&m.inv); err != nil {
			b.Fatal(err)
		}
	}
}

// The driver and sysfs both read a GPU's link: the lower width counts, and the
// driver's speed, which belongs to the load it reports.
func TestLinkAsTheDriverSeesIt(t *testing.T) {
	m := twoSwitches()
	m.inv.GPUs[0].Current = probe.LinkOfGen(5, 8)
	for i := range m.inv.PCI {
		if m.inv.PCI[i].Addr == probe.MustBDF("0000:14:00.0") { // GPU1 idle in sysfs, awake for the driver
			m.inv.PCI[i].Current = probe.LinkOfGen(1, 16)
		}
	}
	m.inv.GPUs[1].Current = probe.LinkOfGen(5, 16)
	top := build(t, m)
	for i, want := range []string{"Gen5 x8", "Gen5 x16"} {
		for _, l := range top.LinksOf(top.Of(KindGPU)[i]) {
			if got := l.PCIeCurrent.String(); got != want {
				t.Errorf("GPU%d: %s, want %s", i, got, want)
			}
		}
	}
}

// Without a word on NVLinks the way between two GPUs is not known, unless the
// matrix tells it.
func TestUnknownNVLinks(t *testing.T) {
	m := twoSwitches()
	for i := range m.inv.GPUs {
		m.inv.GPUs[i].NVLinks = probe.Opt[[]probe.NVLink]{}
	}
	m.inv.Relations = []probe.Relation{{A: "GPU0", B: "GPU1", Code: "PIX"}}
	top := build(t, m)
	g := top.Of(KindGPU)
	if got := top.Class(g[0], g[1]); got != PIX {
		t.Errorf("GPU0–GPU1: %v, the matrix says PIX", got)
	}
	if got := top.SMICode(g[0], g[2]); got != "?" {
		t.Errorf("GPU0–GPU2: %s", got)
	}
	if got := top.Class(g[0], top.Of(KindHCA)[0]); got != PIX {
		t.Errorf("GPU0–mlx5_0: %v", got)
	}
}
