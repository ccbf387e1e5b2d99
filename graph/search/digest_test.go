package search

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
)

// What a host's searches find does not hang on which hosts are searched with it.
func TestHostsTogether(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	var views []*graph.NCCLView
	for len(views) < 200 {
		data := make([]byte, 60)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		v := viewOf(t, anyHost(data), graph.NCCLOptions{})
		if check(v) == nil {
			views = append(views, v, viewOf(t, anyHost(data), graph.NCCLOptions{}))
		}
	}
	together, err := ComputeHosts(views, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range together.Members {
		alone, err := ComputeHosts([]*graph.NCCLView{views[m.Host], views[m.Host]}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range alone.Members {
			if o.View == m.View && !reflect.DeepEqual(o.Graphs, m.Graphs) {
				t.Fatalf("host %d: %+v together, %+v alone", m.Host, m.Graphs, o.Graphs)
			}
		}
	}
}

func TestDigest(t *testing.T) {
	seen := map[digest]int{}
	for i := range 100 {
		inv := h100x8()
		loseNVLinks(inv, i)
		d := newNode(viewOf(t, inv, graph.NCCLOptions{}), true).digest()
		if other, ok := seen[d]; ok {
			t.Errorf("hosts %d and %d are taken as alike", other, i)
		}
		seen[d] = i
	}
	if a, b := newNode(viewOf(t, h100x8(), graph.NCCLOptions{}), true).digest(), newNode(viewOf(t, h100x8(), graph.NCCLOptions{}), true).digest(); a != b {
		t.Error("a host is not taken as alike to itself")
	}
}
