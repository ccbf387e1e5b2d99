package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaypipes/ghw"

	"github.com/ncclmap/ncclmap/probe"
)

// Read asks about the machine whose root folder is given; "/" is this one. What
// cannot be read is a gap.
func Read(root string) *probe.Inventory {
	r := reader{root: root, inv: &probe.Inventory{Schema: probe.Schema}}
	r.product()
	r.processors()
	r.memory()
	return r.inv
}

type reader struct {
	root string
	inv  *probe.Inventory
}

// options keep ghw from printing and from running programs.
func (r *reader) options() []any {
	return []any{ghw.WithChroot(r.root), ghw.WithDisableWarnings(), ghw.WithDisableTools()}
}

func (r *reader) gap(what string, err error) {
	r.inv.Gaps = append(r.inv.Gaps, probe.Gap{What: what, Why: err.Error(), Origin: probe.Origin{Source: probe.SourceHost}})
}

func origins(where string) []probe.Origin {
	return []probe.Origin{{Source: probe.SourceHost, Where: where}}
}

// product reads the DMI identity; ghw says "unknown" for what it cannot read.
func (r *reader) product() {
	p, err := ghw.Product(r.options()...)
	if err != nil {
		r.gap("product name", err)
		return
	}
	r.inv.Product.Vendor, r.inv.Product.Name = known(p.Vendor), known(p.Name)
	if b, err := ghw.Baseboard(r.options()...); err != nil {
		r.gap("board name", err)
	} else {
		r.inv.Product.Board = strings.Join(slices.DeleteFunc([]string{known(b.Vendor), known(b.Product)}, func(s string) bool { return s == "" }), " ")
	}
	r.inv.Product.Origins = origins("sys/class/dmi/id")
}

func known(s string) string {
	if s = strings.TrimSpace(s); strings.EqualFold(s, "unknown") {
		return ""
	}
	return s
}

// processors names each package; its NUMA node and CPUs come from sysfs.
func (r *reader) processors() {
	c, err := ghw.CPU(r.options()...)
	if err != nil {
		r.gap("processor names", err)
		return
	}
	for _, p := range c.Processors {
		r.inv.CPUs = append(r.inv.CPUs, probe.CPU{Package: p.ID, Vendor: known(p.Vendor), Name: known(p.Model), Origins: origins("proc/cpuinfo")})
	}
}

// memory reads the total and, where the firmware tells, the modules.
func (r *reader) memory() {
	m, err := ghw.Memory(r.options()...)
	if err != nil {
		r.gap("memory", err)
		return
	}
	out := probe.Memory{Origins: origins("proc/meminfo")}
	if b := cmp.Or(max(m.TotalPhysicalBytes, 0), max(m.TotalUsableBytes, 0)); b > 0 {
		out.Bytes = probe.Some(b)
	}
	count := map[string]int{}
	for _, x := range m.Modules {
		if x.SizeBytes > 0 {
			count[strings.TrimSpace(fmt.Sprintf("%d GiB %s", x.SizeBytes>>30, known(x.Vendor)))]++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		out.Modules = append(out.Modules, fmt.Sprintf("%d × %s", count[kind], kind))
	}
	r.inv.Memory = &out
}
