package model

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Settings are the NCCL settings that change its cost model. The zero value is
// NCCL's default.
type Settings struct {
	Algo          string                          // NCCL_ALGO
	Proto         string                          // NCCL_PROTO
	Threads       int                             // NCCL_NTHREADS
	LL128Threads  int                             // NCCL_LL128_NTHREADS
	Thresholds    [2][nProtocols]probe.Opt[int64] // NCCL_THREAD_THRESHOLDS: tree, ring
	NetOverheadUS probe.Opt[float64]              // NCCL_NET_OVERHEAD, in µs
	PAT           probe.Opt[int]                  // NCCL_PAT_ENABLE
	NoLL128C2C    bool                            // NCCL_LL128_C2C=0
}

// Set takes an NCCL setting over; known is false for one that does not change the
// cost model. An error tells that NCCL cannot read the value. Lists of algorithms
// and protocols are read by [New], which knows the version.
func (s *Settings) Set(name, value string) (known bool, err error) {
	switch name {
	case "NCCL_ALGO":
		s.Algo = value
		return true, nil
	case "NCCL_PROTO":
		s.Proto = value
		return true, nil
	case "NCCL_THREAD_THRESHOLDS":
		return true, s.setThresholds(value)
	case "NCCL_NTHREADS", "NCCL_LL128_NTHREADS", "NCCL_NET_OVERHEAD", "NCCL_PAT_ENABLE", "NCCL_LL128_C2C":
	default:
		return false, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 0, 32)
	if err != nil {
		return true, fmt.Errorf("%s=%q: not a number", name, probe.Excerpt(value))
	}
	switch name {
	case "NCCL_NTHREADS":
		s.Threads = int(n)
	case "NCCL_LL128_NTHREADS":
		s.LL128Threads = int(n)
	case "NCCL_NET_OVERHEAD":
		if n != -2 { // NCCL's word for unset
			s.NetOverheadUS = probe.Some(float64(n) / 1000)
		}
	case "NCCL_PAT_ENABLE":
		s.PAT = probe.Some(int(n))
	case "NCCL_LL128_C2C":
		s.NoLL128C2C = n == 0
	}
	return true, nil
}

// setThresholds reads up to six numbers: Tree LL, LL128, Simple, then Ring. A
// negative one leaves the default (NCCL 2.30.7 tuning.cc:598-608).
func (s *Settings) setThresholds(value string) error {
	for i, f := range strings.Fields(value) {
		n, err := strconv.ParseInt(f, 10, 32)
		if err != nil || i >= 2*nProtocols {
			return fmt.Errorf("NCCL_THREAD_THRESHOLDS=%q: not six numbers", probe.Excerpt(value))
		}
		if n >= 0 {
			s.Thresholds[i/nProtocols][i%nProtocols] = probe.Some(n)
		}
	}
	return nil
}

// refusal is that of NCCL to start with a setting.
type refusal struct{ error }

// Refused reports an error of [New] that NCCL itself has: it does not start.
func Refused(err error) bool {
	var r refusal
	return errors.As(err, &r)
}

// permits says what a setting of algorithms or protocols leaves: by collective
// and word whether it may be used, and whether the setting speaks of the
// collective at all.
type permits struct {
	name    string // of the variable
	allowed [nCollectives]map[string]bool
	set     [nCollectives]bool
}

func readPermits(name, value string, v graph.NCCLVersion) (p permits, err error) {
	p.name = name
	if value == "" {
		return p, nil
	}
	variable, ok := ncclenv.Lookup(name)
	if !ok {
		return p, fmt.Errorf("%s: not in the table of NCCL's variables", name)
	}
	rows, _, err := variable.Selections(value, v.String())
	if err != nil {
		return p, refusal{fmt.Errorf("%s=%q: %w: NCCL %v refuses to start", name, probe.Excerpt(value), err, v)}
	}
	for _, row := range rows {
		i, ok := collectiveIndex(row.Function)
		if !ok || !row.Set {
			continue
		}
		p.set[i] = true
		p.allowed[i] = map[string]bool{}
		for _, w := range row.Allowed {
			p.allowed[i][w] = true
		}
	}
	return p, nil
}

func (p *permits) permits(coll int, word string) bool { return !p.set[coll] || p.allowed[coll][word] }
