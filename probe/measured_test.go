package probe

import (
	"slices"
	"testing"
)

func TestJoinMeasured(t *testing.T) {
	gpu := GPU{Index: Some(0)}
	host := func(name string, pci bool) *Inventory {
		inv := &Inventory{Schema: Schema, Host: Host{Name: name}, GPUs: []GPU{gpu}}
		if pci {
			inv.PCI = []PCIDevice{{Addr: MustBDF("0000:1b:00.0")}}
		}
		return inv
	}
	ran := func(names ...string) *Cluster {
		c := &Cluster{Job: Job{Samples: []Sample{{Collective: "AllReduce", Bytes: 8, TimeUS: 1}}}}
		for _, n := range names {
			c.Hosts = append(c.Hosts, host(n, false))
		}
		return c
	}
	for name, x := range map[string]struct {
		sources  *Cluster
		measured *Cluster
		want     []string
		gaps     int
	}{
		"a file stands for all":        {&Cluster{Hosts: []*Inventory{host("", true)}}, ran("a", "b"), []string{""}, 0},
		"so does another host":         {&Cluster{Hosts: []*Inventory{host("x", true)}}, ran("a", "b"), []string{""}, 1},
		"the host itself":              {&Cluster{Hosts: []*Inventory{host("a", true)}}, ran("a.example.org", "b"), []string{"a", "b"}, 0},
		"several sources":              {&Cluster{Hosts: []*Inventory{host("a", true), host("c", true)}}, ran("b"), []string{"a", "b", "c"}, 0},
		"no sources":                   {&Cluster{}, ran("a", "b"), []string{"a", "b"}, 0},
		"measured by what sees itself": {&Cluster{Hosts: []*Inventory{host("x", true)}}, &Cluster{Hosts: []*Inventory{host("a", true)}, Job: ran().Job}, []string{"a", "x"}, 0},
	} {
		c, err := JoinMeasured(x.sources, x.measured)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(c.Names(), x.want) || len(c.Samples) != 1 || len(c.Gaps) != x.gaps {
			t.Errorf("%s: hosts %q, %d samples, gaps %v", name, c.Names(), len(c.Samples), c.Gaps)
		}
	}
}
