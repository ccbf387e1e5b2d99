package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

func physical(t testing.TB, inv *probe.Inventory, hosts int) Physical {
	t.Helper()
	top, err := graph.Build(inv)
	if err != nil {
		t.Fatal(err)
	}
	return ComputePhysical(top, hosts)
}

func TestPhysical(t *testing.T) {
	links := func(n int) func(i, j int) int { return func(i, j int) int { return n } }
	for _, c := range []struct {
		name  string
		inv   *probe.Inventory
		hosts int
		want  [3]float64 // all-reduce, in switch, all-gather; 0: none
	}{
		// 18 × 25 GB/s of NVLink and 63 of PCIe: 513 in and out of each GPU, of which a
		// ring of all-reduce moves n/(2(n-1)) to the result.
		{"8 H100", h100x8(), 1, [3]float64{293.13, 512.99, 586.26}},
		// 12 × 25 and 31.5 of PCIe between two.
		{"2 A100, 12 links", mesh(2, 80, links(12)), 1, [3]float64{331.5, 0, 663}},
	} {
		p := physical(t, c.inv, c.hosts)
		got := [3]float64{p.AllReduce.Or(0), p.InSwitch.Or(0), p.AllGather.Or(0)}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 0.01*max(1, c.want[i]) {
				t.Errorf("%s: %.2f, want %.2f", c.name, got, c.want)
				break
			}
		}
	}
	// Over the network no more than a host's ports carry: 8 × 50 GB/s.
	if p := physical(t, h100x8(), 4); p.AllReduce.Or(0) > 400 || p.AllReduce.Or(0) <= 0 || p.InSwitch.Known() {
		t.Errorf("4 hosts: %+v", p)
	}
	if p := physical(t, mesh(1, 80, links(0)), 1); p.AllReduce.Known() {
		t.Errorf("one GPU: %+v", p)
	}
}

// Numbers and the order of things change nothing, a link less never raises a
// bound, and NCCL's model stays below it.
func TestPhysicalProperties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for k := range 12 {
		var some [6][6]int
		for i := range some {
			for j := range some[i] {
				some[i][j] = rnd.IntN(4)
			}
		}
		build := func(order []int, without [2]int) *probe.Inventory {
			return mesh(len(order), 80, func(i, j int) int {
				a, b := min(order[i], order[j]), max(order[i], order[j])
				if n := some[a][b]; without != [2]int{a, b} || n == 0 {
					return n
				}
				return some[a][b] - 1
			})
		}
		same := []int{0, 1, 2, 3, 4, 5}
		base := physical(t, build(same, [2]int{-1, -1}), 1)
		other := slices.Clone(same)
		rnd.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if p := physical(t, build(other, [2]int{-1, -1}), 1); !near(p.AllReduce.Or(-1), base.AllReduce.Or(-1)) || !near(p.AllGather.Or(-1), base.AllGather.Or(-1)) {
			t.Errorf("%d: %+v, in another order %+v", k, base, p)
		}
		for a := range 6 {
			for b := a + 1; b < 6; b++ {
				p := physical(t, build(same, [2]int{a, b}), 1)
				if p.AllReduce.Or(-1) > base.AllReduce.Or(-1)*(1+1e-3) || p.AllGather.Or(-1) > base.AllGather.Or(-1)*(1+1e-3) {
					t.Errorf("%d: without a link %d–%d %v %v, with it %v %v", k, a, b, p.AllReduce, p.AllGather, base.AllReduce, base.AllGather)
				}
			}
		}
		inv := build(same, [2]int{-1, -1})
		r, err := Compute(viewOf(t, inv, graph.NCCLOptions{}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := r.Graph(Ring)
		if ring := float64(g.Channels) * g.BWIntra * 6 / 10; ring > base.AllReduce.Or(-1) {
			t.Errorf("%d: NCCL's rings move %g GB/s, the bound is %v", k, ring, fmt.Sprint(base.AllReduce))
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 2e-4*math.Max(math.Abs(a), 1e-9) }

func BenchmarkPhysical8xH100(b *testing.B) {
	top, err := graph.Build(h100x8())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ComputePhysical(top, 1)
	}
}
