package probe

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Bounds of what is believed. They are far above any real host and keep a
// hostile file from costing time or memory later on.
const (
	maxPCI     = 8192
	maxGPUs    = 256
	maxHCAs    = 512
	maxNUMA    = 256
	maxNVLinks = 64

	maxPortRate = Rate(10e12) // bytes/s; an XDR port has 1e11
)

var relationCode = regexp.MustCompile(`^(NV[1-9][0-9]?|PIX|PXB|PHB|NODE|SYS)$`)

// Validate checks an inventory at a border of the pipeline: after a reader,
// after Merge, before graph.Build. The error names every fault with its object
// (at most ten of them).
func (inv *Inventory) Validate() error {
	v := validator{}
	if inv.Schema != "" && inv.Schema != Schema {
		v.add("schema", "is %q, want %q", clip(inv.Schema), Schema)
	}
	for _, l := range []struct {
		what   string
		n, max int
	}{{"PCI functions", len(inv.PCI), maxPCI}, {"GPUs", len(inv.GPUs), maxGPUs}, {"HCAs", len(inv.HCAs), maxHCAs}, {"NUMA nodes", len(inv.NUMA), maxNUMA}} {
		if l.n > l.max {
			return fmt.Errorf("inventory: %d %s, at most %d are believed", l.n, l.what, l.max)
		}
	}
	v.texts("host", inv.Host.Name, inv.Host.Kernel)
	v.texts("product", inv.Product.Vendor, inv.Product.Name, inv.Product.Board)
	v.texts("settings", inv.Settings.Cmdline)
	v.texts("settings", inv.Settings.PeerMemory.Or(nil)...)
	if s, err := ParseCPUList(string(inv.Settings.CPUs)); err != nil || s != inv.Settings.CPUs {
		v.add("settings", "allowed_cpus %q is not in ascending list form", clip(string(inv.Settings.CPUs)))
	}
	for _, f := range inv.Refused {
		v.texts("refused", f.File, f.Msg, f.Assumes)
	}
	if m := inv.Memory; m != nil {
		v.texts("memory", m.Modules...)
		if b, ok := m.Bytes.Get(); ok && b <= 0 {
			v.add("memory", "bytes %d: unknown is null", b)
		}
	}
	v.texts("runtime", inv.Runtime.Driver, inv.Runtime.NVML, inv.Runtime.NCCL)
	v.numa(inv)
	v.pci(inv)
	v.gpus(inv)
	v.hcas(inv)
	v.rest(inv)
	if inv.TopoFile != nil {
		if inv.TopoFile.Claims == nil {
			v.add("topo_file", "has no claims")
		} else if inv.TopoFile.Claims.TopoFile != nil {
			v.add("topo_file", "holds another topology file")
		} else if err := inv.TopoFile.Claims.Validate(); err != nil {
			v.add("topo_file", "%v", err)
		}
	}
	return v.err()
}

type validator struct{ faults []error }

func (v *validator) add(object, format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf("%s: %s", object, fmt.Sprintf(format, args...)))
}

func (v *validator) err() error {
	const max = 10
	if n := len(v.faults); n > max {
		v.faults = append(v.faults[:max], fmt.Errorf("and %d more faults", n-max))
	}
	return errors.Join(v.faults...)
}

func (v *validator) texts(object string, texts ...string) {
	for _, t := range texts {
		if err := checkText(t); err != nil {
			v.add(object, "%v", err)
		}
	}
}

// once reports false, and a fault, for the second use of a key.
func once[K comparable](v *validator, seen map[K]bool, object string, key K) bool {
	if seen[key] {
		v.add(object, "appears twice")
		return false
	}
	seen[key] = true
	return true
}

func (v *validator) numa(inv *Inventory) {
	seen := map[int]bool{}
	for _, n := range inv.NUMA {
		obj := fmt.Sprintf("numa %d", n.ID)
		if n.ID < 0 {
			v.add(obj, "a node id is never negative; unknown is no node")
		}
		once(v, seen, obj, n.ID)
		if s, err := ParseCPUList(string(n.CPUs)); err != nil {
			v.add(obj, "%v", err)
		} else if s != n.CPUs {
			v.add(obj, "cpus %q is not in ascending list form", clip(string(n.CPUs)))
		}
		if slices.ContainsFunc(n.Distances, func(d int) bool { return d < 0 }) {
			v.add(obj, "negative distance")
		}
	}
	packages := map[int]bool{}
	for _, c := range inv.CPUs {
		obj := fmt.Sprintf("cpu package %d", c.Package)
		once(v, packages, obj, c.Package)
		v.texts(obj, c.Arch, c.Vendor, c.Name)
	}
}

func (v *validator) link(obj, name string, l PCIeLink) {
	if s, ok := l.Speed.Get(); ok && s.Gen() == 0 {
		v.add(obj, "%s: no PCIe generation signals at %v", name, s)
	}
	if w, ok := l.Width.Get(); ok && !slices.Contains([]int{1, 2, 4, 8, 12, 16, 32}, w) {
		v.add(obj, "%s: width %d is none of x1 to x32", name, w)
	}
}

func (v *validator) pci(inv *Inventory) {
	byAddr := make(map[BDF]*PCIDevice, len(inv.PCI))
	seen := map[BDF]bool{}
	for i := range inv.PCI {
		d := &inv.PCI[i]
		obj := "pci " + d.Addr.String()
		once(v, seen, obj, d.Addr)
		byAddr[d.Addr] = d
		v.link(obj, "current_link", d.Current)
		v.link(obj, "max_link", d.Max)
		v.texts(obj, d.Root, d.Driver, d.Runtime, d.IOMMU)
		if n, ok := d.NUMA.Get(); ok && (n < 0 || d.NUMANone) {
			v.add(obj, "numa %d: unknown is null, and numa_none only goes with unknown", n)
		}
	}
	for _, d := range inv.PCI {
		// Walk up; more steps than functions is a cycle.
		at := d
		for steps := 0; ; steps++ {
			p, ok := at.Parent.Get()
			if !ok {
				break
			}
			up := byAddr[p]
			if up == nil {
				v.add("pci "+at.Addr.String(), "parent %s is not in the inventory", p)
				break
			}
			if steps > len(inv.PCI) || p == d.Addr {
				v.add("pci "+d.Addr.String(), "is its own ancestor")
				break
			}
			at = *up
		}
	}
}

func (v *validator) gpus(inv *Inventory) {
	index, addr, uuid := map[int]bool{}, map[BDF]bool{}, map[string]bool{}
	for i, g := range inv.GPUs {
		obj := fmt.Sprintf("gpu #%d", i)
		if a, ok := g.Addr.Get(); ok {
			obj = "gpu " + a.String()
			once(v, addr, obj, a)
		}
		if n, ok := g.Index.Get(); ok {
			if n < 0 || n >= maxGPUs {
				v.add(obj, "index %d is out of range", n)
			}
			once(v, index, fmt.Sprintf("gpu index %d", n), n)
		}
		if g.UUID != "" {
			once(v, uuid, "gpu "+g.UUID, g.UUID)
		}
		v.texts(obj, g.UUID, g.Name)
		if u, ok := g.Utilization.Get(); ok && (u < 0 || u > 100) {
			v.add(obj, "utilization %d is no percentage", u)
		}
		if p, ok := g.PState.Get(); ok && (p < 0 || p > 15) {
			v.add(obj, "pstate %d is not 0 to 15", p)
		}
		v.link(obj, "current_link", g.Current)
		v.link(obj, "max_link", g.Max)
		v.link(obj, "board_max_link", g.BoardMax)
		links, _ := g.NVLinks.Get()
		if len(links) > maxNVLinks {
			v.add(obj, "%d NVLinks, at most %d are believed", len(links), maxNVLinks)
			continue
		}
		seen := map[int]bool{}
		for _, l := range links {
			lo := fmt.Sprintf("%s nvlink %d", obj, l.Link)
			once(v, seen, lo, l.Link)
			if l.State != LinkUp && l.State != LinkDown {
				v.add(lo, "state %q is neither %q nor %q", clip(l.State), LinkUp, LinkDown)
			}
			if !slices.Contains([]string{"", RemoteGPU, RemoteSwitch, RemoteCPU}, l.RemoteKind) {
				v.add(lo, "remote %q is no kind of NVLink end", clip(l.RemoteKind))
			}
			if gen, ok := l.Generation.Get(); ok && (gen < 1 || gen > 6) {
				v.add(lo, "generation %d is unknown", gen)
			}
			if r, ok := l.Signal.Get(); ok && r <= 0 {
				v.add(lo, "signalling rate %d", r)
			}
			if c, ok := l.Caps.Get(); ok && (c < 0 || c >= LinkCapValid<<1) {
				v.add(lo, "capabilities %d are out of range", c)
			}
		}
		if g.LinkCounts != nil {
			for name, column := range g.LinkCounts.Columns() {
				if len(*column) > maxNVLinks {
					v.add(obj, "nvlink_counters: %s: %d links, at most %d are believed", name, len(*column), maxNVLinks)
				}
			}
		}
		if n, ok := g.BAR1.Get(); ok && n <= 0 {
			v.add(obj, "bar1_bytes %d: unknown is null", n)
		}
		if r := g.Remapped; r != nil && (r.Corrected < 0 || r.Uncorrected < 0) {
			v.add(obj, "remapped_rows: a count is negative")
		}
		v.texts(obj, g.ComputeMode, g.Recovery)
		if g.Fabric != nil {
			v.texts(obj+" fabric", g.Fabric.State, g.Fabric.ClusterUUID, g.Fabric.Health)
		}
		if g.C2C != nil && (g.C2C.Links <= 0 || g.C2C.PerLink <= 0) {
			v.add(obj, "c2c: %d links at %v", g.C2C.Links, g.C2C.PerLink)
		}
	}
	switches := map[BDF]bool{}
	for _, s := range inv.NVSwitches {
		once(v, switches, "nvswitch "+s.Addr.String(), s.Addr)
	}
}

func (v *validator) hcas(inv *Inventory) {
	names := map[string]bool{}
	for _, h := range inv.HCAs {
		obj := "hca " + clip(h.Name)
		v.name(obj, h.Name)
		once(v, names, obj, h.Name)
		ports := map[int]bool{}
		for _, p := range h.Ports {
			po := fmt.Sprintf("%s port %d", obj, p.Port)
			once(v, ports, po, p.Port)
			if r, ok := p.Rate.Get(); ok && (r < 0 || r > maxPortRate) {
				v.add(po, "rate %d is none that a port has", r)
			}
			v.texts(po, p.LinkLayer, p.State, p.PhysState, p.RateText, p.LID)
			for _, g := range p.GIDs {
				v.texts(po, g.GID, g.Type, g.NetDev)
			}
			counters := map[string]bool{}
			for _, c := range p.Counters {
				v.texts(po, c.Name)
				once(v, counters, po+" counter "+clip(c.Name), c.Name)
			}
		}
		v.texts(obj, h.NodeGUID, h.SysImageGUID, h.Board, h.Firmware)
	}
	nets := map[string]bool{}
	for _, n := range inv.NetDevs {
		obj := "netdev " + clip(n.Name)
		v.name(obj, n.Name)
		once(v, nets, obj, n.Name)
		if r, ok := n.Speed.Get(); ok && r <= 0 {
			v.add(obj, "speed %d: unknown is null", r)
		}
		if n.Bond != nil {
			v.texts(obj, n.Bond.Mode)
			for _, s := range n.Bond.Slaves {
				v.name(obj+" bond", s)
			}
		}
	}
}

func (v *validator) rest(inv *Inventory) {
	for _, r := range inv.Relations {
		obj := fmt.Sprintf("relation %s %s", clip(r.A), clip(r.B))
		if !relationCode.MatchString(r.Code) {
			v.add(obj, "code %q is none of NV#, PIX, PXB, PHB, NODE, SYS", clip(r.Code))
		}
		v.name(obj, r.A)
		v.name(obj, r.B)
	}
	runs := map[string]bool{}
	for _, r := range inv.Runs {
		obj := "run " + clip(r.ID)
		once(v, runs, obj, r.ID)
		v.texts(obj, r.ID, r.File)
		for _, h := range r.Hosts {
			v.texts(obj, h.Name)
			if h.Ranks < 1 {
				v.add(obj, "host %s has %d ranks", clip(h.Name), h.Ranks)
			}
		}
	}
	for i, s := range inv.Samples {
		if s.Bytes < 0 || s.Ranks.Or(1) < 1 || s.Nodes.Or(1) < 1 || !(s.TimeUS > 0) || !(s.InPlaceUS.Or(1) > 0) {
			v.add(fmt.Sprintf("sample %d", i), "bytes, ranks, nodes or time out of range")
		}
	}
	for i, c := range inv.Comms {
		if c.Ranks < 1 && (c.ID != "" || c.Ranks < 0) {
			v.add(fmt.Sprintf("comm %d", i), "has %d ranks", c.Ranks)
		}
	}
	for _, g := range inv.Gaps {
		v.texts("gap", g.What, g.Why, g.How)
	}
}

// name accepts what kernel and NCCL use as device names; they end up in keys,
// file names and settings.
func (v *validator) name(obj, s string) {
	if s == "" || len(s) > 128 || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '/' || r == '"' || r == '\'' || r == '\\' || r == ','
	}) {
		v.add(obj, "%q is not a device name", clip(s))
		return
	}
	v.texts(obj, s)
}
