package probe

import (
	"cmp"
	"slices"
)

// Normalize sorts every list by its stable key and replaces nil lists that are
// always printed by empty ones. It never changes a fact.
func (inv *Inventory) Normalize() {
	inv.CPUs = sorted(inv.CPUs, func(a, b CPU) int { return cmp.Compare(a.Package, b.Package) })
	inv.NUMA = sorted(inv.NUMA, func(a, b NUMANode) int { return cmp.Compare(a.ID, b.ID) })
	inv.PCI = sorted(inv.PCI, func(a, b PCIDevice) int { return a.Addr.Compare(b.Addr) })
	inv.GPUs = sorted(inv.GPUs, compareGPUs)
	for i := range inv.GPUs {
		if l, ok := inv.GPUs[i].NVLinks.Get(); ok {
			inv.GPUs[i].NVLinks = Some(sorted(l, func(a, b NVLink) int { return cmp.Compare(a.Link, b.Link) }))
		}
		inv.GPUs[i].Peers = sortedOrNil(inv.GPUs[i].Peers, func(a, b PeerAccess) int {
			return cmp.Or(cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Capability, b.Capability))
		})
	}
	inv.NVSwitches = sorted(inv.NVSwitches, func(a, b NVSwitch) int { return a.Addr.Compare(b.Addr) })
	inv.HCAs = sorted(inv.HCAs, func(a, b HCA) int { return CompareNames(a.Name, b.Name) })
	for i := range inv.HCAs {
		inv.HCAs[i].Ports = sorted(inv.HCAs[i].Ports, func(a, b HCAPort) int { return cmp.Compare(a.Port, b.Port) })
		for j := range inv.HCAs[i].Ports {
			p := &inv.HCAs[i].Ports[j]
			p.Counters = sortedOrNil(p.Counters, func(a, b Counter) int { return cmp.Compare(a.Name, b.Name) })
			p.GIDs = sortedOrNil(p.GIDs, func(a, b GID) int { return cmp.Compare(a.Index, b.Index) })
		}
	}
	inv.NetDevs = sorted(inv.NetDevs, func(a, b NetDev) int { return CompareNames(a.Name, b.Name) })
	inv.Relations = sorted(inv.Relations, func(a, b Relation) int {
		return cmp.Or(CompareNames(a.A, b.A), CompareNames(a.B, b.B))
	})
	inv.Settings.Modules = sortedOrNil(inv.Settings.Modules, func(a, b Module) int { return cmp.Compare(a.Name, b.Name) })
	compareMarks := func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Origin.Where, b.Origin.Where))
	}
	inv.Settings.Guest = sortedOrNil(inv.Settings.Guest, compareMarks)
	inv.Settings.Container = sortedOrNil(inv.Settings.Container, compareMarks)
	inv.Gaps = sorted(inv.Gaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why), cmp.Compare(a.Origin.String(), b.Origin.String()))
	})
	inv.Refused = sortedOrNil(inv.Refused, func(a, b FileFault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Msg, b.Msg))
	})
	inv.Conflicts = sortedOrNil(inv.Conflicts, func(a, b Conflict) int {
		return cmp.Or(CompareNames(a.Subject, b.Subject), cmp.Compare(a.Field, b.Field))
	})
	inv.normalizeJob()
	if inv.TopoFile != nil && inv.TopoFile.Claims != nil {
		inv.TopoFile.Claims.Normalize()
	}
}

// compareGPUs orders by index, those without one last, then by address.
func compareGPUs(a, b GPU) int {
	return cmp.Or(compareOpt(a.Index, b.Index, cmp.Compare[int]), compareOpt(a.Addr, b.Addr, BDF.Compare), cmp.Compare(a.UUID, b.UUID))
}

// compareOpt orders known values by compare and puts unknown ones last.
func compareOpt[T any](a, b Opt[T], compare func(a, b T) int) int {
	x, xok := a.Get()
	y, yok := b.Get()
	switch {
	case xok && yok:
		return compare(x, y)
	case xok:
		return -1
	case yok:
		return 1
	}
	return 0
}

// sorted returns a sorted copy, never nil, so that an inventory's lists are
// printed as [] and the caller's slices stay as they are.
func sorted[T any](s []T, compare func(a, b T) int) []T {
	out := append(make([]T, 0, len(s)), s...)
	slices.SortStableFunc(out, compare)
	return out
}

func sortedOrNil[T any](s []T, compare func(a, b T) int) []T {
	if len(s) == 0 {
		return nil
	}
	return sorted(s, compare)
}

// CompareNames orders device names by their numbers: mlx5_2 before mlx5_10.
func CompareNames(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := trimZeros(a[:da]), trimZeros(b[:db])
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}
