package probe

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hardware is an inventory with the facts that rules about ACS, errors, bonds and
// peer memory read.
func hardware() *Inventory {
	return &Inventory{
		Schema: Schema,
		PCI: []PCIDevice{{
			Addr: BDF{Bus: 0x17}, ACS: Some(uint16(ACSRequestRedirect)), ATS: Some(false),
			Errors: &PCIeCounters{Correctable: Some[uint64](3), Fatal: Some[uint64](0)},
		}},
		HCAs:    []HCA{{Name: "mlx5_0", Ports: []HCAPort{{Port: 1, Counters: []Counter{{"symbol_error", 2}, {"link_downed", 0}}}}}},
		NetDevs: []NetDev{{Name: "bond0", Bond: &Bond{Mode: "802.3ad", Slaves: []string{"eth0", "eth1"}}}},
		Settings: Settings{
			OpenModule: Some(true), PeerMemory: Some([]string{}), CPUs: "0-3",
		},
		Refused: []FileFault{{File: "topo.xml", Line: 7, Msg: "b"}, {File: "topo.xml", Line: 3, Msg: "a", Assumes: "Gen3"}},
	}
}

func TestHardwareFactsRoundTrip(t *testing.T) {
	inv := hardware()
	inv.Normalize()
	if inv.Refused[0].Line != 3 || inv.HCAs[0].Ports[0].Counters[0].Name != "link_downed" {
		t.Errorf("not sorted: %v %v", inv.Refused, inv.HCAs[0].Ports[0].Counters)
	}
	var text bytes.Buffer
	if err := inv.Encode(&text); err != nil {
		t.Fatal(err)
	}
	back, err := Decode("x.json", text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inv, back, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Error(diff)
	}
	if p, ok := back.Settings.PeerMemory.Get(); !ok || len(p) != 0 {
		t.Error("no peer memory became unknown")
	}
}

func TestHardwareFactsMerge(t *testing.T) {
	a, b := hardware(), hardware()
	a.Settings.PeerMemory, a.PCI[0].ACS, a.PCI[0].Errors = Opt[[]string]{}, Opt[uint16]{}, nil
	b.Refused = b.Refused[:1]
	m, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Settings.PeerMemory.Known() || !m.PCI[0].ACS.Known() || m.PCI[0].Errors == nil || len(m.Conflicts) > 0 {
		t.Errorf("%+v %+v %v", m.Settings, m.PCI[0], m.Conflicts)
	}
	if len(m.Refused) != 3 {
		t.Errorf("refused: %v", m.Refused)
	}
}

func TestHardwareFactsValidate(t *testing.T) {
	for name, spoil := range map[string]func(*Inventory){
		"appears twice":              func(i *Inventory) { i.HCAs[0].Ports[0].Counters[1].Name = "symbol_error" },
		"not a device name":          func(i *Inventory) { i.NetDevs[0].Bond.Slaves[0] = "a b" },
		"not in ascending list form": func(i *Inventory) { i.Settings.CPUs = "3,0-2" },
		"settings":                   func(i *Inventory) { i.Settings.PeerMemory = Some([]string{"nv\nmem"}) },
		"refused":                    func(i *Inventory) { i.Refused[0].Msg = "a\x00b" },
	} {
		inv := hardware()
		if err := inv.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(inv)
		if err := inv.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
