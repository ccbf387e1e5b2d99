package smiquery

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Source is the name of this source in origins.
const Source = probe.SourceSMIQuery

var (
	banner    = regexp.MustCompile(`^=+\s*NVSMI LOG\s*=+$`)
	topLevel  = regexp.MustCompile(`^(?:Driver Version|CUDA Version|Attached GPUs)\s+:`)
	queryGPU  = regexp.MustCompile(`^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$`)
	listGPU   = regexp.MustCompile(`^GPU (\d{1,4}): (.*?)\s*\(UUID: ([^)]*)\)$`)
	listMIG   = regexp.MustCompile(`^\s+MIG .*\(UUID: MIG-[^)]*\)$`)
	linkLine  = regexp.MustCompile(`^\s*Link (\d{1,4})[:,]\s*(.*)$`)
	allDown   = regexp.MustCompile(`(?i)unable to retrieve NVLink information as all links are inactive`)
	noDevices = regexp.MustCompile(`^(?:No devices were found|NVIDIA-SMI has failed|Failed to initialize NVML)`)
	noHandle  = regexp.MustCompile(`^Unable to determine the device handle for (.{1,200})$`)
	pageTag   = regexp.MustCompile(`^</?(?:details|summary|pre|code|p|br|b|div|blockquote)\b`)
	separator = regexp.MustCompile(`^(?:==|--|\$ |# |>)`)
)

// Sniff reports whether a text that starts with head is output of nvidia-smi
// that Decode reads. The first 4 KiB are enough for the outputs seen, unless
// much else stands before.
func Sniff(head []byte) bool {
	text, err := plainText(head)
	if err != nil {
		return false
	}
	gpu, columns := false, 0
	for _, line := range text {
		t := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(t, "<nvidia_smi_log"), strings.HasPrefix(t, "<!DOCTYPE nvidia_smi_log"), banner.MatchString(t):
			return true
		case strings.HasPrefix(t, "<"):
			// Another XML document may quote anything further down.
			if !strings.HasPrefix(t, "<?") && !strings.HasPrefix(t, "<!--") && !pageTag.MatchString(t) {
				return false
			}
		case listGPU.MatchString(t):
			if gpu {
				return true // nvidia-smi -L names one GPU after the other
			}
			gpu = true
		case gpu && linkLine.MatchString(line):
			return true
		case t != "":
			if c := matrixColumns(t); c != nil {
				columns = len(c)
			} else if columns > 0 {
				if statusRow(t) {
					return true
				}
				columns = 0
			}
		}
	}
	return gpu && len(text) < 8
}

// Decode reads one or more outputs of nvidia-smi about one host, with whatever
// stands between them. name is the file's base name. Faults in the text are
// *probe.SyntaxError with the line; an input over probe.MaxInput is
// probe.ErrTooLarge.
//
// GPUs carry their index where the text gives it: nvlink and topo do, and -q
// lists all GPUs in the order of their indices, so it does unless it was
// restricted to some of them. Of several readings of one GPU the first counts.
func Decode(name string, r io.Reader) (*probe.Inventory, error) {
	raw, err := probe.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text, err := plainText(raw)
	if err != nil {
		return nil, fault(name, 0, 0, "%v", err)
	}
	p := &parser{file: name, text: text, unreadable: map[string][]string{}}
	if err := p.scan(); err != nil {
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

type parser struct {
	file string
	text []string

	gpus    []*gpu
	driver  string
	cuda    string
	origins []probe.Origin // of driver
	guest   []probe.Mark
	gaps    []probe.Gap
	none    int // line that says that there is no GPU
	found   bool

	matrices   map[string]int      // capability → line
	unreadable map[string][]string // reason → what
	reasons    []string            // in order of appearance
	where      map[string]int      // reason → first line
	lastLink   *gpu                // the last line of the text is a link of this GPU
}

// gpu is what has been gathered of one GPU.
type gpu struct {
	probe.GPU
	query  bool // -q has spoken
	states map[int]linkState
	caps   map[int]map[int]bool
	remote map[int]probe.BDF
	counts map[string]map[int]uint64
	// A line that says that all links are down, without naming them.
	allDown int
	links   int // line of the first link
}

func (p *parser) fault(line int, format string, args ...any) error {
	return fault(p.file, line, 0, format, args...)
}

func (p *parser) origin(line int, fields ...string) probe.Origin {
	return probe.Origin{Source: Source, Where: fmt.Sprintf("%s:%d", p.file, line), Fields: fields}
}

// later adds the origin of what another part of the text says of a known GPU.
func (g *gpu) later(o probe.Origin) {
	for _, have := range g.Origins {
		if slices.Equal(have.Fields, o.Fields) {
			return
		}
	}
	g.Origins = append(g.Origins, o)
}

// scan cuts the text into outputs and reads each.
func (p *parser) scan() error {
	var query *textTree // -q text that is being read
	var current *gpu    // GPU of a list
	label := ""         // capability of the next matrix
	closeQuery := func() error {
		if query == nil {
			return nil
		}
		doc := query.doc
		query = nil
		return p.document(&doc)
	}
	for i := 0; i < len(p.text); i++ {
		line, n := p.text[i], i+1
		t := strings.TrimSpace(line)
		if t == "" {
			continue
		}
		if strings.HasPrefix(t, "<?xml") || strings.HasPrefix(t, "<!DOCTYPE") || strings.HasPrefix(t, "<nvidia_smi_log") {
			if err := closeQuery(); err != nil {
				return err
			}
			end := i
			for end < len(p.text)-1 && !strings.Contains(p.text[end], "</nvidia_smi_log>") {
				end++
			}
			doc, err := xmlDocument(p.file, p.text[i:end+1], n)
			if err != nil {
				return err
			}
			if err := p.document(doc); err != nil {
				return err
			}
			i, current = end, nil
			continue
		}
		m := queryGPU.FindStringSubmatch(t)
		top := topLevel.MatchString(line)
		switch {
		case banner.MatchString(t), query == nil && (m != nil || top):
			if err := closeQuery(); err != nil {
				return err
			}
			query, current = newTextTree(n), nil
			if m == nil && !top {
				continue
			}
		}
		columns := matrixColumns(t)
		list := listGPU.FindStringSubmatch(t)
		if query != nil && (separator.MatchString(line) || columns != nil || list != nil) {
			if err := closeQuery(); err != nil {
				return err
			}
		}
		switch {
		case query != nil && m != nil && line == strings.TrimLeft(line, " \t"):
			query.gpu(m[1], n)
		case noHandle.MatchString(t):
			p.gap(n, "gpu "+probe.Excerpt(noHandle.FindStringSubmatch(t)[1]), "nvidia-smi cannot open it", "look for Xid lines in the kernel log (dmesg | grep NVRM)")
		case query != nil && query.ends(line):
			// What follows the last GPU: a prompt, another command.
			if err := closeQuery(); err != nil {
				return err
			}
			label = capabilityLabel(t)
		case query != nil:
			if err := query.add(p.file, line, n); err != nil {
				return err
			}
		case noDevices.MatchString(t):
			p.none, p.found = n, true
		case list != nil:
			var err error
			if current, err = p.listed(list[1], list[2], list[3], n); err != nil {
				return err
			}
		case current != nil && linkLine.MatchString(line):
			l := linkLine.FindStringSubmatch(line)
			if err := p.link(current, l[1], strings.TrimSpace(l[2]), n); err != nil {
				return err
			}
		case current != nil && allDown.MatchString(t):
			current.allDown = n
		case listMIG.MatchString(line):
		case columns != nil:
			next, err := p.matrix(columns, i, label)
			if err != nil {
				return err
			}
			i, label = next, ""
		default:
			if l := capabilityLabel(t); l != "" {
				label = l
			}
		}
	}
	return closeQuery()
}

var uuidForm = regexp.MustCompile(`^GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// realUUID drops what stands where somebody took the UUID out.
func realUUID(s string) string {
	if uuidForm.MatchString(s) {
		return s
	}
	return ""
}

// listed is the GPU of a line of -L or nvlink.
func (p *parser) listed(index, name, uuid string, line int) (*gpu, error) {
	i, err := strconv.Atoi(index)
	if err != nil || i >= maxGPUs {
		return nil, p.fault(line, "GPU %s: the index is not below %d", probe.Excerpt(index), maxGPUs)
	}
	g, err := p.gpu(probe.Some(i), realUUID(uuid), probe.Opt[probe.BDF]{}, line)
	if err != nil {
		return nil, err
	}
	if g.Name == "" {
		if g.Name, err = p.plain("the name", name, line); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// maxGPUs bounds indices; it is probe's own bound on GPUs.
const maxGPUs = 256

// gpu returns the GPU of an identity, new or known. Two identities that
// contradict each other are two hosts, or a GPU that was exchanged.
func (p *parser) gpu(index probe.Opt[int], uuid string, addr probe.Opt[probe.BDF], line int) (*gpu, error) {
	var g *gpu
	var more []*gpu // entries of the same GPU that could not be told before
	for _, same := range []func(*gpu) bool{
		func(g *gpu) bool { return uuid != "" && g.UUID == uuid },
		func(g *gpu) bool { return addr.Known() && g.Addr == addr },
		func(g *gpu) bool { return index.Known() && g.Index == index },
	} {
		if i := slices.IndexFunc(p.gpus, same); i >= 0 {
			if g == nil {
				g = p.gpus[i]
			} else if p.gpus[i] != g && !slices.Contains(more, p.gpus[i]) {
				more = append(more, p.gpus[i])
			}
		}
	}
	p.found = true
	if g == nil {
		if len(p.gpus) == maxGPUs {
			return nil, p.fault(line, "more than %d GPUs", maxGPUs)
		}
		g = &gpu{GPU: probe.GPU{Index: index, UUID: uuid, Addr: addr, Origins: []probe.Origin{p.origin(line)}}}
		p.gpus = append(p.gpus, g)
		return g, nil
	}
	differs := func(what string, have, new any) error {
		return p.fault(line, "%s %v, but the same GPU has %s %v in %s; one text is one host", what, new, what, have, g.Origins[0].Where)
	}
	switch {
	case uuid != "" && g.UUID != "" && uuid != g.UUID:
		return nil, differs("UUID", g.UUID, uuid)
	case addr.Known() && g.Addr.Known() && addr != g.Addr:
		return nil, differs("bus id", g.Addr, addr)
	case index.Known() && g.Index.Known() && index != g.Index:
		return nil, differs("index", g.Index, index)
	}
	if g.UUID == "" {
		g.UUID = uuid
	}
	if !g.Addr.Known() {
		g.Addr = addr
	}
	if !g.Index.Known() {
		g.Index = index
	}
	for _, o := range more {
		if o.UUID != "" && o.UUID != g.UUID || o.Addr.Known() && o.Addr != g.Addr || o.Index.Known() && o.Index != g.Index {
			return nil, p.fault(line, "%s is another GPU in %s than in %s; one text is one host", g.object(), o.Origins[0].Where, g.Origins[0].Where)
		}
		g.absorb(o)
		p.gpus = slices.DeleteFunc(p.gpus, func(x *gpu) bool { return x == o })
	}
	return g, nil
}

// absorb takes over what was gathered under another name of the GPU.
func (g *gpu) absorb(o *gpu) {
	if o.query && !g.query {
		g.GPU, o.GPU = o.GPU, g.GPU
		g.UUID, g.Addr, g.Index, g.query = o.UUID, o.Addr, o.Index, true
	}
	if g.Name == "" {
		g.Name = o.Name
	}
	g.Peers = append(g.Peers, o.Peers...)
	g.Origins = append(g.Origins, o.Origins...)
	if g.links == 0 {
		g.links, g.states, g.caps, g.remote, g.counts = o.links, o.states, o.caps, o.remote, o.counts
	}
	g.allDown = max(g.allDown, o.allDown)
}

// plain refuses text that would not survive being printed.
func (p *parser) plain(what, s string, line int) (string, error) {
	if len(s) > maxValue || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x61c
	}) {
		return "", p.fault(line, "%s %q is no plain line of text", what, probe.Excerpt(s))
	}
	return s, nil
}

func (p *parser) gap(line int, what, why, how string) {
	p.gaps = append(p.gaps, probe.Gap{What: what, Why: why, How: how, Origin: p.origin(line)})
}

// cannot notes a value in whose place nvidia-smi printed a reason; what has one
// reason becomes one gap.
func (p *parser) cannot(what, why string, line int) {
	if p.where == nil {
		p.where = map[string]int{}
	}
	if _, ok := p.where[why]; !ok {
		p.where[why] = line
		p.reasons = append(p.reasons, why)
	}
	p.unreadable[why] = append(p.unreadable[why], what)
}

func (p *parser) inventory() (*probe.Inventory, error) {
	if !p.found {
		return nil, p.fault(0, "holds no output of nvidia-smi -q, nvlink, topo -p2p or -L")
	}
	inv := &probe.Inventory{Schema: probe.Schema}
	if p.driver != "" {
		inv.Runtime = probe.Runtime{Driver: p.driver, Origins: p.origins}
	}
	inv.Settings.Guest = p.guest
	if p.none > 0 && len(p.gpus) == 0 {
		p.gap(p.none, "gpus", "nvidia-smi says "+strconv.Quote(probe.Excerpt(strings.TrimSpace(p.text[p.none-1]))), "")
	}
	at := map[probe.BDF]bool{}
	for _, g := range p.gpus {
		if a, ok := g.Addr.Get(); ok {
			at[a] = true
		}
	}
	for _, g := range p.gpus {
		p.finishLinks(g, at)
		inv.GPUs = append(inv.GPUs, g.GPU)
	}
	for _, why := range p.reasons {
		what := p.unreadable[why]
		const show = 6
		if n := len(what); n > show {
			what = append(slices.Clone(what[:show]), fmt.Sprintf("and %d more", n-show))
		}
		p.gap(p.where[why], strings.Join(what, ", "), fmt.Sprintf("nvidia-smi says %q", why), "")
	}
	inv.Gaps = p.gaps
	return inv, nil
}

// object names a GPU in messages.
func (g *gpu) object() string {
	switch {
	case g.Index.Known():
		return fmt.Sprintf("gpu %v", g.Index)
	case g.Addr.Known():
		return fmt.Sprintf("gpu %v", g.Addr)
	}
	return "gpu " + g.UUID
}
