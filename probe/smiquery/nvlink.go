package smiquery

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// maxLinks bounds link numbers; it is probe's own bound.
const maxLinks = 64

// linkState is what nvlink -s says of a link.
type linkState struct {
	state  string // "" = a word that is not known
	signal probe.Opt[probe.Rate]
	line   int
}

var (
	linkRate   = regexp.MustCompile(`^([0-9.]+) GB/s$`)
	linkWord   = regexp.MustCompile(`^<(.*)>$`)
	linkRemote = regexp.MustCompile(`^(?:Remote Device )?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])(?:: Link \d+)?$`)
	linkFact   = regexp.MustCompile(`^([^:]+):\s*(.*)$`)
)

// capabilities are the lines of nvlink -c, by bit of probe.NVLink.Caps.
func capabilityOf(text string) int {
	switch strings.ToLower(text) {
	case "p2p is supported":
		return probe.LinkCapP2P
	case "access to system memory supported":
		return probe.LinkCapSysmem
	case "p2p atomics supported":
		return probe.LinkCapP2PAtomics
	case "system memory atomics supported":
		return probe.LinkCapSysmemAtomics
	case "sli is supported":
		return probe.LinkCapSLI
	case "link is supported":
		return probe.LinkCapValid
	}
	return 0
}

// counterOf gives the JSON name of the counter of a line of nvlink -e or -g;
// "" for what the inventory does not keep.
func counterOf(text string) string {
	switch strings.ToLower(text) {
	case "replay errors":
		return "replay"
	case "recovery errors":
		return "recovery"
	case "crc errors", "crc flit errors":
		return "crc_flit"
	case "crc data errors":
		return "crc_data"
	case "malformed packet errors":
		return "malformed"
	case "buffer overrun errors":
		return "buffer_overrun"
	case "rx errors":
		return "rcv_errors"
	case "rx remote errors":
		return "rcv_remote_errors"
	case "rx general errors":
		return "rcv_general_errors"
	case "local link integrity errors":
		return "local_integrity_errors"
	case "tx discards":
		return "xmit_discards"
	case "link recovery successful events":
		return "recovery_successful"
	case "link recovery failed events":
		return "recovery_failed"
	case "effective errors":
		return "effective_errors"
	case "effective ber":
		return "effective_ber"
	case "symbol errors":
		return "symbol_errors"
	case "symbol ber":
		return "symbol_ber"
	case "data tx":
		return "data_tx_kib"
	case "data rx":
		return "data_rx_kib"
	case "raw tx":
		return "raw_tx_kib"
	case "raw rx":
		return "raw_rx_kib"
	}
	return ""
}

// link takes one line below a GPU of nvlink -s, -c, -e, -g, -R or -p.
func (p *parser) link(g *gpu, number, body string, line int) error {
	n, err := strconv.Atoi(number)
	if err != nil || n >= maxLinks {
		return p.fault(line, "link %s: the number is not below %d", probe.Excerpt(number), maxLinks)
	}
	if g.links == 0 {
		g.links = line
	}
	p.lastLink = nil
	switch {
	case absent(body):
	case linkWord.MatchString(body):
		s := linkState{line: line}
		if strings.EqualFold(body, "<inactive>") {
			s.state = probe.LinkDown
		}
		p.state(g, n, s)
	case linkRate.MatchString(body):
		v, err := strconv.ParseFloat(linkRate.FindStringSubmatch(body)[1], 64)
		if err != nil || v < 0 || v > 10_000 {
			return p.fault(line, "link %d: %q is no rate of a link", n, probe.Excerpt(body))
		}
		s := linkState{line: line}
		if v > 0 {
			s.state, s.signal = probe.LinkUp, probe.Some(probe.Rate(math.Round(v*1000))*1e6)
		}
		p.state(g, n, s)
	case linkRemote.MatchString(body):
		at := linkRemote.FindStringSubmatch(body)[1]
		if strings.HasPrefix(strings.ToUpper(at), "FFFFFFF") {
			return nil // a hypervisor hides the other end
		}
		addr, err := probe.ParseBDF(at)
		if err != nil {
			return p.fault(line, "link %d: remote device: %v", n, err)
		}
		if addr == (probe.BDF{}) {
			return nil // a host bridge, never the end of an NVLink
		}
		if g.remote == nil {
			g.remote = map[int]probe.BDF{}
		}
		if have, ok := g.remote[n]; ok && have != addr {
			return p.fault(line, "link %d: remote device %v, but %v further up", n, addr, have)
		}
		g.remote[n] = addr
	case linkFact.MatchString(body):
		m := linkFact.FindStringSubmatch(body)
		return p.linkFact(g, n, strings.TrimSpace(m[1]), strings.TrimSpace(m[2]), line)
	case strings.ContainsAny(body[:1], "0123456789"):
		return p.fault(line, "link %d: %q is neither a rate in GB/s nor a remote device; the line may be cut", n, probe.Excerpt(body))
	}
	return nil
}

func (p *parser) state(g *gpu, n int, s linkState) {
	if g.states == nil {
		g.states = map[int]linkState{}
	}
	if _, ok := g.states[n]; !ok {
		g.states[n] = s
	}
	p.lastLink = g
	for i := s.line; i < len(p.text); i++ {
		if strings.TrimSpace(p.text[i]) != "" {
			p.lastLink = nil
			return
		}
	}
}

func (p *parser) linkFact(g *gpu, n int, name, value string, line int) error {
	if bit := capabilityOf(name); bit != 0 {
		on := strings.EqualFold(value, "true")
		if !on && !strings.EqualFold(value, "false") {
			return p.fault(line, "link %d: %s: %q is neither true nor false", n, probe.Excerpt(name), probe.Excerpt(value))
		}
		if g.caps == nil {
			g.caps = map[int]map[int]bool{}
		}
		if g.caps[n] == nil {
			g.caps[n] = map[int]bool{}
		}
		g.caps[n][bit] = on
		return nil
	}
	counter := counterOf(name)
	if counter == "" || absent(value) {
		return nil
	}
	var v uint64
	var err error
	if strings.HasSuffix(counter, "_ber") {
		v, err = packBER(value)
	} else {
		v, err = strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(value, "KiB")), 10, 64)
	}
	if err != nil {
		if !strings.ContainsAny(value, "0123456789") {
			p.cannot(fmt.Sprintf("%s nvlink %d %s", g.object(), n, counter), value, line)
			return nil
		}
		return p.fault(line, "link %d: %s: %q is no count", n, probe.Excerpt(name), probe.Excerpt(value))
	}
	if g.counts == nil {
		g.counts = map[string]map[int]uint64{}
	}
	if g.counts[counter] == nil {
		g.counts[counter] = map[int]uint64{}
	}
	if _, ok := g.counts[counter][n]; !ok {
		g.counts[counter][n] = v
	}
	return nil
}

// packBER puts a rate such as 15e-255 into NVML's form, see probe.NVLinkBER.
func packBER(s string) (uint64, error) {
	m, e, ok := strings.Cut(strings.ToLower(s), "e-")
	mantissa, err := strconv.ParseUint(m, 10, 4)
	if err != nil || !ok {
		return 0, fmt.Errorf("%q is no bit error rate", probe.Excerpt(s))
	}
	exponent, err := strconv.ParseUint(e, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%q is no bit error rate", probe.Excerpt(s))
	}
	return mantissa<<8 | exponent, nil
}

// generationOf derives a link's generation from its signalling rate where only
// one generation signals so. 25 and 25.781 GB/s are printed for generations 2
// and 3 alike (reference: NVIDIA Health Validation for 4 and 5).
func generationOf(signal probe.Opt[probe.Rate]) probe.Opt[int] {
	switch signal.Or(0) {
	case 26_562e6, 26_563e6:
		return probe.Some(4)
	case 53_125e6:
		return probe.Some(5)
	}
	return probe.Opt[int]{}
}

// finishLinks turns what was gathered into the GPU's links. A list with a hole,
// or one that the end of the text may have cut, would look like missing links
// and is unknown.
func (p *parser) finishLinks(g *gpu, gpus map[probe.BDF]bool) {
	p.finishCounts(g)
	if g.allDown > 0 && len(g.states) == 0 {
		p.gap(g.allDown, g.object()+" nvlinks", "nvidia-smi says that all links are inactive and names none", "")
		return
	}
	if len(g.states) == 0 {
		if g.links > 0 {
			p.gap(g.links, g.object()+" nvlinks", "the text has no state of the links", "add the output of nvidia-smi nvlink -s")
		}
		return
	}
	first := g.links
	for n := range maxLinks {
		s, ok := g.states[n]
		switch {
		case !ok && n >= len(g.states):
			continue
		case !ok:
			p.gap(first, g.object()+" nvlinks", fmt.Sprintf("link %d is missing in the list", n), "give the whole output of nvidia-smi nvlink -s")
			return
		case s.state == "":
			p.gap(s.line, g.object()+" nvlinks", fmt.Sprintf("the state of link %d is neither a rate nor <inactive>", n), "")
			return
		}
	}
	if p.lastLink == g {
		for _, o := range p.gpus {
			if o != g && o.Name == g.Name && len(o.states) > len(g.states) {
				p.gap(first, g.object()+" nvlinks", fmt.Sprintf("the text ends after %d links, and an equal GPU has %d", len(g.states), len(o.states)), "give the whole output of nvidia-smi nvlink -s")
				return
			}
		}
	}
	links := make([]probe.NVLink, len(g.states))
	for n := range links {
		s := g.states[n]
		l := probe.NVLink{Link: n, State: s.state, Signal: s.signal, Generation: generationOf(s.signal)}
		if at, ok := g.remote[n]; ok {
			l.Remote = probe.Some(at)
			if gpus[at] {
				l.RemoteKind = probe.RemoteGPU
			}
		}
		if caps := g.caps[n]; len(caps) == 6 {
			sum := 0
			for bit, on := range caps {
				if on {
					sum |= bit
				}
			}
			l.Caps = probe.Some(sum)
		}
		links[n] = l
	}
	g.NVLinks = probe.Some(links)
	g.later(p.origin(first, "nvlinks"))
}

func (p *parser) finishCounts(g *gpu) {
	if len(g.counts) == 0 {
		return
	}
	var c probe.NVLinkCounts
	for name, column := range c.Columns() {
		of := g.counts[name]
		last := -1
		for n := range of {
			last = max(last, n)
		}
		cells := make([]probe.Opt[uint64], last+1)
		for n, v := range of {
			cells[n] = probe.Some(v)
		}
		*column = probe.ColumnOf(cells)
	}
	g.LinkCounts = &c
	g.later(p.origin(g.links, "nvlink_counters"))
}
