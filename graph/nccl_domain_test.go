package graph

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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
