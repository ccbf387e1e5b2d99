package ncclras

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the origin's name of this reader.
const Source = probe.SourceNCCLRAS

// Report is what one file holds.
type Report struct {
	File  string
	Looks []Look
}

// Look is one answer of the service.
type Look struct {
	Line     int
	NCCL     string         // version
	CUDA     string         // that NCCL was built with; text only
	Driver   probe.Opt[int] // CUDA version of the driver, 1000 × major + 10 × minor
	At       string         // local time, see probe.TimeLayout; JSON only
	Timeouts int            // while it asked the processes
	Comms    []Comm
	Unnamed  int // communicators of which the text gives no hash
}

// Comm is one communicator.
type Comm struct {
	Line  int
	Hash  string // 0x…, as in NCCL's logs
	Ranks int
	Nodes probe.Opt[int]
	List  []Rank
}

// Rank is what is known of one rank.
type Rank struct {
	Line    int
	Rank    int
	Host    string // IP address; "" = unknown
	PID     probe.Opt[int]
	CUDADev probe.Opt[int]
	NVMLDev probe.Opt[int]
	State   string // see probe.RankMissing
	Error   string
	Counts  []Count
}

// Count is how many operations of one kind a rank has launched.
type Count struct {
	Collective string
	Launched   int64
}

// resultNames are NCCL's words for ncclResult_t (nccl.h, ncclGetErrorString).
var resultNames = []string{"no error", "unhandled CUDA error", "system error", "internal error", "invalid argument", "invalid usage", "remote process error", "in progress"}

// Results that are no errors.
const (
	ncclSuccess    = 0
	ncclInProgress = 7
)

func isError(result int) bool { return result != ncclSuccess && result != ncclInProgress }

func resultName(result int) string {
	if result < 0 || result >= len(resultNames) {
		return fmt.Sprintf("NCCL error %d", result)
	}
	return fmt.Sprintf("%s (%d)", resultNames[result], result)
}

// Inventories returns the communicators with their ranks, and the NCCL version, in
// the words of package probe. Looks at one communicator are joined.
func (r *Report) Inventories() []*probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	gap := func(look Look, what, why, how string) {
		inv.Gaps = append(inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: r.origin(look.Line)})
	}
	for i, look := range r.Looks {
		if look.At == "" && i < len(r.Looks)-1 {
			gap(look, "communicators", "a report in text does not say when it was made; of several in one file the last counts", "ncclras -f json (NCCL 2.28.7 and later) does")
			continue
		}
		job := probe.Job{}
		if look.NCCL != "" {
			job.Versions = []probe.NCCLSeen{{NCCL: look.NCCL, CUDA: look.CUDA, Driver: look.Driver, Origins: []probe.Origin{r.origin(look.Line)}}}
		}
		for _, c := range look.Comms {
			job.Comms = append(job.Comms, r.comm(look, c))
		}
		inv.AddJob(&job)
		if look.Unnamed > 0 {
			gap(look, "communicators", fmt.Sprintf("the report in text only counts %d communicators with which nothing is wrong", look.Unnamed), "ncclras -f json (NCCL 2.28.7 and later) names them")
		}
		if look.Timeouts > 0 {
			gap(look, "ranks", fmt.Sprintf("the service met %d timeouts while it asked the processes", look.Timeouts), "ask again with a longer time: ncclras -t 30")
		}
	}
	inv.Normalize()
	return []*probe.Inventory{inv}
}

func (r *Report) comm(look Look, c Comm) probe.Comm {
	out := probe.Comm{ID: c.Hash, NCCL: look.NCCL, Ranks: c.Ranks, Nodes: c.Nodes, Origins: []probe.Origin{r.origin(c.Line)}}
	for _, k := range c.List {
		m := probe.Member{
			Rank: k.Rank, Host: k.Host, PID: k.PID, GPU: k.NVMLDev, CUDADev: k.CUDADev,
			State: k.State, Error: k.Error, At: look.At, Origins: []probe.Origin{r.origin(k.Line)},
		}
		for _, n := range k.Counts {
			m.Progress = append(m.Progress, probe.Progress{Collective: n.Collective, Issued: n.Launched, At: look.At})
		}
		out.Members = append(out.Members, m)
	}
	return out
}

func (r *Report) origin(line int) probe.Origin { return probe.LineOf(Source, r.File, line) }
