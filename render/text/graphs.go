package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// graphFiles prints what NCCL's graph files hold: a line per search and one per
// order of channels.
func graphFiles(w io.Writer, files []probe.GraphFile) error {
	out := bufio.NewWriter(w)
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
	return out.Flush()
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
