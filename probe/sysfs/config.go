package sysfs

import (
	"encoding/binary"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// A function's configuration space (PCI Express Base Specification). The kernel
// shows only root what lies beyond byte 64.
const (
	configSize    = 4096
	firstExtended = 0x100

	capACS = 0x000d
	capATS = 0x000f

	acsControl = 6 // offset of the control register in its capability
	atsControl = 6
	atsEnable  = 1 << 15
)

// config reads what a bridge does with traffic between the devices below it, and
// whether a device translates addresses itself. Where the space was not recorded
// or is cut short for want of rights, both stay unknown.
func (r *reader) config(d *probe.PCIDevice, dir string) {
	class := d.Class.Or(0)
	bridge := class.IsPCIBridge()
	if !bridge && !class.IsGPU() && !class.IsNIC() {
		return
	}
	text, err := r.text(path.Join(dir, "config"), configSize+1) // an archive of texts ends it with a line end
	if err != nil {
		if !noValue(err) {
			r.gap("pci "+d.Addr.String()+" config", path.Join(dir, "config"), err)
		}
		return
	}
	space := []byte(text)
	if len(space) < configSize || binary.LittleEndian.Uint32(space) == 1<<32-1 {
		return
	}
	if bridge {
		acs, _ := extended(space, capACS, acsControl)
		d.ACS = probe.Some(acs)
		return
	}
	ats, _ := extended(space, capATS, atsControl)
	d.ATS = probe.Some(ats&atsEnable != 0)
}

// extended returns the 16-bit register at an offset of an extended capability;
// ok is false where the function has no such capability.
func extended(space []byte, id, offset int) (value uint16, ok bool) {
	at := firstExtended
	for range (configSize - firstExtended) / 8 { // more capabilities do not fit
		if at < firstExtended || at+offset+2 > len(space) {
			return 0, false
		}
		header := binary.LittleEndian.Uint32(space[at:])
		if int(header&0xffff) == id {
			return binary.LittleEndian.Uint16(space[at+offset:]), true
		}
		at = int(header >> 20)
	}
	return 0, false
}

// errorCounters reads the AER counters of a function.
func (r *reader) errorCounters(object, dir string) *probe.PCIeCounters {
	c := probe.PCIeCounters{
		Correctable: get(r, object, dir, "aer_dev_correctable", counted("TOTAL_ERR_COR", "NonFatalErr")),
		NonFatal:    get(r, object, dir, "aer_dev_nonfatal", counted("TOTAL_ERR_NONFATAL", "UnsupReq")),
		Fatal:       get(r, object, dir, "aer_dev_fatal", counted("TOTAL_ERR_FATAL", "")),
	}
	if c == (probe.PCIeCounters{}) {
		return nil
	}
	return &c
}

// counted reads the total of a file of "NAME COUNT" lines less one kind.
func counted(total, without string) func(string) (probe.Opt[uint64], error) {
	return func(s string) (probe.Opt[uint64], error) {
		var sum, minus uint64
		known := false
		for line := range strings.Lines(s) {
			name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name != total && name != without {
				continue
			}
			v, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
			if err != nil {
				return probe.Opt[uint64]{}, fmt.Errorf("%s %.20q: not a count", name, number)
			}
			if name == without {
				minus = v
				continue
			}
			sum, known = v, true
		}
		if !known {
			return probe.Opt[uint64]{}, fmt.Errorf("no line %s", total)
		}
		return probe.Some(sum - min(minus, sum)), nil
	}
}
