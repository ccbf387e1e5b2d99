package probe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBDFSpellings(t *testing.T) {
	want := BDF{Domain: 0, Bus: 0x17, Dev: 0, Fn: 0}
	for _, s := range []string{"0000:17:00.0", "00000000:17:00.0", "17:00.0", "0000:17:00", "0:17:0.0"} {
		if got, err := ParseBDF(s); err != nil || got != want {
			t.Errorf("ParseBDF(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	if got, err := ParseBDF("0001:C7:1F.7"); err != nil || got.String() != "0001:c7:1f.7" {
		t.Errorf("upper case: %v, %v", got, err)
	}
	for _, s := range []string{"", "0000", "0000:17", "0000:17:20.0", "0000:17:00.8", "0000:1g:00.0", "fffffff:ffff:ff", "-000:17:00.0", "0000:17:00.0.0", "000000000:17:00.0"} {
		if got, err := ParseBDF(s); err == nil {
			t.Errorf("ParseBDF(%q) = %v, want an error", s, got)
		}
	}
}

func FuzzParseBDF(f *testing.F) {
	f.Add("0000:17:00.0")
	f.Add("FFFFFFFF:FF:1F.7")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBDF(s)
		if err != nil {
			return
		}
		if again, err := ParseBDF(b.String()); err != nil || again != b {
			t.Errorf("%q → %v → %v, %v", s, b, again, err)
		}
	})
}

func TestPCIeRates(t *testing.T) {
	// Encoded x16 rates as in PCI-SIG's tables, GB/s rounded to two decimals.
	for gen, want := range map[int]string{1: "4 GB/s", 2: "8 GB/s", 3: "15.75 GB/s", 4: "31.51 GB/s", 5: "63.02 GB/s", 6: "121 GB/s"} {
		r, ok := LinkOfGen(gen, 16).Encoded().Get()
		if !ok || r.String() != want {
			t.Errorf("Gen%d x16: %v, want %s", gen, r, want)
		}
	}
	if p := LinkOfGen(5, 16).Payload().Or(0).GBs(); p < 55 || p > 56 {
		t.Errorf("Gen5 x16 payload %.2f, measured 55.4", p)
	}
	if (PCIeLink{Width: Some(16)}).Encoded().Known() {
		t.Error("a link of unknown speed has no rate")
	}
	got := LinkOfGen(5, 16).Min(PCIeLink{Width: Some(8)})
	if got.String() != "Gen5 x8" {
		t.Errorf("Min: %v", got)
	}
}

func TestParsePCIeSpeed(t *testing.T) {
	for s, gen := range map[string]int{"32.0 GT/s PCIe": 5, "32 GT/s": 5, "8 GT/s": 3, "2.5 GT/s": 1, "32 GT/s PCIe/s": 5, "64.0 GT/s PCIe": 6, "Unknown": 0, "": 0, "Unknown speed": 0} {
		sp, err := ParsePCIeSpeed(s)
		if err != nil || sp.Or(0).Gen() != gen {
			t.Errorf("%q: %v, %v; want Gen%d", s, sp, err, gen)
		}
	}
	for _, s := range []string{"fast", "31 GT/s", "32.0", "NaN GT/s", "1e99 GT/s"} {
		if sp, err := ParsePCIeSpeed(s); err == nil {
			t.Errorf("%q: %v, want an error", s, sp)
		}
	}
}

func TestCPUSets(t *testing.T) {
	list, err := ParseCPUMask("ffffffff,00000000,0000000f")
	if err != nil || list != "0-3,64-95" {
		t.Errorf("mask: %q, %v", list, err)
	}
	if m := list.Mask(); m != "ffffffff,00000000,0000000f" {
		t.Errorf("Mask: %s", m)
	}
	if l, err := ParseCPUList("3,1-2,2\n"); err != nil || l != "1-3" {
		t.Errorf("list: %q, %v", l, err)
	}
	for _, s := range []string{"0-4294967295", "a", "5-3", "-1"} {
		if l, err := ParseCPUList(s); err == nil {
			t.Errorf("%q: %q, want an error", s, l)
		}
	}
}

// small is a host with one switch, a GPU and an HCA below it.
func small() *Inventory {
	sys := []Origin{{Source: SourceSysfs, Where: "sys"}}
	return &Inventory{
		Schema: Schema,
		Host:   Host{Name: "gx01"},
		NUMA:   []NUMANode{{ID: 0, CPUs: "0-31", Distances: []int{10}}},
		PCI: []PCIDevice{
			{Addr: MustBDF("0000:14:01.0"), Root: "pci0000:14", Class: Some(ClassBridgePCI), NUMA: Some(0), Current: LinkOfGen(5, 16), Max: LinkOfGen(5, 16), Origins: sys},
			{Addr: MustBDF("0000:17:00.0"), Parent: Some(MustBDF("0000:14:01.0")), Root: "pci0000:14", Class: Some(PCIClass(0x030200)), Vendor: Some(VendorNVIDIA), NUMA: Some(0), Current: LinkOfGen(5, 16), Max: LinkOfGen(5, 16), Origins: sys},
		},
		GPUs: []GPU{{Addr: Some(MustBDF("0000:17:00.0")), Origins: sys}},
		HCAs: []HCA{{Name: "mlx5_0", Ports: []HCAPort{{Port: 1, State: PortActive, Rate: Some(Mbps(400000))}}, Origins: sys}},
	}
}

func TestRoundTrip(t *testing.T) {
	var a, b bytes.Buffer
	if err := small().Encode(&a); err != nil {
		t.Fatal(err)
	}
	inv, err := Decode("x.json", a.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := inv.Encode(&b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a.String(), b.String()); d != "" {
		t.Error(d)
	}
	if !strings.Contains(a.String(), `"index": null`) {
		t.Error("unknown is not null")
	}
}

func TestDecodeNamesThePlace(t *testing.T) {
	for text, want := range map[string]string{
		``:                              "x.json:1:1: the document is cut off",
		`{"schema": "ncclmap.inventor`:  "x.json:1:29: the document is cut off",
		"{\n \"schema\": 5}":            "x.json:2:13: schema: number does not fit",
		`{"shema": ""}`:                 `unknown field "shema"`,
		`{"schema": "ncclmap.plan/v1"}`: `x.json: schema is "ncclmap.plan/v1", want "ncclmap.inventory/v1"`,
		"{\"schema\": \"ncclmap.inventory/v1\",\n \"gpus\": [{\"compute_capability\": 9.5}]}":                             "x.json:2:34: 9.5 is no int",
		`{"schema": "ncclmap.inventory/v1", "pci": [{"addr": "zz"}]}`:                                                     `x.json: PCI address "zz"`,
		`{"schema": "ncclmap.inventory/v1"} x`:                                                                            "x.json:1:",
		`{"schema": "ncclmap.inventory/v1", "numa": [{"id": 0, "cpus": ""}, {"id": 0, "cpus": ""}]}`:                      "x.json: numa 0: appears twice",
		`{"schema": "ncclmap.inventory/v1", "pci": [{"addr": "0000:01:00.0", "parent": "0000:01:00.0"}]}`:                 "pci 0000:01:00.0: is its own ancestor",
		`{"schema": "ncclmap.inventory/v1", "pci": [{"addr": "0000:01:00.0", "parent": "0000:02:00.0"}]}`:                 "parent 0000:02:00.0 is not in the inventory",
		`{"schema": "ncclmap.inventory/v1", "pci": [{"addr": "0000:01:00.0", "max_link": {"speed_gts": 7, "width": 5}}]}`: "no PCIe generation signals at 7.0 GT/s",
		`{"schema": "ncclmap.inventory/v1", "relations": [{"a": "GPU0", "b": "GPU1", "code": "FAST"}]}`:                   `code "FAST" is none of`,
	} {
		_, err := Decode("x.json", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	var buf bytes.Buffer
	if err := small().Encode(&buf); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add([]byte(`{"schema": "ncclmap.inventory/v1", "gpus": [{"index": 0, "nvlinks": [{"link": 0, "state": "up", "generation": 4, "remote": "nvswitch", "remote_addr": null}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		inv, err := Decode("f", text)
		if err != nil {
			return
		}
		var a, b bytes.Buffer
		if err := inv.Encode(&a); err != nil {
			t.Fatalf("decoded but does not encode: %v", err)
		}
		again, err := Decode("f", a.Bytes())
		if err != nil {
			t.Fatalf("encoded but does not decode: %v\n%s", err, a.Bytes())
		}
		if err := again.Encode(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, a.Bytes(), b.Bytes())
		}
	})
}

func TestMerge(t *testing.T) {
	sys := small()
	nvml := &Inventory{GPUs: []GPU{{
		Index: Some(0), Addr: Some(MustBDF("0000:17:00.0")), UUID: "GPU-1", Name: "NVIDIA H100", CC: Some(90),
		Origins: []Origin{{Source: SourceNVML, Where: "gpu 0"}},
	}}}
	xml := &Inventory{
		HCAs: []HCA{{Name: "mlx5_0", Ports: []HCAPort{{Port: 1, Rate: Some(Mbps(200000))}}, GDR: Some(true), Origins: []Origin{{Source: SourceNCCLXML, Where: "topo.xml:9"}}}},
		PCI:  []PCIDevice{{Addr: MustBDF("0000:17:00.0"), Max: PCIeLink{Speed: LinkOfGen(4, 16).Speed}, Origins: []Origin{{Source: SourceNCCLXML, Where: "topo.xml:3"}}}},
	}
	for _, order := range [][]*Inventory{{sys, nvml, xml}, {xml, nvml, sys}} {
		got, err := Merge(order...)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.GPUs) != 1 || got.GPUs[0].Name != "NVIDIA H100" || len(got.PCI) != 2 {
			t.Fatalf("GPUs %+v, PCI %d", got.GPUs, len(got.PCI))
		}
		// sysfs knows the width and 32 GT/s; the file's 16 GT/s loses and stays visible.
		if l := got.PCI[1].Max; l != LinkOfGen(5, 16) {
			t.Errorf("max link %v", l)
		}
		var fields []string
		for _, c := range got.Conflicts {
			fields = append(fields, c.Subject+" "+c.Field+" "+c.Values[0].Value+" / "+c.Values[1].Value)
		}
		if !strings.Contains(strings.Join(fields, "\n"), "pci:0000:17:00.0 max_link.speed_gts 32.0 GT/s / 16.0 GT/s") {
			t.Errorf("conflicts: %q", fields)
		}
		if !got.HCAs[0].GDR.Or(false) {
			t.Error("what only the file knows is lost")
		}
		if o := OriginOf(got.HCAs[0].Origins, "gdr"); o.Source != SourceNCCLXML {
			t.Errorf("origin of gdr: %v", o)
		}
		if o := OriginOf(got.HCAs[0].Origins, "ports"); o.Source != SourceSysfs {
			t.Errorf("origin of ports: %v", o)
		}
	}
}

func TestMergeByBusOrder(t *testing.T) {
	sys := &Inventory{GPUs: []GPU{
		{Addr: Some(MustBDF("0000:b7:00.0")), Origins: []Origin{{Source: SourceSysfs}}},
		{Addr: Some(MustBDF("0000:17:00.0")), Origins: []Origin{{Source: SourceSysfs}}},
	}}
	topo := &Inventory{
		GPUs:      []GPU{{Index: Some(0), Origins: []Origin{{Source: SourceSMITopo}}}, {Index: Some(1), Origins: []Origin{{Source: SourceSMITopo}}}},
		Relations: []Relation{{A: "GPU0", B: "GPU1", Code: "SYS"}},
	}
	got, err := Merge(sys, topo)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.GPUs) != 2 || got.GPUs[0].Addr != Some(MustBDF("0000:17:00.0")) || got.GPUs[0].Index != Some(0) {
		t.Errorf("%+v", got.GPUs)
	}
	if o := OriginOf(got.GPUs[0].Origins, "index"); o.Source != SourceInferred {
		t.Errorf("origin of index: %v", o)
	}
}

func TestMergeJoinsMarks(t *testing.T) {
	a := &Inventory{Settings: Settings{Guest: []Mark{{What: "virtio"}}, Modules: []Module{{Name: "nvidia"}}}}
	b := &Inventory{Settings: Settings{Guest: []Mark{{What: "hidden NVSwitch"}, {What: "virtio"}}, Modules: []Module{{Name: "nvidia"}, {Name: "ib_core"}}}}
	got, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Settings.Guest) != 2 || len(got.Settings.Modules) != 2 || len(got.Conflicts) != 0 {
		t.Errorf("%+v, conflicts %v", got.Settings, got.Conflicts)
	}
}

// Ports and links are compared one by one, and a difference names both sources.
func TestMergeComparesPorts(t *testing.T) {
	a, b := small(), small()
	b.HCAs[0].Ports[0].State = "DOWN"
	b.HCAs[0].Origins = []Origin{{Source: SourceNCCLXML, Where: "topo.xml:7"}}
	b.PCI, b.GPUs = nil, nil
	got, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Conflict{{Subject: "hca:mlx5_0 ports:1", Field: "state", Values: []ConflictValue{
		{PortActive, Origin{Source: SourceSysfs, Where: "sys"}}, {"DOWN", Origin{Source: SourceNCCLXML, Where: "topo.xml:7"}},
	}}}
	if d := cmp.Diff(want, got.Conflicts); d != "" {
		t.Error(d)
	}
}

func TestMergeRefusesTwoHosts(t *testing.T) {
	a, b := small(), small()
	b.Host.Name = "gx02"
	if _, err := Merge(a, b); err == nil || !strings.Contains(err.Error(), "gx01 and gx02") {
		t.Errorf("got %v", err)
	}
}

func TestCompareNames(t *testing.T) {
	if CompareNames("mlx5_2", "mlx5_10") >= 0 || CompareNames("mlx5_10", "mlx5_10") != 0 || CompareNames("eth0", "mlx5_0") >= 0 {
		t.Error("order")
	}
}

func TestBDFOfBusID(t *testing.T) {
	for id, want := range map[uint64]string{0x60: "0000:00:06.0", 0x1b000: "0000:1b:00.0", 0x1901000: "0019:01:00.0", 0xd1001: "0000:d1:00.1"} {
		if a, ok := BDFOfBusID(id); !ok || a.String() != want {
			t.Errorf("%x: %v %v", id, a, ok)
		}
	}
	if _, ok := BDFOfBusID(0x1b00f); ok {
		t.Error("function 15 taken for an address")
	}
}
