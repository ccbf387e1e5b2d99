package probe

import (
	"path"
	"slices"
	"strings"
)

// grouping is how parts fall into hosts.
type grouping struct {
	hosts    []*hostGroup
	hostless []Part // that describe no machine
	doubtful []Part // that may be of another host than the one they make

	byName, byUUID, byHash map[string]*hostGroup
}

func group(parts []Part) *grouping {
	g := &grouping{byName: map[string]*hostGroup{}, byUUID: map[string]*hostGroup{}, byHash: map[string]*hostGroup{}}
	var nameless []Part
	for _, p := range parts {
		if p.Inv.Host.Name == "" && p.Inv.Host.Hash == "" {
			nameless = append(nameless, p)
			continue
		}
		g.put(p, g.of(p.Inv))
	}
	// A UUID may tie a nameless part to a host, and that part's others to it.
	var rest []Part
	for _, p := range nameless {
		if h := g.of(p.Inv); h != nil {
			g.put(p, h)
			continue
		}
		rest = append(rest, p)
	}
	g.byFolder(rest)
	return g
}

// of finds the host of an inventory by what is unique to it.
func (g *grouping) of(inv *Inventory) *hostGroup {
	if n := inv.Host.Name; n != "" {
		short, _, _ := strings.Cut(n, ".")
		if h := g.byName[short]; h != nil && SameHostName(h.name(), n) {
			return h
		}
		if h := g.byName[n]; h != nil {
			return h
		}
	}
	for _, gpu := range inv.GPUs {
		if h := g.byUUID[gpu.UUID]; gpu.UUID != "" && h != nil {
			return h
		}
	}
	if inv.Host.Hash != "" {
		return g.byHash[inv.Host.Hash]
	}
	return nil
}

// put adds a part to a host, nil for a new one, and learns what identifies it.
func (g *grouping) put(p Part, h *hostGroup) *hostGroup {
	if h == nil {
		h = &hostGroup{}
		g.hosts = append(g.hosts, h)
	}
	h.parts = append(h.parts, p)
	if n := p.Inv.Host.Name; n != "" {
		short, _, _ := strings.Cut(n, ".")
		if g.byName[short] == nil {
			g.byName[short] = h
		}
		g.byName[n] = h
	}
	for _, gpu := range p.Inv.GPUs {
		if gpu.UUID != "" {
			g.byUUID[gpu.UUID] = h
		}
	}
	if p.Inv.Host.Hash != "" {
		g.byHash[p.Inv.Host.Hash] = h
	}
	return h
}

// add gives a part to the only host, or makes it one.
func (g *grouping) add(p Part) {
	if len(g.hosts) == 0 {
		g.put(p, nil)
		return
	}
	g.put(p, g.hosts[0])
}

func (h *hostGroup) name() string {
	for _, p := range h.parts {
		if p.Inv.Host.Name != "" {
			return p.Inv.Host.Name
		}
	}
	return ""
}

// byFolder finds the hosts of parts that name none.
func (g *grouping) byFolder(parts []Part) {
	var folders []string
	in := map[string][]Part{}
	for _, p := range parts {
		if !describesHost(p.Inv) {
			g.hostless = append(g.hostless, p)
			continue
		}
		if in[p.Folder] == nil {
			folders = append(folders, p.Folder)
		}
		in[p.Folder] = append(in[p.Folder], p)
	}
	slices.Sort(folders) // a folder before those in it
	for _, f := range folders {
		if h := g.above(f, folders); h != nil {
			for _, p := range in[f] {
				g.put(p, h)
			}
			continue
		}
		g.folder(f, in[f])
	}
}

// above returns the host of the files that lie beside a folder, where the folder
// names no host itself, those files are of one, and no other such folder lies
// beside it: a host's output with its recorded root in a folder of its own.
func (g *grouping) above(folder string, folders []string) *hostGroup {
	parent := path.Dir(folder)
	if folder == "" || len(g.named(folder)) > 0 || slices.ContainsFunc(folders, func(f string) bool { return f != folder && f != "" && path.Dir(f) == parent }) {
		return nil
	}
	if beside := g.named(parent); len(beside) == 1 {
		return beside[0]
	}
	return nil
}

// named returns the hosts that a folder's own files name; for what was named one
// by one, all hosts.
func (g *grouping) named(folder string) []*hostGroup {
	var out []*hostGroup
	for _, h := range g.hosts {
		if folder == "" || slices.ContainsFunc(h.parts, func(p Part) bool { return p.Folder == folder }) {
			out = append(out, h)
		}
	}
	return out
}

func (g *grouping) folder(folder string, parts []Part) {
	named := g.named(folder)
	if len(named) > 1 {
		// What the addresses do not tell apart makes a host of its own.
		parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool {
			h := onlyWithGPUs(named, p.Inv)
			if h != nil {
				g.put(p, h)
			}
			return h != nil
		})
		g.doubtful = append(g.doubtful, parts...)
	}
	var all *hostGroup
	if len(named) == 1 {
		all = named[0]
	}
	each := all == nil && folder != "" && repeats(parts) // one kind of output from many hosts
	for _, p := range parts {
		h := all
		if h == nil {
			h = g.of(p.Inv)
		}
		if h = g.put(p, h); !each {
			all = h
		}
	}
}

// repeats reports parts of which two are of one source and share no GPU, so that
// they cannot all be of one host.
func repeats(parts []Part) bool {
	seen := map[string]*Inventory{}
	for _, p := range parts {
		kind := p.Inv.mainSource()
		if first := seen[kind]; first != nil && !shareGPU(first, p.Inv) {
			return true
		}
		seen[kind] = p.Inv
	}
	return false
}

func (inv *Inventory) mainSource() string {
	for _, o := range inv.origins() {
		return o.Source
	}
	return ""
}

// onlyWithGPUs returns the only host whose GPUs have the addresses of inv's.
func onlyWithGPUs(hosts []*hostGroup, inv *Inventory) *hostGroup {
	want := addresses(inv)
	if len(want) == 0 {
		return nil
	}
	var found *hostGroup
	for _, h := range hosts {
		if slices.ContainsFunc(h.parts, func(p Part) bool { return slices.Equal(addresses(p.Inv), want) }) {
			if found != nil {
				return nil
			}
			found = h
		}
	}
	return found
}

func addresses(inv *Inventory) []BDF {
	var out []BDF
	for _, g := range inv.GPUs {
		if a, ok := g.Addr.Get(); ok {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, BDF.Compare)
	return slices.Compact(out)
}
