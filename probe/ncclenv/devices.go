package ncclenv

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// DeviceList is the value of NCCL_IB_HCA, NCCL_SOCKET_IFNAME or
// NCCL_OOB_NET_IFNAME as NCCL takes it apart (misc/utils.cc parseStringList).
type DeviceList struct {
	Exclude bool // ^ in front: these are not used
	Exact   bool // = in front: whole names, not how they begin
	Devices []Device
}

// Device is one entry; a port, rail or plane that is not stated is unknown and
// fits every one.
type Device struct {
	Name              string
	Port, Rail, Plane probe.Opt[int]
}

// ParseDevices takes a list apart. It cannot fail: NCCL takes every text.
func ParseDevices(value string) DeviceList {
	var l DeviceList
	value, l.Exclude = strings.CutPrefix(value, "^")
	value, l.Exact = strings.CutPrefix(value, "=")
	for entry := range strings.SplitSeq(value, ",") {
		f := strings.Split(entry, ":")
		if f[0] == "" {
			continue
		}
		d := Device{Name: f[0]}
		for i, to := range []*probe.Opt[int]{&d.Port, &d.Rail, &d.Plane} {
			if i+1 < len(f) {
				if n, err := strconv.Atoi(f[i+1]); err == nil {
					*to = probe.Some(n)
				}
			}
		}
		l.Devices = append(l.Devices, d)
	}
	return l
}

// Allows reports whether NCCL uses a device with that name; an unknown port is
// any port. An empty list names every device.
func (l DeviceList) Allows(name string, port probe.Opt[int]) bool {
	hit := len(l.Devices) == 0
	for _, d := range l.Devices {
		same := d.Name == name || !l.Exact && strings.HasPrefix(name, d.Name)
		want, wanted := d.Port.Get()
		p, known := port.Get()
		hit = hit || same && (!wanted || !known || want == p)
	}
	return hit != l.Exclude
}

// maxHCAs is MAX_IB_DEVS, the most devices that NCCL takes.
const maxHCAs = 32

// devicesEffect judges a list.
func (v Variable) devicesEffect(value string) Effect {
	e := Effect{Value: value}
	if v.Name == "NCCL_SOCKET_IFNAME" && len(value) == 1 {
		e.Value = ""
		e.complain("NCCL ignores a value of one character")
		return e
	}
	l := ParseDevices(value)
	if len(l.Devices) == 0 && value != "" {
		e.complain("%q names no device", value)
	}
	marks := value[:len(value)-len(strings.TrimPrefix(strings.TrimPrefix(value, "^"), "="))]
	names, clear := []string{}, len(l.Devices) > 0
	for _, d := range l.Devices {
		name := strings.TrimSpace(d.Name)
		bare := strings.TrimLeft(name, "^=")
		switch {
		case bare != name:
			// Repeated marks mean the list; others are anybody's guess.
			clear = clear && name == marks+bare
			e.complain("%q begins with a mark that counts only once, in front of the whole list; NCCL looks for a device of that name", d.Name)
		case name != d.Name:
			e.complain("blanks are part of the name %q", d.Name)
		}
		clear = clear && d == Device{Name: d.Name}
		names = append(names, bare)
	}
	if len(e.Complaints) > 0 && clear {
		e.Fix = marks + strings.Join(names, ",")
	}
	if n := len(l.Devices); v.Name == "NCCL_IB_HCA" && n > maxHCAs {
		e.complain("%d devices; NCCL takes at most %d", n, maxHCAs)
	}
	return e
}

func (e *Effect) complain(format string, args ...any) {
	e.Complaints = append(e.Complaints, fmt.Sprintf(format, args...))
}
