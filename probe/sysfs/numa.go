package sysfs

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	nodeFolder = "sys/devices/system/node"
	cpuFolder  = "sys/devices/system/cpu"
	maxNodes   = 1024
)

// numa reads the NUMA nodes and which package each CPU sits in.
func (r *reader) numa() {
	names, _ := r.folder("NUMA nodes", nodeFolder, true)
	for _, name := range names {
		id, ok := numbered(name, "node")
		if !ok {
			continue
		}
		dir, err := r.follow(path.Join(nodeFolder, name))
		if err == nil && len(r.inv.NUMA) == maxNodes {
			err = fmt.Errorf("more than %d nodes; this one is left out", maxNodes)
		}
		if err != nil {
			r.gap("numa "+strconv.Itoa(id), path.Join(nodeFolder, name), err)
			continue
		}
		object := "numa " + strconv.Itoa(id)
		n := probe.NUMANode{
			ID:        id,
			CPUs:      get(r, object, dir, "cpulist", parseCPUs).Or(""),
			Distances: get(r, object, dir, "distance", parseDistances).Or(nil),
			Origins:   []probe.Origin{origin(path.Join(nodeFolder, name))},
		}
		if n.CPUs == "" {
			n.CPUs = get(r, object, dir, "cpumap", parseMask).Or("")
		}
		r.inv.NUMA = append(r.inv.NUMA, n)
	}
	r.packages()
	for i := range r.inv.NUMA {
		n := &r.inv.NUMA[i]
		if cpus := n.CPUs.CPUs(); len(cpus) > 0 {
			if p, ok := r.packageOf[cpus[0]]; ok {
				n.Package = probe.Some(p)
			}
		}
	}
}

// packages reads the package of every online CPU: one CPU's files name all CPUs
// of its package, so this takes two files for each package.
func (r *reader) packages() {
	r.packageOf = map[int]int{}
	var cpus []int
	if !r.isDir(cpuFolder) {
		r.notRecorded("processor packages", cpuFolder)
		return
	}
	if online, ok := get(r, "processors", cpuFolder, "online", parseCPUs).Get(); ok {
		cpus = online.CPUs()
	} else {
		for _, n := range r.inv.NUMA {
			cpus = append(cpus, n.CPUs.CPUs()...)
		}
		slices.Sort(cpus)
	}
	asked := map[int]bool{}
	for _, cpu := range cpus {
		if asked[cpu] {
			continue
		}
		object := "cpu " + strconv.Itoa(cpu)
		topology := path.Join(cpuFolder, "cpu"+strconv.Itoa(cpu), "topology")
		dir, err := r.follow(topology)
		if err != nil {
			if errors.Is(err, errNotDir) || noValue(err) {
				r.notRecorded("processor packages", topology)
			} else {
				r.gap("processor packages", topology, err)
			}
			return
		}
		id := get(r, object, dir, "physical_package_id", parseNUMA)
		peers, ok := get(r, object, dir, "package_cpus_list", parseCPUs).Get()
		if !ok { // until Linux 5.2
			peers = get(r, object, dir, "core_siblings_list", parseCPUs).Or("")
		}
		for _, c := range append(peers.CPUs(), cpu) {
			asked[c] = true
			if p, ok := id.Get(); ok {
				r.packageOf[c] = p
			}
		}
	}
}

// processors lists the packages with the type that proc/cpuinfo (or, without it,
// the kernel's module alias) gives them.
func (r *reader) processors(types processorTypes) {
	known := map[int]probe.CPU{}
	for _, cpu := range slices.Sorted(maps.Keys(r.packageOf)) {
		p := r.packageOf[cpu]
		if _, ok := known[p]; !ok {
			where := path.Join(cpuFolder, "cpu"+strconv.Itoa(cpu), "topology/physical_package_id")
			known[p] = probe.CPU{Package: p, Origins: []probe.Origin{origin(where)}}
		}
	}
	for _, t := range types.all {
		if p, ok := t.pkg.Get(); ok {
			known[p] = t.onto(known[p], p, types.where)
		}
	}
	// Guests and Arm machines do not number packages in cpuinfo: all packages
	// are of the one type.
	if len(types.all) > 0 && !types.all[0].pkg.Known() {
		if len(known) == 0 {
			known[0] = probe.CPU{}
			r.gap("processor packages", types.where, errors.New("packages are not numbered; the processor is listed as package 0"))
		}
		for p, c := range known {
			known[p] = types.all[0].onto(c, p, types.where)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(known)) {
		r.inv.CPUs = append(r.inv.CPUs, known[p])
	}
}

// numbered reads names such as node3 or cpu12.
func numbered(name, prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == digits
}

func parseMask(s string) (probe.Opt[probe.CPUSet], error) {
	set, err := probe.ParseCPUMask(s)
	if err != nil {
		return probe.Opt[probe.CPUSet]{}, err
	}
	return probe.Some(set), nil
}

// parseDistances reads a node's row of the distance table.
func parseDistances(s string) (probe.Opt[[]int], error) {
	var out []int
	for _, f := range strings.Fields(s) {
		d, err := strconv.Atoi(f)
		if err != nil || d < 0 {
			return probe.Opt[[]int]{}, fmt.Errorf("distance %.20q: not a number", f)
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return probe.Opt[[]int]{}, nil
	}
	return probe.Some(out), nil
}
