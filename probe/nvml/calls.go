package nvml

import (
	"fmt"

	"github.com/ncclmap/ncclmap/probe"
)

// library is what the reader asks of NVML. The driver, a recording, and what
// stands between them and the reader (deadlines, the recorder) are libraries.
type library interface {
	asker
	// open returns the GPU of an NVML index (nvmlDeviceGetHandleByIndex).
	open(index int) (device, status)
}

// device is one GPU.
type device interface {
	asker
	// fields makes one nvmlDeviceGetFieldValues; the answers stand in the order
	// of the questions.
	fields([]field) []fieldAnswer
	// inTurn runs f, which asks this GPU, when it is the GPU's turn.
	inTurn(f func())
}

type asker interface {
	// ask makes one call. The value counts only with success, and has the type
	// of the call's entry below.
	ask(question) (any, status)
}

// question is one call: the NVML function and its arguments after the device.
type question struct {
	function string
	a, b     int // 0 where the function takes none
}

// field is one question of nvmlDeviceGetFieldValues.
type field struct {
	id    int // NVML_FI_DEV_*
	scope int // the link for a field about NVLinks, else 0
}

type fieldAnswer struct {
	value uint64
	s     status
}

// call is one NVML function that is asked, with the type of its answer.
type call[T any] struct {
	function string
	what     string // in gaps
	shape    shape[T]
	key      string // in a recording; "" is the function's name
	since    int    // form of recording that first held it; 0 is the first
}

// anyCall is a call without the type of its answer, for lists of calls.
type anyCall interface {
	name() string
	place() string
	form() int
	parse(*value) (v any, want string)
	write(v any) any
}

func (c call[T]) name() string { return c.function }
func (c call[T]) form() int    { return max(c.since, 1) }

func (c call[T]) place() string {
	if c.key != "" {
		return c.key
	}
	return c.function
}

func (c call[T]) parse(v *value) (any, string) { return c.shape.read(v) }

func (c call[T]) write(v any) any {
	t, ok := v.(T)
	if !ok {
		return failure(unknownError)
	}
	return c.shape.write(t)
}

// answerOf makes a call.
func answerOf[T any](from asker, c call[T], args ...int) (T, status) {
	q := question{function: c.function}
	for i, p := range []*int{&q.a, &q.b} {
		if i < len(args) {
			*p = args[i]
		}
	}
	v, s := from.ask(q)
	t, ok := v.(T)
	if s == success && !ok {
		s = unknownError
	}
	return t, s
}

// The calls. Nothing here changes a state of the machine.
var (
	driverVersion = call[string]{function: "nvmlSystemGetDriverVersion", key: "driver", what: "driver version", shape: line}
	nvmlVersion   = call[string]{function: "nvmlSystemGetNVMLVersion", key: "nvml", what: "NVML version", shape: line}
	deviceCount   = call[int]{function: "nvmlDeviceGetCount", what: "GPU count", shape: whole, since: 2}
	// environment, ccFeature, devToolsMode
	confCompute = call[[]int]{function: "nvmlSystemGetConfComputeState", what: "confidential computing", shape: numbers(3), since: 2}

	busAddress   = call[string]{function: "nvmlDeviceGetPciInfo", what: "PCI address", shape: busMember}
	uuid         = call[string]{function: "nvmlDeviceGetUUID", what: "UUID", shape: line}
	persistence  = call[int]{function: "nvmlDeviceGetPersistenceMode", what: "persistence mode", shape: whole, since: 2}
	productName  = call[string]{function: "nvmlDeviceGetName", key: "name", what: "name", shape: line}
	computeCap   = call[[]int]{function: "nvmlDeviceGetCudaComputeCapability", what: "compute capability", shape: numbers(2)}
	performance  = call[int]{function: "nvmlDeviceGetPerformanceState", what: "performance state", shape: whole}
	utilization  = call[int]{function: "nvmlDeviceGetUtilizationRates", what: "utilization", shape: gpuShare}
	eventReasons = call[uint64]{function: "nvmlDeviceGetCurrentClocksEventReasons", what: "clocks event reasons", shape: counter}
	// the name before driver 535
	throttleReasons   = call[uint64]{function: "nvmlDeviceGetCurrentClocksThrottleReasons", what: "clocks event reasons", shape: counter}
	currentGeneration = call[int]{function: "nvmlDeviceGetCurrPcieLinkGeneration", what: "CurrPcieLinkGeneration", shape: whole}
	maxGeneration     = call[int]{function: "nvmlDeviceGetMaxPcieLinkGeneration", what: "MaxPcieLinkGeneration", shape: whole}
	boardGeneration   = call[int]{function: "nvmlDeviceGetGpuMaxPcieLinkGeneration", what: "GpuMaxPcieLinkGeneration", shape: whole}
	currentWidth      = call[int]{function: "nvmlDeviceGetCurrPcieLinkWidth", what: "CurrPcieLinkWidth", shape: whole}
	maxWidth          = call[int]{function: "nvmlDeviceGetMaxPcieLinkWidth", what: "MaxPcieLinkWidth", shape: whole}
	pcieReplays       = call[uint64]{function: "nvmlDeviceGetPcieReplayCounter", what: "PCIe replay counter", shape: counter}
	migModes          = call[[]int]{function: "nvmlDeviceGetMigMode", what: "MIG mode", shape: numbers(2)} // current, pending
	moduleID          = call[int]{function: "nvmlDeviceGetModuleId", what: "module id", shape: whole}
	computeModeOf     = call[int]{function: "nvmlDeviceGetComputeMode", what: "compute mode", shape: whole, since: 2}
	bar1              = call[uint64]{function: "nvmlDeviceGetBAR1MemoryInfo", what: "BAR1 size", shape: bar1Total, since: 2}
	eccModes          = call[[]int]{function: "nvmlDeviceGetEccMode", what: "ECC mode", shape: numbers(2), since: 2} // current, pending
	// corrected, uncorrected, pending, failure
	remappedRows = call[[]int]{function: "nvmlDeviceGetRemappedRows", what: "remapped rows", shape: numbers(4), since: 2}
	fabricV      = call[fabricInfo]{function: "nvmlDeviceGetGpuFabricInfoV", what: "fabric state", shape: fabricObject, since: 2}
	// how recordings of the first form hold the answer of fabricV
	fabricList = call[fabricInfo]{function: "fabric_state", what: "fabric state", shape: fabricMembers}

	// with the link's number
	linkStateOf  = call[int]{function: "nvmlDeviceGetNvLinkState", what: "state", shape: whole}
	linkVersion  = call[int]{function: "nvmlDeviceGetNvLinkVersion", what: "NVLink version", shape: whole}
	linkRemote   = call[int]{function: "nvmlDeviceGetNvLinkRemoteDeviceType", what: "NVLink remote device type", shape: whole}
	linkRemoteAt = call[string]{function: "nvmlDeviceGetNvLinkRemotePciInfo", what: "NVLink remote PCI address", shape: busMember}
	// with the link's number and NVML_NVLINK_CAP_*
	linkCapability = call[int]{function: "nvmlDeviceGetNvLinkCapability", what: "NVLink capabilities", shape: whole, since: 2}
	// with the link's number and NVML_NVLINK_ERROR_DL_*
	linkErrors = call[uint64]{function: "nvmlDeviceGetNvLinkErrorCounter", what: "NVLink error counter", shape: counter, since: 2}

	// with the other GPU's index and NVML_P2P_CAPS_INDEX_*
	p2pStatusOf = call[int]{function: "nvmlDeviceGetP2PStatus", key: "p2p", what: "P2P status", shape: whole}
	// with NVML_MEMORY_ERROR_TYPE_* and NVML_VOLATILE_ECC or NVML_AGGREGATE_ECC
	eccErrors = call[uint64]{function: "nvmlDeviceGetTotalEccErrors", what: "ECC errors", shape: counter, since: 2}
)

// Names of the functions that are no call of the lists below.
const (
	openFunction   = "nvmlDeviceGetHandleByIndex"
	fieldsFunction = "nvmlDeviceGetFieldValues"
)

// systemCalls, gpuCalls, linkCalls, linkPairCalls and pairCalls list the calls
// by what they are asked with: nothing; a GPU; a GPU and a link; a GPU, a link
// and a number; a GPU and two numbers.
func systemCalls() []anyCall {
	return []anyCall{driverVersion, nvmlVersion, confCompute, deviceCount}
}

func gpuCalls() []anyCall {
	return []anyCall{
		busAddress, uuid, persistence, productName, computeCap, performance, utilization,
		eventReasons, throttleReasons, currentGeneration, maxGeneration, boardGeneration,
		currentWidth, maxWidth, pcieReplays, migModes, moduleID, computeModeOf, bar1,
		eccModes, remappedRows, fabricV, fabricList,
	}
}

func linkCalls() []anyCall {
	return []anyCall{linkStateOf, linkVersion, linkRemote, linkRemoteAt}
}

func linkPairCalls() []anyCall { return []anyCall{linkCapability, linkErrors} }

func pairCalls() []anyCall { return []anyCall{p2pStatusOf, eccErrors} }

// fabricInfo is what nvmlDeviceGetGpuFabricInfoV answers.
type fabricInfo struct {
	state, status int
	cluster       string            // "" is unknown
	clique        probe.Opt[uint32] // these are missing from old answers
	health        probe.Opt[uint32]
	summary       probe.Opt[int]
}

// status is NVML's return code, or one of ours, which are negative.
type status int

const (
	success          status = 0
	invalidArgument  status = 2
	notSupported     status = 3
	noPermission     status = 4
	driverNotLoaded  status = 9
	timedOut         status = 10
	libraryNotFound  status = 12
	functionNotFound status = 13
	gpuLost          status = 15
	operatingSystem  status = 17
	versionsDiffer   status = 18 // driver and library
	argumentVersion  status = 25 // a struct newer than the library
	deprecated       status = 26
	unknownError     status = 999

	notRecorded status = -1 // the recording lacks the call
	noAnswer    status = -2 // the call did not return in time
	notAsked    status = -3 // the recording is of a form that has no place for the call
)

// ends reports a status after which the GPU has nothing more to say.
func (s status) ends() bool { return s == gpuLost || s == timedOut || s == noAnswer }

func (s status) Error() string {
	if s < 0 {
		return s.name()
	}
	return fmt.Sprintf("NVML code %d, %s", int(s), s.name())
}

// name puts a code into words that a reader of gaps should not have to look up
// (nvml.h, nvmlReturn_t).
func (s status) name() string {
	name := "an error without a name here"
	switch s {
	case success:
		name = "success"
	case notRecorded, notAsked:
		name = "the call was not recorded"
	case noAnswer:
		name = "no answer in time"
	case 1:
		name = "uninitialized"
	case invalidArgument:
		name = "invalid argument"
	case notSupported:
		name = "not supported"
	case noPermission:
		name = "no permission"
	case 6:
		name = "not found"
	case 7:
		name = "insufficient size"
	case 8:
		name = "external power cables not attached"
	case driverNotLoaded:
		name = "driver not loaded"
	case timedOut:
		name = "timeout"
	case 11:
		name = "interrupt trouble"
	case libraryNotFound:
		name = "library not found"
	case functionNotFound:
		name = "function not found"
	case 14:
		name = "infoROM is corrupted"
	case gpuLost:
		name = "GPU is lost"
	case 16:
		name = "reset required"
	case operatingSystem:
		name = "blocked by the operating system"
	case versionsDiffer:
		name = "driver and library versions differ"
	case 19:
		name = "in use"
	case 20:
		name = "out of memory"
	case 21:
		name = "no data"
	case argumentVersion:
		name = "argument version not known"
	case deprecated:
		name = "deprecated"
	case 27:
		name = "not ready"
	case 28:
		name = "no GPU found"
	case 29:
		name = "invalid state"
	case unknownError:
		name = "unknown error"
	}
	return name
}
