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

// Inventory returns what the log says in probe's words. GPUs and HCAs belong to
// one host; a log of several gives only what they share and a gap, see
// [Log.InventoryOf]. It is normalized and valid unless the log is absurd.
func (l *Log) Inventory() *probe.Inventory {
	switch hosts := l.Hosts(); len(hosts) {
	case 0:
		inv := l.shared(nil)
		if l.Records == 0 {
			inv.Gaps = append(inv.Gaps, probe.Gap{
				What: "NCCL log", Why: "the text holds no NCCL record", How: "run the job with NCCL_DEBUG=INFO",
				Origin: l.origin(0),
			})
		}
		inv.Normalize()
		return inv
	case 1:
		return l.InventoryOf(hosts[0])
	default:
		inv := l.shared(nil)
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "GPUs and HCAs", Why: fmt.Sprintf("the log speaks of %d hosts and this inventory is of one", len(hosts)),
			How: "give the log of one host", Origin: l.origin(0),
		})
		inv.Normalize()
		return inv
	}
}

// InventoryOf returns what the log says about one host, with the communicators
// that have a rank on it.
func (l *Log) InventoryOf(host string) *probe.Inventory {
	inv := l.shared(&host)
	inv.Host.Name = host
	inv.GPUs = l.gpus(host)
	inv.HCAs = l.hcas(host)
	inv.Normalize()
	return inv
}

func (l *Log) origin(line int64) probe.Origin {
	return probe.LineOf(probe.SourceNCCLLog, l.Name, line)
}

func (l *Log) origins(line int64) []probe.Origin { return []probe.Origin{l.origin(line)} }

// shared returns communicators, warnings and the version; of one host or of all.
func (l *Log) shared(host *string) *probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	here := func(h string) bool { return host == nil || h == "" || h == *host }
	for _, c := range l.Comms {
		if !slices.ContainsFunc(c.Members, func(m Member) bool { return here(m.Host) }) {
			continue
		}
		inv.Comms = append(inv.Comms, probe.Comm{
			ID: c.ID, NCCL: c.NCCL, Ranks: c.Ranks, Nodes: c.Nodes, Channels: c.Counts.Coll, Origins: l.origins(c.First),
		})
	}
	for _, w := range l.Warnings {
		if here(w.Host) {
			inv.Events = append(inv.Events, probe.Event{Kind: "warning", Subject: w.Host, Text: w.Text, Origins: l.origins(w.First)})
		}
	}
	nccl, at, mixed := "", int64(0), false
	for _, v := range l.Versions {
		if !here(v.Host) {
			continue
		}
		if nccl == "" {
			nccl, at = v.NCCL, v.First
		}
		mixed = mixed || v.NCCL != nccl
	}
	switch {
	case mixed:
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "NCCL version", Why: "the log names several", Origin: l.origin(at),
		})
	case nccl != "":
		inv.Runtime.NCCL = nccl
		inv.Runtime.Origins = l.origins(at)
	}
	for _, d := range l.Dropped {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: d.What, Why: fmt.Sprintf("%d were over the limit that is kept", d.N), Origin: l.origin(0),
		})
	}
	return inv
}

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
			if id, ok := m.BusID.Get(); ok {
				if a, ok := BDF(id); ok {
					g.addr = probe.Some(a)
				}
			}
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
