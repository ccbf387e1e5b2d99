package probe

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// trust is the order in which sources are believed, most trusted first. The
// driver knows its GPUs best, the kernel the bus; text that passed through a
// terminal comes after both, and a topology file, which may have been written
// by hand, last. What was inferred yields to anything read.
var trust = []string{SourceNVML, SourceSysfs, SourceHost, SourceSMIQuery, SourceIBStatus, SourceHwlocXML, SourceSMITopo, SourceKernLog, SourceNCCLLog, SourceNCCLXML, SourceNVBandwidth, SourceNCCLTests, SourceNCCLEnv, SourceInferred}

// trustOf ranks an inventory by the source of its facts; an inventory that was
// merged before (or is of no known source) ranks first, since its own facts
// carry their sources already.
func trustOf(inv *Inventory) int {
	best := len(trust)
	for _, o := range inv.origins() {
		i := slices.Index(trust, o.Source)
		if i < 0 {
			return -1
		}
		best = min(best, i)
	}
	return best
}

func (inv *Inventory) origins() []Origin {
	var out []Origin
	for _, p := range inv.PCI {
		out = append(out, p.Origins...)
	}
	for _, g := range inv.GPUs {
		out = append(out, g.Origins...)
	}
	for _, h := range inv.HCAs {
		out = append(out, h.Origins...)
	}
	for _, r := range inv.Relations {
		out = append(out, r.Origins...)
	}
	if inv.Memory != nil {
		out = append(out, inv.Memory.Origins...)
	}
	return append(out, inv.Settings.Origins...)
}

// Merge joins what several sources say of one host. For each fact the most
// trusted source that knows it wins (see trust; sources of equal trust rank in
// the order given); what another source knows differently is kept as a
// Conflict. Unknown never conflicts with a value. Host names that differ are an
// error, those are two hosts; unless a GPU is the same board by its UUID: a
// container bears another name than its host, which is a conflict.
//
// GPUs are the same when their UUIDs, else their addresses, else their indices
// are equal. Where one source only has addresses and another only indices and
// both list the same number, they are matched in bus order, which is how the
// driver numbers them; that is noted as an inferred origin.
func Merge(parts ...*Inventory) (*Inventory, error) {
	ordered := slices.Clone(parts)
	slices.SortStableFunc(ordered, func(a, b *Inventory) int { return trustOf(a) - trustOf(b) })
	out := &Inventory{Schema: Schema}
	m := merger{out: out}
	for _, p := range ordered {
		host := p.Host
		switch {
		case SameHostName(out.Host.Name, host.Name):
			host.Name = out.Host.Name
		case out.Host.Name != "" && host.Name != "" && !shareGPU(out, p):
			return nil, fmt.Errorf("sources describe different hosts: %s and %s", out.Host.Name, host.Name)
		}
		m.object("host", &out.Host, &host)
		m.object("product", &out.Product, &p.Product)
		m.object("settings", &out.Settings, &p.Settings)
		m.object("runtime", &out.Runtime, &p.Runtime)
		if p.Memory != nil && out.Memory == nil {
			out.Memory = p.Memory
		}
		mergeList(&m, &out.CPUs, p.CPUs, "cpu", func(c CPU) string { return fmt.Sprint(c.Package) })
		mergeList(&m, &out.NUMA, p.NUMA, "numa", func(n NUMANode) string { return fmt.Sprint(n.ID) })
		mergeList(&m, &out.PCI, p.PCI, "pci", func(d PCIDevice) string { return d.Addr.String() })
		mergeList(&m, &out.NVSwitches, p.NVSwitches, "nvswitch", func(s NVSwitch) string { return s.Addr.String() })
		mergeList(&m, &out.HCAs, p.HCAs, "hca", func(h HCA) string { return h.Name })
		mergeList(&m, &out.NetDevs, p.NetDevs, "net", func(n NetDev) string { return n.Name })
		mergeList(&m, &out.Relations, p.Relations, "relation", func(r Relation) string { return r.A + " " + r.B })
		m.gpus(p.GPUs)
		if p.TopoFile != nil && out.TopoFile == nil {
			out.TopoFile = p.TopoFile
		}
		out.AddJob(&p.Job)
		out.Gaps = append(out.Gaps, p.Gaps...)
		out.Refused = append(out.Refused, p.Refused...)
		out.Conflicts = append(out.Conflicts, p.Conflicts...)
	}
	for i := range out.PCI {
		// What one source knows ends another's "not told".
		out.PCI[i].NUMANone = out.PCI[i].NUMANone && !out.PCI[i].NUMA.Known()
	}
	out.Normalize()
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return out, nil
}

// SameHostName reports two spellings of one host's name: NCCL and others cut a
// name at its first dot.
func SameHostName(a, b string) bool {
	shortA, restA, _ := strings.Cut(a, ".")
	shortB, restB, _ := strings.Cut(b, ".")
	return a != "" && shortA == shortB && (restA == restB || restA == "" || restB == "")
}

// shareGPU reports two inventories that name the same board by its UUID.
func shareGPU(a, b *Inventory) bool {
	return slices.ContainsFunc(a.GPUs, func(x GPU) bool {
		return x.UUID != "" && slices.ContainsFunc(b.GPUs, func(y GPU) bool { return x.UUID == y.UUID })
	})
}

type merger struct{ out *Inventory }

func mergeList[T any](m *merger, dst *[]T, src []T, kind string, key func(T) string) {
	at := make(map[string]int, len(*dst))
	for i, d := range *dst {
		at[key(d)] = i
	}
	for _, s := range src {
		k := key(s)
		if i, ok := at[k]; ok {
			m.object(kind+":"+k, &(*dst)[i], &s)
			continue
		}
		at[k] = len(*dst)
		*dst = append(*dst, s)
	}
}

func (m *merger) gpus(src []GPU) {
	dst := m.out.GPUs
	src = slices.Clone(src)
	slices.SortStableFunc(src, compareGPUs)
	if byBusOrder(dst, src) {
		// Give the side without indices the indices of bus order, so that the
		// ordinary match applies.
		side := dst
		if !src[0].Index.Known() {
			side = src
		}
		slices.SortStableFunc(side, compareGPUs)
		for i := range side {
			side[i].Index = Some(i)
			side[i].Origins = append(side[i].Origins, Origin{Source: SourceInferred, Where: "bus order", Fields: []string{"index"}})
		}
	}
	for _, s := range src {
		i := slices.IndexFunc(m.out.GPUs, func(d GPU) bool { return sameGPU(d, s) })
		m.ownIndex(&s, i)
		if i < 0 {
			m.out.GPUs = append(m.out.GPUs, s)
			continue
		}
		subject := "gpu:" + m.out.GPUs[i].Index.String()
		if a, ok := m.out.GPUs[i].Addr.Get(); ok {
			subject = "gpu:" + a.String()
		}
		m.object(subject, &m.out.GPUs[i], &s)
	}
}

// ownIndex takes from a GPU the index that a more trusted source gave to another
// board, as a process does that orders its devices in its own way. at is the GPU
// that it is, -1 for a new one.
func (m *merger) ownIndex(s *GPU, at int) {
	if !s.Index.Known() || !s.Addr.Known() && s.UUID == "" {
		return
	}
	for i, d := range m.out.GPUs {
		if d.Index != s.Index || i == at {
			continue
		}
		subject := "gpu:" + s.UUID
		if a, ok := s.Addr.Get(); ok {
			subject = "gpu:" + a.String()
		}
		m.out.Conflicts = append(m.out.Conflicts, Conflict{Subject: subject, Field: "index", Values: []ConflictValue{
			{"another GPU has index " + d.Index.String(), OriginOf(d.Origins, "index")}, {s.Index.String(), OriginOf(s.Origins, "index")},
		}})
		s.Index = Opt[int]{}
		return
	}
}

// byBusOrder reports two equally long lists of which one has only addresses and
// the other only indices.
func byBusOrder(a, b []GPU) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	onlyAddr := func(l []GPU) bool {
		return !slices.ContainsFunc(l, func(g GPU) bool { return !g.Addr.Known() || g.Index.Known() || g.UUID != "" })
	}
	onlyIndex := func(l []GPU) bool {
		return !slices.ContainsFunc(l, func(g GPU) bool { return g.Addr.Known() || !g.Index.Known() || g.UUID != "" })
	}
	return onlyAddr(a) && onlyIndex(b) || onlyIndex(a) && onlyAddr(b)
}

func sameGPU(a, b GPU) bool {
	if a.UUID != "" && b.UUID != "" {
		return a.UUID == b.UUID
	}
	if a.Addr.Known() && b.Addr.Known() {
		return a.Addr == b.Addr
	}
	return a.Index.Known() && a.Index == b.Index
}

// object copies into *dst each field that only *src knows, and notes those that
// both know differently. Both are pointers to the same struct type.
func (m *merger) object(subject string, dst, src any) {
	d, s := reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem()
	dstOrigins, srcOrigins := originsField(d), originsField(s)
	var taken []string
	before := slices.Clone(*dstOrigins)
	for i := range d.NumField() {
		name := jsonName(d.Type().Field(i))
		if name == "origins" {
			continue
		}
		df, sf := d.Field(i), s.Field(i)
		if m.keyed(subject, name, df, sf, before, *srcOrigins) {
			continue
		}
		if link, ok := df.Interface().(PCIeLink); ok {
			// Speed and width are two facts.
			other := sf.Interface().(PCIeLink)
			m.fact(subject, name+".speed_gts", reflect.ValueOf(&link.Speed).Elem(), reflect.ValueOf(&other.Speed).Elem(), before, *srcOrigins, &taken)
			m.fact(subject, name+".width", reflect.ValueOf(&link.Width).Elem(), reflect.ValueOf(&other.Width).Elem(), before, *srcOrigins, &taken)
			df.Set(reflect.ValueOf(link))
			continue
		}
		if df.Kind() == reflect.Pointer && !df.IsNil() && !sf.IsNil() {
			// Of an object that both know, each of its facts.
			part := reflect.New(df.Type().Elem())
			part.Elem().Set(df.Elem())
			m.fields(subject, name+".", part.Elem(), sf.Elem(), before, *srcOrigins, &taken)
			df.Set(part)
			continue
		}
		m.fact(subject, name, df, sf, before, *srcOrigins, &taken)
	}
	if len(taken) == 0 {
		return
	}
	for _, o := range *srcOrigins {
		if len(*dstOrigins) > 0 && len(o.Fields) == 0 {
			o.Fields = taken
		}
		*dstOrigins = append(slices.Clip(*dstOrigins), o)
	}
}

// fields merges the facts of a part of an object, which has no origins of its own.
func (m *merger) fields(subject, prefix string, dst, src reflect.Value, dstOrigins, srcOrigins []Origin, taken *[]string) {
	for i := range dst.NumField() {
		m.fact(subject, prefix+jsonName(dst.Type().Field(i)), dst.Field(i), src.Field(i), dstOrigins, srcOrigins, taken)
	}
}

// keyed merges lists whose elements have a key of their own, element by element;
// false for any other kind of field, and where one side does not know the list.
func (m *merger) keyed(subject, name string, dst, src reflect.Value, dstOrigins, srcOrigins []Origin) bool {
	if isUnknown(dst) || isUnknown(src) {
		return false
	}
	first := len(m.out.Conflicts)
	defer func() {
		// The elements have no origin of their own: the object's holds.
		for _, c := range m.out.Conflicts[first:] {
			c.Values[0].Origin, c.Values[1].Origin = OriginOf(dstOrigins, name), OriginOf(srcOrigins, name)
		}
	}()
	switch d := dst.Addr().Interface().(type) {
	case *[]HCAPort:
		mergeList(m, d, src.Interface().([]HCAPort), subject+" "+name, func(p HCAPort) string { return fmt.Sprint(p.Port) })
	case *Opt[[]NVLink]:
		links := slices.Clone(d.value)
		mergeList(m, &links, src.Interface().(Opt[[]NVLink]).value, subject+" "+name, func(l NVLink) string { return fmt.Sprint(l.Link) })
		*d = Some(links)
	default:
		return false
	}
	return true
}

func (m *merger) fact(subject, name string, dst, src reflect.Value, dstOrigins, srcOrigins []Origin, taken *[]string) {
	switch {
	case isUnknown(src):
	case isUnknown(dst):
		dst.Set(src)
		*taken = append(*taken, name)
	case joined(dst, src):
	case !reflect.DeepEqual(dst.Interface(), src.Interface()):
		m.out.Conflicts = append(m.out.Conflicts, Conflict{Subject: subject, Field: name, Values: []ConflictValue{
			{describe(dst), OriginOf(dstOrigins, name)}, {describe(src), OriginOf(srcOrigins, name)},
		}})
	}
}

// joined adds to a list of signs, modules or unknown attributes what only the other source has;
// false for any other kind of fact.
func joined(dst, src reflect.Value) bool {
	switch d := dst.Addr().Interface().(type) {
	case *[]Mark:
		*d = union(*d, src.Interface().([]Mark))
	case *[]Module:
		*d = union(*d, src.Interface().([]Module))
	case *[]Attr:
		*d = union(*d, src.Interface().([]Attr))
	default:
		return false
	}
	return true
}

func union[T any](a, b []T) []T {
	for _, x := range b {
		if !slices.ContainsFunc(a, func(y T) bool { return reflect.DeepEqual(x, y) }) {
			a = append(slices.Clip(a), x)
		}
	}
	return a
}

// isUnknown holds for an unknown Opt, an empty string, a nil pointer and an
// empty list; an identifying number is always known. A false flag is what a
// source says when it has nothing to report.
func isUnknown(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int:
		return false
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		return v.IsZero()
	default:
		return v.IsZero()
	}
}

func describe(v reflect.Value) string {
	if text, ok := v.Interface().(fmt.Stringer); ok && v.Kind() != reflect.Pointer {
		return clip(text.String())
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return "?"
	}
	return clip(strings.Trim(string(raw), `"`))
}

func originsField(v reflect.Value) *[]Origin {
	if f := v.FieldByName("Origins"); f.IsValid() {
		return f.Addr().Interface().(*[]Origin)
	}
	return &[]Origin{}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
