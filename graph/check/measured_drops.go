package check

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

// dropShare is how far a bandwidth may fall from an earlier maximum.
const dropShare = 0.70

var measuredDrops = Rule{
	ID:    "measured-drops",
	Title: "bandwidth falls while the size grows",
	Doc: `Reads bus bandwidth over size of each collective in test output. Fires where, at
64 MiB or more, it lies below 70 % of what a smaller size of at least 1 MiB reached:
out of place and in place at one size, or at two sizes in a row. Warning.
Silent: fewer than four sizes of 1 MiB or more.`,
	Across: func(a *Across) {
		for _, s := range tests(a.Job) {
			a.drops(&s)
		}
	},
}

// columns are the ways of running.
var columns = [2]struct {
	name  string
	busbw func(probe.Sample) (gbs float64, known bool)
}{
	{"", func(s probe.Sample) (float64, bool) { return s.BusBW, true }},
	{" in place", probe.Sample.InPlaceBusBW},
}

func (a *Across) drops(s *probe.Sweep) {
	var points []probe.SweepPoint
	for _, p := range s.Points {
		if p.Bytes >= 1<<20 {
			points = append(points, p)
		}
	}
	if len(points) < 4 {
		return
	}
	// fallen[c][i]: column c at size i is below the share of its maximum so far.
	var fallen [2][]bool
	var peak [2]probe.Sample
	var best [2]float64
	for i, p := range points {
		at := p.Fastest()
		for c, col := range columns {
			v, known := col.busbw(at)
			fallen[c] = append(fallen[c], known && p.Bytes >= smallestJudged && v < dropShare*best[c])
			if known && v > best[c] {
				best[c], peak[c] = v, at
			}
		}
		twice := i > 0 && (fallen[0][i] && fallen[0][i-1] || fallen[1][i] && fallen[1][i-1])
		if !twice && !(fallen[0][i] && fallen[1][i]) {
			continue
		}
		c := btoi(!fallen[0][i])
		lowest := slowest(points[max(i-1, 0):], c)
		low, _ := columns[c].busbw(lowest)
		a.Report(Finding{
			Severity:  Warning,
			Certainty: Sure,
			Subjects:  sweepKeys(s),
			Expected:  fmt.Sprintf("at least 70 %% of the %.4g GB/s that %s reached", best[c], probe.SizeText(peak[c].Bytes)),
			Observed:  fmt.Sprintf("%s: busbw%s %.4g GB/s at %s, %.0f %% of it", s.Collective, columns[c].name, low, probe.SizeText(lowest.Bytes), 100*low/best[c]),
			Evidence:  []Evidence{sampleEvidence(peak[c]), sampleEvidence(lowest)},
			Fix:       "network and host operator: look at the path, not at NCCL's settings. In guests ACS and ATS of NICs and GPUs; on RoCE flow control (PFC, ECN) and pause counters; routing collisions; clocks and temperature of the GPUs. Then run the same sizes again",
		})
		return
	}
}

// slowest returns the slowest judged sample of a column.
func slowest(points []probe.SweepPoint, c int) probe.Sample {
	var low probe.Sample
	at := -1.0
	for _, p := range points {
		s := p.Fastest()
		if v, known := columns[c].busbw(s); known && p.Bytes >= smallestJudged && (at < 0 || v < at) {
			low, at = s, v
		}
	}
	return low
}
