package probe

import (
	"math"
	"strconv"
)

// Rate is a data rate in bytes per second, one direction. 1 GB/s is 1e9.
type Rate int64

// GBs returns a rate of v GB/s (1e9 bytes per second).
func GBs(v float64) Rate { return Rate(math.Round(v * 1e9)) }

// Mbps returns a rate of v megabits per second, as NICs state theirs.
func Mbps(v float64) Rate { return Rate(math.Round(v * 1e6 / 8)) }

// GBs returns the rate in GB/s.
func (r Rate) GBs() float64 { return float64(r) / 1e9 }

// String prints GB/s with at most two decimals: "31.5 GB/s".
func (r Rate) String() string {
	return strconv.FormatFloat(math.Round(r.GBs()*100)/100, 'f', -1, 64) + " GB/s"
}

// Gbps prints the rate as port speeds are written: "400 Gb/s".
func (r Rate) Gbps() string {
	return strconv.FormatFloat(math.Round(float64(r)*8/1e7)/100, 'f', -1, 64) + " Gb/s"
}
