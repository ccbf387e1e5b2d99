package ncclras

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

type reader struct {
	*probe.JSONStream
	out   *Report
	ranks int
}

func readJSON(name string, br *bufio.Reader) (*Report, error) {
	r := reader{JSONStream: probe.NewJSONStream(name, &mender{r: br}), out: &Report{File: name}}
	for r.More() {
		look := Look{Line: r.Line()}
		if err := r.look(&look); err != nil {
			return nil, err
		}
		r.out.Looks = append(r.out.Looks, look)
	}
	if r.ranks == 0 && !slices.ContainsFunc(r.out.Looks, func(l Look) bool { return l.NCCL != "" }) {
		return nil, &probe.SyntaxError{File: name, Msg: "JSON, but not that of ncclras: no NCCL version and no communicator"}
	}
	return r.out, nil
}

func (r *reader) look(l *Look) error {
	return r.Object(func(key string) error {
		switch key {
		case "nccl_version":
			return r.text(&l.NCCL)
		case "cuda_driver_version":
			var v int
			err := r.Decode(&v)
			if v > 0 {
				l.Driver = probe.Some(v)
			}
			return err
		case "timestamp":
			if err := r.text(&l.At); err != nil {
				return err
			}
			if _, err := time.Parse(probe.TimeLayout, l.At); err != nil {
				return r.Fault("timestamp %q is not of the form %s", probe.Excerpt(l.At), probe.TimeLayout)
			}
			return nil
		case "communicators":
			return r.Array(func() error { return r.comm(l) })
		case "ras":
			var v struct {
				Timeouts int `json:"timeouts_count"`
			}
			err := r.Decode(&v)
			l.Timeouts = v.Timeouts
			return err
		}
		return r.Skip()
	})
}

func (r *reader) text(s *string) error {
	err := r.Decode(s)
	*s = probe.OneLine(*s, 128)
	return err
}

func (r *reader) comm(l *Look) error {
	c := Comm{Line: r.Line()}
	err := r.Object(func(key string) error {
		switch key {
		case "hash":
			var text string
			if err := r.text(&text); err != nil {
				return err
			}
			hash, ok := hashOf(text)
			if !ok {
				return r.Fault("hash %q is no hexadecimal number", probe.Excerpt(text))
			}
			c.Hash = hash
			return nil
		case "size":
			return r.Decode(&c.Ranks)
		case "ranks":
			return r.Array(func() error { return r.rank(&c, false) })
		case "missing_ranks":
			return r.Array(func() error { return r.rank(&c, true) })
		}
		return r.Skip()
	})
	switch {
	case err != nil:
		return err
	case c.Ranks < 1 || c.Ranks > maxSize:
		return r.Fault("communicator %s on line %d has %d ranks", c.Hash, c.Line, c.Ranks)
	case len(l.Comms) >= maxComms:
		return r.Fault("more than %d communicators", maxComms)
	}
	for _, k := range c.List {
		if k.Rank >= c.Ranks {
			return r.Fault("rank %d on line %d, in a communicator of %d", k.Rank, k.Line, c.Ranks)
		}
	}
	l.Comms = append(l.Comms, c)
	return nil
}

type jsonRank struct {
	Rank   int            `json:"rank"`
	Host   string         `json:"host"`
	PID    int            `json:"pid"`
	CUDA   probe.Opt[int] `json:"cuda_dev"`
	NVML   probe.Opt[int] `json:"nvml_dev"`
	Status struct {
		Init         int  `json:"init_state"`
		Async        int  `json:"async_error"`
		Finalize     bool `json:"finalize_called"`
		Destroy      bool `json:"destroy_flag"`
		Abort        bool `json:"abort_flag"`
		Unresponsive bool `json:"unresponsive"`
		Dead         bool `json:"considered_dead"`
	} `json:"status"`
	Counts map[string]int64 `json:"collective_counts"`
}

func (r *reader) rank(c *Comm, missing bool) error {
	line := r.Line()
	j := jsonRank{Rank: -1}
	if err := r.Decode(&j); err != nil {
		return err
	}
	if r.ranks++; r.ranks > maxRanks {
		return r.Fault("more than %d ranks", maxRanks)
	}
	if j.Rank < 0 || len(j.Counts) > 64 {
		return r.Fault("an entry of ranks without a rank")
	}
	k := Rank{Line: line, Rank: j.Rank, CUDADev: j.CUDA, NVMLDev: j.NVML}
	// Where the service does not know the process it writes "unknown" and -1.
	if j.Host != "unknown" {
		k.Host = probe.OneLine(j.Host, 128)
	}
	if j.PID > 0 {
		k.PID = probe.Some(j.PID)
	}
	k.State, k.Error = j.state(missing)
	for name, n := range j.Counts {
		k.Counts = append(k.Counts, Count{probe.OneLine(name, 64), n})
	}
	slices.SortFunc(k.Counts, func(a, b Count) int { return strings.Compare(a.Collective, b.Collective) })
	c.List = append(c.List, k)
	return nil
}

// state tells apart, as the service's own report does, ranks whose process does
// not answer and those whose process answers but is no member of the communicator,
// which is normal while one begins or ends.
func (j *jsonRank) state(missing bool) (state, why string) {
	switch s := j.Status; {
	case missing && s.Dead:
		return probe.RankDead, ""
	case missing && s.Unresponsive:
		return probe.RankMissing, ""
	case missing:
		return probe.RankGone, ""
	case isError(s.Async):
		return probe.RankError, resultName(s.Async)
	case isError(s.Init):
		return probe.RankError, "initialization failed: " + resultName(s.Init)
	case s.Abort:
		return probe.RankAborting, ""
	case s.Finalize || s.Destroy:
		return probe.RankFinished, ""
	case s.Init == ncclInProgress:
		return probe.RankInit, ""
	}
	return "", ""
}

// hashOf prints a communicator's hash as NCCL's logs do.
func hashOf(text string) (string, bool) {
	h, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
	return fmt.Sprintf("0x%x", h), err == nil
}

// mender adds the comma that NCCL 2.28.9 leaves out before the status of a missing
// rank.
type mender struct {
	r     *bufio.Reader
	line  []byte // what is left of it
	comma bool   // is missing at the end of the line before
	err   error
}

func (m *mender) Read(p []byte) (int, error) {
	if len(m.line) == 0 && m.err == nil {
		m.line, m.err = m.r.ReadSlice('\n')
		if m.err == bufio.ErrBufferFull {
			m.err = nil
		}
		text := bytes.TrimSpace(m.line)
		if m.comma && bytes.HasPrefix(text, []byte(`"status"`)) {
			m.line = append([]byte(","), m.line...)
		}
		if len(text) > 0 {
			m.comma = bytes.HasPrefix(text, []byte(`"nvml_dev"`)) && !bytes.ContainsAny(text, ",}")
		}
	}
	n := copy(p, m.line)
	m.line = m.line[n:]
	if n == 0 {
		return 0, m.err
	}
	return n, nil
}
