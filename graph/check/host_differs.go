package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var hostDiffers = Rule{
	ID:    "host-differs",
	Title: "a host is not built like the others",
	Doc: `Compares the hosts of one set feature by feature: product, processors, NUMA nodes,
GPUs and their models, NVLinks up, PCIe links of the GPUs, HCAs and their models,
port rates. Where more than half of at least three hosts agree, the others are odd:
one finding for all hosts that differ in the same way. Warning. Two hosts that
differ are both named (possible), since nothing says which is odd.
Silent: fewer than two hosts; a feature that a source does not give; a feature on
which no majority agrees (a set of several kinds of hosts; info); a fault that a
rule about the host itself already names.`,
	Across: func(a *Across) {
		a.odd(hardware, "bring the host in line with its peers, or leave it out of the job: NCCL plans for the slowest")
	},
}

// feature is one thing in which hosts are compared. value is "" where a source
// does not give it.
type feature struct {
	name  string
	value func(*graph.Topology) string
	// rules that name the fault behind a different value on the host itself.
	rules []string
}

var hardware = []feature{
	{"product", func(t *graph.Topology) string {
		return strings.TrimSpace(t.Inv.Product.Vendor + " " + t.Inv.Product.Name)
	}, nil},
	{"processors", func(t *graph.Topology) string {
		return tally(t.Inv.CPUs, func(c probe.CPU) string { return c.Name })
	}, nil},
	{"NUMA nodes", func(t *graph.Topology) string {
		if len(t.Inv.NUMA) == 0 {
			return ""
		}
		return fmt.Sprint(len(t.Inv.NUMA))
	}, nil},
	{"GPUs", func(t *graph.Topology) string { return number(t, len(t.Inv.GPUs)) }, []string{"gpu-missing"}},
	{"GPU models", func(t *graph.Topology) string {
		return models(t.Inv.GPUs, func(g probe.GPU) string { return g.Name })
	}, nil},
	{"NVLinks up per GPU", func(t *graph.Topology) string { return tally(t.Inv.GPUs, linksUp) }, []string{"nvlink-down", "nvlink-uneven", "nvlink-absent"}},
	{"PCIe links of the GPUs", func(t *graph.Topology) string {
		return tally(t.Inv.GPUs, func(g probe.GPU) string {
			if w, ok := g.Max.Width.Get(); !ok || w == 0 || !g.Max.Speed.Known() {
				return ""
			}
			return g.Max.String()
		})
	}, []string{"pcie-width-degraded", "pcie-speed-degraded", "pcie-slot-narrow", "pcie-uneven"}},
	{"HCAs", func(t *graph.Topology) string { return number(t, len(t.Inv.HCAs)) }, nil},
	{"HCA models", func(t *graph.Topology) string {
		return models(t.Inv.HCAs, func(h probe.HCA) string { return hcaModel(t, h) })
	}, nil},
	{"active ports", func(t *graph.Topology) string { return activePorts(t.Inv.HCAs) }, []string{"hca-port-down", "hca-rate-low"}},
}

// number prints how many there are; none counts only where the bus was seen.
func number(t *graph.Topology, n int) string {
	if n == 0 && len(t.Inv.PCI) == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func linksUp(g probe.GPU) string {
	links, ok := g.NVLinks.Get()
	if !ok {
		return ""
	}
	n := 0
	for _, l := range links {
		if l.State == probe.LinkUp {
			n++
		}
	}
	return fmt.Sprintf("%d links", n)
}

func hcaModel(t *graph.Topology, h probe.HCA) string {
	if h.Board != "" {
		return h.Board
	}
	if n := t.Node("hca:" + h.Name); n != nil {
		id, _ := pciID(n.PCI)
		return id
	}
	return ""
}

func activePorts(hcas []probe.HCA) string {
	var ports []probe.HCAPort
	for _, h := range hcas {
		for _, p := range h.Ports {
			if p.State == "" {
				return "" // not known of all
			}
			if p.Active() {
				ports = append(ports, p)
			}
		}
	}
	return tally(ports, func(p probe.HCAPort) string {
		if r, ok := p.Rate.Get(); ok {
			return strings.TrimSpace(p.LinkLayer + " " + r.Gbps())
		}
		return ""
	})
}

// tally prints "8 × NVIDIA H200, 2 × NVIDIA L4"; "" where the value of one
// element is not known.
func tally[T any](list []T, value func(T) string) string {
	var order []string
	n := map[string]int{}
	for _, x := range list {
		v := value(x)
		if v == "" {
			return ""
		}
		if n[v] == 0 {
			order = append(order, v)
		}
		n[v]++
	}
	slices.SortFunc(order, probe.CompareNames)
	for i, v := range order {
		order[i] = fmt.Sprintf("%d × %s", n[v], v)
	}
	return strings.Join(order, ", ")
}

// models lists the different values; "" where that of one element is not known.
func models[T any](list []T, value func(T) string) string {
	var out []string
	for _, x := range list {
		v := value(x)
		if v == "" {
			return ""
		}
		out = append(out, v)
	}
	slices.SortFunc(out, probe.CompareNames)
	return strings.Join(slices.Compact(out), ", ")
}

// ballot is the hosts by their value of one feature.
type ballot struct {
	values []string
	hosts  map[string][]int // into Across.Hosts
	known  int
}

func (a *Across) ballot(f feature) ballot {
	b := ballot{hosts: map[string][]int{}}
	for i, t := range a.Hosts {
		v := f.value(t)
		if v == "" || OnlyInJobs(t.Inv) || a.explained(t, f.rules) {
			continue
		}
		if b.hosts[v] == nil {
			b.values = append(b.values, v)
		}
		b.hosts[v] = append(b.hosts[v], i)
		b.known++
	}
	slices.SortStableFunc(b.values, func(x, y string) int { return len(b.hosts[y]) - len(b.hosts[x]) })
	return b
}

// explained reports a host on which one of the rules found the fault itself.
func (a *Across) explained(t *graph.Topology, rules []string) bool {
	host := t.Inv.Host.Name
	return slices.ContainsFunc(a.out.Findings, func(f Finding) bool {
		return slices.Contains(rules, f.Rule) && slices.ContainsFunc(f.Subjects, func(s string) bool { return hostOf(s, "") == host })
	})
}

// difference is what makes some hosts odd in one feature.
type difference struct{ feature, expected, observed string }

// odd reports hosts that differ from the majority, those that differ alike
// together.
func (a *Across) odd(features []feature, fix string) {
	if len(a.Hosts) < 2 {
		return
	}
	odd := map[int][]difference{}
	splits := map[string]*Finding{} // by who stands on which side
	var order []string
	for _, f := range features {
		b := a.ballot(f)
		if len(b.values) < 2 {
			continue
		}
		top := b.hosts[b.values[0]]
		if b.known < 3 || 2*len(top) <= b.known {
			key := fmt.Sprint(b.sides())
			if splits[key] == nil {
				splits[key] = &Finding{Severity: Info, Certainty: Possible, Expected: "alike on all hosts", Fix: "if they shall be alike: " + fix}
				order = append(order, key)
			}
			a.split(splits[key], f, b)
			continue
		}
		for _, v := range b.values[1:] {
			for _, i := range b.hosts[v] {
				odd[i] = append(odd[i], difference{f.name, fmt.Sprintf("%s (%d of %d hosts)", b.values[0], len(top), b.known), v})
			}
		}
	}
	for _, key := range order {
		a.Report(*splits[key])
	}
	a.reportOdd(odd, fix)
}

func (a *Across) reportOdd(odd map[int][]difference, fix string) {
	done := map[int]bool{}
	for i := range a.Hosts {
		if done[i] || odd[i] == nil {
			continue
		}
		f := Finding{Severity: Warning, Certainty: Likely, Fix: fix}
		for j := i; j < len(a.Hosts); j++ {
			if !done[j] && slices.Equal(odd[i], odd[j]) {
				done[j] = true
				f.Subjects = append(f.Subjects, HostKey(a.Hosts[j].Inv.Host.Name))
			}
		}
		var expected, observed []string
		for _, d := range odd[i] {
			expected = append(expected, d.feature+" "+d.expected)
			observed = append(observed, d.feature+" "+d.observed)
			f.Evidence = append(f.Evidence, Evidence{Source: probe.SourceInferred, Where: a.Hosts[i].Inv.Host.Name, Fact: d.feature + " " + d.observed + "; most hosts " + d.expected})
		}
		f.Expected, f.Observed = strings.Join(expected, "; "), strings.Join(observed, "; ")
		a.Report(f)
	}
}

// sides is the hosts of each value, whatever the value.
func (b ballot) sides() [][]int {
	var out [][]int
	for _, v := range b.values {
		out = append(out, b.hosts[v])
	}
	slices.SortFunc(out, slices.Compare[[]int])
	return out
}

// split adds a feature on which no majority agrees: two hosts that differ, or a
// set of several kinds.
func (a *Across) split(out *Finding, f feature, b ballot) {
	if b.known == 2 {
		out.Severity = Warning
	}
	var parts []string
	for _, v := range b.values {
		var names []string
		for _, i := range b.hosts[v] {
			names = append(names, a.Hosts[i].Inv.Host.Name)
			if key := HostKey(a.Hosts[i].Inv.Host.Name); !slices.Contains(out.Subjects, key) {
				out.Subjects = append(out.Subjects, key)
			}
		}
		parts = append(parts, fmt.Sprintf("%s on %s", v, someNames(names)))
		out.Evidence = append(out.Evidence, Evidence{Source: probe.SourceInferred, Where: someNames(names), Fact: f.name + " " + v})
	}
	slices.SortFunc(out.Subjects, compareKeys)
	if out.Observed != "" {
		out.Observed += "; "
	}
	out.Observed += f.name + ": " + strings.Join(parts, ", ")
}

// someNames lists names, of many only some.
func someNames(names []string) string {
	const show = 4
	if len(names) > show+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:show], ", "), len(names)-show)
	}
	return strings.Join(names, ", ")
}
