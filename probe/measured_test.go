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
		m, err := JoinMeasured(x.sources, x.measured)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := m.All
		if len(m.Jobs) != 1 || m.Jobs[0] != c {
			t.Errorf("%s: %d jobs", name, len(m.Jobs))
		}
		if !slices.Equal(c.Names(), x.want) || len(c.Samples) != 1 || len(c.Gaps) != x.gaps {
			t.Errorf("%s: hosts %q, %d samples, gaps %v", name, c.Names(), len(c.Samples), c.Gaps)
		}
	}
}

// Several runs are jobs of their own and one cluster.
func TestJoinMeasuredRuns(t *testing.T) {
	run := func(host, setting string) *Cluster {
		return &Cluster{Hosts: []*Inventory{{Schema: Schema, Host: Host{Name: host}}}, Job: Job{Env: []EnvSetting{{Name: "NCCL_ALGO", Value: setting}}}}
	}
	file := &Inventory{Schema: Schema, PCI: []PCIDevice{{Addr: MustBDF("0000:1b:00.0")}}}
	m, err := JoinMeasured(&Cluster{Hosts: []*Inventory{file}, Job: Job{Env: []EnvSetting{{Name: "NCCL_DEBUG", Value: "INFO"}}}}, run("a", "Ring"), run("b", "Tree"))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.All.Hosts) != 1 || len(m.All.Env) != 3 || len(m.Jobs) != 2 || len(m.Jobs[1].Hosts) != 1 || len(m.Jobs[1].Env) != 2 || m.Jobs[1].Env[1].Value != "Tree" {
		t.Errorf("%+v %+v", m.All.Env, m.Jobs)
	}
	if m, err = JoinMeasured(run("a", "Ring")); err != nil || len(m.Jobs) != 1 || m.All != m.Jobs[0] {
		t.Errorf("%+v %v", m, err)
	}
}
