package nccllog

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// job returns what the log shows of the jobs that wrote it.
func (l *Log) job(hosts []string) probe.Job {
	file := probe.LogFile{File: l.Name, Lines: l.Lines, Records: l.Records, Torn: l.Torn, Commless: int64(len(l.Loose.Conns)), Hosts: hosts}
	if file.Hosts == nil {
		file.Hosts = []string{}
	}
	j := probe.Job{Logs: []probe.LogFile{file}}
	for _, v := range l.Versions {
		j.Versions = append(j.Versions, probe.NCCLSeen{NCCL: v.NCCL, CUDA: v.CUDA, Driver: l.cudaDriver(v.Host), Host: v.Host, Origins: l.seen(v.Seen)})
	}
	for _, n := range l.Networks {
		j.Networks = append(j.Networks, probe.Network{Name: n.Name, State: n.State, Host: n.Host, Origins: l.seen(n.Seen)})
	}
	j.Adapters = l.adapters()
	for _, i := range l.Interfaces {
		j.Interfaces = append(j.Interfaces, probe.Interface{Use: i.Use, Name: i.Name, Addr: i.Addr, Host: i.Host, Origins: l.seen(i.Seen)})
	}
	for _, g := range l.GDRPairs {
		j.GDRPairs = append(j.GDRPairs, probe.GDRPair{GPU: g.GPU, HCA: g.HCA, Enabled: g.Enabled, Distance: g.Distance, Limit: g.Limit, Host: g.Host, Origins: l.seen(g.Seen)})
	}
	for _, f := range l.Fabrics {
		j.Fabrics = append(j.Fabrics, probe.FabricSeen{GPU: address(probe.Some(f.BusID)), UUID: f.UUID, CliqueID: f.CliqueID, State: f.State, HealthMask: f.HealthMask, Host: f.Host, Origins: l.seen(f.Seen)})
	}
	for _, t := range l.Topologies {
		j.Systems = append(j.Systems, l.system(t))
	}
	for _, e := range l.Env {
		j.Env = append(j.Env, probe.EnvSetting{Name: e.Name, Value: e.Value, How: e.How, Host: e.Host, PIDs: l.pids(e.Procs), Origins: l.seen(e.Seen)})
	}
	for _, c := range l.Choices {
		j.Choices = append(j.Choices, l.choice(c))
	}
	for _, c := range l.Comms {
		j.Comms = append(j.Comms, l.comm(c))
	}
	if c := l.loose(); len(c.Conns)+len(c.Rings)+len(c.Graphs)+len(c.Tuning) > 0 {
		j.Comms = append(j.Comms, c)
	}
	for _, w := range l.Warnings {
		j.Events = append(j.Events, probe.Event{Kind: probe.EventWarning, Host: w.Host, Rank: w.Rank, Comm: w.Comm, Site: site(w), Text: w.Text, Count: w.Count, Origins: l.seen(w.Seen)})
	}
	for _, n := range l.Notes {
		j.Events = append(j.Events, probe.Event{Kind: probe.EventNote, Class: n.Class, Host: n.Host, Text: n.Text, Count: n.Count, Origins: l.seen(n.Seen)})
	}
	return j
}

// loose returns what no communicator line claims: logs before NCCL 2.18, cut ones,
// and excerpts. Its ranks are those that a connection's printer shows, as long as
// only one process claims each. Torn connections of an unknown process do not count
// beside communicators, to which they most likely belong.
func (l *Log) loose() probe.Comm {
	loose := l.Loose
	if len(l.Comms) > 0 {
		loose.Conns = slices.DeleteFunc(slices.Clone(loose.Conns), func(k Connection) bool { return len(k.Procs) == 0 })
	}
	out := l.comm(loose)
	at := map[int]int{} // index in Procs; -1 = several
	for _, k := range loose.Conns {
		rank := k.From.Rank
		if k.Dir == DirReceive {
			rank = k.To.Rank
		}
		for _, p := range k.Procs {
			if known, ok := at[rank]; ok && known != p {
				p = -1
			}
			at[rank] = p
		}
	}
	for rank, p := range at {
		if p >= 0 {
			out.Members = append(out.Members, probe.Member{
				Rank: rank, Host: l.Procs[p].Host, PID: probe.Some(l.Procs[p].PID), NCCL: l.Procs[p].NCCL, Origins: l.origins(l.Procs[p].First),
			})
		}
	}
	slices.SortFunc(out.Members, func(a, b probe.Member) int { return a.Rank - b.Rank })
	return out
}

func (l *Log) pids(procs []int) []int {
	var out []int
	for _, p := range procs {
		out = append(out, l.Procs[p].PID)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// site is where in NCCL a warning was printed.
func site(w Warning) string {
	if w.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", w.File, w.Line)
}

// seen gives the place of the first appearance.
func (l *Log) seen(s Seen) []probe.Origin { return l.origins(s.First) }

// cudaDriver returns the CUDA version of a host's driver where its processes
// agree.
func (l *Log) cudaDriver(host string) probe.Opt[int] {
	var out probe.Opt[int]
	for _, p := range l.Procs {
		if p.Host != host || !p.CUDADriver.Known() {
			continue
		}
		if out.Known() && out != p.CUDADriver {
			return probe.Opt[int]{}
		}
		out = p.CUDADriver
	}
	return out
}

// adapters lists the ports that networks use. The one-line list names all of
// them; detailed lines add rate and whether GPUDirect RDMA is possible.
func (l *Log) adapters() []probe.Adapter {
	var out []probe.Adapter
	find := func(host string, index int, name string) *probe.Adapter {
		for i := range out {
			if out[i].Host == host && out[i].Index == index && (name == "" || out[i].Name == name) {
				return &out[i]
			}
		}
		return nil
	}
	for _, b := range l.IBLists {
		for _, p := range b.Ports {
			if find(b.Host, p.Index, p.Device) == nil {
				out = append(out, probe.Adapter{Network: "IB", Index: p.Index, Name: p.Device, Port: p.Port, LinkLayer: linkLayer(p.LinkLayer), Host: b.Host, Origins: l.seen(b.Seen)})
			}
		}
	}
	for _, d := range l.IBDevices {
		a := find(d.Host, d.Index, d.Name)
		if a == nil {
			out = append(out, probe.Adapter{Network: "IB", Index: d.Index, Name: d.Name, Port: d.Port, LinkLayer: linkLayer(d.LinkLayer), Host: d.Host, Origins: l.seen(d.Seen)})
			a = &out[len(out)-1]
		}
		if !a.Rate.Known() {
			a.Rate = d.Speed
		}
	}
	for _, g := range l.GDR {
		if a := find(g.Host, g.Index, ""); a != nil && a.Network == g.Network {
			a.GDR = probe.Some(g.Enabled)
			continue
		}
		out = append(out, probe.Adapter{Network: g.Network, Index: g.Index, Name: g.Device, GDR: probe.Some(g.Enabled), Host: g.Host, Origins: l.seen(g.Seen)})
	}
	return out
}

func linkLayer(s string) string {
	switch s {
	case "IB":
		return "InfiniBand"
	case "RoCE":
		return "Ethernet"
	}
	return ""
}

func (l *Log) system(t Topology) probe.SystemTree {
	out := probe.SystemTree{MaxGBs: t.MaxBW, TotalGBs: t.TotalBW, Nodes: []probe.SystemNode{}, Host: t.Host, Origins: l.seen(t.Seen)}
	for _, n := range t.Nodes {
		out.Nodes = append(out.Nodes, probe.SystemNode{Depth: n.Depth, Link: n.Link, GBs: n.GBs, Name: n.Name, Note: n.Note, Line: n.Line})
	}
	for _, p := range t.Paths {
		out.Paths = append(out.Paths, probe.SystemPath{From: p.From, To: p.To, Hops: p.Hops, GBs: p.GBs, Class: p.Class})
	}
	return out
}

func (l *Log) choice(c Choice) probe.Choice {
	out := probe.Choice{Collective: c.Func, Bytes: c.Bytes, Algorithm: c.Algo, Protocol: c.Proto, Kernel: c.Kernel, TimeUS: c.TimeUS, Count: c.Count, Origins: l.seen(c.Seen)}
	lo, ok1 := c.Lo.Get()
	if hi, ok2 := c.Hi.Get(); ok1 && ok2 && hi >= lo {
		out.Channels = probe.Some(hi - lo + 1)
	}
	return out
}

func (l *Log) comm(c Comm) probe.Comm {
	out := probe.Comm{ID: c.ID, NCCL: c.NCCL, Ranks: c.Ranks, Nodes: c.Nodes, Channels: c.Counts.Coll, Origins: l.origins(c.First)}
	for _, m := range c.Members {
		out.Members = append(out.Members, l.member(m))
	}
	for _, g := range c.Graphs {
		out.Graphs = append(out.Graphs, probe.Graph{
			Pattern: PatternName(g.Pattern), Channels: g.Channels, BWIntra: g.BWIntra, BWInter: g.BWInter, TypeIntra: g.TypeIntra, TypeInter: g.TypeInter,
			CrossNIC: g.CrossNIC, NoPath: g.NoPath, Orders: g.Orders, Origins: l.seen(g.Seen),
		})
	}
	for _, r := range c.Rings {
		out.Rings = append(out.Rings, probe.Ring{Channel: r.Channel, Ranks: r.Ranks, Cut: r.Cut})
	}
	for _, t := range c.Trees {
		out.Trees = append(out.Trees, probe.TreeNode{Channel: t.Channel, Rank: t.Rank, Up: t.Up, Down: t.Down})
	}
	for _, k := range c.Conns {
		out.Conns = append(out.Conns, l.connection(k))
	}
	for _, t := range c.Tuning {
		out.Tuning = append(out.Tuning, probe.TuningCell{Collective: t.Func, Algorithm: t.Algo, Protocol: t.Proto, GBs: t.GBs, LatencyUS: t.LatencyUS})
	}
	return out
}

func (l *Log) member(m Member) probe.Member {
	out := probe.Member{Rank: m.Rank, Host: m.Host, GPU: m.NVMLDev, CUDADev: m.CUDADev, Addr: address(m.BusID), Origins: l.origins(firstLine(m))}
	if m.PID > 0 {
		out.PID = probe.Some(m.PID)
	}
	if m.Proc >= 0 && m.Proc < len(l.Procs) {
		out.NCCL = l.Procs[m.Proc].NCCL
	}
	switch {
	case m.Aborted > 0:
		out.Init = probe.InitAborted
	case m.Destroyed > 0:
		out.Init = probe.InitDestroyed
	case m.Completed > 0:
		out.Init = probe.InitCompleted
	case m.Started > 0:
		out.Init = probe.InitStarted
	}
	for _, t := range m.Timings {
		out.Seconds = append(out.Seconds, probe.Timing{What: t.What, Seconds: t.Seconds})
	}
	return out
}

func address(busID probe.Opt[uint64]) probe.Opt[probe.BDF] {
	if id, ok := busID.Get(); ok {
		if a, ok := probe.BDFOfBusID(id); ok {
			return probe.Some(a)
		}
	}
	return probe.Opt[probe.BDF]{}
}

func (l *Log) connection(k Connection) probe.Connection {
	out := probe.Connection{
		From: k.From.Rank, To: k.To.Rank, Via: k.Via.Kind, Variant: k.Via.Variant, Network: k.Via.Network, Device: k.Via.NetDev,
		Proxy: k.Via.Proxy, SendRecv: k.Conn == probe.Some(1), Channels: len(k.Channels), Origins: l.seen(k.Seen),
	}
	if slices.Contains([]string{probe.ViaNET, probe.ViaCollNet}, k.Via.Kind) {
		out.GDR, out.Side = probe.Some(k.Via.GDR), k.Dir
	}
	return out
}
