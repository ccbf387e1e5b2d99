package model

import "testing"

func benchModel(b *testing.B) *Model {
	m, err := New(h100(16), Settings{})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// One estimate after search: below 1 µs.
func BenchmarkEstimate(b *testing.B) {
	m, f := benchModel(b), &Floor{}
	b.ReportAllocs()
	for b.Loop() {
		m.Estimate(AllReduce, 1<<20, f)
	}
}

// All curves of a machine after search, with the table: below 5 ms.
func BenchmarkCurves(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		m, f := benchModel(b), &Floor{}
		for _, coll := range Collectives() {
			for bytes := int64(8); bytes <= 8<<30; bytes *= 2 {
				m.Estimate(coll, bytes, f)
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		benchModel(b)
	}
}
