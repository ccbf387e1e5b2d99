package hwlocxml

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

const shared = "../../../shared"

func fromShared(t testing.TB, name string) []byte {
	t.Helper()
	if _, err := os.Stat(shared); err != nil {
		t.Skip("the corpus is not here: ", err)
	}
	raw, err := os.ReadFile(filepath.Join(shared, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode(t testing.TB, text string) *probe.Inventory {
	t.Helper()
	inv, err := Decode("l.xml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// modern has the form of format 2 with what newer machines show: memory nodes,
// an NVLink matrix, a GPU that NVML knows and one that it does not.
const modern = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" nodeset="0x00000007" gp_index="1">
    <info name="DMIProductName" value="X1"/>
    <info name="DMISysVendor" value="Maker"/>
    <info name="DMIBoardName" value="B1"/>
    <info name="OSRelease" value="6.8.0"/>
    <info name="HostName" value="n1"/>
    <info name="Architecture" value="x86_64"/>
    <object type="Package" os_index="0" cpuset="0x0000000f" nodeset="0x00000005" gp_index="2">
      <info name="CPUVendor" value="AuthenticAMD"/>
      <info name="CPUFamilyNumber" value="25"/>
      <info name="CPUModelNumber" value="17"/>
      <info name="CPUModel" value="EPYC"/>
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" nodeset="0x00000001" gp_index="3" local_memory="1000"/>
      <object type="NUMANode" subtype="GPUMemory" os_index="2" cpuset="0x0000000f" nodeset="0x00000004" gp_index="5"/>
      <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[17-19]">
        <object type="Bridge" gp_index="11" bridge_type="1-1" depth="1" bridge_pci="0000:[18-18]" pci_busid="0000:17:00.0" pci_type="0604 [8086:2030] [8086:0000] 07" pci_link_speed="63.015385">
          <object type="PCIDev" gp_index="12" pci_busid="0000:18:00.0" pci_type="0302 [10de:2330] [10de:12a2] a1" pci_link_speed="63.015385">
            <object type="OSDev" gp_index="13" name="cuda0" subtype="CUDA" osdev_type="5"><info name="GPUModel" value="H100"/></object>
            <object type="OSDev" gp_index="14" name="nvml0" subtype="NVML" osdev_type="1">
              <info name="GPUVendor" value="NVIDIA Corporation"/><info name="GPUModel" value="NVIDIA H100"/><info name="NVIDIAUUID" value="GPU-1"/>
            </object>
          </object>
        </object>
        <object type="PCIDev" gp_index="15" pci_busid="0000:19:00.0" pci_type="0302 [10de:2330] [10de:12a2] a1" pci_link_speed="15.753846"/>
        <object type="PCIDev" gp_index="16" pci_busid="0000:19:00.1" pci_type="0207 [15b3:1021] [15b3:0001] 00" pci_link_speed="63.015385">
          <object type="OSDev" gp_index="17" name="ib0" osdev_type="2"><info name="Address" value="00:01"/></object>
          <object type="OSDev" gp_index="18" name="mlx5_0" osdev_type="3">
            <info name="NodeGUID" value="506B:4b03:003c:eee8"/><info name="SysImageGUID" value="506b:4b03:003c:eee8"/>
            <info name="Port1State" value="1"/><info name="Port1LID" value="0x527"/><info name="Port1GID3" value="fe80:0000:0000:0000:506b:4b03:003c:eee8"/>
            <info name="Port1GID0" value="0000:0000:0000:0000:0000:0000:0000:0000"/>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" gp_index="4">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" nodeset="0x00000002" gp_index="6"/>
    </object>
    <object type="Bridge" gp_index="20" bridge_type="0-1" depth="0" bridge_pci="0000:[00-00]">
      <object type="PCIDev" gp_index="21" pci_busid="0000:00:11.5" pci_type="0106 [8086:a1d2] [0000:0000] 09" pci_link_speed="0.000000"/>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" indexing="os">
    <indexes length="6">2 0 1 </indexes>
    <u64values length="27">10 30 40 30 10 21 </u64values><u64values length="9">40 21 10 </u64values>
  </distances2>
  <distances2hetero nbobjs="2" kind="9" name="NVLinkBandwidth">
    <indexes length="20">OSDev:14 PCIDev:15 </indexes>
    <u64values length="20">1000000 450000 450000 1000000 </u64values>
  </distances2hetero>
</topology>
`

func TestModern(t *testing.T) {
	inv := decode(t, modern)
	if inv.Host.Name != "n1" || inv.Host.Kernel != "6.8.0" || inv.Product.Vendor != "Maker" || inv.Product.Name != "X1" || inv.Product.Board != "B1" {
		t.Errorf("%+v %+v", inv.Host, inv.Product)
	}
	if c := inv.CPUs[0]; c.Arch != "x86_64" || c.Vendor != "AuthenticAMD" || c.Family != probe.Some(175) || c.Model != probe.Some(17) || c.Name != "EPYC" {
		t.Errorf("%+v", c)
	}
	var nodes []string
	for _, n := range inv.NUMA {
		nodes = append(nodes, fmt.Sprint(n.ID, " ", n.CPUs, " ", n.Distances, " ", n.Package))
	}
	if d := cmp.Diff([]string{"0 0-3 [10 21 30] 0", "1 4-7 [21 10 40] 1", "2  [30 40 10] unknown"}, nodes); d != "" {
		t.Error(d)
	}
	var pci []string
	for _, d := range inv.PCI {
		pci = append(pci, fmt.Sprint(d.Addr, " ", d.Parent, " ", d.Root, " ", d.Class, " ", d.Vendor, " ", d.SubVendor, " ", d.NUMA, " ", d.CPUs, " ", d.Current))
	}
	if d := cmp.Diff([]string{
		"0000:00:11.5 unknown pci0000:00 unknown 0x8086 unknown unknown  unknown",
		"0000:17:00.0 unknown pci0000:17 0x060400 0x8086 0x8086 0 0-3 Gen5 x16",
		// NVML's maximum stands in this rate, and the next has several forms.
		"0000:18:00.0 0000:17:00.0 pci0000:17 0x030200 0x10de 0x10de 0 0-3 unknown",
		"0000:19:00.0 unknown pci0000:17 0x030200 0x10de 0x10de 0 0-3 unknown",
		"0000:19:00.1 unknown pci0000:17 0x020700 0x15b3 0x15b3 0 0-3 Gen5 x16",
	}, pci); d != "" {
		t.Error(d)
	}
	g := inv.GPUs[0]
	if g.Index != probe.Some(0) || g.UUID != "GPU-1" || g.Addr.String() != "0000:18:00.0" || g.NVLinks.Known() || inv.GPUs[1].Index.Known() {
		t.Errorf("%+v", inv.GPUs)
	}
	if d := cmp.Diff([]probe.Attr{{Name: "cuda", Value: "cuda0"}, {Name: "nvlink_mbs 0000:19:00.0", Value: "450000"}}, g.Extra); d != "" {
		t.Error(d)
	}
	h := inv.HCAs[0]
	port := probe.HCAPort{Port: 1, State: "DOWN", LID: "0x527", GIDs: []probe.GID{{Index: 3, GID: "fe80:0000:0000:0000:506b:4b03:003c:eee8"}}}
	if h.Name != "mlx5_0" || h.NodeGUID != "506b:4b03:003c:eee8" || h.Addr.String() != "0000:19:00.1" || len(h.NetDevs) != 1 || h.NetDevs[0] != "ib0" ||
		len(h.Ports) != 1 || fmt.Sprint(h.Ports[0]) != fmt.Sprint(port) {
		t.Errorf("%+v", h)
	}
	if n := inv.NetDevs; len(n) != 1 || n[0].Name != "ib0" || n[0].Addr != h.Addr {
		t.Errorf("%+v", n)
	}
	var gaps []string
	for _, g := range inv.Gaps {
		gaps = append(gaps, g.What+" @"+g.Origin.Where)
	}
	if d := cmp.Diff([]string{"PCI NUMA nodes @l.xml:4", "PCIe links @l.xml:3", "gpu nvlinks @l.xml:49"}, gaps); d != "" {
		t.Error(d)
	}
}

// Format 3 states types as bits and the host beside the machine.
func TestFormat3(t *testing.T) {
	text := strings.NewReplacer(`version="2.0"`, `version="3.0"`, `osdev_type="3"`, `osdev_type="32"`, `osdev_type="2"`, `osdev_type="16"`, `osdev_type="1"`, `osdev_type="4"`, `osdev_type="5"`, `osdev_type="12"`,
		`    <info name="HostName" value="n1"/>`+"\n", "", "</topology>", `<info name="HostName" value="n1"/></topology>`, `[0000:0000] 09"`, `[0000:0000] 09 01"`).Replace(modern)
	want, got := decode(t, modern), decode(t, text)
	if got.PCI[0].Class != probe.Some(probe.PCIClass(0x010601)) {
		t.Error(got.PCI[0].Class)
	}
	strip := func(inv *probe.Inventory) string {
		inv.PCI[0].Class, inv.PCI[0].Extra = probe.Opt[probe.PCIClass]{}, nil
		var b bytes.Buffer
		if err := inv.Encode(&b); err != nil {
			t.Fatal(err)
		}
		// One line less above.
		return lineNumbers(b.String())
	}
	if d := cmp.Diff(strip(want), strip(got)); d != "" {
		t.Error(d)
	}
}

func lineNumbers(s string) string {
	parts := strings.Split(s, "l.xml:")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.TrimLeft(parts[i], "0123456789")
	}
	return strings.Join(parts, "l.xml:")
}

func TestLinkOf(t *testing.T) {
	for gbs, want := range map[float64]string{
		0.25: "Gen1 x1", 63.015385: "Gen5 x16", 121: "Gen6 x16", 8: "Gen2 x16",
		4: "unknown", 15.753846: "unknown", 31.507692: "unknown", 0.984615: "unknown", 17: "unknown", 1: "unknown",
	} {
		if got := linkOf(gbs).String(); got != want {
			t.Errorf("%v: %s, want %s", gbs, got, want)
		}
	}
}

func TestSets(t *testing.T) {
	for text, want := range map[string]string{
		"0x0": "", "0x000000ff,0xffff0000,0x00ffffff": "0-23,48-71", "0x10000000,,,,,,,0x0": "252", "0x1": "0", "0x0000ffff,,0x0": "64-79",
	} {
		if got, err := parseSet(text); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"0xf...f", "0xg", "0x1ffffffff", strings.Repeat(",", 1<<16)} {
		if got, err := parseSet(text); err == nil {
			t.Errorf("%.40s: %q", text, got)
		}
	}
}

func TestMustFail(t *testing.T) {
	put := func(old, new string) string {
		if !strings.Contains(modern, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(modern, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "  ", "f: empty"},
		{"binary", "<topology>\x00", "f:1:11: binary data"},
		{"UTF-16", "\xff\xfe<\x00", "f: UTF-16"},
		{"no XML", "hello", `f:1:1: text "hello" outside the document`},
		{"other root", "<system/>", "f:1:1: root element is <system>"},
		{"cut", modern[:strings.Index(modern, "mlx5_0")], "the document is cut off"},
		{"open", "<topology><object type=\"Machine\">", "f:1:34: the document is cut off inside <object> of line 1"},
		{"wrong end", put("</topology>", "</topologie>"), "</topologie> where </topology> is due (opened on line 3)"},
		{"closes nothing", "</topology>", "closes nothing"},
		{"second root", modern + "<topology/>", "a second root element"},
		{"deep", strings.Repeat("<topology>", 70), "nested deeper than 64"},
		{"declarations", put(`"hwloc2.dtd">`, `"hwloc2.dtd" [<!ENTITY a "b">]>`), "f:2:1: a document type with declarations"},
		{"other type", put("DOCTYPE topology", "DOCTYPE html"), "f:2:1: a document type"},
		{"external", put(`SYSTEM "hwloc2.dtd"`, `SYSTEM "hwloc2.dtd?a=%b;"`), "f:2:1: a document type"},
		{"entity", put(`value="X1"`, `value="&x;"`), "f:5:"},
		{"attribute twice", put(`os_index="0" cpuset="0x000000ff"`, `cpuset="0x1" cpuset="0x000000ff"`), "f:4:3: <object> has cpuset twice"},
		{"long value", put(`value="X1"`, `value="`+strings.Repeat("x", 5000)+`"`), "longer than 4096 bytes"},
		{"version", put(`version="2.0"`, `version="9"`), `f:3: topology version "9": want 1 to 3`},
		{"no machine", "<topology><object type=\"Package\"/></topology>", "want one object of type Machine"},
		{"system", "<topology><object type=\"System\"/></topology>", "several machines"},
		{"cpuset", put(`type="NUMANode" os_index="0" cpuset="0x0000000f"`, `type="NUMANode" os_index="0" cpuset="0xz"`), "f:16: NUMANode cpuset: CPU mask"},
		{"endless", put(`type="NUMANode" os_index="0" cpuset="0x0000000f"`, `type="NUMANode" os_index="0" cpuset="0xf...f"`), "a set without an end"},
		{"node twice", put(`type="NUMANode" os_index="1"`, `type="NUMANode" os_index="0"`), "NUMA node 0 stands on line 16 already"},
		{"node number", put(`type="NUMANode" os_index="1"`, `type="NUMANode" os_index="-1"`), `NUMANode os_index "-1"`},
		{"package twice", put(`type="Package" os_index="1"`, `type="Package" os_index="0"`), "package 0 appears twice"},
		{"family", put(`value="25"`, `value="twenty"`), `CPUFamilyNumber "twenty"`},
		{"bridge", put(`bridge_type="0-1"`, `bridge_type="9"`), `bridge_type "9": want 0-1 or 1-1`},
		{"buses", put(`0000:[17-19]`, `0000:[19-17]`), "no range of buses"},
		{"address", put(`pci_busid="0000:18:00.0"`, `pci_busid="18"`), "f:20: pci_busid: PCI address"},
		{"bridge address", put(`pci_busid="0000:17:00.0"`, `pci_busid="17"`), "f:19: pci_busid: PCI address"},
		{"address twice", put(`pci_busid="0000:19:00.0"`, `pci_busid="0000:18:00.0"`), "PCI function 0000:18:00.0 stands on line 20 already"},
		{"type", put(`0302 [10de:2330]`, `0302 10de:2330`), "pci_type"},
		{"rate", put(`pci_link_speed="15.753846"`, `pci_link_speed="NaN"`), `pci_link_speed "NaN"`},
		{"GUID", put(`506B:4b03`, `506B4b03`), "mlx5_0: NodeGUID"},
		{"port state", put(`name="Port1State" value="1"`, `name="Port1State" value="9"`), `mlx5_0 port 1: port state "9"`},
		{"GID", put(`fe80:0000`, `fe80:`), "mlx5_0 port 1: GID"},
		{"adapter twice", put(`name="ib0" osdev_type="2"`, `name="mlx5_0" osdev_type="3"`), "adapter mlx5_0 stands on line"},
		{"nvml twice", put(`name="cuda0"`, `name="nvml0"`), "nvml0 stands on line 21 already"},
		{"matrix", put(`nbobjs="3"`, `nbobjs="4"`), "<distances2> of 4 objects has 3 indexes and 9 values"},
		{"matrix size", put(`nbobjs="3"`, `nbobjs="99999"`), `nbobjs "99999"`},
		{"matrix value", put(`10 30 40`, `10 x 40`), `"x" is not a number`},
		{"matrix index", put(`2 0 1 <`, `2 a 1 <`), `index "a" is no NUMA node`},
		{"device name", put(`name="mlx5_0"`, `name="mlx5 &quot;0"`), "not a device name"},
	} {
		inv, err := Decode("f", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &syn) && c.name != "device name" {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A node of memory alone that does not say so has the processors of its place.
func TestSharedProcessors(t *testing.T) {
	inv := decode(t, strings.Replace(modern, ` subtype="GPUMemory"`, "", 1))
	if inv.NUMA[0].CPUs != "0-3" || inv.NUMA[2].CPUs != "" || inv.PCI[4].NUMA != probe.Some(0) {
		t.Errorf("%+v", inv.NUMA)
	}
	found := false
	for _, g := range inv.Gaps {
		found = found || g.What == "numa 2 cpus"
	}
	if !found {
		t.Errorf("%+v", inv.Gaps)
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		modern[:100]: true, "<topology>": true, "\xef\xbb\xbf<?xml?><!-- x --><topology version=\"2.0\">": true,
		"": false, "<topologydiff>": false, "<system>": false, "<?xml": false, "<!DOCTYPE topologydiff SYSTEM \"x\"><topologydiff>": false,
	} {
		if Sniff([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// Every hwloc file of the corpus reads, and nothing else is taken for one.
func TestCorpus(t *testing.T) {
	fromShared(t, "corpus/README.md")
	want := map[string]string{ // nodes, PCI functions, GPUs (with index), adapters, interfaces
		"corpus/hwloc/aws-g4dnmetal-t4x8.xml":                "2 31 8(8) 1 1",
		"corpus/hwloc/llnl-coral-ea-hwloc1.xml":              "2 22 4(0) 2 4",
		"corpus/hwloc/llnl-lassen-v100x4-ib.xml":             "2 28 4(4) 4 6",
		"corpus/hwloc/llnl-rzansel-hwloc1.xml":               "6 28 4(0) 4 6",
		"cases/011-power9-gpus-behind-x2-bridges/lstopo.xml": "2 18 4(4) 4 0",
	}
	found := 0
	for _, pattern := range []string{"corpus/*/*", "cases/*/*", "captures/*/*"} {
		files, err := filepath.Glob(filepath.Join(shared, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				continue // a folder
			}
			name, _ := filepath.Rel(shared, f)
			name = filepath.ToSlash(name)
			counts, known := want[name]
			if Sniff(raw[:min(len(raw), 4096)]) != known {
				t.Errorf("%s: sniffed %v", name, !known)
			}
			if !known {
				continue
			}
			found++
			inv, err := Decode(filepath.Base(f), bytes.NewReader(raw))
			if err != nil {
				t.Error(err)
				continue
			}
			indices := 0
			for _, g := range inv.GPUs {
				if g.Index.Known() {
					indices++
				}
			}
			if got := fmt.Sprintf("%d %d %d(%d) %d %d", len(inv.NUMA), len(inv.PCI), len(inv.GPUs), indices, len(inv.HCAs), len(inv.NetDevs)); got != counts {
				t.Errorf("%s: %s, want %s", name, got, counts)
			}
			for _, d := range inv.PCI {
				if !d.NUMA.Known() {
					t.Errorf("%s: %v: no NUMA node", name, d.Addr)
				}
			}
			for _, n := range inv.NUMA {
				if len(n.Distances) != len(inv.NUMA) {
					t.Errorf("%s: node %d: %v", name, n.ID, n.Distances)
				}
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d files are there", found, len(want))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(modern))
	f.Add([]byte(`<topology><object type="Machine" cpuset="0x3" nodeset="0x1"><distances nbobjs="1" latency_base="10.0"><latency value="1.0"/></distances><object type="NUMANode" os_index="0" cpuset="0x3" nodeset="0x1"/></object></topology>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		inv, err := Decode("f", bytes.NewReader(text))
		if (inv == nil) == (err == nil) {
			t.Fatalf("%v and %v", inv, err)
		}
		if inv != nil {
			if err := inv.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	raw := fromShared(b, "corpus/hwloc/aws-g4dnmetal-t4x8.xml")
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Decode("f", bytes.NewReader(raw)); err != nil {
			b.Fatal(err)
		}
	}
}
