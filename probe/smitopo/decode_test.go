package smitopo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// whole is what a driver of the 570 series prints for two GPUs with an adapter
// each.
const whole = "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
	"GPU0\t X \tNV18\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n" +
	"GPU1\tNV18\t X \tSYS\tPXB\t32-63,96-127\t1\t\tN/A\n" +
	"NIC0\tPXB\tSYS\t X \tSYS\t\t\t\t\n" +
	"NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t\n" +
	"\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n" +
	"  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n\n"

func decode(t *testing.T, text string) *probe.Inventory {
	t.Helper()
	inv, err := Decode("topo.txt", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// facts prints what a matrix says, one fact a line.
func facts(inv *probe.Inventory) string {
	var b strings.Builder
	for _, g := range inv.GPUs {
		fmt.Fprintf(&b, "gpu %v cpus %s numa %v", g.Index, g.CPUAffinity, g.NUMAAffinity)
		for _, a := range g.Extra {
			fmt.Fprintf(&b, " %s=%s", a.Name, a.Value)
		}
		b.WriteByte('\n')
	}
	for _, h := range inv.HCAs {
		fmt.Fprintf(&b, "hca %s\n", h.Name)
	}
	for _, r := range inv.Relations {
		fmt.Fprintf(&b, "%s %s %s\n", r.A, r.B, r.Code)
	}
	for _, g := range inv.Gaps {
		fmt.Fprintf(&b, "gap %s: %s\n", g.What, g.Why)
	}
	return b.String()
}

const wholeFacts = `gpu 0 cpus 0-31,64-95 numa 0
gpu 1 cpus 32-63,96-127 numa 1
hca mlx5_0
hca mlx5_bond_1
GPU0 GPU1 NV18
GPU0 mlx5_0 PXB
GPU0 mlx5_bond_1 SYS
GPU1 mlx5_0 SYS
GPU1 mlx5_bond_1 PXB
mlx5_0 mlx5_bond_1 SYS
`

func utf16Text(s string, order binary.AppendByteOrder) string {
	b := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestTransport: however the text travelled, it says the same.
func TestTransport(t *testing.T) {
	blanks := strings.NewReplacer("\t", "    ", "\x1b[4m", "", "\x1b[0m", "").Replace(whole)
	var tagged strings.Builder
	for l := range strings.Lines(whole) {
		tagged.WriteString("[1,0]<stdout>:" + l)
	}
	for name, text := range map[string]string{
		"as printed":         whole,
		"blanks for tabs":    blanks,
		"no leading tab":     strings.TrimPrefix(whole, "\t"),
		"CRLF":               strings.ReplaceAll(whole, "\n", "\r\n"),
		"old Mac":            strings.ReplaceAll(whole, "\n", "\r"),
		"UTF-8 mark":         "\xef\xbb\xbf" + whole,
		"UTF-16 little":      utf16Text(whole, binary.LittleEndian),
		"UTF-16 big":         utf16Text(whole, binary.BigEndian),
		"prompts":            "root@gx01:~# nvidia-smi topo -m\n" + whole + "root@gx01:~# uptime\n 10:01 up 3 days\n",
		"gpu list before":    "GPU 0: NVIDIA H100 (UUID: GPU-1)\nGPU0 is the first\n" + whole,
		"visible escapes":    strings.ReplaceAll(whole, "\x1b", "^["),
		"lost escapes":       strings.ReplaceAll(whole, "\x1b", ""),
		"colours in cells":   strings.ReplaceAll(whole, "NV18", "\x1b[1;32mNV18\x1b[m"),
		"mpirun":             tagged.String(),
		"legend in between":  strings.Replace(whole, "NIC0\tPXB", "Legend:\n  X = Self\n\nNIC0\tPXB", 1),
		"no-break blanks":    strings.ReplaceAll(blanks, " ", "\u00a0"),
		"p2p matrix behind":  whole + "\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n",
		"p2p matrix before":  " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n" + whole,
		"last row cut off":   strings.Replace(whole, "NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t", "NIC1\tSYS", 1),
		"last row empty":     strings.Replace(whole, "NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t", "NIC1", 1),
		"first row cut":      strings.Replace(whole, "GPU0\t X \tNV18\tPXB\tSYS\t", "GPU0\t X \tNV18\t", 1),
		"second row missing": strings.Replace(whole, "NIC0\tPXB\tSYS\t X \tSYS\t\t\t\t\n", "", 1),
		"glued columns":      strings.Replace(whole, "GPU0\tGPU1\tNIC0\tNIC1", "GPU0GPU1NIC0\tNIC1", 1),
	} {
		if !Sniff([]byte(text)) {
			t.Errorf("%s: not recognised", name)
		}
		inv, err := Decode("topo.txt", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := wholeFacts
		if d := cmp.Diff(want, facts(inv)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestDialects(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one GPU alone", "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n", "gpu 0 cpus 0-15 numa 0\n"},
		{"SOC, no NUMA column, HCA by name", "\tGPU0\tmlx5_0\tCPU Affinity\nGPU0\t X \tSOC\t0-13\nmlx5_0\tSOC\t X\n",
			"gpu 0 cpus 0-13 numa unknown\nhca mlx5_0\nGPU0 mlx5_0 SYS\n"},
		{"no affinity at all", "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n", "gpu 0 cpus  numa unknown\ngpu 1 cpus  numa unknown\nGPU0 GPU1 PIX\n"},
		{"retyped NUMA column", "     GPU0 GPU1 NUMA\nGPU0  X  SYS  0\nGPU1 SYS  X   1\n", "gpu 0 cpus  numa 0\ngpu 1 cpus  numa 1\nGPU0 GPU1 SYS\n"},
		{"affinity empty, node known", "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t\t0\nGPU1\tPIX\t X \tN/A\tN/A\n",
			"gpu 0 cpus  numa 0\ngpu 1 cpus  numa unknown\nGPU0 GPU1 PIX\n"},
		{"Grace: the GPU's own node", "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNV18\t0-71\t0\t\t4\nGPU1\tNV18\t X \t72-143\t1\t\t12\n",
			"gpu 0 cpus 0-71 numa 0 GPU NUMA ID=4\ngpu 1 cpus 72-143 numa 1 GPU NUMA ID=12\nGPU0 GPU1 NV18\n"},
		{"several nodes", "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-63\t0-1\nGPU1\tPHB\t X \t0-63\t0\n",
			"gpu 0 cpus 0-63 numa unknown NUMA Affinity=0-1\ngpu 1 cpus 0-63 numa 0\nGPU0 GPU1 PHB\n" +
				"gap gpu:0 numa_affinity: the driver names nodes 0-1: it does not tell which is near\n"},
		{"rows missing, no legend", "\tGPU0\tGPU1\tNIC0\tNIC1\nGPU0\t X \tPIX\tPIX\tSYS\nGPU1\tPIX\t X \tPIX\tSYS\n",
			"gpu 0 cpus  numa unknown\ngpu 1 cpus  numa unknown\nhca NIC0\nhca NIC1\nGPU0 GPU1 PIX\nGPU0 NIC0 PIX\nGPU0 NIC1 SYS\nGPU1 NIC0 PIX\nGPU1 NIC1 SYS\n" +
				"gap hca names: the text has no NIC legend that names NIC0, NIC1\ngap relations: the matrix has no row of NIC0, NIC1; 1 pairs are unknown\n"},
		{"GPUs in another order", "\tGPU1\tGPU0\nGPU1\t X \tNV4\nGPU0\tNV4\t X \n", "gpu 0 cpus  numa unknown\ngpu 1 cpus  numa unknown\nGPU1 GPU0 NV4\n"},
	} {
		if d := cmp.Diff(c.want, facts(decode(t, c.text))); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestGluedCells: cells that ran together are told apart where each row then has
// one for every column, and it is said.
func TestGluedCells(t *testing.T) {
	text := strings.NewReplacer("NV18\tPXB\tSYS", "NV18PXBSYS", "SYS\t X \tSYS\t\t", "SYSXSOC\t\t").Replace(whole)
	const gap = "gap relations: cells have run together (GPU0 on line 2: NV18PXBSYS, NIC0 on line 4: SYSXSOC); read apart, as only so each row has 4\n"
	if d := cmp.Diff(wholeFacts+gap, facts(decode(t, text))); d != "" {
		t.Error(d)
	}
	for cell, want := range map[string]string{
		"NODENODE": "NODE NODE", "NV12NV1NV4": "NV12 NV1 NV4", "XPHB": "X PHB", "SOC": "SYS", "NODENOD": "", "NV0": "", "0-31": "", "NVNV1": "",
	} {
		if got := strings.Join(split(cell), " "); got != want {
			t.Errorf("%s: %s, want %s", cell, got, want)
		}
	}
}

func TestOrigins(t *testing.T) {
	inv := decode(t, whole)
	if got := inv.GPUs[1].Origins[0].String() + ", " + inv.Relations[2].Origins[0].String() + ", " + inv.HCAs[0].Origins[0].String(); got != "smitopo topo.txt:3, smitopo topo.txt:2, smitopo topo.txt:4" {
		t.Error(got)
	}
}

func TestRefused(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("%q is not in the text", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "topo.txt: empty: no matrix"},
		{"blank", " \n\t\n", "topo.txt: empty: no matrix"},
		{"binary", "\x7fELF\x02\x01\x01\x00\x00", "topo.txt: binary data, not text"},
		{"other text", "hello\nGPU0 is idle\n", "topo.txt: no line names GPU columns"},
		{"columns only", "\tGPU0\tGPU1\n\nLegend:\n", "topo.txt:1: no row follows the line that names the columns"},
		{"peer access", " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n", "topo.txt:2: the matrix holds peer access states"},
		{"summary", "   GPU0-3  GPU4-7  mlx5_0\nGPU0-3 X PHB PIX\n", "topo.txt:1: columns name several GPUs each"},
		{"cells run together, one lost", replace("NV18\tPXB\tSYS", "NV18PXB"), `topo.txt:2: row GPU0: "NV18PXB" is no path code; cells may have run together, and the row has 3 of 4`},
		{"cells run together, one too many", replace("NV18\tPXB\tSYS", "NV18\tPXBSYS\tSYS"), `topo.txt:2: row GPU0: "N/A" stands behind the last column`},
		{"cell and affinity run together", replace("NV18\tPXB\tSYS\t0", "NV18\tPXB\tSYS0"), `topo.txt:2: row GPU0`},
		{"cut code", replace("GPU1\tNV18", "GPU1\tNV1"), "topo.txt:3: GPU1 to GPU0 is NV1, but GPU0 to GPU1 is NV18 on line 2"},
		{"contradiction", replace("NIC0\tPXB", "NIC0\tPIX"), "topo.txt:4: NIC0 to GPU0 is PIX, but GPU0 to NIC0 is PXB on line 2"},
		{"X lost", replace("GPU1\tNV18\t X \t", "GPU1\tNV18\t"), "topo.txt:3: row GPU1: SYS in column GPU1, want X in its own column only; it has 3 of 4 cells"},
		{"two X", replace("GPU1\tNV18\t X \tSYS", "GPU1\tNV18\t X \t X "), "topo.txt:3: row GPU1: X in column NIC0, want X in its own column only"},
		{"cut beyond repair", "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tSYS\nGPU1\tSYS\t X \tPIX\n", "topo.txt:2: row GPU0 is cut: column GPU2 is missing or incomplete (2 of 3 cells)"},
		{"cell before the affinity lost", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \t0-3\n", "topo.txt:2: row GPU0 is cut: column GPU1 is missing or incomplete (1 of 2 cells)"},
		{"cut in a code", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV1", "topo.txt:2: row GPU0 is cut: column GPU1 is missing or incomplete (2 of 2 cells)"},
		{"unknown code", replace("SYS\tPXB\tSYS\t X", "SYS\tPXB\tFAST\t X"), `topo.txt:5: row NIC1: "FAST" in column NIC0 is no path code`},
		{"more than the columns", replace("\t\tN/A\n", "\t\tN/A\t7\t8\t9\n"), `topo.txt:2: row GPU0: "7 8 9" stands behind the last column`},
		{"row twice", replace("NIC0\tPXB", "GPU1\tNV18\t X \tSYS\tPXB\t0\t1\nNIC0\tPXB"), "topo.txt:4: row GPU1 stands on line 3 already"},
		{"column twice", "\tGPU0\tGPU0\nGPU0\t X \tPIX\n", "topo.txt:1: column GPU0 appears twice"},
		{"two matrices", whole + whole, "topo.txt:18: a second matrix (the first begins on line 1); one file is one host"},
		{"bad affinity", replace("0-31,64-95", "0-31,x"), "topo.txt:2: row GPU0: CPU Affinity: CPU list"},
		{"bad node", replace("\t1\t\tN/A", "\tone\t\tN/A"), `topo.txt:3: row GPU1: NUMA Affinity "one" is no list of nodes`},
		{"legend contradicts itself", whole + "  NIC0: mlx5_7\n", "topo.txt:18: NIC legend: NIC0 is mlx5_0 and mlx5_7"},
		{"legend names one device twice", replace("NIC1: mlx5_bond_1", "NIC1: mlx5_0"), "hca mlx5_0: appears twice"},
		{"index out of range", "\tGPU0\tGPU99999999999999999999\nGPU0\t X \tPIX\n", "topo.txt:1: GPU99999999999999999999: the index is out of range"},
		{"too many columns", "\tGPU0" + strings.Repeat("\tNIC0", maxDevices) + "\nGPU0\t X \tPIX\n", "topo.txt:1: 513 columns, at most 512 are believed"},
	} {
		inv, err := Decode("topo.txt", strings.NewReader(c.text))
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

type repeat struct{ n int }

func (r *repeat) Read(b []byte) (int, error) {
	if r.n <= 0 {
		return 0, io.EOF
	}
	n := min(len(b), r.n)
	for i := range n {
		b[i] = '\n'
	}
	r.n -= n
	return n, nil
}

func TestTooLarge(t *testing.T) {
	if _, err := Decode("topo.txt", &repeat{probe.MaxInput + 1}); !errors.Is(err, probe.ErrTooLarge) {
		t.Error(err)
	}
}

// TestTruncated: a matrix cut anywhere is refused with a place, or says of pairs
// only what the whole one says.
func TestTruncated(t *testing.T) {
	all := map[string]bool{}
	for _, r := range decode(t, whole).Relations {
		all[r.A+r.B+r.Code] = true
	}
	legend := map[string]string{"NIC0": "mlx5_0", "NIC1": "mlx5_bond_1", "GPU0": "GPU0", "GPU1": "GPU1"}
	for n := range strings.Index(whole, "Legend") {
		inv, err := Decode("topo.txt", strings.NewReader(whole[:n]))
		if err != nil {
			var syn *probe.SyntaxError
			if !errors.As(err, &syn) {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		for _, r := range inv.Relations {
			if !all[legend[r.A]+legend[r.B]+r.Code] {
				t.Errorf("%d bytes: %s to %s is %s", n, r.A, r.B, r.Code)
			}
		}
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "GPU0": false, "\tGPU0\tGPU1\n": false,
		`<system version="1">`: false, `{"schema": "ncclmap.inventory/v1"}`: false,
		"gx01:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n": false,
		" \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n":                  false,
		"\tGPU0\nGPU0\t X \n":                    true,
		"x\n\tGPU0\tGPU1\n\nGPU0\t X \tNODENODE": true,
		"GPU0-3 GPU4-7\nGPU0-3 X PHB\n":          true,
	} {
		if got := Sniff([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestShared tries the published matrices that lie beside the checkout.
func TestShared(t *testing.T) {
	const dir = "../../../shared"
	files, _ := filepath.Glob(filepath.Join(dir, "corpus/topo-m/*.txt"))
	if len(files) == 0 {
		t.Skip("no corpus beside the checkout")
	}
	refused := map[string]string{
		"nccl-371-v100pcie8-phb.txt": "a summary written by hand: columns GPU0-3, GPU4-7",
	}
	for _, f := range append(files, filepath.Join(dir, "captures/2xh200-vm/topo-m.txt")) {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		if !Sniff(raw) {
			t.Errorf("%s: not recognised", name)
		}
		inv, err := Decode(name, bytes.NewReader(raw))
		why := refused[name]
		switch {
		case err != nil && why == "":
			t.Error(err)
		case err == nil && why != "":
			t.Errorf("%s: accepted, although %s", name, why)
		case err == nil && (len(inv.GPUs) == 0 || len(inv.GPUs) > 1 && len(inv.Relations) == 0):
			t.Errorf("%s: %d GPUs, %d relations", name, len(inv.GPUs), len(inv.Relations))
		case err == nil:
			if err := inv.Encode(io.Discard); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(utf16Text(whole, binary.LittleEndian)))
	f.Add([]byte("GPU0GPU1mlx5_0\tCPU Affinity\nGPU0 X NV1 SOC 1-1\nGPU1 NV1 X PIX\nmlx5_0 SOC PIX X\n"))
	f.Add([]byte("\tGPU0\tNIC0\nGPU0\nNIC0\tPIX\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		inv, err := Decode("f", bytes.NewReader(text))
		if (err == nil) != (inv != nil) {
			t.Fatalf("inventory %v with error %v", inv, err)
		}
		if err != nil {
			return
		}
		var a, b bytes.Buffer
		if err := inv.Encode(&a); err != nil {
			t.Fatal(err)
		}
		again, err := probe.Decode("f", a.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Encode(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("not stable: %v", err)
		}
	})
}

// matrix prints n GPUs in one NVLink domain with an adapter each.
func matrix(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "\tGPU%d", i)
	}
	for i := range n {
		fmt.Fprintf(&b, "\tmlx5_%d", i)
	}
	b.WriteString("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n")
	for i := range 2 * n {
		if i < n {
			fmt.Fprintf(&b, "GPU%d", i)
		} else {
			fmt.Fprintf(&b, "mlx5_%d", i-n)
		}
		for j := range 2 * n {
			switch {
			case i == j:
				b.WriteString("\t X ")
			case i < n && j < n:
				b.WriteString("\tNV18")
			case i%n == j%n:
				b.WriteString("\tPXB")
			default:
				b.WriteString("\tNODE")
			}
		}
		if i < n {
			b.WriteString("\t0-55\t0\t\tN/A")
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{8, 72} {
		text := matrix(n)
		b.Run(fmt.Sprintf("gpus=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Decode("b", bytes.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the quick look lets through must hold no escape.
func TestMayEscape(t *testing.T) {
	for text, want := range map[string]bool{
		"\x1b[4mGPU0\x1b[0m": true, "\u241b[4mGPU0": true, "^[[4mGPU0": true, "\u009b4m": true, "GPU0[4m": true, "[0;31mX": true, "\x07": true, "a\x08b": true,
		"node1:1:2 [0] NCCL INFO [12] m": false, "[m": false, "[3": false, "GPU0\tGPU1": false, "": false,
	} {
		if got := mayEscape(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if !mayEscape(text) && escapes.ReplaceAllString(text, "") != text {
			t.Errorf("%q holds an escape", text)
		}
	}
}
