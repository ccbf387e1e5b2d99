package nccltests

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Summaries of many runs are written by scripts, as CSV or as a Markdown table,
// a run a line. summaryColumns are the columns that are read, spelled without case
// and punctuation; others are passed over.
var summaryColumns = []string{"file", "test", "n", "g", "nodes", "minbytes", "maxbytes", "avgbusbwgbs", "peakbusbwgbs"}

const maxSummaries = 1 << 16

// SniffSummary reports whether a text begins with the columns of a summary.
func SniffSummary(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(probe.TrimBOM(head), " \t\r\n"), []byte("\n"))
	cells, err := summaryCells(string(line[:min(len(line), 4096)]))
	return err == nil && summaryOrder(cells) != nil
}

// summaryOrder gives the place of each column, nil where one is missing.
func summaryOrder(cells []string) []int {
	var names []string
	for _, c := range cells {
		names = append(names, strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(c)))
	}
	var at []int
	for _, c := range summaryColumns {
		i := slices.Index(names, c)
		if i < 0 {
			return nil
		}
		at = append(at, i)
	}
	return at
}

// summaryCells splits a line of Markdown or CSV.
func summaryCells(line string) ([]string, error) {
	line = strings.TrimSpace(line)
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if !strings.HasPrefix(line, "|") {
		var err error
		if cells, err = csv.NewReader(strings.NewReader(line)).Read(); err != nil {
			return nil, errors.New("no line of CSV")
		}
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, nil
}

// ReadSummary reads a summary of runs; name is the input's base name. Faults are
// *probe.SyntaxError with the line.
func ReadSummary(name string, r io.Reader) (*probe.Inventory, error) {
	inv := &probe.Inventory{Schema: probe.Schema}
	var order []int
	var fault error
	err := probe.EachLine(r, func(n int, line []byte, _ bool) bool {
		text := strings.ToValidUTF8(string(probe.TrimBOM(line)), "?")
		if strings.Trim(text, "|-: \t") == "" {
			return true // the rule below a Markdown head
		}
		cells, err := summaryCells(text)
		switch {
		case err != nil:
		case order == nil:
			if order = summaryOrder(cells); order == nil {
				err = errors.New("not the columns of a summary of nccl-tests runs")
			}
		case len(inv.Summaries) == maxSummaries:
			err = fmt.Errorf("more than %d runs", maxSummaries)
		default:
			var s probe.RunSummary
			if s, err = summary(cells, order); err == nil {
				s.Origins = []probe.Origin{probe.LineOf(Source, name, n)}
				inv.Summaries = append(inv.Summaries, s)
			}
		}
		if err != nil {
			fault = &probe.SyntaxError{File: name, Line: n, Msg: err.Error()}
		}
		return fault == nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case fault != nil:
		return nil, fault
	case len(inv.Summaries) == 0:
		return nil, &probe.SyntaxError{File: name, Msg: "a summary of no run"}
	}
	inv.Normalize()
	return inv, nil
}

func summary(cells []string, order []int) (probe.RunSummary, error) {
	var s probe.RunSummary
	v := make([]string, len(order))
	for i, at := range order {
		if at >= len(cells) {
			return s, fmt.Errorf("%d cells, want %d: the line is cut", len(cells), slices.Max(order)+1)
		}
		v[i] = cells[at]
	}
	s.Log = probe.OneLine(v[0], 256)
	if s.Collective = collectiveOf(v[1]); s.Collective == "" {
		return s, fmt.Errorf("test %q is none of nccl-tests", probe.Excerpt(v[1]))
	}
	var errs [7]error
	s.Nodes, errs[0] = count(v[2])
	s.GPUs, errs[1] = count(v[3])
	s.Hosts, errs[2] = hostList(v[4])
	s.MinBytes, errs[3] = orNone(v[5], byteSize)
	s.MaxBytes, errs[4] = orNone(v[6], byteSize)
	s.MeanBusBW, errs[5] = orNone(v[7], bandwidth)
	s.PeakBusBW, errs[6] = orNone(v[8], bandwidth)
	for i, err := range errs {
		if err != nil {
			return s, fmt.Errorf("%s %q: %w", summaryColumns[i+2], probe.Excerpt(v[i+2]), err)
		}
	}
	return s, nil
}

// orNone reads a figure that a failed run does not have.
func orNone[T any](s string, read func(string) (T, error)) (probe.Opt[T], error) {
	if s == "" {
		return probe.Opt[T]{}, nil
	}
	v, err := read(s)
	if err != nil {
		return probe.Opt[T]{}, err
	}
	return probe.Some(v), nil
}

func count(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1<<20 {
		return 0, errors.New("not a count")
	}
	return n, nil
}

func bandwidth(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0) || v > 1e6 {
		return 0, errors.New("not a bandwidth in GB/s")
	}
	return v, nil
}

// byteSize reads bytes, or a multiple such as 32.0MiB.
func byteSize(s string) (int64, error) {
	number, unit := s, 1.0
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = rest, math.Pow(1024, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(v >= 0) || v*unit > 1<<50 {
		return 0, errors.New("not a size")
	}
	return int64(v * unit), nil
}

var hostPart = regexp.MustCompile(`^([A-Za-z0-9._-]+)(?:\[([0-9,-]+)\])?$`)

// hostList spells out Slurm's short form of host names, gx[01-03,07],login1.
func hostList(s string) ([]string, error) {
	bad := errors.New("not a list of hosts")
	var out []string
	depth := 0
	for _, part := range strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ',' && depth == 0
	}) {
		m := hostPart.FindStringSubmatch(part)
		if m == nil {
			return nil, bad
		}
		if m[2] == "" {
			out = append(out, m[1])
		}
		for _, span := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' }) {
			first, last, ranged := strings.Cut(span, "-")
			if !ranged {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || to < from || to-from > 4096 || len(out) > 4096 {
				return nil, bad
			}
			for i := from; i <= to; i++ {
				out = append(out, fmt.Sprintf("%s%0*d", m[1], len(first), i))
			}
		}
	}
	if len(out) == 0 {
		return nil, bad
	}
	return out, nil
}
