package expect

import (
	"cmp"
	"slices"
	"strings"
)

// Refine returns a fit that was corrected by runs of the machine at hand: four
// factors, on the launch, the kernel, the rate of the links and that of the network.
// The runs are evidence then; the intervals stay as they were.
func (f *Fit) Refine(points []Point) (*Fit, error) {
	x := newFitted(f.Parameters)
	start := slices.Clone(x.x)
	x.prior = func(name string) (mean, sd float64) {
		if strings.HasPrefix(name, here) {
			return 0, hereSD
		}
		if i, ok := x.at[name]; ok && i < len(start) {
			return start[i], fixed
		}
		return prior(name)
	}
	if err := x.fit(points); err != nil {
		return nil, err
	}
	out := *f
	out.Parameters = x.parameters()
	out.Evidence = slices.Concat(f.Evidence, evidenceOf(points))
	slices.SortStableFunc(out.Evidence, func(a, b Evidence) int { return cmp.Compare(a.key(), b.key()) })
	return &out, nil
}
