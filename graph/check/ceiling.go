package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// ceiling is a bus bandwidth that the links of a host cannot exceed in a ring.
type ceiling struct {
	gbs  float64
	what string
	ev   []Evidence
	// lower is why something else may limit more; nil where all is known.
	lower error
}

// unknownCeiling is why no ceiling is known, and how to get the facts.
type unknownCeiling struct{ reason, how string }

func (u unknownCeiling) Error() string { return u.reason }

const nameTopology = "name an inventory, a recorded /sys or NCCL's topology file of these hosts beside the output"

// ceilingOf finds what the hosts of a sweep can carry: the lowest of those that
// are known, as a ring is as fast as its slowest host.
func (a *Across) ceilingOf(s *probe.Sweep) (ceiling, error) {
	var low ceiling
	var why error
	judged := map[*graph.Topology]bool{} // one may stand for many hosts
	for _, h := range s.Run.Hosts {
		t := a.Host(h.Name)
		if t == nil || judged[t] || OnlyInJobs(t.Inv) || len(t.Of(graph.KindGPU)) == 0 {
			continue
		}
		judged[t] = true
		c, err := hostCeiling(t, h, len(s.Run.Hosts), a.hcaList(s))
		if err != nil {
			why = err
			continue
		}
		if low.gbs == 0 || c.gbs < low.gbs {
			low = c
		}
	}
	switch {
	case low.gbs > 0:
		return low, nil
	case why != nil:
		return low, why
	}
	return low, unknownCeiling{"the topology of the hosts that ran it is not in the sources", nameTopology}
}

// hcaList is the value of NCCL_IB_HCA in effect: as the output shows it, else as
// a file beside it sets it; "" where nothing or several values are.
func (a *Across) hcaList(s *probe.Sweep) string {
	settings, known := s.Run.Settings.Get()
	if !known {
		settings = a.Job.Env
	}
	value := ""
	for _, e := range settings {
		if e.Name != "NCCL_IB_HCA" {
			continue
		}
		if value != "" && value != e.Value {
			return ""
		}
		value = e.Value
	}
	return value
}

func hostCeiling(t *graph.Topology, h probe.RunHost, hosts int, hcaList string) (ceiling, error) {
	if len(Run(t, []Rule{vmFlatPCI}).Findings) > 0 {
		return ceiling{}, unknownCeiling{"the hypervisor hides the PCI tree, so what the host can reach is not known", onHost}
	}
	gpus, err := UsedGPUs(t, h)
	if err != nil {
		return ceiling{}, err
	}
	if hosts == 1 {
		return nvlinkCeiling(t, gpus)
	}
	outside, err := networkCeiling(t, gpus, hcaList)
	if err != nil || len(gpus) == 1 {
		return outside, err
	}
	inside, err := nvlinkCeiling(t, gpus)
	if err == nil && inside.gbs < outside.gbs {
		return inside, nil
	}
	outside.lower = err
	return outside, nil
}

// UsedGPUs finds the GPUs of a run on a host, in the order of the topology: by
// address, or all where as many run.
func UsedGPUs(t *graph.Topology, h probe.RunHost) ([]*graph.Node, error) {
	all := t.Of(graph.KindGPU)
	if h.Ranks == len(all) {
		return all, nil
	}
	var out []*graph.Node
	for _, n := range all {
		if slices.ContainsFunc(h.GPUs, func(bus string) bool { return printedAs(n, bus) }) {
			out = append(out, n)
		}
	}
	if len(out) != h.Ranks {
		return nil, unknownCeiling{"which GPUs of the host took part is not known", "give the test's whole output, with its device list"}
	}
	return out, nil
}

// printedAs reports the GPU that a test prints as "0000:1b:00" or "0x1b".
func printedAs(n *graph.Node, bus string) bool {
	addr, ok := n.GPU.Addr.Get()
	if !ok {
		return false
	}
	if want, err := probe.ParseBDF(bus); err == nil {
		return want == addr
	}
	return strings.EqualFold(bus, fmt.Sprintf("0x%02x", addr.Bus))
}

// nvlinkCeiling is the data rate of the NVLinks of the GPU that has least, where
// NVLinks join all pairs.
func nvlinkCeiling(t *graph.Topology, gpus []*graph.Node) (ceiling, error) {
	for i, a := range gpus {
		for _, b := range gpus[i+1:] {
			if t.Class(a, b) != graph.NVL {
				return ceiling{}, unknownCeiling{"not all GPUs that took part are joined by NVLink: what a ring over PCIe or the CPU reaches is not known", "ncclmap model shows what NCCL expects"}
			}
		}
	}
	var low ceiling
	for _, n := range gpus {
		var rate probe.Rate
		for _, b := range t.NVLinks(n) {
			rate += b.Max.Or(0)
		}
		if rate == 0 {
			return ceiling{}, unknownCeiling{"the rate of the NVLinks is not known", readLive}
		}
		if low.gbs == 0 || rate.GBs() < low.gbs {
			low = ceiling{gbs: rate.GBs(), what: "the NVLinks of a GPU", ev: []Evidence{evidence(n.GPU.Origins, "nvlinks", "", "%s: NVLinks of %s in all", n.Label, rate)}}
		}
	}
	return low, nil
}

// networkCeiling is the rate of the HCAs nearest to the GPUs that took part, as far
// as the PCIe links between them carry it.
func networkCeiling(t *graph.Topology, gpus []*graph.Node, hcaList string) (ceiling, error) {
	f := gather(t)
	list := ncclenv.ParseDevices(hcaList)
	port := make([]probe.HCAPort, len(f.hcas))
	usable := make([]bool, len(f.hcas))
	for h, n := range f.hcas {
		var ok bool
		port[h], ok = fastestPort(n)
		usable[h] = ok && list.Allows(n.HCA.Name, probe.Some(port[h].Port))
	}
	p := &Pass{Topo: t, facts: f}
	near := map[int]bool{}
	for _, g := range gpus {
		class, hcas := p.nearest(slices.Index(f.gpus, g), func(h int) bool { return usable[h] })
		if class == graph.Unknown {
			return ceiling{}, unknownCeiling{"which HCAs the GPUs use, and at what rate, is not known", nameTopology}
		}
		for _, h := range hcas {
			near[h] = true
		}
	}
	var c ceiling
	var names []string
	load := map[*graph.Link]float64{}
	for h, n := range f.hcas {
		if near[h] {
			for _, l := range pcieToGPUs(t, n, gpus) {
				load[l] += port[h].Rate.Or(0).GBs()
			}
		}
	}
	for h, n := range f.hcas {
		if !near[h] {
			continue
		}
		share := 1.0
		for _, l := range pcieToGPUs(t, n, gpus) {
			if r, ok := l.Current.Get(); ok && r > 0 {
				share = min(share, r.GBs()/load[l])
			} else if r, ok := l.Max.Get(); ok && r > 0 {
				share = min(share, r.GBs()/load[l])
			}
		}
		c.gbs += share * port[h].Rate.Or(0).GBs()
		names = append(names, n.HCA.Name)
		c.ev = append(c.ev, rateEvidence(n.HCA, port[h]))
	}
	c.what = "the line rate of " + strings.Join(names, ", ")
	return c, nil
}

// pcieToGPUs lists the PCIe links from an HCA up to the node below which a GPU that
// took part hangs, or to the host bridge.
func pcieToGPUs(t *graph.Topology, hca *graph.Node, gpus []*graph.Node) []*graph.Link {
	above := map[*graph.Node]bool{}
	for _, g := range gpus {
		for n := g.Up; n != nil; n = n.Up {
			above[n] = true
		}
	}
	var out []*graph.Link
	for n := hca; n.Up != nil; n = n.Up {
		out = append(out, t.Between(n, n.Up)...)
		if above[n.Up] {
			break
		}
	}
	return out
}
