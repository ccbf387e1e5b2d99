package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// Since is an earlier reading of the hosts, against which counters are judged: by
// what they grew, never by their totals.
type Since struct {
	Hosts []*probe.Inventory
	// Apart is the time between the readings, which inventories do not hold; growth
	// that only a rate judges is a gap without it.
	Apart probe.Opt[time.Duration]
}

// RunSince is [RunCluster] of hosts of which there is an earlier reading.
func RunSince(c *probe.Cluster, since Since, rules []Rule) (Result, error) {
	return runCluster(c, &since, rules)
}

// earlier is the earlier reading of one host.
type earlier struct {
	inv   *probe.Inventory // nil: there is none
	apart probe.Opt[time.Duration]
}

// of finds the reading of a host by its name; nil where none was asked for.
func (s *Since) of(inv *probe.Inventory, hosts int) *earlier {
	if s == nil {
		return nil
	}
	e := &earlier{apart: s.Apart}
	for _, old := range s.Hosts {
		nameless := (old.Host.Name == "" || inv.Host.Name == "") && len(s.Hosts) == 1 && hosts == 1
		if nameless || probe.SameHostName(old.Host.Name, inv.Host.Name) {
			e.inv = old
		}
	}
	return e
}

// Holds reports an earlier reading of one of so many hosts.
func (s *Since) Holds(inv *probe.Inventory, hosts int) bool { return s.of(inv, hosts).inv != nil }

// Reasons for gaps about growth.
const (
	noEarlier     = "the earlier reading does not hold these counters"
	wentBackwards = "counters went backwards between the readings: driver or device was reset meanwhile"
	noInterval    = "counters grew, and whether too fast the time between the readings would tell"
	readAgain     = "read the counters twice without a reset between"
	giveInterval  = "give it with --apart"
)

// counter is one counter in both readings.
type counter struct {
	old, now probe.Opt[uint64]
}

// growth is how much a counter grew; none where a reading lacks it. One that went
// backwards, or is gone, is a gap.
func (p *Pass) growth(c counter, subject string) uint64 {
	old, was := c.old.Get()
	now, is := c.now.Get()
	switch {
	case !was && !is:
		return 0
	case !was || !is:
		p.Gap(noEarlier, readAgain, subject)
		return 0
	case now < old:
		p.Gap(wentBackwards, readAgain, subject)
		return 0
	}
	return now - old
}

// rate is growth in a given time; without the time between the readings it is a gap.
func (p *Pass) rate(grown uint64, per time.Duration, subject string) (rate float64, ok bool) {
	apart, ok := p.before.apart.Get()
	if !ok {
		p.Gap(noInterval, giveInterval, subject)
		return 0, false
	}
	return float64(grown) * per.Seconds() / apart.Seconds(), true
}

// grew puts growth in words.
func (e *earlier) grew(n uint64, what string) string {
	text := fmt.Sprintf("%s grew by %d", what, n)
	if apart, ok := e.apart.Get(); ok {
		text += " in " + apart.String()
	}
	return text
}

// gpu is the earlier reading of a GPU: that of its UUID, else of its address.
func (e *earlier) gpu(g *probe.GPU) *probe.GPU {
	if e.inv == nil {
		return nil
	}
	i := slices.IndexFunc(e.inv.GPUs, func(o probe.GPU) bool {
		if g.UUID != "" && o.UUID != "" {
			return g.UUID == o.UUID
		}
		a, known := g.Addr.Get()
		b, same := o.Addr.Get()
		return known && same && a == b
	})
	if i < 0 {
		return nil
	}
	return &e.inv.GPUs[i]
}

// errors is the earlier reading of a PCI function's error counters.
func (e *earlier) errors(d *probe.PCIDevice) *probe.PCIeCounters {
	if e.inv == nil {
		return nil
	}
	i := slices.IndexFunc(e.inv.PCI, func(o probe.PCIDevice) bool { return o.Addr == d.Addr })
	if i < 0 {
		return nil
	}
	return e.inv.PCI[i].Errors
}

// port is the earlier reading of an HCA's port.
func (e *earlier) port(h *probe.HCA, number int) *probe.HCAPort {
	if e.inv == nil {
		return nil
	}
	i := slices.IndexFunc(e.inv.HCAs, func(o probe.HCA) bool { return o.Name == h.Name && o.NodeGUID == h.NodeGUID })
	if i < 0 {
		return nil
	}
	ports := e.inv.HCAs[i].Ports
	k := slices.IndexFunc(ports, func(o probe.HCAPort) bool { return o.Port == number })
	if k < 0 {
		return nil
	}
	return &ports[k]
}
