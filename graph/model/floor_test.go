package model

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/fixtures/oracle"
	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/nccltests"
	"github.com/ncclmap/ncclmap/probe/open"
)

// searched is a result of so many hosts of GPUs, each one node.
func searched(hosts, gpus int, patterns ...search.Pattern) *search.Result {
	r := &search.Result{View: &graph.NCCLView{}, Ranks: hosts * gpus, Nodes: hosts}
	for h := range hosts {
		r.Members = append(r.Members, search.Member{Host: h, View: r.View, Ranks: make([]int, gpus)})
	}
	for _, p := range patterns {
		r.Graphs = append(r.Graphs, search.Graph{Pattern: p})
	}
	return r
}

func TestFloor(t *testing.T) {
	p := search.Physical{
		GPUs: 8, AllReduce: probe.Some(250.0), AllGather: probe.Some(500.0), Broadcast: probe.Some(450.0), OwnLinks: probe.Some(510.0),
	}
	domain := searched(1, 8)
	domain.View = &graph.NCCLView{Hosts: 2}
	split := searched(1, 8)
	split.Nodes = 2
	for _, c := range []struct {
		name   string
		p      search.Physical
		r      *search.Result
		reduce float64 // GB/s
		gather float64
		others float64
		basis  string
	}{
		{"GPUs reduce", p, searched(1, 8, search.Ring), 250, 500, 450, "the bytes that must cross"},
		{"switches reduce", p, searched(1, 8, search.Ring, search.NVLS), 450, 500, 450, "the bytes that must cross"},
		{"part of the GPUs", p, searched(1, 2, search.Ring), 450, 900, 450, "the bytes that must cross"},
		{"a domain of hosts", p, domain, 510, 510 * 8.0 / 7, 510, "NVLinks between hosts"},
		{"one host, two nodes", p, split, 510, 510 * 8.0 / 7, 510, "one host for several nodes"},
		{"no network", search.Physical{GPUs: 16, Broadcast: probe.Some(0.0), OwnLinks: probe.Some(510.0)}, searched(2, 8), 510, 510 * 16.0 / 15, 510, "network between the hosts is not known"},
		{"nothing known", search.Physical{GPUs: 8}, searched(1, 8), 0, 0, 0, "none"},
		{"one GPU", p, searched(1, 1), 0, 0, 0, "none"},
	} {
		f := FloorOf(c.p, c.r)
		got := [3]float64{f.gbs[allReduce].Or(0), f.gbs[reduceScatter].Or(0), f.gbs[broadcast].Or(0)}
		for i, want := range [3]float64{c.reduce, c.gather, c.others} {
			if math.Abs(got[i]-want) > 1e-9 {
				t.Errorf("%s: %v, want %g %g %g", c.name, got, c.reduce, c.gather, c.others)
				break
			}
		}
		if !strings.Contains(f.Basis, c.basis) {
			t.Errorf("%s: %s", c.name, f.Basis)
		}
	}
}

// samples are what a file of the capture measured; none where it is no such file.
func samples(t testing.TB, name string) (out []probe.Sample) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !nccltests.Sniff(raw) {
		return nil
	}
	run, err := nccltests.Read(filepath.Base(name), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for _, inv := range run.Inventories() {
		out = append(out, inv.Samples...)
	}
	return out
}

// No run on the recorded machine took less than the floor.
func TestFloorAgainstMeasurements(t *testing.T) {
	inv, err := open.ReadHost("example:2xh200-vm") // the topology file has no rates of its PCIe links
	if err != nil {
		t.Fatal(err)
	}
	topo, err := graph.Build(inv)
	if err != nil {
		t.Fatal(err)
	}
	v, err := topo.NCCL(graph.NCCLOptions{Version: 22803})
	if err != nil {
		t.Fatal(err)
	}
	r, err := search.Compute(v, search.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := captureModel(t, search.Options{}, Settings{})
	f := FloorOf(search.ComputePhysical(topo, 1), r)
	names, _ := filepath.Glob(filepath.Join(captureDir, "*.txt"))
	n := 0
	for _, name := range names {
		for _, s := range samples(t, name) {
			e := m.Estimate(s.Collective, s.Bytes, &f)
			low, ok := e.LowUS.Get()
			if !ok {
				t.Fatalf("%s: no floor of %s: %s", name, s.Collective, f.Basis)
			}
			if low > s.TimeUS {
				t.Errorf("%s: %s of %d bytes took %g us, at least %g expected", name, s.Collective, s.Bytes, s.TimeUS, low)
			}
			n++
		}
	}
	t.Logf("%d samples", n)
	if n < 200 {
		t.Errorf("only %d samples compared", n)
	}
}

// What NCCL believes is never below the floor on the oracle's topologies.
func TestFloorAgainstBelief(t *testing.T) {
	cases, err := oracle.Read(oracleDir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range cases {
		see, find, set := settings(t, c)
		r, err := search.Compute(view(t, c.XML, see), find)
		if err != nil {
			t.Fatal(err)
		}
		comm, err := CommOf(r)
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(comm, set)
		if err != nil {
			t.Fatal(err)
		}
		f := FloorOf(search.ComputePhysical(topology(t, c.XML), c.Hosts), r)
		for _, coll := range Modelled() {
			e := m.Estimate(coll, 8<<30, &f)
			us, known := e.NCCLTimeUS.Get()
			if low, ok := e.LowUS.Get(); known && ok {
				n++
				if low > us {
					t.Errorf("%s: %s: NCCL believes in %g us, at least %g expected (%s)", c.Name, coll, us, low, f.Basis)
				}
			}
		}
	}
	t.Logf("%d figures", n)
	if len(cases) > 0 && n < 300 {
		t.Errorf("only %d figures compared", n)
	}
}

func TestBottleneck(t *testing.T) {
	for _, c := range []struct {
		file string
		o    search.Options
		want string
	}{
		{"h100x8-8nic.xml", search.Options{}, "ring GPU 0 to NVS 0 (NVL): 12 channels use 360 of 370.8 GB/s\n" +
			"tree GPU 0 to NVS 0 (NVL): 12 channels use 360 of 370.8 GB/s\n" +
			"nvls GPU 0 to NVS 0 (NVL): 8 channels use 320 of 370.8 GB/s"},
		{"h100x8-8nic.xml", search.Options{Hosts: 2, NoNVLS: true}, "ring GPU 0 to PCI 0 (PCI): 1 channel uses 48 of 48 GB/s\n" +
			"tree GPU 0 to PCI 0 (PCI): 1 channel uses 48 of 48 GB/s"},
		{"l40sx8-2nic.xml", search.Options{}, "ring GPU 0 to PCI 0 (PCI): 1 channel uses 24 of 24 GB/s\n" +
			"tree GPU 0 to PCI 0 (PCI): 1 channel uses 22.5 of 24 GB/s"},
		{"a10x4-pcie-nonic.xml", search.Options{}, "ring CPU 0 to CPU 1 (SYS): 1 channel uses 10 of 10 GB/s\n" +
			"tree CPU 0 to CPU 1 (SYS): 1 channel uses 10 of 10 GB/s"},
		{"v100x8-cubemesh.xml", search.Options{}, "ring GPU 0 to GPU 1 (NVL): 1 channel uses 20 of 20 GB/s\n" +
			"tree GPU 0 to GPU 1 (NVL): 1 channel uses 20 of 20 GB/s"},
	} {
		r, err := search.Compute(view(t, filepath.Join(oracleDir, c.file), graph.NCCLOptions{}), c.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range Bottlenecks(r) {
			got = append(got, fmt.Sprintf("%s %s", b.Pattern, b))
		}
		if got := strings.Join(got, "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.file, got, c.want)
		}
	}
}

// The search charges no link with more than it has, so neither does the account of
// it: over NCCL's own topologies, but for the fifth that Intel's host bridges cost.
func TestNoLinkOverfull(t *testing.T) {
	cases, err := oracle.Read(oracleDir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		see, find, _ := settings(t, c)
		r, err := search.Compute(view(t, c.XML, see), find)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range Bottlenecks(r) {
			if b.UsedGBs > b.GBs+1e-6 {
				t.Errorf("%s: %s: %v", c.Name, b.Pattern, b)
			}
		}
	}
}
