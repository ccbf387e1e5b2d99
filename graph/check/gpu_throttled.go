package check

import (
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var gpuThrottled = Rule{
	ID:    "gpu-throttled",
	Title: "Hardware holds the GPU's clocks down",
	Doc: `Fires for GPUs whose active clock event reasons include hardware slowdown, hardware
thermal slowdown or hardware power brake.

warning; critical where the sources hold measurements of this host, which are then not to
be trusted.

Silent for the reasons of normal work: idle, software power cap, application clocks, sync
boost.`,
	Run: runGPUThrottled,
}

var hardwareReasons = []struct {
	bit  uint64
	text string
}{
	{probe.ClockEventHWThermal, "hardware thermal slowdown"},
	{probe.ClockEventHWPowerBrake, "hardware power brake"},
	{probe.ClockEventHWSlowdown, "hardware slowdown"},
}

func runGPUThrottled(p *Pass) {
	severity := Warning
	if len(p.Job.Samples) > 0 {
		severity = Critical
	}
	for _, n := range p.facts.gpus {
		events, ok := n.GPU.Events.Get()
		if !ok {
			p.Gap(noDriver, askDriver, n.Key)
			continue
		}
		var reasons []string
		for _, r := range hardwareReasons {
			if events&r.bit != 0 {
				reasons = append(reasons, r.text)
			}
		}
		if len(reasons) == 0 {
			continue
		}
		p.Report(Finding{
			Severity: severity,
			Subjects: []string{n.Key},
			Expected: "no hardware reason for lower clocks",
			Observed: strings.Join(reasons, ", "),
			Evidence: []Evidence{evidence(n.GPU.Origins, "clocks_event_reasons", "", "clock event reasons %#x", events)},
			Fix:      "administrator: check airflow, coolant, fans and the power supplies of the host and its rack; distrust measurements taken meanwhile",
		})
	}
}
