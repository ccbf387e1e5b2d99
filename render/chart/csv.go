package chart

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/ncclmap/ncclmap/tune"
)

// CSV writes a row per point. Times in µs, bus bandwidth in GB/s; what is not known
// is empty.
func CSV(w io.Writer, lines []tune.Line) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"source", "collective", "line", "algo", "proto", "channels", "bytes", "time_us", "busbw_gbs", "low_us", "high_us", "calibrated"})
	num := func(v float64) string {
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	for _, l := range lines {
		calibrated := ""
		for _, p := range l.Points {
			if l.Kind == tune.LineChosen || l.Kind == tune.LineAlternative {
				calibrated = strconv.FormatBool(p.Calibrated)
			}
			channels := ""
			if p.Channels > 0 {
				channels = strconv.Itoa(p.Channels)
			}
			_ = out.Write([]string{
				l.Source, l.Collective, l.Kind, p.Algo, p.Proto, channels, strconv.FormatInt(p.Bytes, 10),
				num(p.TimeUS), num(p.BusBWGBs), num(p.LowUS), num(p.HighUS), calibrated,
			})
		}
	}
	out.Flush()
	return out.Error()
}
