package probe

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// PCIeSpeed is the signalling rate of one lane in MT/s.
type PCIeSpeed int

// pcieGenerations gives, per generation, the lane's signalling rate and what is
// left after line coding: 8b/10b up to Gen2, 128b/130b up to Gen5, and for Gen6
// the 242 of 256 FLIT bytes that carry TLPs and DLLPs less their CRC
// (PCI Express Base Specification 6.0; table in Linux drivers/pci/pci.h).
var pcieGenerations = []struct {
	speed  PCIeSpeed
	coding float64
}{
	{2500, 8. / 10}, {5000, 8. / 10}, {8000, 128. / 130}, {16000, 128. / 130}, {32000, 128. / 130}, {64000, 242. / 256},
}

// payloadShare is what large DMA copies get of the encoded rate: 55.4 of 63
// GB/s on Gen5 x16 and about 26 of 31.5 on Gen4 x16 were measured (H200, A100;
// stas00/ml-engineering, Azure/azurehpc-health-checks).
const payloadShare = 0.88

// ParsePCIeSpeed reads what Linux, NVML and NCCL print: "32.0 GT/s PCIe",
// "32 GT/s", "8.0 GT/s". Text that names no generation is an error; sysfs'
// "Unknown" and "" are unknown without one.
func ParsePCIeSpeed(s string) (Opt[PCIeSpeed], error) {
	t := strings.TrimSpace(s)
	if t == "" || strings.HasPrefix(t, "Unknown") {
		return Opt[PCIeSpeed]{}, nil
	}
	num, rest, _ := strings.Cut(t, " ")
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !strings.HasPrefix(rest, "GT/s") {
		return Opt[PCIeSpeed]{}, fmt.Errorf("link speed %q: want a number of GT/s", clip(s))
	}
	sp := PCIeSpeed(math.Round(v * 1000))
	if sp.Gen() == 0 {
		return Opt[PCIeSpeed]{}, fmt.Errorf("link speed %q: no PCIe generation signals at that rate", clip(s))
	}
	return Some(sp), nil
}

// PCIeSpeedOfGen returns the speed of generation 1 to 6; ok is false otherwise.
func PCIeSpeedOfGen(gen int) (speed PCIeSpeed, ok bool) {
	if gen < 1 || gen > len(pcieGenerations) {
		return 0, false
	}
	return pcieGenerations[gen-1].speed, true
}

// Gen returns the PCIe generation, 0 when no generation signals at this rate.
func (s PCIeSpeed) Gen() int {
	for i, g := range pcieGenerations {
		if g.speed == s {
			return i + 1
		}
	}
	return 0
}

// String prints the kernel's spelling without its suffix: "32.0 GT/s".
func (s PCIeSpeed) String() string { return fmt.Sprintf("%.1f GT/s", float64(s)/1000) }

// MarshalJSON writes GT/s as a number.
func (s PCIeSpeed) MarshalJSON() ([]byte, error) { return json.Marshal(float64(s) / 1000) }

func (s *PCIeSpeed) UnmarshalJSON(b []byte) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("PCIe speed %s: not a number of GT/s", clip(string(b)))
	}
	*s = PCIeSpeed(math.Round(v * 1000))
	return nil
}

// PCIeLink is one link's speed and width, each possibly unknown.
type PCIeLink struct {
	Speed Opt[PCIeSpeed] `json:"speed_gts"`
	Width Opt[int]       `json:"width"`
}

// Gen5x16 and the like, for tables and tests.
func LinkOfGen(gen, width int) PCIeLink {
	s, _ := PCIeSpeedOfGen(gen)
	return PCIeLink{Speed: Some(s), Width: Some(width)}
}

// Known reports whether both speed and width are known.
func (l PCIeLink) Known() bool { return l.Speed.Known() && l.Width.Known() }

// Encoded returns the rate after line coding, one direction: 63 GB/s for Gen5
// x16. Unknown unless both speed and width are known.
func (l PCIeLink) Encoded() Opt[Rate] {
	s, w := l.Speed.Or(0), l.Width.Or(0)
	g := s.Gen()
	if g == 0 || w <= 0 {
		return Opt[Rate]{}
	}
	return Some(Rate(math.Round(float64(s) * 1e6 / 8 * pcieGenerations[g-1].coding * float64(w))))
}

// Payload returns what large copies can get of Encoded (about 0.88 of it).
func (l PCIeLink) Payload() Opt[Rate] {
	r, ok := l.Encoded().Get()
	if !ok {
		return Opt[Rate]{}
	}
	return Some(Rate(math.Round(float64(r) * payloadShare)))
}

// Min returns the lower speed and the lower width of two ends of one link, as
// the link trains. What only one end knows is taken from it.
func (l PCIeLink) Min(o PCIeLink) PCIeLink {
	return PCIeLink{Speed: minKnown(l.Speed, o.Speed), Width: minKnown(l.Width, o.Width)}
}

func minKnown[T int | PCIeSpeed](a, b Opt[T]) Opt[T] {
	x, okX := a.Get()
	y, okY := b.Get()
	if !okX || okY && y < x {
		return b
	}
	return a
}

// String prints "Gen5 x16", "Gen5 x?" or "unknown".
func (l PCIeLink) String() string {
	if !l.Speed.Known() && !l.Width.Known() {
		return "unknown"
	}
	gen, width := "Gen?", "x?"
	if s, ok := l.Speed.Get(); ok {
		gen = fmt.Sprintf("Gen%d", s.Gen())
	}
	if w, ok := l.Width.Get(); ok {
		width = fmt.Sprintf("x%d", w)
	}
	return gen + " " + width
}
