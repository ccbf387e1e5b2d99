package nccllog

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// Hosts returns the names of the hosts that printed, in order.
func (l *Log) Hosts() []string {
	var out []string
	for _, p := range l.Procs {
		out = append(out, p.Host)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Inventories returns what the log says in probe's words: one inventory for each
// host, and, where it is not exactly one host, another for what belongs to the
// job as a whole. They are normalized, and valid unless the log is absurd.
func (l *Log) Inventories() []*probe.Inventory {
	hosts := l.Hosts()
	var out []*probe.Inventory
	for _, h := range hosts {
		inv := &probe.Inventory{Schema: probe.Schema, Host: probe.Host{Name: h}}
		inv.GPUs, inv.HCAs = l.gpus(h), l.hcas(h)
		l.version(inv, h)
		out = append(out, inv)
	}
	if len(out) != 1 {
		out = append(out, &probe.Inventory{Schema: probe.Schema})
	}
	whole := out[len(out)-1]
	whole.Job = l.job(hosts)
	if l.Records == 0 {
		whole.Gaps = append(whole.Gaps, probe.Gap{
			What: "NCCL log", Why: "the text holds no NCCL record", How: "run the job with NCCL_DEBUG=INFO", Origin: l.origin(0),
		})
	}
	for _, d := range l.Dropped {
		whole.Gaps = append(whole.Gaps, probe.Gap{
			What: d.What, Why: fmt.Sprintf("%d were over the limit that is kept", d.N), Origin: l.origin(0),
		})
	}
	for _, inv := range out {
		inv.Normalize()
	}
	return out
}

// version sets the version that the host's processes loaded. A version line of
// level VERSION names no host: it speaks for the process that printed it, and
// for a host only where no other version is in the log.
func (l *Log) version(inv *probe.Inventory, host string) {
	nccl, at, mixed := "", int64(0), false
	for _, v := range l.Versions {
		if v.Host != "" && v.Host != host {
			continue
		}
		if nccl == "" {
			nccl, at = v.NCCL, v.First
		}
		mixed = mixed || v.NCCL != nccl
	}
	switch {
	case mixed:
		inv.Gaps = append(inv.Gaps, probe.Gap{What: "NCCL version", Why: "the log names several", Origin: l.origin(at)})
	case nccl != "":
		inv.Runtime.NCCL = nccl
		inv.Runtime.Origins = l.origins(at)
	}
}

func (l *Log) origin(line int64) probe.Origin {
	return probe.LineOf(probe.SourceNCCLLog, l.Name, line)
}

func (l *Log) origins(line int64) []probe.Origin { return []probe.Origin{l.origin(line)} }

type seenGPU struct {
	index probe.Opt[int]
	addr  probe.Opt[probe.BDF]
	line  int64
}

// known counts the halves that are known.
func (g seenGPU) known() int {
	n := 0
	if g.index.Known() {
		n++
	}
	if g.addr.Known() {
		n++
	}
	return n
}

// gpus returns the GPUs that communicator lines name. An index with two
// addresses (containers that share a host name) has none.
func (l *Log) gpus(host string) []probe.GPU {
	var list []seenGPU
	for _, c := range l.Comms {
		for _, m := range c.Members {
			if m.Host != host {
				continue
			}
			var g seenGPU
			if n, ok := m.NVMLDev.Get(); ok && n < 256 {
				g.index = probe.Some(n)
			}
			g.addr = address(m.BusID)
			if !g.index.Known() && !g.addr.Known() {
				continue
			}
			g.line = firstLine(m)
			if !slices.ContainsFunc(list, func(o seenGPU) bool { return o.index == g.index && o.addr == g.addr }) {
				list = append(list, g)
			}
		}
	}
	// Distinct pairs: more than one with the same half make the index doubtful,
	// the address is sure.
	byIndex, byAddr := map[int]int{}, map[probe.BDF]int{}
	for _, g := range list {
		if g.index.Known() && g.addr.Known() {
			n, _ := g.index.Get()
			a, _ := g.addr.Get()
			byIndex[n]++
			byAddr[a]++
		}
	}
	slices.SortStableFunc(list, func(a, b seenGPU) int { return b.known() - a.known() })
	out := []probe.GPU{}
	for _, g := range list {
		n, okN := g.index.Get()
		a, okA := g.addr.Get()
		if okN && okA && (byIndex[n] > 1 || byAddr[a] > 1) {
			g.index = probe.Opt[int]{}
		}
		if okN && !okA && byIndex[n] > 0 || slices.ContainsFunc(out, func(o probe.GPU) bool { return okA && o.Addr == g.addr }) {
			continue
		}
		out = append(out, probe.GPU{Index: g.index, Addr: g.addr, Origins: l.origins(g.line)})
	}
	return out
}

func firstLine(m Member) int64 {
	for _, n := range []int64{m.Started, m.Completed, m.Aborted, m.Destroyed} {
		if n > 0 {
			return n
		}
	}
	return 0
}

// hcas returns the HCAs that NET/IB lists on a host. Their PCI path is not used
// for an address: NCCL gives all ports of an adapter function 0.
func (l *Log) hcas(host string) []probe.HCA {
	out := []probe.HCA{}
	add := func(name string, port probe.Opt[int], link string, speed probe.Opt[probe.Rate], line int64) {
		if !deviceName(name) {
			return
		}
		i := slices.IndexFunc(out, func(h probe.HCA) bool { return h.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, probe.HCA{Name: name, Ports: []probe.HCAPort{}, Origins: l.origins(line)})
		}
		n, ok := port.Get()
		if !ok {
			return
		}
		h := &out[i]
		j := slices.IndexFunc(h.Ports, func(p probe.HCAPort) bool { return p.Port == n })
		if j < 0 {
			j = len(h.Ports)
			h.Ports = append(h.Ports, probe.HCAPort{Port: n})
		}
		switch link {
		case "IB":
			h.Ports[j].LinkLayer = "InfiniBand"
		case "RoCE":
			h.Ports[j].LinkLayer = "Ethernet"
		}
		if speed.Known() {
			h.Ports[j].Rate = speed
		}
	}
	for _, b := range l.IBLists {
		if b.Host == host {
			for _, p := range b.Ports {
				add(p.Device, p.Port, p.LinkLayer, probe.Opt[probe.Rate]{}, b.First)
			}
		}
	}
	for _, d := range l.IBDevices {
		if d.Host == host && !d.Virtual {
			add(d.Name, d.Port, d.LinkLayer, d.Speed, d.First)
		}
	}
	return out
}

// deviceName accepts what a kernel calls a device. The list of a newer NCCL also
// names fused devices, "mlx5_0+mlx5_1", which no kernel knows.
func deviceName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isHost(c) {
			return false
		}
	}
	return true
}
