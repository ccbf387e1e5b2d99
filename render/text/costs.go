package text

import (
	"fmt"
	"io"

	"github.com/ncclmap/ncclmap/tune"
)

// printCosts prints what links below their maximum cost.
func printCosts(out io.Writer, p *tune.Prediction) {
	costs, left := p.Costs()
	for i := range costs {
		c := &costs[i]
		fmt.Fprintf(out, "\n%s: %s\n", c.Subject(), c.Observed)
		if c.Unknown != "" {
			fmt.Fprintf(out, "  what it costs is not known: %s\n", c.Unknown)
			continue
		}
		for _, g := range c.Graphs {
			fmt.Fprintf(out, "  %s: %s\n", g.Pattern, costOf(c, g))
		}
	}
	if left > 0 {
		fmt.Fprintf(out, "\n%s more below their maximum\n", plural(left, "link"))
	}
}

// costOf says what a fault costs one graph: by NCCL's plan, and on the wire, which
// the plan may not know.
func costOf(c *tune.LinkCost, g tune.GraphCost) string {
	s := "NCCL plans " + planText(g.Is)
	if g.Is != g.Repaired {
		s += fmt.Sprintf(", and %s where the link is whole", planText(g.Repaired))
	} else {
		s += " with or without the fault"
	}
	channels := "channel " + ranges(g.Crossing) + " puts"
	if len(g.Crossing) > 1 {
		channels = "channels " + ranges(g.Crossing) + " put"
	}
	switch {
	case len(g.Crossing) == 0:
		return s + "; no channel crosses the link"
	case g.Planned > c.CanGBs:
		return s + fmt.Sprintf("; %s %s GB/s on the link, which carries at most %s of %s: %s %% of the plan",
			channels, num(g.Planned), num(c.CanGBs), num(c.MaxGBs), num(100*c.Share(g)))
	}
	return s + fmt.Sprintf("; %s %s GB/s on the link, which carries %s of %s", channels, num(g.Planned), num(c.CanGBs), num(c.MaxGBs))
}

func planText(g tune.GraphPlan) string {
	if g.BWIntra == g.BWInter {
		return fmt.Sprintf("%d × %s GB/s", g.Channels, num(g.BWIntra))
	}
	return fmt.Sprintf("%d × %s/%s GB/s", g.Channels, num(g.BWIntra), num(g.BWInter))
}
