package graph

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// NCCLHosts returns several hosts of one job as NCCL would model them: those of one
// NVLink domain (MNNVL, since 2.21) in one view, all others each in its own. Views
// follow the first host of each.
func NCCLHosts(hosts []*Topology, o NCCLOptions) ([]*NCCLView, error) {
	var groups [][]*Topology
	place := map[string]int{}
	for _, t := range hosts {
		domain := t.domain()
		at, known := place[domain]
		if domain == "" || o.NoMNNVL || !o.Version.AtLeast(21, 0) || !known {
			at = len(groups)
			groups = append(groups, nil)
			place[domain] = at
		}
		groups[at] = append(groups[at], t)
	}
	views := make([]*NCCLView, len(groups))
	for i, g := range groups {
		var err error
		if views[i], err = NCCLDomain(g, o); err != nil {
			return nil, fmt.Errorf("host %s: %w", g[0].Inv.Host.Name, err)
		}
	}
	return views, nil
}

// Domain names the NVLink domain (MNNVL) that the driver says the host is in; ok is
// false where it says none, or NCCL does not use it.
func (t *Topology) Domain(o NCCLOptions) (name string, ok bool) {
	name = t.domain()
	return name, name != "" && !strings.HasPrefix(name, "file ") && !o.NoMNNVL && o.Version.AtLeast(21, 0)
}

// domain names the NVLink domain that a host is in; "" is none of more hosts, or
// unknown. Where the driver does not tell, hosts of one topology file are of one:
// NCCL writes no others together.
func (t *Topology) domain() string {
	name := ""
	for i, n := range t.Of(KindGPU) {
		f := n.GPU.Fabric
		if f == nil || f.State != "completed" || strings.Trim(f.ClusterUUID, "0-.") == "" {
			name = ""
			break
		}
		own := fmt.Sprintf("%s.%d", f.ClusterUUID, f.CliqueID.Or(0))
		if i > 0 && own != name {
			return ""
		}
		name = own
	}
	if name == "" && t.Inv.Host.Hash != "" {
		for _, o := range t.Inv.Host.Origins {
			if o.Source == probe.SourceNCCLXML {
				file, _, _ := strings.Cut(o.Where, ":")
				name = "file " + file
			}
		}
	}
	return name
}
