package hwlocxml

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// parseSet reads hwloc's bitmaps: groups of 32 bits, most significant first,
// with 0x before each, empty where they are 0. A set without an end, which
// hwloc writes as 0xf...f, is refused: no host has it.
func parseSet(s string) (probe.CPUSet, error) {
	if strings.Contains(s, "...") {
		return "", errors.New("a set without an end")
	}
	groups := strings.Split(strings.TrimSpace(s), ",")
	for i, g := range groups {
		if g == "" {
			groups[i] = "0"
		}
	}
	return probe.ParseCPUMask(strings.Join(groups, ","))
}

// pciType is "0302 [10de:1db1] [10de:1212] a1": class, vendor and device, those
// of the subsystem, revision; format 3 has the programming interface behind it.
var pciType = regexp.MustCompile(`^([0-9a-fA-F]{4}) \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\](?: \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\])?(?: ([0-9a-fA-F]{2}))?(?: ([0-9a-fA-F]{2}))?$`)

func setType(d *probe.PCIDevice, s string) error {
	m := pciType.FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("pci_type %q: want class [vendor:device] [vendor:device] revision", probe.Excerpt(s))
	}
	hex := func(s string) uint64 { v, _ := strconv.ParseUint(s, 16, 32); return v }
	id := func(s string) probe.Opt[probe.PCIID] { return probe.Some(probe.PCIID(hex(s))) }
	class := probe.PCIClass(hex(m[1]) << 8)
	if m[7] != "" {
		class |= probe.PCIClass(hex(m[7]))
	}
	// Without the programming interface a class is only whole where that is 0
	// throughout; an invented one would contradict what the kernel says.
	switch class.Base() {
	case 0x02, 0x03, 0x06, 0x12:
		d.Class = probe.Some(class)
	default:
		if m[7] != "" {
			d.Class = probe.Some(class)
		} else {
			d.Extra = append(d.Extra, probe.Attr{Name: "class", Value: m[1]})
		}
	}
	d.Vendor, d.Device = id(m[2]), id(m[3])
	if m[4] != "" && m[4]+m[5] != "00000000" {
		d.SubVendor, d.SubDevice = id(m[4]), id(m[5])
	}
	return nil
}

// busRange is "0000:[17-19]", the buses below a bridge.
var busRange = regexp.MustCompile(`^([0-9a-fA-F]{4,8}):\[([0-9a-fA-F]{2})-([0-9a-fA-F]{2})\]$`)

// rootOf names the root bus as the kernel does, pci0000:17.
func rootOf(s string) (string, error) {
	m := busRange.FindStringSubmatch(s)
	if m == nil {
		return "", fmt.Errorf("bridge_pci %q: want domain:[bus-bus]", probe.Excerpt(s))
	}
	domain, err := strconv.ParseUint(m[1], 16, 32)
	if err != nil || m[2] > m[3] {
		return "", fmt.Errorf("bridge_pci %q: no range of buses", probe.Excerpt(s))
	}
	return fmt.Sprintf("pci%04x:%s", domain, strings.ToLower(m[2])), nil
}

// linkOf gives the link of a rate in GB/s, if only one fits. hwloc counts 8b/10b
// for generations 1 and 2, 128b/130b up to 5 and 242 of 256 bytes for 6 (hwloc
// pci-common.c); early versions took every generation from 3 on for the third
// (topology-nvml.c of 2.1). So 15.75 may be Gen3 x16, Gen4 x8, Gen5 x4 or, early,
// any x16, and stays unknown; 63.02 is Gen5 x16. Widths of 12 and 32 lanes are
// not reckoned with: no GPU or adapter has them.
func linkOf(gbs float64) probe.PCIeLink {
	const tolerance = 2e-6 // of six printed decimals
	var found []probe.PCIeLink
	for gen := 1; gen <= 6; gen++ {
		for _, width := range []int{1, 2, 4, 8, 16} {
			if slices.ContainsFunc(laneRates(gen), func(lane float64) bool {
				return math.Abs(lane*float64(width)-gbs) <= tolerance*max(1, gbs)
			}) {
				found = append(found, probe.LinkOfGen(gen, width))
			}
		}
	}
	if len(found) != 1 {
		return probe.PCIeLink{}
	}
	return found[0]
}

// laneRates are the GB/s that hwloc may count for a lane.
func laneRates(gen int) []float64 {
	const early = 8 * 128. / 130 / 8
	switch {
	case gen <= 2:
		return []float64{float64(gen) * 2.5 * 0.8 / 8}
	case gen <= 5:
		return []float64{float64(int(1)<<(gen-3)) * early, early}
	}
	return []float64{64 * 242. / 256 / 8, early}
}

// portState gives the kernel's word for a state of an InfiniBand port
// (enum ib_port_state).
func portState(s string) (string, error) {
	words := []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n >= len(words) {
		return "", fmt.Errorf("port state %q: want 0 to %d", probe.Excerpt(s), len(words)-1)
	}
	return words[n], nil
}

// groups reads a GUID or GID; all zeros is unknown.
func groups(what, s string, count int) (string, error) {
	v, err := probe.ParseHexGroups(s, count)
	if err != nil {
		return "", fmt.Errorf("%s %q: %w", what, probe.Excerpt(s), err)
	}
	return v, nil
}

// archOf puts uname's machine into NCCL's words.
func archOf(machine string) string {
	switch machine {
	case "aarch64", "arm64":
		return "arm64"
	case "ppc64le", "ppc64":
		return "ppc64"
	}
	return machine
}

// signature is NCCL's number for a CPU family: base plus extended<<4, where the
// kernel adds the two.
func signature(family int) int {
	if family > 15 {
		return 15 + (family-15)<<4
	}
	return family
}
