package kernlog

import (
	"bytes"
	"strconv"

	"github.com/ncclmap/ncclmap/probe"
)

// device reads "driver address: text" and "driver address netdev: text". It
// reports whether m had that form.
func (s *state) device(m []byte) bool {
	i := bytes.IndexByte(m[:min(len(m), 32)], ' ')
	if i < 2 {
		return false
	}
	rest := m[i+1:]
	j := bytes.IndexByte(rest[:min(len(rest), 24)], ' ')
	if j < 8 {
		return false
	}
	addr, ok := address(bytes.TrimSuffix(rest[:j], []byte(":")), false)
	if !ok {
		return false
	}
	driver, text := m[:i], rest[j+1:]
	switch {
	case has(text, "available PCIe bandwidth"):
		s.pcieLimit(driver, addr, m, text)
	case has(text, "PCIe Bus Error: severity=") || has(text, "AER: ") || begins(text, "DPC: "):
		s.aer(addr, m, text)
	case has(text, "to iommu group "):
		s.log.IOMMU, s.log.iommuAt = probe.Some(true), s.n
	case has(text, "AMD-Vi: ") || has(text, "DMAR: "):
		s.iommu(m, addr, true)
	case begins(text, "pciehp: ") || string(driver) == "pciehp":
		if hasAny(text, "Link Down", "Card not present", "No link", "Failed", "failed") {
			e := newEvent(KindPCIe, Warning, m)
			e.class, e.addr, e.hasAddr = class(text), addr, true
			s.add(e)
		}
	case begins(driver, "mlx5_"):
		s.mlx5(addr, m, text)
	case begins(driver, "nvidia"):
		if hasAny(text, "can't change power state", "Unable to change power state", "device inaccessible") {
			e := newEvent(KindPCIe, Critical, m)
			e.class, e.addr, e.hasAddr = "inaccessible", addr, true
			s.add(e)
		}
	}
	return true
}

// aer reads the lines of PCIe error reporting.
func (s *state) aer(addr probe.BDF, m, text []byte) {
	e := newEvent(KindAER, Info, m)
	e.addr, e.hasAddr = addr, true
	t := bytes.TrimPrefix(text, []byte("AER: "))
	switch {
	case begins(t, "PCIe Bus Error: severity="):
		e.class, e.severity = aerSeverity(t[len("PCIe Bus Error: severity="):])
	case has(t, " received"):
		t = bytes.TrimPrefix(t, []byte("Multiple "))
		if e.class, e.severity = aerSeverity(t); e.class == "" {
			return
		}
		e.report = true
		// The port speaks of the device that sent the message.
		if k := bytes.LastIndexByte(t, ' '); k > 0 {
			if from, ok := address(bytes.TrimRight(t[k+1:], "."), false); ok {
				e.addr = from
			}
		}
	case hasAny(t, "device recovery failed", "can't recover"):
		e.class, e.severity = "no recovery", Critical
	case begins(text, "DPC: containment event"):
		e.class, e.severity = "containment", Critical
	default:
		return
	}
	if e.class != "" {
		s.add(e)
	}
}

// aerSeverity reads the severity at the beginning of t in the words of old and
// new kernels.
func aerSeverity(t []byte) (class string, severity Severity) {
	switch {
	case begins(t, "Corrected"), begins(t, "Correctable"):
		return "corrected", Info
	case begins(t, "Uncorrected (Fatal)"), begins(t, "Uncorrectable (Fatal)"):
		return "fatal", Critical
	case begins(t, "Uncorrected"), begins(t, "Uncorrectable"):
		return "non-fatal", Warning
	}
	return "", ""
}

// pcieLimit reads "63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s
// PCIe x8 link at 0000:00:01.0 (capable of 126.016 Gb/s with 8.0 GT/s PCIe x16
// link)"; without a limit the path is as good as the device.
func (s *state) pcieLimit(driver []byte, addr probe.BDF, m, text []byte) {
	if !has(text, ", limited by ") {
		return
	}
	f := bytes.Fields(text[:min(len(text), 512)])
	p := &PCIeLimit{}
	capable := false
	for i, x := range f {
		switch {
		case string(x) == "Gb/s" && i > 0:
			v, err := strconv.ParseFloat(string(f[i-1]), 64)
			if err != nil || v <= 0 || v > 1e5 {
				return
			}
			if capable {
				p.CapableGbps = v
			} else {
				p.AvailableGbps = v
			}
		case string(x) == "(capable":
			capable = true
		case string(x) == "GT/s" && i > 0 && i+2 < len(f):
			link := pcieLink(f[i-1], f[i+2])
			if capable {
				p.Capable = link
			} else {
				p.Limit = link
			}
		case string(x) == "at" && i+1 < len(f):
			if a, ok := address(f[i+1], false); ok {
				p.At = probe.Some(a)
			}
		}
	}
	e := newEvent(KindPCIe, Warning, m)
	if begins(driver, "mlx5_") {
		e.kind = KindMLX5
	}
	e.class, e.addr, e.hasAddr, e.limit = "bandwidth", addr, true, p
	s.add(e)
}

func pcieLink(gts, width []byte) probe.PCIeLink {
	var l probe.PCIeLink
	if sp, err := probe.ParsePCIeSpeed(string(gts) + " GT/s"); err == nil {
		l.Speed = sp
	}
	if w, err := strconv.Atoi(string(bytes.TrimPrefix(width, []byte("x")))); err == nil && w > 0 && w <= 32 {
		l.Width = probe.Some(w)
	}
	return l
}

// mlx5Messages are the messages of the ConnectX driver that are kept, by what
// they hold; the first that fits counts.
var mlx5Messages = []struct {
	holds    []string
	class    string
	severity Severity
}{
	{[]string{"Link down", "Link DOWN"}, "link down", Warning},
	{[]string{"Link up", "Link ACTIVE"}, "link up", Info},
	{[]string{"Cable unplugged"}, "cable unplugged", Warning},
	{[]string{"Cable plugged"}, "cable plugged", Info},
	{[]string{"High Temperature", "igh temperature"}, "temperature", Warning},
	{[]string{"Cable error", "Bus stuck", "Bad/unsupported", "PCIe insufficient power", "Power budget"}, "module", Warning},
	{[]string{"insufficient power"}, "power", Warning},
	{[]string{"health compromised", "Health issue", "health_info", "health_care", "health recovery", "health_try_recover", "Fatal error", "nternal error", "enter_error_state", "fw_fatal"}, "health", Critical},
	{[]string{"err_detected", "PCI slot is unavailable", "reads still not working"}, "pci error", Critical},
	{[]string{"CQ error", "cq_err", "TX timeout", "EQE error"}, "queue", Warning},
	{[]string{"ACCESS_REG"}, "register access", Info},
	{[]string{") failed, status", "No done completion", "timeout. Will cause"}, "command", Warning},
}

func (s *state) mlx5(addr probe.BDF, m, text []byte) {
	for _, x := range mlx5Messages {
		if !hasAny(text, x.holds...) {
			continue
		}
		e := newEvent(KindMLX5, x.severity, m)
		e.class, e.addr, e.hasAddr = x.class, addr, true
		s.add(e)
		return
	}
}

// iommu reads messages of the IOMMU drivers.
func (s *state) iommu(m []byte, addr probe.BDF, hasAddr bool) {
	switch {
	case has(m, "IOMMU enabled"):
		s.log.IOMMU, s.log.iommuAt = probe.Some(true), s.n
	case has(m, "efault domain type: "):
		e := newEvent(KindIOMMU, Info, m)
		e.class = "domain"
		s.add(e)
	case has(m, "Request device ["), has(m, "IO_PAGE_FAULT"), has(m, "ILLEGAL_DEV_TABLE"):
		e := newEvent(KindIOMMU, Warning, m)
		e.class, e.addr, e.hasAddr = "fault", addr, hasAddr
		for _, mark := range []string{"Request device [", "device="} {
			i := bytes.Index(m, []byte(mark))
			if hasAddr || i < 0 {
				continue
			}
			a := m[i+len(mark):]
			if j := bytes.IndexAny(a, "] "); j > 0 {
				e.addr, e.hasAddr = address(a[:j], true)
				break
			}
		}
		s.add(e)
	}
}
