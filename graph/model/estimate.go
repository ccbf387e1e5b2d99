package model

import (
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// Estimate is what NCCL would do with an operation of one size, and what is known
// of the time. Times in µs.
type Estimate struct {
	Collective string            `json:"collective"`
	Bytes      int64             `json:"bytes"`  // of the total, as nccl-tests counts
	Choice     probe.Opt[Choice] `json:"choice"` // NCCL's
	// Why there is no choice.
	Why        string             `json:"why,omitempty"`
	NCCLTimeUS probe.Opt[float64] `json:"nccl_time_us"` // what NCCL believes
	TimeUS     probe.Opt[float64] `json:"time_us"`      // what we expect; not without calibration
	BusBWGBs   probe.Opt[float64] `json:"busbw_gbs"`    // of TimeUS
	LowUS      probe.Opt[float64] `json:"low_us"`       // see [Floor]
	HighUS     probe.Opt[float64] `json:"high_us"`
	Calibrated bool               `json:"calibrated"`
	// Uncalibrated says why there is no TimeUS.
	Uncalibrated string `json:"uncalibrated,omitempty"`
}

// Why an [Estimate] has no choice.
const (
	noModel  = "NCCL has no cost model for send and receive: up to NCCL_P2P_LL_THRESHOLD it uses LL where it may, above Simple"
	noneLeft = "the settings leave no algorithm and protocol for this collective: NCCL fails"
)

// Estimate tells what NCCL does with an operation; collective is one of
// [Collectives].
func (m *Model) Estimate(collective string, bytes int64, f *Floor) Estimate {
	e := Estimate{Collective: collective, Bytes: bytes}
	n := m.Bytes(collective, bytes)
	if c, ok := m.Choose(collective, n); ok {
		e.Choice, e.NCCLTimeUS = probe.Some(c), probe.Some(tidy(c.TimeUS))
	} else if _, modelled := collectiveIndex(collective); modelled {
		e.Why = noneLeft
	} else {
		e.Why = noModel
	}
	if i := slices.Index(collectiveNames[:], collective); i >= 0 {
		e.LowUS = f.timeUS(i, n)
	}
	return e
}
