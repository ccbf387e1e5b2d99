package text

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// jobFiles prints what graph files and summaries of runs hold, which are of no
// host: a line per search, one per order of channels, one per collective.
func jobFiles(w io.Writer, j *probe.Job) error {
	out := bufio.NewWriter(w)
	graphFiles(out, j.Graphs)
	runSummaries(out, j.Summaries)
	return out.Flush()
}

func runSummaries(out *bufio.Writer, runs []probe.RunSummary) {
	type figures struct {
		runs, failed int
		low, high    float64
	}
	of := map[string]*figures{}
	for _, r := range runs {
		name := fmt.Sprintf("%s, %d × %d GPUs", r.Collective, r.Nodes, r.GPUs)
		f := of[name]
		if f == nil {
			f = &figures{low: math.Inf(1)}
			of[name] = f
		}
		f.runs++
		if peak, ok := r.PeakBusBW.Get(); ok {
			f.low, f.high = min(f.low, peak), max(f.high, peak)
		} else {
			f.failed++
		}
	}
	if len(runs) > 0 {
		fmt.Fprintf(out, "summary of %d nccl-tests runs, peak bus bandwidth:\n", len(runs))
	}
	for _, name := range slices.SortedFunc(maps.Keys(of), probe.CompareNames) {
		f := of[name]
		fmt.Fprintf(out, "  %s: %d runs", name, f.runs)
		if f.failed < f.runs {
			fmt.Fprintf(out, ", %g to %g GB/s", f.low, f.high)
		}
		if f.failed > 0 {
			fmt.Fprintf(out, ", %d without a result", f.failed)
		}
		fmt.Fprintln(out)
	}
}

func graphFiles(out *bufio.Writer, files []probe.GraphFile) {
	for _, f := range files {
		fmt.Fprintf(out, "NCCL graphs in %s:\n", f.File)
		for _, g := range f.Graphs {
			fmt.Fprintf(out, "  %s: %s\n", graphName(g), graphText(g))
			for from := 0; from < len(g.Orders); {
				to := from
				for to+1 < len(g.Orders) && g.Orders[to+1] == g.Orders[from] {
					to++
				}
				channels := fmt.Sprintf("channel %d", from)
				if to > from {
					channels = fmt.Sprintf("channels %d to %d", from, to)
				}
				fmt.Fprintf(out, "    %s: %s\n", channels, g.Orders[from])
				from = to + 1
			}
		}
	}
}

// graphName names a search: the pattern alone does not tell CollNet's chain from
// a tree.
func graphName(g probe.Graph) string {
	names := []string{"ring", "tree", "collnet chain", "nvls", "collnet direct"}
	id, ok := g.ID.Get()
	switch {
	case !ok:
		return g.Pattern
	case id < len(names) && names[id] == g.Pattern:
		return g.Pattern
	case id < len(names):
		return fmt.Sprintf("%s (%s)", names[id], g.Pattern)
	}
	return fmt.Sprintf("search %d (%s)", id, g.Pattern)
}

func graphText(g probe.Graph) string {
	if g.Channels == 0 {
		return "no channel"
	}
	s := fmt.Sprintf("%d × %g GB/s over %s within a host, %g GB/s over %s between hosts", g.Channels, g.BWIntra, g.TypeIntra, g.BWInter, g.TypeInter)
	if !strings.Contains(strings.Join(g.Orders, " "), "NET/") {
		s = fmt.Sprintf("%d × %g GB/s over %s", g.Channels, g.BWIntra, g.TypeIntra)
	}
	if g.CrossNIC > 0 {
		s += ", NICs crossed"
	}
	return s
}
