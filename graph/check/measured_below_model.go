package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	// smallestFilled is the size from which a ring comes close to its links; at
	// 64 MiB healthy runs on 8 GPUs still lie a third below.
	smallestFilled = 256 << 20
	// mostLatency is the share of latency in a time up to which it is judged.
	mostLatency = 0.25
	// lowNVLink and lowNetwork are the lowest shares of the line rate that healthy
	// runs reach from 256 MiB up. NVLink: 268 of 450 GB/s, AllGather on two H200
	// (recorded); 228 of 300, AllReduce on 8 A100. Network: 280 of 400 GB/s on 8
	// hosts over EFA, 345 and more over InfiniBand.
	lowNVLink  = 0.55
	lowNetwork = 0.70
	// farBelow makes the finding critical: this share of the lowest.
	farBelow = 0.75
)

var measuredBelowModel = Rule{
	ID:    "measured-below-model",
	Title: "measured bandwidth is below what the links carry",
	Doc: `Compares the best bus bandwidth of AllReduce, AllGather and ReduceScatter at 256 MiB
or more with what the hosts' links can carry: on one host the NVLinks of a GPU, where
they join all GPUs; over several the line rate of the HCAs nearest to the GPUs that
took part (those that NCCL_IB_HCA leaves), as far as PCIe carries it. Latency is
granted as NCCL's own model has it. Fires below the lowest share that healthy runs
reach, 55 % of NVLink's data rate or 70 % of the line rate; critical below three
quarters of that. Warning.
Silent: above; what is near the line rate has nothing left to tune, and more than it
is normal where switches reduce or two hosts run a tree. A gap: hosts whose topology
is not in the sources, flat guests, GPUs over PCIe, other collectives, small sizes.`,
	Across: runMeasuredBelowModel,
}

// reached is how a collective compares with the ceiling.
type reached struct {
	sweep *probe.Sweep
	best  probe.Sample
	share float64 // of what the ceiling allows at that size
	ceiling
	low float64
}

func runMeasuredBelowModel(a *Across) {
	// What was tried with several settings counts by its best.
	var best []reached
	for _, s := range tests(a.Job) {
		got, err := a.reachedBy(&s)
		var gap unknownCeiling
		if errors.As(err, &gap) {
			a.Gap(gap.reason, gap.how, sweepKeys(&s)...)
			continue
		}
		i := slices.IndexFunc(best, func(x reached) bool {
			return x.sweep.Collective == s.Collective && slices.Equal(x.sweep.Run.HostNames(), s.Run.HostNames())
		})
		switch {
		case i < 0:
			best = append(best, got)
		case got.share > best[i].share:
			best[i] = got
		}
	}
	var groups [][]reached // below, by the hosts that ran it
	for _, x := range best {
		if x.share >= x.low {
			continue
		}
		i := slices.IndexFunc(groups, func(g []reached) bool {
			return slices.Equal(g[0].sweep.Run.HostNames(), x.sweep.Run.HostNames())
		})
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], x)
	}
	if few := 3; len(groups) > few { // as all pairs of some hosts, for one reason
		groups = [][]reached{slices.Concat(groups...)}
	}
	for _, below := range groups {
		a.belowModel(below)
	}
}

// reachedBy compares a sweep with the ceiling of its hosts.
func (a *Across) reachedBy(s *probe.Sweep) (reached, error) {
	out := reached{sweep: s, low: lowNVLink}
	ranks, known := s.Ranks.Get()
	hosts := len(s.Run.Hosts)
	switch {
	case !known || hosts == 0:
		return out, unknownCeiling{"ranks and hosts of the run are not known", "give the test's whole output, with its device list"}
	case ringSteps(s.Collective) == 0:
		return out, unknownCeiling{"what the links allow is not known for this collective", "run all_reduce_perf too"}
	case ranks < 2:
		return out, unknownCeiling{"one rank has nobody to talk to", "run it with more GPUs"}
	}
	var err error
	if out.ceiling, err = a.ceilingOf(s); err != nil {
		return out, err
	}
	if hosts > 1 {
		out.low = lowNetwork
	}
	latency := ringLatencyUS(s.Collective, ranks, hosts)
	for _, p := range s.Points {
		x := p.Fastest()
		bus := x.BusBW
		if in, ok := x.InPlaceBusBW(); ok {
			bus = max(bus, in)
		}
		ideal := x.TimeUS * x.BusBW / out.gbs // µs that the bytes take at the ceiling
		if p.Bytes < smallestFilled || latency > mostLatency*ideal {
			continue
		}
		if share := bus / (out.gbs * ideal / (ideal + latency)); share > out.share {
			out.share, out.best = share, x
		}
	}
	if out.share > 0 && out.share < out.low && out.lower != nil {
		return out, out.lower
	}
	if out.share == 0 {
		return out, unknownCeiling{fmt.Sprintf("no size is large enough to fill the links of %d ranks", ranks), "run the test up to 8 GiB"}
	}
	return out, nil
}

// ringSteps is how often each rank passes on a part of the ring, in units of
// ranks - 1; 0 for what does not run over rings.
func ringSteps(collective string) int {
	switch collective {
	case "AllReduce":
		return 2
	case "AllGather", "ReduceScatter":
		return 1
	}
	return 0
}

// ringLatencyUS is the latency of a ring with Simple as NCCL has it at most: 5.7 µs
// a step within a host (3.4 over NVLink), 14 between hosts, 8.4 once (NCCL 2.30.7
// tuning.cc:139-212).
func ringLatencyUS(collective string, ranks, hosts int) float64 {
	between := 0
	if hosts > 1 {
		between = hosts
	}
	n := ringSteps(collective)
	return 8.4 + 5.7*float64(n*max(ranks-1-between, 0)) + 14*float64(n*between)
}

// belowModel reports what is below for one reason, the farthest first.
func (a *Across) belowModel(below []reached) {
	slices.SortStableFunc(below, func(x, y reached) int { return cmp.Compare(x.share/x.low, y.share/y.low) })
	f := Finding{Severity: Warning, Certainty: Likely}
	const most = 4 // told in the text; the others are evidence
	var told, files []string
	for i, x := range below {
		if x.share < farBelow*x.low {
			f.Severity = Critical
		}
		for _, h := range x.sweep.Run.HostNames() {
			f.Subjects = append(f.Subjects, HostKey(h))
		}
		files = append(files, "file:"+x.sweep.Run.File)
		switch {
		case i < most:
			told = append(told, fmt.Sprintf("%s over %s: busbw %.4g GB/s at %s, %.0f %% of it", x.sweep.Collective, ranksText(x.sweep), x.best.BusBW, probe.SizeText(x.best.Bytes), 100*x.share))
		case i == most:
			told = append(told, fmt.Sprintf("and %d more", len(below)-most))
		}
		f.Evidence = append(f.Evidence, sampleEvidence(x.best))
		if text := x.sweep.Run.SettingsText(); text != "" && text != "unknown" {
			f.Evidence = append(f.Evidence, evidence(x.sweep.Run.Origins, "", "", "settings of the run: %s", text))
		}
	}
	slices.SortFunc(f.Subjects, compareKeys)
	slices.SortFunc(files, compareKeys)
	f.Subjects = append(slices.Compact(f.Subjects), slices.Compact(files)...)
	x := below[0]
	f.Expected = fmt.Sprintf("%.0f to 100 %% of %.4g GB/s, %s", 100*x.low, x.gbs, x.what)
	f.Observed = strings.Join(told, "; ")
	f.Evidence = append(f.Evidence, x.ev...)
	f.Fix = "look at the other findings of these hosts first: settings that leave links out, links that are down or narrow, GPUDirect RDMA that is off. If there are none, measure parts: each host alone, then each pair of hosts with sendrecv_perf, and give all results to ncclmap compare"
	a.Report(f)
}
