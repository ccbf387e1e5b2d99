package nvbandwidth

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Bounds of what is believed; a rack of NVL72 has 72 GPUs.
const (
	maxSide     = 1024
	maxMatrices = 4096
	maxValues   = 1 << 20
	maxDevices  = 4096
	maxNotes    = 1024
)

// Sniff reports whether a text holds such matrices. head may end anywhere.
func Sniff(head []byte) bool {
	if h := bytes.TrimLeft(probe.TrimBOM(head), " \t\r\n"); len(h) > 0 && h[0] == '{' {
		return bytes.Contains(h, []byte(`"nvbandwidth"`))
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	pairs, others := 0, 0
	for len(head) > 0 {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		head = rest
		text := string(bytes.TrimSpace(line[:min(len(line), 8<<10)]))
		if strings.HasPrefix(text, "nvbandwidth Version: ") || strings.Contains(text, "GPU Bandwidth Latency Test") {
			return true
		}
		if _, ok := title(text); ok {
			return true
		}
		if _, ok := pairLine(strings.Fields(text)); ok {
			pairs++
		} else if text != "" && whole {
			others++
		}
	}
	// A list of pairs holds nothing else.
	return pairs > 0 && others == 0
}

// Read reads a whole input; name is its base name. Faults are
// *probe.SyntaxError with the line; an input over probe.MaxInput is
// probe.ErrTooLarge. A row with more or fewer figures than columns is refused;
// a matrix whose last rows are missing is kept, with a note.
func Read(name string, r io.Reader) (*Output, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &parser{out: &Output{File: name}}
	raw = probe.TrimBOM(raw)
	text := bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case len(text) == 0:
		return nil, p.fault(0, "empty: no matrix")
	case bytes.IndexByte(raw, 0) >= 0:
		return nil, p.fault(0, "binary data, not text")
	case text[0] == '{':
		return p.json(raw)
	}
	return p.text(raw)
}

type parser struct {
	out    *Output
	values int

	test    string // of "Running NAME."
	cur     *Matrix
	waiting bool // a title was read, its columns were not
	form    string
}

func (p *parser) fault(line int, format string, args ...any) error {
	return &probe.SyntaxError{File: p.out.File, Line: line, Msg: fmt.Sprintf(format, args...)}
}

func plain(t string) string { return probe.OneLine(t, 256) }

// title reads the line above a matrix: "memcpy CE CPU(row) -> GPU(column)
// bandwidth (GB/s)", "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix
// (GB/s)", "P2P Connectivity Matrix".
func title(line string) (Matrix, bool) {
	m := Matrix{Description: plain(line)}
	if len(line) > 512 {
		return m, false
	}
	if i := strings.LastIndexByte(line, '('); i >= 0 && strings.HasSuffix(line, ")") {
		m.Unit = line[i+1 : len(line)-1]
	}
	if row := strings.Index(line, "(row) "); row > 0 && strings.Contains(line, "(column)") {
		m.RowKind = kindOf(line[:row])
		rest := line[row+len("(row) "):]
		m.Direction, rest, _ = strings.Cut(rest, " ")
		switch m.Direction {
		case "->", "<-", "<->":
		default:
			return m, false
		}
		col, _, _ := strings.Cut(rest, "(column)")
		m.ColKind = kindOf(col)
		switch m.Unit {
		case "GB/s", "us", "ns":
			return m, true
		}
		return m, false
	}
	if strings.HasSuffix(line, "Connectivity Matrix") && strings.HasPrefix(line, "P2P") {
		m.Unit, m.RowKind, m.ColKind = "", GPU, GPU
		return m, true
	}
	if !strings.Contains(line, "P2P=") || !strings.Contains(line, " Matrix (") || m.Unit != "GB/s" && m.Unit != "us" {
		return m, false
	}
	m.RowKind, m.ColKind, m.Direction = GPU, GPU, "->"
	if strings.HasPrefix(line, "Bidirectional") {
		m.Direction = "<->"
	}
	return m, true
}

func kindOf(s string) string {
	s = strings.TrimSpace(s)
	switch {
	case strings.HasSuffix(s, "CPU"):
		return CPU
	case strings.HasSuffix(s, "GPU"):
		return GPU
	}
	return ""
}

// pair is a line of a plain list.
type pair struct {
	test     string
	row, col int
	value    float64
}

// pairLine reads "0 1 394.3 GB/s" and "h2d 0 55.4 GB/s".
func pairLine(f []string) (pair, bool) {
	if len(f) != 4 || f[3] != "GB/s" {
		return pair{}, false
	}
	v, known, ok := value(f[2])
	col, err := strconv.Atoi(f[1])
	if !ok || !known || err != nil || col < 0 || col >= maxSide {
		return pair{}, false
	}
	switch f[0] {
	case "h2d":
		return pair{"host_to_device", 0, col, v}, true
	case "d2h":
		return pair{"device_to_host", 0, col, v}, true
	}
	row, err := strconv.Atoi(f[0])
	if err != nil || row < 0 || row >= maxSide {
		return pair{}, false
	}
	return pair{"device_to_device", row, col, v}, true
}

// value reads a cell; known is false for N/A.
func value(s string) (v float64, known, ok bool) {
	if s == "N/A" {
		return 0, false, true
	}
	if s == "" || len(s) > 32 || (s[0] < '0' || s[0] > '9') && s[0] != '.' {
		return 0, false, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v > 1e12 || strings.ContainsAny(s, "xXpP_") {
		return 0, false, false
	}
	return v, true, true
}

func (p *parser) note(line int, text string) {
	if len(p.out.Notes) < maxNotes {
		p.out.Notes = append(p.out.Notes, Note{Line: line, Test: p.test, Text: plain(text)})
	}
}

func (p *parser) text(raw []byte) (*Output, error) {
	n := 0
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte("\n"))
		n++
		if len(line) > probe.MaxLine {
			p.note(n, "a line over 1 MiB was passed over")
			continue
		}
		if err := p.line(n, strings.TrimSpace(strings.ReplaceAll(string(line), "\r", ""))); err != nil {
			return nil, err
		}
	}
	p.endMatrix()
	p.out.Form = p.form
	if len(p.out.Matrices) == 0 && p.out.Version == "" {
		return nil, p.fault(0, "no matrix of nvbandwidth or p2pBandwidthLatencyTest")
	}
	return p.out, nil
}

// endMatrix closes the matrix at hand.
func (p *parser) endMatrix() {
	m := p.cur
	p.cur = nil
	if m == nil {
		return
	}
	if p.waiting || len(m.Rows) == 0 {
		p.note(m.Line, "a matrix has no rows: "+m.Description)
		p.out.Matrices = p.out.Matrices[:len(p.out.Matrices)-1]
		p.waiting = false
		return
	}
	if m.RowKind == GPU && m.ColKind == GPU && len(m.Rows) < len(m.Columns) && p.form == FormP2PTest {
		p.note(m.Line, fmt.Sprintf("a matrix has %d of %d rows", len(m.Rows), len(m.Columns)))
	}
}

func (p *parser) begin(line int, m Matrix) error {
	p.endMatrix()
	if len(p.out.Matrices) >= maxMatrices {
		return p.fault(line, "more than %d matrices", maxMatrices)
	}
	m.Line = line
	if m.Test == "" {
		m.Test = p.test
	}
	p.out.Matrices = append(p.out.Matrices, m)
	p.cur = &p.out.Matrices[len(p.out.Matrices)-1]
	p.waiting = true
	return nil
}

func (p *parser) line(n int, t string) error {
	if t == "" {
		// The latency test prints a second matrix behind an empty line.
		return nil
	}
	if m, ok := title(t); ok {
		p.form = FormNVBandwidth
		if strings.HasPrefix(t, "P2P") || strings.Contains(t, "P2P=") {
			p.form = FormP2PTest
			m.Test = p2pName(t)
		}
		return p.begin(n, m)
	}
	f := strings.Fields(t)
	if p.cur != nil {
		done, err := p.cells(n, f)
		if done || err != nil {
			return err
		}
	}
	if pr, ok := pairLine(f); ok && (p.form == "" || p.form == FormPairs) {
		p.form = FormPairs
		return p.pair(n, pr)
	}
	return p.other(n, t, f)
}

// p2pName names a matrix of the CUDA sample.
func p2pName(t string) string {
	t, _, _ = strings.Cut(t, " Matrix")
	return strings.ToLower(strings.Join(strings.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == '=' || r == '(' || r == ')' }), "_"))
}

// cells reads the columns or a row of the matrix at hand. It reports whether
// the line was one.
func (p *parser) cells(n int, f []string) (bool, error) {
	m := p.cur
	head := f
	switch f[0] {
	case `D\D`, "GPU", "CPU":
		if !p.waiting && f[0] != `D\D` && len(m.Rows) > 0 && p.form == FormP2PTest && m.Unit == "us" {
			// The time that the CPU sees, in a matrix of its own.
			second := Matrix{Test: m.Test + "_" + strings.ToLower(f[0]), Description: m.Description, Unit: m.Unit, RowKind: GPU, ColKind: GPU, Direction: m.Direction}
			if err := p.begin(n, second); err != nil {
				return true, err
			}
			m = p.cur
		}
		head = f[1:]
	}
	if p.waiting {
		if len(head) == 0 {
			return false, nil
		}
		if len(head) > maxSide {
			return true, p.fault(n, "%d columns, at most %d are believed", len(head), maxSide)
		}
		columns := make([]int, len(head))
		for i, x := range head {
			c, err := strconv.Atoi(x)
			if err != nil || c < 0 || c >= maxSide || i > 0 && c <= columns[i-1] {
				if i == 0 {
					return false, nil
				}
				return true, p.fault(n, "column %q is no device number in rising order", plain(x))
			}
			columns[i] = c
		}
		m.Columns = columns
		p.waiting = false
		return true, nil
	}
	row, err := strconv.Atoi(f[0])
	if err != nil || row < 0 || row >= maxSide {
		return false, nil
	}
	if len(f)-1 != len(m.Columns) {
		return true, p.fault(n, "row %d has %d figures for %d columns", row, len(f)-1, len(m.Columns))
	}
	for _, r := range m.Rows {
		if r == row {
			return true, p.fault(n, "row %d stands twice in the matrix of line %d", row, m.Line)
		}
	}
	values := make([]probe.Opt[float64], len(f)-1)
	for i, x := range f[1:] {
		v, known, ok := value(x)
		if !ok {
			return true, p.fault(n, "row %d: %q in column %d is no figure", row, plain(x), m.Columns[i])
		}
		if known {
			values[i] = probe.Some(v)
		}
	}
	return true, p.addRow(n, m, row, values)
}

func (p *parser) addRow(n int, m *Matrix, row int, values []probe.Opt[float64]) error {
	if p.values += len(values) + 1; p.values > maxValues {
		return p.fault(n, "more than %d figures", maxValues)
	}
	m.Rows = append(m.Rows, row)
	m.Values = append(m.Values, values)
	return nil
}

// pair adds a line of a plain list to the matrix of its kind.
func (p *parser) pair(n int, x pair) error {
	var m *Matrix
	for i := range p.out.Matrices {
		if p.out.Matrices[i].Test == x.test {
			m = &p.out.Matrices[i]
		}
	}
	if m == nil {
		row := GPU
		if x.test != "device_to_device" {
			row = CPU
		}
		p.out.Matrices = append(p.out.Matrices, Matrix{Line: n, Test: x.test, Unit: "GB/s", RowKind: row, ColKind: GPU, Direction: "->"})
		m = &p.out.Matrices[len(p.out.Matrices)-1]
		if x.test == "device_to_host" {
			m.Direction = "<-"
		}
	}
	i, j := index(m.Rows, x.row), index(m.Columns, x.col)
	if j == len(m.Columns) {
		m.Columns = append(m.Columns, x.col)
	}
	if i == len(m.Rows) {
		m.Rows = append(m.Rows, x.row)
		m.Values = append(m.Values, nil)
	}
	for len(m.Values[i]) <= j {
		if p.values++; p.values > maxValues {
			return p.fault(n, "more than %d figures", maxValues)
		}
		m.Values[i] = append(m.Values[i], probe.Opt[float64]{})
	}
	if m.Values[i][j].Known() {
		return p.fault(n, "%s %d %d stands twice", x.test, x.row, x.col)
	}
	m.Values[i][j] = probe.Some(x.value)
	return nil
}

// index is slices.Index, the length where v is absent.
func index(s []int, v int) int {
	for i, x := range s {
		if x == v {
			return i
		}
	}
	return len(s)
}

// other reads the lines around the matrices.
func (p *parser) other(n int, t string, f []string) error {
	after := func(key string) (string, bool) {
		v, ok := strings.CutPrefix(t, key)
		return plain(v), ok
	}
	if v, ok := after("nvbandwidth Version: "); ok {
		p.out.Version, p.form = v, FormNVBandwidth
		return nil
	}
	if v, ok := after("CUDA Runtime Version: "); ok {
		p.out.CUDA = v
		return nil
	}
	if v, ok := after("Driver Version: "); ok {
		p.out.Driver, p.out.driverAt = v, n
		return nil
	}
	if v, ok := after("Running "); ok && strings.HasSuffix(v, ".") && len(f) == 2 {
		p.endMatrix()
		p.test = strings.TrimSuffix(v, ".")
		return nil
	}
	if f[0] == "SUM" && len(f) == 3 {
		if v, known, ok := value(f[2]); ok && known && p.cur != nil {
			p.cur.Sum = probe.Some(v)
		}
		p.endMatrix()
		return nil
	}
	for _, w := range []string{"Waived:", "Waived", "ERROR:", "Error:", "[Error"} {
		if strings.HasPrefix(t, w) {
			p.endMatrix()
			p.note(n, t)
			return nil
		}
	}
	return p.device(n, t)
}

// device reads "Device 0: NVIDIA H100 (00000000:1b:00)", "Process 0 (host):
// device 1: NVIDIA H100 (00000000:1b:00)" and the sample's "Device: 0, NVIDIA
// H100, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0".
func (p *parser) device(n int, t string) error {
	d := Device{Line: n}
	rest := t
	if v, ok := strings.CutPrefix(t, "Process "); ok {
		i, j := strings.IndexByte(v, '('), strings.Index(v, "): device ")
		if i < 0 || j < i {
			return nil
		}
		d.Host = plain(v[i+1 : j])
		rest = "Device " + v[j+len("): device "):]
	}
	if v, ok := strings.CutPrefix(rest, "Device: "); ok && strings.Contains(v, "pciBusID:") {
		f := strings.Split(v, ",")
		if len(f) < 5 {
			return nil
		}
		var err error
		if d.Index, err = strconv.Atoi(strings.TrimSpace(f[0])); err != nil {
			return nil
		}
		d.Name = plain(strings.Join(f[1:len(f)-3], ","))
		part := func(s string) string { _, v, _ := strings.Cut(s, ":"); return strings.TrimSpace(v) }
		if a, err := probe.ParseBDF(part(f[len(f)-1]) + ":" + part(f[len(f)-3]) + ":" + part(f[len(f)-2]) + ".0"); err == nil {
			d.Addr = probe.Some(a)
		}
		p.form = FormP2PTest
		return p.addDevice(n, d)
	}
	v, ok := strings.CutPrefix(rest, "Device ")
	num, name, ok2 := strings.Cut(v, ": ")
	if !ok || !ok2 {
		return nil
	}
	var err error
	if d.Index, err = strconv.Atoi(num); err != nil {
		return nil
	}
	d.Name, d.Addr = nameAndAddress(name)
	return p.addDevice(n, d)
}

// nameAndAddress splits "NVIDIA H100 (00000000:1b:00)".
func nameAndAddress(s string) (string, probe.Opt[probe.BDF]) {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '('); i > 0 && strings.HasSuffix(s, ")") {
		if a, err := probe.ParseBDF(s[i+1 : len(s)-1]); err == nil {
			return plain(s[:i]), probe.Some(a)
		}
	}
	return plain(s), probe.Opt[probe.BDF]{}
}

func (p *parser) addDevice(n int, d Device) error {
	if d.Index < 0 || d.Index >= maxSide {
		return p.fault(n, "device number %d is out of range", d.Index)
	}
	if len(p.out.Devices) >= maxDevices {
		return p.fault(n, "more than %d devices", maxDevices)
	}
	for _, x := range p.out.Devices {
		if x.Host == d.Host && x.Index == d.Index && x.Addr == d.Addr {
			return nil // each run of the program lists them again
		}
	}
	p.out.Devices = append(p.out.Devices, d)
	return nil
}
