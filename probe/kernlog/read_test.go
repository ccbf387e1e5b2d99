package kernlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func read(t *testing.T, text string) *Log {
	t.Helper()
	l, err := Read("kern.log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Inventories()[0].Validate(); err != nil {
		t.Error(err)
	}
	return l
}

// show prints a record in one line.
func show(r Record) string {
	code := ""
	if c, ok := r.Code.Get(); ok {
		code = fmt.Sprintf(" %d", c)
	}
	return strings.TrimSpace(fmt.Sprintf("%s%s %s %s x%d %d-%d %s", r.Kind, code, r.Subject, r.Severity, r.Count, r.First, r.Last, r.Process))
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "xid 79 gpu:0000:65:00.0 critical x1 1-1"},
		{"[ 1234.567890] NVRM: Xid (PCI:0000:65:00): 31, pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault", "xid 31 gpu:0000:65:00.0 info x1 1-1 pid 4711 python3"},
		{"[ 1234.567890] NVRM: Xid (0000:65:00): 13, 0003 00000000 000090c0", "xid 13 gpu:0000:65:00.0 info x1 1-1"},
		{"[   12.345678] NVRM: Xid (0002:00): 8, Channel 0000001e", "xid 8  warning x1 1-1"},
		{"[Tue Mar 17 21:04:30 2026] NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0)", "xid 149 gpu:0009:01:00.0 critical x1 1-1"},
		{"Mar 17 21:04:30 gx07 kernel: NVRM: Xid (PCI:0009:01:00): 149, NETIR_LINK_DOWN Nonfatal XC1 i2 Link 17 (0x0)", "xid 149 gpu:0009:01:00.0 warning x1 1-1"},
		{"2026-03-17T21:04:30.123456+00:00 gx07 kernel: [   99.123456] NVRM: Xid (PCI:0000:17:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "xid 154 gpu:0000:17:00.0 critical x1 1-1"},
		{"NVRM: Xid (PCI:0000:17:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "xid 154 gpu:0000:17:00.0 info x1 1-1"},
		{"4,1234,5678901,-;NVRM: Xid (PCI:0000:17:00 GPU-I:02): 94, pid=12, Contained", "xid 94 gpu:0000:17:00.0 warning x1 1-1 pid 12"},
		{"<4>[   99.123456] NVRM: Xid (PCI:0000:17:00): 999, new", "xid 999 gpu:0000:17:00.0 warning x1 1-1"},
		{"kern  :err   : [   99.123456] NVRM: Xid (PCI:0000:17:00): 48, DBE", "xid 48 gpu:0000:17:00.0 critical x1 1-1"},
		{"> quoted: NVRM: Xid (PCI:0000:17:00): 48, DBE", "xid 48 gpu:0000:17:00.0 critical x1 1-1"},
		{"[   99.123456] NVRM: Xid (PCI:0000:17:00): garbled", "nvrm  warning x1 1-1"},
		{"[   99.123456] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 28 LTSSM Fault Up", "sxid 20034 pci:0000:c1:00.0 critical x1 1-1"},
		{"[   99.123456] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20009, Non-fatal, Link 28 RX Short Error Rate", "sxid 20009 pci:0000:c1:00.0 warning x1 1-1"},
		{"[   99.123456] nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20009, Data {0x0000001c}", ""},
		{"[   99.123456] NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.", "nvrm gpu:0000:65:00.0 critical x1 1-1"},
		{"[   99.123456] NVRM: GPU 0000:65:00.0: RmInitAdapter failed! (0x26:0x56:1474)", "nvrm gpu:0000:65:00.0 critical x1 1-1"},
		{"[   99.123456] NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!", "nvlink  warning x1 1-1"},
		{"[   99.123456] nvidia-nvlink: Nvlink Core is being initialized, major device number 234", ""},
		{"[   99.123456] nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", "peermem  warning x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0 ens1np0: Link down", "mlx5 pci:0000:15:00.0 warning x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0: mlx5_0: Port: 1 Link ACTIVE", "mlx5 pci:0000:15:00.0 info x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0: Port module event: module 0, Cable unplugged", "mlx5 pci:0000:15:00.0 warning x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count", "mlx5 pci:0000:15:00.0 critical x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0: mlx5_pcie_event:299:(pid 26): Detected insufficient power on the PCIe slot (27W).", "mlx5 pci:0000:15:00.0 warning x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0: firmware version: 28.39.1002", ""},
		{"[   99.123456] mlx5_core 0000:15:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:14:01.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)", "mlx5 pci:0000:15:00.0 warning x1 1-1"},
		{"[   99.123456] mlx5_core 0000:15:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)", ""},
		{"[    1.123456] pci 0000:05:00.0: 4.000 Gb/s available PCIe bandwidth, limited by 5.0 GT/s PCIe x1 link at 0000:00:1c.1 (capable of 7.876 Gb/s with 8.0 GT/s PCIe x1 link)", "pcie pci:0000:05:00.0 warning x1 1-1"},
		{"[   99.123456] pcieport 0000:00:1c.0: AER: Multiple Corrected error received: 0000:65:00.0", "aer pci:0000:65:00.0 info x1 1-1"},
		{"[   99.123456] pcieport 0000:00:1c.0: AER: Uncorrectable (Fatal) error message received from 0000:65:00.0", "aer pci:0000:65:00.0 critical x1 1-1"},
		{"[   99.123456] pcieport 0000:00:1c.0: AER: Corrected error received: id=00e0", "aer pci:0000:00:1c.0 info x1 1-1"},
		{"[   99.123456] nvidia 0000:65:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)", "aer pci:0000:65:00.0 warning x1 1-1"},
		{"[   99.123456] igb 0000:09:00.0: AER:   device [8086:1537] error status/mask=00004000/00000000", ""},
		{"[   99.123456] pcieport 0000:00:1b.0: DPC: containment event, status:0x1f01 source:0x0000", "aer pci:0000:00:1b.0 critical x1 1-1"},
		{"[   99.123456] pcieport 0000:00:1b.0: pciehp: Slot(5): Link Down", "pcie pci:0000:00:1b.0 warning x1 1-1"},
		{"[   99.123456] DMAR: [DMA Write NO_PASID] Request device [65:00.0] fault addr 0xfff [fault reason 0x05]", "iommu pci:0000:65:00.0 warning x1 1-1"},
		{"[   99.123456] nvidia 0000:65:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0000 address=0x0]", "iommu pci:0000:65:00.0 warning x1 1-1"},
		{"[    0.123456] iommu: Default domain type: Translated (set via kernel command line)", "iommu  info x1 1-1"},
		{"[   99.123456] e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps", ""},
	} {
		l := read(t, c.line+"\n[    1.000000] end\n")
		got := ""
		if len(l.Records) > 0 {
			got = show(l.Records[0])
		}
		if got != c.want || len(l.Records) > 1 {
			t.Errorf("%s\n got %q\nwant %q", c.line, got, c.want)
		}
		if c.want != "" && strings.Contains(c.want, "xid") && !Sniff([]byte(c.line)) {
			t.Errorf("%s: not recognised", c.line)
		}
	}
}

const boot = `[    0.000000] Linux version 5.15.0-105-generic (build@host) (gcc 11) #115 SMP
[    0.000000] Command line: BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt
[    0.000000] Hypervisor detected: KVM
[    0.512345] pci 0000:65:00.0: Adding to iommu group 21
[    8.123456] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (builder@host)
[   20.123456] NVRM: GPU at PCI:0000:65:00: GPU-01234567-89ab-cdef-0123-456789abcdef
[   20.123456] NVRM: Xid (PCI:0000:65:00): 74, pid=12, name=a, NVLink: fatal error detected on Link 3
[   30.123456] pcieport 0000:64:01.0: AER: Corrected error received: 0000:65:00.0
[   30.123456] nvidia 0000:65:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)
[   30.123456] nvidia 0000:65:00.0:   device [10de:2330] error status/mask=00000001/0000a000
[   40.123456] NVRM: Xid (PCI:0000:65:00): 74, pid=13, name=b, NVLink: fatal error detected on Link 3
`

func TestBoot(t *testing.T) {
	l := read(t, boot)
	if l.Driver != "580.95.05" || l.OpenModule != probe.Some(true) || l.Boots != 1 || l.Messages != 11 {
		t.Errorf("%+v", l)
	}
	var got []string
	for _, r := range l.Records {
		got = append(got, show(r))
	}
	if want := []string{"xid 74 gpu:0000:65:00.0 critical x2 7-11 pid 12 a", "aer pci:0000:65:00.0 info x1 8-9"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if l.Records[0].Link != probe.Some(3) || l.Records[0].LastAt != "40.123456" {
		t.Errorf("%+v", l.Records[0])
	}
	inv := l.Inventories()[0]
	if inv.Host.Kernel != "5.15.0-105-generic" || inv.Settings.IOMMU != probe.Some(true) || !strings.Contains(inv.Settings.Cmdline, "iommu=pt") ||
		inv.Runtime.Driver != "580.95.05" || len(inv.Settings.Guest) != 1 || len(inv.GPUs) != 1 || inv.GPUs[0].UUID == "" {
		t.Errorf("%+v", inv)
	}
	e := inv.Events[0]
	if e.Kind != "xid" || e.Code != probe.Some(74) || e.Subject != "gpu:0000:65:00.0" || e.Count != 2 || e.Origins[0].Where != "kern.log:7" || e.Origins[1].Where != "kern.log:11" {
		t.Errorf("%+v", e)
	}
}

func TestDriver(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024":                                   "535.183.01",
		"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.124.06  Release Build":                                        "570.124.06",
		"NVRM: loading NVIDIA UNIX x86 Kernel Module  1.0-9755  Mon Feb 26":                                                          "1.0-9755",
		"NVRM: API mismatch: the client has the version 535.54.03, but\nNVRM: this kernel module has the version 535.86.05.  Please": "535.86.05",
	} {
		if l := read(t, text+"\n"); l.Driver != want {
			t.Errorf("%s: %q", text, l.Driver)
		}
	}
}

func TestLimit(t *testing.T) {
	l := read(t, "[   99.123456] mlx5_core 0000:15:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:14:01.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)\n")
	p := l.Records[0].PCIe
	if p == nil || p.AvailableGbps != 63.008 || p.CapableGbps != 252.048 || p.Limit.Width != probe.Some(8) || p.Capable.Width != probe.Some(16) ||
		p.At != probe.Some(probe.MustBDF("0000:14:01.0")) || p.Limit.Speed != probe.Some(probe.PCIeSpeed(8000)) {
		t.Errorf("%+v", p)
	}
}

func TestSeveralHosts(t *testing.T) {
	l := read(t, "Mar 17 21:04:30 b kernel: NVRM: Xid (PCI:0000:65:00): 79, x\nMar 17 21:04:31 a kernel: NVRM: Xid (PCI:0000:65:00): 79, x\n")
	if !slices.Equal(l.Hosts(), []string{"a", "b"}) || len(l.Records) != 2 {
		t.Fatalf("%+v", l)
	}
	invs := l.Inventories()
	if e := invs[0].Events[0]; e.Subject != "gpu:0000:65:00.0" || e.Host != "b" || len(invs[0].Gaps) != 1 || invs[0].Host.Name != "" || len(invs) != 3 || invs[2].Host.Name != "b" {
		t.Errorf("%+v", invs)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "kern.log: empty: no kernel log"},
		{"journal file", "LPKSHHRH\x00\x00\x00", "kern.log:1: binary data, not kernel log text; print a journal with journalctl -k"},
		{"other text", "hello\nXid 79\nmlx5_0 is up\n", "kern.log: no line has the form of a kernel message"},
		{"NCCL log", "gx01:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n", "no line has the form"},
		{"MPI tags", "[1,0]<stdout>:hello\n[1,1]<stdout>:hello\n", "no line has the form"},
		{"syslog without the kernel", "Mar 17 21:04:30 gx07 systemd[1]: Started x.\n", "no line has the form"},
	} {
		l, err := Read("kern.log", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if err == nil || l != nil || !errors.As(err, &syn) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
		if Sniff([]byte(c.text)) {
			t.Errorf("%s: recognised", c.name)
		}
	}
	if _, err := Read("k", io.MultiReader(strings.NewReader(boot), failing{})); err == nil || !strings.Contains(err.Error(), "k: broken") {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

// TestBounded: many different messages and a very long line cost bounded memory.
func TestBounded(t *testing.T) {
	var b bytes.Buffer
	for i := range maxRecords + 100 {
		fmt.Fprintf(&b, "[   99.123456] NVRM: Xid (PCI:%04x:65:00): 79, x\n", i)
	}
	b.WriteString("[   99.123456] NVRM: Xid (PCI:0000:65:00): 79, " + strings.Repeat("x", probe.MaxLine) + "\n")
	l := read(t, b.String())
	if len(l.Records) != maxRecords || l.Dropped != 100 || l.CutLong != 1 || len(l.Records[0].Text) > maxText {
		t.Errorf("%d records, %d dropped, %d cut", len(l.Records), l.Dropped, l.CutLong)
	}
}

func TestTables(t *testing.T) {
	if !slices.IsSortedFunc(xids, func(a, b Xid) int { return a.Code - b.Code }) {
		t.Error("codes are not in order")
	}
	for i, x := range xids {
		if x.Name == "" || x.Meaning == "" || x.Act == "" || x.Severity.rank() < 0 || i > 0 && xids[i-1].Code == x.Code {
			t.Errorf("%+v", x)
		}
	}
	// What stops a job, and what is the program's own business.
	for severity, codes := range map[Severity][]int{
		Critical: {48, 64, 74, 79, 95, 119, 120, 136, 140, 143, 144, 145, 146, 147, 148, 149, 150, 154, 155},
		Warning:  {63, 94, 137},
		Info:     {13, 31, 43, 45},
	} {
		for _, c := range codes {
			if x, ok := XidOf(c); !ok || x.Severity != severity {
				t.Errorf("%d: %v, want %s", c, x, severity)
			}
		}
	}
	if x, ok := XidOf(9999); ok || x.Severity != Warning || SXidMeaning(20034) == "" || SXidMeaning(1) != "" {
		t.Error("unknown codes")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(boot))
	f.Add([]byte("Mar 17 21:04:30 b kernel: nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 28\n4,1,2,-;DMAR: [DMA Read] Request device [65:00.0] fault\n"))
	f.Add([]byte("kern  :err   : [   99.123456] mlx5_core 0000:15:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:14:01.0 (capable of 1 Gb/s with 16.0 GT/s PCIe x16 link)\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		l, err := Read("f", bytes.NewReader(text))
		if (err == nil) != (l != nil) {
			t.Fatalf("%v with %v", l, err)
		}
		if err != nil {
			return
		}
		for _, r := range l.Records {
			if r.Count < 1 || r.First < 1 || r.Last < r.First || r.Last > l.Lines {
				t.Fatalf("%+v", r)
			}
		}
		if err := l.Inventories()[0].Encode(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	plain := strings.Repeat("[  200.123456] systemd[1]: Started Daily apt download activities and something else.\n[  200.223456] audit: type=1400 audit(1700000000.1:23): apparmor=\"STATUS\" operation=\"profile_load\"\n", 30)
	for name, text := range map[string]string{
		"quiet":  strings.Repeat(plain, 40),
		"syslog": strings.ReplaceAll(strings.Repeat(plain, 40), "[  200", "Mar 17 21:04:30 gx07 kernel: [  200"),
		"events": strings.Repeat(boot, 300),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read("b", strings.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
