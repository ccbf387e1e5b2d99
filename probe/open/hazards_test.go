package open

import (
	"encoding/binary"
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// The tests of this file read texts as they arrive: every hazard that real files
// hold, through the same door that users take.

func take(t *testing.T, name, text string) (*probe.Cluster, []Source) {
	t.Helper()
	c, sources, err := Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v\n%.400s", name, err, text)
	}
	return c, sources
}

func kinds(sources []Source) string {
	var out []string
	for _, s := range sources {
		out = append(out, s.Kind)
	}
	return strings.Join(out, ", ")
}

// said prints what a source says, a fact a line.
func said(c *probe.Cluster) string {
	var b strings.Builder
	for _, h := range c.Hosts {
		if h.Host.Name != "" {
			fmt.Fprintln(&b, "host", h.Host.Name)
		}
		for _, d := range h.PCI {
			if d.Max.Speed.Known() || d.Max.Width.Known() {
				fmt.Fprintln(&b, "pci", d.Addr, d.Max.Speed, d.Max.Width)
			}
		}
		for _, g := range h.GPUs {
			fmt.Fprint(&b, "gpu ", g.Index)
			if g.Addr.Known() {
				fmt.Fprint(&b, " ", g.Addr)
			}
			if g.Rank.Known() {
				fmt.Fprint(&b, " rank ", g.Rank)
			}
			if g.CPUAffinity != "" || g.NUMAAffinity.Known() {
				fmt.Fprint(&b, " near ", g.CPUAffinity, " numa ", g.NUMAAffinity)
			}
			links, known := g.NVLinks.Get()
			for _, l := range links {
				fmt.Fprint(&b, " ", l.RemoteKind, ":", l.Remote)
			}
			if known && len(links) == 0 {
				fmt.Fprint(&b, " no NVLink")
			}
			fmt.Fprintln(&b)
		}
		for _, x := range h.HCAs {
			fmt.Fprint(&b, "hca ", x.Name)
			for _, p := range x.Ports {
				fmt.Fprint(&b, " ", p.Port, " ", p.State, " ", p.Rate.Or(0).Gbps())
			}
			fmt.Fprintln(&b)
		}
		for _, r := range h.Relations {
			fmt.Fprintln(&b, r.A, r.B, r.Code)
		}
	}
	for _, m := range c.Comms {
		for _, k := range m.Conns {
			fmt.Fprintf(&b, "%d>%d %s %s x%d\n", k.From, k.To, k.Via, k.Variant, k.Channels)
		}
	}
	for _, e := range c.Events {
		fmt.Fprintln(&b, e.Kind, e.Code, e.Subject)
	}
	return b.String()
}

func gapsOf(c *probe.Cluster) string {
	var out []string
	for _, g := range c.Gaps {
		out = append(out, g.What+": "+g.Why)
	}
	for _, h := range c.Hosts {
		for _, g := range h.Gaps {
			out = append(out, g.What+": "+g.Why)
		}
	}
	return strings.Join(out, "\n")
}

func utf16Of(s string, order binary.AppendByteOrder, mark bool) string {
	var b []byte
	if mark {
		b = order.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n> ") + "\n"
}

// carried is a text as editors, shells, mails, tickets and web pages pass it on.
func carried(text string) map[string]string {
	return map[string]string{
		"as printed":            text,
		"CRLF":                  strings.ReplaceAll(text, "\n", "\r\n"),
		"UTF-8 mark":            "\xef\xbb\xbf" + text,
		"UTF-16LE":              utf16Of(text, binary.LittleEndian, true),
		"UTF-16BE":              utf16Of(text, binary.BigEndian, true),
		"UTF-16LE without mark": utf16Of(text, binary.LittleEndian, false),
		"UTF-16BE without mark": utf16Of(text, binary.BigEndian, false),
		"UTF-16LE with CRLF":    utf16Of(strings.ReplaceAll(text, "\n", "\r\n"), binary.LittleEndian, true),
		"prompts":               "root@gx01:~# cat it\n" + text + "root@gx01:~# uptime\n 10:01 up 3 days\n",
		"fence":                 "It says:\n\n```\n" + text + "```\n\nWhat now?\n",
		"fence with a language": "```console\n" + text + "```\n",
		"quoted":                "On Monday somebody wrote:\n" + quote(text) + "\nSee above.\n",
		"quoted twice":          quote(quote(text)),
		"quoted fence":          quote("```\n" + text + "```\n"),
		"HTML escapes":          html.EscapeString(text),
		"HTML escapes, CRLF":    strings.ReplaceAll(html.EscapeString(text), "\n", "\r\n"),
		"details":               "<details><summary>log -&gt; here</summary>\n\n```\n" + html.EscapeString(text) + "```\n</details>\n",
	}
}

const matrix = "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" +
	"GPU0\t X \tNV18\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n" +
	"GPU1\tNV18\t X \tSYS\tPXB\t32-63,96-127\t1\t\tN/A\n" +
	"NIC0\tPXB\tSYS\t X \tSYS\t\t\t\t\n" +
	"NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t\n" +
	"\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n" +
	"  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n\n"

const matrixSays = `gpu 0 near 0-31,64-95 numa 0
gpu 1 near 32-63,96-127 numa 1
hca mlx5_0
hca mlx5_bond_1
GPU0 GPU1 NV18
GPU0 mlx5_0 PXB
GPU0 mlx5_bond_1 SYS
GPU1 mlx5_0 SYS
GPU1 mlx5_bond_1 PXB
mlx5_0 mlx5_bond_1 SYS
`

func TestHazardsOfTopoM(t *testing.T) {
	texts := carried(matrix)
	for name, text := range map[string]string{
		"header glued":            strings.Replace(matrix, "GPU0\tGPU1\tNIC0\tNIC1", "GPU0GPU1NIC0\tNIC1", 1),
		"cells glued":             strings.Replace(matrix, "NV18\tPXB\tSYS", "NV18PXB\tSYS", 1),
		"no leading tab":          strings.TrimPrefix(matrix, "\t"),
		"blanks":                  strings.ReplaceAll(matrix, "\t", "    "),
		"tabs and blanks":         strings.NewReplacer("\tNV18\t", "   NV18  ", "\tPXB\t", " PXB\t ").Replace(matrix),
		"row cut":                 strings.Replace(matrix, "NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t", "NIC1\tSYS", 1),
		"first row cut":           strings.Replace(matrix, "GPU0\t X \tNV18\tPXB\tSYS\t", "GPU0\t X \tNV18\t", 1),
		"SOC":                     strings.ReplaceAll(matrix, "\tSYS\t", "\tSOC\t"),
		"colours":                 strings.NewReplacer("NV18", "\x1b[1;32mNV18\x1b[m", "\tGPU0\tGPU1", "\t\x1b[4mGPU0\tGPU1").Replace(matrix),
		"legend in between":       strings.Replace(matrix, "NIC0\tPXB", "Legend:\n\n  X    = Self\n\nNIC0\tPXB", 1),
		"NIC legend before":       "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n\n" + matrix[:strings.Index(matrix, "\nNIC Legend")],
		"no-break blanks":         strings.ReplaceAll(matrix, "\t", "\u00a0\u00a0 "),
		"mpirun":                  "[1,0]<stdout>:" + strings.ReplaceAll(strings.TrimSuffix(matrix, "\n"), "\n", "\n[1,0]<stdout>:") + "\n",
		"mpirun, HTML escapes":    html.EscapeString("[1,0]<stdout>:" + strings.ReplaceAll(strings.TrimSuffix(matrix, "\n"), "\n", "\n[1,0]<stdout>:") + "\n"),
		"GPU list with MIG above": "GPU 0: NVIDIA H100 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n  MIG 3g.40gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555555)\n" + matrix,
	} {
		texts[name] = text
	}
	for name, text := range texts {
		c, sources := take(t, name, text)
		if k := kinds(sources); k != kindSMITopo {
			t.Errorf("%s: %s", name, k)
		}
		if d := cmp.Diff(matrixSays, said(c)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	c, _ := take(t, "cells glued", strings.Replace(matrix, "NV18\tPXB\tSYS", "NV18PXB\tSYS", 1))
	if g := gapsOf(c); g != "relations: cells have run together (GPU0 on line 2: NV18PXB); read apart, as only so each row has 4" {
		t.Error(g)
	}
}

// MIG devices stand below their GPU; they are no GPUs of NCCL's topology.
func TestHazardMIG(t *testing.T) {
	const list = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n" +
		"  MIG 3g.40gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555555)\n" +
		"  MIG 3g.40gb     Device  1: (UUID: MIG-21111111-2222-3333-4444-555555555555)\n" +
		"GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-31111111-2222-3333-4444-555555555555)\n"
	for name, text := range carried(list) {
		c, sources := take(t, name, text)
		if k := kinds(sources); k != kindSMIQuery {
			t.Errorf("%s: %s", name, k)
		}
		if d := cmp.Diff("gpu 0\ngpu 1\n", said(c)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

const machine = `<system version="1">
  <cpu numaid="-1" affinity="ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:18:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1">
        <nvlink target="fffffff:ff:ff.0" count="2" tclass="0x068000"/>
      </gpu>
    </pci>
    <pci busid="0000:2a:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="90" rank="1" gdr="1">
        <nvlink target="0000:2a:00.0" count="1" tclass="0x030200"/>
      </gpu>
    </pci>
  </cpu>
</system>
`

const machineSays = `pci 0000:18:00.0 32.0 GT/s 16
pci 0000:2a:00.0 32.0 GT/s 16
gpu 0 0000:18:00.0 rank 0 nvswitch:unknown nvswitch:unknown
gpu 1 0000:2a:00.0 rank 1 gpu:0000:2a:00.0
`

// The hidden end of an NVLink is a switch that is not seen, an NVLink to the GPU
// itself is kept and said, a node of -1 is no node.
func TestHazardsOfTopologyXML(t *testing.T) {
	texts := carried(machine)
	for name, text := range map[string]string{
		"comments":        strings.Replace(machine, "  <cpu", "  <!-- was -- <cpu numaid=\"0\"> -->\n  <cpu", 1),
		"comment before":  "<!-- nvidia-smi topo -m -->\n" + machine,
		"declaration":     "<?xml version=\"1.0\"?>\n" + machine,
		"smart quotes":    regexp.MustCompile(`"([^"]*)"`).ReplaceAllString(machine, "“$1”"),
		"low quotes":      regexp.MustCompile(`"([^"]*)"`).ReplaceAllString(machine, "„$1“"),
		"single quotes":   regexp.MustCompile(`"([^"]*)"`).ReplaceAllString(machine, "‘$1’"),
		"quotes in fence": "```xml\n" + regexp.MustCompile(`"([^"]*)"`).ReplaceAllString(machine, "“$1”") + "```\n",
		"speed as 4.x":    strings.ReplaceAll(machine, "32.0 GT/s PCIe", "32 GT/s"),
		"speed doubled":   strings.ReplaceAll(machine, "32.0 GT/s PCIe", "32 GT/s PCIe/s"),
		"tabs":            strings.ReplaceAll(machine, "  ", "\t"),
	} {
		texts[name] = text
	}
	for name, text := range texts {
		c, sources := take(t, name, text)
		if k := kinds(sources); k != kindNCCLXML {
			t.Errorf("%s: %s", name, k)
		}
		if d := cmp.Diff(machineSays, said(c)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if h := c.Hosts[0]; len(h.NUMA) != 0 || !h.PCI[0].NUMANone || h.PCI[0].CPUs != "0-15" {
			t.Errorf("%s: numaid -1: %+v, %+v", name, h.NUMA, h.PCI[0])
		}
		if g := gapsOf(c); !strings.Contains(g, "gpu:0000:2a:00.0 nvlinks: an <nvlink> that leads to the GPU itself") {
			t.Errorf("%s: %s", name, g)
		}
	}
	for name, x := range map[string]struct{ old, new, want, gap string }{
		"empty speed": {`link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0"`, `link_speed="" link_width="16">
      <gpu dev="0"`, strings.Replace(machineSays, "18:00.0 32.0 GT/s 16", "18:00.0 unknown 16", 1), ""},
		"width 0": {`link_width="16">
      <gpu dev="0"`, `link_width="0">
      <gpu dev="0"`, strings.Replace(machineSays, "18:00.0 32.0 GT/s 16", "18:00.0 32.0 GT/s unknown", 1), ""},
		"two <gpu>": {"      </gpu>\n    </pci>\n    <pci", "      </gpu>\n      <gpu dev=\"0\" sm=\"90\" mlopart=\"1\" rank=\"2\" gdr=\"1\"/>\n    </pci>\n    <pci", machineSays,
			"gpu:0000:18:00.0 rank: rank 2 is on the same GPU"},
		"repeated rank": {`rank="1"`, `rank="0"`, strings.Replace(machineSays, "rank 1", "rank 0", 1), ""},
		"NIC outside every cpu": {"</system>", "  <nic><net name=\"mlx5_0\" speed=\"400000\" port=\"1\" guid=\"0x1\"/></nic>\n</system>", machineSays + "hca mlx5_0 1  400 Gb/s\n",
			"<nic> on line 14: numa: stands under no <cpu>; NCCL ignores it"},
	} {
		if !strings.Contains(machine, x.old) {
			t.Fatalf("%s: not in the text", name)
		}
		c, _ := take(t, name, strings.Replace(machine, x.old, x.new, 1))
		if d := cmp.Diff(x.want, said(c)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if g := gapsOf(c); !strings.Contains(g, x.gap) {
			t.Errorf("%s: %s", name, g)
		}
	}
}

// A port that is down shows "10 Gb/sec", which is no slow link.
func TestHazardPortDown(t *testing.T) {
	const status = "Infiniband device 'mlx5_0' port 1 status:\n\tbase lid:\t 0x81\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 200 Gb/sec (4X HDR)\n\tlink_layer:\t InfiniBand\n\n" +
		"Infiniband device 'mlx5_1' port 1 status:\n\tbase lid:\t 0xffff\n\tstate:\t\t 1: DOWN\n\tphys state:\t 3: Disabled\n\trate:\t\t 10 Gb/sec (4X)\n\tlink_layer:\t InfiniBand\n\n"
	for name, text := range carried(status) {
		c, sources := take(t, name, text)
		if k := kinds(sources); k != kindIBStatus {
			t.Errorf("%s: %s", name, k)
		}
		if d := cmp.Diff("hca mlx5_0 1 ACTIVE 200 Gb/s\nhca mlx5_1 1 DOWN 10 Gb/s\n", said(c)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	c, _ := take(t, "", status)
	topo, err := graph.Build(c.Hosts[0])
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, f := range check.Run(topo, check.All()).Findings {
		rules = append(rules, f.Rule)
	}
	if slices.Contains(rules, "hca-rate-low") || !slices.Contains(rules, "hca-port-down") {
		t.Errorf("findings %v", rules)
	}
}

// Without MPI every process of nccl-tests calls itself rank 0; their rows stand in
// one table, from which nothing is measured.
func TestHazardRepeatedRanks(t *testing.T) {
	device := "#  Rank  0 Group  0 Pid   %d on       gx01 device  %d [0000:%02x:00] NVIDIA H100\n"
	const columns = "#\n#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n" +
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n"
	const row = "     1048576        262144     float     sum      -1    10.00  104.86    0.00       0    10.00  104.86    0.00       0\n"
	const head = "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
	text := head + fmt.Sprintf(device, 11, 0, 0x18) + columns + head + fmt.Sprintf(device, 12, 1, 0x2a) + columns + row + row
	c, sources := take(t, "", text)
	if kinds(sources) != kindNCCLTests || len(c.Samples) != 0 || len(c.Hosts) != 1 || len(c.Hosts[0].GPUs) != 2 {
		t.Errorf("%s, %d samples, %s", kinds(sources), len(c.Samples), said(c))
	}
	if g := gapsOf(c); !strings.Contains(g, "several processes ran the test each for itself") {
		t.Error(g)
	}
}

// Sixteen processes write into one file, and lines are torn where another writes:
// nothing that comes of it is false, and nearly all of it is there.
func TestHazardInterleaved(t *testing.T) {
	const ranks, channels = 16, 24
	for seed := range uint64(24) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		left := make([][]string, ranks)
		var b strings.Builder
		for r := range ranks {
			who := fmt.Sprintf("gx01:%d:%d [%d] NCCL INFO ", 700+r, 800+r, r)
			fmt.Fprintf(&b, "%sncclCommInitRankConfig comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d busId %x000 commId 0xabc - Init START\n", who, 0x5500+r, r, ranks, r, r, 0x10+r)
			for ch := range channels {
				line := fmt.Sprintf("%sChannel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM/read\n", who, ch, r, r, (r+1)%ranks, (r+1)%ranks)
				if cut := rnd.IntN(16 * len(line)); cut > 0 && cut < len(line) {
					left[r] = append(left[r], line[:cut], line[cut:])
				} else {
					left[r] = append(left[r], line)
				}
			}
		}
		for n := ranks; n > 0; {
			r := rnd.IntN(ranks)
			if len(left[r]) == 0 {
				continue
			}
			b.WriteString(left[r][0])
			if left[r] = left[r][1:]; len(left[r]) == 0 {
				n--
			}
		}
		c, _ := take(t, "", b.String())
		if len(c.Hosts) != 1 || c.Hosts[0].Host.Name != "gx01" || len(c.Comms) != 1 || c.Comms[0].Ranks != ranks {
			t.Fatalf("seed %d: hosts %v, %d communicators", seed, c.Names(), len(c.Comms))
		}
		found := 0
		for _, k := range c.Comms[0].Conns {
			found += k.Channels
			if k.To != (k.From+1)%ranks || k.Via != probe.ViaP2P || k.Variant != "CUMEM" && k.Variant != "" || k.Channels > channels {
				t.Errorf("seed %d: %+v", seed, k)
			}
		}
		if found < ranks*channels*8/10 {
			t.Errorf("seed %d: %d connections of %d", seed, found, ranks*channels)
		}
	}
}

const jobLog = "gx01:10:11 [0] NCCL INFO ncclCommInitRankConfig comm 0x5500 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId 0xabc - Init START\n" +
	"gx01:10:12 [1] NCCL INFO ncclCommInitRankConfig comm 0x5600 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 2a000 commId 0xabc - Init START\n" +
	"gx01:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n" +
	"gx01:10:11 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n"

const kernel = "[ 1234.567890] NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"

// Several outputs in one text, each read by its reader.
func TestPastedTogether(t *testing.T) {
	text := "root@gx01:~# nvidia-smi topo -m\n" + matrix + "root@gx01:~# cat job.log\n" + jobLog + "root@gx01:~# dmesg | grep NVRM\n" + kernel
	want := "host gx01\n" + strings.NewReplacer("gpu 0 near", "gpu 0 0000:18:00.0 near", "gpu 1 near", "gpu 1 0000:2a:00.0 near").Replace(matrixSays) +
		"0>1 P2P CUMEM x2\nxid 79 gpu:0000:18:00.0\n"
	for name, text := range carried(text) {
		c, sources := take(t, name, text)
		if k := kinds(sources); k != strings.Join([]string{kindSMITopo, kindNCCLLog, kindKernLog}, ", ") {
			t.Errorf("%s: %s", name, k)
		}
		if d := cmp.Diff(want, said(c)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if g := gapsOf(c); g != "" {
			t.Errorf("%s: gaps %s", name, g)
		}
	}
}

// An XML document between other outputs, and a fault in it at its place in the
// whole text.
func TestPastedDocument(t *testing.T) {
	log := strings.ReplaceAll(jobLog, "2a000", "2a000")
	text := "$ cat topo.xml\n" + machine + "$ cat job.log\n" + log
	for name, text := range carried(text) {
		c, sources := take(t, name, text)
		if k := kinds(sources); k != kindNCCLXML+", "+kindNCCLLog {
			t.Errorf("%s: %s", name, k)
		}
		if len(c.Hosts) != 1 || len(c.Hosts[0].GPUs) != 2 || c.Hosts[0].Host.Name != "gx01" || len(c.Comms) != 1 {
			t.Errorf("%s: %s", name, said(c))
		}
	}
	for _, x := range []struct{ text, want string }{
		{strings.Replace(text, `count="2"`, `count="many"`, 1), `standard input:6:9: <nvlink> count "many": not a whole number`},
		{quote(strings.Replace(text, `count="2"`, `count="many"`, 1)), `standard input:6:9: <nvlink> count "many": not a whole number`},
		{"$ cat topo.xml\n" + machine[:len(machine)-30], "standard input:13:1: the document is cut off inside <pci> of line 9"},
	} {
		if _, _, err := Read([]string{"-"}, strings.NewReader(x.text)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("got %v\nwant %s", err, x.want)
		}
	}
}

// What is known and not read is called by its name.
func TestKnownAndRefused(t *testing.T) {
	for text, want := range map[string]string{
		"vendid=0x2c9\nSwitch\t36 \"S-0002c90300b42d10\"\t\t# \"SwitchX\" base port 0 lid 1 lmc 0\n": "ibnetdiscover output, which is not read yet",
		"17:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n":                "lspci output, which is not read yet",
		"| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |\n":                "the summary of nvidia-smi, which shows no topology",
		"#NVL GPUs size algbw busbw\nNVL4 12 1073741824 107.30 196.72\n":                             "a table of bandwidths that somebody made",
		"algbw and busbw are low here\n":                                                             "text not recognised",
		"Switch on the 3D controller\n":                                                              "text not recognised",
	} {
		if _, _, err := Read([]string{"-"}, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
