package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// ClusterSchema is the "schema" member of a cluster document.
const ClusterSchema = "ncclmap.cluster/v1"

// Cluster is what was seen of several hosts, and of the jobs that ran over them.
// A host's own Job is empty: what jobs show stands here once.
type Cluster struct {
	Schema string       `json:"schema"`
	Hosts  []*Inventory `json:"hosts"` // by name
	Job
	Gaps []Gap `json:"gaps"` // that concern no single host
}

// Part is one inventory with what is known of the place it came from.
type Part struct {
	Inv *Inventory
	// File is the name that messages use; Folder, where it was found among many
	// files, the folder, else "".
	File, Folder string
	// Claim marks a topology file: where something else saw the machine, it is
	// what somebody claims about it.
	Claim bool
}

// Join puts parts together host by host. Parts are of one host when its name
// (cut at the first dot or not), a GPU's UUID or the host hash of a topology
// file says so. A part without any of these belongs to the only host there is,
// in its folder or at all; where there are several, to the only one with the
// same GPU addresses. What remains is not guessed: it is a host of its own, named
// after its file, and a gap says that it may be one of the others.
func Join(parts []Part) (*Cluster, error) {
	c := &Cluster{Schema: ClusterSchema, Hosts: []*Inventory{}, Gaps: []Gap{}}
	var pieces []Part
	for _, p := range parts {
		job := p.Inv.Job
		job.nameHost(p.Inv.Host.Name)
		c.AddJob(&job)
		inv := *p.Inv
		inv.Job = Job{}
		p.Inv = &inv
		pieces = append(pieces, p)
	}
	groups := group(pieces)
	several := len(groups.hosts) > 1
	for _, p := range groups.hostless {
		if several {
			c.Gaps = append(c.Gaps, p.Inv.Gaps...)
			continue
		}
		groups.add(p) // nothing else can be meant
	}
	for _, p := range groups.doubtful {
		c.Gaps = append(c.Gaps, Gap{
			What: p.File, Why: "which of the hosts it describes is not known: it holds no host name, and no GPU UUID or address that only one of them has; it counts as a host of its own",
			How: "put it into a folder with other files of that host, or give one host at a time", Origin: Origin{Source: SourceInferred, Where: p.File},
		})
	}
	for _, g := range groups.hosts {
		inv, err := g.merge()
		if err != nil {
			return nil, err
		}
		if several && inv.Host.Name == "" {
			inv.Host.Name = g.stem(func(name string) bool { return groups.byName[name] != nil })
			groups.byName[inv.Host.Name] = g
			inv.Host.Origins = append(inv.Host.Origins, Origin{Source: SourceInferred, Where: "file name " + g.parts[0].File, Fields: []string{"name"}})
		}
		c.Hosts = append(c.Hosts, inv)
	}
	c.normalize()
	return c, nil
}

// Single returns the one host with its jobs; ok is false where there are several.
// A cluster of no host gives an inventory of jobs alone.
func (c *Cluster) Single() (inv *Inventory, ok bool) {
	switch len(c.Hosts) {
	case 0:
		inv = &Inventory{Schema: Schema}
	case 1:
		one := *c.Hosts[0]
		inv = &one
	default:
		return nil, false
	}
	inv.Job = c.Job
	inv.Gaps = append(slices.Clip(inv.Gaps), c.Gaps...)
	inv.Normalize()
	return inv, true
}

// Host returns the host of a name, however it is spelled.
func (c *Cluster) Host(name string) *Inventory {
	for _, h := range c.Hosts {
		if SameHostName(h.Host.Name, name) {
			return h
		}
	}
	return nil
}

// Names lists the hosts.
func (c *Cluster) Names() []string {
	out := make([]string, len(c.Hosts))
	for i, h := range c.Hosts {
		out[i] = h.Host.Name
	}
	return out
}

func (c *Cluster) normalize() {
	slices.SortStableFunc(c.Hosts, func(a, b *Inventory) int { return CompareNames(a.Host.Name, b.Host.Name) })
	c.normalizeJob()
}

// Encode writes the cluster as one JSON document; equal clusters give the same
// bytes.
func (c *Cluster) Encode(w io.Writer) error {
	out := *c
	out.Schema = ClusterSchema
	for _, h := range out.Hosts {
		if err := h.Validate(); err != nil {
			return fmt.Errorf("host %s: %w", h.Host.Name, err)
		}
	}
	raw, err := json.Marshal(&out)
	if err != nil {
		return err
	}
	_, err = w.Write(FormatJSON(raw))
	return err
}

// minElement is a length that the objects of a large cluster exceed on average.
const minElement = 40

// DecodeCluster reads a cluster document and validates it. name is used in error
// messages.
func DecodeCluster(name string, text []byte) (*Cluster, error) {
	if err := checkElements(name, text, maxElements+len(text)/minElement); err != nil {
		return nil, err
	}
	var c Cluster
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, jsonError(name, text, dec.InputOffset(), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, jsonError(name, text, dec.InputOffset(), errTrailing)
	}
	if c.Schema != ClusterSchema {
		return nil, &SyntaxError{File: name, Msg: fmt.Sprintf("schema is %q, want %q", clip(c.Schema), ClusterSchema)}
	}
	seen := map[string]bool{}
	for i, h := range c.Hosts {
		switch {
		case h == nil:
			return nil, fmt.Errorf("%s: host %d is null", name, i)
		case h.Host.Name == "":
			return nil, fmt.Errorf("%s: host %d has no name", name, i)
		case seen[h.Host.Name]:
			return nil, fmt.Errorf("%s: host %s stands twice", name, h.Host.Name)
		}
		seen[h.Host.Name] = true
		if err := h.Validate(); err != nil {
			return nil, fmt.Errorf("%s: host %s: %w", name, h.Host.Name, err)
		}
		h.Normalize()
	}
	whole := Inventory{Job: c.Job, Gaps: c.Gaps}
	if err := whole.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.normalize()
	return &c, nil
}

// Inventories gives the cluster back as inventories to join with others: one of
// each host, and one of the jobs.
func (c *Cluster) Inventories() []*Inventory {
	out := slices.Clone(c.Hosts)
	if !c.NoJob() || len(c.Gaps) > 0 {
		out = append(out, &Inventory{Schema: Schema, Job: c.Job, Gaps: c.Gaps})
	}
	return out
}

// nameHost gives the host's name to facts that name none.
func (j *Job) nameHost(host string) {
	if host == "" {
		return
	}
	j.Events = slices.Clone(j.Events)
	for i := range j.Events {
		if j.Events[i].Host == "" {
			j.Events[i].Host = host
		}
	}
	j.Env = slices.Clone(j.Env)
	for i := range j.Env {
		if j.Env[i].Host == "" {
			j.Env[i].Host = host
		}
	}
}

// describesHost reports an inventory that says something of a machine.
func describesHost(inv *Inventory) bool {
	return len(inv.GPUs)+len(inv.HCAs)+len(inv.PCI)+len(inv.NetDevs)+len(inv.NUMA)+len(inv.CPUs)+len(inv.Relations)+len(inv.NVSwitches) > 0 ||
		inv.Host.Name != "" || inv.Host.Kernel != "" || inv.Product.Name != "" || inv.Settings.Cmdline != ""
}

// hostGroup is the parts of one host.
type hostGroup struct{ parts []Part }

// merge joins the parts. A topology file beside a part that saw the machine
// itself is kept apart as a claim.
func (g *hostGroup) merge() (*Inventory, error) {
	saw := slices.ContainsFunc(g.parts, func(p Part) bool { return !p.Claim && (len(p.Inv.PCI) > 0 || hasUUID(p.Inv)) })
	var invs []*Inventory
	var claim *Part
	for i, p := range g.parts {
		if !saw || !p.Claim {
			invs = append(invs, p.Inv)
			continue
		}
		if claim != nil {
			return nil, fmt.Errorf("%s and %s: two topology files beside the machine itself; name the one to check", claim.File, p.File)
		}
		claim = &g.parts[i]
	}
	inv, err := Merge(invs...)
	if err != nil {
		var files []string
		for _, p := range g.parts {
			files = append(files, p.File)
		}
		return nil, fmt.Errorf("joining %s: %w", strings.Join(files, ", "), err)
	}
	if claim != nil {
		inv.TopoFile = &TopoFile{File: path.Base(claim.File), Claims: claim.Inv}
	}
	return inv, nil
}

func hasUUID(inv *Inventory) bool {
	return slices.ContainsFunc(inv.GPUs, func(g GPU) bool { return g.UUID != "" })
}

// stem makes a name of the file's or folder's, for a host that no source names.
// Where it is taken, the folder above comes before it, and last a number.
func (g *hostGroup) stem(taken func(string) bool) string {
	p := g.parts[0]
	file := p.File
	if len(g.parts) > 1 && p.Folder != "" && p.Folder != "." {
		file = p.Folder
	}
	name := path.Base(file)
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	for dir := path.Dir(file); taken(name) && path.Base(dir) != "." && path.Base(dir) != "/"; dir = path.Dir(dir) {
		name = path.Base(dir) + "-" + name
	}
	for base, n := name, 2; taken(name); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}
