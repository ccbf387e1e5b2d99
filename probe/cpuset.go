package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CPUSet is a set of logical CPUs in the kernel's list form, "0-31,64-95",
// ascending and without overlaps. The empty set is "".
type CPUSet string

// maxCPU bounds what is believed; Linux' own NR_CPUS limit is 8192.
const maxCPU = 1 << 16

// ParseCPUList reads the kernel's list form.
func ParseCPUList(s string) (CPUSet, error) {
	var cpus []int
	for _, part := range strings.Split(strings.TrimSpace(s), ",") {
		if part == "" {
			continue
		}
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(hi)
		}
		if err != nil || first < 0 || last < first || last >= maxCPU {
			return "", fmt.Errorf("CPU list %q: %q is not a CPU or range below %d", clip(s), clip(part), maxCPU)
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpuSetOf(cpus), nil
}

// ParseCPUMask reads the hexadecimal mask of sysfs' cpumap and of NCCL's
// affinity attribute: groups of 32 bits, most significant first.
func ParseCPUMask(s string) (CPUSet, error) {
	var cpus []int
	groups := strings.Split(strings.TrimSpace(s), ",")
	if len(groups)*32 > maxCPU {
		return "", fmt.Errorf("CPU mask: more than %d CPUs", maxCPU)
	}
	for i, g := range groups {
		v, err := ParseHex(g, 32)
		if err != nil {
			return "", fmt.Errorf("CPU mask %q: %w", clip(s), err)
		}
		for bit := range 32 {
			if v>>bit&1 == 1 {
				cpus = append(cpus, (len(groups)-1-i)*32+bit)
			}
		}
	}
	return cpuSetOf(cpus), nil
}

func cpuSetOf(cpus []int) CPUSet {
	slices.Sort(cpus)
	cpus = slices.Compact(cpus)
	var out []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(cpus[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return CPUSet(strings.Join(out, ","))
}

// CPUs lists the members in ascending order.
func (s CPUSet) CPUs() []int {
	var out []int
	for part := range strings.SplitSeq(string(s), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			last, _ = strconv.Atoi(hi)
		}
		for c := first; c <= last && c < maxCPU; c++ {
			out = append(out, c)
		}
	}
	return out
}

// Mask prints the set as sysfs' cpumap does, the inverse of ParseCPUMask.
func (s CPUSet) Mask() string {
	cpus := s.CPUs()
	if len(cpus) == 0 {
		return "0"
	}
	groups := make([]uint32, cpus[len(cpus)-1]/32+1)
	for _, c := range cpus {
		groups[c/32] |= 1 << (c % 32)
	}
	out := make([]string, len(groups))
	for i, g := range groups {
		out[len(groups)-1-i] = fmt.Sprintf("%08x", g)
	}
	return strings.Join(out, ",")
}
