package check

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Across is the whole world of a rule that judges jobs, or hosts against each
// other.
type Across struct {
	reporter
	Job   *probe.Job
	Hosts []*graph.Topology // by name

	several bool       // sources or jobs name more than one host
	judged  []*message // what each of Job.Events is; nil = nothing that a rule reads
	shared  *shared
}

// reporter takes in what a rule has to say.
type reporter struct {
	rule *Rule
	out  *Result
}

// Host returns the host of a name, however it is spelled; nil where only a job
// speaks of it.
func (a *Across) Host(name string) *graph.Topology {
	if len(a.Hosts) == 1 && (name == "" || a.Hosts[0].Inv.Host.Name == "") {
		return a.Hosts[0]
	}
	for _, h := range a.Hosts {
		if probe.SameHostName(h.Inv.Host.Name, name) {
			return h
		}
	}
	return nil
}

// Key is the subject for an object of a host: its node key, below the host's
// name where there are several hosts.
func (a *Across) Key(host, key string) string {
	if host == "" || !a.several {
		return key
	}
	return host + "/" + key
}

// HostKey is the subject for a host; "" is a host whose name is not known.
func HostKey(name string) string {
	if name == "" {
		name = "localhost"
	}
	return "host:" + name
}

// names lists the hosts that sources and jobs name.
func (a *Across) names() []string { return a.shared.names }

// shared is what several rules need, gathered once.
type shared struct {
	names []string
	env   *settings
	facts map[*graph.Topology]*facts // see factsOf
}

func share(job *probe.Job, hosts []*graph.Topology) *shared {
	s := &shared{names: job.JobHosts(), env: gatherSettings(job, hosts), facts: map[*graph.Topology]*facts{}}
	for _, h := range hosts {
		if n := h.Inv.Host.Name; !slices.ContainsFunc(s.names, func(o string) bool { return probe.SameHostName(o, n) }) {
			s.names = append(s.names, n)
		}
	}
	return s
}

// RunCluster applies the rules to every host and to all together. Subjects of a
// host begin with its name where there are several. An error is an inventory of
// which no topology can be built.
func RunCluster(c *probe.Cluster, rules []Rule) (Result, error) { return runCluster(c, nil, rules) }

func runCluster(c *probe.Cluster, since *Since, rules []Rule) (Result, error) {
	topos := make([]*graph.Topology, len(c.Hosts))
	results := make([]Result, len(c.Hosts))
	errs := make([]error, len(c.Hosts))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(c.Hosts)) {
		wg.Go(func() {
			for i := range next {
				if topos[i], errs[i] = graph.Build(c.Hosts[i]); errs[i] == nil {
					results[i] = runHost(topos[i], &c.Job, since.of(c.Hosts[i], len(c.Hosts)), rules)
				}
			}
		})
	}
	for i := range c.Hosts {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return Result{}, fmt.Errorf("host %s: %w", c.Hosts[i].Host.Name, err)
		}
	}
	if len(topos) > 1 {
		for i := range results {
			results[i].prefix(c.Hosts[i].Host.Name)
		}
	}
	out := concat(results)
	for _, g := range c.Gaps {
		how := g.How
		if how == "" {
			how = "see the reason"
		}
		out.Gaps = append(out.Gaps, Gap{Rule: InventoryGaps, Subjects: []string{"file:" + g.What}, Reason: g.Why, How: how})
	}
	runAcross(&c.Job, topos, rules, &out)
	out.finish(rules)
	return out, nil
}

// runAcross runs the rules about jobs and about hosts together.
func runAcross(job *probe.Job, hosts []*graph.Topology, rules []Rule, out *Result) {
	world := Across{Job: job, Hosts: hosts, shared: share(job, hosts), judged: make([]*message, len(job.Events))}
	world.several = len(world.names()) > 1
	for i, e := range job.Events {
		world.judged[i] = messageOf(e)
	}
	run := func(r *Rule) {
		a := world
		a.reporter = reporter{r, out}
		r.Across(&a)
	}
	run(&Rule{ID: InventoryGaps, Across: unjudgedEvents})
	for i := range rules {
		if rules[i].Across != nil {
			run(&rules[i])
		}
	}
}

// prefix sets the host's name before each subject that is not the host itself,
// and joins gaps that are alike.
func (r *Result) prefix(host string) {
	name := func(subjects []string) []string {
		out := make([]string, len(subjects))
		for i, s := range subjects {
			if out[i] = host + "/" + s; strings.HasPrefix(s, "host:") {
				out[i] = s
			}
		}
		return out
	}
	for i := range r.Findings {
		r.Findings[i].Subjects = name(r.Findings[i].Subjects)
	}
	for i := range r.Gaps {
		r.Gaps[i].Subjects = name(r.Gaps[i].Subjects)
	}
}

// finish sorts, joins gaps that differ only in their subjects, and leaves one
// finding per cause.
func (r *Result) finish(rules []Rule) {
	r.joinGaps()
	r.sort()
	r.Findings = once(r.Findings, rules)
	r.sort()
}

func (r *Result) joinGaps() {
	type key struct{ rule, reason, how string }
	at := map[key]int{}
	out := make([]Gap, 0, len(r.Gaps))
	for _, g := range r.Gaps {
		k := key{g.Rule, g.Reason, g.How}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			g.Subjects = slices.Clone(g.Subjects)
			out = append(out, g)
			continue
		}
		out[i].Subjects = append(out[i].Subjects, g.Subjects...)
	}
	for i := range out {
		slices.SortFunc(out[i].Subjects, compareKeys)
		out[i].Subjects = slices.Compact(out[i].Subjects)
	}
	r.Gaps = out
}
