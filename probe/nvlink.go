package probe

import (
	"iter"
	"slices"
)

// nvlinkGenerations holds, per NVLink generation, what one link carries in one
// direction: the data-sheet payload and the signalling rate that the driver
// prints. Payload is what a review should state: 18 × 25 = 450 GB/s for an
// H100, not 18 × 26.562 (NVIDIA data sheets; stas00/ml-engineering network
// page; docs.nvidia.com/health-validation for generations 4 and 5).
var nvlinkGenerations = []Rate{1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9, 6: 50e9}

// NVLinkRate returns the payload rate of one link of a generation, one
// direction; unknown for a generation that is not in the table. On GA102-class
// boards (sm_86) generation 3 carries 14.06 GB/s.
func NVLinkRate(generation Opt[int], cc Opt[int]) Opt[Rate] {
	g, ok := generation.Get()
	if !ok || g < 1 || g >= len(nvlinkGenerations) {
		return Opt[Rate]{}
	}
	if g == 3 && cc.Or(0) == 86 {
		return Some(Rate(14.0625e9))
	}
	return Some(nvlinkGenerations[g])
}

// NVLinkGenerationOf returns the generation that GPUs of a compute capability
// (×10) use; unknown where a capability has parts with and without NVLink of
// several generations.
func NVLinkGenerationOf(cc Opt[int]) Opt[int] {
	switch c := cc.Or(0); {
	case c == 60:
		return Some(1)
	case c == 70, c == 75:
		return Some(2)
	case c == 80, c == 86:
		return Some(3)
	case c == 90:
		return Some(4)
	case c == 100, c == 103:
		return Some(5)
	}
	return Opt[int]{}
}

// ColumnOf makes a column of the counters of links 0, 1, …, the shortest one that
// says the same: empty where none is known, one element where all agree.
func ColumnOf(links []Opt[uint64]) LinkColumn {
	switch {
	case !slices.ContainsFunc(links, Opt[uint64].Known):
		return nil
	case !slices.ContainsFunc(links, func(c Opt[uint64]) bool { return c != links[0] }):
		return LinkColumn{links[0]}
	}
	return slices.Clone(links)
}

// At returns the counter of a link, unknown for a link that the column does not
// hold.
func (c LinkColumn) At(link int) Opt[uint64] {
	switch {
	case len(c) == 1:
		return c[0]
	case link < 0 || link >= len(c):
		return Opt[uint64]{}
	}
	return c[link]
}

// Columns walks the counters by their JSON names.
func (c *NVLinkCounts) Columns() iter.Seq2[string, *LinkColumn] {
	return func(yield func(string, *LinkColumn) bool) {
		for _, x := range []struct {
			name   string
			column *LinkColumn
		}{
			{"replay", &c.Replay}, {"recovery", &c.Recovery}, {"crc_flit", &c.CRCFlit}, {"crc_data", &c.CRCData},
			{"malformed", &c.Malformed}, {"buffer_overrun", &c.BufferOverrun},
			{"rcv_errors", &c.RcvErrors}, {"rcv_remote_errors", &c.RcvRemoteErrors}, {"rcv_general_errors", &c.RcvGeneralErrors},
			{"local_integrity_errors", &c.IntegrityErrors}, {"xmit_discards", &c.XmitDiscards},
			{"recovery_successful", &c.Recovered}, {"recovery_failed", &c.RecoveryFailed},
			{"effective_errors", &c.EffectiveErrors}, {"effective_ber", &c.EffectiveBER},
			{"symbol_errors", &c.SymbolErrors}, {"symbol_ber", &c.SymbolBER},
			{"data_tx_kib", &c.DataTX}, {"data_rx_kib", &c.DataRX}, {"raw_tx_kib", &c.RawTX}, {"raw_rx_kib", &c.RawRX},
		} {
			if !yield(x.name, x.column) {
				return
			}
		}
	}
}

// NVLinkBER unpacks a bit error rate of NVLink 5: mantissa × 10 to the power of
// -exponent. 15e-255 is what a link without an error shows, so it is no figure;
// ok is false then.
func NVLinkBER(packed uint64) (mantissa, exponent int, ok bool) {
	mantissa, exponent = int(packed>>8&0xf), int(packed&0xff)
	return mantissa, exponent, !(mantissa == 15 && exponent == 255)
}
