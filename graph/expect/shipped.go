package expect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Fit is what was fitted: parameters, how far measured times lie from what they
// say, and what they were fitted to.
type Fit struct {
	Points     int         `json:"points"`
	Parameters []Parameter `json:"parameters"`
	Spreads    []Spread    `json:"spreads"`
	// Far bounds, as a logarithm, the errors on a GPU generation that a fit had never
	// seen.
	Far      float64    `json:"far"`
	Evidence []Evidence `json:"evidence"`
}

// Spread is the half width of the 90 % interval of points like each other, as a
// logarithm: the 96 % quantile of errors on points that a fit had not seen.
type Spread struct {
	Of   string  `json:"of"`
	Half float64 `json:"half"`
	From string  `json:"from"`
	N    int     `json:"n"`
}

// Evidence is a set of like points that the fit saw.
type Evidence struct {
	Generation string   `json:"generation"`
	Link       Link     `json:"link"`
	Fabric     string   `json:"fabric,omitempty"` // over several nodes
	Collective string   `json:"collective"`
	Algo       string   `json:"algo,omitempty"`
	Proto      string   `json:"proto"`
	Launch     string   `json:"launch,omitempty"` // below 2 MiB, where it decides
	Small      bool     `json:"small,omitempty"`  // of less than 2 MiB
	Ranks      int      `json:"ranks"`
	Nodes      int      `json:"nodes"`
	Bytes      [2]int64 `json:"bytes"`    // least, most
	Channels   [2]int   `json:"channels"` // likewise; 0 = not known
	Points     int      `json:"points"`
	Machines   []string `json:"machines"`
}

// Shipped returns the fit that ships.
func Shipped() (*Fit, error) {
	raw, err := data.ReadFile("data/fit.json")
	if err != nil {
		return nil, err
	}
	var f Fit
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("expect: fit.json: %w", err)
	}
	return &f, nil
}

// Make fits the form to points.
func Make(points []Point) (*Fit, error) {
	full := newFitted(nil)
	if err := full.fit(points); err != nil {
		return nil, err
	}
	out := &Fit{Points: len(points), Parameters: full.parameters(), Evidence: evidenceOf(points)}
	sites, err := leaveOut(points, full, bySite)
	if err != nil {
		return nil, err
	}
	curves, err := leaveOut(points, full, byCurve)
	if err != nil {
		return nil, err
	}
	out.Spreads = spreadsOf(sites, curves, full.residuals(points))
	far, err := leaveOut(points, full, byGeneration)
	if err != nil {
		return nil, err
	}
	var e []float64
	for i := range far {
		e = append(e, far[i].launches()...)
	}
	if len(e) > 0 {
		out.Far = round(quantile(e, spreadQuantile))
	}
	return out, nil
}

// leastErrors make a spread; of fewer nothing is said.
const leastErrors = 5

// spreadsOf takes for each kind of point the errors on machines that were left out
// while others were evidence. A GPU generation that only one machine shows takes what
// the fit leaves on its points, and the difference between machines from other
// generations; what no two machines show takes all that was left out.
func spreadsOf(sites, curves, seen []residual) (out []Spread) {
	proven, all := errorsBy(calibrated(sites), spreadKey), errorsBy(slices.Concat(sites, curves), spreadKey)
	between := errorsBy(calibrated(sites), anyGeneration)
	left := errorsBy(seen, spreadKey)
	kinds := map[string]string{}
	for i := range seen {
		kinds[spreadKey(seen[i].Point)] = anyGeneration(seen[i].Point)
	}
	for key, kind := range kinds {
		s := Spread{Of: key}
		switch {
		case len(proven[key]) >= leastErrors:
			s.Half, s.N, s.From = quantile(proven[key], spreadQuantile), len(proven[key]), "machines that were left out"
		case len(left[key]) >= leastErrors && len(between[kind]) >= leastErrors:
			s.Half = math.Hypot(quantile(left[key], spreadQuantile), quantile(between[kind], spreadQuantile))
			s.N, s.From = len(left[key]), "what the fit leaves, and machines of other GPU generations that were left out"
		case len(all[key]) >= leastErrors:
			s.Half, s.N, s.From = quantile(all[key], spreadQuantile), len(all[key]), "machines and curves that were left out, also where nothing like them was left in"
		default:
			continue
		}
		s.Half = round(s.Half)
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Spread) int { return cmp.Compare(a.Of, b.Of) })
	return out
}

func errorsBy(from []residual, key func(*Point) string) map[string][]float64 {
	by := map[string][]float64{}
	for i := range from {
		k := key(from[i].Point)
		by[k] = append(by[k], from[i].launches()...)
	}
	return by
}

// spread returns the half width of the interval for a point; ok is false where
// nothing like it was left out.
func (f *Fit) spread(p *Point) (half float64, ok bool) {
	key := spreadKey(p)
	i := slices.IndexFunc(f.Spreads, func(s Spread) bool { return s.Of == key })
	if i < 0 {
		return 0, false
	}
	return f.Spreads[i].Half, true
}

// evidenceOf sums points up.
func evidenceOf(points []Point) (out []Evidence) {
	for i := range points {
		p := &points[i]
		if _, ok := newShape(&p.Machine, &p.Run, func(string) int { return 0 }); !ok {
			continue
		}
		v := evidence(p)
		at := slices.IndexFunc(out, func(o Evidence) bool { return o.key() == v.key() })
		if at < 0 {
			out = append(out, v)
			continue
		}
		o := &out[at]
		o.Bytes[0], o.Bytes[1] = min(o.Bytes[0], p.Bytes), max(o.Bytes[1], p.Bytes)
		o.Channels[0], o.Channels[1] = min(o.Channels[0], p.Channels), max(o.Channels[1], p.Channels)
		o.Points++
		if !slices.Contains(o.Machines, p.ID) {
			o.Machines = append(o.Machines, p.ID)
		}
	}
	for i := range out {
		slices.Sort(out[i].Machines)
	}
	slices.SortFunc(out, func(a, b Evidence) int { return cmp.Compare(a.key(), b.key()) })
	return out
}

func evidence(p *Point) Evidence {
	v := Evidence{
		Generation: generation(p.CC), Link: p.Link, Collective: p.Collective, Algo: p.Algo, Proto: p.Proto, Small: p.Bytes < smallBytes,
		Ranks: p.Ranks, Nodes: p.Nodes, Bytes: [2]int64{p.Bytes, p.Bytes}, Channels: [2]int{p.Channels, p.Channels}, Points: 1, Machines: []string{p.ID},
	}
	if v.Small {
		v.Launch = p.Launch
	}
	if p.Nodes > 1 {
		v.Fabric = p.fabric()
	}
	return v
}

// key tells what evidence is about, but for the range of sizes.
func (v *Evidence) key() string {
	return fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s|%t|%5d|%7d", v.Generation, v.Link, v.Fabric, v.Collective, v.Algo, v.Proto, v.Launch, v.Small, v.Nodes, v.Ranks)
}

// about reports that it is about such runs, but for their size and count of ranks.
func (v *Evidence) about(m *Machine, r *Run) bool {
	return v.Generation == generation(m.CC) && v.Link == m.Link && v.Collective == r.Collective && v.Algo == r.Algo && v.Proto == r.Proto &&
		(!v.Small || v.Launch == m.Launch) && (m.Nodes < 2 || v.Fabric == m.fabric()) && min(v.Nodes, 3) == min(m.Nodes, 3)
}

// covers reports that a size and a count of channels are within what was measured, or
// next to it. Of counts that are not known nothing is asked.
func (v *Evidence) covers(bytes int64, channels int) bool {
	return v.Small == (bytes < smallBytes) && v.Bytes[0]/2 <= bytes && bytes <= 2*v.Bytes[1] &&
		(v.Channels[1] == 0 || channels == 0 || 2*v.Channels[0] <= 3*channels && 2*channels <= 3*v.Channels[1])
}

// proven reports that evidence about such runs covers a size, with no fewer and with
// no more ranks and nodes.
func proven(proofs []Evidence, m *Machine, bytes int64, channels int) bool {
	fewer, more := false, false
	for i := range proofs {
		if v := &proofs[i]; v.covers(bytes, channels) {
			fewer = fewer || v.Ranks <= m.Ranks && v.Nodes <= m.Nodes
			more = more || v.Ranks >= m.Ranks && v.Nodes >= m.Nodes
		}
	}
	return fewer && more
}

// aboutOnly keeps the evidence about such runs.
func aboutOnly(all []Evidence, m *Machine, r *Run) (out []Evidence) {
	for i := range all {
		if all[i].about(m, r) {
			out = append(out, all[i])
		}
	}
	return out
}
