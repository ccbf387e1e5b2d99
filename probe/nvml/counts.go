package nvml

import (
	"errors"
	"fmt"
	"math"

	"github.com/ncclmap/ncclmap/probe"
)

// NVML_FI_DEV_* that are asked (nvml.h).
const (
	fieldNVLinkSpeedCommon = 90  // MB/s of the links that are up
	fieldDataTX            = 138 // KiB, like the next three
	fieldDataRX            = 139
	fieldRawTX             = 140
	fieldRawRX             = 141
	fieldNVLinkSpeed       = 164 // MB/s
	fieldC2CCount          = 170
	fieldC2CSpeed          = 172 // MB/s
	fieldPCIeCorrectable   = 173
	fieldPCIeNonFatal      = 179
	fieldPCIeFatal         = 180
	fieldPCIeTX            = 197 // bytes, 32 bits that wrap
	fieldPCIeRX            = 198
	fieldRecoveryAction    = 230
)

// linkCounter says where a column of probe.NVLinkCounts comes from.
type linkCounter struct {
	name        string // of the column
	field       int    // NVML_FI_DEV_*; 0: error is asked
	error       int    // NVML_NVLINK_ERROR_DL_*
	first, last int    // NVLink generations that have it
	guess       bool   // asked of a link whose generation is not known
}

// linkCounters lists the counters of NVLinks. A counter can have two sources:
// calls of their own cost a trip to the GPU for each link (about 1 ms on an
// H200), fields one for all links together, but only drivers since Hopper have
// these. On NVLink 4 what nvmlDeviceGetNvLinkErrorCounter calls CRC data (and
// ECC data) rises on a healthy idle link, while nvidia-smi and the fields show
// no error (2 × H200, driver 580.159.04); so it is not asked there. Deprecated
// fields are not asked either.
func linkCounters() []linkCounter {
	return []linkCounter{
		{name: "replay", error: 0, first: 1, last: 3},
		{name: "recovery", error: 1, first: 1, last: 3},
		{name: "crc_flit", error: 2, first: 1, last: 3},
		{name: "crc_data", error: 3, first: 1, last: 3},
		{name: "replay", field: 161, first: 4, last: 4, guess: true},
		{name: "recovery", field: 162, first: 4, last: 4, guess: true},
		{name: "crc_flit", field: 163, first: 4, last: 4, guess: true},
		{name: "malformed", field: 206, first: 5, last: 6, guess: true},
		{name: "buffer_overrun", field: 207, first: 5, last: 6, guess: true},
		{name: "rcv_errors", field: 208, first: 5, last: 6, guess: true},
		{name: "rcv_remote_errors", field: 209, first: 5, last: 6, guess: true},
		{name: "rcv_general_errors", field: 210, first: 5, last: 6, guess: true},
		{name: "local_integrity_errors", field: 211, first: 5, last: 6, guess: true},
		{name: "xmit_discards", field: 212, first: 5, last: 6, guess: true},
		{name: "recovery_successful", field: 213, first: 5, last: 6, guess: true},
		{name: "recovery_failed", field: 214, first: 5, last: 6, guess: true},
		{name: "effective_errors", field: 219, first: 5, last: 6, guess: true},
		{name: "effective_ber", field: 220, first: 5, last: 6, guess: true},
		{name: "symbol_errors", field: 221, first: 5, last: 6, guess: true},
		{name: "symbol_ber", field: 222, first: 5, last: 6, guess: true},
		{name: "data_tx_kib", field: fieldDataTX, first: 1, last: 6, guess: true},
		{name: "data_rx_kib", field: fieldDataRX, first: 1, last: 6, guess: true},
		{name: "raw_tx_kib", field: fieldRawTX, first: 1, last: 6, guess: true},
		{name: "raw_rx_kib", field: fieldRawRX, first: 1, last: 6, guess: true},
	}
}

// has reports whether a link is asked for the counter.
func (c linkCounter) has(generation probe.Opt[int]) bool {
	n, ok := generation.Get()
	if !ok {
		return c.guess
	}
	return n >= c.first && n <= c.last
}

// linkCounts are the counters of one link by the name of their column.
type linkCounts map[string]probe.Opt[uint64]

const speedFact = "NVLink speed"

// counters reads the counters and the speed of all links of a GPU.
func (g *gpuReader) counters(links []probe.NVLink) []linkCounts {
	out := make([]linkCounts, len(links))
	table := linkCounters()
	type wanted struct {
		link int
		name string // "" is the speed
	}
	var ids []field
	var want []wanted
	for i := range links {
		l := &links[i]
		out[i] = linkCounts{}
		ids = append(ids, field{fieldNVLinkSpeed, l.Link})
		want = append(want, wanted{i, ""})
		for _, c := range table {
			switch {
			case !c.has(l.Generation):
			case c.field != 0:
				ids = append(ids, field{c.field, l.Link})
				want = append(want, wanted{i, c.name})
			default:
				out[i][c.name] = fact(g.reader, g.linkAsker(l), g.link(l.Link), linkErrors, same, l.Link, c.error)
			}
		}
	}
	for i, a := range g.fields(ids) {
		l, w := &links[want[i].link], want[i]
		if l.State == probe.LinkDown && a.s == invalidArgument {
			continue
		}
		at := g.link(l.Link)
		if w.name != "" {
			if v, ok := g.field("NVLink counters", at, a); ok {
				out[w.link][w.name] = probe.Some(v)
			}
			continue
		}
		// A driver that does not know each link's speed may know the common one. A
		// link that is down has none, whatever it states.
		if a.s == invalidArgument || a.s == functionNotFound {
			continue
		}
		if v, ok := g.field(speedFact, at, a); ok && l.State == probe.LinkUp {
			l.Signal = judge(g.reader, at, speedFact, fieldsFunction, v, success, signal)
		}
	}
	return out
}

// fields asks for several fields at once; nil when the GPU has ended or nothing
// is asked.
func (g *gpuReader) fields(ids []field) []fieldAnswer {
	if g.ended || len(ids) == 0 {
		return nil
	}
	return g.dev.fields(ids)
}

// field returns one field's value. A driver answers "invalid argument" for a
// field that it does not know.
func (g *gpuReader) field(what, at string, a fieldAnswer) (uint64, bool) {
	if a.s == invalidArgument {
		a.s = functionNotFound
	}
	if g.ended && a.s.ends() {
		return 0, false // said for the first field
	}
	return a.value, g.known(what, at, fieldsFunction, a.s)
}

// columns turns the counters of the links into columns; nil without any.
func columns(links []linkCounts) *probe.NVLinkCounts {
	var out probe.NVLinkCounts
	some := false
	for name, column := range out.Columns() {
		values := make([]probe.Opt[uint64], len(links))
		for i, l := range links {
			values[i] = l[name]
		}
		*column = probe.ColumnOf(values)
		some = some || *column != nil
	}
	if !some {
		return nil
	}
	return &out
}

// figures reads the facts about the whole GPU that only exist as fields.
func (g *gpuReader) figures() {
	var p probe.PCIeCounters
	var common, c2cLinks, c2cSpeed, action probe.Opt[uint64]
	wanted := []struct {
		what string
		id   int
		to   *probe.Opt[uint64]
	}{
		{speedFact, fieldNVLinkSpeedCommon, &common},
		{"C2C links", fieldC2CCount, &c2cLinks},
		{"C2C speed", fieldC2CSpeed, &c2cSpeed},
		{"PCIe correctable errors", fieldPCIeCorrectable, &p.Correctable},
		{"PCIe non-fatal errors", fieldPCIeNonFatal, &p.NonFatal},
		{"PCIe fatal errors", fieldPCIeFatal, &p.Fatal},
		{"PCIe bytes", fieldPCIeTX, &p.TX},
		{"PCIe bytes", fieldPCIeRX, &p.RX},
		{"recovery action", fieldRecoveryAction, &action},
	}
	ids := make([]field, len(wanted))
	for i, w := range wanted {
		ids[i] = field{id: w.id}
	}
	answers := g.fields(ids)
	if answers == nil {
		return
	}
	for i, w := range wanted {
		if v, ok := g.field(w.what, g.object, answers[i]); ok {
			*w.to = probe.Some(v)
		}
	}
	if p != (probe.PCIeCounters{}) {
		g.gpu.PCIe = &p
	}
	if v, ok := action.Get(); ok {
		g.gpu.Recovery = judge(g.reader, g.object, "recovery action", fieldsFunction, int(min(v, math.MaxInt32)), success, recoveryAction).Or("")
	}
	if v, ok := common.Get(); ok {
		g.commonSpeed(v)
	}
	if n := c2cLinks.Or(0); n > 0 && c2cSpeed.Or(0) > 0 {
		rate, err := signal(c2cSpeed.Or(0))
		if n > maxC2C {
			err = errors.Join(err, fmt.Errorf("%d links: more than a GPU has", n))
		}
		if err != nil {
			g.gap("C2C links", g.object, err)
			return
		}
		g.gpu.C2C = &probe.C2C{Links: int(n), PerLink: rate.Or(0)}
	}
}

// maxC2C is far above the 10 links of a GH200.
const maxC2C = 128

// commonSpeed gives the links that are up the speed that they share, where the
// driver does not tell each link's own.
func (g *gpuReader) commonSpeed(mbs uint64) {
	links, _ := g.gpu.NVLinks.Get()
	for i := range links {
		if l := &links[i]; l.State == probe.LinkUp && !l.Signal.Known() {
			l.Signal = judge(g.reader, g.object, speedFact, fieldsFunction, mbs, success, signal)
		}
	}
}
