package nvml

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// This file turns NVML's numbers into the inventory's words. Enumerations are
// those of nvml.h (NVIDIA/go-nvml gen/nvml/nvml.h, driver 580).

func same[T any](v T) (probe.Opt[T], error) { return probe.Some(v), nil }

func natural(n int) (probe.Opt[int], error) {
	if n < 0 {
		return probe.Opt[int]{}, fmt.Errorf("%d: negative", n)
	}
	return probe.Some(n), nil
}

func percent(n int) (probe.Opt[int], error) {
	if n < 0 || n > 100 {
		return probe.Opt[int]{}, fmt.Errorf("%d: no percentage", n)
	}
	return probe.Some(n), nil
}

// pState takes P0 to P15; 32 is NVML_PSTATE_UNKNOWN.
func pState(n int) (probe.Opt[int], error) {
	switch {
	case n == 32:
		return probe.Opt[int]{}, nil
	case n < 0 || n > 15:
		return probe.Opt[int]{}, fmt.Errorf("performance state %d: none of P0 to P15", n)
	}
	return probe.Some(n), nil
}

func capability(cc []int) (probe.Opt[int], error) {
	if cc[0] < 1 || cc[0] > 99 || cc[1] < 0 || cc[1] > 9 {
		return probe.Opt[int]{}, fmt.Errorf("compute capability %d.%d: out of range", cc[0], cc[1])
	}
	return probe.Some(cc[0]*10 + cc[1]), nil
}

func pcieSpeed(generation int) (probe.Opt[probe.PCIeSpeed], error) {
	if generation == 0 {
		return probe.Opt[probe.PCIeSpeed]{}, nil
	}
	s, ok := probe.PCIeSpeedOfGen(generation)
	if !ok {
		return probe.Opt[probe.PCIeSpeed]{}, fmt.Errorf("PCIe generation %d: unknown", generation)
	}
	return probe.Some(s), nil
}

func pcieWidth(n int) (probe.Opt[int], error) {
	switch {
	case n == 0:
		return probe.Opt[int]{}, nil
	case !slices.Contains([]int{1, 2, 4, 8, 12, 16, 32}, n):
		return probe.Opt[int]{}, fmt.Errorf("PCIe width %d: none of x1 to x32", n)
	}
	return probe.Some(n), nil
}

// migMode reads [current, pending].
func migMode(modes []int) (probe.Opt[bool], error) {
	on, err := enabled(modes[0])
	if err != nil {
		return on, fmt.Errorf("MIG mode %w", err)
	}
	return on, nil
}

// enabled reads nvmlEnableState_t.
func enabled(n int) (probe.Opt[bool], error) {
	if n != 0 && n != 1 {
		return probe.Opt[bool]{}, fmt.Errorf("%d: neither off nor on", n)
	}
	return probe.Some(n == 1), nil
}

// confidential reads the members of nvmlConfComputeSystemState_t: environment,
// ccFeature, devToolsMode.
func confidential(state []int) (probe.Opt[bool], error) { return enabled(state[1]) }

// bytesOf reads a size; 0 is no size.
func bytesOf(n uint64) (probe.Opt[int64], error) {
	switch {
	case n == 0:
		return probe.Opt[int64]{}, nil
	case n > math.MaxInt64:
		return probe.Opt[int64]{}, fmt.Errorf("%d bytes: no size of a memory", n)
	}
	return probe.Some(int64(n)), nil
}

// computeMode reads nvmlComputeMode_t.
func computeMode(n int) (probe.Opt[string], error) {
	return word("compute mode", n, []string{"default", "exclusive thread", "prohibited", "exclusive process"})
}

// recoveryAction reads nvmlDeviceGpuRecoveryAction_t.
func recoveryAction(n int) (probe.Opt[string], error) {
	return word("recovery action", n, []string{
		"none", "reset", "reboot", "drain P2P", "drain P2P and reset", "recover IMEX domain", "bus reset", "system reboot",
	})
}

func word(what string, n int, words []string) (probe.Opt[string], error) {
	if n < 0 || n >= len(words) {
		return probe.Opt[string]{}, fmt.Errorf("%s %d: unknown", what, n)
	}
	return probe.Some(words[n]), nil
}

// signal reads a link's signalling rate in MB/s; 0 is a link that does not run.
func signal(mbs uint64) (probe.Opt[probe.Rate], error) {
	switch {
	case mbs == 0:
		return probe.Opt[probe.Rate]{}, nil
	case mbs > 10_000_000:
		return probe.Opt[probe.Rate]{}, fmt.Errorf("%d MB/s: no rate of a link", mbs)
	}
	return probe.Some(probe.Rate(mbs) * 1e6), nil
}

func busID(s string) (probe.Opt[probe.BDF], error) {
	b, err := probe.ParseBDF(s)
	if err != nil {
		return probe.Opt[probe.BDF]{}, err
	}
	return probe.Some(b), nil
}

// remoteBusID reads the address at the other end of a link. A hypervisor that
// hides it answers FFFFFFFF:FF:FF.0, in the older field FFFFFFF:FF:FF.0. Address
// zero is a host bridge and never the end of an NVLink, so it says no more.
func remoteBusID(s string) (probe.Opt[probe.BDF], error) {
	if s == "" || strings.HasPrefix(strings.ToUpper(s), "FFFFFFF") {
		return probe.Opt[probe.BDF]{}, nil
	}
	at, err := busID(s)
	if at == probe.Some(probe.BDF{}) {
		return probe.Opt[probe.BDF]{}, nil
	}
	return at, err
}

// linkState reads nvmlEnableState_t; 2 is a link that sleeps to save power
// (NVML_NVLINK_STATE_SLEEP) and wakes for traffic.
func linkState(n int) (string, error) {
	switch n {
	case 0:
		return probe.LinkDown, nil
	case 1, 2:
		return probe.LinkUp, nil
	}
	return "", fmt.Errorf("NVLink state %d: neither down nor up", n)
}

// linkGeneration reads NVML_NVLINK_VERSION_*, which count versions, not
// generations: 1=1.0, 2=2.0, 3=2.2, 4=3.0, 5=3.1, 6=4.0, 7=5.0, 8=6.0.
func linkGeneration(version int) (probe.Opt[int], error) {
	generations := []int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6}
	switch {
	case version == 0: // NVML_NVLINK_VERSION_INVALID
		return probe.Opt[int]{}, nil
	case version < 0 || version >= len(generations):
		return probe.Opt[int]{}, fmt.Errorf("NVLink version %d: newer than this program", version)
	}
	return probe.Some(generations[version]), nil
}

// remoteKind reads NVML_NVLINK_DEVICE_TYPE_*: GPU, IBM NPU (the CPU's side of a
// POWER9), switch, unknown.
func remoteKind(n int) (probe.Opt[string], error) {
	switch n {
	case 0:
		return probe.Some(probe.RemoteGPU), nil
	case 1:
		return probe.Some(probe.RemoteCPU), nil
	case 2:
		return probe.Some(probe.RemoteSwitch), nil
	case 255:
		return probe.Opt[string]{}, nil
	}
	return probe.Opt[string]{}, fmt.Errorf("NVLink remote device type %d: unknown", n)
}

// fabricNotSupported is NVML_GPU_FABRIC_STATE_NOT_SUPPORTED.
const fabricNotSupported = 0

// fabricState reads NVML_GPU_FABRIC_STATE_*.
func fabricState(n int) (probe.Opt[string], error) {
	return word("fabric state", n, []string{fabricNotSupported: "not supported", 1: "not started", 2: "in progress", 3: "completed"})
}

// fabricHealth reads NVML_GPU_FABRIC_HEALTH_SUMMARY_*; 0 is not supported.
func fabricHealth(n int) (probe.Opt[string], error) {
	return word("fabric health", n, []string{"", "healthy", "unhealthy", "limited capacity"})
}

// linkCaps is the number of NVML_NVLINK_CAP_*, whose places are the bits of
// probe.NVLink.Caps.
const linkCaps = 6

// p2pCapabilities names NVML_P2P_CAPS_INDEX_* by place; the last one was called
// PROP before it was called PCI.
func p2pCapabilities() []string { return []string{"read", "write", "nvlink", "atomics", "pci"} }

// p2pStatus reads NVML_P2P_STATUS_*.
func p2pStatus(n int) (probe.Opt[string], error) {
	reasons := []string{
		"ok", "chipset not supported", "GPU not supported", "IOH topology not supported",
		"disabled by registry key", "not supported",
	}
	switch {
	case n == 6: // NVML_P2P_STATUS_UNKNOWN
		return probe.Opt[string]{}, nil
	case n < 0 || n >= len(reasons):
		return probe.Opt[string]{}, errors.New("P2P status out of range")
	}
	return probe.Some(reasons[n]), nil
}
