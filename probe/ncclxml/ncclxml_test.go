package ncclxml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/fixtures/golden"
	"github.com/ncclmap/ncclmap/probe"
)

// dump is in NCCL's own layout: a switch with a GPU and an adapter, a GPU of
// which a hypervisor hides the far NVLink end, a socket interface.
const dump = `<system version="1">
  <cpu host_hash="0x6e63636c6d617001" numaid="0" affinity="00000000,0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:15:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0055" link_speed="32.0 GT/s PCIe" link_width="16">
      <pcilink target="0000:8a:00.0"/>
      <pci busid="0000:18:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x16c1" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:05:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:8d:00.0" count="2" tclass="0x030200"/>
          <c2c bw="44712" count="10"/>
        </gpu>
      </pci>
      <pci busid="0000:1a:00.0" class="0x020700" vendor="0x15b3" device="0x1021" subsystem_vendor="0x15b3" subsystem_device="0x0041" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic>
          <net name="mlx5_0" dev="0" latency="0" speed="400000" port="1" guid="0xa87cb10003e1a258" maxconn="131072" gdr="1" coll="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu host_hash="0x6e63636c6d617001" numaid="1" affinity="ffffffff,00000000" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:8a:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0055" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:8d:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x16c1" link_speed="32.0 GT/s PCIe" link_width="0">
        <gpu dev="1" sm="90" rank="1" gdr="0">
          <nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
    <nic>
      <net name="eth0" dev="1" latency="0" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"/>
    </nic>
  </cpu>
</system>
`

// of wraps one <cpu>'s content in a topology.
func of(content string) string {
	return `<system version="1"><cpu numaid="0" arch="x86_64">` + content + `</cpu></system>`
}

func mustDecode(t testing.TB, text string) *Document {
	t.Helper()
	d, err := Decode("topo.xml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustInventory(t testing.TB, text string) *probe.Inventory {
	t.Helper()
	inv, err := mustDecode(t, text).Inventory()
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func encoded(t testing.TB, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := Encode(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	d := mustDecode(t, dump)
	if diff := cmp.Diff(dump, encoded(t, d)); diff != "" {
		t.Error(diff)
	}
	if len(d.Refused) > 0 {
		t.Errorf("NCCL reads its own dump: %v", d.Refused)
	}
	pci := d.Root.Children[0].Children[0]
	if pci.Line != 3 || pci.BusID("busid") != probe.Some(probe.MustBDF("0000:15:00.0")) || pci.Int("link_width") != probe.Some(16) {
		t.Errorf("%+v", pci)
	}
}

// TestUnknownIsKept: what NCCL does not know survives, in order.
func TestUnknownIsKept(t *testing.T) {
	const text = `<system version="1" name="rack &amp; &quot;row&quot;">
  <cpu color="red" numaid="0" arch="x86_64">
    <future a="1" xml:lang="en">
      <deep/>
    </future>
    <pci busid="0000:18:00.0" slot="4" class="0x030200">
      <gpu new="x" dev="0" sm="90"/>
    </pci>
  </cpu>
</system>
`
	d := mustDecode(t, text)
	if diff := cmp.Diff(text, encoded(t, d)); diff != "" {
		t.Error(diff)
	}
	inv, err := d.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]probe.Attr{
		{{Name: "color", Value: "red"}}, {{Name: "slot", Value: "4"}}, {{Name: "new", Value: "x"}},
	}, [][]probe.Attr{inv.NUMA[0].Extra, inv.PCI[0].Extra, inv.GPUs[0].Extra}); diff != "" {
		t.Error(diff)
	}
	if len(inv.Gaps) != 1 || inv.Gaps[0].What != "<future> in <cpu>" || inv.Gaps[0].Origin.String() != "ncclxml topo.xml:3" {
		t.Errorf("gaps %+v", inv.Gaps)
	}
}

func TestTolerated(t *testing.T) {
	plain := encoded(t, mustDecode(t, of(`<pci busid="0000:01:00.0" class="0x030200"/>`)))
	for name, c := range map[string]struct {
		text    string
		refused string // by NCCL; "" = NCCL reads it too
	}{
		"comments":         {"<!-- A -- B --->\n<system version=\"1\"><!-- <pci> --><cpu numaid=\"0\" arch=\"x86_64\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/> <!-- GPU 0 --></cpu></system>\n<!-- end -->", ""},
		"single quotes":    {`<system version='1'><cpu numaid='0' arch='x86_64'><pci busid='0000:01:00.0' class='0x030200'/></cpu></system>`, ""},
		"closed apart":     {`<system version="1"><cpu numaid="0" arch="x86_64"><pci busid="0000:01:00.0" class="0x030200"></pci></cpu></system>`, ""},
		"blank before end": {`<system version="1"><cpu numaid="0" arch="x86_64"><pci busid="0000:01:00.0" class="0x030200" /></cpu></system>`, ""},
		"declaration":      {"<?xml version=\"1.0\" encoding=\"ascii\"?>\n" + plain, "1: an XML declaration or processing instruction"},
		"byte order mark":  {"\xef\xbb\xbf" + plain, "1: a byte order mark before <system>"},
		"tabs":             {strings.ReplaceAll(plain, "  ", "\t"), "2: a tab between elements"},
		"CRLF":             {strings.ReplaceAll(plain, "\n", "\r\n"), ""},
		"wide tag":         {strings.Replace(plain, ` class`, "\n      class", 1), "3: attributes that are not separated by exactly one blank, or blanks around \"=\""},
		"blank in closing": {strings.Replace(plain, "</cpu>", "</cpu >", 1), "4: blanks inside a closing tag"},
		"no version":       {strings.Replace(plain, ` version="1"`, ``, 1), "1: <system> without version=\"1\""},
		"version 2":        {strings.Replace(plain, `version="1"`, `version="2"`, 1), "1: <system> without version=\"1\""},
		"odd comment":      {"<!--a=b-->" + plain, "1: a comment whose first word holds \"=\""},
	} {
		d, err := Decode("topo.xml", strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := ""
		if len(d.Refused) > 0 {
			got = fmt.Sprintf("%d: %s", d.Refused[0].Line, d.Refused[0].Msg)
		}
		if got != c.refused {
			t.Errorf("%s: refused by NCCL for %q, want %q", name, got, c.refused)
		}
		if !strings.Contains(name, "version") && encoded(t, d) != plain {
			t.Errorf("%s:\n%s", name, encoded(t, d))
		}
	}
	many := mustDecode(t, `<system version="1" `+strings.Join(attributeList(17), " ")+` name="`+strings.Repeat("x", 255)+`"/>`)
	if len(many.Refused) != 2 || many.Refused[0].Msg != "more than 16 attributes: the rest is ignored" || many.Refused[1].Msg != "a name or value of 255 characters or more" {
		t.Errorf("%v", many.Refused)
	}
}

func attributeList(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`a%d=""`, i)
	}
	return out
}

// repeat reads a text over and over.
type repeat struct {
	text string
	left int
}

func (r *repeat) Read(b []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), r.left)], r.text)
	r.left -= n
	return n, nil
}

func TestRefused(t *testing.T) {
	laughs := `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;">]><system version="1" name="&lol1;"/>`
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "topo.xml: empty: no <system> element"},
		{"blank", " \r\n\t", "topo.xml: empty: no <system> element"},
		{"comment only", "<!-- x -->\n", "topo.xml:2:1: no <system> element"},
		{"binary", "\x7fELF\x02\x01\x01\x00", "topo.xml:1:8: binary data, not XML"},
		{"UTF-16", "\xff\xfe<\x00s\x00", "topo.xml: UTF-16 text: save it as UTF-8"},
		{"no UTF-8", "<system name=\"\xc3\x28\"/>", "topo.xml:1:18: invalid UTF-8"},
		{"text", "\n hello world", "topo.xml:2:2: not an XML document: it starts with \"hello world\""},
		{"JSON", `{"schema": "ncclmap.inventory/v1"}`, "topo.xml:1:1: not an XML document"},
		{"graph file", `<graphs version="1"/>`, "topo.xml:1:1: an NCCL graph file (NCCL_GRAPH_FILE), not a topology"},
		{"other root", `<topology version="2.0"/>`, "topo.xml:1:1: root element is <topology>, want <system>"},
		{"piece of a piece", `<nic><net name="mlx5_0"/></nic>`, "topo.xml:1:1: root element is <nic>, want <system>"},
		{"piece and whole", "<pci busid=\"0002:81:00.0\"/>\n<system version=\"1\"/>", "topo.xml:2:1: a second root element <system>"},
		{"whole and piece", "<system version=\"1\"/>\n<pci busid=\"0002:81:00.0\"/>", "topo.xml:2:1: a second root element <pci>"},
		{"two roots", "<system version=\"1\"/>\n<system version=\"1\"/>", "topo.xml:2:1: a second root element <system>"},
		{"text inside", "<system version=\"1\">\n  gpu </system>", `topo.xml:2:3: text "gpu" between elements`},
		{"text behind", "<system version=\"1\"/>\n# end", `topo.xml:2:1: text "# end" between elements`},
		{"cut off", "<system version=\"1\">\n <cpu numaid=\"0\">", "topo.xml:2:18: the document is cut off inside <cpu> of line 2"},
		{"cut in a tag", "<system version=\"1\">\n <cpu numaid", "topo.xml:2:13: the document is cut off inside <system> of line 1"},
		{"cut in a comment", "<system version=\"1\"><!-- ", "the document is cut off inside <system> of line 1"},
		{"wrong nesting", "<system version=\"1\">\n<cpu>\n</system></cpu>", "topo.xml:3:1: </system> where </cpu> is due (opened on line 2)"},
		{"closes nothing", "</cpu>", "topo.xml:1:1: </cpu> closes nothing"},
		{"document type", laughs, "topo.xml:1:22: a document type or entity declaration"},
		{"entity", `<system version="1" name="&lol;"/>`, "topo.xml:1:32: invalid character entity &lol;"},
		{"unquoted", `<system version=1/>`, "topo.xml:1:18: unquoted or missing attribute value"},
		{"attribute twice", of(`<pci busid="0000:01:00.0" class="0x03" class="0x02"/>`), `<pci> class "0x02": the attribute stands there twice`},
		{"control character", of(`<pci busid="0000:01:00.0" link_speed="32&#10;GT/s"/>`), `<pci> link_speed "32\nGT/s": holds a control character`},
		{"long value", of(`<net name="` + strings.Repeat("x", maxText+1) + `"/>`), "longer than 4096 bytes"},
		{"bus id", of(`<pci busid="0000:51.0"/>`), `topo.xml:1:51: <pci> busid "0000:51.0": not a PCI address domain:bus:device.function`},
		{"empty bus id", of(`<pci busid=""/>`), `<pci> busid "": empty`},
		{"class", of(`<pci busid="0000:01:00.0" class="gpu"/>`), `<pci> class "gpu": not a PCI class`},
		{"vendor", of(`<pci busid="0000:01:00.0" vendor="0x10de0"/>`), `<pci> vendor "0x10de0": not a hexadecimal number of up to 16 bits`},
		{"width", of(`<pci busid="0000:01:00.0" link_width="x16"/>`), `<pci> link_width "x16": not a whole number of 32 bits`},
		{"negative width", of(`<pci busid="0000:01:00.0" link_width="-1"/>`), `<pci> link_width "-1": not between 0 and 65536`},
		{"go's own numbers", of(`<pci busid="0000:01:00.0" link_width="1_6"/>`), `not a whole number`},
		{"mask", `<system version="1"><cpu numaid="0" affinity="ffffffff,0-3"/></system>`, `topo.xml:1:21: <cpu> affinity "ffffffff,0-3": not a CPU mask`},
		{"node", `<system version="1"><cpu numaid="-2"/></system>`, `<cpu> numaid "-2": not between -1`},
		{"dev", of(`<pci busid="0000:01:00.0"><gpu dev="4294967296"/></pci>`), `<gpu> dev "4294967296": not a whole number of 32 bits`},
		{"gdr", of(`<pci busid="0000:01:00.0"><gpu gdr="yes"/></pci>`), `<gpu> gdr "yes": not a whole number`},
		{"links", of(`<pci busid="0000:01:00.0"><gpu><nvlink target="0000:02:00.0" count="65"/></gpu></pci>`), `<nvlink> count "65": not between 0 and 64`},
		{"target", of(`<pci busid="0000:01:00.0"><gpu><nvlink target="nvswitch" count="1"/></gpu></pci>`), `<nvlink> target "nvswitch": not a PCI address`},
		{"guid", of(`<nic><net name="mlx5_0" guid="12:34"/></nic>`), `<net> guid "12:34": not a hexadecimal number of up to 64 bits`},
		{"latency", of(`<nic><net name="mlx5_0" latency="NaN"/></nic>`), `<net> latency "NaN": not a number`},
		{"bus id twice", "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0000:01:00.0\"/></cpu>\n<cpu numaid=\"1\"><pci busid=\"00:01:00.0\"/></cpu></system>",
			"topo.xml:4: <pci> busid 0000:01:00.0 stands on line 3 already"},
		{"10,000 levels", strings.Repeat("<system>", 10_000), "topo.xml:1:513: elements are nested deeper than 64"},
		{"many elements", `<system version="1">` + strings.Repeat("<a/>", maxElements), "more than 200000 elements"},
		{"many attributes", `<system version="1">` + strings.Repeat(`<a `+strings.Join(attributeList(100), " ")+"/>", maxAttrs/100+1), "more than 1000000 attributes"},
		{"huge tag", `<system version="1" name="` + strings.Repeat("x", maxMarkup) + `"/>`, "topo.xml:1:1: a tag or comment of more than 1048576 bytes"},
	} {
		d, err := Decode("topo.xml", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if err == nil || d != nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &syn) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
	if _, err := Decode("topo.xml", &repeat{"<!-- x -->", probe.MaxInput + 1}); !errors.Is(err, probe.ErrTooLarge) {
		t.Errorf("64 MiB: %v", err)
	}
}

func TestTruncated(t *testing.T) {
	end := strings.LastIndex(dump, ">")
	for n := 0; n <= end; n += 50 {
		_, err := Decode("topo.xml", strings.NewReader(dump[:n]))
		var syn *probe.SyntaxError
		if !errors.As(err, &syn) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestInventory(t *testing.T) {
	inv := mustInventory(t, dump)
	var out bytes.Buffer
	if err := inv.Encode(&out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "dump.json", out.Bytes())
}

// TestFacts holds single statements of a file against what they mean.
func TestFacts(t *testing.T) {
	gpu := func(content string) string {
		return of(`<pci busid="0000:01:00.0" class="0x030200">` + content + `</pci>`)
	}
	describe := func(inv *probe.Inventory) string {
		var b strings.Builder
		for _, n := range inv.NUMA {
			fmt.Fprintf(&b, "numa %d %q package %v\n", n.ID, n.CPUs, n.Package)
		}
		for _, d := range inv.PCI {
			fmt.Fprintf(&b, "pci %v parent %v class %v numa %v cpus %q %v\n", d.Addr, d.Parent, d.Class, d.NUMA, d.CPUs, d.Max)
		}
		for _, g := range inv.GPUs {
			fmt.Fprintf(&b, "gpu %v at %v cc %v rank %v gdr %v", g.Index, g.Addr, g.CC, g.Rank, g.GDR)
			if links, ok := g.NVLinks.Get(); ok {
				fmt.Fprintf(&b, " links %d", len(links))
				for i, l := range links {
					if i == 0 || links[i-1].Remote != l.Remote {
						fmt.Fprintf(&b, " gen %v %s %v", l.Generation, l.RemoteKind, l.Remote)
					}
				}
			}
			if g.C2C != nil {
				fmt.Fprintf(&b, " c2c %d × %v", g.C2C.Links, g.C2C.PerLink)
			}
			b.WriteByte('\n')
		}
		for _, h := range inv.HCAs {
			fmt.Fprintf(&b, "hca %s at %v dev %v gdr %v guid %q", h.Name, h.Addr, h.NCCLDev, h.GDR, h.SysImageGUID)
			for _, p := range h.Ports {
				fmt.Fprintf(&b, " port %d %v %q", p.Port, p.Rate, p.State)
			}
			b.WriteByte('\n')
		}
		for _, n := range inv.NetDevs {
			fmt.Fprintf(&b, "net %s at %v dev %v %v\n", n.Name, n.Addr, n.NCCLDev, n.Speed)
		}
		for _, g := range inv.Gaps {
			fmt.Fprintf(&b, "gap %s: %s\n", g.What, g.Why)
		}
		return b.String()
	}
	const node, pci = "numa 0 \"\" package unknown\n", "pci 0000:01:00.0 parent unknown class 0x030200 numa 0 cpus \"\" unknown\n"
	for _, c := range []struct{ name, text, want string }{
		{"unknown node", `<system version="1"><cpu numaid="-1" affinity="ff"><pci busid="0000:01:00.0" link_speed="8 GT/s" link_width="0x8"/></cpu></system>`,
			"pci 0000:01:00.0 parent unknown class unknown numa unknown cpus \"0-7\" Gen3 x8\n"},
		{"no node", `<system version="1"><cpu arch="arm64"><pci busid="0000:01:00.0"/></cpu></system>`,
			"pci 0000:01:00.0 parent unknown class unknown numa unknown cpus \"\" unknown\ngap <cpu> on line 1: numa: has no numaid, without which NCCL refuses the topology\n"},
		{"no cpu", `<system version="1"><pci busid="0000:01:00.0"/><nic><net name="eth0" speed="10000"/></nic></system>`,
			"pci 0000:01:00.0 parent unknown class unknown numa unknown cpus \"\" unknown\nnet eth0 at unknown dev unknown 1.25 GB/s\n" +
				"gap <nic> on line 1: numa: stands under no <cpu>; NCCL ignores it\ngap <pci> on line 1: numa: stands under no <cpu>; NCCL ignores it\n"},
		{"class by prefix", of(`<pci busid="0000:01:00.0" class="0x03" vendor="0x10de"><pci busid="0000:02:00.0" class=""/></pci>`),
			node + "pci 0000:01:00.0 parent unknown class 0x030000 numa 0 cpus \"\" unknown\npci 0000:02:00.0 parent 0000:01:00.0 class unknown numa 0 cpus \"\" unknown\n" +
				"gpu unknown at 0000:01:00.0 cc unknown rank unknown gdr unknown\n" +
				"gap gpus: index, compute_capability, nvlinks: 1 GPU functions have no <gpu>; NCCL asks the driver at run time\n"},
		{"display adapter is no GPU", of(`<pci busid="0000:01:00.0" class="0x030000" vendor="0x1a03"/>`),
			node + "pci 0000:01:00.0 parent unknown class 0x030000 numa 0 cpus \"\" unknown\n"},
		{"speed and width", of(`<pci busid="0000:01:00.0" link_speed="" link_width=""/><pci busid="0000:02:00.0" link_speed="fast" link_width="255"/><pci busid="0000:03:00.0" link_speed="64 GT/s" link_width="2"/><pci busid="0000:04:00.0" link_speed="32 GT/s PCIe/s" link_width="0"/>`),
			node + "pci 0000:01:00.0 parent unknown class unknown numa 0 cpus \"\" unknown\npci 0000:02:00.0 parent unknown class unknown numa 0 cpus \"\" unknown\n" +
				"pci 0000:03:00.0 parent unknown class unknown numa 0 cpus \"\" Gen6 x2\npci 0000:04:00.0 parent unknown class unknown numa 0 cpus \"\" Gen5 x?\n" +
				"gap pci:0000:02:00.0 max_link.speed_gts: link_speed \"fast\" is not a text that NCCL knows; it assumes Gen3\n" +
				"gap pci:0000:02:00.0 max_link.width: link_width 255 is no width of a PCIe link; NCCL multiplies with it\n" +
				"gap pci:0000:03:00.0 max_link.speed_gts: link_speed \"64 GT/s\" is not a text that NCCL knows; it assumes Gen3\n"},
		{"bare gpu", gpu(`<gpu dev="3"/>`), node + pci + "gpu 3 at 0000:01:00.0 cc unknown rank unknown gdr unknown\n"},
		{"gpu of a dump without links", gpu(`<gpu dev="0" sm="89" rank="7" gdr="0"/>`), node + pci + "gpu 0 at 0000:01:00.0 cc 89 rank 7 gdr false links 0\n"},
		{"hidden switch, either spelling", gpu(`<gpu dev="0" sm="100"><nvlink target="fffffff:ffff:ff" count="2"/><nvlink target="FFFFFFF:FF:FF.0" count="3"/></gpu>`),
			node + pci + "gpu 0 at 0000:01:00.0 cc 100 rank unknown gdr unknown links 5 gen 5 nvswitch unknown\n"},
		{"ends of every kind", gpu(`<gpu dev="0" sm="70"><nvlink target="0000:02:00.0" count="1" tclass="0x030200"/><nvlink target="0004:04:00.0" count="2" tclass="0x068001"/><nvlink target="0000:03:00.0" count="1" tclass="0x020000"/><nvlink target="0000:01:00.0" count="1"/></gpu>`),
			node + pci + "gpu 0 at 0000:01:00.0 cc 70 rank unknown gdr unknown links 5 gen 2 gpu 0000:02:00.0 gen 2 cpu 0004:04:00.0 gen 2  0000:03:00.0 gen 2 gpu 0000:01:00.0\n" +
				"gap gpu:0000:01:00.0 nvlinks: an <nvlink> that leads to the GPU itself; kept as it stands\n"},
		{"link without count", gpu(`<gpu dev="0" sm="80"><nvlink target="0000:02:00.0"/></gpu>`),
			node + pci + "gpu 0 at 0000:01:00.0 cc 80 rank unknown gdr unknown links 0\ngap gpu:0000:01:00.0 nvlinks: an <nvlink> without count, which NCCL refuses\n"},
		{"C2C", gpu(`<gpu dev="-1"><c2c bw="44712" count="10"/><c2c bw="1" count="1"/></gpu>`),
			node + pci + "gpu unknown at 0000:01:00.0 cc unknown rank unknown gdr unknown c2c 10 × 44.71 GB/s\ngap gpu:0000:01:00.0 c2c: a <c2c> without links or rate, or a second one; left out\n"},
		{"two ranks on a GPU", gpu(`<gpu dev="0" sm="107" mlopart="0" rank="0"/><gpu dev="0" sm="107" mlopart="1" rank="1"/>`),
			node + pci + "gpu 0 at 0000:01:00.0 cc 107 rank 0 gdr unknown links 0\ngap gpu:0000:01:00.0 rank: rank 1 is on the same GPU (MLOPart or several ranks per GPU); ncclmap keeps the first\n"},
		{"adapters and interfaces", of(`<pci busid="0000:01:00.0"><nic><net name="mlx5_0" dev="2" speed="100000" port="1" guid="0x84c36d000390fe7c" gdr="0"/><net name="mlx5_0" dev="3" speed="200000" port="2" guid="0x84c36d000390fe7c"/></nic></pci>` +
			`<nic><net name="rdmap16s27" speed="0"/><net name="odd0" guid="0x1" speed="400000" port="1"/><net name="eth0" dev="0" speed="-1" guid="0x0"/><net name="efa_0" speed="1000"/><net speed="1"/></nic>`),
			node + "pci 0000:01:00.0 parent unknown class unknown numa 0 cpus \"\" unknown\n" +
				"hca efa_0 at unknown dev unknown gdr unknown guid \"\" port 0 0.13 GB/s \"\"\n" +
				"hca mlx5_0 at 0000:01:00.0 dev 2 gdr false guid \"7cfe:9003:006d:c384\" port 1 12.5 GB/s \"\" port 2 25 GB/s \"\"\n" +
				"hca odd0 at unknown dev unknown gdr unknown guid \"0100:0000:0000:0000\" port 1 50 GB/s \"\"\n" +
				"hca rdmap16s27 at unknown dev unknown gdr unknown guid \"\" port 0 unknown \"\"\n" +
				"net eth0 at unknown dev 0 unknown\n" +
				"gap <net> on line 1: has no name, by which NCCL finds its device; left out\n" +
				"gap net eth0 speed: the file gives no speed; unless the network does at run time, NCCL assumes 10 Gb/s\n" +
				"gap net rdmap16s27 speed: the file gives no speed; unless the network does at run time, NCCL assumes 10 Gb/s\n"},
		{"elements in the wrong place", of(`<gpu dev="0"/>`), node + "gap <gpu> in <cpu>: NCCL knows no such element there and ignores it; so does ncclmap\n"},
	} {
		if d := cmp.Diff(c.want, describe(mustInventory(t, c.text))); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestCPUs(t *testing.T) {
	inv := mustInventory(t, `<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD"/><cpu numaid="1" arch="x86_64" vendor="AuthenticAMD"/></system>`)
	if len(inv.CPUs) != 1 || inv.CPUs[0].Vendor != "AuthenticAMD" || len(inv.NUMA[0].Extra) != 0 {
		t.Errorf("%+v %+v", inv.CPUs, inv.NUMA)
	}
	mixed := `<system version="1"><cpu numaid="0" arch="x86_64"><pci busid="0000:01:00.0"/></cpu><cpu numaid="1" arch="arm64"><pci busid="0000:02:00.0"/></cpu></system>`
	inv = mustInventory(t, mixed)
	if len(inv.CPUs) != 2 {
		t.Errorf("%+v", inv.CPUs)
	}
	back, err := FromInventory(inv)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(encoded(t, mustDecode(t, mixed)), encoded(t, back)); d != "" {
		t.Error(d)
	}
}

func TestInventoryRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no busid", of("\n<pci/>"), "topo.xml:2: <pci> has no busid"},
		{"node twice", "<system version=\"1\">\n<cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>", "topo.xml:3: <cpu> numaid 0 stands on line 2 already"},
		{"dev and rank twice", of("<pci busid=\"0000:01:00.0\">\n<gpu dev=\"0\" rank=\"3\"/></pci><pci busid=\"0000:02:00.0\">\n<gpu dev=\"0\" rank=\"3\"/></pci>"), "topo.xml:3: <gpu> dev 0 stands on line 2 already"},
		{"dev twice", of("<pci busid=\"0000:01:00.0\">\n<gpu dev=\"0\"/></pci><pci busid=\"0000:02:00.0\">\n<gpu dev=\"0\"/></pci>"), "topo.xml:3: <gpu> dev 0 stands on line 2 already"},
		{"two GPUs in a function", of("<pci busid=\"0000:01:00.0\"><gpu dev=\"0\"/>\n<gpu dev=\"1\"/></pci>"), "topo.xml:2: <gpu> dev 1 in the function of dev 0 (line 1): one function is one GPU"},
		{"links", of(`<pci busid="0000:01:00.0"><gpu>` + strings.Repeat(`<nvlink target="0000:02:00.0" count="40"/>`, 2) + `</gpu></pci>`), "<nvlink> count: more than 64 links of one GPU"},
		{"interface twice", of("<nic><net name=\"eth0\"/>\n<net name=\"eth0\"/></nic>"), `topo.xml:2: <net> name "eth0" stands on line 1 already`},
		{"port twice", of("<nic><net name=\"mlx5_0\" port=\"1\"/>\n<net name=\"mlx5_0\" port=\"1\"/></nic>"), `topo.xml:2: <net> name "mlx5_0" port 1 stands on line 1 already`},
		{"odd name", of(`<nic><net name="a b"/></nic>`), `"a b" is not a device name`},
		{"two hosts", twoHosts, "topo.xml: describes 2 hosts (host_hash), an inventory describes one"},
	} {
		inv, err := mustDecode(t, c.text).Inventory()
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

// twoHosts is one NVLink domain over two hosts, with equal bus ids.
const twoHosts = `<system version="1">
  <cpu host_hash="0x1" numaid="0" arch="arm64"><pci busid="0008:01:00.0" class="0x030200"><gpu dev="0" sm="100" rank="0"/></pci></cpu>
  <cpu host_hash="0x2" numaid="0" arch="arm64"><pci busid="0008:01:00.0" class="0x030200"><gpu dev="0" sm="100" rank="1"/></pci></cpu>
  <cpu host_hash="0x1" numaid="1" arch="arm64"><pci busid="0018:01:00.0" class="0x030200"><gpu dev="1" sm="100" rank="2"/></pci></cpu>
</system>`

func TestHosts(t *testing.T) {
	hosts := mustDecode(t, twoHosts).Hosts()
	if len(hosts) != 2 {
		t.Fatalf("%d hosts", len(hosts))
	}
	for i, want := range []string{"0 2", "1"} {
		inv, err := hosts[i].Inventory()
		if err != nil {
			t.Fatal(err)
		}
		var ranks []string
		for _, g := range inv.GPUs {
			ranks = append(ranks, g.Rank.String())
		}
		if got := strings.Join(ranks, " "); got != want {
			t.Errorf("host %d has ranks %s, want %s", i, got, want)
		}
	}
}

// TestFromInventory writes the files of a machine as sysfs shows it.
func TestFromInventory(t *testing.T) {
	for _, name := range []string{"h100x8", "h100x8-nvlink-down"} {
		m, err := fixtures.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := FromInventory(m.Inventory)
		if err != nil {
			t.Fatal(err)
		}
		out := encoded(t, d)
		golden.Check(t, name+".xml", []byte(out))
		inv := mustInventory(t, out)
		back, err := FromInventory(inv)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(out, encoded(t, back)); diff != "" {
			t.Errorf("%s: not stable: %s", name, diff)
		}
	}
}

// TestBothWays: a dump becomes facts and the same dump again, but for what is
// unknown (link_width="0").
func TestBothWays(t *testing.T) {
	d, err := FromInventory(mustInventory(t, dump))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(dump, ` link_width="0"`, "", 1)
	// What belongs to no function hangs below the first CPU.
	nic := want[strings.Index(want, "    <nic>\n      <net name=\"eth0\""):strings.LastIndex(want, "  </cpu>")]
	want = strings.Replace(want, nic, "", 1)
	want = strings.Replace(want, "  </cpu>\n", nic+"  </cpu>\n", 1)
	if diff := cmp.Diff(want, encoded(t, d)); diff != "" {
		t.Error(diff)
	}
}

func TestFromInventoryChoices(t *testing.T) {
	addr := func(s string) probe.Opt[probe.BDF] { return probe.Some(probe.MustBDF(s)) }
	bridge := probe.Some(probe.ClassBridgePCI)
	dev := func(a, parent string, class probe.Opt[probe.PCIClass], link probe.PCIeLink) probe.PCIDevice {
		d := probe.PCIDevice{Addr: probe.MustBDF(a), Root: "pci0000:00", Class: class, Max: link}
		if parent != "" {
			d.Parent = addr(parent)
		}
		return d
	}
	gpuClass := probe.Some(probe.PCIClass(0x030200))
	for _, c := range []struct {
		name string
		inv  probe.Inventory
		want string // of the <cpu>, or of the error
	}{
		{"below a root port, the port is narrower", probe.Inventory{
			PCI:  []probe.PCIDevice{dev("0000:00:01.0", "", bridge, probe.LinkOfGen(4, 8)), dev("0000:01:00.0", "0000:00:01.0", gpuClass, probe.LinkOfGen(5, 16))},
			GPUs: []probe.GPU{{Addr: addr("0000:01:00.0")}},
		}, `<pci busid="0000:01:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8"/>`},
		{"two switches above one another", probe.Inventory{
			PCI: []probe.PCIDevice{
				dev("0000:00:01.0", "", bridge, probe.PCIeLink{}),
				dev("0000:01:00.0", "0000:00:01.0", bridge, probe.PCIeLink{}), dev("0000:02:00.0", "0000:01:00.0", bridge, probe.PCIeLink{}),
				dev("0000:03:00.0", "0000:02:00.0", bridge, probe.PCIeLink{}), dev("0000:04:01.0", "0000:03:00.0", bridge, probe.PCIeLink{}),
				dev("0000:05:00.0", "0000:04:01.0", gpuClass, probe.PCIeLink{}),
				dev("0000:06:00.0", "0000:02:00.0", probe.Some(probe.PCIClass(0x010802)), probe.PCIeLink{}),
			},
			GPUs: []probe.GPU{{Addr: addr("0000:05:00.0"), Index: probe.Some(0)}},
		}, `<pci busid="0000:01:00.0" class="0x060400"><pci busid="0000:03:00.0" class="0x060400"><pci busid="0000:05:00.0" class="0x030200"><gpu dev="0"/></pci></pci></pci>`},
		{"a driver's word alone", probe.Inventory{GPUs: []probe.GPU{{
			Addr: addr("0000:05:00.0"), Index: probe.Some(0), CC: probe.Some(90), Max: probe.LinkOfGen(5, 16),
			NVLinks: probe.Some([]probe.NVLink{
				{Link: 0, State: probe.LinkUp, RemoteKind: probe.RemoteSwitch}, {Link: 1, State: probe.LinkDown, RemoteKind: probe.RemoteSwitch},
				{Link: 2, State: probe.LinkUp, RemoteKind: probe.RemoteGPU}, {Link: 3, State: probe.LinkUp, RemoteKind: probe.RemoteGPU, Remote: addr("0000:06:00.0")},
				{Link: 4, State: probe.LinkUp, RemoteKind: probe.RemoteCPU, Remote: addr("0004:04:00.0")}, {Link: 5, State: probe.LinkUp, Remote: addr("0000:07:00.0")}, {Link: 6, State: probe.LinkUp},
			}),
		}}}, `<pci busid="0000:05:00.0" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90"><nvlink target="0000:06:00.0" count="1" tclass="0x030200"/><nvlink target="0000:07:00.0" count="1"/>` +
			`<nvlink target="0004:04:00.0" count="1" tclass="0x068001"/><nvlink target="fffffff:ff:ff.0" count="2" tclass="0x068000"/></gpu></pci>`},
		{"ports, numbers, interfaces", probe.Inventory{
			HCAs: []probe.HCA{
				{Name: "mlx5_10", Addr: addr("0000:03:00.0"), Ports: []probe.HCAPort{{Port: 1, State: probe.PortActive, Rate: probe.Some(probe.Mbps(200000))}, {Port: 2, State: "DOWN"}}, NodeGUID: "946d:ae03:0000:0001", SysImageGUID: "946d:ae03:0000:0001"},
				{Name: "mlx5_2", Addr: addr("0000:02:00.0"), NCCLDev: probe.Some(0), GDR: probe.Some(true), Ports: []probe.HCAPort{{Port: 1}, {Port: 2}}},
				{Name: "mlx5_3", Addr: addr("0000:02:00.1"), Ports: []probe.HCAPort{{Port: 1, State: "INIT"}}},
			},
			NetDevs: []probe.NetDev{{Name: "eth0"}},
		}, `<pci busid="0000:02:00.0"><nic><net name="mlx5_2" dev="0" port="1" gdr="1"/><net name="mlx5_2" dev="1" port="2" gdr="1"/></nic></pci>` +
			`<pci busid="0000:03:00.0"><nic><net name="mlx5_10" dev="2" speed="200000" port="1" guid="0x100000003ae6d94"/></nic></pci>`},
		{"sockets when no adapter works", probe.Inventory{
			HCAs:    []probe.HCA{{Name: "mlx5_0", Ports: []probe.HCAPort{{Port: 1, State: "DOWN"}}}},
			NetDevs: []probe.NetDev{{Name: "docker0", Virtual: true}, {Name: "eth0", Speed: probe.Some(probe.Mbps(25000))}, {Name: "lo", Virtual: true}},
		}, `<nic><net name="eth0" dev="0" speed="25000"/></nic>`},
		{"virtio hangs below the first CPU", probe.Inventory{
			PCI:     []probe.PCIDevice{{Addr: probe.MustBDF("0000:00:03.0"), Root: "pci0000:00", Vendor: probe.Some(probe.VendorVirtio)}},
			NetDevs: []probe.NetDev{{Name: "eth0", Addr: addr("0000:00:03.0"), NCCLDev: probe.Some(4)}},
		}, `<nic><net name="eth0" dev="4"/></nic>`},
		{"an adapter of which no port is described", probe.Inventory{HCAs: []probe.HCA{{Name: "mlx5_0", Addr: addr("0000:02:00.0")}}},
			`<pci busid="0000:02:00.0"><nic><net name="mlx5_0" dev="0"/></nic></pci>`},
		{"what NCCL could not read is left out", probe.Inventory{
			HCAs: []probe.HCA{{Name: "mlx5_0", Extra: []probe.Attr{{Name: "latency", Value: "fast"}, {Name: "coll", Value: "1"}, {Name: "bogus", Value: "1"}}, SysImageGUID: "none"}},
		}, `<nic><net name="mlx5_0" dev="0" coll="1"/></nic>`},
		{"no address", probe.Inventory{GPUs: []probe.GPU{{Index: probe.Some(2)}}}, "gpu 2: no PCI address is known; a topology file names GPUs by it"},
		{"nothing", probe.Inventory{NUMA: []probe.NUMANode{{ID: 0}}}, "the inventory lists no GPU and no adapter with a PCI address: no topology to write"},
		{"invalid", probe.Inventory{PCI: []probe.PCIDevice{dev("0000:01:00.0", "0000:01:00.0", bridge, probe.PCIeLink{})}}, "pci 0000:01:00.0: is its own ancestor"},
	} {
		d, err := FromInventory(&c.inv)
		if err != nil {
			if err.Error() != c.want {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		got := encoded(t, d)
		want := encoded(t, mustDecode(t, `<system version="1"><cpu numaid="-1">`+c.want+`</cpu></system>`))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		mustInventory(t, got)
	}
}

func TestEncodeRefuses(t *testing.T) {
	deep := &Element{Name: "system"}
	for e, i := deep, 0; i < maxDepth; i++ {
		e.Children = []*Element{{Name: "x"}}
		e = e.Children[0]
	}
	for want, root := range map[string]*Element{
		"a topology without <system>":             nil,
		`"a b" is no element name`:                {Name: "system", Children: []*Element{{Name: "a b"}}},
		`<system>: "a=" is no attribute name`:     {Name: "system", Attrs: []probe.Attr{{Name: "a=", Value: ""}}},
		`<system> name "a\nb" holds a control`:    {Name: "system", Attrs: []probe.Attr{{Name: "name", Value: "a\nb"}}},
		"<x>: elements are nested deeper than 64": deep,
	} {
		var out bytes.Buffer
		if err := Encode(&out, &Document{Name: "x", Root: root}); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("got %v (%d bytes), want %s", err, out.Len(), want)
		}
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "<": false, "<systems>": false, "<graphs version=\"1\">": false, "<nic>": false, "<pci busid=''>": true, "<cpu numaid='0'>": true, "<!-- <system> -->": false, "<!-- x": false, "<?xml": false,
		"<nvidia_smi_log>": false, "<!DOCTYPE system><system>": false, "{}": false,
		"<system version=\"1\">": true, "<system>": true, "<system": true, "<system\n": true, "<system/>": true,
		"\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<!-- a -- b -->\n\t<!-- -->\n<system version='1'>": true,
	} {
		if got := Sniff([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestPiece: what was cut out of a file is read, and says so.
func TestPiece(t *testing.T) {
	inv := mustInventory(t, "<pci busid=\"0002:81:00.0\" class=\"0x030200\">\n<gpu dev=\"0\" rank=\"0\"/></pci>\n<pci busid=\"0002:82:00.0\" class=\"0x030200\"/>")
	if len(inv.GPUs) != 2 || len(inv.PCI) != 2 || len(inv.NUMA) != 0 || inv.GPUs[0].Origins[0].Where != "topo.xml:2" {
		t.Errorf("%+v", inv)
	}
	if g := inv.Gaps[0]; g.What != "<pci> on line 1: numa" || !strings.Contains(g.Why, "a piece of a topology") {
		t.Errorf("%+v", g)
	}
	d := mustDecode(t, "<cpu numaid=\"0\" arch=\"x86_64\"/>\n<cpu numaid=\"1\" arch=\"x86_64\"/>")
	if !d.Piece || len(d.Root.Children) != 2 || d.Refused[0] != (Issue{1, "a piece of a file, without <system>"}) {
		t.Errorf("%+v", d)
	}
}

// TestRepeated: a dev that two ranks have is told apart by the ranks; a rank may
// stand at several GPUs.
func TestRepeated(t *testing.T) {
	inv := mustInventory(t, of(`<pci busid="0000:01:00.0"><gpu dev="0" rank="0"/></pci><pci busid="0000:02:00.0"><gpu dev="0" rank="1"/></pci>`))
	if len(inv.GPUs) != 2 || inv.GPUs[0].Index != probe.Some(0) || inv.GPUs[1].Index.Known() || inv.GPUs[1].Rank != probe.Some(1) ||
		len(inv.Gaps) != 1 || inv.Gaps[0].What != "gpu:0000:02:00.0 index" {
		t.Errorf("%+v, gaps %+v", inv.GPUs, inv.Gaps)
	}
	inv = mustInventory(t, of(`<pci busid="0000:01:00.0"><gpu dev="0" rank="0"/></pci><pci busid="0000:02:00.0"><gpu dev="1" rank="0"/></pci>`))
	if len(inv.GPUs) != 2 || inv.GPUs[1].Index != probe.Some(1) || inv.GPUs[1].Rank != probe.Some(0) {
		t.Errorf("%+v", inv.GPUs)
	}
}

// TestShortBusID: NCCL strings the digits together, so a bus id without a bus
// means bus 0.
func TestShortBusID(t *testing.T) {
	d := mustDecode(t, of(`<pci busid="0000:01.0"><gpu dev="0"><nvlink target="1203:1f.7" count="1"/></gpu></pci>`))
	pci := d.Root.Children[0].Children[0]
	if got := pci.BusID("busid"); got != probe.Some(probe.MustBDF("0000:00:01.0")) {
		t.Error(got)
	}
	if got := pci.Children[0].Children[0].BusID("target"); got != probe.Some(probe.MustBDF("0012:03:1f.7")) {
		t.Error(got)
	}
	if len(d.Refused) != 1 || d.Refused[0].Msg != `busid "0000:01.0" has no bus number; NCCL takes its digits for 0000:00:01.0` {
		t.Errorf("%+v", d.Refused)
	}
}

const shared = "../../../shared"

// TestShared tries the published and written topologies that lie beside the
// checkout.
func TestShared(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(shared, "corpus/topo-xml/*.xml"))
	own, _ := filepath.Glob(filepath.Join(shared, "oracle/*.xml"))
	if len(files) == 0 || len(own) == 0 {
		t.Skip("no corpus beside the checkout")
	}
	refused := map[string]string{
		"azure-ncv4-graph.xml":       "an NCCL graph file",
		"panlichen-8x3090-graph.xml": "an NCCL graph file",
	}
	for _, f := range append(files, own...) {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		d, err := Decode(name, bytes.NewReader(raw))
		if why := refused[name]; why != "" {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want a refusal for: %s", name, err, why)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if !Sniff(raw) {
			t.Errorf("%s: not recognised", name)
		}
		stable(t, d)
		inv, err := d.Inventory()
		if err != nil {
			t.Error(err)
			continue
		}
		back, err := FromInventory(inv)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		stable(t, back)
	}
}

// TestCapture: the dump of a real run is read and written byte by byte.
func TestCapture(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(shared, "captures/2xh200-vm/topo-dump.xml"))
	if err != nil {
		t.Skipf("the recording is not here: %v", err)
	}
	d := mustDecode(t, string(raw))
	if diff := cmp.Diff(string(raw), encoded(t, d)); diff != "" {
		t.Error(diff)
	}
	inv, err := d.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range inv.GPUs {
		if links, _ := g.NVLinks.Get(); len(links) != 18 || links[17].RemoteKind != probe.RemoteSwitch || links[17].Remote.Known() {
			t.Errorf("GPU %v: %v", g.Index, links)
		}
	}
	if len(inv.GPUs) != 2 || len(inv.NUMA) != 0 || len(inv.NetDevs) != 1 || inv.PCI[0].NUMA.Known() || inv.PCI[0].Max.String() != "Gen5 x?" {
		t.Errorf("%+v", inv)
	}
}

// stable checks that what is written is read and written the same.
func stable(t *testing.T, d *Document) {
	t.Helper()
	once := encoded(t, d)
	if diff := cmp.Diff(once, encoded(t, mustDecode(t, once))); diff != "" {
		t.Errorf("%s: not stable: %s", d.Name, diff)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(dump))
	f.Add([]byte(twoHosts))
	f.Add([]byte(strings.Replace(twoHosts, `numaid="0"`, `numaid="-1"`, 1)))
	f.Add([]byte("<?xml version=\"1.0\"?><!-- -- --><system version='1'><cpu numaid='-1' affinity='ff'><pci busid='00:01.0' link_speed='x'/><x:y z=\"&lt;&amp;&quot;\"/></cpu></system>"))
	f.Add([]byte(of(`<pci busid="0000:01:00.0"><gpu dev="0" sm="80"><nvlink target="0000:01:00.0" count="3" tclass="0x030200"/></gpu><nic><net name="mlx5_0" guid="0x1"/><net name="mlx5_0" port="2"/></nic></pci>`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		d, err := Decode("f", bytes.NewReader(text))
		if (err == nil) != (d != nil) {
			t.Fatalf("document %v with error %v", d, err)
		}
		if err != nil {
			return
		}
		stable(t, d)
		for _, host := range d.Hosts() {
			inv, err := host.Inventory()
			if (err == nil) != (inv != nil) {
				t.Fatalf("inventory %v with error %v", inv, err)
			}
			if err != nil {
				continue
			}
			if err := inv.Encode(io.Discard); err != nil {
				t.Fatal(err)
			}
			back, err := FromInventory(inv)
			if err != nil {
				continue
			}
			stable(t, back)
			if _, err := back.Inventory(); err != nil {
				t.Fatalf("written but not understood: %v\n%s", err, encoded(t, back))
			}
		}
	})
}

// rack is a fused dump of n hosts of eight GPUs.
func rack(hosts int) []byte {
	var b bytes.Buffer
	b.WriteString("<system version=\"1\">\n")
	for h := range hosts {
		fmt.Fprintf(&b, "  <cpu host_hash=\"0x%x\" numaid=\"0\" affinity=\"ffffffff,ffffffff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n", h+1)
		for g := range 8 {
			fmt.Fprintf(&b, "    <pci busid=\"0000:%02x:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" subsystem_vendor=\"0x10de\" subsystem_device=\"0x16c1\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n", 0x10+g)
			fmt.Fprintf(&b, "      <gpu dev=\"%d\" sm=\"90\" rank=\"%d\" gdr=\"1\">\n", g, 8*h+g)
			for s := range 4 {
				fmt.Fprintf(&b, "        <nvlink target=\"0000:%02x:00.0\" count=\"4\" tclass=\"0x068000\"/>\n", 5+s)
			}
			b.WriteString("      </gpu>\n    </pci>\n")
			fmt.Fprintf(&b, "    <pci busid=\"0000:%02x:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n      <nic>\n", 0x30+g)
			fmt.Fprintf(&b, "        <net name=\"mlx5_%d\" dev=\"%d\" latency=\"0\" speed=\"400000\" port=\"1\" guid=\"0x%x\" maxconn=\"131072\" gdr=\"1\"/>\n      </nic>\n    </pci>\n", g, g, 0x100+g)
		}
		b.WriteString("  </cpu>\n")
	}
	b.WriteString("</system>\n")
	return b.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	for _, hosts := range []int{1, 18} {
		text := rack(hosts)
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Decode("b", bytes.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkInventory(b *testing.B) {
	d, err := Decode("b", bytes.NewReader(rack(1)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := d.Inventory(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	d, err := Decode("b", bytes.NewReader(rack(1)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Encode(io.Discard, d); err != nil {
			b.Fatal(err)
		}
	}
}
