package probe

import "slices"

// Measured is what runs of tests showed, beside the sources that tell of the
// machine.
type Measured struct {
	All  *Cluster   // everything together
	Jobs []*Cluster // each run with the sources, as its settings are no one else's
}

// JoinMeasured adds runs to the sources. One host whose name is not among those
// that ran a test, a topology file above all, stands for each of them: whoever
// names it beside the tests says so. Otherwise hosts are joined by name. Without
// runs the sources are the only job.
func JoinMeasured(sources *Cluster, runs ...*Cluster) (Measured, error) {
	if len(runs) == 0 {
		return Measured{sources, []*Cluster{sources}}, nil
	}
	var m Measured
	for _, r := range runs {
		job, err := joinRun(sources, r)
		if err != nil {
			return m, err
		}
		m.Jobs = append(m.Jobs, job)
	}
	if len(runs) == 1 {
		m.All = m.Jobs[0]
		return m, nil
	}
	together, err := Join(partsOf(runs...))
	if err != nil {
		return m, err
	}
	m.All, err = joinRun(sources, together)
	return m, err
}

func joinRun(sources, run *Cluster) (*Cluster, error) {
	if len(sources.Hosts) != 1 || len(run.Hosts) == 0 || slices.ContainsFunc(run.Hosts, seesPCI) || run.Host(sources.Hosts[0].Host.Name) != nil {
		return Join(partsOf(sources, run))
	}
	host := *sources.Hosts[0]
	out := &Cluster{Schema: ClusterSchema, Hosts: []*Inventory{&host}}
	out.Gaps = append(slices.Clone(sources.Gaps), run.Gaps...)
	if name := host.Host.Name; name != "" {
		host.Host.Name = ""
		out.Gaps = append(out.Gaps, Gap{What: name, Why: "it is taken to be like the hosts that ran the tests, whose names are others", Origin: Origin{Source: SourceInferred, Where: name}})
	}
	out.AddJob(&sources.Job)
	out.AddJob(&run.Job)
	out.normalize()
	return out, nil
}

func partsOf(clusters ...*Cluster) []Part {
	var parts []Part
	for _, c := range clusters {
		for _, inv := range c.Inventories() {
			parts = append(parts, Part{Inv: inv, File: inv.Host.Name})
		}
	}
	return parts
}

func seesPCI(inv *Inventory) bool { return len(inv.PCI) > 0 }
