package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// A pair is slow below these shares of the median of all pairs.
const (
	pairSlow     = 0.80
	pairVerySlow = 0.60
)

var measuredPairSlow = Rule{
	ID:    "measured-pair-slow",
	Title: "one pair of hosts is slower than the others",
	Doc: `Compares results of one test between different pairs of hosts by their best bus
bandwidth at the sizes of 64 MiB or more that all of them ran. Fires for a pair below
80 % of the median; critical below 60 %. Warning. A host that is slow with most of its
partners is named once for all of them; a pair whose hosts are well with others points
to the fabric between them.
Silent: fewer than three pairs; tests of other collectives, data types, settings or
GPUs per host are not compared.`,
	Across: func(a *Across) {
		for _, pairs := range pairTests(a.Job) {
			a.slowPairs(pairs)
		}
	},
}

// pair is the best result between two hosts.
type pair struct {
	a, b  string // in order
	sweep *probe.Sweep
	peak  probe.Sample
}

func (p pair) has(host string) bool { return p.a == host || p.b == host }

// pairTests collects results between two hosts, those that can be compared
// together.
func pairTests(job *probe.Job) [][]pair {
	var keys []string
	groups := map[string][]pair{}
	for _, s := range job.Sweeps() {
		h := s.Run.Hosts
		if len(h) != 2 || h[0].Ranks != h[1].Ranks {
			continue
		}
		k := fmt.Sprint(s.Collective, h[0].Ranks, s.Launch, s.Run.DataType, s.Run.Op, s.Run.SettingsText())
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], pair{a: h[0].Name, b: h[1].Name, sweep: &s})
	}
	var out [][]pair
	for _, k := range keys {
		if pairs := bestOfPairs(groups[k]); len(pairs) >= 3 {
			out = append(out, pairs)
		}
	}
	return out
}

// bestOfPairs takes each pair's best result at the judged sizes that all results
// have; none where there is no such size.
func bestOfPairs(results []pair) []pair {
	sizes := map[int64]int{}
	for _, p := range results {
		for _, x := range p.sweep.Points {
			if x.Bytes >= smallestJudged {
				sizes[x.Bytes]++
			}
		}
	}
	best := map[[2]string]pair{}
	for _, p := range results {
		for _, x := range p.sweep.Points {
			if sizes[x.Bytes] < len(results) {
				continue
			}
			id := [2]string{p.a, p.b}
			if s := x.Fastest(); s.BusBW > best[id].peak.BusBW {
				p.peak = s
				best[id] = p
			}
		}
	}
	var out []pair
	for _, p := range best {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y pair) int { return cmp.Or(probe.CompareNames(x.a, y.a), probe.CompareNames(x.b, y.b)) })
	return out
}

func (a *Across) slowPairs(pairs []pair) {
	speeds := make([]float64, len(pairs))
	for i, p := range pairs {
		speeds[i] = p.peak.BusBW
	}
	median := median(speeds)
	var slow []pair
	for _, p := range pairs {
		if p.peak.BusBW < pairSlow*median {
			slow = append(slow, p)
		}
	}
	measured := perHost(pairs)
	for len(slow) > 0 {
		host := worstHost(slow, measured)
		of := slow[:1]
		if host != "" {
			of = having(slow, host)
		}
		a.slowPair(of, host, median, len(pairs))
		slow = slices.DeleteFunc(slices.Clone(slow), func(p pair) bool {
			return slices.ContainsFunc(of, func(q pair) bool { return p.a == q.a && p.b == q.b })
		})
	}
}

// perHost counts the pairs of each host.
func perHost(pairs []pair) map[string]int {
	n := map[string]int{}
	for _, p := range pairs {
		n[p.a]++
		n[p.b]++
	}
	return n
}

// worstHost returns the host with most slow pairs where it has at least two and
// they are most of those it was measured in; else "".
func worstHost(slow []pair, measured map[string]int) string {
	worst, most := "", 1
	count := perHost(slow)
	for _, p := range slow {
		for _, h := range []string{p.a, p.b} {
			if n := count[h]; n > most && 2*n > measured[h] {
				worst, most = h, n
			}
		}
	}
	return worst
}

func having(pairs []pair, host string) []pair {
	var out []pair
	for _, p := range pairs {
		if p.has(host) {
			out = append(out, p)
		}
	}
	return out
}

// slowPair reports slow pairs that share a host, or one alone (host "").
func (a *Across) slowPair(slow []pair, host string, median float64, of int) {
	f := Finding{
		Severity:  Warning,
		Certainty: Likely,
		Expected:  fmt.Sprintf("about the median of %d pairs, %.4g GB/s", of, median),
	}
	const most = 4 // pairs told in the text; the others are evidence
	var told []string
	for i, p := range slow {
		switch {
		case i < most:
			told = append(told, fmt.Sprintf("%s with %s %.4g GB/s (%.0f %%)", p.a, p.b, p.peak.BusBW, 100*p.peak.BusBW/median))
		case i == most:
			told = append(told, fmt.Sprintf("and %d more pairs", len(slow)-most))
		}
		f.Evidence = append(f.Evidence, sampleEvidence(p.peak))
		if p.peak.BusBW < pairVerySlow*median {
			f.Severity = Critical
		}
	}
	f.Observed = slow[0].sweep.Collective + ": " + strings.Join(told, ", ")
	f.Subjects = []string{HostKey(slow[0].a), HostKey(slow[0].b)}
	f.Fix = "network operator: both hosts may be well and the path between them is not: look for a routing collision, a bad uplink or cable between their switches; run this pair again alone"
	if host != "" {
		f.Subjects = []string{HostKey(host)}
		f.Fix = host + " is in all of these pairs: check its HCAs, cables and PCIe links first, then run it again with a host that is fast with others"
	}
	a.Report(f)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
