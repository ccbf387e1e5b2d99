package nccltests

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// header reads the lines that are no rows. It reports whether b was one.
func (s *state) header(n int, b []byte) bool {
	if bytes.Contains(b, []byte("algbw")) && bytes.Contains(b, []byte("busbw")) {
		return s.columns(n, b)
	}
	h := b
	if i := bytes.IndexByte(b, '#'); i >= 0 && i < 100 {
		h = b[i:]
		s.closeRow() // the tool ends a row before it writes a mark
	}
	h = bytes.TrimLeft(h, "#> \t")
	switch {
	case len(h) == 0:
		return true
	case bytes.HasPrefix(h, []byte("nccl-tests version ")):
		if t := s.table(n, stageVersion); t != nil {
			f := strings.Fields(string(h[len("nccl-tests version "):]))
			for i, x := range f {
				code, isHeaders := strings.CutPrefix(x, "nccl-headers=")
				library, isLibrary := strings.CutPrefix(x, "nccl-library=")
				switch {
				case i == 0:
					t.Tests = plain(x)
				case isHeaders:
					t.Headers = versionOf(code)
				case isLibrary:
					t.NCCL = versionOf(library)
				}
			}
		}
	case bytes.HasPrefix(h, []byte("Collective test starting:")):
		if t := s.table(n, stageProgram); t != nil {
			t.Program = s.text(h[len("Collective test starting:"):])
		}
	case bytes.HasPrefix(h, []byte("nThread ")) && bytes.Contains(h, []byte("nGpus ")):
		if t := s.table(n, stageConfig); t != nil {
			t.Config = parseConfig(h)
		}
	case bytes.HasPrefix(h, []byte("Using devices")):
		s.table(n, stageDevices)
	case bytes.HasPrefix(h, []byte("Rank ")):
		return s.device(n, h)
	case bytes.HasPrefix(h, []byte("Out of bounds values")):
		s.closeRow()
		if t := s.running(); t != nil {
			s.at = stageFooter
			f := bytes.Fields(h[len("Out of bounds values"):])
			if len(f) > 1 && isDigits(f[1]) {
				if v, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
					t.OutOfBounds = probe.Some(v)
				}
			}
		}
	case bytes.HasPrefix(h, []byte("Avg bus bandwidth")):
		s.closeRow()
		if t := s.running(); t != nil {
			f := bytes.Fields(h[len("Avg bus bandwidth"):])
			if len(f) > 1 {
				if v, known, ok := parseNumber(f[1]); ok && known {
					t.AvgBusBW = probe.Some(v.v)
				}
			}
			t.done = true
		}
	case bytes.HasPrefix(h, []byte("Collective test concluded")):
		s.closeRow()
		if t := s.running(); t != nil {
			t.done = true
		}
	case bytes.HasPrefix(h, []byte("Reducing maxBytes to ")):
		if t := s.running(); t != nil {
			s.note(&t.Notes, n, h)
		}
	case bytes.Contains(h, []byte("Test NCCL failure ")), bytes.Contains(h, []byte("Test CUDA failure ")),
		bytes.Contains(h, []byte("Test timeout (")), bytes.Contains(h, []byte("Invalid number of GPUs:")):
		s.closeRow()
		t := s.running()
		if t == nil {
			t = s.table(n, stageProgram)
		}
		if t != nil {
			s.note(&t.Failures, n, h)
		}
	default:
		return s.command(n, b)
	}
	return true
}

func (s *state) note(list *[]Note, n int, text []byte) {
	if len(*list) >= maxNotes {
		s.out.Dropped++
		return
	}
	*list = append(*list, Note{Line: n, Text: s.text(text)})
}

// command reads what stands between two runs of how the next one is started.
func (s *state) command(n int, b []byte) bool {
	hasPerf, hasEnv := bytes.Contains(b, []byte("_perf")), bytes.Contains(b, []byte("NCCL_"))
	if !hasPerf && !hasEnv || len(b) > 64<<10 {
		return false
	}
	f := bytes.Fields(b)
	for i, x := range f {
		if hasPerf {
			base := x[bytes.LastIndexByte(x, '/')+1:]
			if collectiveOf(string(base)) != "" && bytes.IndexByte(base, ':') < 0 && bytes.IndexByte(base, '=') < 0 {
				if t := s.running(); t == nil || len(t.Rows) > 0 {
					s.program = s.text(base)
				}
			}
		}
		name, value, ok := bytes.Cut(x, []byte("="))
		if !ok || !bytes.HasPrefix(name, []byte("NCCL_")) || !isName(name) {
			continue
		}
		lead := i == 0
		if i > 0 {
			switch string(f[i-1]) {
			case "-x", "export", "env", "-env", "-genv", "$", ">", "\\":
				lead = true
			default:
				lead = bytes.HasPrefix(f[i-1], []byte("NCCL_"))
			}
		}
		if lead {
			s.setting(Setting{Name: s.text(name), Value: s.text(bytes.Trim(value, `"'`)), Line: n})
		}
	}
	return hasPerf
}

func isName(b []byte) bool {
	for _, c := range b {
		if c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(b) > 0
}

// versionOf writes NCCL's version code as people do: 22807 is 2.28.7, and
// before 2.9 2708 was 2.7.8.
func versionOf(code string) string {
	v, err := strconv.Atoi(code)
	switch {
	case err != nil || v < 1000 || v > 1<<24:
		return ""
	case v < 10000:
		return strconv.Itoa(v/1000) + "." + strconv.Itoa(v/100%10) + "." + strconv.Itoa(v%100)
	}
	return strconv.Itoa(v/10000) + "." + strconv.Itoa(v/100%100) + "." + strconv.Itoa(v%100)
}

func parseConfig(h []byte) Config {
	var c Config
	small := map[string]*probe.Opt[int]{
		"nThread": &c.Threads, "nGpus": &c.GPUs, "warmup iters:": &c.Warmup, "iters:": &c.Iters,
		"agg iters:": &c.Agg, "validation:": &c.Validation, "graph:": &c.Graph,
	}
	large := map[string]*probe.Opt[int64]{"minBytes": &c.MinBytes, "maxBytes": &c.MaxBytes}
	f := strings.Fields(string(h[:min(len(h), 1024)]))
	for i := 0; i+1 < len(f); i++ {
		key := f[i]
		if key == "iters:" && i > 0 && (f[i-1] == "warmup" || f[i-1] == "agg") {
			key = f[i-1] + " iters:"
		}
		if key == "step:" {
			digits, unit, _ := strings.Cut(f[i+1], "(")
			if v, err := strconv.ParseInt(digits, 10, 64); err == nil {
				if strings.HasPrefix(unit, "factor") {
					c.StepFactor = probe.Some(v)
				} else {
					c.StepBytes = probe.Some(v)
				}
			}
		}
		if p := small[key]; p != nil {
			if v, err := strconv.Atoi(f[i+1]); err == nil {
				*p = probe.Some(v)
			}
		}
		if p := large[key]; p != nil {
			if v, err := strconv.ParseInt(f[i+1], 10, 64); err == nil {
				*p = probe.Some(v)
			}
		}
	}
	return c
}

// device reads "Rank r [Group g] Pid p on host device d [bus] name".
func (s *state) device(n int, h []byte) bool {
	if len(h) > 4096 {
		return false
	}
	f := fields(s.f[:0], h)
	s.f = f
	d := Device{Line: n}
	var err error
	i := 1
	if len(f) < 8 || !isDigits(f[i]) {
		return false
	}
	if d.Rank, err = strconv.Atoi(string(f[i])); err != nil {
		return false
	}
	i++
	if string(f[i]) == "Group" && len(f) > 10 {
		g, err := strconv.Atoi(string(f[i+1]))
		if err != nil {
			return false
		}
		d.Group = probe.Some(g)
		i += 2
	}
	if len(f) < i+7 || string(f[i]) != "Pid" || string(f[i+2]) != "on" || string(f[i+4]) != "device" {
		return false
	}
	if d.PID, err = strconv.Atoi(string(f[i+1])); err != nil {
		return false
	}
	if d.Device, err = strconv.Atoi(string(f[i+5])); err != nil {
		return false
	}
	bus := f[i+6]
	if len(bus) < 3 || bus[0] != '[' || bus[len(bus)-1] != ']' {
		return false
	}
	d.Host, d.Bus = s.text(f[i+3]), s.text(bus[1:len(bus)-1])
	if a, err := probe.ParseBDF(d.Bus); err == nil {
		d.Addr = probe.Some(a)
	}
	if j := bytes.IndexByte(h, ']'); j >= 0 {
		d.Name = s.text(h[j+1:])
	}
	t := s.running()
	if t == nil || s.at < stageDevices && len(t.Devices) > 0 || s.at >= stageRows {
		t = s.table(n, stageDevices)
	}
	if t == nil || s.devices >= maxDevices {
		s.out.Dropped++
		return true
	}
	s.at = max(s.at, stageDevices)
	s.devices++
	t.Devices = append(t.Devices, d)
	host := []byte(d.Host)
	if !slices.ContainsFunc(s.hosts, func(h []byte) bool { return bytes.Equal(h, host) }) && len(s.hosts) < 1024 {
		s.hosts = append(s.hosts, host)
	}
	return true
}

// columns reads the line of column names.
func (s *state) columns(n int, b []byte) bool {
	if len(b) > 4096 {
		return false
	}
	f := fields(s.f[:0], b)
	s.f = f
	l := layout{}
	half := 0
	known := false
	for _, x := range f {
		x = bytes.TrimLeft(x, "#")
		switch string(x) {
		case "size", "bytes":
			known = true
		case "redop", "op":
			l.op = true
		case "root":
			l.root = true
		case "time", "cputime":
			half++
			fallthrough
		default:
			if half == 1 && len(x) > 0 && string(x) != "timestamp" {
				l.half = append(l.half, string(x))
			}
		}
	}
	if !known || half == 0 || len(l.half) < 3 || len(l.half) > 16 {
		return false
	}
	s.closeRow()
	if s.table(n, stageColumns) == nil {
		return true
	}
	s.layout = l
	return true
}
