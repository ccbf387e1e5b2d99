package expect

import (
	"strings"
	"testing"
)

// The score sheet must not get worse: bounds a little above what was reached.
func TestScore(t *testing.T) {
	s, err := ScoreOf(points(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", s)
	row := func(left, on string) ScoreRow {
		for _, r := range s.Rows {
			if r.LeftOut == left && strings.TrimSpace(r.On) == on {
				return r
			}
		}
		t.Fatalf("no row %s, %s", left, on)
		return ScoreRow{}
	}
	for _, c := range []struct {
		left, on         string
		median, coverage float64
	}{
		{"curve", "2 H200 (recording), from 2 MiB", 0.05, 0.90},
		{"curve", "2 H200 (recording), below 2 MiB", 0.20, 0.90},
		{"curve", "2 H200 (second machine), from 2 MiB", 0.05, 0.90},
		{"curve", "2 H200 (second machine), below 2 MiB", 0.12, 0.90},
		{"machine", "2 H200 (recording), from 2 MiB", 0.05, 0.80}, // counts of channels that the rest never saw
		{"machine", "of these with evidence left, from 2 MiB", 0.04, 0.90},
		{"machine", "2 H200 (recording), below 2 MiB", 0.18, 0.90},
		{"machine", "published (grade A), from 64 MiB", 0.10, 0.85},
		{"machine", "of these with evidence left", 0.04, 0.95},
		{"machine", "of these one node", 0.09, 0.80},
		{"machine", "of these several nodes", 0.125, 0.90},
	} {
		if r := row(c.left, c.on); r.Median > c.median || r.Coverage < c.coverage || r.N < 20 {
			t.Errorf("%s left out, %s: median %.3f of %d points, covered %.2f; want at most %.3f, at least %.2f", c.left, c.on, r.Median, r.N, r.Coverage, c.median, c.coverage)
		}
	}
	if r := row("machine", "of these several nodes"); r.Median >= r.Null {
		t.Errorf("several nodes: median error %.3f, of 0.95 × the node's network rate %.3f", r.Median, r.Null)
	}
	for _, r := range s.Regrets {
		if r.N == 0 || r.Ours > r.NCCL+0.001 {
			t.Errorf("%s: our choice costs %.3f, NCCL's %.3f, over %d sizes", r.On, r.Ours, r.NCCL, r.N)
		}
	}
}
