package check

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

func brief(res Result) []string {
	out := []string{}
	for _, f := range res.Findings {
		out = append(out, f.Rule+" "+f.Severity.String()+" "+strings.Join(f.Subjects, " "))
	}
	return out
}

func TestHealthyMachinesStaySilent(t *testing.T) {
	for _, c := range []struct {
		name string
		host *host
		gaps string // the not-checked line
	}{
		{"8 H100 at work", h100x8(), ""},
		{"8 H100 idle", h100x8().idle(),
			"not checked: the GPU is idle, and an idle GPU lowers its link speed (8 GPUs)"},
		{"8 H100, sysfs alone and idle", h100x8().idle().sysfsOnly(),
			"not checked: what the driver reports of the GPU is not in the sources (8 GPUs); state of the NVLinks not in the sources (8 GPUs); the GPU's load is not known, and an idle GPU lowers its link speed (8 GPUs)"},
		{"8 H100 in a topology file", h100x8().asFile(),
			"not checked: the ACS settings of PCIe bridges are not in the sources (1 host); what the driver reports of the GPU is not in the sources (8 GPUs); port state not known (8 ports); whether an IOMMU translates is not in the sources (1 host); current PCIe link not in the sources (8 GPUs, 8 HCAs, 8 PCI functions)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := Run(c.host.topology(t), All())
			complete(t, res)
			for _, f := range res.Findings {
				t.Errorf("%s: %s; expected %s", f.Rule, f.Observed, f.Expected)
			}
			if res.NotChecked() != c.gaps {
				t.Errorf("%s\nwant %s", res.NotChecked(), c.gaps)
			}
			if _, any := res.Worst(); any {
				t.Error("a worst severity without findings")
			}
		})
	}
}

func TestFlatGuest(t *testing.T) {
	res := Run(flatVM().topology(t), All())
	complete(t, res)
	want := []string{"numa-unknown info gpu:0000:00:06.0 gpu:0000:00:07.0", "vm-flat-pci info host:localhost"}
	if got := brief(res); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if worst, ok := res.Worst(); !ok || worst != Info {
		t.Errorf("worst %v %v", worst, ok)
	}
	if line := res.NotChecked(); !strings.Contains(line, "claims") || strings.Contains(line, "\n") {
		t.Errorf("not checked: %q", line)
	}
}

func TestEmptyInventory(t *testing.T) {
	res := Run((&host{}).topology(t), All())
	if len(res.Findings)+len(res.Gaps) != 0 || res.NotChecked() != "" {
		t.Errorf("%+v", res)
	}
}

func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All() {
		if r.ID == "" || r.Title == "" || len(r.Doc) < 100 || r.Run == nil && r.Across == nil {
			t.Errorf("%q: id, title, doc or run is missing", r.ID)
		}
		if seen[r.ID] {
			t.Errorf("%s appears twice", r.ID)
		}
		seen[r.ID] = true
		if _, err := os.Stat(strings.ReplaceAll(r.ID, "-", "_") + ".go"); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
		for _, id := range r.Replaces {
			other, ok := Find(id)
			if !ok {
				t.Errorf("%s replaces %s, which is no rule", r.ID, id)
			}
			if slices.Contains(other.Replaces, r.ID) || id == r.ID {
				t.Errorf("%s and %s replace each other", r.ID, id)
			}
		}
		if got, ok := Find(r.ID); !ok || got.Title != r.Title {
			t.Errorf("Find(%s) = %q", r.ID, got.Title)
		}
	}
	if _, ok := Find("no-such-rule"); ok {
		t.Error("found a rule that does not exist")
	}
}

func TestTables(t *testing.T) {
	boardIDs, adapterIDs := map[probe.PCIID]bool{}, map[[2]probe.PCIID]bool{}
	for _, b := range boards {
		if boardIDs[b.Device] || b.Name == "" || b.Source == "" || b.NVLinks < 0 || b.NVLinks > 18 {
			t.Errorf("board %s: twice, or name, source or count missing", b.Device)
		}
		boardIDs[b.Device] = true
		if !slices.Contains([]Form{FormSXM, FormPCIe, FormNVL, FormSuperchip}, b.Form) || b.OnChip != (b.Form == FormSuperchip) {
			t.Errorf("board %s: form %q", b.Device, b.Form)
		}
	}
	for _, a := range adapters {
		id := [2]probe.PCIID{a.Vendor, a.Device}
		if adapterIDs[id] || a.Name == "" || a.Source == "" || (a.Fastest == 0) != a.VF {
			t.Errorf("adapter %v: twice, or name, source or rate missing", id)
		}
		adapterIDs[id] = true
	}
	// The counts that a wrong table would turn into false alarms.
	for id, want := range map[probe.PCIID]int{0x2330: 18, 0x2321: 12, 0x2331: 12, 0x2324: 8, 0x20f3: 8, 0x20b2: 12, 0x1db5: 6, 0x2335: 18, 0x233b: 18, 0x2230: 4, 0x26b9: 0, 0x2e12: 0} {
		b, ok := BoardOf(&probe.PCIDevice{Vendor: probe.Some(probe.VendorNVIDIA), Device: probe.Some(id)})
		if !ok || b.NVLinks != want {
			t.Errorf("board %s: %d NVLinks, want %d", id, b.NVLinks, want)
		}
	}
	if _, ok := BoardOf(&probe.PCIDevice{Vendor: probe.Some(probe.VendorMellanox), Device: probe.Some(probe.PCIID(0x2330))}); ok {
		t.Error("a board of another vendor")
	}
}

func TestJSON(t *testing.T) {
	res := Run(h100x8().with(func(h *host) { h.width(hcaAt(0), 8) }).topology(t), All())
	raw, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Findings []map[string]any
		Gaps     []map[string]any
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	keysOf := func(m map[string]any) []string {
		var out []string
		for k := range m {
			out = append(out, k)
		}
		slices.Sort(out)
		return out
	}
	if len(doc.Findings) != 1 || doc.Gaps == nil {
		t.Fatalf("%s", raw)
	}
	f := doc.Findings[0]
	if got, want := keysOf(f), []string{"certainty", "evidence", "expected", "fix", "observed", "rule", "severity", "subjects"}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	if f["severity"] != "critical" || f["certainty"] != "sure" {
		t.Errorf("%v %v", f["severity"], f["certainty"])
	}
	var back Result
	if err := json.Unmarshal(raw, &back); err != nil || !slices.Equal(brief(back), brief(res)) {
		t.Errorf("read back: %v %v", err, brief(back))
	}
	where := res.Findings[0].Evidence[0].Where
	if want := "sys/bus/pci/devices/" + hcaAt(0) + "/current_link_width"; where != want {
		t.Errorf("evidence at %s, want %s", where, want)
	}
	if raw, _ := json.Marshal(Result{Findings: []Finding{}, Gaps: []Gap{}}); string(raw) != `{"findings":[],"gaps":[]}` {
		t.Errorf("empty result: %s", raw)
	}
}

func TestSameInputSameBytes(t *testing.T) {
	h := h100x8().linksDown(1, 0, 1, 2).linksDown(6, 5).with(func(h *host) {
		h.width(hcaAt(5), 8)
		h.speed(gpuAt(0), 3)
		h.down(2, "DOWN", "Polling")
		h.inv.GPUs[3].NVLinks = toNothing
	})
	first, _ := json.Marshal(Run(h.topology(t), All()))
	for range 5 {
		if again, _ := json.Marshal(Run(h.topology(t), All())); !slices.Equal(first, again) {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

func TestWords(t *testing.T) {
	for i, s := range []string{"info", "warning", "critical"} {
		if got, err := ParseSeverity(s); err != nil || got != Severity(i) || got.String() != s {
			t.Errorf("%s: %v %v", s, got, err)
		}
	}
	for _, s := range []string{"", "never", "Info", "fatal"} {
		if _, err := ParseSeverity(s); err == nil {
			t.Errorf("severity %q was accepted", s)
		}
		var c Certainty
		if c.UnmarshalText([]byte(s)) == nil {
			t.Errorf("certainty %q was accepted", s)
		}
	}
	if got := Severity(7).String(); got != "Severity(7)" {
		t.Error(got)
	}
}

func TestOrderAndOnce(t *testing.T) {
	say := func(s Severity, subjects ...string) func(*Pass) {
		return func(p *Pass) {
			p.Report(Finding{Severity: s, Subjects: subjects, Expected: "good", Observed: "bad", Fix: "mend"})
		}
	}
	rules := []Rule{
		{ID: "b-effect", Run: say(Critical, "gpu:1", "hca:x")},
		{ID: "a-cause", Replaces: []string{"b-effect"}, Run: say(Warning, "gpu:1")},
		{ID: "c-other", Run: func(p *Pass) { say(Info, "gpu:10")(p); say(Info, "gpu:2")(p) }},
		{ID: "d-whole", Replaces: []string{"c-far"}, Run: say(Info, p0)},
		{ID: "c-far", Run: say(Warning, "gpu:2")},
		{ID: "e-apart", Replaces: []string{"c-other"}, Run: say(Info, "gpu:3")},
	}
	res := Run((&host{}).topology(t), rules)
	want := []string{"a-cause critical gpu:1", "d-whole warning host:h", "c-other info gpu:2", "c-other info gpu:10", "e-apart info gpu:3"}
	if got := brief(res); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if e := res.Findings[0].Evidence; len(e) != 1 || e[0].Where != "b-effect" || !strings.Contains(e[0].Fact, "bad") {
		t.Errorf("evidence of what was replaced: %+v", e)
	}
	joined := Join(Result{Findings: res.Findings[2:]}, Result{Findings: res.Findings[:2], Gaps: []Gap{{Rule: "z"}}})
	if got := brief(joined); !slices.Equal(got, want) || len(joined.Gaps) != 1 {
		t.Errorf("joined: %q", got)
	}
}

const p0 = "host:h"

// Addresses are hexadecimal numbers, names hold decimal ones.
func TestOrderOfSubjects(t *testing.T) {
	want := []string{
		"gpu:2", "gpu:10", "gpu:0000:1b:00.0", "gpu:0000:43:00.0", "gpu:0000:9d:00.0", "gpu:0000:b1:00.0", "gpu:0001:01:00.0", "gpu:0009:01:00.0", "gpu:0010:01:00.0",
		"hca:mlx5_2", "hca:mlx5_2--pci:0000:1a:00.0", "hca:mlx5_2--pci:0000:42:00.0", "hca:mlx5_2--pci:0000:9c:00.0", "hca:mlx5_10",
		"numa:1", "numa:unknown", "nvswitch:0000:0b:00.0", "nvswitch:0000:10:00.0", "port:mlx5_2/1", "port:mlx5_10/1",
	}
	got := slices.Clone(want)
	for i := range got { // no order that a stable sort would keep
		got[i] = want[(i*7+3)%len(want)]
	}
	slices.SortFunc(got, compareKeys)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if compareKeys("gx2/gpu:0000:9d:00.0", "gx10/gpu:0000:1b:00.0") >= 0 {
		t.Error("hosts come first")
	}
	h := &host{}
	h.numa(1)
	var keys []string
	for i, bus := range []string{"9d", "1b", "43"} {
		h.gpu("0000:"+bus+":00.0", h.onRoot(i, 0), "10de:2330", 90, 0, gen5)
		h.inv.GPUs[i].Index = probe.Opt[int]{}
	}
	for _, f := range Run(h.topology(t), All()).Findings {
		keys = append(keys, f.Subjects...)
	}
	if want := want[2:5]; !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
}

func TestGapsAreJoined(t *testing.T) {
	rules := []Rule{{ID: "r", Run: func(p *Pass) {
		p.Gap("why", "how", "gpu:2")
		p.Gap("why", "how", "gpu:1", "gpu:2")
		p.Gap("why", "how") // nothing to say it about
		p.Gap("other", "how", "port:mlx5_0/1", "rank:3")
	}}}
	res := Run((&host{}).topology(t), rules)
	if len(res.Gaps) != 2 {
		t.Fatalf("%+v", res.Gaps)
	}
	if got, want := res.NotChecked(), "not checked: why (2 GPUs); other (1 port, 1 rank)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestGuestMarks(t *testing.T) {
	pci := func(id string) func(*host) {
		return func(h *host) { h.pci("0000:07:00.0", "", id, 0x020000, 0, gen5) }
	}
	for _, c := range []struct {
		name string
		set  func(*host)
		want string // in the first mark; "" = bare metal
	}{
		{"bare metal", func(*host) {}, ""},
		{"recorded mark", func(h *host) { h.guest() }, "QEMU"},
		{"vendor", func(h *host) { h.inv.Product = probe.Product{Vendor: "Amazon EC2", Name: "p5.48xlarge"} }, "Amazon EC2"},
		{"vendor with suffix", func(h *host) { h.inv.Product.Vendor = "VMware, Inc." }, "VMware"},
		{"metal is no guest", func(h *host) { h.inv.Product = probe.Product{Vendor: "Amazon EC2", Name: "i3.metal"} }, ""},
		{"server vendor", func(h *host) { h.inv.Product.Vendor = "Supermicro" }, ""},
		{"virtio function", pci("1af4:1041"), "0x1af4"},
		{"QEMU bridge", pci("1b36:000c"), "0x1b36"},
		{"emulated switch", func(h *host) {
			h.pci("0000:20:00.0", h.bridge("0000:1f:00.0", "", "104c:8232", 0, probe.LinkOfGen(1, 1)), "15b3:101e", 0x020000, 0, gen5)
		}, "104c:8232"},
		{"real TI switch", func(h *host) {
			h.pci("0000:20:00.0", h.bridge("0000:1f:00.0", "", "104c:8232", 0, probe.LinkOfGen(1, 1)), "8086:10d3", 0x020000, 0, probe.LinkOfGen(1, 1))
		}, ""},
		{"hidden NVSwitch", func(h *host) {
			h.gpu("0000:21:00.0", h.onRoot(1, 0), "10de:2330", 90, 0, gen5, probe.NVLink{State: probe.LinkUp, RemoteKind: probe.RemoteSwitch})
		}, "hidden"},
		{"NVSwitch 4 is hidden on bare metal too", func(h *host) {
			h.gpu("0000:21:00.0", h.onRoot(1, 0), "10de:2901", 100, 0, gen5, probe.NVLink{State: probe.LinkUp, RemoteKind: probe.RemoteSwitch})
		}, ""},
		{"GH200 with switches outside", func(h *host) {
			h.gpu("0000:21:00.0", h.onRoot(1, 0), "10de:2342", 90, 0, gen5, probe.NVLink{State: probe.LinkUp, RemoteKind: probe.RemoteSwitch})
		}, ""},
	} {
		h := &host{}
		h.numa(1)
		c.set(h)
		marks := GuestMarks(h.topology(t))
		if c.want == "" && len(marks) > 0 || c.want != "" && (len(marks) == 0 || !strings.Contains(marks[0].Fact, c.want)) {
			t.Errorf("%s: %v, want %q", c.name, marks, c.want)
		}
	}
}

func TestSourcesInEvidence(t *testing.T) {
	merged := []probe.Origin{
		{Source: probe.SourceNVML, Where: "device 0"},
		{Source: probe.SourceSysfs, Where: "sys/bus/pci/devices/0000:18:00.0", Fields: []string{"current_link.width"}},
	}
	if e := evidence(merged, "current_link.width", "current_link_width", "x"); e.Where != "sys/bus/pci/devices/0000:18:00.0/current_link_width" {
		t.Error(e)
	}
	if e := evidence(merged, "pstate", "file", "P%d", 0); e.Where != "device 0" || e.Fact != "P0" {
		t.Error(e)
	}
	whole := []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/dmi/id/sys_vendor"}}
	if e := evidence(whole, "vendor", "sys_vendor", "x"); e.Where != whole[0].Where {
		t.Error(e)
	}
	if got := (Evidence{"sysfs", "sys/x", "y"}).String(); got != "sysfs sys/x: y" {
		t.Error(got)
	}
}

func TestNCCLBefore(t *testing.T) {
	for v, want := range map[string]bool{"2.11.4": true, "2.12.0": false, "2.28.3": false, "3.0": false, "": false, "master": false, "1.9": true} {
		if got := NCCLBefore(v, 2, 12); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
	if !NCCLBefore("2.25.0", 2, 25, 1) || NCCLBefore("2.25.1", 2, 25, 1) || NCCLBefore("2.26", 2, 25, 1) {
		t.Error("the patch level is not compared")
	}
}

func BenchmarkRun(b *testing.B) {
	topo := h100x8().topology(b)
	b.ReportAllocs()
	for b.Loop() {
		if res := Run(topo, All()); len(res.Findings) > 0 {
			b.Fatal(res.Findings)
		}
	}
}

// TestNoPanicOnPartialFacts drops one kind of fact after the other.
func TestNoPanicOnPartialFacts(t *testing.T) {
	for name, drop := range map[string]func(*probe.Inventory){
		"pci":   func(i *probe.Inventory) { i.PCI = nil },
		"numa":  func(i *probe.Inventory) { i.NUMA = nil },
		"hcas":  func(i *probe.Inventory) { i.HCAs = nil },
		"gpus":  func(i *probe.Inventory) { i.GPUs = nil },
		"ports": func(i *probe.Inventory) { i.HCAs[0].Ports = nil },
		"addresses": func(i *probe.Inventory) {
			i.GPUs[0].Addr, i.HCAs[0].Addr = probe.Opt[probe.BDF]{}, probe.Opt[probe.BDF]{}
		},
		"ids": func(i *probe.Inventory) {
			forPCI(i, func(d *probe.PCIDevice) { d.Device, d.Vendor = probe.Opt[probe.PCIID]{}, probe.Opt[probe.PCIID]{} })
		},
		"links": func(i *probe.Inventory) {
			forPCI(i, func(d *probe.PCIDevice) { d.Current, d.Max = probe.PCIeLink{}, probe.PCIeLink{} })
		},
		"maxima":     func(i *probe.Inventory) { forPCI(i, func(d *probe.PCIDevice) { d.Max = probe.PCIeLink{} }) },
		"roots":      func(i *probe.Inventory) { forPCI(i, func(d *probe.PCIDevice) { d.Root = "" }) },
		"origins":    func(i *probe.Inventory) { forPCI(i, func(d *probe.PCIDevice) { d.Origins = nil }) },
		"rates":      func(i *probe.Inventory) { i.HCAs[0].Ports[0].Rate = probe.Opt[probe.Rate]{} },
		"nvlinks":    func(i *probe.Inventory) { i.GPUs[0].NVLinks = probe.Opt[[]probe.NVLink]{} },
		"everything": func(i *probe.Inventory) { *i = probe.Inventory{GPUs: []probe.GPU{{}}, HCAs: []probe.HCA{{Name: "x"}}} },
	} {
		h := h100x8()
		drop(&h.inv)
		topo, err := graph.Build(&h.inv)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, f := range Run(topo, All()).Findings {
			t.Errorf("without %s: %s %v: %s", name, f.Rule, f.Subjects, f.Observed)
		}
	}
}

func forPCI(i *probe.Inventory, f func(*probe.PCIDevice)) {
	for n := range i.PCI {
		f(&i.PCI[n])
	}
}
