package search

import "github.com/ncclmap/ncclmap/graph"

// speedList holds the bandwidths per channel that NCCL tries, by lowest compute
// capability ×10 and by the version that brought them (NCCL 2.30.7
// search.cc:1051-1067).
type speedList struct {
	fromCC int
	minor  int // since 2.minor.patch
	patch  int
	intra  []float64 // one node
	inter  []float64 // several
}

var speedLists = []speedList{
	{
		100, 30, 0,
		[]float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18},
		[]float64{96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
	},
	{
		100, 29, 7,
		[]float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18},
		[]float64{96, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
	},
	{
		100, 27, 5,
		[]float64{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18},
		[]float64{96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
	},
	{
		100, 27, 3,
		[]float64{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18},
		[]float64{47.9, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
	},
	{
		100, 25, 0,
		[]float64{90, 80, 70, 60, 50, 40, 30, 24, 20, 19},
		[]float64{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
	},
	{
		90, 0, 0,
		[]float64{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
		[]float64{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
	},
	{
		0, 0, 0,
		[]float64{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
		[]float64{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12},
	},
}

// speedsFor returns the speeds that NCCL tries, falling.
func speedsFor(cc int, v graph.NCCLVersion, inter bool) []mbs {
	for _, s := range speedLists {
		if cc < s.fromCC || !v.AtLeast(s.minor, s.patch) {
			continue
		}
		list := s.intra
		if inter {
			list = s.inter
		}
		out := make([]mbs, len(list))
		for i, x := range list {
			out[i] = toMBs(x)
		}
		return out
	}
	return nil
}
