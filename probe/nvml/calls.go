package nvml

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

// library is what the reader asks of NVML. Methods are named after the calls
// (nvmlSystemGetDriverVersion, nvmlDeviceGetName, …) and answer like them: a
// value that counts only with success.
type library interface {
	DriverVersion() (string, status)
	NVMLVersion() (string, status)
	// Devices returns the GPUs in the order of their NVML index.
	Devices() []device
}

// device is one GPU.
type device interface {
	Name() (string, status)
	UUID() (string, status)
	BusID() (string, status) // busId of nvmlDeviceGetPciInfo
	ComputeCapability() (major, minor int, s status)
	PerformanceState() (int, status)
	Utilization() (percent int, s status) // gpu of nvmlDeviceGetUtilizationRates
	EventReasons() (uint64, status)       // nvmlDeviceGetCurrentClocksEventReasons
	PCIe(pcieFigure) (int, status)
	PCIeReplays() (uint64, status)
	MIGMode() (current int, s status)
	ModuleID() (int, status)
	Fabric() (fabricInfo, status)
	LinkState(link int) (int, status)
	LinkVersion(link int) (int, status)
	LinkRemoteType(link int) (int, status)
	LinkRemoteBusID(link int) (string, status)
	P2P(peer int, capability int) (int, status)
}

// pcieFigure names one of the calls about the PCIe link by what follows
// nvmlDeviceGet.
type pcieFigure string

const (
	currentGeneration pcieFigure = "CurrPcieLinkGeneration"
	maxGeneration     pcieFigure = "MaxPcieLinkGeneration"
	boardGeneration   pcieFigure = "GpuMaxPcieLinkGeneration"
	currentWidth      pcieFigure = "CurrPcieLinkWidth"
	maxWidth          pcieFigure = "MaxPcieLinkWidth"
)

// fabricInfo is what nvmlDeviceGetGpuFabricInfoV answers.
type fabricInfo struct {
	state, status int
	cluster       string            // "" is unknown
	clique        probe.Opt[uint32] // these two are missing from old answers
	health        probe.Opt[uint32]
}

// status is NVML's return code, or notRecorded.
type status int

const (
	success         status = 0
	invalidArgument status = 2
	notSupported    status = 3
	notRecorded     status = -1 // the recording lacks the call; NVML has no negative codes
)

// Error names the codes that a reader of gaps should not have to look up
// (nvml.h, nvmlReturn_t).
func (s status) Error() string {
	name := "an error without a name here"
	switch s {
	case notRecorded:
		return "the call was not recorded"
	case 1:
		name = "uninitialized"
	case invalidArgument:
		name = "invalid argument"
	case notSupported:
		name = "not supported"
	case 4:
		name = "no permission"
	case 6:
		name = "not found"
	case 9:
		name = "driver not loaded"
	case 10:
		name = "timeout"
	case 13:
		name = "function not found"
	case 15:
		name = "GPU is lost"
	case 16:
		name = "reset required"
	case 18:
		name = "driver and library versions differ"
	case 999:
		name = "unknown error"
	}
	return fmt.Sprintf("NVML code %d, %s", int(s), name)
}
