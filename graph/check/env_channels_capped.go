package check

import (
	"errors"
	"fmt"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe"
)

var envChannelsCapped = Rule{
	ID:    "env-channels-capped",
	Title: "too few channels, threads or buffers for the links",
	Doc: `Compares NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS (and the older NCCL_MAX_NRINGS) and
NCCL_NTHREADS with what the links of a host need: the channels that NCCL's own search
takes to fill them, from a log or computed here, and one per data HCA. Fires where the
channels left, each at the rate of that search, cannot fill the links. NCCL_NTHREADS
counts in proportion to 512. Also for NCCL_BUFFSIZE below 1 MiB, where chunks shrink.
Warning.
Silent: a limit that is no limit here. A limit set on purpose, to leave SMs to the
computation, is right as long as that is measured.`,
	Across: runEnvChannelsCapped,
}

// Threads of a Ring or Tree kernel of protocol Simple, and the buffer below which
// P2P chunks shrink (NCCL tuning.cc, init.cc).
const (
	fullThreads = 512
	fullBuffer  = 1 << 20
)

func runEnvChannelsCapped(a *Across) {
	for _, s := range a.settings("NCCL_BUFFSIZE") {
		if n, ok := s.number(); ok && n > 0 && n < fullBuffer {
			a.reportSetting(s, Finding{Severity: Warning, Certainty: Sure, Expected: "1 MiB or more; NCCL takes 4 MiB",
				Observed: fmt.Sprintf("%s: below 1 MiB the chunks of send and receive shrink too, and bandwidth falls", s), Fix: "whoever wrote it: delete it"})
		}
	}
	for _, s := range a.settings("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", "NCCL_MAX_CTAS") {
		if n, ok := s.number(); ok && n > 0 {
			a.meet(s, func(m meeting) { m.channels(int(n)) })
		}
	}
	for _, s := range a.settings("NCCL_NTHREADS") {
		if n, ok := s.number(); ok && n >= 32 && n%32 == 0 && n < fullThreads {
			a.meet(s, func(m meeting) { m.threads(int(n)) })
		}
	}
}

// channelPlan is the channels with which NCCL fills a host's links.
type channelPlan struct {
	ring  int     // of the search
	total int     // of the communicator
	gbs   float64 // of one channel of the ring
	from  Evidence
}

func (m meeting) channels(limit int) {
	data := m.facts.dataHCAs()
	if limit < len(data) && m.jobSpread() != oneHost {
		m.report(Finding{Severity: Warning, Certainty: Likely, Subjects: keys(data), Expected: fmt.Sprintf("a channel for each of the %d data HCAs", len(data)),
			Observed: fmt.Sprintf("%s: between hosts at most %d of the %d data HCAs carry data at a time", m.setting, limit, len(data)), Fix: cappedFix})
		return
	}
	p, err := m.plan()
	switch {
	case err != nil:
		m.gap("how many channels the links need is not known: "+err.Error(), readLive)
	case limit < p.ring:
		m.capped(p, float64(limit)*p.gbs, fmt.Sprintf("%s leaves %d channels", m.setting, limit))
	}
}

func (m meeting) threads(n int) {
	p, err := m.plan()
	if err != nil {
		m.gap("how many channels the links need is not known: "+err.Error(), readLive)
		return
	}
	if left := float64(p.total) * p.gbs * float64(n) / fullThreads; left < float64(p.ring)*p.gbs {
		m.capped(p, left, fmt.Sprintf("%s gives each of %d channels %d of %d threads", m.setting, p.total, n, fullThreads))
	}
}

const cappedFix = "whoever wrote it: delete it; if SMs shall be left to the computation, measure both together"

func (m meeting) capped(p channelPlan, left float64, what string) {
	need := float64(p.ring) * p.gbs
	m.report(Finding{Severity: Warning, Certainty: Likely, Expected: fmt.Sprintf("%d channels of %g GB/s, %g GB/s in NCCL's model", p.ring, p.gbs, need),
		Observed: fmt.Sprintf("%s, which carry at most %.4g of %g GB/s in NCCL's model: bandwidth falls in proportion", what, left, need),
		Evidence: []Evidence{p.from}, Fix: cappedFix})
}

// plan takes the channels from a log of the host, else from our own search.
func (m meeting) plan() (channelPlan, error) {
	for _, c := range m.Job.Comms {
		if len(m.Hosts) > 1 {
			break // whose search it is, a log does not say
		}
		for _, g := range c.Graphs {
			if g.Pattern == string(search.Ring) && g.Channels > 0 && !g.NoPath {
				return channelPlan{g.Channels, max(c.Channels.Or(0), g.Channels), g.BWIntra, evidence(g.Origins, "", "", "ring: %d channels of %g GB/s", g.Channels, g.BWIntra)}, nil
			}
		}
	}
	for i, g := range m.facts.gpus {
		for _, h := range m.facts.gpus[i+1:] {
			if m.topo.Class(g, h) == graph.Unknown {
				return channelPlan{}, errors.New("the paths between GPUs are not known")
			}
		}
	}
	view, err := m.topo.NCCL(graph.NCCLOptions{})
	if err != nil {
		return channelPlan{}, err
	}
	r, err := search.Compute(view, search.Options{})
	if err != nil {
		return channelPlan{}, err
	}
	g, ok := r.Graph(search.Ring)
	if !ok || g.Fallback {
		return channelPlan{}, nil
	}
	return channelPlan{g.Channels, r.Channels, g.BWIntra, Evidence{Source: probe.SourceInferred, Where: "search", Fact: fmt.Sprintf("NCCL's search gives a ring of %d channels of %g GB/s", g.Channels, g.BWIntra)}}, nil
}
