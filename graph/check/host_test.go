package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// host builds inventories of small machines in a few words.
type host struct{ inv probe.Inventory }

func bdf(s string) probe.BDF { return probe.MustBDF(s) }

// pci adds a function below parent ("" = on the root bus) as sysfs shows it.
// id is "10de:2330", numa -1 unknown.
func (h *host) pci(addr, parent, id string, class probe.PCIClass, numa int, l probe.PCIeLink) {
	vendor, device, _ := strings.Cut(id, ":")
	var v, dv probe.PCIID
	if v.UnmarshalText([]byte(vendor)) != nil || dv.UnmarshalText([]byte(device)) != nil {
		panic(id)
	}
	d := probe.PCIDevice{
		Addr: bdf(addr), Root: fmt.Sprintf("pci%s", addr[:7]), Class: probe.Some(class), Vendor: probe.Some(v), Device: probe.Some(dv),
		Current: l, Max: l, Runtime: "active", Errors: noErrors(),
		Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/bus/pci/devices/" + addr}},
	}
	if class != probe.ClassBridgePCI {
		d.IOMMU = "identity"
	}
	if d.NUMANone = numa < 0; !d.NUMANone {
		d.NUMA = probe.Some(numa)
	}
	if parent != "" {
		d.Parent = probe.Some(bdf(parent))
		d.Root = h.dev(parent).Root
	}
	h.inv.PCI = append(h.inv.PCI, d)
}

func (h *host) dev(addr string) *probe.PCIDevice {
	i := slices.IndexFunc(h.inv.PCI, func(d probe.PCIDevice) bool { return d.Addr == bdf(addr) })
	return &h.inv.PCI[i]
}

func (h *host) bridge(addr, parent, id string, numa int, l probe.PCIeLink) string {
	h.pci(addr, parent, id, probe.ClassBridgePCI, numa, l)
	h.dev(addr).ACS = probe.Some(uint16(0))
	return addr
}

// noErrors are the counters of a function that met none.
func noErrors() *probe.PCIeCounters {
	none := probe.Some[uint64](0)
	return &probe.PCIeCounters{Correctable: none, NonFatal: none, Fatal: none}
}

// gpu adds a GPU at work in P0, seen by sysfs and its driver.
func (h *host) gpu(addr, parent, id string, cc, numa int, l probe.PCIeLink, links ...probe.NVLink) {
	h.pci(addr, parent, id, 0x030200, numa, l)
	n := len(h.inv.GPUs)
	h.inv.GPUs = append(h.inv.GPUs, probe.GPU{
		Index: probe.Some(n), Addr: probe.Some(bdf(addr)), CC: probe.Some(cc), PState: probe.Some(0), Utilization: probe.Some(97),
		Events: probe.Some(uint64(0)), Current: l, Max: l, NVLinks: probe.Some(links), MIG: probe.Some(false),
		LinkCounts: &probe.NVLinkCounts{Replay: probe.LinkColumn{probe.Some[uint64](0)}},
		Origins:    []probe.Origin{{Source: probe.SourceNVML, Where: fmt.Sprintf("device %d", n)}},
	})
}

// hca adds an InfiniBand adapter with one ACTIVE port.
func (h *host) hca(name, addr, parent, id string, numa int, l probe.PCIeLink, gbps float64) {
	h.pci(addr, parent, id, 0x020700, numa, l)
	rates := map[float64]string{100: "100 Gb/sec (4X EDR)", 200: "200 Gb/sec (4X HDR)", 400: "400 Gb/sec (4X NDR)"}
	h.inv.HCAs = append(h.inv.HCAs, probe.HCA{
		Name: name, Addr: probe.Some(bdf(addr)),
		Ports: []probe.HCAPort{{Port: 1, LinkLayer: "InfiniBand", State: probe.PortActive, PhysState: "LinkUp",
			Rate: probe.Some(probe.Mbps(1000 * gbps)), RateText: rates[gbps], Counters: []probe.Counter{{Name: "link_downed"}}}},
		Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys/class/infiniband/" + name}},
	})
}

// down takes a port out of service as the kernel then shows it.
func (h *host) down(hca int, state, phys string) {
	p := &h.inv.HCAs[hca].Ports[0]
	p.State, p.PhysState, p.Rate, p.RateText = state, phys, probe.Some(probe.Mbps(10e3)), "10 Gb/sec (4X SDR)"
}

func (h *host) numa(nodes int) {
	for i := range nodes {
		h.inv.NUMA = append(h.inv.NUMA, probe.NUMANode{ID: i, CPUs: probe.CPUSet(fmt.Sprintf("%d-%d", 32*i, 32*i+31))})
	}
}

// width and speed set the current link at both ends.
func (h *host) width(addr string, w int) {
	h.ends(addr, func(l *probe.PCIeLink) { l.Width = probe.Some(w) })
}

func (h *host) speed(addr string, gen int) {
	s, _ := probe.PCIeSpeedOfGen(gen)
	h.ends(addr, func(l *probe.PCIeLink) { l.Speed = probe.Some(s) })
}

func (h *host) ends(addr string, set func(*probe.PCIeLink)) {
	d := h.dev(addr)
	set(&d.Current)
	if p, ok := d.Parent.Get(); ok {
		set(&h.dev(p.String()).Current)
	}
	for i := range h.inv.GPUs {
		if h.inv.GPUs[i].Addr == probe.Some(bdf(addr)) {
			set(&h.inv.GPUs[i].Current)
		}
	}
}

// idle makes all GPUs idle at 2.5 GT/s, as they are between jobs.
func (h *host) idle() *host {
	for i := range h.inv.GPUs {
		g := &h.inv.GPUs[i]
		g.PState, g.Utilization, g.Events = probe.Some(8), probe.Some(0), probe.Some(uint64(probe.ClockEventIdle))
		if a, ok := g.Addr.Get(); ok && len(h.inv.PCI) > 0 {
			h.speed(a.String(), 1)
		}
	}
	return h
}

// sysfsOnly forgets what only the driver knows.
func (h *host) sysfsOnly() *host {
	for i := range h.inv.GPUs {
		g := h.inv.GPUs[i]
		h.inv.GPUs[i] = probe.GPU{Addr: g.Addr, Origins: h.dev(g.Addr.Or(probe.BDF{}).String()).Origins}
	}
	return h
}

// guest adds the marks of a QEMU guest.
func (h *host) guest() *host {
	h.inv.Settings.Guest = []probe.Mark{{What: "system vendor QEMU", Origin: probe.Origin{Source: probe.SourceSysfs, Where: "sys/class/dmi/id/sys_vendor"}}}
	return h
}

// toSwitches are n links spread over four NVSwitches, 5+4+4+5 for 18.
func toSwitches(n int) []probe.NVLink {
	out := make([]probe.NVLink, n)
	for i := range out {
		out[i] = probe.NVLink{Link: i, State: probe.LinkUp, Generation: probe.Some(4), RemoteKind: probe.RemoteSwitch,
			Remote: probe.Some(probe.BDF{Bus: uint8(5 + i%4)})}
	}
	return out
}

// toGPU are n links to another GPU, numbered from first.
func toGPU(addr string, first, n int) []probe.NVLink {
	out := make([]probe.NVLink, n)
	for i := range out {
		out[i] = probe.NVLink{Link: first + i, State: probe.LinkUp, Generation: probe.Some(3), RemoteKind: probe.RemoteGPU, Remote: probe.Some(bdf(addr))}
	}
	return out
}

// linksDown marks links of a GPU down.
func (h *host) linksDown(gpu int, links ...int) *host {
	list, _ := h.inv.GPUs[gpu].NVLinks.Get()
	for i := range list {
		if slices.Contains(links, list[i].Link) {
			list[i] = probe.NVLink{Link: list[i].Link, State: probe.LinkDown}
		}
	}
	return h
}

var (
	gen3 = probe.LinkOfGen(3, 16)
	gen4 = probe.LinkOfGen(4, 16)
	gen5 = probe.LinkOfGen(5, 16)
)

// Addresses in h100x8: GPU n is gpuAt(n), its HCA hcaAt(n), their switch upAt(n).
func islandBus(n int) int      { return []int{0x15, 0x25, 0x35, 0x45, 0x95, 0xa5, 0xb5, 0xc5}[n] }
func rootAt(n int) string      { return fmt.Sprintf("0000:%02x:01.0", islandBus(n)) }
func upAt(n int) string        { return fmt.Sprintf("0000:%02x:00.0", islandBus(n)+1) }
func downAt(n, k int) string   { return fmt.Sprintf("0000:%02x:%02x.0", islandBus(n)+2, k) }
func gpuAt(n int) string       { return fmt.Sprintf("0000:%02x:00.0", islandBus(n)+3) }
func hcaAt(n int) string       { return fmt.Sprintf("0000:%02x:00.0", islandBus(n)+4) }
func gpuKey(n int) string      { return "gpu:" + gpuAt(n) }
func switchKey(n int) string   { return "pci:" + upAt(n) }
func belowSwitch(n int) string { return "--" + switchKey(n) }

// h100x8 is a healthy two-socket HGX H100 at work: 8 GPUs, each behind a switch
// with a ConnectX-7, 4 NVSwitches.
func h100x8() *host {
	h := &host{}
	h.inv.Host.Name = "gx07"
	h.inv.Settings = probe.Settings{
		IOMMU: probe.Some(true), PeerMemory: probe.Some([]string{"nv_mem"}),
		Origins: []probe.Origin{{Source: probe.SourceSysfs, Where: "sys"}},
	}
	h.numa(2)
	for n := range 8 {
		numa := n / 4
		rp := h.bridge(rootAt(n), "", "8086:352a", numa, gen5)
		up := h.bridge(upAt(n), rp, "1000:c030", numa, gen5)
		h.gpu(gpuAt(n), h.bridge(downAt(n, 0), up, "1000:c030", numa, gen5), "10de:2330", 90, numa, gen5, toSwitches(18)...)
		h.hca(fmt.Sprintf("mlx5_%d", n), hcaAt(n), h.bridge(downAt(n, 16), up, "1000:c030", numa, gen5), "15b3:1021", numa, gen5, 400)
	}
	for n := range 4 {
		h.pci(fmt.Sprintf("0000:%02x:00.0", 5+n), "", "10de:22a3", probe.ClassNVSwitch, 0, probe.LinkOfGen(2, 2))
		h.inv.NVSwitches = append(h.inv.NVSwitches, probe.NVSwitch{Addr: probe.BDF{Bus: uint8(5 + n)}})
	}
	return h
}

// flatVM is a guest with 2 H200 directly on bus 0, NVSwitch and NUMA hidden.
func flatVM() *host {
	h := (&host{}).guest()
	h.numa(1)
	for n := range 2 {
		links := toSwitches(18)
		for i := range links {
			links[i].Remote = probe.Opt[probe.BDF]{}
		}
		l := probe.PCIeLink{Speed: gen5.Speed}
		h.gpu(fmt.Sprintf("0000:00:0%d.0", 6+n), "", "10de:2335", 90, -1, l, links...)
	}
	return h
}

// roots is a host with GPUs and HCAs on root ports of their own, one each.
func (h *host) onRoot(n, numa int) string {
	return h.bridge(fmt.Sprintf("0000:%02x:01.0", 0x10+0x10*n), "", "8086:352a", numa, gen5)
}

func rootChild(n int) string { return fmt.Sprintf("0000:%02x:00.0", 0x11+0x10*n) }

// asFile turns an inventory into what an NCCL topology file says: one figure
// per link, no root ports, no port state, no load.
func (h *host) asFile() *host {
	from := []probe.Origin{{Source: probe.SourceNCCLXML, Where: "topo.xml:3"}}
	var kept []probe.PCIDevice
	skip := map[probe.BDF]probe.Opt[probe.BDF]{} // root and downstream ports
	for _, d := range h.inv.PCI {
		depth := 0
		for p, ok := d.Parent.Get(); ok; p, ok = h.dev(p.String()).Parent.Get() {
			depth++
		}
		if d.Class.Or(0).IsPCIBridge() && depth%2 == 0 {
			skip[d.Addr] = d.Parent
			continue
		}
		if d.Class.Or(0) == probe.ClassNVSwitch {
			continue
		}
		d.Root, d.Current, d.Runtime, d.IOMMU, d.ACS, d.Errors, d.Origins = "", probe.PCIeLink{}, "", "", probe.Opt[uint16]{}, nil, from
		kept = append(kept, d)
	}
	for i := range kept {
		if p, ok := kept[i].Parent.Get(); ok {
			if up, dropped := skip[p]; dropped {
				kept[i].Parent = up
			}
		}
	}
	h.inv.PCI, h.inv.Settings = kept, probe.Settings{}
	for i := range h.inv.GPUs {
		g := h.inv.GPUs[i]
		h.inv.GPUs[i] = probe.GPU{Index: g.Index, Addr: g.Addr, CC: g.CC, NVLinks: g.NVLinks, Origins: from}
	}
	for i := range h.inv.HCAs {
		h.inv.HCAs[i].Origins = from
		for j := range h.inv.HCAs[i].Ports {
			p := &h.inv.HCAs[i].Ports[j]
			*p = probe.HCAPort{Port: p.Port, Rate: p.Rate}
		}
	}
	return h
}

// matrix is what nvidia-smi topo -m alone says: rows of cells, GPUs first.
func matrix(gpus int, names []string, rows ...string) *host {
	h := &host{}
	all := []string{}
	for i := range gpus {
		h.inv.GPUs = append(h.inv.GPUs, probe.GPU{Index: probe.Some(i)})
		all = append(all, fmt.Sprintf("GPU%d", i))
	}
	for _, n := range names {
		h.inv.HCAs = append(h.inv.HCAs, probe.HCA{Name: n, Origins: []probe.Origin{{Source: probe.SourceSMITopo, Where: "topo.txt:1"}}})
	}
	all = append(all, names...)
	for i, row := range rows {
		for j, code := range strings.Fields(row) {
			if j > i && code != "-" {
				h.inv.Relations = append(h.inv.Relations, probe.Relation{A: all[i], B: all[j], Code: code,
					Origins: []probe.Origin{{Source: probe.SourceSMITopo, Where: fmt.Sprintf("topo.txt:%d", i+2)}}})
			}
		}
	}
	return h
}

// claims puts a topology file beside the host.
func (h *host) claims(file string, write func(*host)) {
	c := &host{}
	write(c)
	h.inv.TopoFile = &probe.TopoFile{File: file, Claims: &c.inv}
}

func (h *host) with(change func(*host)) *host {
	change(h)
	return h
}

func (h *host) topology(t testing.TB) *graph.Topology {
	t.Helper()
	topo, err := graph.Build(&h.inv)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// ruleCase is one machine and what a rule must say about it.
type ruleCase struct {
	name string
	host *host
	want []string // "critical sure gpu:0000:18:00.0 …" per finding of the rule
	says []string // texts that stand in the finding's expected, observed or fix
	gap  string   // text of a gap of the rule; "" = none wanted
}

// testRule runs all rules on each machine and compares what one of them says.
func testRule(t *testing.T, id string, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := Run(c.host.topology(t), All())
			complete(t, res)
			var got []string
			var texts string
			for _, f := range res.Findings {
				if f.Rule == id {
					got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Certainty, strings.Join(f.Subjects, " ")))
					texts += f.Expected + "\n" + f.Observed + "\n" + f.Fix + "\n"
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			for _, s := range c.says {
				if !strings.Contains(texts, s) {
					t.Errorf("%q is not said in\n%s", s, texts)
				}
			}
			var gaps []string
			for _, g := range res.Gaps {
				if g.Rule == id {
					gaps = append(gaps, g.Reason)
				}
			}
			switch {
			case c.gap == "" && len(gaps) > 0:
				t.Errorf("gaps %q, want none", gaps)
			case c.gap != "" && !slices.ContainsFunc(gaps, func(g string) bool { return strings.Contains(g, c.gap) }):
				t.Errorf("gaps %q, want %q", gaps, c.gap)
			}
		})
	}
}

// complete holds what every finding and gap must have.
func complete(t *testing.T, res Result) {
	t.Helper()
	for _, f := range res.Findings {
		if f.Expected == "" || f.Observed == "" || f.Fix == "" || len(f.Subjects) == 0 || len(f.Evidence) == 0 {
			t.Errorf("%s %v: incomplete finding %+v", f.Rule, f.Subjects, f)
		}
		for _, e := range f.Evidence {
			if e.Source == "" || e.Source == "unknown" || e.Fact == "" {
				t.Errorf("%s %v: evidence without source or fact: %+v", f.Rule, f.Subjects, e)
			}
		}
		if f.Expected == f.Observed {
			t.Errorf("%s %v: expected what was observed: %s", f.Rule, f.Subjects, f.Expected)
		}
	}
	for _, g := range res.Gaps {
		if g.Rule == "" || len(g.Subjects) == 0 || g.Reason == "" || g.How == "" {
			t.Errorf("incomplete gap %+v", g)
		}
	}
}

var toNothing = probe.Some([]probe.NVLink{})

func idOf(device probe.PCIID) probe.Opt[probe.PCIID] { return probe.Some(device) }

// runs sets the NCCL version that the host's jobs load.
func (h *host) runs(nccl string) {
	h.inv.Runtime = probe.Runtime{NCCL: nccl, Origins: []probe.Origin{{Source: probe.SourceNCCLLog, Where: "job.log:1"}}}
}
