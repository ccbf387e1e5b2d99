package probe

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// BDF is the address of a PCI function: domain, bus, device, function.
type BDF struct {
	Domain  uint32
	Bus     uint8
	Dev, Fn uint8
}

// ParseBDF reads every spelling that tools print: sysfs and NCCL
// "0000:17:00.0", NVML "00000000:17:00.0", nvidia-smi in upper case, without a
// domain "17:00.0", and nccl-tests without a function "0000:17:00".
func ParseBDF(s string) (BDF, error) {
	bad := func(why string) (BDF, error) {
		return BDF{}, fmt.Errorf("PCI address %q: %s", clip(s), why)
	}
	rest, fn, hasFn := strings.Cut(s, ".")
	parts := strings.Split(rest, ":")
	switch {
	case len(parts) == 2 && hasFn:
		parts = append([]string{"0"}, parts...)
	case len(parts) != 3:
		return bad("want domain:bus:device.function")
	}
	if !hasFn {
		fn = "0"
	}
	var b BDF
	for _, p := range []struct {
		name, text string
		digits     int
		max        uint64
		set        func(uint64)
	}{
		{"domain", parts[0], 8, 1<<32 - 1, func(v uint64) { b.Domain = uint32(v) }},
		{"bus", parts[1], 2, 0xff, func(v uint64) { b.Bus = uint8(v) }},
		{"device", parts[2], 2, 0x1f, func(v uint64) { b.Dev = uint8(v) }},
		{"function", fn, 1, 7, func(v uint64) { b.Fn = uint8(v) }},
	} {
		v, err := strconv.ParseUint(p.text, 16, 64)
		if err != nil || len(p.text) > p.digits || v > p.max {
			return bad(fmt.Sprintf("%s %q is not a hexadecimal number up to %x", p.name, clip(p.text), p.max))
		}
		p.set(v)
	}
	return b, nil
}

// BDFOfBusID unpacks a bus id as NCCL prints it: 0x1901000 is 0019:01:00.0. ok is
// false for what no PCI address packs into.
func BDFOfBusID(busID uint64) (addr BDF, ok bool) {
	if busID>>44 != 0 || busID>>4&0xff > 0x1f || busID&0xf > 7 {
		return BDF{}, false
	}
	return BDF{
		Domain: uint32(busID >> 20),
		Bus:    uint8(busID >> 12),
		Dev:    uint8(busID >> 4),
		Fn:     uint8(busID & 0xf),
	}, true
}

// MustBDF is ParseBDF for addresses written in the program or its tests; it
// panics on a bad one.
func MustBDF(s string) BDF {
	b, err := ParseBDF(s)
	if err != nil {
		panic(err)
	}
	return b
}

// String prints the sysfs spelling, "0000:17:00.0".
func (b BDF) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", b.Domain, b.Bus, b.Dev, b.Fn)
}

// Compare orders by domain, bus, device, function.
func (b BDF) Compare(o BDF) int {
	return cmp.Or(cmp.Compare(b.Domain, o.Domain), cmp.Compare(b.Bus, o.Bus),
		cmp.Compare(b.Dev, o.Dev), cmp.Compare(b.Fn, o.Fn))
}

func (b BDF) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b *BDF) UnmarshalText(t []byte) error {
	v, err := ParseBDF(string(t))
	if err == nil {
		*b = v
	}
	return err
}

// clip keeps input in error messages short and free of what a terminal would
// obey.
func clip(s string) string {
	const max = 120
	if len(s) > max {
		s = strings.ToValidUTF8(s[:max], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
