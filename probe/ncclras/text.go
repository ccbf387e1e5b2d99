package ncclras

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// The lines of the report in text.
var (
	versionLine = regexp.MustCompile(`^\s*NCCL version (\S+) compiled with CUDA "?([0-9.]+)`)
	driverLine  = regexp.MustCompile(`^\s*CUDA runtime version \d+, driver version (\d+)`)
	groupLine   = regexp.MustCompile(`^\s*(\d+)\s+(\d+)\s+(\d+)\s+\d+(?:-\d+)?\s+(\d+)\s+\d+\s+[A-Z]+\s+[A-Z,]+\s*$`)
	blockLine   = regexp.MustCompile(`^\s*#(\d+)-\d+ \(([0-9a-f]{1,16})\) (MISMATCH|INCOMPLETE|ERROR)\s*$`)
	headLine    = regexp.MustCompile(`^\s*(INCOMPLETE|DEAD|TIMEOUT)\s*$`)
	processLine = regexp.MustCompile(`^\s*Process (\d+) on node (\S+) managing GPUs? (\d+)?`)
	rankLine    = regexp.MustCompile(`^\s*Rank (\d+)(?: (.+?))? -- (?:GPU (\d+)(?: \(NVML (\d+)\))? managed by process (\d+) on node (\S+)|\[process information not found\])$`)
	manyLine    = regexp.MustCompile(`^\s*(\d+) ranks (.+)$`)
	countsLine  = regexp.MustCompile(`^\s*Communicator ranks have different (\w+) operation counts$`)
	missingLine = regexp.MustCompile(`^\s*The missing ranks?: ([0-9, ]+)$`)
	timeoutLine = regexp.MustCompile(`^\s*Encountered (\d+) communication timeouts?`)
	launched    = regexp.MustCompile(`^(?:have|has) launched up to operation (\d+)$`)
)

// textReader is where in the report the reader is.
type textReader struct {
	name   string
	out    *Report
	groups map[string]group // by number
	dead   map[process]bool
	lost   []lostProcess // that do not answer
	comm   *Comm
	at     map[int]int // rank → its place in comm.List
	ranks  int         // of all communicators
	kind   string      // of the block
	// The ranks of one line "k ranks …", or of a rank that is told alone.
	what    string
	counted string // collective of which the counts differ; "" = none
	parts   []part
	named   map[string]int // hash → its place in the look
	err     error
}

type group struct{ comms, nodes, ranks int }

type process struct {
	host string
	pid  int
}

type lostProcess struct {
	process
	gpu probe.Opt[int]
}

// part is the ranks that have launched the same number of operations.
type part struct {
	launched int64
	ranks    int
	listed   []int
}

// longest is more than any line of a report has.
const longest = 4096

func readText(name string, r io.Reader) (*Report, error) {
	t := textReader{name: name, out: &Report{File: name}}
	err := probe.EachLine(r, func(n int, line []byte, _ bool) bool {
		if len(line) <= longest {
			t.line(n, string(line))
		}
		return t.err == nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.endLook()
	if t.err == nil && len(t.out.Looks) == 0 {
		t.err = &probe.SyntaxError{File: name, Msg: "no report of ncclras"}
	}
	if t.err != nil {
		return nil, t.err
	}
	return t.out, nil
}

func (t *textReader) look(n int) *Look {
	if len(t.out.Looks) == 0 {
		t.begin(n)
	}
	return &t.out.Looks[len(t.out.Looks)-1]
}

func (t *textReader) begin(n int) {
	t.endLook()
	t.out.Looks = append(t.out.Looks, Look{Line: n})
	t.groups, t.dead, t.named, t.lost = map[string]group{}, map[process]bool{}, map[string]int{}, nil
}

func (t *textReader) line(n int, line string) {
	if m := versionLine.FindStringSubmatch(line); m != nil {
		t.begin(n)
		l := t.look(n)
		l.NCCL, l.CUDA = probe.OneLine(m[1], 64), m[2]
		return
	}
	if m := driverLine.FindStringSubmatch(line); m != nil {
		t.look(n).Driver = number(m[1])
		return
	}
	if m := groupLine.FindStringSubmatch(line); m != nil {
		t.group(n, m)
		return
	}
	if m := blockLine.FindStringSubmatch(line); m != nil {
		t.block(n, m)
		return
	}
	if m := headLine.FindStringSubmatch(line); m != nil {
		t.endBlock()
		t.kind = m[1]
		return
	}
	if m := timeoutLine.FindStringSubmatch(line); m != nil {
		t.look(n).Timeouts = number(m[1]).Or(0)
		return
	}
	if m := processLine.FindStringSubmatch(line); m != nil && (t.kind == "DEAD" || t.kind == "INCOMPLETE") && t.comm == nil && len(t.out.Looks) > 0 {
		p := process{probe.OneLine(m[2], 128), number(m[1]).Or(0)}
		t.lost = append(t.lost, lostProcess{p, number(m[3])})
		t.dead[p] = t.dead[p] || t.kind == "DEAD"
		return
	}
	if t.comm != nil {
		t.inBlock(n, line)
	}
}

func (t *textReader) group(n int, m []string) {
	l := t.look(n)
	g := group{number(m[2]).Or(0), number(m[3]).Or(0), number(m[4]).Or(0)}
	if g.ranks < 1 || g.ranks > maxSize {
		t.err = &probe.SyntaxError{File: t.name, Line: n, Msg: fmt.Sprintf("%d ranks in a communicator", g.ranks)}
		return
	}
	t.groups[m[1]] = g
	l.Unnamed += g.comms
}

// block begins what is said of one communicator.
func (t *textReader) block(n int, m []string) {
	t.endBlock()
	g, ok := t.groups[m[1]]
	hash, _ := hashOf(m[2])
	if !ok {
		t.err = &probe.SyntaxError{File: t.name, Line: n, Msg: fmt.Sprintf("communicator %s is of group %s, which the table above does not list", hash, m[1])}
		return
	}
	l := t.look(n)
	if _, known := t.named[hash]; !known && len(l.Comms) >= maxComms {
		t.err = &probe.SyntaxError{File: t.name, Line: n, Msg: fmt.Sprintf("more than %d communicators", maxComms)}
		return
	}
	if _, known := t.named[hash]; !known {
		t.named[hash] = len(l.Comms)
		l.Unnamed--
		l.Comms = append(l.Comms, Comm{Line: n, Hash: hash, Ranks: g.ranks, Nodes: probe.Some(g.nodes)})
	}
	t.comm, t.kind = &l.Comms[t.named[hash]], m[3]
	t.at = map[int]int{}
	for i, k := range t.comm.List {
		t.at[k.Rank] = i
	}
}

func (t *textReader) inBlock(n int, line string) {
	if m := countsLine.FindStringSubmatch(line); m != nil {
		t.endCounts()
		if t.counted = m[1]; t.counted == "collective" { // NCCL 2.24 and 2.25 count all together
			t.counted = probe.AllCollectives
		}
		return
	}
	if m := rankLine.FindStringSubmatch(line); m != nil {
		t.rank(n, m)
		return
	}
	if m := manyLine.FindStringSubmatch(line); m != nil {
		if t.what = m[2]; t.counted != "" {
			if v, ok := launchedOf(t.what); ok {
				t.parts = append(t.parts, part{launched: v, ranks: number(m[1]).Or(0)})
			}
		}
		return
	}
	if m := missingLine.FindStringSubmatch(line); m != nil {
		for _, f := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if k := t.member(n, number(f)); k != nil {
				k.State = probe.RankMissing
			}
		}
	}
}

// rank takes a line about one rank. What holds for it stands in it, or above for
// several.
func (t *textReader) rank(n int, m []string) {
	k := t.member(n, number(m[1]))
	if k == nil {
		return
	}
	if m[5] != "" {
		k.CUDADev, k.NVMLDev, k.PID, k.Host = number(m[3]), number(m[3]), number(m[5]), probe.OneLine(m[6], 128)
		if m[4] != "" {
			k.NVMLDev = number(m[4])
		}
	}
	what := m[2]
	alone := what != ""
	if !alone {
		what = t.what
	}
	switch v, ok := launchedOf(what); {
	case t.kind == "INCOMPLETE":
		k.State = probe.RankMissing
	case t.kind == "ERROR":
		k.State, k.Error = probe.RankError, strings.ToLower(strings.TrimPrefix(what, "reported "))
	case ok && t.counted != "":
		if alone {
			t.parts = append(t.parts, part{launched: v, ranks: 1})
		}
		if len(t.parts) > 0 {
			p := &t.parts[len(t.parts)-1]
			p.listed = append(p.listed, k.Rank)
		}
	default:
		if _, status, ok := strings.Cut(what, " status "); ok && k.State == "" {
			k.State = stateOf(status)
		}
	}
}

// stateOf turns NCCL's word for how a rank stands to its communicator into a state.
func stateOf(status string) string {
	switch status {
	case "INIT":
		return probe.RankInit
	case "FINALIZE":
		return probe.RankFinished
	case "ABORT":
		return probe.RankAborting
	case "NOCOMM", "UNKNOWN": // UNKNOWN up to NCCL 2.25
		return probe.RankGone
	}
	return ""
}

func launchedOf(what string) (int64, bool) {
	if strings.HasSuffix(what, "not launched any operations") {
		return 0, true
	}
	m := launched.FindStringSubmatch(what)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(m[1], 10, 64)
	return v, err == nil
}

// member finds or adds a rank of the communicator; nil where there is none of that
// number.
func (t *textReader) member(n int, rank probe.Opt[int]) *Rank {
	r, ok := rank.Get()
	if !ok || r >= t.comm.Ranks {
		t.err = &probe.SyntaxError{File: t.name, Line: n, Msg: fmt.Sprintf("a rank that communicator %s of %d ranks does not have", t.comm.Hash, t.comm.Ranks)}
		return nil
	}
	i, known := t.at[r]
	if !known {
		if t.ranks++; t.ranks > maxRanks {
			t.err = &probe.SyntaxError{File: t.name, Line: n, Msg: fmt.Sprintf("more than %d ranks", maxRanks)}
			return nil
		}
		i = len(t.comm.List)
		t.at[r] = i
		t.comm.List = append(t.comm.List, Rank{Line: n, Rank: r})
	}
	return &t.comm.List[i]
}

// endCounts gives the ranks their counts. Of large parts the report lists no
// ranks; where there is one such part, it is all the others.
func (t *textReader) endCounts() {
	defer func() { t.counted, t.parts = "", nil }()
	if t.counted == "" || t.comm == nil {
		return
	}
	var silent []part
	listed := map[int]bool{}
	total := 0
	for _, p := range t.parts {
		total += p.ranks
		if len(p.listed) == 0 {
			silent = append(silent, p)
		}
		for _, r := range p.listed {
			listed[r] = true
			t.count(r, p.launched)
		}
	}
	if len(silent) == 1 && total == t.comm.Ranks {
		for r := 0; r < t.comm.Ranks && t.err == nil; r++ {
			if !listed[r] {
				t.count(r, silent[0].launched)
			}
		}
	}
}

func (t *textReader) count(rank int, launched int64) {
	k := t.member(t.comm.Line, probe.Some(rank))
	if k != nil {
		k.Counts = append(k.Counts, Count{t.counted, launched})
	}
}

func (t *textReader) endBlock() {
	t.endCounts()
	t.comm, t.kind, t.what = nil, "", ""
}

// endLook gives ranks that do not answer what is said of their processes.
func (t *textReader) endLook() {
	t.endBlock()
	if len(t.out.Looks) == 0 {
		return
	}
	l := &t.out.Looks[len(t.out.Looks)-1]
	for i := range l.Comms {
		c := &l.Comms[i]
		var missing []*Rank
		for j := range c.List {
			if c.List[j].State == probe.RankMissing {
				missing = append(missing, &c.List[j])
			}
		}
		// The first versions name rank and process apart.
		if len(missing) == 1 && len(t.lost) == 1 && missing[0].Host == "" {
			missing[0].Host, missing[0].PID, missing[0].CUDADev = t.lost[0].host, probe.Some(t.lost[0].pid), t.lost[0].gpu
		}
		for _, k := range missing {
			if t.dead[process{k.Host, k.PID.Or(0)}] {
				k.State = probe.RankDead
			}
		}
	}
}

func number(s string) probe.Opt[int] {
	if v, err := strconv.Atoi(s); err == nil {
		return probe.Some(v)
	}
	return probe.Opt[int]{}
}
