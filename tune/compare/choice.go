package compare

import (
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Names as ncclmap prints them everywhere.
var (
	algorithms = []string{"Ring", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}
	protocols  = []string{"LL", "LL128", "Simple"}
)

// choiceKey finds what NCCL printed of an operation in the output that holds the
// sample.
type choiceKey struct {
	file, collective string
	bytes            int64
}

// choicesOf lists NCCL's own choices, where it printed one per operation and size.
func choicesOf(job *probe.Job) map[choiceKey]probe.Choice {
	out := map[choiceKey]probe.Choice{}
	several := map[choiceKey]bool{}
	for _, c := range job.Choices {
		if len(c.Origins) == 0 {
			continue
		}
		file, _, _ := strings.Cut(c.Origins[0].Where, ":")
		k := choiceKey{file, c.Collective, c.Bytes}
		if have, ok := out[k]; ok && (have.Algorithm != c.Algorithm || have.Protocol != c.Protocol || have.TimeUS != c.TimeUS) {
			several[k] = true
		}
		out[k] = c
	}
	for k := range several {
		delete(out, k)
	}
	return out
}

// choiceOf returns what NCCL printed of a sample's operation. Old versions do not
// name the collective; and only for these is the size that NCCL prints known to be
// the sample's.
func choiceOf(choices map[choiceKey]probe.Choice, file string, x probe.Sample) probe.Choice {
	switch x.Collective {
	case "AllReduce", "Broadcast", "Reduce":
		if c, ok := choices[choiceKey{file, x.Collective, x.Bytes}]; ok {
			return c
		}
		return choices[choiceKey{file, "", x.Bytes}]
	}
	return probe.Choice{}
}

// ran says what algorithm and protocol ran, "" where nothing tells: by the sample,
// by NCCL's own line, or by a setting that leaves one.
func ran(s *probe.Sweep, x probe.Sample, c probe.Choice) (algo, proto string) {
	algo, proto = x.Algorithm, x.Protocol
	if algo == "" {
		algo, proto = c.Algorithm, c.Protocol
	}
	settings, _ := s.Run.Settings.Get()
	for _, e := range settings {
		switch {
		case e.Name == "NCCL_ALGO" && algo == "":
			algo = only(e.Value, algorithms)
		case e.Name == "NCCL_PROTO" && proto == "":
			proto = only(e.Value, protocols)
		}
	}
	return algo, proto
}

// only returns the one name that a value of NCCL_ALGO or NCCL_PROTO leaves, as
// names spells it.
func only(value string, names []string) string {
	for _, n := range names {
		if strings.EqualFold(value, n) {
			return n
		}
	}
	return ""
}
