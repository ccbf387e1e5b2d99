package nvml

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Replay reads a recording of NVML calls: a JSON object
//
//	driver, nvml   versions, text
//	gpus           one object for each GPU in the order of NVML's indices
//
// A GPU's object holds, by the name of the call, its answer or
// {"error": text, "code": number}: nvmlDeviceGetPciInfo (busId),
// nvmlDeviceGetCudaComputeCapability [major, minor], nvmlDeviceGetMigMode
// [current, pending], nvmlDeviceGetUtilizationRates {gpu}, and plain numbers for
// the PCIe link, performance state, event reasons, replay counter and module id.
// Further:
//
//	name           nvmlDeviceGetName
//	links          [{l: number, nvmlDeviceGetNvLinkState …}], up to and with the
//	               first link that NVML refuses
//	fabric_state   members of nvmlGpuFabricInfo_v2_t as [state, status, cliqueId,
//	               healthMask], at least the first two. The order is the
//	               recorder's; it was checked against nvidia-smi -q of the same
//	               machine, as far as four numbers of which three are 0 allow.
//	p2p            {"PEER/CAPABILITY": status}, numbers of nvmlDeviceGetP2PStatus
//
// Keys that are not read (counters, field values, topo, caps, err) are ignored.
// The error names the place of what is no such recording.
func Replay(name string, text []byte) (*probe.Inventory, error) {
	doc, root, err := parseJSON(name, text)
	if err != nil {
		return nil, err
	}
	rec, err := newRecording(doc, root)
	if err != nil {
		return nil, err
	}
	where := ""
	if name != "" {
		where = name + ":"
	}
	inv := read(rec, where)
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return inv, nil
}

// recording answers calls from a document whose shape was checked.
type recording struct {
	driver, nvml recorded[string]
	gpus         []device
}

func (r *recording) DriverVersion() (string, status) { return r.driver.get() }
func (r *recording) NVMLVersion() (string, status)   { return r.nvml.get() }
func (r *recording) Devices() []device               { return r.gpus }

// recorded is the answer of one call; the zero value was not recorded.
type recorded[T any] struct {
	value T
	s     status
	is    bool
}

func (r recorded[T]) get() (T, status) {
	if !r.is {
		return r.value, notRecorded
	}
	return r.value, r.s
}

// recordedGPU answers the calls of one GPU.
type recordedGPU struct {
	name, uuid, bus                   recorded[string]
	cc, mig                           recorded[[]int]
	pstate, utilization, module       recorded[int]
	events, replays                   recorded[uint64]
	pcie                              map[pcieFigure]recorded[int]
	fabric                            recorded[fabricInfo]
	linkState, linkVersion, linkRType map[int]recorded[int]
	linkBus                           map[int]recorded[string]
	p2p                               map[[2]int]recorded[int]
}

func (g *recordedGPU) Name() (string, status)          { return g.name.get() }
func (g *recordedGPU) UUID() (string, status)          { return g.uuid.get() }
func (g *recordedGPU) BusID() (string, status)         { return g.bus.get() }
func (g *recordedGPU) PerformanceState() (int, status) { return g.pstate.get() }
func (g *recordedGPU) Utilization() (int, status)      { return g.utilization.get() }
func (g *recordedGPU) EventReasons() (uint64, status)  { return g.events.get() }
func (g *recordedGPU) PCIe(f pcieFigure) (int, status) { return g.pcie[f].get() }
func (g *recordedGPU) PCIeReplays() (uint64, status)   { return g.replays.get() }
func (g *recordedGPU) ModuleID() (int, status)         { return g.module.get() }
func (g *recordedGPU) Fabric() (fabricInfo, status)    { return g.fabric.get() }
func (g *recordedGPU) LinkState(i int) (int, status)   { return g.linkState[i].get() }
func (g *recordedGPU) LinkVersion(i int) (int, status) { return g.linkVersion[i].get() }
func (g *recordedGPU) LinkRemoteType(i int) (int, status) {
	return g.linkRType[i].get()
}
func (g *recordedGPU) LinkRemoteBusID(i int) (string, status) { return g.linkBus[i].get() }
func (g *recordedGPU) P2P(peer, capability int) (int, status) {
	return g.p2p[[2]int{peer, capability}].get()
}

func (g *recordedGPU) ComputeCapability() (major, minor int, s status) {
	v, s := g.cc.get()
	if s != success {
		return 0, 0, s
	}
	return v[0], v[1], s
}

func (g *recordedGPU) MIGMode() (int, status) {
	v, s := g.mig.get()
	if s != success {
		return 0, s
	}
	return v[0], s
}

// builder checks the shape of a recording and keeps the first fault in the order
// of the text.
type builder struct {
	doc *document
	err error
	at  int // offset of the fault
}

func newRecording(doc *document, root *value) (*recording, error) {
	b := &builder{doc: doc}
	if root.kind != '{' {
		return nil, doc.errorf(root.offset, "a recording is an object")
	}
	gpus := root.object["gpus"]
	if gpus == nil || gpus.kind != '[' {
		at := root
		if gpus != nil {
			at = gpus
		}
		return nil, doc.errorf(at.offset, "no list of gpus: this is no recording of NVML calls")
	}
	if len(gpus.array) > maxGPUs {
		return nil, doc.errorf(gpus.offset, "%d GPUs, at most %d are believed", len(gpus.array), maxGPUs)
	}
	rec := &recording{driver: take(b, root, "driver", oneLine), nvml: take(b, root, "nvml", oneLine)}
	for _, g := range gpus.array {
		rec.gpus = append(rec.gpus, b.gpu(g))
	}
	return rec, b.err
}

func (b *builder) fail(v *value, format string, args ...any) {
	if b.err == nil || v.offset < b.at {
		b.at = v.offset
		b.err = b.doc.errorf(v.offset, format, args...)
	}
}

// take reads the answer that an object holds under key. as returns what the
// answer should have been when it is something else.
func take[T any](b *builder, object *value, key string, as func(*value) (T, string)) recorded[T] {
	v := object.object[key]
	if v == nil {
		return recorded[T]{}
	}
	if s, ok := v.failed(); ok {
		return recorded[T]{s: s, is: true}
	}
	out, want := as(v)
	if want != "" {
		b.fail(v, "%s: want %s or {\"error\", \"code\"}", key, want)
	}
	return recorded[T]{value: out, is: true}
}

func (b *builder) gpu(v *value) device {
	g := &recordedGPU{
		pcie:        map[pcieFigure]recorded[int]{},
		linkState:   map[int]recorded[int]{},
		linkVersion: map[int]recorded[int]{},
		linkRType:   map[int]recorded[int]{},
		linkBus:     map[int]recorded[string]{},
		p2p:         map[[2]int]recorded[int]{},
	}
	if v.kind != '{' {
		b.fail(v, "a GPU is an object")
		return g
	}
	const get = "nvmlDeviceGet"
	g.name = take(b, v, "name", oneLine)
	g.uuid = take(b, v, get+"UUID", oneLine)
	g.bus = take(b, v, get+"PciInfo", busIDMember)
	g.cc = take(b, v, get+"CudaComputeCapability", pair)
	g.mig = take(b, v, get+"MigMode", pair)
	g.pstate = take(b, v, get+"PerformanceState", number)
	g.utilization = take(b, v, get+"UtilizationRates", gpuMember)
	g.events = take(b, v, get+"CurrentClocksEventReasons", count)
	if !g.events.is { // before driver 535
		g.events = take(b, v, get+"CurrentClocksThrottleReasons", count)
	}
	g.replays = take(b, v, get+"PcieReplayCounter", count)
	g.module = take(b, v, get+"ModuleId", number)
	for _, f := range []pcieFigure{currentGeneration, maxGeneration, boardGeneration, currentWidth, maxWidth} {
		g.pcie[f] = take(b, v, get+string(f), number)
	}
	g.fabric = take(b, v, "fabric_state", fabricMembers)
	b.links(g, v.object["links"])
	b.peers(g, v.object["p2p"])
	return g
}

func (b *builder) links(g *recordedGPU, list *value) {
	if list == nil {
		return
	}
	if list.kind != '[' {
		b.fail(list, "links: want a list")
		return
	}
	for _, l := range list.array {
		if l.kind != '{' || l.object["l"] == nil {
			b.fail(l, "links: want objects with the link's number l")
			return
		}
		n, ok := l.object["l"].integer()
		if !ok || n < 0 || n > maxLinks {
			b.fail(l.object["l"], "l: want a link number up to %d", maxLinks)
			return
		}
		if g.linkState[n].is {
			b.fail(l, "link %d appears twice", n)
			return
		}
		const get = "nvmlDeviceGetNvLink"
		g.linkState[n] = take(b, l, get+"State", number)
		if !g.linkState[n].is {
			b.fail(l, "link %d has no %sState", n, get)
		}
		g.linkVersion[n] = take(b, l, get+"Version", number)
		g.linkRType[n] = take(b, l, get+"RemoteDeviceType", number)
		g.linkBus[n] = take(b, l, get+"RemotePciInfo", busIDMember)
	}
}

func (b *builder) peers(g *recordedGPU, table *value) {
	if table == nil {
		return
	}
	if table.kind != '{' {
		b.fail(table, "p2p: want an object")
		return
	}
	for key, v := range table.object {
		first, second, ok := strings.Cut(key, "/")
		peer, err1 := strconv.Atoi(first)
		c, err2 := strconv.Atoi(second)
		if !ok || err1 != nil || err2 != nil || peer < 0 || c < 0 {
			b.fail(v, "p2p: key %.40q is no PEER/CAPABILITY", key)
			continue
		}
		g.p2p[[2]int{peer, c}] = take(b, table, key, number)
	}
}

// The shapes of answers. Each returns what it wants when it got something else.

func oneLine(v *value) (string, string) {
	s, ok := v.text()
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(s) > 256 {
		return "", "a line of text"
	}
	return s, ""
}

func number(v *value) (int, string) {
	if n, ok := v.integer(); ok {
		return n, ""
	}
	return 0, "a whole number"
}

func count(v *value) (uint64, string) {
	if n, ok := v.unsigned(); ok {
		return n, ""
	}
	return 0, "a count"
}

func pair(v *value) ([]int, string) {
	if l, ok := v.integers(); ok && len(l) == 2 {
		return l, ""
	}
	return []int{0, 0}, "two whole numbers"
}

func busIDMember(v *value) (string, string) {
	if v.kind == '{' && v.object["busId"] != nil {
		if s, want := oneLine(v.object["busId"]); want == "" {
			return s, ""
		}
	}
	return "", "an object with busId"
}

// gpuMember reads {"gpu": percent, "memory": percent}.
func gpuMember(v *value) (int, string) {
	if v.kind == '{' && v.object["gpu"] != nil {
		if n, ok := v.object["gpu"].integer(); ok {
			return n, ""
		}
	}
	return 0, "an object with gpu"
}

func fabricMembers(v *value) (fabricInfo, string) {
	l, ok := v.integers()
	if !ok || len(l) < 2 {
		return fabricInfo{}, "a list of state, status, clique id, health mask"
	}
	f := fabricInfo{state: l[0], status: l[1]}
	for i, p := range []*probe.Opt[uint32]{&f.clique, &f.health} {
		if len(l) <= 2+i {
			break
		}
		n := l[2+i]
		if n < 0 || n > math.MaxUint32 {
			return f, "unsigned 32-bit numbers for clique id and health mask"
		}
		*p = probe.Some(uint32(n))
	}
	return f, ""
}
