package tune_test

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/open"
	"github.com/ncclmap/ncclmap/tune"
)

// Hosts like one of an NVLink domain are one node, as far as a domain reaches.
func TestNodesOfOneDomain(t *testing.T) {
	predict := func(source string, hosts int, o tune.ModelOptions, change func(*probe.Inventory)) tune.Prediction {
		t.Helper()
		inv, err := open.ReadHost(source)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(inv)
		}
		o.Search.Hosts = hosts
		p, err := tune.Predict(inv, o)
		if err != nil || p.Unknown != nil {
			t.Fatal(err, p.Unknown)
		}
		return p
	}
	rack, trays := predict("example:gb200-nvl72", 1, tune.ModelOptions{}, nil), predict("example:gb200x4", 18, tune.ModelOptions{}, nil)
	if len(rack.Search.Graphs) != len(trays.Search.Graphs) {
		t.Fatalf("%d graphs, want %d", len(trays.Search.Graphs), len(rack.Search.Graphs))
	}
	for i, want := range rack.Search.Graphs {
		if g := trays.Search.Graphs[i]; g.Channels != want.Channels || g.BWIntra != want.BWIntra {
			t.Errorf("%s: %d × %g, want %d × %g as in the rack", g.Pattern, g.Channels, g.BWIntra, want.Channels, want.BWIntra)
		}
	}
	off := tune.ModelOptions{}
	off.Set("NCCL_MNNVL_ENABLE", "0")
	for _, c := range []struct {
		name   string
		hosts  int
		o      tune.ModelOptions
		change func(*probe.Inventory)
		nodes  int
		told   string
	}{
		{"one rack", 18, tune.ModelOptions{}, nil, 1, "as 1 NVLink domain,"},
		{"two racks", 36, tune.ModelOptions{}, nil, 2, "as 2 NVLink domains,"},
		{"a rack and two trays", 20, tune.ModelOptions{}, nil, 2, "as 2 NVLink domains,"},
		{"more than is built one by one", 300, tune.ModelOptions{}, nil, 300, "as separate NVLink domains"},
		{"one host", 1, tune.ModelOptions{}, nil, 1, ""},
		{"off by setting", 2, off, nil, 2, ""},
		{"no fabric", 2, tune.ModelOptions{}, func(inv *probe.Inventory) {
			for i := range inv.GPUs {
				inv.GPUs[i].Fabric = nil
			}
		}, 2, ""},
	} {
		p := predict("example:gb200x4", c.hosts, c.o, c.change)
		told := ""
		for _, a := range p.Assumptions() {
			if strings.Contains(a.Text, "NVLink domain") {
				told = a.Text
			}
		}
		if p.Search.Nodes != c.nodes || p.HostCount() != c.hosts || len(p.Hosts) != 1 || !strings.Contains(told, c.told) || (c.told == "") != (told == "") {
			t.Errorf("%s: %d nodes, %d hosts, %q told; want %d, %d, %q", c.name, p.Search.Nodes, p.HostCount(), told, c.nodes, c.hosts, c.told)
		}
	}
	// A fault that every tray has is looked at once.
	faulty := predict("example:gb200x4-link-missing", 18, tune.ModelOptions{}, nil)
	if costs, _ := faulty.Costs(); len(costs) != 1 || costs[0].Graphs[0].Repaired.Channels != 16 {
		t.Errorf("%+v", costs)
	}
}

// Versions outside the model.
func TestVersionsOfTheModel(t *testing.T) {
	inv, err := open.ReadHost("example:h100x8")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version       graph.NCCLVersion
		unknown, told string
		verified      bool
	}{
		{21200, "2.18.0 to 2.30.7", "", false}, {21906, "", "taken as that", false}, {29900, "", "2.30.7, is used instead", false}, {23007, "", "", true},
	} {
		var o tune.ModelOptions
		o.NCCL.Version = c.version
		p, err := tune.Predict(inv, o)
		if err != nil {
			t.Fatal(err)
		}
		d, told := p.Doc(), ""
		for _, a := range p.Assumptions() {
			if a.Subject == "nccl" {
				told = a.Text
			}
		}
		if !strings.Contains(d.Unknown, c.unknown) || !strings.Contains(told, c.told) || (c.told == "") != (told == "") || d.Verified != c.verified {
			t.Errorf("%d: unknown %q, told %q, verified %v", c.version, d.Unknown, told, d.Verified)
		}
	}
}
