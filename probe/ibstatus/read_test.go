package ibstatus

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

const status = `root@gx01:~# ibstatus
Infiniband device 'mlx5_0' port 1 status:
	default gid:	 fe80:0000:0000:0000:043f:7203:00f8:03ce
	base lid:	 0x81
	sm lid:		 0x1
	state:		 4: ACTIVE
	phys state:	 5: LinkUp
	rate:		 200 Gb/sec (4X HDR)
	link_layer:	 InfiniBand

Infiniband device 'mlx5_1' port 1 status:
	default gid:	 fe80:0000:0000:0000:043f:7203:00fc:8334
	base lid:	 0xffff
	sm lid:		 0x0
	state:		 1: DOWN
	phys state:	 3: Disabled
	rate:		 10 Gb/sec (4X)
	link_layer:	 InfiniBand

Infiniband device 'mlx5_bond_0' port 1 status:
	default gid:	 0000:0000:0000:0000:0000:0000:0000:0000
	state:		 4: ACTIVE
	rate:		 200 Gb/sec (2X NDR)
	link_layer:	 Ethernet
root@gx01:~# uptime
	state: not of a port
`

var opt = cmp.AllowUnexported(probe.Opt[int]{}, probe.Opt[bool]{}, probe.Opt[probe.BDF]{}, probe.Opt[probe.Rate]{}, probe.Opt[probe.PCIID]{})

func TestDecode(t *testing.T) {
	at := func(line int) []probe.Origin { return []probe.Origin{probe.LineOf("ibstatus", "ib.txt", line)} }
	want := []probe.HCA{
		{Name: "mlx5_0", Origins: at(2), Ports: []probe.HCAPort{{
			Port: 1, LinkLayer: "InfiniBand", State: "ACTIVE", PhysState: "LinkUp", Rate: probe.Some(probe.Rate(25e9)), RateText: "200 Gb/sec (4X HDR)", LID: "0x81",
			GIDs: []probe.GID{{GID: "fe80:0000:0000:0000:043f:7203:00f8:03ce"}},
		}}},
		{Name: "mlx5_1", Origins: at(11), Ports: []probe.HCAPort{{
			Port: 1, LinkLayer: "InfiniBand", State: "DOWN", PhysState: "Disabled", Rate: probe.Some(probe.Rate(1.25e9)), RateText: "10 Gb/sec (4X)", LID: "0xffff",
			GIDs: []probe.GID{{GID: "fe80:0000:0000:0000:043f:7203:00fc:8334"}},
		}}},
		{Name: "mlx5_bond_0", Origins: at(20), Ports: []probe.HCAPort{{
			Port: 1, LinkLayer: "Ethernet", State: "ACTIVE", Rate: probe.Some(probe.Rate(25e9)), RateText: "200 Gb/sec (2X NDR)",
		}}},
	}
	for name, text := range map[string]string{"as printed": status, "CRLF": strings.ReplaceAll(status, "\n", "\r\n"), "BOM": "\xef\xbb\xbf" + status} {
		if !Sniff([]byte(text)) {
			t.Errorf("%s: not recognised", name)
		}
		inv, err := Decode("ib.txt", strings.NewReader(text))
		if err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(want, inv.HCAs, opt); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{status, "hello", "ib: no port of ibstatus"},
		{status, "\x00", "ib: binary data"},
		{"4: ACTIVE", "ACTIVE", `ib:6: state: port state "ACTIVE": want a number and a word`},
		{"200 Gb/sec (4X HDR)", "fast", `ib:8: rate: port rate "fast"`},
		{"fe80:0000:0000:0000:043f:7203:00f8:03ce", "fe80::1", "ib:3: default gid: want 8 groups"},
		{"'mlx5_1'", "'mlx5_0'", "ib:11: mlx5_0 port 1 stands twice"},
		{"port 1 status", "port 0 status", `ib:2: port "0" is no number of a port`},
	} {
		if !strings.Contains(status, c.old) {
			t.Fatalf("%q is not in the text", c.old)
		}
		inv, err := Decode("ib", strings.NewReader(strings.Replace(status, c.old, c.new, 1)))
		var syn *probe.SyntaxError
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &syn) {
			t.Errorf("%q: got %v\nwant %s", c.new, err, c.want)
		}
	}
}

func TestShared(t *testing.T) {
	raw, err := os.ReadFile("../../../shared/corpus/logs/snip-nccl489-ibstatus-port-down.log")
	if err != nil {
		t.Skip("../shared is not here")
	}
	inv, err := Decode("ib", bytes.NewReader(raw))
	if err != nil || len(inv.HCAs) != 2 || !inv.HCAs[0].Ports[0].Active() || inv.HCAs[1].Ports[0].Active() {
		t.Errorf("%v, %+v", err, inv)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(status))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		inv, err := Decode("f", bytes.NewReader(text))
		if (err == nil) != (inv != nil) {
			t.Fatalf("inventory %v with error %v", inv, err)
		}
		if err == nil {
			if err := inv.Encode(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
