package expect

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

func points(t testing.TB) []Point {
	t.Helper()
	p, err := Points()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The fit that ships is the one of the points that ship. UPDATE_FIT=1 writes it.
func TestShipped(t *testing.T) {
	made, err := Make(points(t))
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_FIT") != "" {
		raw, err := json.MarshalIndent(made, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("data/fit.json", append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	ships, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Parameters) != len(ships.Parameters) || len(made.Evidence) != len(ships.Evidence) {
		t.Fatalf("%d parameters and %d rows of evidence, shipped %d and %d", len(made.Parameters), len(made.Evidence), len(ships.Parameters), len(ships.Evidence))
	}
	for i, p := range made.Parameters {
		if s := ships.Parameters[i]; s.Name != p.Name || math.Abs(s.Value-p.Value) > 0.01 {
			t.Errorf("parameter %+v, shipped %+v", p, s)
		}
	}
}
