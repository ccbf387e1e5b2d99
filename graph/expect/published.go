package expect

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/ncclmap/ncclmap/graph/model"
)

// Published sums up what others measured on machines of one type, by default
// settings, in GB/s of bus bandwidth.
type Published struct {
	Collective string   `json:"collective"`
	Bytes      int64    `json:"bytes"`
	N          int      `json:"n"`
	Min        float64  `json:"min_gbs"`
	Median     float64  `json:"median_gbs"`
	Max        float64  `json:"max_gbs"`
	Grade      string   `json:"grade"` // the lowest: B where a condition is not stated
	Sources    []string `json:"sources"`
}

// PublishedRuns returns the published runs of a machine's type from 64 MiB up, by
// size: the same GPU model, count of GPUs and nodes, links and, over several nodes,
// network rate. gpu is the model's name; "" matches by generation and links alone.
func PublishedRuns(points []Point, gpu string, m Machine, collective string) (out []Published) {
	factor, ok := model.BusFactor(collective, m.Ranks)
	if !ok {
		return nil
	}
	by := map[int64][]*Point{}
	for i := range points {
		p := &points[i]
		if p.Published() && p.Collective == collective && p.Curve == collective && p.Bytes >= midBytes && p.alike(gpu, &m) {
			by[p.Bytes] = append(by[p.Bytes], p)
		}
	}
	for bytes, ps := range by {
		r := Published{Collective: collective, Bytes: bytes, N: len(ps)}
		var gbs []float64
		for _, p := range ps {
			gbs = append(gbs, float64(bytes)/(1000*p.TimeUS)*factor)
			r.Grade = max(r.Grade, p.Grade)
			if !slices.Contains(r.Sources, p.Source) {
				r.Sources = append(r.Sources, p.Source)
			}
		}
		slices.Sort(gbs)
		slices.Sort(r.Sources)
		tidy := func(gbs float64) float64 { return math.Round(gbs*10) / 10 }
		r.Min, r.Median, r.Max = tidy(gbs[0]), tidy((gbs[(len(gbs)-1)/2]+gbs[len(gbs)/2])/2), tidy(gbs[len(gbs)-1])
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Published) int { return cmp.Compare(a.Bytes, b.Bytes) })
	return out
}

func (p *Point) alike(gpu string, m *Machine) bool {
	same := func(a, b float64) bool { return math.Abs(a-b) <= 0.01*max(a, b) }
	return p.Ranks == m.Ranks && p.Nodes == m.Nodes && p.Link == m.Link && generation(p.CC) == generation(m.CC) &&
		(p.Link != NVLink || same(p.LinkGBs, m.LinkGBs)) && (p.Nodes == 1 || same(p.NetGBs, m.NetGBs)) && (gpu == "" || named(gpu, p.GPU))
}

// named reports that a GPU's full name holds all words of a model's.
func named(full, model string) bool {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToUpper(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	have := words(full)
	for _, w := range words(model) {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}
