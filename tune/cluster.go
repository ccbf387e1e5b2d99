package tune

import (
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

// AdviseCluster decides on every variable for the hosts of a cluster together:
// what all of them need stands once, what only some need names them. Hosts that
// only a job's output shows are left out where others are known better. An error
// is an inventory of which no topology can be built.
func AdviseCluster(c *probe.Cluster) (Plan, error) {
	res, err := check.RunCluster(c, check.All())
	if err != nil {
		return Plan{}, err
	}
	hosts := c.Hosts
	if len(hosts) == 0 {
		inv, _ := c.Single()
		hosts = []*probe.Inventory{inv}
	}
	if known := slices.DeleteFunc(slices.Clone(hosts), unseen); len(known) > 0 {
		hosts = known
	}
	var plans []Plan
	var names []string
	for _, h := range hosts {
		topo, err := graph.Build(h)
		if err != nil {
			return Plan{}, err
		}
		about := res
		if len(c.Hosts) > 1 {
			about = ofHost(res, h.Host.Name)
		}
		plans, names = append(plans, advise(topo, &c.Job, about)), append(names, h.Host.Name)
	}
	p := joinPlans(plans, names)
	p.Findings, p.Gaps = res.Findings, res.Gaps
	return p, nil
}

// unseen reports a host of which no source but a job's output tells.
func unseen(inv *probe.Inventory) bool {
	return check.OnlyInJobs(inv) || len(inv.GPUs)+len(inv.HCAs)+len(inv.NetDevs)+len(inv.PCI) == 0
}

// ofHost keeps the findings about one host, and those about no host.
func ofHost(res check.Result, host string) check.Result {
	return check.Result{Gaps: res.Gaps, Findings: slices.DeleteFunc(slices.Clone(res.Findings), func(f check.Finding) bool {
		return !slices.ContainsFunc(f.Subjects, func(s string) bool {
			h, key := check.SplitSubject(s)
			named, isHost := strings.CutPrefix(key, "host:")
			return h == host || h == "" && (!isHost || named == host)
		})
	})}
}

// joinPlans puts the plans of hosts together.
func joinPlans(plans []Plan, hosts []string) Plan {
	if len(plans) == 1 {
		return plans[0]
	}
	out := Plan{Schema: Schema, Hosts: hosts, Variables: []Variable{}, Declined: []Declined{}}
	var shapes, versions []string
	for i, p := range plans {
		shapes = append(shapes, p.Fingerprint)
		if p.NCCL != "" && !slices.Contains(versions, p.NCCL) {
			versions = append(versions, p.NCCL)
		}
		for _, v := range p.Variables {
			k := slices.IndexFunc(out.Variables, func(o Variable) bool { return o.Name == v.Name && o.Value == v.Value })
			if k < 0 {
				k = len(out.Variables)
				out.Variables = append(out.Variables, v)
			}
			out.Variables[k].Hosts = append(out.Variables[k].Hosts, hosts[i])
		}
	}
	for i := range out.Variables {
		if len(out.Variables[i].Hosts) == len(hosts) {
			out.Variables[i].Hosts = nil
		}
	}
	for _, d := range plans[0].Declined {
		if !slices.ContainsFunc(out.Variables, func(v Variable) bool { return v.Name == d.Name }) {
			out.Declined = append(out.Declined, Declined{d.Name, reasons(plans, hosts, d.Name), d.Evidence})
		}
	}
	slices.Sort(versions)
	out.NCCL = strings.Join(versions, ", ")
	if out.Fingerprint = shapes[0]; len(slices.Compact(slices.Clone(shapes))) > 1 {
		out.Fingerprint = shortHash(shapes)
	}
	return out
}

// reasons says why the hosts' plans leave a variable alone.
func reasons(plans []Plan, hosts []string, name string) string {
	var order []string
	on := map[string][]string{}
	for i, p := range plans {
		for _, d := range p.Declined {
			if d.Name != name {
				continue
			}
			if on[d.Why] == nil {
				order = append(order, d.Why)
			}
			on[d.Why] = append(on[d.Why], hosts[i])
		}
	}
	if len(order) == 1 {
		return order[0]
	}
	for i, why := range order {
		order[i] = why + " (on " + hostList(on[why]) + ")"
	}
	return strings.Join(order, "; ")
}
