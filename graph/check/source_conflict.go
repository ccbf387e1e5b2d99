package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var sourceConflict = Rule{
	ID:    "source-conflict",
	Title: "Two sources of one host disagree",
	Doc: `Fires for an object of which two sources state different values; each field is listed
with both values and where they stand. And, where topo -m is given beside the devices,
for pairs whose path by the devices is of another class than their cell, or has another
number of NVLinks; pairs that differ alike are one finding.

info; warning, and likely, where they disagree on whether something is healthy: the state of
an NVLink, a port or the fabric, or a link's width.

What is used is the more trusted source's: the driver, then the kernel, then topo -m,
then a topology file.

Silent for what changes while a host works (load, link speed of a GPU, counters), for
cells that the devices neither confirm nor deny, and for a topology file beside the
host, which is a claim of its own.`,
	Run: runSourceConflict,
}

func runSourceConflict(p *Pass) {
	p.fieldConflicts()
	p.relationConflicts()
}

const reread = "whoever gathered the sources: read them again at one time on one host, without a recording of another day among them. If they still differ, correct or leave out the one that is wrong; until then the first value is used"

// volatile are fields that may differ because they were read at two moments.
var volatile = []string{"pstate", "utilization", "clocks_event_reasons", "pcie_replays", "pcie_counters", "nvlink_counters", "ecc", "runtime_pm"}

// health reports a field that tells whether something works as it should.
func health(field string) bool {
	return field == "state" || field == "fabric.state" || field == "fabric.status" || strings.HasSuffix(field, ".width")
}

// fieldConflicts reports what the sources state differently, by object.
func (p *Pass) fieldConflicts() {
	type object struct {
		subjects []string
		facts    []string
		proof    []Evidence
		health   bool
	}
	var found []object
	for _, c := range p.Inv.Conflicts {
		subjects, part := p.conflictSubjects(c.Subject)
		isGPU := strings.HasPrefix(subjects[0], "gpu:")
		field, _, _ := strings.Cut(c.Field, ".")
		if len(c.Values) < 2 || slices.Contains(volatile, field) || isGPU && c.Field == "current_link.speed_gts" {
			continue
		}
		i := slices.IndexFunc(found, func(o object) bool { return slices.Equal(o.subjects, subjects) })
		if i < 0 {
			i = len(found)
			found = append(found, object{subjects: subjects})
		}
		o := &found[i]
		o.health = o.health || health(c.Field)
		field = strings.TrimSpace(part + " " + c.Field)
		fact := fmt.Sprintf("%s: %s is used (%s)", field, c.Values[0].Value, originText(c.Values[0].Origin))
		for k, v := range c.Values {
			how := "is used"
			if k > 0 {
				how = "is not used"
				fact += fmt.Sprintf(", %s says %s", originText(v.Origin), v.Value)
			}
			o.proof = append(o.proof, Evidence{Source: v.Origin.Source, Where: v.Origin.Where, Fact: fmt.Sprintf("%s %s, which %s", field, v.Value, how)})
		}
		o.facts = append(o.facts, fact)
	}
	for _, o := range found {
		severity, certainty := Info, Sure
		if o.health {
			severity, certainty = Warning, Likely // one of them shows a fault, and may be the right one
		}
		p.Report(Finding{
			Severity: severity, Certainty: certainty, Subjects: o.subjects, Expected: "one value from every source",
			Observed: strings.Join(o.facts, "; "), Evidence: o.proof, Fix: reread,
		})
	}
}

// originText names a source in a sentence.
func originText(o probe.Origin) string {
	if o.Source == "" || o.Source == "unknown" {
		return "a source that is not noted"
	}
	return o.String()
}

// conflictSubjects turns the subject of a conflict into node keys. part is what
// of the object it is about, where the key does not say: "ports:1" of an HCA.
func (p *Pass) conflictSubjects(subject string) (nodes []string, part string) {
	kind, rest, _ := strings.Cut(subject, ":")
	name, part, _ := strings.Cut(rest, " ")
	switch kind {
	case "relation": // "relation:GPU0 mlx5_0"
		return []string{p.keyOfCell(name), p.keyOfCell(part)}, ""
	case "pci":
		if a, err := probe.ParseBDF(name); err == nil {
			return []string{p.keyOf(a)}, part
		}
	case "gpu":
		if p.Topo.Node("gpu:"+name) == nil {
			return []string{p.keyOfCell("GPU" + name)}, part
		}
	case "hca", "net", "numa", "nvswitch":
	default: // "host", "product", "settings", "runtime", "cpu:0"
		return []string{p.Host()}, subject
	}
	return []string{kind + ":" + name}, part
}

// keyOfCell returns the node key of a name in topo -m.
func (p *Pass) keyOfCell(name string) string {
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		if cellName(n) == name {
			return n.Key
		}
	}
	if index, ok := strings.CutPrefix(name, "GPU"); ok {
		return "gpu:" + index
	}
	return "hca:" + name
}

// cellName is the name of a device in topo -m, "" where it has none.
func cellName(n *graph.Node) string {
	if n.GPU == nil {
		return n.HCA.Name
	}
	if i, ok := n.GPU.Index.Get(); ok {
		return fmt.Sprintf("GPU%d", i)
	}
	return ""
}

// relationConflicts compares topo -m with what the devices show.
func (p *Pass) relationConflicts() {
	type pair struct{ a, b *graph.Node }
	type difference struct {
		used, cell string
		pairs      []pair
		relation   probe.Relation // of the first pair
	}
	at := map[string]*graph.Node{}
	for _, n := range slices.Concat(p.facts.gpus, p.facts.hcas) {
		at[cellName(n)] = n
	}
	var found []difference
	for _, r := range p.Inv.Relations {
		a, b := at[r.A], at[r.B]
		if a == nil || b == nil {
			continue
		}
		used, ok := p.classByDevices(a, b, r)
		if !ok {
			continue
		}
		i := slices.IndexFunc(found, func(d difference) bool { return d.used == used && d.cell == r.Code })
		if i < 0 {
			i = len(found)
			found = append(found, difference{used: used, cell: r.Code, relation: r})
		}
		found[i].pairs = append(found[i].pairs, pair{a, b})
	}
	for _, d := range found {
		var nodes []*graph.Node
		in := map[*graph.Node]int{} // pairs that a device is in
		var names []string
		for _, x := range d.pairs {
			for _, n := range []*graph.Node{x.a, x.b} {
				if in[n]++; in[n] == 1 {
					nodes = append(nodes, n)
				}
			}
			names = append(names, x.a.Label+"-"+x.b.Label)
		}
		slices.SortStableFunc(nodes, func(a, b *graph.Node) int {
			shared := func(n *graph.Node) int {
				if in[n] == len(d.pairs) {
					return 0
				}
				return 1
			}
			return shared(a) - shared(b)
		})
		const most = 4
		text := strings.Join(names[:min(most, len(names))], ", ")
		if n := len(names) - most; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		first := d.pairs[0]
		p.Report(Finding{
			Severity: Info,
			Subjects: keys(nodes),
			Expected: "topo -m and the devices agree",
			Observed: fmt.Sprintf("%s: %s by the devices, which is used; topo -m says %s", text, d.used, d.cell),
			Evidence: append(p.pathEvidence(first.a, first.b, d.used),
				evidence(d.relation.Origins, "code", "", "%s %s %s", d.relation.A, d.relation.Code, d.relation.B)),
			Fix: reread,
		})
	}
}

// classByDevices returns the pair's cell as the devices alone would have it, if
// it contradicts the cell of topo -m.
func (p *Pass) classByDevices(a, b *graph.Node, r probe.Relation) (used string, contradicts bool) {
	path := p.Topo.Path(a, b)
	nv := strings.HasPrefix(r.Code, "NV")
	switch {
	case len(path.Hops) == 0:
		return "", false // the class is the cell's
	case (nv || path.Class == graph.NVL) && !(knownNVLinks(a) && knownNVLinks(b)):
		return "", false // so are the NVLinks, at least in part
	case besides(a, b):
		return "", false
	case !path.Class.Agrees(r.Code):
		return p.Topo.SMICode(a, b), true
	}
	used = p.Topo.SMICode(a, b)
	return used, nv && used != r.Code
}

func knownNVLinks(n *graph.Node) bool { return n.GPU == nil || n.GPU.NVLinks.Known() }

// besides reports functions directly below one port: topo -m counts the port as
// a bridge between them, even if it is a root port.
func besides(a, b *graph.Node) bool {
	return a.PCI != nil && b.PCI != nil && a.PCI.Parent.Known() && a.PCI.Parent == b.PCI.Parent
}

// pathEvidence says what the path by the devices rests on.
func (p *Pass) pathEvidence(a, b *graph.Node, class string) []Evidence {
	if strings.HasPrefix(class, "NV") {
		return slices.Concat(p.nvlinkCount(a).proof, p.nvlinkCount(b).proof)
	}
	var out []Evidence
	for _, n := range []*graph.Node{a, b} {
		if n.PCI != nil {
			out = append(out, placeEvidence(n))
		}
	}
	return out
}
