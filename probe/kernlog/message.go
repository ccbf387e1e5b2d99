package kernlog

import (
	"bytes"
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

func has(b []byte, text string) bool    { return bytes.Contains(b, []byte(text)) }
func begins(b []byte, text string) bool { return bytes.HasPrefix(b, []byte(text)) }

func hasAny(b []byte, texts ...string) bool {
	for _, t := range texts {
		if has(b, t) {
			return true
		}
	}
	return false
}

// message reads one kernel message.
func (s *state) message(m []byte) {
	if len(m) < 8 {
		return
	}
	switch m[0] {
	case 'N':
		if begins(m, "NVRM: ") {
			s.nvrm(m[len("NVRM: "):])
			return
		}
		if begins(m, "NVRM version: ") {
			s.driver(m)
			return
		}
	case 'n':
		if begins(m, "nvidia-nvswitch") && s.sxid(m) {
			return
		}
		if begins(m, "nvidia-nvlink") {
			if hasAny(m, "rror", "ail") {
				s.add(newEvent(KindNVLink, Warning, m))
			}
			return
		}
		if begins(m, "nvidia-peermem") || begins(m, "nvidia_peermem") {
			if hasAny(m, "ERROR", "rror", "ail") {
				s.add(newEvent(KindPeer, Warning, m))
			}
			return
		}
	case 'D', 'A', 'i':
		if begins(m, "DMAR: ") || begins(m, "AMD-Vi: ") || begins(m, "iommu: ") {
			s.iommu(m, probe.BDF{}, false)
			return
		}
	case 'L':
		if begins(m, "Linux version ") {
			s.log.Boots++
			f := bytes.Fields(m[:min(len(m), 512)])
			if len(f) > 2 {
				s.log.Kernel, s.log.kernelAt = plain(f[2]), s.n
			}
			return
		}
	case 'C', 'K':
		for _, t := range []string{"Command line: ", "Kernel command line: "} {
			if begins(m, t) {
				s.log.Cmdline, s.log.cmdlineAt = plainUpTo(m[len(t):], 2048), s.n
				return
			}
		}
	case 'H':
		if begins(m, "Hypervisor detected: ") {
			s.log.Hypervisor, s.log.hypervisorAt = plain(m[len("Hypervisor detected: "):]), s.n
			return
		}
	}
	if s.device(m) {
		return
	}
	if s.parts.kernel {
		return
	}
	// A line that was quoted, or that another program handed on.
	if i := bytes.Index(m, []byte("NVRM: ")); i > 0 {
		s.nvrm(m[i+len("NVRM: "):])
	} else if has(m, " SXid (PCI:") {
		s.sxid(m)
	}
}

// address reads "0000:65:00.0", and with short "0000:65:00" and "65:00.0".
func address(b []byte, short bool) (probe.BDF, bool) {
	colons, dots := 0, 0
	for _, c := range b {
		switch {
		case c == ':':
			colons++
		case c == '.':
			dots++
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return probe.BDF{}, false
		}
	}
	if full := colons == 2 && dots == 1; len(b) > 20 || !full && (!short || colons+dots != 2 || colons == 0) {
		return probe.BDF{}, false
	}
	a, err := probe.ParseBDF(string(b))
	return a, err == nil
}

// code reads "(PCI:0000:65:00): 79, rest".
func coded(b []byte) (addr probe.BDF, hasAddr bool, code int, rest []byte, ok bool) {
	end := bytes.IndexByte(b[:min(len(b), 64)], ')')
	if len(b) < 4 || b[0] != '(' || end < 0 {
		return
	}
	in := bytes.TrimPrefix(b[1:end], []byte("PCI:"))
	if i := bytes.IndexByte(in, ' '); i > 0 { // a MIG instance behind it
		in = in[:i]
	}
	addr, hasAddr = address(in, true)
	rest = bytes.TrimLeft(bytes.TrimPrefix(b[end+1:], []byte(":")), " ")
	n := 0
	for n < len(rest) && n < 6 && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n == 0 || n < len(rest) && rest[n] != ',' && rest[n] != ' ' && rest[n] != '.' {
		return
	}
	code, _ = strconv.Atoi(string(rest[:n]))
	return addr, hasAddr, code, bytes.TrimLeft(rest[n:], ", "), true
}

// linkOf finds "Link 28".
func linkOf(b []byte) int {
	i := bytes.Index(b, []byte("Link "))
	if i < 0 {
		return -1
	}
	j := i + len("Link ")
	n := j
	for n < len(b) && n < j+3 && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if v, err := strconv.Atoi(string(b[j:n])); err == nil {
		return v
	}
	return -1
}

// nvrm reads what follows "NVRM: ".
func (s *state) nvrm(m []byte) {
	switch {
	case begins(m, "Xid (") || begins(m, "Xid: ("):
		s.xid(m)
	case has(m, "SXid (PCI:"):
		s.sxid(m)
	case begins(m, "loading NVIDIA"):
		s.driver(m)
	case begins(m, "GPU at ") && has(m, "GPU-"):
		s.uuid(m)
	case has(m, "kernel module has the version "):
		i := bytes.Index(m, []byte("kernel module has the version "))
		if v := version(m[i+len("kernel module has the version "):]); v != "" {
			s.log.Driver, s.log.driverAt = v, s.n
		}
		s.note(KindNVRM, Critical, "API mismatch", m)
	case has(m, "API mismatch"):
		s.note(KindNVRM, Critical, "API mismatch", m)
	case has(m, "fallen off the bus"):
		s.note(KindNVRM, Critical, "off the bus", m)
	case has(m, "RmInitAdapter failed"), has(m, "rm_init_adapter failed"):
		s.note(KindNVRM, Critical, "init", m)
	case begins(m, "knvlink"), has(m, ": knvlink"):
		s.note(KindNVLink, Warning, class(m), m)
	case hasAny(m, "rror", "ailed", "ailure", "timed out", "imeout", "not able", "Unable"):
		s.note(KindNVRM, Warning, class(m), m)
	}
}

// note adds a message of the driver with the GPU that it names.
func (s *state) note(kind string, severity Severity, class string, m []byte) {
	e := newEvent(kind, severity, m)
	e.class = class
	if i := bytes.Index(m, []byte("GPU ")); i >= 0 {
		f := m[i+len("GPU "):]
		if j := bytes.IndexAny(f, " ,;)"); j >= 0 {
			f = f[:j]
		}
		e.addr, e.hasAddr = address(bytes.TrimRight(f, ":."), true)
		e.gpu = e.hasAddr
	}
	s.add(e)
}

// class is a message without its numbers, so that repeats fall together.
func class(m []byte) string {
	out := make([]byte, 0, 48)
	for _, c := range m {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' {
			if out = append(out, c); len(out) == cap(out) {
				break
			}
		}
	}
	return string(out)
}

func (s *state) xid(m []byte) {
	i := bytes.IndexByte(m, '(')
	addr, hasAddr, code, rest, ok := coded(m[i:])
	if !ok {
		s.note(KindNVRM, Warning, "garbled Xid", m)
		return
	}
	x, _ := XidOf(code)
	e := newEvent(KindXid, x.Severity, m)
	e.code, e.addr, e.hasAddr, e.gpu = code, addr, hasAddr, hasAddr
	e.process = process(rest)
	if code == 74 || code >= 144 && code <= 150 {
		e.link = linkOf(rest)
	}
	switch {
	case code >= 144 && code <= 150 && hasAny(rest, "Nonfatal", "Non-fatal", "non-fatal"):
		e.severity = Warning
	case code == 154 && has(rest, "to 0x0 "):
		e.severity = Info // the GPU needs nothing any more
	}
	s.add(e)
}

// process reads "pid=1234, name=python, …"; the driver writes '<unknown>' where
// it does not know.
func process(b []byte) string {
	if !begins(b, "pid=") {
		return ""
	}
	f := bytes.SplitN(b[:min(len(b), 256)], []byte(","), 3)
	pid := bytes.Trim(f[0][len("pid="):], "'\" ")
	if !digits(pid) {
		return ""
	}
	out := "pid " + string(pid)
	if len(f) > 1 {
		if name, ok := bytes.CutPrefix(bytes.TrimSpace(f[1]), []byte("name=")); ok && !has(name, "unknown") {
			out += " " + plain(name)
		}
	}
	return out
}

// sxid reads "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20009, Non-fatal, Link
// 28 …". Lines with the registers of a report follow it under the same code.
func (s *state) sxid(m []byte) bool {
	i := bytes.Index(m, []byte("SXid ("))
	if i < 0 {
		return false
	}
	addr, hasAddr, code, rest, ok := coded(m[i+len("SXid "):])
	if !ok {
		e := newEvent(KindSXid, Warning, m)
		e.class = "garbled"
		s.add(e)
		return true
	}
	if begins(rest, "Data {") || begins(rest, "Severity ") {
		return true
	}
	e := newEvent(KindSXid, Warning, m)
	e.code, e.addr, e.hasAddr, e.link = code, addr, hasAddr, linkOf(rest)
	if begins(rest, "Fatal") {
		e.severity = Critical
	}
	s.add(e)
	return true
}

// driver reads the driver's version from its own line.
func (s *state) driver(m []byte) {
	f := bytes.Fields(m[:min(len(m), 512)])
	for i, x := range f {
		if string(x) != "Module" {
			continue
		}
		// "Kernel Module  535.183.01", "Open Kernel Module for x86_64  580.95.05"
		for _, y := range f[i+1 : min(len(f), i+4)] {
			if v := version(y); v != "" {
				s.log.Driver, s.log.driverAt = v, s.n
				s.log.OpenModule = probe.Some(has(m, "Open Kernel Module"))
				return
			}
		}
	}
}

// version reads "535.183.01" at the beginning of b.
func version(b []byte) string {
	n, dots := 0, 0
	for n < len(b) && n < 24 && (b[n] >= '0' && b[n] <= '9' || b[n] == '.' || b[n] == '-') {
		if b[n] == '.' {
			dots++
		}
		n++
	}
	v := bytes.TrimRight(b[:n], ".")
	if dots == 0 || len(v) < 3 || v[0] == '.' || v[0] == '-' || n < len(b) && b[n] == '_' {
		return ""
	}
	return string(v)
}

// uuid reads "GPU at PCI:0000:65:00: GPU-…".
func (s *state) uuid(m []byte) {
	f := bytes.Fields(m[:min(len(m), 256)])
	if len(f) < 4 || len(s.log.UUIDs) >= maxUUIDs {
		return
	}
	a, ok := address(bytes.TrimRight(bytes.TrimPrefix(f[2], []byte("PCI:")), ":"), true)
	id := plain(f[3])
	if !ok || !begins(f[3], "GPU-") {
		return
	}
	for have, u := range s.log.UUIDs {
		if u == id && have != a {
			return // two hosts' logs, or a board that was moved
		}
	}
	s.log.UUIDs[a] = id
}
