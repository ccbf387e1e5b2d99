package inspector

import (
	"maps"
	"math"
	"slices"
)

// times counts operations by how long they took. Times are kept to 12 significant
// bits: whole microseconds below 4096 as they are, longer ones to 0.02 %.
type times struct {
	line  int
	count int64
	min   float64
	by    map[float64]int64
}

func rounded(us float64) float64 {
	frac, exp := math.Frexp(us)
	return math.Ldexp(math.Round(frac*4096), exp-12)
}

// add takes in one time unless that needs a new number and none is left.
func (t *times) add(us float64, left *int) bool {
	r := rounded(us)
	if t.by[r] == 0 {
		if *left == 0 {
			return false
		}
		*left--
	}
	t.by[r]++
	if t.count++; t.count == 1 || us < t.min {
		t.min = us
	}
	return true
}

// median is the middle one, or the mean of the two in the middle.
func (t *times) median() float64 {
	lo, hi := (t.count-1)/2, t.count/2
	var before int64
	sum := 0.0
	for _, us := range slices.Sorted(maps.Keys(t.by)) {
		after := before + t.by[us]
		for _, i := range []int64{lo, hi} {
			if before <= i && i < after {
				sum += us / 2
			}
		}
		before = after
	}
	return sum
}
