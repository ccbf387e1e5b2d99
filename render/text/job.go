package text

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Job prints in a few lines what is known of jobs: how many communicators, ranks
// and measured points.
func Job(w io.Writer, j *probe.Job) {
	ranks, states, colls := 0, map[string]int{}, map[string]int64{}
	for _, c := range j.Comms {
		ranks += len(c.Members)
		for _, m := range c.Members {
			if m.State != "" {
				states[m.State]++
			}
		}
	}
	for _, s := range j.Samples {
		colls[s.Collective]++
	}
	if len(j.Comms) > 0 {
		line := fmt.Sprintf("jobs: %d communicators, %d ranks of them seen", len(j.Comms), ranks)
		for _, s := range slices.Sorted(maps.Keys(states)) {
			line += fmt.Sprintf(", %d %s", states[s], s)
		}
		fmt.Fprintln(w, line)
	}
	if len(j.Samples) > 0 {
		var parts []string
		for _, c := range slices.Sorted(maps.Keys(colls)) {
			parts = append(parts, fmt.Sprintf("%d of %s", colls[c], c))
		}
		fmt.Fprintf(w, "measured points: %s\n", strings.Join(parts, ", "))
	}
	var nccl []string
	for _, v := range j.Versions {
		nccl = append(nccl, v.NCCL)
	}
	slices.SortFunc(nccl, func(a, b string) int { return cmp.Or(probe.CompareNames(a, b), strings.Compare(a, b)) })
	if nccl = slices.Compact(nccl); len(nccl) > 0 {
		fmt.Fprintf(w, "NCCL %s\n", strings.Join(nccl, ", "))
	}
}
