package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	cpuInfoFile  = "proc/cpuinfo"
	modaliasFile = cpuFolder + "/modalias"

	archX86 = "x86_64"
	archArm = "arm64"
	archPPC = "ppc64"
)

// processorType is what the kernel says of the processors of one package.
type processorType struct {
	pkg        probe.Opt[int]
	arch       string // in NCCL's words; "" is unknown
	vendor     string // CPUID string, with the blanks that belong to it
	family     probe.Opt[int]
	model      probe.Opt[int]
	name       string
	hypervisor bool
	unreadable []error
}

// processorTypes are those of all packages, each once.
type processorTypes struct {
	where string
	all   []processorType
}

// processorType reads proc/cpuinfo, or the alias by which the kernel loads
// modules for this processor.
func (r *reader) processorType() processorTypes {
	t := processorTypes{where: cpuInfoFile}
	text, err := r.text(cpuInfoFile, maxCPUInfo)
	if err == nil {
		t.all = parseCPUInfo(text)
	}
	if len(t.all) == 0 {
		if alias, aerr := r.attr(cpuFolder, "modalias"); aerr == nil {
			if p, ok := parseModalias(alias); ok {
				return processorTypes{where: modaliasFile, all: []processorType{p}}
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if r.isDir("proc") {
			r.notRecorded("processor type", cpuInfoFile)
		}
	case err != nil:
		r.gap("processor type", cpuInfoFile, err)
	case len(t.all) == 0:
		r.gap("processor type", cpuInfoFile, errors.New("it describes no processor that is known"))
	}
	for _, p := range t.all {
		for _, e := range p.unreadable {
			r.gap("processor type", cpuInfoFile, e)
		}
	}
	return t
}

// onto puts the type into a package's entry.
func (t processorType) onto(c probe.CPU, pkg int, where string) probe.CPU {
	c.Package, c.Arch, c.Vendor, c.Family, c.Model, c.Name = pkg, t.arch, t.vendor, t.family, t.model, t.name
	o := origin(where)
	if len(c.Origins) > 0 {
		o.Fields = []string{"arch", "vendor", "family", "model", "name"}
	}
	c.Origins = append(c.Origins, o)
	return c
}

// parseCPUInfo reads proc/cpuinfo, whose shape tells the architecture. Each
// package is described once; a text without package numbers gives one entry.
func parseCPUInfo(text string) []processorType {
	var out []processorType
	seen := map[probe.Opt[int]]bool{}
	for block := range strings.SplitSeq(text, "\n\n") {
		t, ok := parseProcessor(block)
		if !ok || seen[t.pkg] || len(out) == maxNodes {
			continue
		}
		seen[t.pkg] = true
		out = append(out, t)
	}
	return out
}

// parseProcessor reads the lines of one processor.
func parseProcessor(block string) (t processorType, ok bool) {
	fields := map[string]string{}
	for line := range strings.SplitSeq(block, "\n") {
		key, value, found := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); found && fields[key] == "" {
			fields[key] = strings.TrimPrefix(value, " ")
		}
	}
	number := func(key string) probe.Opt[int] {
		s := strings.TrimSpace(fields[key])
		if s == "" {
			return probe.Opt[int]{}
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 1<<16 {
			t.unreadable = append(t.unreadable, fmt.Errorf("%s %.20q: not a number up to %d", key, s, 1<<16))
			return probe.Opt[int]{}
		}
		return probe.Some(n)
	}
	switch {
	case fields["vendor_id"] != "" && fields["cpu family"] != "":
		// NVIDIA's drivers and NCCL exist for 64 bits only.
		t.arch = archX86
		t.vendor = vendorString(fields["vendor_id"])
		t.pkg = number("physical id")
		t.family = ncclFamily(number("cpu family"))
		t.model = number("model")
		t.name = plain(fields["model name"])
		t.hypervisor = hasWord(fields["flags"], "hypervisor")
	case fields["CPU implementer"] != "":
		// 32-bit kernels count the architecture up to 7.
		if a := plain(fields["CPU architecture"]); a == "AArch64" || number("CPU architecture").Or(0) >= 8 {
			t.arch = archArm
		}
		t.pkg = number("physical id")
		t.name = plain(fields["model name"])
	case strings.HasPrefix(strings.TrimSpace(fields["cpu"]), "POWER"):
		t.arch = archPPC
		t.name = plain(fields["cpu"])
	default:
		return t, false
	}
	return t, true
}

// vendorString keeps the blanks inside the 12 characters of the CPUID vendor,
// which for Zhaoxin are "  Shanghai  ".
func vendorString(s string) string {
	if v := plain(s); v != "Shanghai" {
		return v
	}
	return "  Shanghai  "
}

// ncclFamily turns the kernel's family (base + extended) into NCCL's
// (base + extended<<4): 25 becomes 175 on Zen 3 and Zen 4, 6 stays 6. Models are
// counted alike by both.
func ncclFamily(kernel probe.Opt[int]) probe.Opt[int] {
	f, ok := kernel.Get()
	if ok && f > 15 {
		return probe.Some(15 + (f-15)<<4)
	}
	return kernel
}

func hasWord(s, word string) bool {
	for f := range strings.FieldsSeq(s) {
		if f == word {
			return true
		}
	}
	return false
}

// Numbers in the kernel's module alias of x86 processors: the vendor's place in
// the kernel's own list and two bits of its feature words (Linux
// arch/x86/include/asm/processor.h, cpufeatures.h).
const (
	aliasLongMode   = "003D" // word 1, bit 29
	aliasHypervisor = "009F" // word 4, bit 31
)

func aliasVendor(n uint64) string {
	switch n {
	case 0:
		return "GenuineIntel"
	case 2:
		return "AuthenticAMD"
	case 5:
		return "CentaurHauls"
	case 9:
		return "HygonGenuine"
	case 10:
		return "  Shanghai  "
	}
	return ""
}

// parseModalias reads sys/devices/system/cpu/modalias, for example
// cpu:type:x86,ven0000fam0006mod00CF:feature:,0000,0001; ok is false for what it
// does not know.
func parseModalias(s string) (t processorType, ok bool) {
	kind, features, found := strings.Cut(strings.TrimPrefix(s, "cpu:type:"), ":feature:")
	if !found {
		return t, false
	}
	if kind == "aarch64" {
		t.arch = archArm
		return t, true
	}
	ids, found := strings.CutPrefix(kind, "x86,ven")
	if !found {
		return t, false
	}
	ven, ids, ok1 := strings.Cut(ids, "fam")
	fam, mod, ok2 := strings.Cut(ids, "mod")
	v, err1 := probe.ParseHex(ven, 16)
	f, err2 := probe.ParseHex(fam, 16)
	m, err3 := probe.ParseHex(mod, 16)
	if !ok1 || !ok2 || errors.Join(err1, err2, err3) != nil {
		return t, false
	}
	for feature := range strings.SplitSeq(features, ",") {
		switch feature {
		case aliasLongMode:
			t.arch = archX86
		case aliasHypervisor:
			t.hypervisor = true
		}
	}
	t.vendor = aliasVendor(v)
	t.family = ncclFamily(probe.Some(int(f)))
	t.model = probe.Some(int(m))
	return t, true
}
