package expect

import (
	"math"
	"testing"

	"github.com/ncclmap/ncclmap/graph/model"
)

// A machine whose links carry a tenth less than others': its own runs tell.
func TestRefine(t *testing.T) {
	f := shipped(t)
	m := h200(8)
	curve := func(f *Fit) *Curve { return f.For(m).Curve(model.AllReduce, model.Ring, model.Simple) }
	var points []Point
	for bytes := int64(2 << 20); bytes <= 8<<30; bytes *= 4 {
		run := Run{model.AllReduce, model.Ring, model.Simple, 24, bytes}
		c := curve(f)
		us := c.at(c.x, model.Simple, 24, bytes)
		us.links /= 0.9
		points = append(points, Point{ID: "here", Machine: m, Run: run, TimeUS: us.total(), LowUS: us.total(), HighUS: us.total(), Grade: Own})
	}
	if x := curve(f).At(2<<20, 24); x.Calibrated {
		t.Errorf("calibrated before: %+v", x)
	}
	better, err := f.Refine(points)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if x := curve(better).At(p.Bytes, 24); !x.Calibrated || math.Abs(x.TimeUS/p.TimeUS-1) > 0.02 {
			t.Errorf("%d bytes: %+v, measured %g", p.Bytes, x, p.TimeUS)
		}
	}
	if x, y := curve(f).At(8<<30, 24), curve(shipped(t)).At(8<<30, 24); x != y {
		t.Error("the fit itself changed")
	}
}
