package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ncclmap/ncclmap/probe"
)

// Counters are judged by growth alone; totals, however large, say nothing.
func TestSince(t *testing.T) {
	const big = 1_000_000
	nvl := func(c probe.NVLinkCounts) func(*host) { return func(h *host) { h.inv.GPUs[0].LinkCounts = &c } }
	column := func(link int, n uint64) probe.LinkColumn {
		c := make(probe.LinkColumn, 18)
		for i := range c {
			c[i] = probe.Some[uint64](big)
		}
		c[link] = probe.Some(big + n)
		return c
	}
	replay := func(n uint64) func(*host) { return nvl(probe.NVLinkCounts{Replay: column(3, n)}) }
	crc := func(n uint64) func(*host) { return nvl(probe.NVLinkCounts{CRCFlit: column(3, n)}) }
	aer := func(correctable, nonfatal, fatal uint64) func(*host) {
		return func(h *host) {
			h.dev(h.inv.GPUs[0].Addr.Or(probe.BDF{}).String()).Errors = &probe.PCIeCounters{
				Correctable: probe.Some(big + correctable), NonFatal: probe.Some(big + nonfatal), Fatal: probe.Some(big + fatal)}
		}
	}
	port := func(name string, n uint64) func(*host) {
		return func(h *host) { h.inv.HCAs[3].Ports[0].Counters = []probe.Counter{{Name: name, Value: big + n}} }
	}
	minute := probe.Some(time.Minute)
	for _, c := range []struct {
		name     string
		rule     string
		old, now func(*host)
		apart    probe.Opt[time.Duration]
		want     string // severity and first subject
		says     string
		gap      string
	}{
		{name: "replays as before", rule: "nvlink-errors", old: replay(7), now: replay(7)},
		{name: "one replay more", rule: "nvlink-errors", old: replay(7), now: replay(8), want: "critical " + gpuKey(0) + "--nvswitch:0000:08:00.0", says: "replays on link 3 grew by 1"},
		{name: "replays went backwards", rule: "nvlink-errors", old: replay(7), now: replay(2), gap: "went backwards"},
		{name: "no earlier replays", rule: "nvlink-errors", old: nvl(probe.NVLinkCounts{}), now: replay(2), gap: "does not hold"},
		{name: "recovered", rule: "nvlink-errors", old: nvl(probe.NVLinkCounts{Recovered: column(3, 0)}), now: nvl(probe.NVLinkCounts{Recovered: column(3, 2)}), want: "warning " + gpuKey(0)},
		{name: "CRC errors below one a second", rule: "nvlink-errors", old: crc(0), now: crc(59), apart: minute},
		{name: "a CRC error a second", rule: "nvlink-errors", old: crc(0), now: crc(60), apart: minute, want: "warning " + gpuKey(0), says: "CRC errors on link 3 grew by 60 in 1m0s"},
		{name: "a hundred a second", rule: "nvlink-errors", old: crc(0), now: crc(6000), apart: minute, want: "critical " + gpuKey(0)},
		{name: "CRC errors in nobody knows what time", rule: "nvlink-errors", old: crc(0), now: crc(6000), gap: "time between the readings"},

		{name: "AER as before", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(0, 0, 0), apart: minute},
		{name: "fatal", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(0, 0, 1), want: "critical " + gpuKey(0), says: "fatal errors at "},
		{name: "nonfatal", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(0, 2, 0), want: "warning " + gpuKey(0), says: " grew by 2"},
		{name: "correctable within the budget of Gen5 x16", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(32, 0, 0), apart: minute},
		{name: "correctable above it", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(33, 0, 0), apart: minute, want: "warning " + gpuKey(0)},
		{name: "as many in two minutes", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(33, 0, 0), apart: probe.Some(2 * time.Minute)},
		{name: "correctable without a time", rule: "pcie-errors", old: aer(0, 0, 0), now: aer(33, 0, 0), gap: "time between the readings"},
		{name: "AER went backwards", rule: "pcie-errors", old: aer(5, 0, 0), now: aer(4, 0, 0), gap: "went backwards"},

		{name: "flaps of old", rule: "hca-errors", old: port("link_downed", 0), now: port("link_downed", 0)},
		{name: "a flap", rule: "hca-errors", old: port("link_downed", 0), now: port("link_downed", 1), want: "critical port:mlx5_3/1", says: "link_downed grew by 1"},
		{name: "symbol errors", rule: "hca-errors", old: port("symbol_error", 0), now: port("symbol_error", 4), want: "warning port:mlx5_3/1", says: "symbol_error grew by 4"},
		{name: "out of sequence", rule: "hca-errors", old: port("out_of_sequence", 0), now: port("out_of_sequence", 4)},
		{name: "port counters went backwards", rule: "hca-errors", old: port("symbol_error", 4), now: port("symbol_error", 0), gap: "went backwards"},
	} {
		old, now := h100x8().with(c.old), h100x8().with(c.now)
		rule, _ := Find(c.rule)
		res, err := RunSince(&probe.Cluster{Hosts: []*probe.Inventory{&now.inv}}, Since{Hosts: []*probe.Inventory{&old.inv}, Apart: c.apart}, []Rule{rule})
		if err != nil {
			t.Fatal(err)
		}
		var got, says string
		for _, f := range res.Findings {
			got, says = fmt.Sprint(f.Severity, " ", f.Subjects[0]), f.Observed
		}
		if len(res.Findings) > 1 || (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) || !strings.Contains(says, c.says) {
			t.Errorf("%s: %+v", c.name, res.Findings)
		}
		found := c.gap == ""
		for _, g := range res.Gaps {
			found = found || g.Rule == c.rule && strings.Contains(g.Reason, c.gap)
			if strings.Contains(g.Reason, "one reading") {
				t.Errorf("%s: %+v", c.name, g)
			}
		}
		if !found {
			t.Errorf("%s: no gap %q in %+v", c.name, c.gap, res.Gaps)
		}
	}
}

// Another host's reading is none of this one.
func TestSinceOtherHost(t *testing.T) {
	old, now := h100x8(), h100x8()
	old.inv.Host.Name, now.inv.Host.Name = "gx1", "gx2"
	s := Since{Hosts: []*probe.Inventory{&old.inv}}
	if s.Holds(&now.inv, 1) {
		t.Error("another host's reading is taken")
	}
	now.inv.Host.Name = ""
	if !s.Holds(&now.inv, 1) {
		t.Error("a host without a name has no reading")
	}
}
