package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	rdmaFolder = "sys/class/infiniband"
	maxHCAs    = 1024
	maxPorts   = 256
)

// infiniband reads the RDMA devices. A recording without the folder leaves them
// unknown; on a live machine there are then none.
func (r *reader) infiniband() {
	names, _ := r.folder("RDMA devices", rdmaFolder, false)
	for _, name := range names {
		where := path.Join(rdmaFolder, name)
		if !isName(name) {
			r.gap("RDMA device", rdmaFolder, fmt.Errorf("%.60q is not a device name", name))
			continue
		}
		dir, err := r.follow(where)
		if err == nil && len(r.inv.HCAs) == maxHCAs {
			err = fmt.Errorf("more than %d RDMA devices; this one is left out", maxHCAs)
		}
		if err != nil {
			r.gap("hca "+name, where, err)
			continue
		}
		r.inv.HCAs = append(r.inv.HCAs, r.hca(name, dir))
	}
}

func (r *reader) hca(name, dir string) probe.HCA {
	object := "hca " + name
	h := probe.HCA{
		Name:         name,
		NodeGUID:     get(r, object, dir, "node_guid", parseGUID).Or(""),
		SysImageGUID: get(r, object, dir, "sys_image_guid", parseGUID).Or(""),
		Board:        r.str(object, dir, "board_id"),
		Firmware:     r.str(object, dir, "fw_ver"),
		Origins:      []probe.Origin{origin(path.Join(rdmaFolder, name))},
	}
	h.Addr = r.below(object, dir)
	ports, err := r.list(path.Join(dir, "ports"))
	if err != nil {
		r.gap(object+" ports", path.Join(dir, "ports"), err)
	}
	for _, p := range ports {
		n, ok := numbered(p, "")
		where := path.Join(dir, "ports", p)
		pdir, err := r.follow(where)
		if err == nil && (!ok || n > maxPorts) {
			err = fmt.Errorf("%.20q is no port number", p)
		}
		if err != nil {
			r.gap(object+" port "+p, where, err)
			continue
		}
		h.Ports = append(h.Ports, r.port(object+" port "+p, n, pdir))
	}
	var nets []string
	if device := path.Join(dir, "device"); r.isDir(device) { // else below has said why not
		nets, err = r.list(path.Join(device, "net"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.gap(object+" interfaces", path.Join(device, "net"), err)
		}
	}
	for _, p := range h.Ports {
		for _, g := range p.GIDs {
			nets = append(nets, g.NetDev)
		}
	}
	h.NetDevs = netNames(nets)
	return h
}

// netNames sorts interface names and drops doubles and what is none.
func netNames(names []string) []string {
	names = slices.DeleteFunc(names, func(s string) bool { return !isName(s) })
	slices.SortFunc(names, probe.CompareNames)
	return slices.Compact(names)
}

// below returns the PCI function that a class device hangs on, directly or over
// a virtio or auxiliary device, and keeps that function for pci. Unknown for
// software devices (rxe, siw, lo) and for interfaces behind USB, whose PCI
// function is only their controller.
func (r *reader) below(object, dir string) probe.Opt[probe.BDF] {
	at := dir
	switch real, err := r.follow(path.Join(dir, "device")); {
	case err == nil:
		at = real
	case !errors.Is(err, fs.ErrNotExist):
		r.gap(object+" device", path.Join(dir, "device"), err)
	}
	for ; at != "." && at != "/"; at = path.Dir(at) {
		base := path.Base(at)
		if _, ok := numbered(base, "usb"); ok {
			break
		}
		if isBDF(base) {
			addr := probe.MustBDF(base)
			r.keep[addr] = at
			return probe.Some(addr)
		}
	}
	return probe.Opt[probe.BDF]{}
}

func (r *reader) port(object string, n int, dir string) probe.HCAPort {
	p := probe.HCAPort{
		Port:      n,
		LinkLayer: get(r, object, dir, "link_layer", parseLinkLayer).Or(""),
		State:     get(r, object, dir, "state", probe.ParsePortState).Or(""),
		PhysState: get(r, object, dir, "phys_state", probe.ParsePortState).Or(""),
		RateText:  r.str(object, dir, "rate"),
		LID:       r.str(object, dir, "lid"),
	}
	if p.RateText != "" {
		rate, err := probe.ParsePortRate(p.RateText)
		if err != nil {
			r.gap(object+" rate", path.Join(dir, "rate"), err)
		}
		p.Rate = rate
	}
	p.Counters = r.portCounters(object, dir)
	gids := path.Join(dir, "gids")
	names, err := r.list(gids)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.gap(object+" gids", gids, err)
	}
	for _, name := range names {
		i, ok := numbered(name, "")
		if !ok {
			r.gap(object+" gids", gids, fmt.Errorf("%.20q is not an index", name))
			continue
		}
		gid := get(r, object+" gid", gids, name, parseGID).Or("")
		if gid == "" {
			continue
		}
		p.GIDs = append(p.GIDs, probe.GID{
			Index:  i,
			GID:    gid,
			Type:   r.str(object+" gid type", path.Join(dir, "gid_attrs/types"), name),
			NetDev: r.str(object+" gid interface", path.Join(dir, "gid_attrs/ndevs"), name),
		})
	}
	return p
}

// portErrors are the counters that tell of errors, by folder: those of
// InfiniBand, and those of the mlx5 driver for RoCE and retransmission.
var portErrors = []struct{ folder, name string }{
	{"counters", "symbol_error"},
	{"counters", "link_error_recovery"},
	{"counters", "link_downed"},
	{"counters", "port_rcv_errors"},
	{"counters", "port_rcv_remote_physical_errors"},
	{"counters", "local_link_integrity_errors"},
	{"counters", "excessive_buffer_overrun_errors"},
	{"hw_counters", "out_of_sequence"},
	{"hw_counters", "packet_seq_err"},
	{"hw_counters", "local_ack_timeout_err"},
	{"hw_counters", "rnr_nak_retry_err"},
	{"hw_counters", "roce_adp_retrans"},
}

func (r *reader) portCounters(object, dir string) []probe.Counter {
	var out []probe.Counter
	for _, c := range portErrors {
		v, ok := get(r, object+" "+c.folder, path.Join(dir, c.folder), c.name, parseCount).Get()
		if ok {
			out = append(out, probe.Counter{Name: c.name, Value: v})
		}
	}
	return out
}

// parseCount reads a counter; drivers that do not have one say "N/A (no PMA)".
func parseCount(s string) (probe.Opt[uint64], error) {
	if strings.HasPrefix(s, "N/A") {
		return probe.Opt[uint64]{}, nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return probe.Opt[uint64]{}, fmt.Errorf("%.20q: not a count", s)
	}
	return probe.Some(v), nil
}

func parseLinkLayer(s string) (probe.Opt[string], error) {
	switch s {
	case "InfiniBand", "Ethernet":
		return probe.Some(s), nil
	case "", "Unknown", "Unspecified":
		return probe.Opt[string]{}, nil
	}
	return probe.Opt[string]{}, fmt.Errorf("link layer %.40q: neither InfiniBand nor Ethernet", s)
}

// parseGUID reads 9803:9b03:00aa:bb01; all zeros is unknown.
func parseGUID(s string) (probe.Opt[string], error) {
	return parseGroups("GUID", s, 4)
}

// parseGID reads one GID; an entry that is not in use is all zeros and unknown.
func parseGID(s string) (probe.Opt[string], error) {
	return parseGroups("GID", s, 8)
}

func parseGroups(what, s string, groups int) (probe.Opt[string], error) {
	v, err := probe.ParseHexGroups(s, groups)
	if err != nil {
		return probe.Opt[string]{}, fmt.Errorf("%s %.60q: %w", what, s, err)
	}
	if v == "" {
		return probe.Opt[string]{}, nil
	}
	return probe.Some(v), nil
}
