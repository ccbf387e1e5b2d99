package tune

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/graph/model"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

// costBytes is the size that costs are of: large enough that bandwidth alone counts.
const costBytes = 1 << 30

// costing predicts for a job with and without its faults.
type costing struct {
	job     *probe.Job
	seen    world
	version graph.NCCLVersion
	faults  []fault
	left    map[string]error // why findings are no faults, by id
	known   map[string]prediction
	unknown error // why nothing can be predicted

	alternatives []check.Alternative // settings that were measured
}

// world is what a prediction is of.
type world struct {
	hosts    []*probe.Inventory
	settings []check.Precedence
}

// fault is a finding with the repair that makes a world without it.
type fault struct {
	id     string
	links  func(*Prediction) []*graph.Link // that are slow, which NCCL need not know; nil = none
	repair func(*world) error
}

// prediction is a bandwidth, or why there is none.
type prediction struct {
	gbs float64
	err error
}

// scope is how far a job reaches.
type scope struct {
	hosts int // like the one that is known; 0 = those that are known
	text  string
}

func (c *costing) scopes() []scope {
	if n := len(c.seen.hosts); n > 1 {
		return []scope{{0, fmt.Sprintf("over the %d hosts as one job", n)}}
	}
	return []scope{{1, "within the host"}, {2, "between two hosts like it"}}
}

func newCosting(c *probe.Cluster) *costing {
	out := &costing{job: &c.Job, left: map[string]error{}, known: map[string]prediction{}}
	hosts := c.Hosts
	if inv, ok := c.Single(); ok {
		hosts, out.job = []*probe.Inventory{inv}, &inv.Job
	}
	out.seen.hosts = slices.DeleteFunc(slices.Clone(hosts), func(inv *probe.Inventory) bool { return unseen(inv) || len(inv.GPUs) == 0 })
	out.alternatives = check.Alternatives(out.job)
	out.seen.settings = slices.DeleteFunc(check.Settings(out.job), func(s check.Precedence) bool { return !s.Value.Known() })
	if len(out.seen.hosts) == 0 {
		out.unknown = errors.New("no source shows the links of a host; name its inventory or its recorded /sys as well")
		return out
	}
	out.version = OptionsOfHosts(out.seen.hosts, out.job).NCCL.Version
	for _, s := range out.scopes() {
		if _, out.unknown = out.predict(s, out.seen, nil); out.unknown == nil {
			break
		}
	}
	return out
}

// idOf tells findings apart.
func idOf(f check.Finding) string { return f.Rule + " " + strings.Join(f.Subjects, " ") }

// add takes a finding that a repair can be thought of.
func (c *costing) add(f check.Finding) {
	x, err := c.fault(f)
	switch {
	case err != nil:
		c.left[x.id] = err
		return
	case x.repair == nil:
		return
	case c.unknown != nil:
		c.left[x.id] = c.unknown
		return
	case len(c.faults) == mostCosts:
		c.left[x.id] = fmt.Errorf("there are more than %d faults, and it is not one of the first", mostCosts)
		return
	}
	trial := c.seen.clone()
	if err := x.repair(&trial); err != nil {
		c.left[x.id] = err
		return
	}
	c.faults = append(c.faults, x)
}

func (w world) clone() world { return world{slices.Clone(w.hosts), slices.Clone(w.settings)} }

// fault is how a finding would be repaired; there is none for what no model knows.
func (c *costing) fault(f check.Finding) (fault, error) {
	x := fault{id: idOf(f)}
	if len(f.Subjects) == 0 {
		return x, nil
	}
	name, key := check.SplitSubject(f.Subjects[0])
	if variable, ok := strings.CutPrefix(key, "env:"); ok {
		return c.settingFault(x, f.Rule, variable)
	}
	host := slices.IndexFunc(c.seen.hosts, func(inv *probe.Inventory) bool { return inv.Host.Name == name })
	if name == "" && len(c.seen.hosts) == 1 {
		host = 0
	}
	if host < 0 {
		return x, nil
	}
	f.Subjects = slices.Clone(f.Subjects)
	for i, s := range f.Subjects {
		_, f.Subjects[i] = check.SplitSubject(s)
	}
	switch {
	case slices.Contains(linkRules, f.Rule):
		x.links = func(p *Prediction) []*graph.Link { return linksOf(p.topos[host], f) }
		x.repair = func(w *world) error { return w.repairLink(host, f) }
	case f.Rule == "hca-port-down" || f.Rule == "hca-rate-low":
		x.repair = func(w *world) error { return w.repairPorts(host, f) }
	}
	return x, nil
}

func (c *costing) settingFault(x fault, rule, variable string) (fault, error) {
	i := slices.IndexFunc(c.seen.settings, func(s check.Precedence) bool { return s.Name == variable })
	switch {
	case slices.Contains(stops, rule) || strings.HasPrefix(rule, "measured-"):
		return x, nil
	case slices.ContainsFunc(c.alternatives, func(a check.Alternative) bool { return a.Variable == variable }):
		return x, fmt.Errorf("%s was measured, which is better than NCCL's model: see measured-alternative-better", variable)
	case i < 0:
		return x, fmt.Errorf("which value of %s holds is not known", variable)
	}
	var o ModelOptions
	o.Set(variable, c.seen.settings[i].Value.Or(""))
	if s := o.Settings[0]; !s.Used {
		return x, fmt.Errorf("%s: %s", variable, s.Why)
	}
	x.repair = func(w *world) error {
		w.settings = slices.DeleteFunc(w.settings, func(s check.Precedence) bool { return s.Name == variable })
		return nil
	}
	return x, nil
}

// repairLink brings a link to its maximum.
func (w *world) repairLink(host int, f check.Finding) error {
	t, err := graph.Build(w.hosts[host])
	if err != nil {
		return err
	}
	inv, ok := repaired(t, f)
	if !ok {
		return errors.New("where the NVLinks of these GPUs lead is not known")
	}
	w.hosts[host] = inv
	return nil
}

// repairPorts makes ports ACTIVE, as fast as the fastest of their model.
func (w *world) repairPorts(host int, f check.Finding) error {
	t, err := graph.Build(w.hosts[host])
	if err != nil {
		return err
	}
	inv := *t.Inv
	inv.HCAs = slices.Clone(inv.HCAs)
	for i := range inv.HCAs {
		h := &inv.HCAs[i]
		h.Ports = slices.Clone(h.Ports)
		for k := range h.Ports {
			p := &h.Ports[k]
			if !slices.Contains(f.Subjects, fmt.Sprintf("port:%s/%d", h.Name, p.Port)) {
				continue
			}
			rate := fullRate(t, h.Name, f.Rule == "hca-rate-low")
			if rate == 0 {
				return errors.New("what the port would carry is not known: no port of its model is ACTIVE")
			}
			p.State, p.Rate = probe.PortActive, probe.Some(rate)
		}
	}
	w.hosts[host] = &inv
	return nil
}

// fullRate is the rate of the fastest ACTIVE port of an HCA's model, or also what the
// model can; 0 = not known.
func fullRate(t *graph.Topology, name string, can bool) (rate probe.Rate) {
	own := t.Node("hca:" + name)
	if own == nil || own.PCI == nil {
		return 0
	}
	for _, n := range t.Of(graph.KindHCA) {
		if n.PCI == nil || n.PCI.Vendor != own.PCI.Vendor || n.PCI.Device != own.PCI.Device {
			continue
		}
		for _, p := range n.HCA.Ports {
			if p.Active() {
				rate = max(rate, p.Rate.Or(0))
			}
		}
	}
	if adapter, ok := check.AdapterOf(own.PCI); ok && can {
		rate = max(rate, adapter.Fastest)
	}
	return rate
}

// price sets what a finding costs, or why that is not known.
func (c *costing) price(l *Loss, f check.Finding) {
	for _, alt := range c.alternatives {
		if f.Rule == "measured-alternative-better" && alt.String() == f.Observed && len(alt.Gains) > 0 {
			l.alternative(alt)
			return
		}
	}
	id := idOf(f)
	switch err, left := c.left[id]; {
	case f.Rule == "log-socket-fallback":
		c.sockets(l, f)
	case left:
		l.CostWhy = err.Error()
	case slices.ContainsFunc(c.faults, func(x fault) bool { return x.id == id }):
		c.predicted(l, id)
	default:
		l.CostWhy = unpriced(f.Rule)
	}
}

// sockets sets what a host loses by TCP: the rates of its data HCAs against those of
// the interfaces that the job uses, both of the adapters and not what a job reaches.
func (c *costing) sockets(l *Loss, f check.Finding) {
	l.CostWhy = "the rates of the RDMA adapters and of the interfaces that the job uses are not both known"
	for _, inv := range c.seen.hosts {
		if !slices.Contains(f.Subjects, check.HostKey(inv.Host.Name)) {
			continue
		}
		t, err := graph.Build(inv)
		if err != nil {
			continue
		}
		rdma, tcp := rdmaRate(t), c.socketRate(inv)
		if rdma == 0 || tcp == 0 {
			continue
		}
		l.cost(rdma.GBs(), tcp.GBs(), tcp.GBs(), rdma.GBs())
		l.CostOf = fmt.Sprintf("%.4g GB/s that the data HCAs of %s carry", rdma.GBs(), inv.Host.Name)
		l.CostWhy = ""
		if !l.Costs() {
			l.CostWhy = "the interfaces are as fast as the data HCAs; what TCP takes is not known"
		}
		return
	}
}

// rdmaRate is what a host's data HCAs carry together; 0 = not known.
func rdmaRate(t *graph.Topology) (sum probe.Rate) {
	for _, n := range check.DataHCAs(t) {
		for _, p := range n.HCA.Ports {
			rate, known := p.Rate.Get()
			if p.Active() && !known {
				return 0
			}
			if p.Active() {
				sum += rate
			}
		}
	}
	return sum
}

// socketRate is what the interfaces carry that the job uses on a host; 0 = not known.
func (c *costing) socketRate(inv *probe.Inventory) (sum probe.Rate) {
	var seen []string
	for _, i := range c.job.Interfaces {
		if i.Use != probe.UseSocket || i.Host != inv.Host.Name || slices.Contains(seen, i.Name) {
			continue
		}
		seen = append(seen, i.Name)
		d := slices.IndexFunc(inv.NetDevs, func(d probe.NetDev) bool { return d.Name == i.Name })
		if d < 0 || !inv.NetDevs[d].Speed.Known() {
			return 0
		}
		sum += inv.NetDevs[d].Speed.Or(0)
	}
	return sum
}

// predicted sets the cost where the fault costs most.
func (c *costing) predicted(l *Loss, id string) {
	for _, s := range c.scopes() {
		x := *l
		var gbs [4]float64
		var err error
		for i, repaired := range []func(string) bool{
			func(string) bool { return true },
			func(other string) bool { return other != id },
			func(string) bool { return false },
			func(other string) bool { return other == id },
		} {
			if gbs[i], err = c.gbs(s, repaired); err != nil {
				break
			}
		}
		if err != nil {
			if !l.CostShare.Known() {
				l.CostWhy = err.Error()
			}
			continue
		}
		x.cost(gbs[0], gbs[1], gbs[2], gbs[3])
		x.CostOf = fmt.Sprintf("%.4g GB/s AllReduce bus bandwidth %s", gbs[0], s.text)
		x.CostWhy = ""
		if !x.Costs() {
			x.CostWhy = "by NCCL's model it takes nothing from a large AllReduce"
		}
		if !l.CostShare.Known() || x.CostShare.Or(0) > l.CostShare.Or(0)+leastShare {
			*l = x
		}
	}
}

// gbs is the bus bandwidth of a large AllReduce where the chosen faults are repaired.
func (c *costing) gbs(s scope, repaired func(id string) bool) (float64, error) {
	w, key := c.seen.clone(), fmt.Sprint(s.hosts)
	var present []fault
	for i, x := range c.faults {
		if !repaired(x.id) {
			present = append(present, x)
			continue
		}
		key += fmt.Sprint(" ", i)
		if err := x.repair(&w); err != nil {
			return 0, err
		}
	}
	p, ok := c.known[key]
	if !ok {
		p.gbs, p.err = c.predict(s, w, present)
		c.known[key] = p
	}
	return p.gbs, p.err
}

func (c *costing) predict(s scope, w world, present []fault) (float64, error) {
	o := ModelOptions{Search: search.Options{Hosts: s.hosts}}
	o.NCCL.Version = c.version
	for _, set := range w.settings {
		o.Set(set.Name, set.Value.Or(""))
	}
	p, err := PredictHosts(w.hosts, o)
	switch {
	case err != nil:
		return 0, err
	case p.Unknown != nil:
		return 0, p.Unknown
	case p.Untimed != nil:
		return 0, p.Untimed
	case p.Search.Ranks < 2:
		return 0, errors.New("a single GPU has nobody to send to")
	case p.Search.NetAssumed && p.Search.Nodes > 1:
		return 0, errors.New("no network between hosts is known")
	}
	choice, ok := p.Model.Choose(model.AllReduce, costBytes)
	if !ok {
		return 0, errors.New("the settings leave NCCL nothing to run an AllReduce with")
	}
	factor, _ := model.BusFactor(model.AllReduce, p.Search.Ranks)
	gbs := factor * costBytes / choice.TimeUS / 1e3
	return gbs * p.carried(choice.Algo, present), nil
}

// carried is the part of what NCCL plans that slow links can carry: all channels of a
// collective wait for the slowest.
func (p *Prediction) carried(algo string, present []fault) float64 {
	pattern := map[string]search.Pattern{model.Ring: search.Ring, model.Tree: search.Tree, model.NVLS: search.NVLS, model.NVLSTree: search.NVLS}[algo]
	g, ok := p.Search.Graph(pattern)
	share := 1.0
	for _, x := range present {
		if !ok || x.links == nil {
			continue
		}
		links := x.links(p)
		_, planned := p.crossing(g, links)
		c := LinkCost{CanGBs: carried(links)}
		share = min(share, c.Share(GraphCost{Planned: planned}))
	}
	return share
}
