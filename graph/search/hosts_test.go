package search

import (
	"fmt"
	"math/rand/v2"

	"github.com/ncclmap/ncclmap/probe"
)

// h100x8 is a host of 8 H100 behind NVSwitches, each below a PCIe switch of its
// own with a NIC.
func h100x8() *probe.Inventory {
	inv := &probe.Inventory{
		CPUs: []probe.CPU{{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(143)}},
		NUMA: []probe.NUMANode{{ID: 0}, {ID: 1}},
	}
	for i := range 8 {
		numa := probe.Some(i / 4)
		bus := uint8(0x10 * (i + 1))
		up, gpu, nic := probe.BDF{Bus: bus}, probe.BDF{Bus: bus + 1}, probe.BDF{Bus: bus + 2}
		for _, d := range []probe.PCIDevice{
			{Addr: up, Class: probe.Some(probe.PCIClass(probe.ClassBridgePCI))},
			{Addr: gpu, Parent: probe.Some(up), Class: probe.Some(probe.PCIClass(0x030200))},
			{Addr: nic, Parent: probe.Some(up), Class: probe.Some(probe.PCIClass(0x020700))},
		} {
			d.NUMA, d.Max = numa, probe.LinkOfGen(5, 16)
			inv.PCI = append(inv.PCI, d)
		}
		links := []probe.NVLink{}
		for k := range 18 {
			links = append(links, probe.NVLink{Link: k, State: probe.LinkUp, Generation: probe.Some(4), RemoteKind: probe.RemoteSwitch, Remote: probe.Some(probe.BDF{Bus: uint8(1 + k%4)})})
		}
		inv.GPUs = append(inv.GPUs, probe.GPU{Index: probe.Some(i), Addr: probe.Some(gpu), CC: probe.Some(90), NVLinks: probe.Some(links)})
		inv.HCAs = append(inv.HCAs, probe.HCA{Name: fmt.Sprintf("mlx5_%d", i), Addr: probe.Some(nic),
			Ports: []probe.HCAPort{{Port: 1, State: probe.PortActive, Rate: probe.Some(probe.Mbps(400e3))}}})
	}
	return inv
}

// pcieHost is GPUs of Gen4 x16 without NVLink, some on each socket, below a
// switch per socket or on root ports.
func pcieHost(cpu probe.CPU, perSocket []int, switches bool) *probe.Inventory {
	inv := &probe.Inventory{CPUs: []probe.CPU{cpu}}
	bus := uint8(0)
	add := func(class probe.PCIClass, parent probe.Opt[probe.BDF], numa int) probe.BDF {
		bus++
		inv.PCI = append(inv.PCI, probe.PCIDevice{Addr: probe.BDF{Bus: bus}, Parent: parent, NUMA: probe.Some(numa), Class: probe.Some(class), Max: probe.LinkOfGen(4, 16)})
		return probe.BDF{Bus: bus}
	}
	for numa, n := range perSocket {
		inv.NUMA = append(inv.NUMA, probe.NUMANode{ID: numa})
		parent := probe.Opt[probe.BDF]{}
		if switches {
			parent = probe.Some(add(probe.ClassBridgePCI, parent, numa))
		}
		for range n {
			inv.GPUs = append(inv.GPUs, probe.GPU{Index: probe.Some(len(inv.GPUs)), CC: probe.Some(89), Addr: probe.Some(add(0x030200, parent, numa))})
		}
	}
	return inv
}

// mesh is n GPUs joined directly, each pair by what links says.
func mesh(n, cc int, links func(i, j int) int) *probe.Inventory {
	inv := &probe.Inventory{CPUs: []probe.CPU{{Arch: "x86_64", Vendor: "AuthenticAMD"}}, NUMA: []probe.NUMANode{{ID: 0}}}
	for i := range n {
		addr := probe.BDF{Bus: uint8(i + 1)}
		inv.PCI = append(inv.PCI, probe.PCIDevice{Addr: addr, NUMA: probe.Some(0), Class: probe.Some(probe.PCIClass(0x030200)), Max: probe.LinkOfGen(4, 16)})
		g := probe.GPU{Index: probe.Some(i), Addr: probe.Some(addr), CC: probe.Some(cc)}
		own := []probe.NVLink{}
		for j := range n {
			for range links(min(i, j), max(i, j)) {
				if i != j {
					own = append(own, probe.NVLink{Link: len(own), State: probe.LinkUp, Generation: probe.Some(3), RemoteKind: probe.RemoteGPU, Remote: probe.Some(probe.BDF{Bus: uint8(j + 1)})})
				}
			}
		}
		g.NVLinks = probe.Some(own)
		inv.GPUs = append(inv.GPUs, g)
	}
	return inv
}

// Meshes of 16 GPUs have far more rings than can be looked at.
func hardMeshes() map[string]*probe.Inventory {
	rnd := rand.New(rand.NewPCG(5, 6))
	var some [16][16]int
	for i := range some {
		for j := range some[i] {
			some[i][j] = rnd.IntN(5)
		}
	}
	return map[string]*probe.Inventory{
		"full":   mesh(16, 80, func(i, j int) int { return 1 }),
		"random": mesh(16, 80, func(i, j int) int { return some[i][j] / 2 }),
		"sparse": mesh(16, 70, func(i, j int) int { return max(0, some[i][j]-2) }),
	}
}

// dice hands out small numbers from a byte string, zeros when it is used up.
type dice []byte

func (b *dice) below(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0]) % n
	*b = (*b)[1:]
	return v
}

// anyHost builds a small host from bytes: sockets, switches, GPUs below them
// with NVLinks to each other or to switches, NICs.
func anyHost(b dice) *probe.Inventory {
	inv := &probe.Inventory{}
	cpu := []probe.CPU{
		{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(143)},
		{Arch: "x86_64", Vendor: "AuthenticAMD"},
		{Arch: "arm64"}, {Arch: "ppc64"}, {Arch: "x86_64"},
		{Arch: "x86_64", Vendor: "GenuineIntel"},
	}
	inv.CPUs = []probe.CPU{cpu[b.below(len(cpu))]}
	sockets := 1 + b.below(3)
	for i := range sockets {
		inv.NUMA = append(inv.NUMA, probe.NUMANode{ID: i})
	}
	bus := 0
	add := func(class probe.PCIClass, parent probe.Opt[probe.BDF], numa int) probe.BDF {
		bus++
		d := probe.PCIDevice{Addr: probe.BDF{Bus: uint8(bus)}, Parent: parent, Class: probe.Some(class), Max: probe.LinkOfGen(1+b.below(5), 1<<b.below(5))}
		if numa >= 0 {
			d.NUMA = probe.Some(numa)
		}
		inv.PCI = append(inv.PCI, d)
		return d.Addr
	}
	type spot struct {
		parent probe.Opt[probe.BDF]
		numa   int
	}
	spots := []spot{{numa: -1}}
	for s := range sockets {
		spots = append(spots, spot{numa: s})
	}
	for range b.below(4) {
		under := spots[b.below(len(spots))]
		spots = append(spots, spot{probe.Some(add(probe.ClassBridgePCI, under.parent, under.numa)), under.numa})
	}
	n := 1 + b.below(9)
	cc := []int{60, 70, 80, 86, 90, 100}[b.below(6)]
	wiring := b.below(4)
	for i := range n {
		s := spots[b.below(len(spots))]
		g := probe.GPU{Index: probe.Some(i), Addr: probe.Some(add(0x030200, s.parent, s.numa)), CC: probe.Some(cc)}
		if wiring == 1 {
			g.NVLinks = probe.Some(make([]probe.NVLink, 0))
			links := []probe.NVLink{}
			for k := range 1 + b.below(18) {
				links = append(links, probe.NVLink{Link: k, State: probe.LinkUp, RemoteKind: probe.RemoteSwitch})
			}
			g.NVLinks = probe.Some(links)
		}
		inv.GPUs = append(inv.GPUs, g)
	}
	if wiring >= 2 {
		links := make([][]probe.NVLink, n)
		for i := range n {
			for j := range i {
				for range b.below(4) {
					for _, e := range [][2]int{{i, j}, {j, i}} {
						links[e[0]] = append(links[e[0]], probe.NVLink{Link: len(links[e[0]]), State: probe.LinkUp, RemoteKind: probe.RemoteGPU, Remote: inv.GPUs[e[1]].Addr})
					}
				}
			}
		}
		for i := range n {
			inv.GPUs[i].NVLinks = probe.Some(links[i])
		}
	}
	for i := range b.below(3) {
		s := spots[b.below(len(spots))]
		inv.HCAs = append(inv.HCAs, probe.HCA{Name: fmt.Sprintf("mlx5_%d", i), Addr: probe.Some(add(0x020700, s.parent, s.numa)),
			Ports: []probe.HCAPort{{Port: 1, State: probe.PortActive, Rate: probe.Some(probe.Mbps(100e3))}}})
	}
	return inv
}
