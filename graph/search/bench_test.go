package search

import (
	"path/filepath"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

func BenchmarkCompute8xH100(b *testing.B) {
	v := viewOf(b, h100x8(), graph.NCCLOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compute(v, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkComputeCubeMesh(b *testing.B) {
	v := readView(b, filepath.Join(oracleDir, "v100x8-cubemesh.xml"), graph.NCCLOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compute(v, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkComputeHardMesh(b *testing.B) {
	v := viewOf(b, hardMeshes()["random"], graph.NCCLOptions{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compute(v, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// 1,250 hosts: one host so many times, hosts of one kind, and hosts that differ.
func BenchmarkCompute1250Hosts(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		v := viewOf(b, h100x8(), graph.NCCLOptions{})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Compute(v, Options{Hosts: 1250}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, change := range map[string]func(inv *probe.Inventory, i int){
		"alike":     func(*probe.Inventory, int) {},
		"different": loseNVLinks,
	} {
		b.Run(name, func(b *testing.B) {
			views := make([]*graph.NCCLView, 1250)
			for i := range views {
				inv := h100x8()
				change(inv, i)
				views[i] = viewOf(b, inv, graph.NCCLOptions{})
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ComputeHosts(views, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// loseNVLinks takes 0 to 2 NVLinks from each GPU, by the digits of i to base 3.
func loseNVLinks(inv *probe.Inventory, i int) {
	for k := range inv.GPUs {
		links, _ := inv.GPUs[k].NVLinks.Get()
		inv.GPUs[k].NVLinks = probe.Some(links[i%3:])
		i /= 3
	}
}
