package search

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        Options
		known       bool
		err         string
	}{
		{"NCCL_MIN_NCHANNELS", "32", Options{MinChannels: 32}, true, ""},
		{"NCCL_MAX_CTAS", "8", Options{MaxChannels: 8}, true, ""},
		{"NCCL_CROSS_NIC", "1", Options{CrossNIC: probe.Some(1)}, true, ""},
		{"NCCL_CROSS_NIC", "7", Options{}, true, "not 0, 1 or 2"},
		{"NCCL_NVLS_ENABLE", "0", Options{NoNVLS: true}, true, ""},
		{"NCCL_NVLS_ENABLE", "2", Options{}, true, ""},
		{"NCCL_MAX_NCHANNELS", "few", Options{}, true, "not a number"},
		{"NCCL_P2P_LEVEL", "SYS", Options{}, false, ""},
	} {
		var o Options
		known, err := o.Set(c.name, c.value)
		if known != c.known || !reflect.DeepEqual(o, c.want) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s=%s: %+v, %v, %v", c.name, c.value, o, known, err)
		}
	}
}

// Settings and NCCL's limit bound the communicator's channels.
func TestChannels(t *testing.T) {
	v := viewOf(t, h100x8(), graph.NCCLOptions{})
	for _, c := range []struct {
		o    Options
		want int
	}{
		{Options{}, 24}, {Options{MaxChannels: 8}, 8}, {Options{MinChannels: 32}, 32}, {Options{MinChannels: 32, MaxChannels: 8}, 32}, {Options{MinChannels: 100}, 64},
	} {
		r, err := Compute(v, c.o)
		if err != nil || r.Channels != c.want {
			t.Errorf("%+v: %d channels, %v; want %d", c.o, r.Channels, err, c.want)
		}
		if got := len(r.Rings()); got != c.want {
			t.Errorf("%+v: %d rings", c.o, got)
		}
	}
}

// One host whose NVLinks are down on one GPU lowers what all agree on.
func TestUnequalHosts(t *testing.T) {
	worse := h100x8()
	links, _ := worse.GPUs[3].NVLinks.Get()
	for i := range 9 {
		links[i].State = probe.LinkDown
	}
	good, bad := viewOf(t, h100x8(), graph.NCCLOptions{}), viewOf(t, worse, graph.NCCLOptions{})
	r, err := ComputeHosts([]*graph.NCCLView{good, bad, good}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	own, _ := r.Members[0].Graph(Ring)
	weak, _ := r.Members[1].Graph(Ring)
	agreed, _ := r.Graph(Ring)
	if weak.Channels >= own.Channels || agreed.Channels != weak.Channels || agreed.BWIntra != min(own.BWIntra, weak.BWIntra) || r.Ranks != 24 || r.Nodes != 3 {
		t.Errorf("own %d × %g, of the weak host %d × %g, agreed %d × %g", own.Channels, own.BWIntra, weak.Channels, weak.BWIntra, agreed.Channels, agreed.BWIntra)
	}
	for _, ring := range r.Rings() {
		seen := map[int]bool{}
		for _, rank := range ring {
			seen[rank] = true
		}
		if len(ring) != 24 || len(seen) != 24 || ring[0] != 0 {
			t.Errorf("%v does not visit each rank once", ring)
		}
	}
}

// Each tree has one root and joins all ranks, for any number of nodes.
func TestTreesJoinAll(t *testing.T) {
	v := viewOf(t, h100x8(), graph.NCCLOptions{GPUs: []int{0, 1}})
	for hosts := 1; hosts <= 19; hosts++ {
		r, err := Compute(v, Options{Hosts: hosts})
		if err != nil {
			t.Fatal(err)
		}
		for c, tree := range r.Trees() {
			roots := 0
			for rank, x := range tree {
				if x.Up < 0 {
					roots++
				}
				steps := 0
				for at := rank; tree[at].Up >= 0 && steps <= len(tree); at = tree[at].Up {
					steps++
				}
				if steps > len(tree) {
					t.Fatalf("%d hosts, channel %d: rank %d is in a loop", hosts, c, rank)
				}
				for _, d := range x.Down {
					if d >= 0 && tree[d].Up != rank {
						t.Errorf("%d hosts, channel %d: rank %d has child %d, whose parent is %d", hosts, c, rank, d, tree[d].Up)
					}
				}
			}
			if roots != 1 {
				t.Errorf("%d hosts, channel %d: %d roots", hosts, c, roots)
			}
		}
	}
}

// Hosts without any place for a NIC still have an answer: NCCL's fallback.
func TestNoNetwork(t *testing.T) {
	inv := mesh(4, 80, func(i, j int) int { return 2 })
	inv.PCI, inv.NUMA = nil, nil
	v := viewOf(t, inv, graph.NCCLOptions{})
	if len(v.Nets) > 0 {
		t.Fatalf("%d NETs", len(v.Nets))
	}
	r, err := Compute(v, Options{Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, r)
	if g, _ := r.Graph(Ring); !g.Fallback || g.TypeInter != graph.DIS || len(r.Rings()[0]) != 8 {
		t.Errorf("%+v", g)
	}
	r.Members[0].Loads(r.Graphs[0])
}
