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

// NVLink counters of generations 1 to 4 are calls of their own, those of
// generation 5 are fields. The deprecated ones are not asked.
const lastOldGeneration = 4

// linkCounter says where a column of probe.NVLinkCounts comes from.
type linkCounter struct {
	name   string // of the column
	field  int    // NVML_FI_DEV_*; 0: error is asked
	error  int    // NVML_NVLINK_ERROR_DL_*
	newest bool   // of NVLink 5 and later
}

func linkCounters() []linkCounter {
	return []linkCounter{
		{name: "replay", error: 0},
		{name: "recovery", error: 1},
		{name: "crc_flit", error: 2},
		{name: "crc_data", error: 3},
		{name: "malformed", field: 206, newest: true},
		{name: "buffer_overrun", field: 207, newest: true},
		{name: "rcv_errors", field: 208, newest: true},
		{name: "rcv_remote_errors", field: 209, newest: true},
		{name: "rcv_general_errors", field: 210, newest: true},
		{name: "local_integrity_errors", field: 211, newest: true},
		{name: "xmit_discards", field: 212, newest: true},
		{name: "recovery_successful", field: 213, newest: true},
		{name: "recovery_failed", field: 214, newest: true},
		{name: "effective_errors", field: 219, newest: true},
		{name: "effective_ber", field: 220, newest: true},
		{name: "symbol_errors", field: 221, newest: true},
		{name: "symbol_ber", field: 222, newest: true},
		{name: "data_tx_kib", field: fieldDataTX},
		{name: "data_rx_kib", field: fieldDataRX},
		{name: "raw_tx_kib", field: fieldRawTX},
		{name: "raw_rx_kib", field: fieldRawRX},
	}
}

// linkCounts are the counters of one link by the name of their column.
type linkCounts map[string]probe.Opt[uint64]

// linkCounts reads a link's counters and its speed.
func (g *gpuReader) linkCounts(l *probe.NVLink) linkCounts {
	out := linkCounts{}
	at, d := g.link(l.Link), g.linkAsker(l)
	gen, genKnown := l.Generation.Get()
	ids := []field{{fieldNVLinkSpeed, l.Link}}
	var names []string
	for _, c := range linkCounters() {
		switch {
		case c.newest && genKnown && gen <= lastOldGeneration:
		case c.field != 0:
			ids = append(ids, field{c.field, l.Link})
			names = append(names, c.name)
		case genKnown && gen > lastOldGeneration:
		default:
			out[c.name] = fact(g.reader, d, at, linkErrors, same, l.Link, c.error)
		}
	}
	answers := g.fields(ids)
	if answers == nil {
		return out
	}
	if l.State == probe.LinkDown {
		for i := range answers {
			if answers[i].s == invalidArgument {
				answers[i].s = notSupported
			}
		}
	}
	// A driver that does not know each link's speed may know the common one. A
	// link that is down has none, whatever it states.
	if a := answers[0]; a.s != invalidArgument && a.s != functionNotFound {
		if v, ok := g.field(speedFact, at, a); ok && l.State == probe.LinkUp {
			l.Signal = judge(g.reader, at, speedFact, fieldsFunction, v, success, signal)
		}
	}
	for i, name := range names {
		if v, ok := g.field("NVLink counters", at, answers[i+1]); ok {
			out[name] = probe.Some(v)
		}
	}
	return out
}

const speedFact = "NVLink speed"

// fields asks for several fields at once; nil when the GPU has ended.
func (g *gpuReader) fields(ids []field) []fieldAnswer {
	if g.ended {
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
