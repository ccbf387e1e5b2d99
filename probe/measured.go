package probe

import "slices"

// JoinMeasured adds what was measured to the sources that tell of the machine. One
// host whose name is not among those that ran the tests, a topology file above all,
// stands for each of them: whoever names it beside the tests says so. Otherwise
// hosts are joined by name.
func JoinMeasured(sources, measured *Cluster) (*Cluster, error) {
	if len(sources.Hosts) == 1 && len(measured.Hosts) > 0 && !slices.ContainsFunc(measured.Hosts, seesPCI) && measured.Host(sources.Hosts[0].Host.Name) == nil {
		host := *sources.Hosts[0]
		out := &Cluster{Schema: ClusterSchema, Hosts: []*Inventory{&host}}
		out.Gaps = append(slices.Clone(sources.Gaps), measured.Gaps...)
		if name := host.Host.Name; name != "" {
			host.Host.Name = ""
			out.Gaps = append(out.Gaps, Gap{What: name, Why: "it is taken to be like the hosts that ran the tests, whose names are others", Origin: Origin{Source: SourceInferred, Where: name}})
		}
		out.AddJob(&sources.Job)
		out.AddJob(&measured.Job)
		out.normalize()
		return out, nil
	}
	var parts []Part
	for _, c := range []*Cluster{sources, measured} {
		for _, inv := range c.Inventories() {
			parts = append(parts, Part{Inv: inv, File: inv.Host.Name})
		}
	}
	return Join(parts)
}

func seesPCI(inv *Inventory) bool { return len(inv.PCI) > 0 }
