package open

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

const topo = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-31\t0\t\tN/A\nGPU1\tNV18\t X \t0-31\t0\t\tN/A\n"

const xml = `<system version="1">
  <cpu numaid="0" affinity="ffffffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207">
    <pci busid="0000:00:06.0" class="0x030200" vendor="0x10de" device="0x2335" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1"/>
    </pci>
  </cpu>
</system>
`

// Kinds are told apart by content, whatever the name says.
func TestRecognition(t *testing.T) {
	var inv bytes.Buffer
	if err := (&probe.Inventory{}).Encode(&inv); err != nil {
		t.Fatal(err)
	}
	for text, kind := range map[string]string{topo: kindSMITopo, xml: kindNCCLXML, inv.String(): kindInventory} {
		_, sources, err := Read([]string{write(t, "x.log", text)}, nil)
		if err != nil || len(sources) != 1 || sources[0].Kind != kind {
			t.Errorf("%v, %v; want %s", sources, err, kind)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ source, want string }{
		{write(t, "empty", ""), "empty: empty"},
		{write(t, "blank", " \n\t\n"), "blank: empty"},
		{write(t, "prose", "hello"), "prose: text not recognised"},
		{write(t, "bin", "\x7fELF\x00\x01"), "bin: binary data not recognised"},
		{write(t, "other.json", `{"a": 1}`), "not recognised"},
		{filepath.Join(dir, "none"), "no such file"},
		{dir, dir},
		{"example:nothing", "h100x8"},
	} {
		inv, err := ReadHost(c.source)
		if err == nil || !strings.Contains(err.Error(), c.want) || inv != nil {
			t.Errorf("%s: %v, %v; want %q", c.source, inv, err, c.want)
		}
	}
}

func TestHugeFileIsRefusedUnread(t *testing.T) {
	file := write(t, "huge", "")
	if err := os.Truncate(file, probe.MaxInput+1); err != nil { // sparse
		t.Fatal(err)
	}
	if _, _, err := Read([]string{file}, nil); !errors.Is(err, probe.ErrTooLarge) {
		t.Errorf("file: %v", err)
	}
	zeros := io.LimitReader(zero{}, probe.MaxInput+1)
	if _, _, err := Read([]string{"-"}, zeros); !errors.Is(err, probe.ErrTooLarge) {
		t.Errorf("stdin: %v", err)
	}
}

type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A topology file beside the machine itself is a claim, not a fact.
func TestTopologyFileIsKeptApart(t *testing.T) {
	file := write(t, "topo.xml", strings.Replace(xml, "32.0 GT/s PCIe", "16.0 GT/s PCIe", 1))
	inv, err := ReadHost("example:2xh200-vm", file)
	if err != nil {
		t.Fatal(err)
	}
	if inv.TopoFile == nil || inv.TopoFile.File != "topo.xml" || len(inv.TopoFile.Claims.GPUs) != 1 {
		t.Fatalf("%+v", inv.TopoFile)
	}
	if len(inv.GPUs) != 2 || inv.PCI[len(inv.PCI)-1].Max != probe.LinkOfGen(5, 16) {
		t.Error("the file's claim changed what was seen")
	}
	if _, _, err := Read([]string{"example:2xh200-vm", file, file}, nil); err == nil || !strings.Contains(err.Error(), "two topology files") {
		t.Errorf("two files: %v", err)
	}
	// Alone it is all there is.
	inv, err = ReadHost(file)
	if err != nil || inv.TopoFile != nil || len(inv.GPUs) != 1 {
		t.Errorf("alone: %v, %+v", err, inv)
	}
}

// Where topo -m is given, the classes from the tree agree with it.
func TestClassesAgreeWithTopoM(t *testing.T) {
	inv, err := ReadHost("example:2xh200-vm")
	if err != nil {
		t.Fatal(err)
	}
	agree(t, inv)
	capture := filepath.Join("..", "..", "..", "shared", "captures", "2xh200-vm")
	if _, err := os.Stat(capture); err != nil {
		t.Skip("../shared is not here")
	}
	inv, err = ReadHost(filepath.Join(capture, "sysroot"), filepath.Join(capture, "nvml-calls.json"), filepath.Join(capture, "topo-m.txt"))
	if err != nil {
		t.Fatal(err)
	}
	agree(t, inv)
}

func agree(t *testing.T, inv *probe.Inventory) {
	t.Helper()
	relations := inv.Relations
	if len(relations) == 0 {
		t.Fatal("no topo -m")
	}
	bare := *inv
	bare.Relations = nil // the classes must come from the devices alone
	top, err := graph.Build(&bare)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*graph.Node{}
	for _, n := range append(top.Of(graph.KindGPU), top.Of(graph.KindHCA)...) {
		byName[n.Label] = n
	}
	for _, r := range relations {
		a, b := byName[r.A], byName[r.B]
		if a == nil || b == nil {
			t.Errorf("%s or %s is not in the topology", r.A, r.B)
			continue
		}
		if c := top.Class(a, b); c == graph.Unknown || !c.Agrees(r.Code) || top.SMICode(a, b) != r.Code {
			t.Errorf("%s–%s: class %v, code %s; nvidia-smi says %s", r.A, r.B, c, top.SMICode(a, b), r.Code)
		}
	}
}
