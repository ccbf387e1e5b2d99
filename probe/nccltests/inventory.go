package nccltests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Inventories returns what the runs say in the words of package probe: runs with a
// sample for each row, the NCCL version where all agree, an event for wrong
// data ("wrong-data") and for each failure ("test-failure"); and an inventory of
// GPUs for each host, which is the same one where all runs used one host. Rows
// whose collective or time are not known, that contradict themselves or that
// several runs wrote into give no sample but a gap.
func (o *Output) Inventories() []*probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	gap := func(line int, what, why, how string) {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: o.origin(line)})
	}
	versions, hosts := []string{}, []string{}
	for i := range o.Tables {
		t := &o.Tables[i]
		hosts = append(hosts, t.Hosts()...)
		if t.NCCL != "" {
			versions = append(versions, t.NCCL)
		}
		o.samples(inv, t)
		o.products(inv, t)
		if n, line := t.Wrong(); n > 0 {
			inv.Events = append(inv.Events, probe.Event{
				Kind: probe.EventWrongData, Class: t.Collective, Text: fmt.Sprintf("%s: %.0f wrong elements", t.name(), n), Origins: []probe.Origin{o.origin(line)},
			})
		} else if n, _ := t.OutOfBounds.Get(); n > 0 {
			inv.Events = append(inv.Events, probe.Event{
				Kind: probe.EventWrongData, Class: t.Collective, Text: fmt.Sprintf("%s: out of bounds values: %d", t.name(), n), Origins: []probe.Origin{o.origin(t.Line)},
			})
		}
		for _, f := range t.Failures {
			inv.Events = append(inv.Events, probe.Event{Kind: probe.EventTestFailure, Text: f.Text, Origins: []probe.Origin{o.origin(f.Line)}})
		}
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) == 1 {
		for i := range o.Tables {
			if t := &o.Tables[i]; t.NCCL != "" {
				inv.Runtime = probe.Runtime{NCCL: t.NCCL, Origins: []probe.Origin{o.origin(t.Line)}}
				break
			}
		}
	} else if len(versions) > 1 {
		gap(0, "nccl version", fmt.Sprintf("the runs used several: %v", versions), "")
	}
	slices.Sort(hosts)
	out := []*probe.Inventory{inv}
	if hosts = slices.Compact(hosts); len(hosts) == 1 {
		o.gpus(inv, hosts[0])
	} else {
		for _, h := range hosts {
			one := &probe.Inventory{Schema: probe.Schema}
			o.gpus(one, h)
			out = append(out, one)
		}
	}
	if o.Torn > 0 {
		gap(0, "samples", fmt.Sprintf("%d rows lost their end or beginning", o.Torn), "run without NCCL_DEBUG, or with NCCL_DEBUG_FILE")
	}
	if o.Dropped > 0 {
		gap(0, "samples", fmt.Sprintf("%d tables, rows, devices or settings are over what is kept of one file", o.Dropped), "split the file")
	}
	if o.Cut {
		gap(0, "samples", "the JSON document is not closed: the run ended early", "")
	}
	for _, one := range out {
		one.Normalize()
	}
	return out
}

func (o *Output) origin(line int) probe.Origin { return probe.LineOf(Source, o.File, line) }

// name says which run is meant.
func (t *Table) name() string {
	switch {
	case t.Collective != "":
		return t.Collective
	case t.Program != "":
		return t.Program
	}
	return "test"
}

// gpus adds the GPUs that the runs used on a host. CUDA's device number
// is taken for the driver's index only where it follows the bus order from 0
// without a hole and no process hid devices in another way.
func (o *Output) gpus(inv *probe.Inventory, host string) {
	type key struct {
		bus    string
		device int
	}
	seen := map[key]bool{}
	var list []Device
	for _, t := range o.Tables {
		for _, d := range t.Devices {
			k := key{d.Bus, d.Device}
			if d.Host == host && len(list) < 256 && !seen[k] {
				seen[k] = true
				list = append(list, d)
			}
		}
	}
	if len(list) == 0 {
		return
	}
	inv.Host = probe.Host{Name: host, Origins: []probe.Origin{o.origin(list[0].Line)}}
	slices.SortStableFunc(list, func(a, b Device) int { return a.Device - b.Device })
	ordered := true
	addrs := map[probe.BDF]bool{}
	for i, d := range list {
		ordered = ordered && d.Device == i
		if a, ok := d.Addr.Get(); ok {
			// One GPU under several numbers: the number means nothing.
			ordered = ordered && !addrs[a]
			addrs[a] = true
		}
		ordered = ordered && (i == 0 || busOf(list[i-1]) < busOf(d))
	}
	if !ordered {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "gpu index", Why: "CUDA's device numbers are not those of the driver: they do not follow the bus order from 0", Origin: o.origin(list[0].Line),
		})
	}
	if o.JSON && slices.ContainsFunc(o.Tables, func(t Table) bool { return t.perRecord > 1 }) {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "gpus", Why: "the JSON names only the first GPU of each process", How: "give the text output too", Origin: o.origin(list[0].Line),
		})
	}
	used := map[probe.BDF]bool{}
	for _, d := range list {
		a, ok := d.Addr.Get()
		if !ordered && !ok || ok && used[a] {
			continue
		}
		used[a] = used[a] || ok
		g := probe.GPU{Addr: d.Addr, Name: d.Name, Origins: []probe.Origin{o.origin(d.Line)}}
		if ordered {
			g.Index = probe.Some(d.Device)
		}
		inv.GPUs = append(inv.GPUs, g)
	}
}

// products adds the models of the GPUs that a run used, once for each host.
func (o *Output) products(inv *probe.Inventory, t *Table) {
	for _, d := range t.Devices {
		same := func(p probe.GPUProduct) bool { return p.Name == d.Name && p.Host == d.Host }
		if d.Name != "" && !slices.ContainsFunc(inv.Products, same) {
			inv.Products = append(inv.Products, probe.GPUProduct{Name: d.Name, Host: d.Host, Origins: []probe.Origin{o.origin(d.Line)}})
		}
	}
}

// busOf is a number in the order of the bus addresses.
func busOf(d Device) uint64 {
	if a, ok := d.Addr.Get(); ok {
		return uint64(a.Domain)<<16 | uint64(a.Bus)<<8 | uint64(a.Dev)<<3 | uint64(a.Fn)
	}
	bus, _ := strconv.ParseUint(strings.TrimPrefix(d.Bus, "0x"), 16, 8)
	return bus << 8
}
