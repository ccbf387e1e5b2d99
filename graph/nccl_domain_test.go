package graph

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// Two hosts of one NVLink domain: their GPUs reach each other over NVLink and
// only their own adapters.
func TestNCCLDomain(t *testing.T) {
	var hosts []*Topology
	for range 2 {
		f, err := os.Open(filepath.Join(oracleDir, "gb200x4-4nic.xml"))
		if err != nil {
			t.Skip(err)
		}
		top, err := Build(decode(t, "gb200x4-4nic.xml", f))
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, top)
	}
	v, err := NCCLDomain(hosts, NCCLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.GPUs) != 8 || len(v.Nets) != 8 || len(v.Groups) != 1 || v.Hosts != 2 || v.Dev(7) != 7 {
		t.Fatalf("%d GPUs, %d NETs, groups %v", len(v.GPUs), len(v.Nets), v.Groups)
	}
	for i := range v.GPUs {
		for j := range v.GPUs {
			if p := v.Path(i, j); i != j && (p.Class != NVL || p.GBs != 721.8 || !p.P2P) {
				t.Errorf("GPU %d to %d: %v %g GB/s", i, j, p.Class, p.GBs)
			}
		}
		for k := range v.Nets {
			own := v.Nodes[v.Nets[k]].Host == v.Nodes[v.GPUs[i]].Host
			if p := v.PathToNet(i, k); own != (p.Class != DIS) {
				t.Errorf("GPU %d to NET %d: %v", i, k, p.Class)
			}
		}
		if nets := v.NetsOf(i); len(nets) == 0 || slices.ContainsFunc(nets, func(k int) bool { return v.PathToNet(i, k).Class == DIS }) {
			t.Errorf("GPU %d prefers NETs %v", i, nets)
		}
	}
	// Without NVLink between them they are nodes of their own.
	v, err = NCCLDomain(hosts, NCCLOptions{P2PLevel: LOC})
	if err != nil {
		t.Fatal(err)
	}
	for i, group := range v.Groups {
		for _, g := range group {
			if v.Nodes[v.GPUs[g]].Host != v.Nodes[v.GPUs[group[0]]].Host {
				t.Errorf("group %d %v spans hosts", i, group)
			}
		}
	}
}

// Hosts of one NVLink domain share a view, others do not.
func TestNCCLHosts(t *testing.T) {
	host := func(name, uuid, hash string, clique uint32) *Topology {
		m := twoSwitches()
		m.inv.Host = probe.Host{Name: name, Hash: hash}
		if hash != "" {
			m.inv.Host.Origins = []probe.Origin{{Source: probe.SourceNCCLXML, Where: "topo.xml:2", Fields: []string{"hash"}}}
		}
		if uuid != "" {
			for i := range m.inv.GPUs {
				m.inv.GPUs[i].Fabric = &probe.Fabric{State: "completed", ClusterUUID: uuid, CliqueID: probe.Some(clique)}
			}
		}
		return build(t, m)
	}
	a, b := host("a", "5a01", "", 1), host("b", "5a01", "", 1)
	for _, c := range []struct {
		name  string
		hosts []*Topology
		o     NCCLOptions
		want  []int // hosts per view
	}{
		{"nothing known", []*Topology{host("a", "", "", 0), host("b", "", "", 0)}, NCCLOptions{}, []int{1, 1}},
		{"one clique, another between", []*Topology{a, host("x", "5a01", "", 2), b}, NCCLOptions{}, []int{2, 1}},
		{"a fabric of one host", []*Topology{host("a", "00000000-0000-0000-0000-000000000000", "", 0), host("b", "00000000-0000-0000-0000-000000000000", "", 0)}, NCCLOptions{}, []int{1, 1}},
		{"one topology file", []*Topology{host("a", "", "0x1", 0), host("b", "", "0x2", 0)}, NCCLOptions{}, []int{2}},
		{"off by setting", []*Topology{a, b}, NCCLOptions{NoMNNVL: true}, []int{1, 1}},
		{"before there was any", []*Topology{a, b}, NCCLOptions{Version: 22003}, []int{1, 1}},
	} {
		views, err := NCCLHosts(c.hosts, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, v := range views {
			got = append(got, v.Hosts)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v hosts per view, want %v", c.name, got, c.want)
		}
	}
}
