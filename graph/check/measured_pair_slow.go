package check

import (
	"cmp"
	"fmt"
	"maps"
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
partners is named once for all of them; pairs whose hosts are well with others point to
the fabric between them, and are one finding where they are more than three.
Silent: fewer than three pairs; tests of other collectives, data types, settings or
GPUs per host are not compared.`,
	Across: func(a *Across) {
		var all []pair
		var hosts []string
		for _, pairs := range pairTests(a.Job) {
			slow, of := slowPairs(pairs)
			all, hosts = append(all, slow...), append(hosts, of...)
		}
		slices.SortFunc(hosts, probe.CompareNames)
		a.reportSlow(all, slices.Compact(hosts))
	},
}

// pair is the best result between two hosts.
type pair struct {
	a, b       string // in order
	collective string
	busbw      float64
	ev         Evidence

	// Of a slow one: the median of how many pairs, and its share of it.
	share, median float64
	of            int
}

// pairTests collects results between two hosts, those that can be compared
// together.
func pairTests(job *probe.Job) [][]pair {
	var keys []string
	groups := map[string][]*probe.Sweep{}
	for _, s := range tests(job) {
		h := s.Run.Hosts
		if len(h) != 2 || h[0].Ranks != h[1].Ranks {
			continue
		}
		k := fmt.Sprint(s.Collective, h[0].Ranks, s.Launch, s.Run.DataType, s.Run.Op, s.Run.SettingsText())
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], &s)
	}
	out := summarizedPairs(job)
	for _, k := range keys {
		out = append(out, pairsOf(groups[k]))
	}
	return slices.DeleteFunc(out, func(pairs []pair) bool { return len(pairs) < 3 })
}

// pairsOf takes each pair's best result at the judged sizes that all sweeps have;
// none where there is no such size.
func pairsOf(sweeps []*probe.Sweep) []pair {
	sizes := map[int64]int{}
	for _, s := range sweeps {
		for _, p := range s.Points {
			if p.Bytes >= smallestJudged {
				sizes[p.Bytes]++
			}
		}
	}
	var all []pair
	for _, s := range sweeps {
		for _, p := range s.Points {
			if sizes[p.Bytes] == len(sweeps) {
				x := p.Fastest()
				all = append(all, pair{a: s.Run.Hosts[0].Name, b: s.Run.Hosts[1].Name, collective: s.Collective, busbw: x.BusBW, ev: sampleEvidence(x)})
			}
		}
	}
	return bestOf(all)
}

// summarizedPairs takes pairs from tables of many runs, by the best of each run.
func summarizedPairs(job *probe.Job) [][]pair {
	var keys []string
	groups := map[string][]pair{}
	for _, s := range job.Summaries {
		peak, known := s.PeakBusBW.Get()
		if !known || len(s.Hosts) != 2 || s.MaxBytes.Or(0) < smallestJudged {
			continue
		}
		k := fmt.Sprint(s.Collective, s.GPUs, s.MinBytes, s.MaxBytes)
		if groups[k] == nil {
			keys = append(keys, k)
		}
		ev := evidence(s.Origins, "", "", "%s of %s and %s, %s each: peak busbw %.4g GB/s", s.Collective, s.Hosts[0], s.Hosts[1], count(s.GPUs, "GPU", "GPUs"), peak)
		groups[k] = append(groups[k], pair{a: s.Hosts[0], b: s.Hosts[1], collective: s.Collective, busbw: peak, ev: ev})
	}
	var out [][]pair
	for _, k := range keys {
		out = append(out, bestOf(groups[k]))
	}
	return out
}

// bestOf keeps the best result of each pair, by host names.
func bestOf(all []pair) []pair {
	best := map[[2]string]pair{}
	for _, p := range all {
		id := [2]string{p.a, p.b}
		if have, ok := best[id]; !ok || p.busbw > have.busbw {
			best[id] = p
		}
	}
	return slices.SortedFunc(maps.Values(best), func(x, y pair) int { return cmp.Or(probe.CompareNames(x.a, y.a), probe.CompareNames(x.b, y.b)) })
}

// slowPairs returns the slow ones of pairs of one test, and the hosts that most of
// them share.
func slowPairs(pairs []pair) (slow []pair, hosts []string) {
	var speeds []float64
	for _, p := range pairs {
		speeds = append(speeds, p.busbw)
	}
	mid := median(speeds)
	for _, p := range pairs {
		if p.share = p.busbw / mid; p.share < pairSlow {
			p.median, p.of = mid, len(pairs)
			slow = append(slow, p)
		}
	}
	measured := perHost(pairs)
	for rest := slow; ; {
		host := worstHost(rest, measured)
		if host == "" {
			return slow, hosts
		}
		hosts = append(hosts, host)
		rest = slices.DeleteFunc(slices.Clone(rest), func(p pair) bool { return p.a == host || p.b == host })
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

// reportSlow reports the slow pairs of all tests: once for a host that they share,
// once for each pair where they are few, else once for all.
func (a *Across) reportSlow(slow []pair, hosts []string) {
	for _, h := range hosts {
		var of []pair
		of, slow = split(slow, func(p pair) bool { return p.a == h || p.b == h })
		a.slowPair(of, []string{HostKey(h)}, h+" is in all of these pairs: check its HCAs, cables and PCIe links first, then run it again with a host that is fast with others")
	}
	const few = 3
	var distinct [][2]string
	for _, p := range slow {
		if id := [2]string{p.a, p.b}; !slices.Contains(distinct, id) {
			distinct = append(distinct, id)
		}
	}
	if len(distinct) > few {
		var keys []string
		for _, p := range slow {
			keys = append(keys, HostKey(p.a), HostKey(p.b))
		}
		slices.SortFunc(keys, compareKeys)
		a.slowPair(slow, slices.Compact(keys), "network operator: no host is in most of these pairs, so the fabric between them is suspect: routing collisions, uplinks with errors or too few of them. Run the slow pairs again alone, one at a time: those that stay slow have a bad path")
		return
	}
	for _, id := range distinct {
		of, _ := split(slow, func(p pair) bool { return p.a == id[0] && p.b == id[1] })
		a.slowPair(of, []string{HostKey(id[0]), HostKey(id[1])}, "network operator: both hosts may be well and the path between them is not: look for a routing collision, a bad uplink or cable between their switches; run this pair again alone")
	}
}

// split parts pairs by a condition.
func split(pairs []pair, is func(pair) bool) (yes, no []pair) {
	for _, p := range pairs {
		if is(p) {
			yes = append(yes, p)
		} else {
			no = append(no, p)
		}
	}
	return yes, no
}

// slowPair reports slow pairs of one cause, the slowest first.
func (a *Across) slowPair(slow []pair, subjects []string, fix string) {
	slices.SortStableFunc(slow, func(x, y pair) int { return cmp.Compare(x.share, y.share) })
	f := Finding{
		Severity:  Warning,
		Certainty: Likely,
		Subjects:  subjects,
		Expected:  fmt.Sprintf("at least %.0f %% of the median of all pairs that ran the same test", 100*pairSlow),
		Fix:       fix,
	}
	if slow[0].share < pairVerySlow {
		f.Severity = Critical
	}
	const most = 4 // told in the text; the others are evidence
	var told []string
	for i, p := range slow {
		switch {
		case i < most:
			told = append(told, fmt.Sprintf("%s of %s and %s %.4g GB/s, %.0f %% of %.4g (median of %d pairs)", p.collective, p.a, p.b, p.busbw, 100*p.share, p.median, p.of))
		case i == most:
			told = append(told, fmt.Sprintf("and %d more", len(slow)-most))
		}
		f.Evidence = append(f.Evidence, p.ev)
	}
	f.Observed = strings.Join(told, "; ")
	a.Report(f)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
