package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	netFolder = "sys/class/net"
	maxNets   = 16384

	// bondingMasters is the one file among the links of sys/class/net.
	bondingMasters = "bonding_masters"
)

// netdevs reads the network interfaces.
func (r *reader) netdevs() {
	names, _ := r.folder("network interfaces", netFolder, true)
	for _, name := range names {
		if name == bondingMasters {
			continue
		}
		where := path.Join(netFolder, name)
		if !isName(name) {
			r.gap("network interface", netFolder, fmt.Errorf("%.60q is not a device name", name))
			continue
		}
		if len(r.inv.NetDevs) == maxNets {
			r.gap("network interfaces", netFolder, fmt.Errorf("more than %d; what comes from %s on is left out", maxNets, name))
			return
		}
		n := probe.NetDev{Name: name, Origins: []probe.Origin{origin(where)}}
		dir, err := r.follow(where)
		if err != nil {
			r.gap("net "+name, where, err)
			var gone *danglingError
			if !errors.As(err, &gone) {
				continue
			}
			// The interface is there and only its folder was not recorded; where
			// it would lie says what kind it is.
			n.Virtual = isVirtual(gone.target)
			r.inv.NetDevs = append(r.inv.NetDevs, n)
			continue
		}
		r.netdev(&n, dir)
		r.inv.NetDevs = append(r.inv.NetDevs, n)
	}
}

func (r *reader) netdev(n *probe.NetDev, dir string) {
	object := "net " + n.Name
	n.Virtual = isVirtual(dir)
	if !n.Virtual {
		// Interfaces of another network namespace's parent and some buses have
		// no device link outside of virtual either.
		_, _, err := r.link(path.Join(dir, "device"))
		n.Virtual = errors.Is(err, fs.ErrNotExist)
	}
	if !n.Virtual {
		n.Addr = r.below(object, dir)
	}
	n.State = get(r, object, dir, "operstate", parseOperState).Or("")
	n.Carrier = get(r, object, dir, "carrier", parseFlag)
	n.Speed = get(r, object, dir, "speed", parseSpeed)
	n.MTU = get(r, object, dir, "mtu", parseMTU)
	if bonding := path.Join(dir, "bonding"); r.isDir(bonding) {
		mode, _, _ := strings.Cut(r.str(object, bonding, "mode"), " ") // "802.3ad 4"
		n.Bond = &probe.Bond{Mode: mode, Slaves: netNames(strings.Fields(r.str(object, bonding, "slaves")))}
	}
}

// isVirtual reports an interface without hardware by its folder.
func isVirtual(dir string) bool { return strings.HasPrefix(dir, "sys/devices/virtual/") }

// parseOperState reads up, down, dormant and the like; "unknown" is what drivers
// without this state report, for lo also while it works.
func parseOperState(s string) (probe.Opt[string], error) {
	if s == "" || s == "unknown" {
		return probe.Opt[string]{}, nil
	}
	return parseText(s)
}

func parseFlag(s string) (probe.Opt[bool], error) {
	switch s {
	case "0":
		return probe.Some(false), nil
	case "1":
		return probe.Some(true), nil
	}
	return probe.Opt[bool]{}, fmt.Errorf("%.20q: neither 0 nor 1", s)
}

// parseSpeed reads Mb/s; drivers that do not know say -1, 0 or, seen as
// unsigned, 4294967295.
func parseSpeed(s string) (probe.Opt[probe.Rate], error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || n > probe.MaxPortGbps*1000 && n != 1<<32-1:
		return probe.Opt[probe.Rate]{}, fmt.Errorf("speed %.20q: not a number of Mb/s", s)
	case n <= 0 || n == 1<<32-1:
		return probe.Opt[probe.Rate]{}, nil
	}
	return probe.Some(probe.Mbps(float64(n))), nil
}

func parseMTU(s string) (probe.Opt[int], error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return probe.Opt[int]{}, fmt.Errorf("MTU %.20q: not a number of bytes", s)
	}
	return probe.Some(n), nil
}
