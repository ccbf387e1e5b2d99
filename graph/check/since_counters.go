package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// nvlinkGrowths are the NVLink counters of which one more is a fault (DCGM's health
// check); those that the link recovered from are milder.
var nvlinkGrowths = []struct {
	what     string
	column   func(*probe.NVLinkCounts) probe.LinkColumn
	severity Severity
}{
	{"replays", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.Replay }, Critical},
	{"recoveries", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.Recovery }, Critical},
	{"malformed packets", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.Malformed }, Critical},
	{"buffer overruns", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.BufferOverrun }, Critical},
	{"receive errors", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.RcvErrors }, Critical},
	{"remote errors", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.RcvRemoteErrors }, Critical},
	{"general errors", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.RcvGeneralErrors }, Critical},
	{"failed recoveries", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.RecoveryFailed }, Critical},
	{"successful recoveries", func(c *probe.NVLinkCounts) probe.LinkColumn { return c.Recovered }, Warning},
}

// CRC errors per second that are worth a warning, and that are a fault (DCGM).
const fewCRC, manyCRC = 1, 100

// nvlinkGrowth judges what the error counters of a GPU's NVLinks grew by.
func (p *Pass) nvlinkGrowth(n *graph.Node, links []probe.NVLink) {
	now := n.GPU.LinkCounts
	old := p.before.gpu(n.GPU)
	if old == nil || old.LinkCounts == nil {
		p.Gap(noEarlier, readAgain, n.Key)
		return
	}
	severity := Info
	var subjects, observed []string
	note := func(s Severity, grown uint64, what string, link int) {
		subject := n.Key
		if i := slices.IndexFunc(links, func(l probe.NVLink) bool { return l.Link == link }); i >= 0 {
			subject = linkSubject(n, links[i])
			what += fmt.Sprintf(" on link %d", link)
		}
		if severity = max(severity, s); !slices.Contains(subjects, subject) {
			subjects = append(subjects, subject)
		}
		observed = append(observed, p.before.grew(grown, what))
	}
	for _, g := range nvlinkGrowths {
		p.eachLink(n, g.column(old.LinkCounts), g.column(now), func(grown uint64, link int) {
			note(g.severity, grown, g.what, link)
		})
	}
	for _, column := range []func(*probe.NVLinkCounts) probe.LinkColumn{
		func(c *probe.NVLinkCounts) probe.LinkColumn { return c.CRCFlit },
		func(c *probe.NVLinkCounts) probe.LinkColumn { return c.CRCData },
	} {
		p.eachLink(n, column(old.LinkCounts), column(now), func(grown uint64, link int) {
			switch rate, ok := p.rate(grown, time.Second, n.Key); {
			case ok && rate >= manyCRC:
				note(Critical, grown, "CRC errors", link)
			case ok && rate >= fewCRC:
				note(Warning, grown, "CRC errors", link)
			}
		})
	}
	if len(observed) == 0 {
		return
	}
	p.Report(Finding{
		Severity: severity, Subjects: subjects,
		Expected: "no replay, recovery or packet error between two readings, and no CRC error each second",
		Observed: strings.Join(observed, ", "),
		Evidence: []Evidence{evidence(n.GPU.Origins, "nvlink_counters", "", "%s", strings.Join(observed, ", "))},
		Fix:      "administrator: drain the host and run the field diagnostic; replace the cable or board that it names",
	})
}

// eachLink calls f for each link whose counter grew; -1 is all links together.
func (p *Pass) eachLink(n *graph.Node, old, now probe.LinkColumn, f func(grown uint64, link int)) {
	if len(old) != len(now) {
		p.Gap(noEarlier, readAgain, n.Key)
		return
	}
	for i := range now {
		link := i
		if len(now) == 1 {
			link = -1
		}
		if grown := p.growth(counter{old: old[i], now: now[i]}, n.Key); grown > 0 {
			f(grown, link)
		}
	}
}

// pcieGrowth judges what the error counters of both ends of a PCIe link grew by.
func (p *Pass) pcieGrowth(s slot) {
	severity := Info
	var observed []string
	var proof []Evidence
	subject := s.nodes[0].Key
	note := func(sev Severity, grown uint64, what string, origins []probe.Origin, field string) {
		severity = max(severity, sev)
		text := p.before.grew(grown, what)
		observed = append(observed, text)
		proof = append(proof, evidence(origins, field, "", "%s", text))
	}
	judge := func(who string, old, now *probe.PCIeCounters, origins []probe.Origin, field string) {
		if now == nil {
			return
		}
		if old == nil {
			p.Gap(noEarlier, readAgain, subject)
			return
		}
		if n := p.growth(counter{old.Fatal, now.Fatal}, subject); n > 0 {
			note(Critical, n, "fatal errors at "+who, origins, field)
		}
		if n := p.growth(counter{old.NonFatal, now.NonFatal}, subject); n > 0 {
			note(Warning, n, "nonfatal errors at "+who, origins, field)
		}
		if n := p.growth(counter{old.Correctable, now.Correctable}, subject); p.overBudget(n, s.correctableBudget(), subject) {
			note(Warning, n, "correctable errors at "+who, origins, field)
		}
	}
	for _, d := range []*probe.PCIDevice{s.dev, s.port} {
		if d != nil {
			judge(d.Addr.String(), p.before.errors(d), d.Errors, d.Origins, "aer")
		}
	}
	if s.gpu != nil {
		old := p.before.gpu(s.gpu)
		if old == nil {
			old = &probe.GPU{}
		}
		judge(s.nodes[0].Label, old.PCIe, s.gpu.PCIe, s.gpu.Origins, "pcie_counters")
		if n := p.growth(counter{old.Replays, s.gpu.Replays}, subject); p.overBudget(n, s.replayBudget(), subject) {
			note(Warning, n, "replays at "+s.nodes[0].Label, s.gpu.Origins, "pcie_replays")
		}
	}
	if len(observed) == 0 {
		return
	}
	p.Report(Finding{
		Severity: severity, Subjects: s.subjects(),
		Expected: fmt.Sprintf("no fatal or nonfatal error between two readings, and at most %d correctable errors and %d replays in a minute", s.correctableBudget(), s.replayBudget()),
		Observed: strings.Join(observed, ", "), Evidence: proof, Fix: s.errorFix(),
	})
}

// overBudget reports growth above what a link may have in a minute.
func (p *Pass) overBudget(grown, budget uint64, subject string) bool {
	if grown <= budget {
		return false
	}
	rate, ok := p.rate(grown, time.Minute, subject)
	return ok && rate > float64(budget)
}

// portGrowths are the counters of an HCA's port of which one more is a fault.
var portGrowths = []struct {
	name     string
	severity Severity
}{
	{"symbol_error", Warning},
	{"link_error_recovery", Warning},
	{"link_downed", Critical},
	{"port_rcv_errors", Warning},
	{"port_rcv_remote_physical_errors", Warning},
	{"local_link_integrity_errors", Warning},
	{"local_ack_timeout_err", Critical},
	{"rnr_nak_retry_err", Warning},
}

// portGrowth judges what the error counters of an HCA's port grew by.
func (p *Pass) portGrowth(n *graph.Node, now probe.HCAPort) {
	key := portKey(n.HCA, now)
	old := p.before.port(n.HCA, now.Port)
	if old == nil || len(old.Counters) == 0 {
		p.Gap(noEarlier, readAgain, key)
		return
	}
	severity := Info
	var observed []string
	for _, g := range portGrowths {
		if grown := p.growth(counter{counterOf(*old, g.name), counterOf(now, g.name)}, key); grown > 0 {
			severity = max(severity, g.severity)
			observed = append(observed, p.before.grew(grown, g.name))
		}
	}
	if len(observed) == 0 {
		return
	}
	p.Report(Finding{
		Severity: severity, Subjects: []string{key, n.Key},
		Expected: "no growth between two readings",
		Observed: strings.Join(observed, ", "),
		Evidence: []Evidence{evidence(n.HCA.Origins, "ports", fmt.Sprintf("ports/%d/counters", now.Port), "%s", strings.Join(observed, ", "))},
		Fix:      linkFix,
	})
}
