package tune_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

func analyse(t testing.TB, source string, change func(*probe.Inventory)) *tune.Analysis {
	t.Helper()
	inv, err := open.ReadHost(source)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(inv)
	}
	an, err := tune.Analyse(inv)
	if err != nil {
		t.Fatal(err)
	}
	return an
}

// The recorded machine: nothing speaks against NCCL's defaults.
func TestCaptureSetsNothing(t *testing.T) {
	p := analyse(t, "example:2xh200-vm", nil).Plan
	if len(p.Variables) != 0 {
		t.Errorf("set: %+v", p.Variables)
	}
	why := map[string]string{}
	for _, d := range p.Declined {
		why[d.Name] = d.Why
	}
	for name, want := range map[string]string{
		"NCCL_IB_HCA":        "no RDMA device",
		"NCCL_SOCKET_IFNAME": "only one physical interface, eth0",
		"NCCL_P2P_LEVEL":     "every GPU pair talks over NVLink",
		"NCCL_TOPO_FILE":     "a file would change nothing",
		"NCCL_PROTO":         "never forced on",
	} {
		if !strings.Contains(why[name], want) {
			t.Errorf("%s declined with %q, want %q", name, why[name], want)
		}
	}
}

// NCCL 2.10.3 and 2.11.4 corrupt data over LL128 while an NVLink is down; other
// versions do not, and a healthy machine needs nothing.
func TestLL128IsLeftOutOnlyWhereItCorrupts(t *testing.T) {
	with := func(version string) func(*probe.Inventory) {
		return func(inv *probe.Inventory) {
			inv.Runtime.NCCL = version
			inv.Runtime.Origins = append(inv.Runtime.Origins, probe.Origin{Source: "test", Fields: []string{"nccl"}})
		}
	}
	for _, c := range []struct {
		source, version string
		set             bool
	}{
		{"example:h100x8-nvlink-down", "2.11.4", true},
		{"example:h100x8-nvlink-down", "2.10.3", true},
		{"example:h100x8-nvlink-down", "2.28.3", false},
		{"example:h100x8-nvlink-down", "", false},
		{"example:h100x8", "2.11.4", false},
	} {
		p := analyse(t, c.source, with(c.version)).Plan
		if got := len(p.Variables) == 1; got != c.set {
			t.Errorf("%s with NCCL %q: %v", c.source, c.version, p)
			continue
		}
		if !c.set {
			continue
		}
		v := p.Variables[0]
		if v.Name != "NCCL_PROTO" || v.Value != "^LL128" || len(v.Evidence) < 2 || v.Why == "" || v.Risk == "" || v.Verify == "" {
			t.Errorf("%+v", v)
		}
		for _, d := range p.Declined {
			if d.Name == v.Name {
				t.Error("set and declined at once")
			}
		}
		var b bytes.Buffer
		if err := ncclenv.Write(&b, ncclenv.Shell, p.Head(), p.Settings()); err != nil || !strings.Contains(b.String(), "\nexport NCCL_PROTO='^LL128'\n") && !strings.Contains(b.String(), "\nexport NCCL_PROTO=^LL128\n") {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}

// On the recorded machine NCCL's own log says 12 × 30 GB/s, 24 channels, and
// 15.2 µs and 360 GB/s for Ring Simple.
func TestCapturePrediction(t *testing.T) {
	an := analyse(t, "example:2xh200-vm", nil)
	d := an.Pred.Doc()
	if d.Unknown != "" || len(d.Graphs) != 3 || d.Graphs[0].Channels != 12 || d.Graphs[0].BWIntra != 30 || d.Channels != probe.Some(24) {
		t.Fatalf("%+v", d)
	}
	for _, x := range d.Tuning {
		if x.Collective == model.AllReduce && x.Algo == model.Ring && x.Proto == model.Simple && (x.BWGBs != 360 || x.LatencyUS < 15.199 || x.LatencyUS > 15.201) {
			t.Errorf("Ring Simple: %g GB/s, %g µs", x.BWGBs, x.LatencyUS)
		}
	}
}

// Without any word on NVLinks there is no prediction, rather than one over PCIe.
func TestNoPredictionWithoutNVLinkFacts(t *testing.T) {
	an := analyse(t, "example:h100x8", func(inv *probe.Inventory) {
		inv.GPUs[5].NVLinks = probe.Opt[[]probe.NVLink]{}
	})
	if an.Pred.Unknown == nil || !strings.Contains(an.Pred.Unknown.Error(), "GPU5") {
		t.Errorf("got %v", an.Pred.Unknown)
	}
	if d := an.Pred.Doc(); d.Unknown == "" || len(d.Tuning) != 0 || d.Channels.Known() {
		t.Errorf("%+v", d)
	}
}

// What is not known is not stated as a fact.
func TestDeclinedSaysWhatIsNotKnown(t *testing.T) {
	p := analyse(t, "example:h100x8", func(inv *probe.Inventory) {
		for i := range inv.HCAs {
			inv.HCAs[i].Ports, inv.HCAs[i].Addr = nil, probe.Opt[probe.BDF]{}
		}
	}).Plan
	for _, d := range p.Declined {
		want := map[string]string{"NCCL_IB_HCA": "not known", "NCCL_IB_GID_INDEX": "not known", "NCCL_CROSS_NIC": "nothing proves", "NCCL_TOPO_FILE": "was not seen"}[d.Name]
		if !strings.Contains(d.Why, want) {
			t.Errorf("%s: %s", d.Name, d.Why)
		}
	}
	// A port that is down has no rate worth naming.
	p = analyse(t, "example:h100x8", func(inv *probe.Inventory) {
		inv.HCAs[2].Ports[0].State, inv.HCAs[2].Ports[0].Rate = "DOWN", probe.Some(probe.Mbps(10000))
	}).Plan
	if why := p.Declined[0].Why; !strings.Contains(why, "all of one kind") {
		t.Error(why)
	}
}

// The fingerprint is the machine's, not the host's or its sources': names and the
// order of lists do not change it, another model, a slower link or a lost one does.
func TestFingerprint(t *testing.T) {
	of := func(change func(*probe.Inventory)) string {
		return analyse(t, "example:h100x8", change).Plan.Fingerprint
	}
	healthy := of(nil)
	if len(healthy) != 12 {
		t.Errorf("%q", healthy)
	}
	for what, change := range map[string]func(*probe.Inventory){
		"name":    func(inv *probe.Inventory) { inv.Host.Name = "gx42" },
		"serials": func(inv *probe.Inventory) { inv.GPUs[0].UUID = "GPU-1" },
		"order": func(inv *probe.Inventory) {
			slices.Reverse(inv.PCI)
			slices.Reverse(inv.GPUs)
			slices.Reverse(inv.HCAs)
		},
		"version": func(inv *probe.Inventory) { inv.Runtime.NCCL = "2.27.3" },
	} {
		if got := of(change); got != healthy {
			t.Errorf("%s: %s, want %s", what, got, healthy)
		}
	}
	seen := map[string]string{healthy: "healthy"}
	for what, change := range map[string]func(*probe.Inventory){
		"slower links": func(inv *probe.Inventory) {
			for i := range inv.PCI {
				inv.PCI[i].Max = probe.LinkOfGen(4, 16)
			}
		},
		"NVLink down": func(inv *probe.Inventory) {
			links, _ := inv.GPUs[3].NVLinks.Get()
			links[4] = probe.NVLink{Link: links[4].Link, State: probe.LinkDown}
		},
		"an adapter less": func(inv *probe.Inventory) { inv.HCAs = inv.HCAs[1:] },
		"another GPU": func(inv *probe.Inventory) {
			for i := range inv.PCI {
				if a, _ := inv.GPUs[0].Addr.Get(); inv.PCI[i].Addr == a {
					inv.PCI[i].Device = probe.Some(probe.PCIID(0x2335))
				}
			}
		},
	} {
		got := of(change)
		if seen[got] != "" {
			t.Errorf("%s: %s, as %s", what, got, seen[got])
		}
		seen[got] = what
	}
}

// The head of a file says for what it counts; what is not known is not stated.
func TestHead(t *testing.T) {
	p := analyse(t, "example:h100x8", nil).Plan
	if got, want := p.Head()[1], "Made for topology fingerprint "+p.Fingerprint+" and an unknown version of NCCL."; got != want || p.NCCL != "" || p.Date != "" {
		t.Errorf("%q, want %q", got, want)
	}
	p = analyse(t, "example:h100x8", func(inv *probe.Inventory) {
		inv.Runtime.NCCL = "2.27.3"
		inv.Runtime.Origins = append(inv.Runtime.Origins, probe.Origin{Source: "test", Fields: []string{"nccl"}})
	}).Plan
	p.Date = "2026-01-02"
	if got, want := p.Head()[1], "Made on 2026-01-02 for topology fingerprint "+p.Fingerprint+" and NCCL 2.27.3."; got != want || p.NCCL != "2.27.3" {
		t.Errorf("%q, want %q", got, want)
	}
}

func BenchmarkAnalyse(b *testing.B) {
	inv, err := open.ReadHost("example:h100x8")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tune.Analyse(inv); err != nil {
			b.Fatal(err)
		}
	}
}
