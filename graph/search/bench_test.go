package search

import (
	"path/filepath"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
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

// 1,250 hosts of one kind, and as many that differ.
func BenchmarkCompute1250Hosts(b *testing.B) {
	top, err := graph.Build(h100x8())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("alike", func(b *testing.B) {
		v := viewOf(b, h100x8(), graph.NCCLOptions{})
		for b.Loop() {
			if _, err := Compute(v, Options{Hosts: 1250}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("different", func(b *testing.B) {
		for b.Loop() {
			views := make([]*graph.NCCLView, 1250)
			for i := range views {
				if views[i], err = top.NCCL(graph.NCCLOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := ComputeHosts(views, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
