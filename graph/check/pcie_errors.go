package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var pcieErrors = Rule{
	ID:    "pcie-errors",
	Title: "Errors were counted on a PCIe link",
	Doc: `Reads the AER counters of both ends of a link and the counters of the GPU's driver. Fires
for fatal errors, for nonfatal ones, and for correctable errors or replays of which one
reading holds more than a minute's budget: correctable 16 (32 at Gen5 x16), replays 3, 5,
8, 16, 31, 62 at x16 Gen1 to Gen6, less in proportion to the width.

critical for fatal; warning for nonfatal; info for totals since boot, whose rate only a
second reading tells. With an earlier reading (ncclmap check --since) only what grew since
counts, and correctable errors and replays above the budget are a warning.

Silent in a guest, where there are no counters, and for the unsupported requests that
enumeration causes.`,
	Run: runPCIeErrors,
}

// replayBudget is the replays per minute and lane of Gen1 to Gen6 that DCGM's
// health check allows (lanes × signalling rate × 10⁻¹² × 60).
var replayBudget = []float64{0.15, 0.30, 0.48, 0.96, 1.92, 3.84}

// correctableBudget and correctableBudgetGen5 are DCGM diag's bounds per minute.
const correctableBudget, correctableBudgetGen5 = 16, 32

func runPCIeErrors(p *Pass) {
	if len(p.Guest()) > 0 {
		return
	}
	for _, s := range p.facts.slots {
		if p.before != nil {
			p.pcieGrowth(s)
			continue
		}
		type end struct {
			who     string
			errors  *probe.PCIeCounters
			origins []probe.Origin
			field   string
			file    string
		}
		var ends []end
		for _, d := range []*probe.PCIDevice{s.dev, s.port} {
			if d != nil && d.Errors != nil {
				ends = append(ends, end{d.Addr.String(), d.Errors, d.Origins, "aer", "aer_dev_"})
			}
		}
		if s.gpu != nil && s.gpu.PCIe != nil {
			ends = append(ends, end{s.nodes[0].Label, s.gpu.PCIe, s.gpu.Origins, "pcie_counters", ""})
		}
		severity := Info
		var observed []string
		var proof []Evidence
		note := func(sev Severity, e end, kind, file string, n uint64) {
			severity = max(severity, sev)
			text := fmt.Sprintf("%d %s at %s", n, kind, e.who)
			observed = append(observed, text)
			if e.file != "" {
				file = e.file + file
			}
			proof = append(proof, evidence(e.origins, e.field, file, "%s", text))
		}
		for _, e := range ends {
			if n := e.errors.Fatal.Or(0); n > 0 {
				note(Critical, e, "fatal errors", "fatal", n)
			}
			if n := e.errors.NonFatal.Or(0); n > 0 {
				note(Warning, e, "nonfatal errors", "nonfatal", n)
			}
			if n := e.errors.Correctable.Or(0); n > s.correctableBudget() {
				note(Info, e, "correctable errors since boot", "correctable", n)
			}
		}
		if s.gpu != nil {
			if n, ok := s.gpu.Replays.Get(); ok && n > s.replayBudget() {
				note(Info, end{s.nodes[0].Label, nil, s.gpu.Origins, "pcie_replays", ""}, "replays since the driver was loaded", "", n)
			}
		}
		if len(observed) == 0 {
			continue
		}
		expected := "no fatal or nonfatal error"
		fix := s.errorFix()
		if severity == Info {
			expected = fmt.Sprintf("at most %d correctable errors in a minute", s.correctableBudget())
			fix = "administrator: read the counters twice, a minute apart and under load; a total since boot says nothing about now. " + fix
		}
		p.Report(Finding{
			Severity: severity,
			Subjects: s.subjects(),
			Expected: expected,
			Observed: strings.Join(observed, ", "),
			Evidence: proof,
			Fix:      fix,
		})
	}
}

func (s slot) errorFix() string {
	return fmt.Sprintf("hardware service: reseat or replace what lies between the ends of %s: cable, riser, retimer; errors are counted at the receiver, so look at the link partner too", s.where())
}

func (s slot) correctableBudget() uint64 {
	if s.max == probe.LinkOfGen(5, 16) {
		return correctableBudgetGen5
	}
	return correctableBudget
}

// replayBudget is what the link may replay in a minute; the fastest link's where
// its own figures are not known.
func (s slot) replayBudget() uint64 {
	gen, lanes := s.max.Speed.Or(0).Gen(), s.max.Width.Or(16)
	if gen == 0 {
		gen = len(replayBudget)
	}
	n := replayBudget[gen-1] * float64(lanes)
	whole := uint64(n)
	if float64(whole) < n {
		whole++
	}
	return whole
}
