package smiquery

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var (
	gpuColumn  = regexp.MustCompile(`^GPU(\d{1,4})$`)
	labels     = regexp.MustCompile(`(?:topo\s+(?:-p2p|--p2pstatus)\s+|^==+\s*(?:topo\s+)?(?:-?p2p\s+)?)([rwnap])\s*(?:=*)$`)
	labelWords = regexp.MustCompile(`(?i)\bp2p\W+(read|write|nvlink|atomics?|prop|pci)\b`)
	fileLabel  = regexp.MustCompile(`p2p[-_. ]?([rwnap])\b`)
	pathCode   = regexp.MustCompile(`^(?:NV\d+|PIX|PXB|PHB|NODE|SYS|SOC)$`)
)

// peerStatus gives the inventory's words for a cell, as the legend of
// nvidia-smi topo explains it; "" is unknown.
func peerStatus(cell string) (status string, ok bool) {
	switch cell {
	case "OK":
		return "ok", true
	case "CNS":
		return "chipset not supported", true
	case "GNS":
		return "GPU not supported", true
	case "TNS":
		return "IOH topology not supported", true
	case "DR":
		return "disabled by registry key", true
	case "NS":
		return "not supported", true
	case "U", "N/A":
		return "", true
	}
	return "", false
}

// capabilityLabel finds in a line which capability the next matrix is about: the
// matrix itself does not say. It is the command, or a heading made of its letter.
func capabilityLabel(line string) string {
	if m := labels.FindStringSubmatch(line); m != nil {
		return capabilityName(m[1])
	}
	if m := labelWords.FindStringSubmatch(line); m != nil {
		return capabilityName(strings.ToLower(m[1]))
	}
	return ""
}

func capabilityName(s string) string {
	switch s {
	case "r", "read":
		return "read"
	case "w", "write":
		return "write"
	case "n", "nvlink":
		return "nvlink"
	case "a", "atomic", "atomics":
		return "atomics"
	case "p", "prop", "pci":
		return "pci"
	}
	return ""
}

// matrixColumns returns the columns of a heading that names GPUs first; the
// matrix of topo -m has others behind them.
func matrixColumns(line string) []string {
	f := strings.Fields(line)
	if len(f) == 0 || !gpuColumn.MatchString(f[0]) {
		return nil
	}
	// A row of a matrix starts with a GPU too, but goes on with cells.
	if len(f) > 1 && (f[1] == "X" || cellLike(f[1])) {
		return nil
	}
	return f
}

func cellLike(s string) bool {
	_, ok := peerStatus(s)
	return ok || pathCode.MatchString(s)
}

// statusRow reports a row of a matrix of peer states.
func statusRow(line string) bool {
	f := strings.Fields(line)
	if len(f) < 2 || !gpuColumn.MatchString(f[0]) {
		return false
	}
	for _, c := range f[1:] {
		if _, ok := peerStatus(c); !ok && c != "X" {
			return false
		}
	}
	return len(f) > 2 || f[1] == "X"
}

// matrix reads the rows below a heading and returns the index of the last line
// that it took. The matrix of topo -m is passed over.
func (p *parser) matrix(columns []string, at int, label string) (int, error) {
	line := at + 1
	type row struct {
		name  string
		cells []string
		line  int
	}
	var rows []row
	codes := false // of topo -m
	for at+1 < len(p.text) {
		f := strings.Fields(p.text[at+1])
		if len(f) > 0 && !slices.Contains(columns, f[0]) || len(f) == 0 && len(rows) > 0 || len(f) == 1 && len(columns) > 1 && len(rows) == 0 {
			break
		}
		at++
		if len(f) == 0 {
			continue
		}
		rows = append(rows, row{f[0], f[1:], at + 1})
		codes = codes || slices.ContainsFunc(f[1:], pathCode.MatchString)
	}
	foreign := slices.ContainsFunc(columns, func(c string) bool { return !gpuColumn.MatchString(c) })
	if codes || foreign || len(rows) == 0 {
		return at, nil // the matrix of topo -m is smitopo's
	}
	if len(columns) > maxGPUs {
		return 0, p.fault(line, "%d columns, at most %d are believed", len(columns), maxGPUs)
	}
	p.found = true
	gpus := make([]*gpu, len(columns))
	for i, c := range columns {
		if slices.Index(columns, c) != i {
			return 0, p.fault(line, "column %s appears twice", c)
		}
		n, err := strconv.Atoi(c[len("GPU"):])
		if err != nil || n >= maxGPUs {
			return 0, p.fault(line, "%s: the index is not below %d", c, maxGPUs)
		}
		if gpus[i], err = p.gpu(probe.Some(n), "", probe.Opt[probe.BDF]{}, line); err != nil {
			return 0, err
		}
	}
	if label == "" {
		if m := fileLabel.FindStringSubmatch(path.Base(p.file)); m != nil {
			label = capabilityName(m[1])
		}
	}
	if label == "" {
		p.gap(line, "peers", "the matrix does not say which capability it is about", "put the command before it, as in: nvidia-smi topo -p2p r")
	}
	if p.matrices == nil {
		p.matrices = map[string]int{}
	}
	_, again := p.matrices[label]
	seen := map[string]int{}
	for _, r := range rows {
		if first, ok := seen[r.name]; ok {
			return 0, p.fault(r.line, "row %s stands on line %d already", r.name, first)
		}
		seen[r.name] = r.line
		own := slices.Index(columns, r.name)
		if len(r.cells) != len(columns) {
			return 0, p.fault(r.line, "row %s has %d of %d cells", r.name, len(r.cells), len(columns))
		}
		for i, c := range r.cells {
			status, ok := peerStatus(c)
			switch {
			case (c == "X") != (i == own):
				return 0, p.fault(r.line, "row %s: %q in column %s, want X in its own column only", r.name, probe.Excerpt(c), columns[i])
			case c == "X":
				continue
			case !ok:
				return 0, p.fault(r.line, "row %s: %q in column %s is no peer state (OK, CNS, GNS, TNS, DR, NS, U)", r.name, probe.Excerpt(c), columns[i])
			}
			if status != "" && label != "" && !again {
				g := gpus[own]
				g.Peers = append(g.Peers, probe.PeerAccess{GPU: gpus[i].Index.Or(0), Capability: label, Status: status})
				g.later(p.origin(line, "peers"))
			}
		}
	}
	if n := len(columns) - len(rows); n > 0 {
		p.gap(line, "peers "+label, "rows of the matrix are missing: "+strconv.Itoa(n), "give the whole output of nvidia-smi topo -p2p")
	}
	if !again && label != "" {
		p.matrices[label] = line
	}
	return at, nil
}
