package model

import "fmt"

// Term is one part of a figure. Bandwidth is the product of its terms, latency
// the sum.
type Term struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // GB/s, us, or "" for a count or factor
	Why   string  `json:"why"`  // with the place in NCCL's source
}

// product is a bandwidth in the making.
type product struct {
	terms []Term
	value float64
}

func (x *product) times(value float64, name, unit, why string, args ...any) {
	if len(x.terms) == 0 {
		x.value = 1
	}
	x.value *= value
	x.terms = append(x.terms, Term{name, value, unit, fmt.Sprintf(why, args...)})
}

// atMost lowers the product to a limit, in GB/s.
func (x *product) atMost(limit float64, what string, args ...any) {
	if limit < x.value {
		x.times(limit/x.value, "ceiling", "", "NCCL expects at most %.4g GB/s, not %.4g: %s (tuning.cc:139-212)", limit, x.value, fmt.Sprintf(what, args...))
	}
}

// sum is a latency in the making.
type sum struct {
	terms []Term
	value float64
}

func (x *sum) plus(us float64, name, why string, args ...any) {
	x.value += us
	x.terms = append(x.terms, Term{name, us, "us", fmt.Sprintf(why, args...)})
}
