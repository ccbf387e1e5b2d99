package text

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/nccllog"
)

// Log prints what an NCCL log says: versions, network, settings, and for each
// communicator its ranks, graphs and transports, then NCCL's warnings.
func Log(w io.Writer, l *nccllog.Log, s Style) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s: %d NCCL records on %d lines", l.Name, l.Records, l.Lines)
	if l.Torn > 0 {
		fmt.Fprintf(out, ", %d of them incomplete", l.Torn)
	}
	fmt.Fprintln(out)
	for _, d := range l.Dropped {
		fmt.Fprintf(out, "  not kept, too many: %d × %s\n", d.N, d.What)
	}
	for _, v := range l.Versions {
		line := "NCCL " + v.NCCL
		if v.CUDA != "" {
			line += ", built with CUDA " + v.CUDA
		}
		fmt.Fprintln(out, line+on(v.Host))
	}
	for _, n := range l.Networks {
		if n.State == probe.NetUsed || n.State == probe.NetFailed || s.Verbose {
			fmt.Fprintf(out, "network %s: %s%s\n", n.Name, n.State, on(n.Host))
		}
	}
	for _, line := range settings(l.Env) {
		fmt.Fprintln(out, line)
	}
	for _, c := range l.Comms {
		logComm(out, c, s)
	}
	if len(l.Loose.Conns) > 0 {
		fmt.Fprintln(out, "connections that no communicator line claims")
		logTransports(out, l.Loose)
	}
	logChoices(out, l.Choices)
	for _, x := range l.Warnings {
		fmt.Fprintf(out, "NCCL warns (line %d%s%s): %s\n", x.First, times(x.Count), on(x.Host), x.Text)
	}
	return out.Flush()
}

// settings lists what NCCL confirmed, equal values of several hosts together.
func settings(env []nccllog.Env) []string {
	var keys []string
	hosts := map[string][]string{}
	for _, e := range env {
		k := fmt.Sprintf("setting %s=%s (%s)", e.Name, e.Value, e.How)
		if hosts[k] == nil {
			keys = append(keys, k)
			hosts[k] = []string{}
		}
		if e.Host != "" && !slices.Contains(hosts[k], e.Host) {
			hosts[k] = append(hosts[k], e.Host)
		}
	}
	slices.Sort(keys)
	for i, k := range keys {
		slices.SortFunc(hosts[k], probe.CompareNames)
		keys[i] = k + on(strings.Join(hosts[k], ", "))
	}
	return keys
}

func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

func times(n int64) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(", %d times", n)
}

func logComm(out io.Writer, c nccllog.Comm, s Style) {
	name := c.ID
	if name == "" {
		name = "(id not printed)"
	}
	fmt.Fprintf(out, "communicator %s: %d ranks", name, c.Ranks)
	if n, ok := c.Nodes.Get(); ok {
		fmt.Fprintf(out, ", %s", plural(n, "node"))
	}
	if n, ok := c.Counts.Coll.Get(); ok {
		fmt.Fprintf(out, ", %d collective channels", n)
	}
	if len(c.Members) < c.Ranks {
		fmt.Fprintf(out, " (%d of its ranks are in this log)", len(c.Members))
	}
	fmt.Fprintln(out)
	for _, host := range membersByHost(c) {
		fmt.Fprintln(out, "  "+host)
	}
	for _, g := range c.Graphs {
		pattern := nccllog.PatternName(g.Pattern)
		if pattern == "" {
			pattern = fmt.Sprintf("pattern %d", g.Pattern)
		}
		fmt.Fprintf(out, "  graph %s: %d channels × %s/%s GB/s, %s/%s", pattern, g.Channels, num(g.BWIntra), num(g.BWInter), g.TypeIntra, g.TypeInter)
		if g.NoPath {
			fmt.Fprint(out, ": no path found, simple order taken")
		}
		fmt.Fprintln(out)
	}
	logTransports(out, c)
	if s.Verbose {
		for _, r := range c.Rings {
			fmt.Fprintf(out, "  ring %d: %v\n", r.Channel, r.Ranks)
		}
		for _, x := range c.Tuning {
			if x.GBs > 0 {
				fmt.Fprintf(out, "  NCCL believes %s %s %s: %s µs, %s GB/s\n", x.Func, x.Algo, x.Proto, num(x.LatencyUS), num(x.GBs))
			}
		}
	}
}

// membersByHost lists ranks and their GPUs, a line per host.
func membersByHost(c nccllog.Comm) []string {
	var hosts []string
	ranks := map[string][]string{}
	for _, m := range c.Members {
		r := fmt.Sprint(m.Rank)
		if id, ok := m.BusID.Get(); ok {
			if a, ok := nccllog.BDF(id); ok {
				r += " on " + a.String()
			}
		}
		if ranks[m.Host] == nil {
			hosts = append(hosts, m.Host)
		}
		ranks[m.Host] = append(ranks[m.Host], r)
	}
	slices.SortFunc(hosts, probe.CompareNames)
	for i, h := range hosts {
		label := h
		if label == "" {
			label = "(host not printed)"
		}
		hosts[i] = label + ": rank " + strings.Join(ranks[h], ", ")
	}
	return hosts
}

func logTransports(out io.Writer, c nccllog.Comm) {
	for _, t := range Transports(c) {
		fmt.Fprintf(out, "  transport %s: %s of ranks\n", t.Name, plural(t.Pairs, "directed pair"))
	}
}

// Transport is a way that connections of a communicator take.
type Transport struct {
	Name  string `json:"transport"`
	Pairs int    `json:"pairs"` // from one rank to another
}

// Transports counts the pairs of ranks by transport, and tells those with
// GPUDirect RDMA and those through another GPU apart.
func Transports(c nccllog.Comm) []Transport {
	type pair struct{ from, to int }
	pairs := map[string]map[pair]bool{}
	for _, x := range c.Conns {
		kind := strings.Join(nonEmpty(x.Via.Kind, x.Via.Variant, x.Via.Network), "/")
		if x.Via.GDR {
			kind += " with GPUDirect RDMA"
		}
		if x.Via.Proxy.Known() {
			kind += " through another GPU"
		}
		if pairs[kind] == nil {
			pairs[kind] = map[pair]bool{}
		}
		pairs[kind][pair{x.From.Rank, x.To.Rank}] = true
	}
	var out []Transport
	for _, kind := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, Transport{kind, len(pairs[kind])})
	}
	return out
}

// logChoices prints NCCL's choices by size, neighbours of one choice together.
func logChoices(out io.Writer, choices []nccllog.Choice) {
	sorted := slices.Clone(choices)
	slices.SortStableFunc(sorted, func(a, b nccllog.Choice) int {
		if c := strings.Compare(a.Func, b.Func); c != 0 {
			return c
		}
		return int(a.Bytes - b.Bytes)
	})
	for _, x := range sorted {
		channels := ""
		if lo, ok := x.Lo.Get(); ok {
			channels = fmt.Sprintf(", channels %d–%d", lo, x.Hi.Or(lo))
		}
		fmt.Fprintf(out, "chose %s: %s%s%s\n", strings.Join(nonEmpty(x.Func, fmt.Sprintf("%d bytes", x.Bytes)), " "), strings.Join(nonEmpty(x.Algo, x.Proto, x.Kernel), " "), channels, times(x.Count))
	}
}
