package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var ncclGPUUnsupported = Rule{
	ID:    "nccl-gpu-unsupported",
	Title: "NCCL is too old, or too new, for the GPUs",
	Doc: `Fires for hosts whose GPUs the NCCL version in use does not know: Blackwell with less than
2.25.1, Hopper with less than 2.16, and Volta with a build for CUDA 13.

critical.`,
	Across: runNCCLGPUUnsupported,
}

// generations are what NCCL versions know, by compute capability ×10 (NVIDIA/nccl#1611
// and NCCL's release notes; CUDA 13 dropped what is older than 75).
var generations = []struct {
	name     string
	from, to int // compute capability, to is not in it
	needs    []int
	products []string // first words of product names
}{
	{"Volta", 70, 75, nil, []string{"V100", "V100S"}},
	{"Hopper", 90, 100, []int{2, 16}, []string{"H100", "H200", "H800", "H20", "GH200"}},
	{"Blackwell", 100, 130, []int{2, 25, 1}, []string{"B100", "B200", "B300", "GB200", "GB300"}},
}

func runNCCLGPUUnsupported(a *Across) {
	type fault struct{ needs, has string }
	hosts := map[fault][]string{}
	proof := map[fault][]Evidence{}
	var order []fault
	type loaded struct {
		version string
		cuda    int
		facts   []Evidence
	}
	nccl := map[string]loaded{}
	for _, g := range a.usedGPUs() {
		l, known := nccl[g.host]
		if !known {
			l.version, l.facts = a.ncclOf(g.host)
			l.cuda = a.cudaBuild(g.host)
			nccl[g.host] = l
		}
		i := generationOf(g.product, g.cc)
		if i < 0 || l.version == "" {
			continue
		}
		gen := generations[i]
		var f fault
		switch {
		case gen.needs != nil && NCCLBefore(l.version, gen.needs...):
			f = fault{fmt.Sprintf("NCCL %s or later for %s", dotted(gen.needs), gen.name), "NCCL " + l.version}
		case gen.needs == nil && l.cuda >= 13:
			f = fault{fmt.Sprintf("NCCL built with CUDA 12 for %s", gen.name), fmt.Sprintf("NCCL %s built with CUDA %d", l.version, l.cuda)}
		default:
			continue
		}
		if hosts[f] == nil {
			order = append(order, f)
		}
		if !slices.Contains(hosts[f], g.host) {
			hosts[f] = append(hosts[f], g.host)
			proof[f] = append(append(proof[f], l.facts...), g.proof)
		}
	}
	for _, f := range order {
		a.Report(Finding{
			Severity: Critical, Subjects: hostKeys(hosts[f]),
			Expected: f.needs, Observed: f.has + " on " + listed(hosts[f]),
			Evidence: few(proof[f]),
			Fix:      "user: install " + f.needs + "; with another one the job crashes or fails at start",
		})
	}
}

// usedGPU is a GPU of a host, or a model that a job names there.
type usedGPU struct {
	host, product string
	cc            probe.Opt[int]
	proof         Evidence
}

func (a *Across) usedGPUs() []usedGPU {
	var out []usedGPU
	for _, h := range a.Hosts {
		for _, n := range h.Of(graph.KindGPU) {
			name := n.GPU.Name
			if b, ok := BoardOfGPU(n); ok && name == "" {
				name = b.Name
			}
			out = append(out, usedGPU{h.Inv.Host.Name, name, n.GPU.CC, evidence(n.GPU.Origins, "name", "", "%s", strings.TrimSpace(n.Label+" "+name))})
		}
	}
	for _, p := range a.Job.Products {
		out = append(out, usedGPU{host: p.Host, product: p.Name, proof: evidence(p.Origins, "", "", "%s%s", hostPrefix(p.Host), p.Name)})
	}
	return out
}

// generationOf returns the index of a GPU's generation, -1 for another or an
// unknown one.
func generationOf(product string, cc probe.Opt[int]) int {
	product = strings.TrimPrefix(strings.TrimPrefix(product, "NVIDIA "), "Tesla ")
	product, _, _ = strings.Cut(product, " ")
	product, _, _ = strings.Cut(product, "-")
	for i, g := range generations {
		v, known := cc.Get()
		if known && g.from <= v && v < g.to || !known && slices.Contains(g.products, product) {
			return i
		}
	}
	return -1
}

// cudaBuild is the CUDA major that a host's NCCL was built with, 0 where it is not
// known.
func (a *Across) cudaBuild(host string) int {
	for _, v := range a.Job.Versions {
		if v.Host == host || v.Host == "" {
			if major, err := strconv.Atoi(strings.SplitN(v.CUDA, ".", 2)[0]); err == nil {
				return major
			}
		}
	}
	return 0
}

func dotted(v []int) string {
	parts := make([]string, len(v))
	for i, n := range v {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}
