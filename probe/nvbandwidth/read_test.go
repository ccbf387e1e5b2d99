package nvbandwidth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

const whole = `nvbandwidth Version: v0.8
Built from Git version: v0.8

CUDA Runtime Version: 12080
CUDA Driver Version: 12080
Driver Version: 570.124.06

Device 0: NVIDIA TestCard (00000000:1b:00)
Device 1: NVIDIA TestCard (00000000:43:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     54.31     54.27

SUM host_to_device_memcpy_ce 108.58

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    371.10
 1    370.25       N/A

SUM device_to_device_memcpy_read_ce 741.35

Running multinode_device_to_device_memcpy_read_ce.
Waived: 

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0    772.58    771.10
`

const p2p = `[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA TestCard, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA TestCard, pciBusID: 43, pciDeviceID: 0, pciDomainID:0
Device=0 CAN Access Peer Device=1
Device=1 CAN Access Peer Device=0

P2P Connectivity Matrix
     D\D     0     1
     0	     1     1
     1	     1     1
Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\D     0      1 
     0 2486.05  38.70 
     1  38.65 2490.15 
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1 
     0   2.10   2.03 
     1   2.05   2.11 

   CPU     0      1 
     0   1.93   1.44 
     1   1.45   1.91 

NOTE: The CUDA Samples are not meant for performance measurements.
`

const document = `{
  "nvbandwidth" : {
    "CUDA Runtime Version" : 12080,
    "Driver Version" : "570.124.06",
    "GPU Device list" : [ "0: NVIDIA TestCard (00000000:1b:00)", "1: NVIDIA TestCard (00000000:43:00)" ],
    "testcases" : [
      {
        "bandwidth_description" : "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix" : [ [ "N/A", "396.1" ], [ 395.5, "N/A" ] ],
        "name" : "device_to_device_memcpy_write_ce",
        "status" : "Passed",
        "sum" : 791.6
      },
      { "name" : "all_to_one", "status" : "Waived" }
    ],
    "version" : "v0.8"
  }
}
`

func read(t *testing.T, text string) *Output {
	t.Helper()
	if !Sniff([]byte(text)) {
		t.Error("not recognised")
	}
	o, err := Read("bw.txt", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Inventory().Validate(); err != nil {
		t.Error(err)
	}
	return o
}

func at(t *testing.T, m Matrix, row, col int, want float64) {
	t.Helper()
	if v, ok := m.At(row, col); !ok || v != want {
		t.Errorf("%s [%d][%d] = %v %v, want %v", m.Test, row, col, v, ok, want)
	}
}

func TestText(t *testing.T) {
	o := read(t, whole)
	if len(o.Matrices) != 3 || o.Version != "v0.8" || o.CUDA != "12080" || o.Driver != "570.124.06" || o.Form != FormNVBandwidth {
		t.Fatalf("%+v", o)
	}
	m := o.Matrices[1]
	if m.Test != "device_to_device_memcpy_read_ce" || m.RowKind != GPU || m.ColKind != GPU || m.Direction != "->" || m.Line != 19 || m.Sum.Or(0) != 741.35 {
		t.Errorf("%+v", m)
	}
	at(t, m, 0, 1, 371.10)
	at(t, o.Matrices[0], 0, 1, 54.27)
	if _, ok := m.At(0, 0); ok {
		t.Error("N/A is known")
	}
	if x := o.Matrices[2]; x.Unit != "ns" || x.RowKind != CPU || x.Direction != "<->" {
		t.Errorf("%+v", x)
	}
	if len(o.Notes) != 1 || o.Notes[0].Test != "multinode_device_to_device_memcpy_read_ce" {
		t.Errorf("%+v", o.Notes)
	}
	inv := o.Inventory()
	if len(inv.GPUs) != 2 || inv.GPUs[1].Addr != probe.Some(probe.MustBDF("0000:43:00.0")) || inv.GPUs[1].Index != probe.Some(1) || inv.Runtime.Driver != "570.124.06" {
		t.Errorf("%+v", inv.GPUs)
	}
}

func TestP2PTest(t *testing.T) {
	o := read(t, p2p)
	if len(o.Matrices) != 4 || len(o.Devices) != 2 || o.Form != FormP2PTest {
		t.Fatalf("%+v", o)
	}
	at(t, o.Matrices[1], 0, 1, 38.70)
	at(t, o.Matrices[2], 1, 0, 2.05)
	at(t, o.Matrices[3], 1, 0, 1.45)
	if o.Devices[1].Addr != probe.Some(probe.MustBDF("0000:43:00.0")) || o.Matrices[3].Test != "p2p_enabled_latency_p2p_writes_cpu" {
		t.Errorf("%+v %s", o.Devices[1], o.Matrices[3].Test)
	}
}

func TestJSON(t *testing.T) {
	o := read(t, document)
	if len(o.Matrices) != 1 || o.Form != FormJSON || o.Driver != "570.124.06" || len(o.Devices) != 2 || len(o.Notes) != 1 {
		t.Fatalf("%+v", o)
	}
	at(t, o.Matrices[0], 1, 0, 395.5)
	if m := o.Matrices[0]; m.Direction != "<-" || m.Sum.Or(0) != 791.6 || m.Line != 13 {
		t.Errorf("%+v", m)
	}
}

func TestPairs(t *testing.T) {
	o := read(t, "0 0 2100.5 GB/s\n0 1 390.1 GB/s\n1 0 390.2 GB/s\nh2d 0 55.4 GB/s\nd2h 1 55.3 GB/s\n")
	if len(o.Matrices) != 3 || o.Form != FormPairs {
		t.Fatalf("%+v", o)
	}
	at(t, o.Matrices[0], 1, 0, 390.2)
	at(t, o.Matrices[2], 0, 1, 55.3)
}

func TestSeveralHosts(t *testing.T) {
	text := strings.NewReplacer("Device 0:", "Process 0 (h1): device 0:", "Device 1:", "Process 1 (h2): device 0:").Replace(whole)
	inv := read(t, text).Inventory()
	if len(inv.GPUs) != 0 || len(inv.Gaps) != 1 {
		t.Errorf("%+v", inv.Gaps)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", " \n", "bw.txt: empty: no matrix"},
		{"binary", "\x7fELF\x00", "bw.txt: binary data"},
		{"other text", "hello\n0 1\n0 5\n", "bw.txt: no matrix of nvbandwidth"},
		{"row too short", strings.Replace(whole, " 1    370.25       N/A", " 1    370.25", 1), "bw.txt:22: row 1 has 1 figures for 2 columns"},
		{"row too long", strings.Replace(whole, "371.10", "371.10 3", 1), "bw.txt:21: row 0 has 3 figures for 2 columns"},
		{"row twice", strings.Replace(whole, " 1    370.25", " 0    370.25", 1), "bw.txt:22: row 0 stands twice in the matrix of line 19"},
		{"no figure", strings.Replace(whole, "371.10", "37l.10", 1), `bw.txt:21: row 0: "37l.10" in column 1 is no figure`},
		{"columns out of order", strings.Replace(p2p, `D\D     0     1`, `D\D     0     0`, 1), `bw.txt:8: column "0" is no device number in rising order`},
		{"pair twice", "0 1 390.1 GB/s\n0 1 390.2 GB/s\n", "bw.txt:2: device_to_device 0 1 stands twice"},
		{"JSON cut", document[:300], "JSON: the document is cut"},
		{"other JSON", `{"a": 1}`, "bw.txt: JSON, but not that of nvbandwidth"},
		{"JSON row", strings.Replace(document, `[ "N/A", "396.1" ]`, `[ "N/A" ]`, 1), "row 1 has 2 figures for 1 columns"},
		{"JSON figure", strings.Replace(document, "396.1", "fast", 1), `"fast" in column 1 is no figure`},
	} {
		o, err := Read("bw.txt", strings.NewReader(c.text))
		if err == nil || o != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
		var syn *probe.SyntaxError
		if !errors.As(err, &syn) {
			t.Errorf("%s: %T", c.name, err)
		}
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "{}": false, "0 1 390.1 GB/s\n": true, "0 1 390.1 GB/s\nhello\n": false,
		"\tGPU0\tGPU1\nGPU0\tX\tNV18\n": false, "hello\n" + p2p: true, "Driver Version: 570\n": false,
	} {
		if got := Sniff([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestShared reads the recording that lies beside the checkout.
func TestShared(t *testing.T) {
	raw, err := os.ReadFile("../../../shared/captures/2xh200-vm/p2pbw.txt")
	if err != nil {
		t.Skip("no recordings beside the checkout")
	}
	o := read(t, string(raw))
	if len(o.Matrices) != 3 || len(o.Matrices[0].Rows) != 2 {
		t.Errorf("%+v", o)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{whole, p2p, document, "0 1 2 GB/s\nh2d 0 1 GB/s\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		o, err := Read("f", bytes.NewReader(text))
		if (err == nil) != (o != nil) {
			t.Fatalf("%v with %v", o, err)
		}
		if err != nil {
			return
		}
		for _, m := range o.Matrices {
			if len(m.Rows) != len(m.Values) {
				t.Fatalf("%+v", m)
			}
			m.At(0, 1)
		}
		if err := o.Inventory().Encode(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var t bytes.Buffer
	for range 30 {
		t.WriteString("Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n ")
		for i := range 72 {
			fmt.Fprintf(&t, "%10d", i)
		}
		for i := range 72 {
			fmt.Fprintf(&t, "\n%2d", i)
			for range 72 {
				t.WriteString("    371.10")
			}
		}
		t.WriteString("\n\n")
	}
	b.SetBytes(int64(t.Len()))
	for b.Loop() {
		if _, err := Read("b", bytes.NewReader(t.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
