package ibstatus

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var (
	portLine = regexp.MustCompile(`(?m)Infiniband device '([^']{1,64})' port (\d{1,3}) status:\s*$`)
	factLine = regexp.MustCompile(`^\s+(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s+(.*?)\s*$`)
)

// Sniff reports whether a text holds output of ibstatus.
func Sniff(head []byte) bool { return portLine.Match(head) }

// Decode reads the output of ibstatus, with whatever stands between the ports. name
// is the file's base name. Faults in the text are *probe.SyntaxError with the line;
// an input over probe.MaxInput is probe.ErrTooLarge. The default GID is that of
// index 0; its all-zero subnet prefix or interface id does not make it unknown.
func Decode(name string, r io.Reader) (*probe.Inventory, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := probe.DecodeText(raw)
	if err != nil {
		return nil, &probe.SyntaxError{File: name, Msg: err.Error()}
	}
	p := parser{file: name, inv: &probe.Inventory{Schema: probe.Schema}}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(i+1, strings.TrimRight(line, "\r")); err != nil {
			return nil, err
		}
	}
	if len(p.inv.HCAs) == 0 {
		return nil, p.fault(0, "no port of ibstatus")
	}
	p.inv.Normalize()
	if err := p.inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p.inv, nil
}

type parser struct {
	file string
	inv  *probe.Inventory
	port *probe.HCAPort // that the next lines are about; nil = none
}

func (p *parser) fault(line int, format string, args ...any) error {
	return &probe.SyntaxError{File: p.file, Line: line, Msg: fmt.Sprintf(format, args...)}
}

func (p *parser) line(n int, line string) error {
	if m := portLine.FindStringSubmatch(line); m != nil {
		return p.begin(n, m[1], m[2])
	}
	m := factLine.FindStringSubmatch(line)
	if m == nil || p.port == nil {
		if strings.TrimSpace(line) != "" {
			p.port = nil
		}
		return nil
	}
	var err error
	var state probe.Opt[string]
	switch value := m[2]; m[1] {
	case "default gid":
		var gid string
		if gid, err = probe.ParseHexGroups(value, 8); err == nil && gid != "" {
			p.port.GIDs = []probe.GID{{GID: gid}}
		}
	case "base lid":
		p.port.LID = probe.OneLine(value, 16)
	case "state":
		state, err = probe.ParsePortState(value)
		p.port.State = state.Or("")
	case "phys state":
		state, err = probe.ParsePortState(value)
		p.port.PhysState = state.Or("")
	case "rate":
		p.port.RateText = probe.OneLine(value, 64)
		p.port.Rate, err = probe.ParsePortRate(value)
	case "link_layer":
		if value == "InfiniBand" || value == "Ethernet" {
			p.port.LinkLayer = value
		}
	}
	if err != nil {
		return p.fault(n, "%s: %v", m[1], err)
	}
	return nil
}

func (p *parser) begin(n int, name, number string) error {
	port, err := strconv.Atoi(number)
	if err != nil || port == 0 {
		return p.fault(n, "port %q is no number of a port", number)
	}
	origin := probe.LineOf(probe.SourceIBStatus, p.file, n)
	i := slices.IndexFunc(p.inv.HCAs, func(h probe.HCA) bool { return h.Name == name })
	if i < 0 {
		i = len(p.inv.HCAs)
		p.inv.HCAs = append(p.inv.HCAs, probe.HCA{Name: name, Origins: []probe.Origin{origin}})
	}
	h := &p.inv.HCAs[i]
	if slices.ContainsFunc(h.Ports, func(o probe.HCAPort) bool { return o.Port == port }) {
		return p.fault(n, "%s port %d stands twice; one text is one host", probe.Excerpt(name), port)
	}
	h.Ports = append(h.Ports, probe.HCAPort{Port: port})
	p.port = &h.Ports[len(h.Ports)-1]
	return nil
}
