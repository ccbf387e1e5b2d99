//go:build cgo

package nvml

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/ncclmap/ncclmap/probe"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// driver is NVML itself, loaded when it is opened: the program starts without.
type driver struct {
	system map[string]systemCall
	gpu    map[string]gpuCall
	lacks  map[string]bool // functions that the library does not have
	oldest bool            // it has the fabric's state in its first version only

	mu   sync.Mutex // GPUs are opened side by side
	gpus map[int]gonvml.Device
}

type (
	systemCall func() (any, status)
	gpuCall    func(g *driverGPU, q question) (any, status)
)

func openDriver() (session, *Unavailable) {
	if ret := gonvml.Init(); ret != gonvml.SUCCESS {
		return nil, unavailable(status(ret))
	}
	d := &driver{system: systemTable(), gpu: gpuTable(), lacks: map[string]bool{}, gpus: map[int]gonvml.Device{}}
	// A call that the loaded library does not have would end the process, so
	// each is looked up before it is made.
	names := []string{fieldsFunction, fabricV1Function, fabricV.function}
	for name := range d.system {
		names = append(names, name)
	}
	for name := range d.gpu {
		names = append(names, name)
	}
	for _, name := range names {
		d.lacks[name] = gonvml.Extensions().LookupSymbol(name) != nil
	}
	d.oldest = d.lacks[fabricV.function]
	d.lacks[fabricV.function] = d.oldest && d.lacks[fabricV1Function]
	return d, nil
}

// fabricV1Function is the fabric's state without versions.
const fabricV1Function = "nvmlDeviceGetGpuFabricInfo"

func (d *driver) close() { gonvml.Shutdown() }

func (d *driver) ask(q question) (any, status) {
	call := d.system[q.function]
	if call == nil || d.lacks[q.function] {
		return nil, functionNotFound
	}
	return call()
}

func (d *driver) open(i int) (device, status) {
	dev, ret := gonvml.DeviceGetHandleByIndex(i)
	if ret != gonvml.SUCCESS {
		return nil, status(ret)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gpus[i] = dev
	return &driverGPU{driver: d, dev: dev}, success
}

// driverGPU is one GPU of the driver.
type driverGPU struct {
	*driver
	dev gonvml.Device
}

func (g *driverGPU) ask(q question) (any, status) {
	call := g.gpu[q.function]
	if call == nil || g.lacks[q.function] {
		return nil, functionNotFound
	}
	return call(g, q)
}

func (g *driverGPU) inTurn(f func()) { f() }

// fields asks for all fields in one call of the library.
func (g *driverGPU) fields(ids []field) []fieldAnswer {
	out := make([]fieldAnswer, len(ids))
	values := make([]gonvml.FieldValue, len(ids))
	for i, id := range ids {
		values[i].FieldId, values[i].ScopeId = uint32(id.id), uint32(id.scope)
	}
	s := functionNotFound
	if !g.lacks[fieldsFunction] {
		s = status(g.dev.GetFieldValues(values))
	}
	for i, v := range values {
		switch {
		case s != success:
			out[i].s = s
		case v.NvmlReturn != uint32(gonvml.SUCCESS):
			out[i].s = status(v.NvmlReturn)
		default:
			out[i] = fieldNumber(v)
		}
	}
	return out
}

// fieldNumber reads the value of a field that counts something.
func fieldNumber(v gonvml.FieldValue) fieldAnswer {
	word := binary.NativeEndian.Uint64(v.Value[:])
	signed := int64(0)
	switch gonvml.ValueType(v.ValueType) {
	case gonvml.VALUE_TYPE_UNSIGNED_INT:
		return fieldAnswer{value: uint64(binary.NativeEndian.Uint32(v.Value[:]))}
	case gonvml.VALUE_TYPE_UNSIGNED_SHORT:
		return fieldAnswer{value: uint64(binary.NativeEndian.Uint16(v.Value[:]))}
	case gonvml.VALUE_TYPE_UNSIGNED_LONG, gonvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return fieldAnswer{value: word}
	case gonvml.VALUE_TYPE_SIGNED_LONG_LONG:
		signed = int64(word)
	case gonvml.VALUE_TYPE_SIGNED_INT:
		signed = int64(int32(binary.NativeEndian.Uint32(v.Value[:])))
	case gonvml.VALUE_TYPE_DOUBLE:
		f := math.Float64frombits(word)
		if signed = int64(f); float64(signed) != f {
			signed = -1
		}
	default:
		signed = -1
	}
	if signed < 0 {
		return fieldAnswer{s: unknownError} // no count
	}
	return fieldAnswer{value: uint64(signed)}
}

// systemTable and gpuTable make the calls of calls.go. Their keys are names of
// functions in the library.
func systemTable() map[string]systemCall {
	return map[string]systemCall{
		driverVersion.function: func() (any, status) { return text(gonvml.SystemGetDriverVersion()) },
		nvmlVersion.function:   func() (any, status) { return text(gonvml.SystemGetNVMLVersion()) },
		deviceCount.function:   func() (any, status) { return integer(gonvml.DeviceGetCount()) },
		confCompute.function: func() (any, status) {
			s, ret := gonvml.SystemGetConfComputeState()
			return []int{int(s.Environment), int(s.CcFeature), int(s.DevToolsMode)}, status(ret)
		},
	}
}

func gpuTable() map[string]gpuCall {
	return map[string]gpuCall{
		busAddress.function: func(g *driverGPU, _ question) (any, status) {
			pci, ret := g.dev.GetPciInfo()
			return text(chars(pci.BusId[:]), ret)
		},
		uuid.function:        func(g *driverGPU, _ question) (any, status) { return text(g.dev.GetUUID()) },
		persistence.function: func(g *driverGPU, _ question) (any, status) { return integer(g.dev.GetPersistenceMode()) },
		productName.function: func(g *driverGPU, _ question) (any, status) { return text(g.dev.GetName()) },
		computeCap.function: func(g *driverGPU, _ question) (any, status) {
			major, minor, ret := g.dev.GetCudaComputeCapability()
			return []int{major, minor}, status(ret)
		},
		performance.function: func(g *driverGPU, _ question) (any, status) { return integer(g.dev.GetPerformanceState()) },
		utilization.function: func(g *driverGPU, _ question) (any, status) {
			u, ret := g.dev.GetUtilizationRates()
			return integer(u.Gpu, ret)
		},
		eventReasons.function: func(g *driverGPU, _ question) (any, status) {
			return total(g.dev.GetCurrentClocksEventReasons())
		},
		throttleReasons.function: func(g *driverGPU, _ question) (any, status) {
			return total(g.dev.GetCurrentClocksThrottleReasons())
		},
		currentGeneration.function: func(g *driverGPU, _ question) (any, status) {
			return integer(g.dev.GetCurrPcieLinkGeneration())
		},
		maxGeneration.function: func(g *driverGPU, _ question) (any, status) {
			return integer(g.dev.GetMaxPcieLinkGeneration())
		},
		boardGeneration.function: func(g *driverGPU, _ question) (any, status) {
			return integer(g.dev.GetGpuMaxPcieLinkGeneration())
		},
		currentWidth.function: func(g *driverGPU, _ question) (any, status) { return integer(g.dev.GetCurrPcieLinkWidth()) },
		maxWidth.function:     func(g *driverGPU, _ question) (any, status) { return integer(g.dev.GetMaxPcieLinkWidth()) },
		pcieReplays.function:  func(g *driverGPU, _ question) (any, status) { return total(g.dev.GetPcieReplayCounter()) },
		migModes.function: func(g *driverGPU, _ question) (any, status) {
			current, pending, ret := g.dev.GetMigMode()
			return []int{current, pending}, status(ret)
		},
		moduleID.function:      func(g *driverGPU, _ question) (any, status) { return integer(g.dev.GetModuleId()) },
		computeModeOf.function: func(g *driverGPU, _ question) (any, status) { return integer(g.dev.GetComputeMode()) },
		bar1.function: func(g *driverGPU, _ question) (any, status) {
			m, ret := g.dev.GetBAR1MemoryInfo()
			return m.Bar1Total, status(ret)
		},
		eccModes.function: func(g *driverGPU, _ question) (any, status) {
			current, pending, ret := g.dev.GetEccMode()
			return []int{int(current), int(pending)}, status(ret)
		},
		eccErrors.function: func(g *driverGPU, q question) (any, status) {
			return total(g.dev.GetTotalEccErrors(gonvml.MemoryErrorType(q.a), gonvml.EccCounterType(q.b)))
		},
		remappedRows.function: func(g *driverGPU, _ question) (any, status) {
			corrected, uncorrected, pending, failure, ret := g.dev.GetRemappedRows()
			return []int{corrected, uncorrected, bit(pending), bit(failure)}, status(ret)
		},
		fabricV.function: (*driverGPU).fabric,
		linkStateOf.function: func(g *driverGPU, q question) (any, status) {
			return integer(g.dev.GetNvLinkState(q.a))
		},
		linkVersion.function: func(g *driverGPU, q question) (any, status) {
			return integer(g.dev.GetNvLinkVersion(q.a))
		},
		linkRemote.function: func(g *driverGPU, q question) (any, status) {
			return integer(g.dev.GetNvLinkRemoteDeviceType(q.a))
		},
		linkRemoteAt.function: func(g *driverGPU, q question) (any, status) {
			pci, ret := g.dev.GetNvLinkRemotePciInfo(q.a)
			return text(chars(pci.BusId[:]), ret)
		},
		linkCapability.function: func(g *driverGPU, q question) (any, status) {
			return integer(g.dev.GetNvLinkCapability(q.a, gonvml.NvLinkCapability(q.b)))
		},
		linkErrors.function: func(g *driverGPU, q question) (any, status) {
			return total(g.dev.GetNvLinkErrorCounter(q.a, gonvml.NvLinkErrorCounter(q.b)))
		},
		p2pStatusOf.function: func(g *driverGPU, q question) (any, status) {
			g.mu.Lock()
			peer, ok := g.gpus[q.a]
			g.mu.Unlock()
			if !ok {
				return nil, invalidArgument
			}
			return integer(g.dev.GetP2PStatus(peer, gonvml.GpuP2PCapsIndex(q.b)))
		},
	}
}

// fabric asks with the newest struct that the library takes.
func (g *driverGPU) fabric(question) (any, status) {
	h := g.dev.GetGpuFabricInfoV()
	if !g.oldest {
		if f, ret := h.V3(); ret != gonvml.ERROR_ARGUMENT_VERSION_MISMATCH {
			return newFabricInfo(f.State, f.Status, f.CliqueId, f.ClusterUuid, &f.HealthMask, &f.HealthSummary), status(ret)
		}
		f, ret := h.V2()
		return newFabricInfo(f.State, f.Status, f.CliqueId, f.ClusterUuid, &f.HealthMask, nil), status(ret)
	}
	f, ret := h.V1()
	return newFabricInfo(f.State, f.Status, f.CliqueId, f.ClusterUuid, nil, nil), status(ret)
}

func newFabricInfo(state uint8, code, clique uint32, cluster [16]uint8, health *uint32, summary *uint8) fabricInfo {
	f := fabricInfo{state: int(state), status: int(code), clique: probe.Some(clique)}
	if cluster != [16]uint8{} {
		f.cluster = fmt.Sprintf("%x-%x-%x-%x-%x", cluster[:4], cluster[4:6], cluster[6:8], cluster[8:10], cluster[10:])
	}
	if health != nil {
		f.health = probe.Some(*health)
	}
	if summary != nil {
		f.summary = probe.Some(int(*summary))
	}
	return f
}

// The types of NVML become those of calls.go.

func integer[T ~int | ~int32 | ~uint32](n T, ret gonvml.Return) (any, status) {
	return int(n), status(ret)
}

func total[T ~int | ~uint64](n T, ret gonvml.Return) (any, status) { return uint64(n), status(ret) }

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// text keeps what can stand in a recording and an inventory.
func text(s string, ret gonvml.Return) (any, status) {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "")
	}
	return s, status(ret)
}

// chars reads a C string.
func chars(c []int8) string {
	var b strings.Builder
	for _, x := range c {
		if x == 0 {
			break
		}
		b.WriteByte(byte(x))
	}
	return b.String()
}
