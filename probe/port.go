package probe

import (
	"fmt"
	"strconv"
	"strings"
)

// ParsePortState reads a state of an RDMA port as the kernel prints it, "4: ACTIVE"
// or "5: LinkUp". It writes "<unknown>" for numbers that it does not know.
func ParsePortState(s string) (Opt[string], error) {
	number, word, ok := strings.Cut(s, ":")
	word = OneLine(word, 64)
	if _, err := strconv.Atoi(strings.TrimSpace(number)); err != nil || !ok || word == "" {
		return Opt[string]{}, fmt.Errorf("port state %.40q: want a number and a word", s)
	}
	if strings.Contains(word, "<") {
		return Opt[string]{}, nil
	}
	return Some(word), nil
}

// MaxPortGbps is the highest port rate that is believed, in Gb/s.
const MaxPortGbps = 1e6

// ParsePortRate reads the rate of an RDMA port as the kernel prints it, "400 Gb/sec
// (4X NDR)" or "2.5 Gb/sec (1X SDR)".
func ParsePortRate(s string) (Opt[Rate], error) {
	number, rest, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.HasPrefix(rest, "Gb/sec") || !(v >= 0 && v <= MaxPortGbps) {
		return Opt[Rate]{}, fmt.Errorf("port rate %.40q: want a number of Gb/sec", s)
	}
	if v == 0 {
		return Opt[Rate]{}, nil
	}
	return Some(Mbps(v * 1000)), nil
}
