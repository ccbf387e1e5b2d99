package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/tune"
)

// version is the NCCL version that a prediction is for.
func version(p tune.Prediction) graph.NCCLVersion {
	return cmp.Or(p.Options.NCCL.Version, graph.NewestNCCL)
}

// what says what is predicted.
func what(p tune.Prediction) string {
	r := p.Search
	if r == nil {
		return plural(p.GPUs, "GPU")
	}
	text := plural(r.Ranks, "GPU")
	if hosts := p.HostCount(); hosts > 1 {
		text += fmt.Sprintf(" on %d hosts", hosts)
	}
	if r.Nodes > 1 {
		text += ", which it takes for " + plural(r.Nodes, "node")
	}
	return text
}

// printGraphs prints what the searches found in the words of NCCL's log.
func printGraphs(out io.Writer, r *search.Result, verbose bool) {
	fmt.Fprintf(out, "\n%d coll channels, %d nvls channels, %d p2p channels, %d p2p channels per peer\n", r.Channels, r.NVLSChannels, r.P2PChannels, r.PerPeer)
	for _, g := range r.Graphs {
		fmt.Fprintf(out, "\n%s: Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %v/%v, sameChannels %d\n",
			g.Pattern, g.Number, g.CrossNIC, g.Channels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.SameChannels)
		if g.Fallback {
			fmt.Fprintln(out, "  nothing fits at any speed that NCCL tries; it falls back to simple order")
		}
		if g.CutShort {
			fmt.Fprintln(out, "  cut short: NCCL's own budget of steps ended the search; the links may hold more")
		}
		printOrders(out, g)
	}
	fmt.Fprintln(out)
	rings := r.Rings()
	const shown = 4
	for c := 0; c < len(rings); {
		if c >= shown && !verbose {
			fmt.Fprintf(out, "and %d more (--verbose)\n", len(rings)-c)
			break
		}
		line, last := ringLine(rings[c]), c
		for last+1 < len(rings) && ringLine(rings[last+1]) == line {
			last++
		}
		channels := fmt.Sprintf("Channel %02d/%02d", c, len(rings))
		if last > c {
			channels = fmt.Sprintf("Channel %02d-%02d/%02d", c, last, len(rings))
		}
		fmt.Fprintf(out, "%s : %s\n", channels, line)
		c = last + 1
	}
}

// printBound prints what the links allow.
func printBound(out io.Writer, b *search.Physical) {
	if b == nil {
		return
	}
	gbs, ok := b.AllReduce.Get()
	if !ok {
		fmt.Fprintln(out, "\nWhat the links themselves allow is not known.")
		return
	}
	fmt.Fprintf(out, "\nThe links themselves allow all-reduce at most %s GB/s of the result", num(gbs))
	if x, ok := b.InSwitch.Get(); ok {
		fmt.Fprintf(out, ", with reduction in the NVSwitches %s", num(x))
	}
	if x, ok := b.AllGather.Get(); ok {
		fmt.Fprintf(out, "; all-gather %s", num(x))
	}
	fmt.Fprintln(out, ".")
	if len(b.Open) > 0 {
		fmt.Fprintf(out, "  not bounded by %s, whose rate is not known\n", strings.Join(b.Open, ", "))
	}
}

// ringLine is a ring as NCCL logs it: ranks, cut after 128 characters.
func ringLine(ring []int) string {
	const most = 128
	s := strings.Trim(fmt.Sprint(ring), "[]")
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// printOrders prints each order once, with the channels that use it.
func printOrders(out io.Writer, g search.Graph) {
	var orders []string
	channels := map[string][]int{}
	for c, gpus := range g.Rings {
		var parts []string
		if g.Nets != nil {
			parts = append(parts, fmt.Sprintf("NET%d", g.Nets[c][0]))
		}
		for _, dev := range gpus {
			parts = append(parts, fmt.Sprintf("GPU%d", dev))
		}
		switch {
		case g.Nets != nil:
			parts = append(parts, fmt.Sprintf("NET%d", g.Nets[c][1]))
		case g.Pattern == search.Ring:
			parts = append(parts, parts[0])
		}
		s := strings.Join(parts, " → ")
		if channels[s] == nil {
			orders = append(orders, s)
		}
		channels[s] = append(channels[s], c)
	}
	for _, s := range orders {
		fmt.Fprintf(out, "  channel %s: %s\n", ranges(channels[s]), s)
	}
}
