package tune

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe/ncclenv"
	"github.com/ncclmap/ncclmap/probe/open"
)

func TestBearingsAreVariables(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range bearings {
		if _, ok := ncclenv.Lookup(b.name); !ok || seen[b.name] || known(b.name) {
			t.Errorf("%s: in the table %v, twice %v, known to the prediction %v", b.name, ok, seen[b.name], known(b.name))
		}
		seen[b.name] = true
	}
}

func TestBears(t *testing.T) {
	inv, err := open.ReadHost("example:h100x8")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set   string
		hosts int
		want  bool
	}{
		{"NCCL_NET=Socket", 2, true}, {"NCCL_NET=Socket", 1, false}, {"NCCL_NET=IB", 2, false},
		{"NCCL_IB_DISABLE=1", 2, true}, {"NCCL_IB_DISABLE=0", 2, false}, {"NCCL_IB_DISABLE=1", 1, false},
		{"NCCL_NET_PLUGIN=ofi", 2, true}, {"NCCL_NET_PLUGIN=none", 2, false}, {"NCCL_NET_PLUGIN=ofi", 1, false},
		{"NCCL_TOPO_FILE=/t.xml", 1, true}, {"NCCL_GRAPH_FILE=/g.xml", 1, true}, {"NCCL_TUNER_PLUGIN=x", 1, true},
		{"NCCL_SOCKET_IFNAME=eth0", 2, false}, {"NCCL_DEBUG=INFO", 2, false}, {"NCCL_IB_TIMEOUT=22", 2, false},
	} {
		var o ModelOptions
		o.Search.Hosts = c.hosts
		name, value, _ := strings.Cut(c.set, "=")
		o.Set(name, value)
		p, err := Predict(inv, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(p.Unmodelled(), "\n"), c.set); got != c.want {
			t.Errorf("%s on %d hosts: bears %v", c.set, c.hosts, got)
		}
	}
	// A value that only running the file tells.
	file, err := ncclenv.Parse("job.sh", strings.NewReader("export NCCL_ALGO=$(cat algo)\nexport NCCL_DEBUG=$X\n"))
	if err != nil {
		t.Fatal(err)
	}
	var o ModelOptions
	o.SetFile(file)
	p, err := Predict(inv, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Unmodelled(); len(got) != 1 || !strings.HasPrefix(got[0], "NCCL_ALGO=") {
		t.Error(got)
	}
}

// NCCL_IB_HCA leaves the adapters that it does not allow out of NCCL's view.
func TestHCASetting(t *testing.T) {
	inv, err := open.ReadHost("example:h100x8")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{"mlx5_1": 1, "mlx5": 8, "=mlx5": 1, "^mlx5_0,mlx5_1": 6, "=mlx5_1:1,mlx5_2:2": 1} {
		var o ModelOptions
		o.Search.Hosts = 2
		o.Set("NCCL_IB_HCA", value)
		p, err := Predict(inv, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(p.View.Nets); got != want {
			t.Errorf("%s: %d nets, want %d", value, got, want)
		}
		if value == "mlx5_1" {
			without := ModelOptions{Sizes: []int64{1 << 30}}
			without.Search.Hosts = 2
			without.WhatIf.Without = []string{"mlx5_0", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7"}
			same, err := Predict(inv, without)
			if err != nil {
				t.Fatal(err)
			}
			p.Options.Sizes = without.Sizes
			got, _ := p.Estimates()
			want, _ := same.Estimates()
			for i := range want {
				if got[i].NCCLTimeUS != want[i].NCCLTimeUS || got[i].LowUS != want[i].LowUS {
					t.Errorf("%s: %+v, want %+v as without the other adapters", value, got[i], want[i])
				}
			}
		}
		if value == "=mlx5" && p.overRDMA() {
			t.Error("=mlx5 names no adapter")
		}
	}
}
