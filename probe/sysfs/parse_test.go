package sysfs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// parser is a row of TestParsers: what the text means, and what must not be
// taken for a value.
type parser struct {
	name  string
	parse func(string) (string, error) // value, or "unknown"
	good  map[string]string
	bad   []string
}

func text[T any](parse func(string) (probe.Opt[T], error)) func(string) (string, error) {
	return func(s string) (string, error) {
		v, err := parse(s)
		return v.String(), err
	}
}

func TestParsers(t *testing.T) {
	for _, p := range []parser{
		{"class", text(parseClass),
			map[string]string{"0x030200": "0x030200", "0x060400": "0x060400", "020000": "0x020000"},
			[]string{"", "0x", "GPU", "0x1030200", "-1"}},
		{"id", text(parseID),
			map[string]string{"0x10de": "0x10de", "15b3": "0x15b3"},
			[]string{"", "0x110de", "nvidia"}},
		{"numa_node", text(parseNUMA),
			map[string]string{"0": "0", "3": "3", "-1": "-1"},
			[]string{"", "-2", "a", "1.0"}},
		{"width", text(parseWidth),
			map[string]string{"16": "16", "1": "1", "x8": "8", "0": "unknown", "255": "unknown", "63": "unknown", "Unknown": "unknown", "": "unknown"},
			[]string{"x?", "3", "64", "-16", "16x"}},
		{"link speed", text(probe.ParsePCIeSpeed),
			map[string]string{"32.0 GT/s PCIe": "32.0 GT/s", "8 GT/s": "8.0 GT/s", "Unknown": "unknown", "Unknown speed": "unknown"},
			[]string{"32", "7.0 GT/s"}},
		{"port rate", text(probe.ParsePortRate),
			map[string]string{
				"400 Gb/sec (4X NDR)": "50 GB/s", "200 Gb/sec (4X HDR)": "25 GB/s", "100 Gb/sec (2X HDR)": "12.5 GB/s",
				"2.5 Gb/sec (1X SDR)": "0.31 GB/s", "10 Gb/sec (4X)": "1.25 GB/s", "0 Gb/sec": "unknown",
			},
			[]string{"", "400", "Gb/sec", "NaN Gb/sec", "+Inf Gb/sec", "-1 Gb/sec", "1e300 Gb/sec", "400 Mb/sec"}},
		{"port state", text(probe.ParsePortState),
			map[string]string{"4: ACTIVE": "ACTIVE", "5: LinkUp": "LinkUp", "7: Phy Test": "Phy Test", "9: <unknown>": "unknown"},
			[]string{"", "ACTIVE", "4:", ": ACTIVE", "four: ACTIVE"}},
		{"link layer", text(parseLinkLayer),
			map[string]string{"InfiniBand": "InfiniBand", "Ethernet": "Ethernet", "Unknown": "unknown", "Unspecified": "unknown"},
			[]string{"ethernet", "IB"}},
		{"gid", text(parseGID),
			map[string]string{
				"fe80:0000:0000:0000:0c42:a103:0095:7e2c": "fe80:0000:0000:0000:0c42:a103:0095:7e2c",
				"0000:0000:0000:0000:0000:FFFF:0a37:0215": "0000:0000:0000:0000:0000:ffff:0a37:0215",
				"0000:0000:0000:0000:0000:0000:0000:0000": "unknown",
			},
			[]string{"", "fe80::1", "fe80:0000:0000:0000:0c42:a103:0095", "fe80:0000:0000:0000:0c42:a103:0095:7e2g", "fe80:0000:0000:0000:0c42:a103:0095:07e2c"}},
		{"guid", text(parseGUID),
			map[string]string{"b8ce:f603:00a1:7c00": "b8ce:f603:00a1:7c00", "0000:0000:0000:0000": "unknown"},
			[]string{"", "b8ce", "0xb8cef60300a17c00"}},
		{"netdev speed", text(parseSpeed),
			map[string]string{"100000": "12.5 GB/s", "10": "0 GB/s", "-1": "unknown", "0": "unknown", "4294967295": "unknown"},
			[]string{"", "fast", "1e5", "99999999999999999999", "9999999999"}},
		{"mtu", text(parseMTU),
			map[string]string{"1500": "1500", "65536": "65536"},
			[]string{"", "-1", "1500 bytes"}},
		{"carrier", text(parseFlag),
			map[string]string{"0": "false", "1": "true"},
			[]string{"", "2", "yes"}},
		{"operstate", text(parseOperState),
			map[string]string{"up": "up", "lowerlayerdown": "lowerlayerdown", "unknown": "unknown", "": "unknown"},
			nil},
		{"distance", text(parseDistances),
			map[string]string{"10": "[10]", "10 21 21 21": "[10 21 21 21]", "": "unknown"},
			[]string{"10 x", "-10", "10,21"}},
		{"cpulist", text(parseCPUs),
			map[string]string{"0-31,64-95": "0-31,64-95", "": ""},
			[]string{"31-0", "a", "0-99999999"}},
		{"cpumap", text(parseMask),
			map[string]string{"00000000,ffffffff": "0-31"},
			[]string{"xyz"}},
	} {
		for in, want := range p.good {
			got, err := p.parse(in)
			if err != nil || got != want {
				t.Errorf("%s %q: %s, %v; want %s", p.name, in, got, err, want)
			}
		}
		for _, in := range p.bad {
			if got, err := p.parse(in); err == nil {
				t.Errorf("%s %q: %s, want an error", p.name, in, got)
			}
		}
	}
}

func TestPosition(t *testing.T) {
	for dir, want := range map[string]string{
		"sys/devices/pci0000:14/0000:14:01.0/0000:15:00.0/0000:17:00.0":                       "pci0000:14 0000:15:00.0 0000:14:01.0",
		"sys/devices/pci0000:00/0000:00:06.0":                                                 "pci0000:00",
		"sys/devices/pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0":         "pci10000:00 10000:00:02.0",
		"sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/ab/pci0001:00/0001:00:00.0": "pci0001:00",
		"sys/devices/platform/14100000.pcie/pci0005:00/0005:00:00.0/0005:01:00.0":             "pci0005:00 0005:00:00.0",
		"sys/bus/pci/devices/0000:17:00.0":                                                    "",
		"0000:17:00.0":                                                                        "",
	} {
		root, above := position(dir)
		got := []string{root}
		for _, a := range above {
			got = append(got, a[strings.LastIndex(a, "/")+1:])
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: %q, want %q", dir, g, want)
		}
	}
}

const xeon = `processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480C
physical id	: 0
flags		: fpu vme lm

processor	: 1
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480C
physical id	: 1
flags		: fpu vme lm

processor	: 2
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
physical id	: 0
flags		: fpu vme lm
`

func TestParseCPUInfo(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []processorType
	}{
		{"two packages", xeon, []processorType{
			{pkg: probe.Some(0), arch: "x86_64", vendor: "GenuineIntel", family: probe.Some(6), model: probe.Some(143), name: "Intel(R) Xeon(R) Platinum 8480C"},
			{pkg: probe.Some(1), arch: "x86_64", vendor: "GenuineIntel", family: probe.Some(6), model: probe.Some(143), name: "Intel(R) Xeon(R) Platinum 8480C"},
		}},
		// Zen 3: the kernel says 25, CPUID base 15 and extended 10.
		{"guest", "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nflags\t\t: fpu hypervisor lm\n", []processorType{
			{arch: "x86_64", vendor: "AuthenticAMD", family: probe.Some(175), model: probe.Some(1), hypervisor: true},
		}},
		{"blanks of the vendor", "vendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t\t: 91\n", []processorType{
			{arch: "x86_64", vendor: "  Shanghai  ", family: probe.Some(7), model: probe.Some(91)},
		}},
		{"arm64", "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd4f\n", []processorType{{arch: "arm64"}}},
		{"32-bit arm", "CPU implementer\t: 0x41\nCPU architecture: 7\n", []processorType{{}}},
		{"power", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2300.000000MHz\n", []processorType{{arch: "ppc64", name: "POWER9, altivec supported"}}},
		{"s390", "vendor_id       : IBM/S390\n# processors    : 4\n", nil},
		{"empty", "", nil},
		{"no lines", "\x00\xff::\n\n:::", nil},
	} {
		if d := cmp.Diff(c.want, parseCPUInfo(c.text), cmp.AllowUnexported(processorType{}, probe.Opt[int]{})); d != "" {
			t.Errorf("%s:\n%s", c.name, d)
		}
	}
	got := parseCPUInfo("vendor_id\t: GenuineIntel\ncpu family\t: six\nmodel\t\t: 99999999999\n")
	if len(got) != 1 || got[0].family.Known() || got[0].model.Known() || len(got[0].unreadable) != 2 {
		t.Errorf("numbers that are none: %+v", got)
	}
}

func TestParseModalias(t *testing.T) {
	got, ok := parseModalias("cpu:type:x86,ven0000fam0006mod00CF:feature:,0000,003D,009F,0282")
	want := processorType{arch: "x86_64", vendor: "GenuineIntel", family: probe.Some(6), model: probe.Some(207), hypervisor: true}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(processorType{}, probe.Opt[int]{})); d != "" || !ok {
		t.Error(d)
	}
	if got, ok := parseModalias("cpu:type:x86,ven0002fam001Amod0002:feature:,0000"); !ok || got.family != probe.Some(191) || got.arch != "" {
		t.Errorf("without long mode: %+v", got)
	}
	if got, ok := parseModalias("cpu:type:aarch64:feature:,0000"); !ok || got.arch != "arm64" {
		t.Errorf("arm64: %+v", got)
	}
	for _, s := range []string{"", "cpu:type:x86", "cpu:type:x86,ven:feature:", "cpu:type:x86,venXfamYmodZ:feature:,0000", "cpu:type:s390:feature:,0000", "pci:v000010DE"} {
		if got, ok := parseModalias(s); ok {
			t.Errorf("%q: %+v", s, got)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		" H200 \n": "H200", "a\tb": "a b", "a\x00b\x1b[1m": "ab[1m", "\xff": "\uFFFD",
		strings.Repeat("é", 3000): strings.Repeat("é", 2048),
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	for _, s := range []string{"", "a b", "a/b", "a,b", "\xff", "a\n", strings.Repeat("a", 129), `a"b`} {
		if isName(s) {
			t.Errorf("%q is taken as a name", s)
		}
	}
}

func TestEngines(t *testing.T) {
	for text, want := range map[string]string{
		"0::/\n": "", "12:pids:/docker/0123\n": "docker", "0::/kubepods.slice/cri-containerd-1.scope\n": "kubepods",
		"1:name=systemd:/lxc/a\n": "lxc", "0::/system.slice/containerd.service": "containerd", "0::/init.scope\n": "",
	} {
		if got := containerEngine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzRate(f *testing.F) {
	f.Add("400 Gb/sec (4X NDR)")
	f.Add("2.5 Gb/sec (1X SDR)")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := probe.ParsePortRate(s)
		if r, ok := v.Get(); ok && (err != nil || r <= 0) {
			t.Errorf("%q: %v, %v", s, r, err)
		}
	})
}

func FuzzState(f *testing.F) {
	f.Add("4: ACTIVE")
	f.Add("9: <unknown>")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := probe.ParsePortState(s)
		if w, ok := v.Get(); ok && (err != nil || w == "" || w != plain(w)) {
			t.Errorf("%q: %q, %v", s, w, err)
		}
	})
}

func FuzzCPUInfo(f *testing.F) {
	f.Add(xeon)
	f.Add("CPU implementer\t: 0x41\nCPU architecture: 8\n")
	f.Add("cpu\t\t: POWER9\n")
	f.Fuzz(func(t *testing.T, s string) {
		seen := map[probe.Opt[int]]bool{}
		for _, p := range parseCPUInfo(s) {
			if seen[p.pkg] {
				t.Errorf("package %v twice", p.pkg)
			}
			seen[p.pkg] = true
			if n, ok := p.pkg.Get(); ok && n < 0 || p.name != plain(p.name) {
				t.Errorf("%+v", p)
			}
		}
		parseModalias(s)
	})
}
