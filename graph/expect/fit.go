package expect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Parameter is one number of the form. Values that are sums of several parameters
// are logarithms.
type Parameter struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// priors say what a parameter is without any measurement and how far, as a standard
// deviation of its logarithm, it may stray. The last matching prefix counts.
// Corrections have mean 0.
var priors = []struct {
	prefix   string
	mean, sd float64 // mean of the value itself; 1 for corrections
}{
	{"launch per-gpu", 8, 0.3},
	{"launch single", 15, 0.3},
	{"launch not stated", 25, 0.5},
	{"base LL", 8, 0.5}, {"base LL128", 12, 0.5}, {"base Simple", 17, 0.5},
	{"base ", 1, 0.3},
	{"hop LL", 0.6, 0.5}, {"hop LL128", 1.5, 0.5}, {"hop Simple", 3, 0.5},
	{"hop ", 1, 0.7},
	{"network hop LL", 4, 0.4}, {"network hop LL128", 6, 0.4}, {"network hop Simple", 10, 0.4},
	{"channel LL", 5, 0.3}, {"channel LL128", 15, 0.3}, {"channel Simple", 21, 0.3},
	{"channel ", 1, 0.2},
	{"link", 0.9, 0.2},
	{"link ", 1, 0.2},
	{"link gather", 1, 0.05}, {"link one way", 1, 0.05}, {"link point to point", 1, 0.05},
	{"link PCIe", 0.8, 0.5}, {"link host memory", 0.6, 0.7},
	{"local step", 0.3, 0.5},
	{"network", 0.95, 0.1},
	{"network ", 1, 0.1}, {"network host memory", 0.7, 0.5},
	{"network hop verbs", 1, 0.3}, {"network hop EFA", 2, 0.7}, {"network hop TCPXO", 3, 0.7},
}

// here begins the names of the corrections for one machine, see [Fit.Refine].
const here = "here "

// Deviations of what may not move, and of corrections for one machine.
const (
	fixed  = 1e-4
	hereSD = 0.3
)

// rampSD is how far the rise of rates with size may stray, as a power of the size.
const rampSD = 0.01

// prior of a parameter, as the form adds it up.
func prior(name string) (mean, sd float64) {
	switch {
	case strings.HasPrefix(name, here):
		return 0, fixed // only a user's own samples move them
	case name == "ramp NVLink":
		return 0.01, 0.005
	case name == "ramp two ranks":
		return 0.025, 0.01
	case strings.HasPrefix(name, "ramp "):
		return 0, rampSD
	}
	best := -1
	for i, p := range priors {
		exact := name == p.prefix
		if (exact || strings.HasSuffix(p.prefix, " ") && strings.HasPrefix(name, p.prefix)) && (best < 0 || len(p.prefix) >= len(priors[best].prefix)) {
			best = i
		}
	}
	if best < 0 {
		return 0, 0.2
	}
	return math.Log(priors[best].mean), priors[best].sd
}

// fitted is a parameter vector with its names.
type fitted struct {
	names []string
	at    map[string]int
	x     []float64
	prior func(name string) (mean, sd float64)
}

// index returns the place of a parameter, at its prior where it is new.
func (f *fitted) index(name string) int {
	i, ok := f.at[name]
	if !ok {
		i = len(f.x)
		f.at[name] = i
		mean, _ := f.prior(name)
		f.names, f.x = append(f.names, name), append(f.x, mean)
	}
	return i
}

func newFitted(params []Parameter) *fitted {
	f := &fitted{at: map[string]int{}, prior: prior}
	for _, p := range params {
		f.x[f.index(p.Name)] = p.Value
	}
	return f
}

func (f *fitted) parameters() []Parameter {
	out := make([]Parameter, len(f.x))
	for i, name := range f.names {
		out[i] = Parameter{name, round(f.x[i])}
	}
	slices.SortFunc(out, func(a, b Parameter) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// noise is the spread to expect of a measured time, as a standard deviation of its
// logarithm: launches below 2 MiB differ by half, larger ones by a percent or two;
// published figures come from other hands.
func noise(p *Point) float64 {
	sd := 0.03
	if p.Bytes < smallBytes {
		sd = 0.12
	}
	if p.LowUS == 0 && p.Bytes < smallBytes {
		sd = 0.25 // one launch
	}
	if p.Published() {
		sd = max(2*sd, 0.05)
		if p.Machine.Nodes > 1 {
			sd *= 2
		}
		if p.Bytes < midBytes {
			sd = 0.4
		}
	}
	return sd
}

// round keeps what a file needs.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// robust is the residual, in standard deviations, from which on a point counts
// less: a few runs are odd.
const robust = 2

// fit finds the parameters that fit the points best (least squares of logarithms
// with the priors, by Levenberg and Marquardt), from those that f has.
func (f *fitted) fit(points []Point) error {
	type row struct {
		*Point
		shape
		sd   float64
		uses []int
	}
	var rows []row
	for i := range points {
		p := &points[i]
		s, ok := newShape(&p.Machine, &p.Run, f.index)
		if !ok {
			continue
		}
		uses := slices.Concat(s.launch, s.base, s.hop, s.netHop, s.channel, s.link, s.ramp, s.local, s.net)
		slices.Sort(uses)
		rows = append(rows, row{p, s, noise(p), slices.Compact(uses)})
	}
	n := len(f.x)
	off := func(r *row, x []float64) float64 {
		t := r.at(x, r.Proto, r.Channels, r.Bytes)
		return (math.Log(t.total()) - math.Log(r.TimeUS)) / r.sd
	}
	cost := func(x []float64) (c float64) {
		for i := range rows {
			c += huber(off(&rows[i], x))
		}
		for i, name := range f.names {
			mean, sd := f.prior(name)
			c += (x[i] - mean) * (x[i] - mean) / (sd * sd)
		}
		return c
	}
	damping, last := 1e-2, cost(f.x)
	for range 60 {
		a, g := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
		for i := range rows {
			r := &rows[i]
			e := off(r, f.x)
			w := 1.0
			if math.Abs(e) > robust {
				w = robust / math.Abs(e)
			}
			d := make([]float64, len(r.uses))
			for k, j := range r.uses {
				const step = 1e-5
				x := f.x[j]
				f.x[j] = x + step
				d[k] = (off(r, f.x) - e) / step
				f.x[j] = x
			}
			for k, j := range r.uses {
				g.SetVec(j, g.AtVec(j)-w*e*d[k])
				for l, q := range r.uses[:k+1] {
					a.SetSym(j, q, a.At(j, q)+w*d[k]*d[l])
				}
			}
		}
		for i, name := range f.names {
			mean, sd := f.prior(name)
			a.SetSym(i, i, a.At(i, i)+1/(sd*sd))
			g.SetVec(i, g.AtVec(i)-(f.x[i]-mean)/(sd*sd))
		}
		gain := 0.0
		for try := 0; try < 10; try++ {
			b := mat.NewSymDense(n, nil)
			b.CopySym(a)
			for i := range n {
				b.SetSym(i, i, a.At(i, i)*(1+damping))
			}
			var chol mat.Cholesky
			if !chol.Factorize(b) {
				damping *= 10
				continue
			}
			var d mat.VecDense
			if err := chol.SolveVecTo(&d, g); err != nil {
				return fmt.Errorf("expect: fit: %w", err)
			}
			x := slices.Clone(f.x)
			for i := range x {
				x[i] += d.AtVec(i)
			}
			if c := cost(x); c < last {
				gain, last, f.x = last-c, c, x
				damping = max(damping/5, 1e-9)
				break
			}
			damping *= 5
		}
		if gain < 1e-6*last {
			break
		}
	}
	return nil
}

// huber is the square of a residual, growing only linearly beyond robust.
func huber(e float64) float64 {
	if e = math.Abs(e); e <= robust {
		return e * e
	}
	return robust * (2*e - robust)
}
