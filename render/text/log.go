package text

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// Log prints what NCCL jobs show of themselves: versions, network, settings, and
// for each communicator its ranks, transports, rings and trees, then NCCL's
// choices and warnings, and at last the findings. Style.Verbose adds every ring, the
// tuning table and what is long.
func Log(w io.Writer, j *probe.Job, res check.Result, s Style) error {
	out := bufio.NewWriter(w)
	for _, l := range j.Logs {
		if l.Records == 0 {
			continue
		}
		fmt.Fprintf(out, "%s: %s on %s", l.File, plural(int(l.Records), "NCCL record"), plural(int(l.Lines), "line"))
		if l.Torn > 0 {
			fmt.Fprintf(out, ", %d of them incomplete", l.Torn)
		}
		if len(l.Hosts) > 0 {
			fmt.Fprint(out, strings.Replace(onHosts(l.Hosts, 0), " on ", ", from ", 1))
		}
		fmt.Fprintln(out)
	}
	versions(out, j)
	networks(out, j, s)
	fabrics(out, j)
	settings(out, j)
	duplicates(out, j)
	for i := range j.Comms {
		communicator(out, j, &j.Comms[i], s)
	}
	choices(out, j.Choices, s)
	warnings(out, j.Events, s)
	fmt.Fprintln(out)
	return errors.Join(out.Flush(), Findings(w, res, s))
}

// byHosts collects lines that several hosts share, in order of appearance.
type byHosts struct {
	lines []string
	hosts map[string][]string
}

func (b *byHosts) add(line, host string) {
	if b.hosts == nil {
		b.hosts = map[string][]string{}
	}
	if _, known := b.hosts[line]; !known {
		b.lines = append(b.lines, line)
		b.hosts[line] = nil
	}
	if host != "" && !slices.Contains(b.hosts[line], host) {
		b.hosts[line] = append(b.hosts[line], host)
	}
}

// print writes each line with its hosts; all is the number that needs no names.
func (b *byHosts) print(w io.Writer, all int) {
	for _, l := range b.lines {
		fmt.Fprintln(w, l+onHosts(b.hosts[l], all))
	}
}

// onHosts names hosts after a fact: some by name, many by number.
func onHosts(hosts []string, all int) string {
	slices.SortFunc(hosts, probe.CompareNames)
	switch n := len(hosts); {
	case n == 0:
		return ""
	case n == all && n == 2:
		return " on both hosts"
	case n == all && n > 2:
		return fmt.Sprintf(" on all %d hosts", n)
	case n <= 4:
		return " on " + strings.Join(hosts, ", ")
	default:
		return fmt.Sprintf(" on %d hosts (%s, …)", n, strings.Join(hosts[:3], ", "))
	}
}

func versions(w io.Writer, j *probe.Job) {
	var b byHosts
	for _, v := range j.Versions {
		line := "NCCL " + v.NCCL
		if v.CUDA != "" {
			line += ", built with CUDA " + v.CUDA
		}
		if d, ok := v.Driver.Get(); ok {
			line += fmt.Sprintf(", driver for CUDA %d.%d", d/1000, d%1000/10)
		}
		b.add(line, v.Host)
	}
	b.print(w, len(j.JobHosts()))
}

// networks prints what carries the traffic, its adapters and its interfaces.
func networks(w io.Writer, j *probe.Job, s Style) {
	all := len(j.JobHosts())
	var b byHosts
	for _, n := range j.Networks {
		if n.State == probe.NetUsed {
			b.add("network "+n.Name, n.Host)
		}
	}
	for _, n := range j.Networks {
		if n.State == probe.NetNoDevice || s.Verbose && n.State != probe.NetUsed {
			b.add("network "+n.Name+": "+n.State, n.Host)
		}
	}
	for host, list := range adaptersByHost(j) {
		b.add("adapters "+list, host)
	}
	slices.SortStableFunc(b.lines, func(x, y string) int { return cmp.Compare(rankOfLine(x), rankOfLine(y)) })
	type key struct{ use, host string }
	names := map[key][]string{}
	var order []key
	for _, i := range j.Interfaces {
		k := key{i.Use, i.Host}
		if names[k] == nil {
			order = append(order, k)
		}
		if !slices.Contains(names[k], i.Name) {
			names[k] = append(names[k], i.Name)
		}
	}
	for _, k := range order {
		if k.use != probe.UseOOB || s.Verbose {
			b.add(fmt.Sprintf("interface for %s: %s", useText(k.use), strings.Join(names[k], ", ")), k.host)
		}
	}
	b.print(w, all)
}

// rankOfLine puts the lines about adapters, which come from a map, behind those
// about networks and in an order of their own.
func rankOfLine(line string) string {
	if strings.HasPrefix(line, "adapters ") {
		return "1" + line
	}
	return "0"
}

func useText(use string) string {
	if use == probe.UseSocket {
		return "sockets"
	}
	return use
}

// adaptersByHost lists the adapters of each host in a line.
func adaptersByHost(j *probe.Job) map[string]string {
	lists := map[string][]string{}
	for _, d := range j.Adapters {
		if d.LinkLayer == "" && d.Network == "Socket" {
			continue
		}
		var facts []string
		if d.LinkLayer != "" {
			facts = append(facts, d.LinkLayer)
		}
		if r, ok := d.Rate.Get(); ok {
			facts = append(facts, r.Gbps())
		}
		if on, ok := d.GDR.Get(); ok && on {
			facts = append(facts, "GPUDirect RDMA")
		} else if ok {
			facts = append(facts, "no GPUDirect RDMA")
		}
		lists[d.Host] = append(lists[d.Host], fmt.Sprintf("%s\x00%s", d.Name, strings.Join(facts, " ")))
	}
	out := map[string]string{}
	for host, list := range lists {
		var parts []string
		for i := 0; i < len(list); { // neighbours with equal facts together
			name, facts, _ := strings.Cut(list[i], "\x00")
			names := []string{name}
			for i++; i < len(list); i++ {
				next, same, _ := strings.Cut(list[i], "\x00")
				if same != facts {
					break
				}
				names = append(names, next)
			}
			if facts != "" {
				facts = " (" + facts + ")"
			}
			parts = append(parts, strings.Join(names, " ")+facts)
		}
		out[host] = strings.Join(parts, ", ")
	}
	return out
}

// fabrics prints the registration of GPUs with an NVLink fabric of several hosts;
// one without a cluster UUID has none.
func fabrics(w io.Writer, j *probe.Job) {
	var b byHosts
	for _, f := range j.Fabrics {
		if f.UUID == "" || f.UUID == "0.0" {
			continue
		}
		state := fmt.Sprintf("state %d", f.State)
		if f.State == 3 { // NVML_GPU_FABRIC_STATE_COMPLETED
			state = "completed"
		}
		b.add(fmt.Sprintf("NVLink fabric %s, clique %#x: %s, health mask %#x", f.UUID, f.CliqueID, state, f.HealthMask), f.Host)
	}
	b.print(w, len(j.JobHosts()))
}

// settings prints what NCCL confirmed, equal values of several hosts together.
// variable with many values is shortened.
func settings(w io.Writer, j *probe.Job) {
	var b byHosts
	sorted := slices.Clone(j.Env)
	slices.SortStableFunc(sorted, func(x, y probe.EnvSetting) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.How, y.How), strings.Compare(x.Value, y.Value))
	})
	for _, e := range sorted {
		how := map[string]string{probe.EnvVariable: "", probe.EnvConfig: " (by the application)", probe.EnvReset: " (environment over the application)",
			probe.EnvInvalid: " (refused, the default holds)", probe.EnvFile: " (in a file)"}[e.How]
		b.add(fmt.Sprintf("setting %s=%s%s", e.Name, e.Value, how), e.Host)
	}
	b.print(w, len(j.JobHosts()))
}

// duplicates names processes that claim one rank of a communicator.
func duplicates(w io.Writer, j *probe.Job) {
	const most = 8
	n := 0
	for _, c := range j.Comms {
		for i := 1; i < len(c.Members); i++ {
			x, y := c.Members[i-1], c.Members[i]
			if x.Rank != y.Rank || x.Rank == probe.UnknownRank {
				continue
			}
			if n++; n <= most {
				fmt.Fprintf(w, "rank %d of communicator %s appears twice: %s and %s\n", x.Rank, commName(&c), processText(x), processText(y))
			}
		}
	}
	if n > most {
		fmt.Fprintf(w, "and %d more ranks appear twice\n", n-most)
	}
}

func processText(m probe.Member) string {
	return strings.Join(nonEmpty(m.Host, optText("process", m.PID)), " ")
}

func optText(what string, v probe.Opt[int]) string {
	if n, ok := v.Get(); ok {
		return fmt.Sprintf("%s %d", what, n)
	}
	return ""
}

// choices prints what NCCL chose by size, neighbours of one choice together.
func choices(w io.Writer, list []probe.Choice, s Style) {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b probe.Choice) int {
		return cmp.Or(strings.Compare(a.Collective, b.Collective), cmp.Compare(a.Bytes, b.Bytes))
	})
	type span struct {
		first, last int64
		how         string
	}
	spans := map[string][]span{}
	for _, x := range sorted {
		how := strings.Join(nonEmpty(x.Algorithm, x.Protocol, x.Kernel), " ")
		if n, ok := x.Channels.Get(); ok && s.Verbose {
			how += fmt.Sprintf(" ×%d", n)
		}
		list := spans[x.Collective]
		if n := len(list); n > 0 && list[n-1].how == how {
			list[n-1].last = x.Bytes
			continue
		}
		spans[x.Collective] = append(list, span{x.Bytes, x.Bytes, how})
	}
	for _, c := range slices.Sorted(maps.Keys(spans)) {
		var parts []string
		for _, x := range spans[c] {
			size := bytesText(x.first)
			if x.last != x.first {
				size += "–" + bytesText(x.last)
			}
			parts = append(parts, size+" "+x.how)
		}
		name := c
		if name == "" {
			name = "an operation"
		}
		fmt.Fprintf(w, "chosen for %s: %s\n", name, strings.Join(parts, "; "))
	}
}

// bytesText prints a size as nccl-tests takes it: 8, 64K, 1M.
func bytesText(n int64) string {
	unit := ""
	for _, u := range []string{"K", "M", "G"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return fmt.Sprintf("%d%s", n, unit)
}

// warnings prints NCCL's own warnings, equal ones of several hosts together.
func warnings(w io.Writer, events []probe.Event, s Style) {
	const most = 8
	type group struct {
		text  string
		hosts []string
		count int64
		at    probe.Origin
	}
	var groups []*group
	byText := map[string]*group{}
	for _, e := range events {
		if e.Kind == probe.EventNote {
			continue
		}
		g := byText[e.Text]
		if g == nil {
			g = &group{text: e.Text, at: probe.OriginOf(e.Origins, "")}
			byText[e.Text] = g
			groups = append(groups, g)
		}
		g.count += max(e.Count, 1)
		if e.Host != "" && !slices.Contains(g.hosts, e.Host) {
			g.hosts = append(g.hosts, e.Host)
		}
	}
	for i, g := range groups {
		if i == most && !s.Verbose {
			fmt.Fprintf(w, "and %d more texts (--verbose)\n", len(groups)-most)
			break
		}
		times := ""
		if g.count > 1 {
			times = fmt.Sprintf(" %d times", g.count)
		}
		fmt.Fprintf(w, "warned%s%s (first at %s): %s\n", times, onHosts(g.hosts, 0), g.at.Where, g.text)
	}
}
