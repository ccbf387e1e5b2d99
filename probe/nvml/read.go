package nvml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	// maxLinks is NVML_NVLINK_MAX_LINKS of current headers; 18 before NVLink 6.
	maxLinks = 36
	maxGPUs  = 1024 // what an inventory holds
)

// read asks a library everything that the inventory has a place for. where is
// the prefix of the origins, "" or a file name and a colon.
func read(lib library, where string) *probe.Inventory {
	r := reader{inv: &probe.Inventory{Schema: probe.Schema}, where: where}
	rt := &r.inv.Runtime
	rt.Driver = ask(&r, "driver version", "", answer(lib.DriverVersion()))
	rt.NVML = ask(&r, "NVML version", "", answer(lib.NVMLVersion()))
	if rt.Driver != "" || rt.NVML != "" {
		rt.Origins = []probe.Origin{r.origin("")}
	}
	devices := lib.Devices()
	for i, d := range devices {
		r.inv.GPUs = append(r.inv.GPUs, r.gpu(i, d, len(devices)))
	}
	if len(r.missing) > 0 {
		slices.Sort(r.missing)
		r.inv.Gaps = append(r.inv.Gaps, probe.Gap{
			What:   "GPU facts",
			Why:    "not recorded: " + strings.Join(slices.Compact(r.missing), ", "),
			How:    "record these calls too",
			Origin: r.origin(""),
		})
	}
	r.inv.Normalize()
	return r.inv
}

type reader struct {
	inv     *probe.Inventory
	where   string
	missing []string // calls that the recording lacks
}

func (r *reader) origin(object string) probe.Origin {
	at := r.where + object
	if object == "" {
		at = strings.TrimSuffix(at, ":")
	}
	return probe.Origin{Source: probe.SourceNVML, Where: at}
}

func (r *reader) gap(what, object string, err error) {
	if object != "" {
		what = object + " " + what
	}
	r.inv.Gaps = append(r.inv.Gaps, probe.Gap{What: what, Why: err.Error(), Origin: r.origin(object)})
}

// result is the answer of one call.
type result[T any] struct {
	value T
	s     status
}

func answer[T any](v T, s status) result[T] { return result[T]{v, s} }

// known returns the value of a call that succeeded. What the GPU or driver does
// not support is unknown and no gap; calls that a recording lacks are gathered
// into one gap.
func (a result[T]) known(r *reader, what, object string) (T, bool) {
	switch a.s {
	case success:
		return a.value, true
	case notSupported:
	case notRecorded:
		r.missing = append(r.missing, what)
	default:
		r.gap(what, object, a.s)
	}
	var zero T
	return zero, false
}

// ask returns the answer's value, or the zero value where that means unknown.
func ask[T any](r *reader, what, object string, a result[T]) T {
	v, _ := a.known(r, what, object)
	return v
}

// askOpt returns the answer as a fact, if valid takes it.
func askOpt[T, U any](r *reader, what, object string, a result[T], valid func(T) (probe.Opt[U], error)) probe.Opt[U] {
	v, ok := a.known(r, what, object)
	if !ok {
		return probe.Opt[U]{}
	}
	out, err := valid(v)
	if err != nil {
		r.gap(what, object, err)
	}
	return out
}

func (r *reader) gpu(index int, d device, count int) probe.GPU {
	object := fmt.Sprintf("gpu %d", index)
	g := probe.GPU{
		Index:       probe.Some(index),
		UUID:        ask(r, "UUID", object, answer(d.UUID())),
		Addr:        askOpt(r, "PCI address", object, answer(d.BusID()), busID),
		Name:        ask(r, "name", object, answer(d.Name())),
		PState:      askOpt(r, "performance state", object, answer(d.PerformanceState()), pState),
		Utilization: askOpt(r, "utilization", object, answer(d.Utilization()), percent),
		Events:      askOpt(r, "clocks event reasons", object, answer(d.EventReasons()), same),
		Replays:     askOpt(r, "PCIe replay counter", object, answer(d.PCIeReplays()), same),
		ModuleID:    askOpt(r, "module id", object, answer(d.ModuleID()), natural),
		Origins:     []probe.Origin{r.origin(object)},
	}
	major, minor, s := d.ComputeCapability()
	g.CC = askOpt(r, "compute capability", object, answer([2]int{major, minor}, s), capability)
	pcie := func(generation, width pcieFigure) (l probe.PCIeLink) {
		if generation != "" {
			l.Speed = askOpt(r, string(generation), object, answer(d.PCIe(generation)), pcieSpeed)
		}
		if width != "" {
			l.Width = askOpt(r, string(width), object, answer(d.PCIe(width)), pcieWidth)
		}
		return l
	}
	g.Current = pcie(currentGeneration, currentWidth)
	g.Max = pcie(maxGeneration, maxWidth)
	// NVML has no width of the board alone.
	g.BoardMax = pcie(boardGeneration, "")
	if m := answer(d.MIGMode()); m.s == notSupported {
		// A GPU without MIG cannot have it switched on.
		g.MIG = probe.Some(false)
	} else {
		g.MIG = askOpt(r, "MIG mode", object, m, migMode)
	}
	if f, ok := answer(d.Fabric()).known(r, "fabric state", object); ok {
		g.Fabric = r.fabric(object, f)
	}
	g.NVLinks = r.links(object, d)
	g.Peers = r.peers(index, object, d, count)
	return g
}

// links walks a GPU's NVLinks. NVML has no count for them: the first link that
// is not supported, or no valid argument, is the end, and on link 0 "not
// supported" says that the GPU has none. A state that could not be read would
// make the list look shorter than it is, so then the whole list is unknown.
func (r *reader) links(object string, d device) probe.Opt[[]probe.NVLink] {
	links := []probe.NVLink{}
	for i := range maxLinks {
		at := fmt.Sprintf("%s nvlink %d", object, i)
		state, s := d.LinkState(i)
		if s == notSupported || s == invalidArgument && i > 0 {
			break
		}
		if s == notRecorded && i == 0 {
			r.missing = append(r.missing, "NVLink state")
			return probe.Opt[[]probe.NVLink]{}
		}
		if s != success {
			r.gap("state", at, fmt.Errorf("%w; so the GPU's links are unknown", s))
			return probe.Opt[[]probe.NVLink]{}
		}
		l := probe.NVLink{Link: i}
		var err error
		if l.State, err = linkState(state); err != nil {
			r.gap("state", at, fmt.Errorf("%w; so the GPU's links are unknown", err))
			return probe.Opt[[]probe.NVLink]{}
		}
		l.Generation = askOpt(r, "NVLink version", at, answer(d.LinkVersion(i)), linkGeneration)
		l.RemoteKind = askOpt(r, "NVLink remote device type", at, answer(d.LinkRemoteType(i)), remoteKind).Or("")
		l.Remote = askOpt(r, "NVLink remote PCI address", at, answer(d.LinkRemoteBusID(i)), remoteBusID)
		links = append(links, l)
	}
	return probe.Some(links)
}

// peers reads the driver's P2P status towards every other GPU.
func (r *reader) peers(index int, object string, d device, count int) []probe.PeerAccess {
	var out []probe.PeerAccess
	for peer := range count {
		if peer == index {
			continue
		}
		for c, name := range p2pCapabilities() {
			what := fmt.Sprintf("P2P %s towards gpu %d", name, peer)
			a := answer(d.P2P(peer, c))
			if a.s == notRecorded {
				what = "P2P status"
			}
			if status := askOpt(r, what, object, a, p2pStatus).Or(""); status != "" {
				out = append(out, probe.PeerAccess{GPU: peer, Capability: name, Status: status})
			}
		}
	}
	return out
}

func (r *reader) fabric(object string, f fabricInfo) *probe.Fabric {
	state, err := fabricState(f.state)
	if err != nil {
		r.gap("fabric state", object, err)
		return nil
	}
	if f.state == fabricNotSupported {
		// The other members say nothing then.
		return &probe.Fabric{State: state}
	}
	return &probe.Fabric{
		State: state, Status: probe.Some(f.status), ClusterUUID: f.cluster,
		CliqueID: f.clique, HealthMask: f.health,
	}
}

// The rest turns NVML's numbers into the inventory's words. Enumerations are
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

func capability(cc [2]int) (probe.Opt[int], error) {
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

func migMode(current int) (probe.Opt[bool], error) {
	if current != 0 && current != 1 {
		return probe.Opt[bool]{}, fmt.Errorf("MIG mode %d: neither off nor on", current)
	}
	return probe.Some(current == 1), nil
}

func busID(s string) (probe.Opt[probe.BDF], error) {
	b, err := probe.ParseBDF(s)
	if err != nil {
		return probe.Opt[probe.BDF]{}, err
	}
	return probe.Some(b), nil
}

// remoteBusID reads the address at the other end of a link. A hypervisor that
// hides it answers FFFFFFFF:FF:FF.0, in the older field FFFFFFF:FF:FF.0.
func remoteBusID(s string) (probe.Opt[probe.BDF], error) {
	if s == "" || strings.HasPrefix(strings.ToUpper(s), "FFFFFFF") {
		return probe.Opt[probe.BDF]{}, nil
	}
	return busID(s)
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
func fabricState(n int) (string, error) {
	states := []string{fabricNotSupported: "not supported", 1: "not started", 2: "in progress", 3: "completed"}
	if n < 0 || n >= len(states) {
		return "", fmt.Errorf("fabric state %d: unknown", n)
	}
	return states[n], nil
}

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
