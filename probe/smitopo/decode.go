package smitopo

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// maxDevices bounds the columns of a matrix; a rack shows 72 GPUs.
const maxDevices = 512

// maxLine is the longest line that is looked at, far above a matrix of maxDevices.
const maxLine = 64 << 10

// Sniff reports whether a text holds a topology matrix: a line that names GPUs
// as columns and after it a row of path codes.
func Sniff(head []byte) bool {
	raw, err := probe.DecodeText(head)
	if err != nil {
		return false
	}
	columns := 0
	for line := range strings.FieldsFuncSeq(raw, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) > maxLine || columns == 0 && !strings.Contains(line, "GPU") {
			continue // most lines of a log
		}
		line = lines(escapes.ReplaceAllString(line, ""))[0]
		if n := len(summaryColumns(line)); n > 0 {
			columns = n
			continue
		}
		if h, ok := parseHeader(line); ok {
			columns = len(h.devices)
			continue
		}
		if columns > 0 && looksLikeRow(line, columns) {
			return true
		}
	}
	return false
}

// Decode reads the output of nvidia-smi topo -m, with whatever stands before and
// after it. name is the file's base name. Faults in the text are
// *probe.SyntaxError with the line; an input over probe.MaxInput is
// probe.ErrTooLarge.
//
// GPUs get their index, affinities and no address; adapters get the name that
// the NIC legend gives them, else the column's. Relations hold each pair once,
// the earlier column first. A row that is missing leaves a gap.
func Decode(name string, r io.Reader) (*probe.Inventory, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := parser{file: name}
	text, err := plainText(raw)
	if err != nil {
		return nil, p.fault(0, "%v", err)
	}
	if err := p.scan(lines(text)); err != nil {
		return nil, err
	}
	inv, err := p.inventory()
	if err != nil {
		return nil, err
	}
	inv.Normalize()
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return inv, nil
}

// header is the line that names the columns.
type header struct {
	line    int
	devices []string
	tail    []string // the columns behind the matrix
}

// row is one line of the matrix.
type row struct {
	line  int
	name  string
	cells []string // one per device, fewer where the row is cut
	glued string   // cells that had run together
	open  bool     // the text ends in the last of them, which may be cut
	tail  map[string]string
}

type parser struct {
	file   string
	header *header
	rows   map[string]*row
	legend map[string]string // NIC0 → mlx5_0
}

func (p *parser) fault(line int, format string, args ...any) error {
	return &probe.SyntaxError{File: p.file, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// Columns behind the matrix; NUMA alone was seen in retyped tables.
const (
	cpuAffinity  = "CPU Affinity"
	numaAffinity = "NUMA Affinity"
	gpuNUMA      = "GPU NUMA ID"
)

var (
	tailColumns = regexp.MustCompile(`CPU\s+Affinity|NUMA\s+Affinity|GPU\s+NUMA\s+ID|NUMA`)
	deviceName  = regexp.MustCompile(`^(?:GPU\d+|NIC\d+|[a-z][a-z0-9]*[0-9_][A-Za-z0-9_.+-]*)$`)
	gpuName     = regexp.MustCompile(`^GPU(\d+)$`)
	nicName     = regexp.MustCompile(`^NIC\d+$`)
	glued       = regexp.MustCompile(`^(?:GPU\d+|NIC\d+|mlx\d_(?:[a-z]+_?)?\d+)+$`)
	gluedPart   = regexp.MustCompile(`GPU\d+|NIC\d+|mlx\d_(?:[a-z]+_?)?\d+`)
	nicLegend   = regexp.MustCompile(`^\s*(NIC\d+)\s*:\s*(\S+)\s*$`)
	gluedCode   = regexp.MustCompile(`^(?:X|PIX|PXB|PHB|NODE|SYS|SOC|NV[1-9][0-9]?)`)
	gpuRange    = regexp.MustCompile(`^GPU\d+-(?:GPU)?\d+$`)
)

// pathCode reports a cell of topo -m.
func pathCode(s string) bool {
	switch s {
	case "PIX", "PXB", "PHB", "NODE", "SYS", "SOC":
		return true
	}
	n, ok := strings.CutPrefix(s, "NV")
	return ok && (len(n) == 1 || len(n) == 2) && n[0] >= '1' && n[0] <= '9' && n[len(n)-1] >= '0' && n[len(n)-1] <= '9'
}

// peerStatus reports a cell of topo -p2p.
func peerStatus(s string) bool {
	switch s {
	case "OK", "CNS", "GNS", "TNS", "NS", "U", "DR":
		return true
	}
	return false
}

// parseHeader recognises the line that names the columns.
func parseHeader(line string) (header, bool) {
	if !strings.Contains(line, "GPU") && !strings.Contains(line, "NIC") {
		return header{}, false
	}
	var h header
	names := line
	if at := tailColumns.FindStringIndex(line); at != nil {
		names = line[:at[0]]
		for _, m := range tailColumns.FindAllString(line[at[0]:], -1) {
			c := strings.Join(strings.Fields(m), " ")
			if c == "NUMA" {
				c = numaAffinity
			}
			h.tail = append(h.tail, c)
		}
		if strings.TrimSpace(tailColumns.ReplaceAllString(line[at[0]:], "")) != "" {
			return header{}, false
		}
	}
	gpus := 0
	for _, f := range strings.Fields(names) {
		parts := []string{f}
		if glued.MatchString(f) {
			parts = gluedPart.FindAllString(f, -1)
		}
		for _, d := range parts {
			if !deviceName.MatchString(d) {
				return header{}, false
			}
			if gpuName.MatchString(d) {
				gpus++
			}
			h.devices = append(h.devices, d)
		}
	}
	return h, gpus > 0
}

// summaryColumns returns the columns of a table that names ranges of GPUs:
// retyped by a person, with no row per GPU.
func summaryColumns(line string) []string {
	fields := strings.Fields(line)
	if slices.ContainsFunc(fields, pathCode) || !slices.ContainsFunc(fields, gpuRange.MatchString) {
		return nil
	}
	for _, f := range fields {
		if !gpuRange.MatchString(f) && !deviceName.MatchString(f) {
			return nil
		}
	}
	return fields
}

// looksLikeRow reports a device name followed by path codes.
func looksLikeRow(line string, columns int) bool {
	f := strings.Fields(line)
	if len(f) < 2 || !deviceName.MatchString(f[0]) && !gpuRange.MatchString(f[0]) {
		return false
	}
	codes := 0
	for _, c := range f[1:min(len(f), columns+1)] {
		switch {
		case peerStatus(c):
			return false
		case c == "X" || pathCode(c):
			codes++
		}
	}
	return codes > 0 && (columns > 1 || f[1] == "X")
}

func (p *parser) scan(text []string) error {
	p.rows, p.legend = map[string]*row{}, map[string]string{}
	summary, status := 0, 0
	var pending *header // a header that no row has followed yet
	for i, line := range text {
		n := i + 1
		if len(line) > maxLine {
			continue
		}
		if m := nicLegend.FindStringSubmatch(line); m != nil {
			if have, ok := p.legend[m[1]]; ok && have != m[2] {
				return p.fault(n, "NIC legend: %s is %s and %s", m[1], probe.Excerpt(have), probe.Excerpt(m[2]))
			}
			p.legend[m[1]] = m[2]
			continue
		}
		if summary == 0 && len(summaryColumns(line)) > 0 {
			summary = n
		}
		at := pending
		if at == nil {
			at = p.header
		}
		f := strings.Fields(line)
		inRow := at != nil && len(f) > 0 && slices.Contains(at.devices, f[0])
		// A lone name below the columns is what is left of a row.
		if h, ok := parseHeader(line); ok && (!inRow || len(f) > 1 || len(at.devices) == 1) {
			if len(h.devices) > maxDevices {
				return p.fault(n, "%d columns, at most %d are believed", len(h.devices), maxDevices)
			}
			h.line = n
			pending = &h
			continue
		}
		if !inRow {
			continue
		}
		if len(f) > 1 && slices.ContainsFunc(f[1:], peerStatus) && !slices.ContainsFunc(f[1:], pathCode) {
			// The matrix of nvidia-smi topo -p2p has the same header.
			if status == 0 {
				status = n
			}
			continue
		}
		if len(f) > 1 && f[1] != "X" && !codeLike(f[1]) {
			continue // text that begins with a device's name
		}
		if pending != nil {
			if p.header != nil {
				return p.fault(pending.line, "a second matrix (the first begins on line %d); one file is one host", p.header.line)
			}
			if err := p.columns(pending); err != nil {
				return err
			}
			p.header, pending = pending, nil
		}
		if err := p.row(n, f[0], line); err != nil {
			return err
		}
		r := p.rows[f[0]]
		r.open = n == len(text) && len(p.header.tail) > 0 && gpuName.MatchString(r.name) && len(r.tail) == 0
	}
	switch {
	case p.header != nil:
		return nil
	case summary > 0:
		return p.fault(summary, "columns name several GPUs each: a summary written by hand, not the output of nvidia-smi topo -m")
	case status > 0:
		return p.fault(status, "the matrix holds peer access states (nvidia-smi topo -p2p), not path codes")
	case pending != nil:
		return p.fault(pending.line, "no row follows the line that names the columns")
	}
	return p.fault(0, "no line names GPU columns: not the output of nvidia-smi topo -m")
}

// codeLike reports a cell of a matrix, also a damaged one: capitals and digits.
func codeLike(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

func (p *parser) columns(h *header) error {
	for i, d := range h.devices {
		if slices.Contains(h.devices[:i], d) {
			return p.fault(h.line, "column %s appears twice", probe.Excerpt(d))
		}
	}
	return nil
}

// row reads one line of the matrix; what a cut row means is decided when all
// rows are known.
func (p *parser) row(n int, name, line string) error {
	if first := p.rows[name]; first != nil {
		return p.fault(n, "row %s stands on line %d already", probe.Excerpt(name), first.line)
	}
	r := &row{line: n, name: name}
	rest := strings.TrimLeft(line, " \t")[len(name):]
	columns := p.header.devices
	for len(r.cells) < len(columns) {
		rest = strings.TrimLeft(rest, " \t")
		end := strings.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		cell := rest[:end]
		if cell == "" {
			break
		}
		codes := split(cell)
		if codes == nil && len(p.header.tail) > 0 && !codeLike(cell) {
			break // the row goes on with affinities
		}
		if codes == nil || len(r.cells)+len(codes) > len(columns) {
			return p.fault(n, "row %s: %q in column %s is no path code; cells may have run together", probe.Excerpt(name), probe.Excerpt(cell), columns[len(r.cells)])
		}
		if len(codes) > 1 {
			r.glued = cell
		}
		r.cells = append(r.cells, codes...)
		rest = rest[end:]
	}
	// Where cells are missing too, nothing shows which the others are.
	if r.glued != "" && len(r.cells) < len(columns) {
		return p.fault(n, "row %s: %q is no path code; cells may have run together, and the row has %d of %d", probe.Excerpt(name), probe.Excerpt(r.glued), len(r.cells), len(columns))
	}
	var err error
	if r.tail, err = p.tail(rest); err != nil {
		return p.fault(n, "row %s: %v", probe.Excerpt(name), err)
	}
	p.rows[name] = r
	return nil
}

// split takes cells that have run together apart, NODENODE for one; nil where
// they are no path codes. No code is the beginning of another but NV1 of NV12, so
// there is one way at most.
func split(cell string) []string {
	var out []string
	for cell != "" {
		code := gluedCode.FindString(cell)
		switch code {
		case "":
			return nil
		case "SOC": // what drivers before 375 call SYS
			out = append(out, "SYS")
		default:
			out = append(out, code)
		}
		cell = cell[len(code):]
	}
	return out
}

// tail reads the columns behind the matrix. Where tabs separate them an empty
// one is seen as such; the driver prints one more tab before GPU NUMA ID.
func (p *parser) tail(rest string) (map[string]string, error) {
	columns := p.header.tail
	values := strings.Fields(rest)
	if strings.Contains(rest, "\t") && len(values) < len(columns) {
		cells := strings.Split(rest, "\t")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] == "" { // between the last path code and its tab
			cells = cells[1:]
		}
		if n := len(columns); len(cells) > n && columns[n-1] == gpuNUMA {
			cells = append(cells[:n-1], strings.Join(cells[n-1:], ""))
		}
		if !slices.ContainsFunc(cells, func(s string) bool { return strings.Contains(s, " ") }) && len(cells) <= len(columns) {
			values = cells
		}
	}
	if len(values) > len(columns) {
		return nil, fmt.Errorf("%q stands behind the last column", probe.Excerpt(strings.Join(values[len(columns):], " ")))
	}
	out := map[string]string{}
	for i, v := range values {
		if v != "" && v != "N/A" {
			out[columns[i]] = v
		}
	}
	return out, nil
}

// cell returns what the row of a says about b; ok is false when the row is
// missing or cut before that column. A cell in which the text ends counts only
// if the other row confirms it.
func (p *parser) cell(a string, b int) (code string, ok, open bool) {
	r := p.rows[a]
	if r == nil || b >= len(r.cells) {
		return "", false, false
	}
	return r.cells[b], true, r.open && b == len(r.cells)-1
}

// aligned checks that what is left of a row stands in its columns: X in its own,
// and nowhere else.
func (p *parser) aligned(r *row, own int) error {
	columns := p.header.devices
	have := ""
	if len(r.cells) < len(columns) {
		have = fmt.Sprintf("; it has %d of %d cells", len(r.cells), len(columns))
	}
	for i, c := range r.cells {
		if (c == "X") != (i == own) {
			return p.fault(r.line, "row %s: %s in column %s, want %s in its own column only%s", probe.Excerpt(r.name), c, probe.Excerpt(columns[i]), "X", have)
		}
	}
	return nil
}

func (p *parser) inventory() (*probe.Inventory, error) {
	inv := &probe.Inventory{Schema: probe.Schema}
	columns := p.header.devices
	var missing, unnamed, glued []string
	for i, name := range columns {
		line := p.header.line
		r := p.rows[name]
		if r == nil {
			missing = append(missing, name)
		} else {
			line = r.line
			if err := p.aligned(r, i); err != nil {
				return nil, err
			}
			if r.glued != "" {
				glued = append(glued, fmt.Sprintf("%s on line %d: %s", name, line, r.glued))
			}
		}
		if nicName.MatchString(name) && p.legend[name] == "" {
			unnamed = append(unnamed, name)
		}
		if err := p.device(inv, name, line, r); err != nil {
			return nil, err
		}
	}
	for i, a := range columns {
		for j := i + 1; j < len(columns); j++ {
			if err := p.relation(inv, a, columns[j], i, j); err != nil {
				return nil, err
			}
		}
	}
	const how = "give the whole output of nvidia-smi topo -m"
	if n := len(columns)*(len(columns)-1)/2 - len(inv.Relations); n > 0 {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "relations", Why: fmt.Sprintf("the matrix has no row of %s; %d pairs are unknown", strings.Join(missing, ", "), n), How: how, Origin: p.origin(p.header.line),
		})
	}
	if len(glued) > 0 {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "relations", Why: fmt.Sprintf("cells have run together (%s); read apart, as only so each row has %d", strings.Join(glued, ", "), len(columns)), How: how, Origin: p.origin(p.header.line),
		})
	}
	if len(unnamed) > 0 {
		inv.Gaps = append(inv.Gaps, probe.Gap{
			What: "hca names", Why: "the text has no NIC legend that names " + strings.Join(unnamed, ", "), How: how, Origin: p.origin(p.header.line),
		})
	}
	return inv, nil
}

func (p *parser) relation(inv *probe.Inventory, a, b string, i, j int) error {
	ab, okAB, openAB := p.cell(a, j)
	ba, okBA, openBA := p.cell(b, i)
	if !okBA && openAB || !okAB && openBA {
		okAB, okBA = false, false
	}
	line := 0
	switch {
	case okAB && okBA && ab != ba:
		return p.fault(p.rows[b].line, "%s to %s is %s, but %s to %s is %s on line %d", probe.Excerpt(b), probe.Excerpt(a), ba, probe.Excerpt(a), probe.Excerpt(b), ab, p.rows[a].line)
	case okAB:
		line = p.rows[a].line
	case okBA:
		ab, line = ba, p.rows[b].line
	default:
		// Neither row says it. A missing row is a gap; a row that is there
		// and lacks the cell was cut.
		for _, x := range []struct {
			row    *row
			column string
		}{{p.rows[a], b}, {p.rows[b], a}} {
			if x.row != nil {
				return p.fault(x.row.line, "row %s is cut: column %s is missing or incomplete (%d of %d cells)", probe.Excerpt(x.row.name), probe.Excerpt(x.column), len(x.row.cells), len(p.header.devices))
			}
		}
		return nil
	}
	inv.Relations = append(inv.Relations, probe.Relation{A: p.display(a), B: p.display(b), Code: ab, Origins: []probe.Origin{p.origin(line)}})
	return nil
}

// display is the name of a device outside the matrix.
func (p *parser) display(column string) string {
	if n, ok := p.legend[column]; ok {
		return n
	}
	return column
}

func (p *parser) origin(line int) probe.Origin {
	return probe.Origin{Source: probe.SourceSMITopo, Where: fmt.Sprintf("%s:%d", p.file, line)}
}

func (p *parser) device(inv *probe.Inventory, name string, line int, r *row) error {
	m := gpuName.FindStringSubmatch(name)
	if m == nil {
		inv.HCAs = append(inv.HCAs, probe.HCA{Name: p.display(name), Origins: []probe.Origin{p.origin(line)}})
		return nil
	}
	index, err := strconv.Atoi(m[1])
	if err != nil {
		return p.fault(line, "%s: the index is out of range", probe.Excerpt(name))
	}
	g := probe.GPU{Index: probe.Some(index), Origins: []probe.Origin{p.origin(line)}}
	if r != nil {
		if err := p.affinity(inv, &g, r); err != nil {
			return err
		}
	}
	inv.GPUs = append(inv.GPUs, g)
	return nil
}

func (p *parser) affinity(inv *probe.Inventory, g *probe.GPU, r *row) error {
	if s := r.tail[cpuAffinity]; s != "" {
		cpus, err := probe.ParseCPUList(s)
		if err != nil {
			return p.fault(r.line, "row %s: %s: %v", r.name, cpuAffinity, err)
		}
		g.CPUAffinity = cpus
	}
	if s := r.tail[numaAffinity]; s != "" {
		nodes, err := probe.ParseCPUList(s) // the same list form
		if err != nil {
			return p.fault(r.line, "row %s: %s %q is no list of nodes", r.name, numaAffinity, probe.Excerpt(s))
		}
		if ids := nodes.CPUs(); len(ids) == 1 {
			g.NUMAAffinity = probe.Some(ids[0])
		} else {
			g.Extra = append(g.Extra, probe.Attr{Name: numaAffinity, Value: s})
			inv.Gaps = append(inv.Gaps, probe.Gap{
				What: fmt.Sprintf("gpu:%v numa_affinity", g.Index), Why: fmt.Sprintf("the driver names nodes %s: it does not tell which is near", s),
				Origin: p.origin(r.line),
			})
		}
	}
	if s := r.tail[gpuNUMA]; s != "" {
		// The node of the GPU's own memory, on Grace.
		g.Extra = append(g.Extra, probe.Attr{Name: gpuNUMA, Value: s})
	}
	return nil
}
