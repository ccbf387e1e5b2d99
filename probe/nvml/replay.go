package nvml

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// Replay reads a recording of NVML calls: a JSON object
//
//	recording      the form, 1 or 2; without it 1
//	driver, nvml   versions, text
//	gpus           one object for each GPU in the order of NVML's indices, or
//	               {"error", "code"} for one whose handle was refused
//
// A GPU's object holds, by the name of the call, its answer or
// {"error": text, "code": number}: nvmlDeviceGetPciInfo (busId),
// nvmlDeviceGetCudaComputeCapability [major, minor], nvmlDeviceGetMigMode
// [current, pending], nvmlDeviceGetUtilizationRates {gpu}, and plain numbers for
// the PCIe link, performance state, event reasons, replay counter and module id.
// Code -2, which is not NVML's, says that the call did not return in time.
// Further:
//
//	name           nvmlDeviceGetName
//	links          [{l: number, nvmlDeviceGetNvLinkState …}], up to and with the
//	               first link that NVML refuses
//	fabric_state   members of nvmlGpuFabricInfo_v2_t as [state, status, cliqueId,
//	               healthMask], at least the first two. The order is the
//	               recorder's; it was checked against nvidia-smi -q of the same
//	               machine, as far as four numbers of which three are 0 allow.
//	p2p            {"PEER/CAPABILITY": status}, numbers of nvmlDeviceGetP2PStatus;
//	               one of a pair's two GPUs suffices
//
// The second form, which [Record] writes, adds
//
//	nvmlSystemGetConfComputeState  [environment, ccFeature, devToolsMode], beside gpus
//	nvmlDeviceGetCount             beside gpus, where it failed
//	nvmlDeviceGetPersistenceMode, nvmlDeviceGetComputeMode  numbers
//	nvmlDeviceGetBAR1MemoryInfo    {bar1Total}, bytes
//	nvmlDeviceGetEccMode           [current, pending]
//	nvmlDeviceGetTotalEccErrors    {"ERROR TYPE/COUNTER TYPE": count}
//	nvmlDeviceGetRemappedRows      [corrected, uncorrected, pending, failure]
//	nvmlDeviceGetGpuFabricInfoV    {state, status, cliqueId, clusterUuid, healthMask, healthSummary}
//	nvmlDeviceGetFieldValues       {"FIELD/SCOPE": number}
//	nvmlDeviceGetNvLinkCapability, nvmlDeviceGetNvLinkErrorCounter
//	                               in a link, {"CAPABILITY": 0 or 1}, {"COUNTER": count}
//
// Other keys are ignored, and in the first form those of the second too: some of
// its recordings hold other things under these names. What they add is then
// unknown without a gap, as with every source that has no place for it. The
// error names the place of what is no such recording.
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
	inv := read(rec, where, inOrder)
	if err := inv.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return inv, nil
}

// lastForm is the newest form of recording that is read, and the one written.
const lastForm = 2

// answers are the recorded answers of one object.
type answers struct {
	form   int
	calls  map[question]answer
	values map[field]fieldAnswer
}

type answer struct {
	value any
	s     status
}

func (a *answers) ask(q question) (any, status) {
	if r, ok := a.calls[q]; ok {
		return r.value, r.s
	}
	return nil, a.lacks(q.function)
}

func (a *answers) fields(ids []field) []fieldAnswer {
	out := make([]fieldAnswer, len(ids))
	for i, id := range ids {
		r, ok := a.values[id]
		if !ok {
			r.s = a.lacks(fieldsFunction)
		}
		out[i] = r
	}
	return out
}

// lacks says why an answer is not there.
func (a *answers) lacks(function string) status {
	if a.form < 2 && addedLater(function) {
		return notAsked
	}
	return notRecorded
}

// addedLater reports a call that the first form has no place for.
func addedLater(function string) bool {
	if function == fieldsFunction {
		return true
	}
	for _, list := range [][]anyCall{systemCalls(), gpuCalls(), linkPairCalls(), pairCalls()} {
		for _, c := range list {
			if c.name() == function {
				return c.form() > 1
			}
		}
	}
	return false
}

// recording answers calls from a document whose shape was checked.
type recording struct {
	answers
	gpus []recordedGPU
}

type recordedGPU struct {
	answers
	rec   *recording
	index int
	s     status // of the handle
}

// ask takes the P2P status of a pair from the lower of the two GPUs, or from the
// other if that has none.
func (g *recordedGPU) ask(q question) (any, status) {
	if q.function != p2pStatusOf.function || q.a < 0 || q.a >= len(g.rec.gpus) {
		return g.answers.ask(q)
	}
	low, high := min(g.index, q.a), max(g.index, q.a)
	v, s := g.rec.gpus[low].answers.ask(question{q.function, high, q.b})
	if s == notRecorded {
		return g.rec.gpus[high].answers.ask(question{q.function, low, q.b})
	}
	return v, s
}

func (g *recordedGPU) inTurn(f func()) { f() }

// ask counts the GPUs itself unless counting failed.
func (r *recording) ask(q question) (any, status) {
	v, s := r.answers.ask(q)
	if q.function == deviceCount.function && (s == success || s == notRecorded || s == notAsked) {
		return len(r.gpus), success
	}
	return v, s
}

func (r *recording) open(i int) (device, status) {
	if i < 0 || i >= len(r.gpus) {
		return nil, invalidArgument
	}
	return &r.gpus[i], r.gpus[i].s
}

// builder checks the shape of a recording and keeps the first fault in the order
// of the text.
type builder struct {
	doc  *document
	form int
	err  error
	at   int // offset of the fault
}

func newRecording(doc *document, root *value) (*recording, error) {
	b := &builder{doc: doc, form: 1}
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
	if f := root.object["recording"]; f != nil {
		n, ok := f.integer()
		if !ok || n < 1 || n > lastForm {
			return nil, doc.errorf(f.offset, "recording: want a form from 1 to %d; a newer one needs a newer program", lastForm)
		}
		b.form = n
	}
	if len(gpus.array) > maxGPUs {
		return nil, doc.errorf(gpus.offset, "%d GPUs, at most %d are believed", len(gpus.array), maxGPUs)
	}
	rec := &recording{answers: b.answers()}
	b.take(rec.calls, root, systemCalls(), question{})
	for i, v := range gpus.array {
		g := b.gpu(v)
		g.rec, g.index = rec, i
		rec.gpus = append(rec.gpus, g)
	}
	return rec, b.err
}

func (b *builder) answers() answers {
	return answers{form: b.form, calls: map[question]answer{}, values: map[field]fieldAnswer{}}
}

func (b *builder) fail(v *value, format string, args ...any) {
	if b.err == nil || v.offset < b.at {
		b.at = v.offset
		b.err = b.doc.errorf(v.offset, format, args...)
	}
}

// take reads the answers that an object holds to calls with the given arguments.
func (b *builder) take(into map[question]answer, object *value, calls []anyCall, args question) {
	for _, c := range calls {
		v := object.object[c.place()]
		if v == nil || c.form() > b.form {
			continue
		}
		args.function = c.name()
		into[args] = b.answer(v, c.place(), c)
	}
}

func (b *builder) answer(v *value, key string, c anyCall) answer {
	if s, ok := v.failed(); ok {
		return answer{s: s}
	}
	out, want := c.parse(v)
	if want != "" {
		b.fail(v, "%s: want %s or {\"error\", \"code\"}", key, want)
	}
	return answer{value: out}
}

func (b *builder) gpu(v *value) recordedGPU {
	g := recordedGPU{answers: b.answers()}
	if v.kind != '{' {
		b.fail(v, "a GPU is an object")
		return g
	}
	if s, ok := v.failed(); ok {
		g.s = s
		return g
	}
	b.take(g.calls, v, gpuCalls(), question{})
	b.links(&g, v.object["links"])
	for _, c := range pairCalls() {
		table := v.object[c.place()]
		if table == nil || c.form() > b.form {
			continue
		}
		first, second := "FIRST", "SECOND"
		if c.name() == p2pStatusOf.function {
			first, second = "PEER", "CAPABILITY"
		}
		b.pairs(table, c.place(), first, second, func(x, y int, v *value, key string) {
			g.calls[question{c.name(), x, y}] = b.answer(v, key, c)
		})
	}
	if table := v.object[fieldsFunction]; table != nil && b.form > 1 {
		b.pairs(table, fieldsFunction, "FIELD", "SCOPE", func(id, scope int, v *value, key string) {
			a := fieldAnswer{}
			if s, ok := v.failed(); ok {
				a.s = s
			} else if n, want := count(v); want != "" {
				b.fail(v, "%s: want %s or {\"error\", \"code\"}", key, want)
			} else {
				a.value = n
			}
			g.values[field{id, scope}] = a
		})
	}
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
	seen := map[int]bool{}
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
		if seen[n] {
			b.fail(l, "link %d appears twice", n)
			return
		}
		seen[n] = true
		if l.object[linkStateOf.function] == nil {
			b.fail(l, "link %d has no %s", n, linkStateOf.function)
		}
		b.take(g.calls, l, linkCalls(), question{a: n})
		for _, c := range linkPairCalls() {
			table := l.object[c.place()]
			if table == nil || c.form() > b.form {
				continue
			}
			if table.kind != '{' {
				b.fail(table, "%s: want an object", c.place())
				continue
			}
			for key, v := range table.object {
				i, ok := ordinal(key)
				if !ok {
					b.fail(v, "%s: key %.40q is no number", c.place(), key)
					continue
				}
				g.calls[question{c.name(), n, i}] = b.answer(v, key, c)
			}
		}
	}
}

// pairs walks {"A/B": answer}.
func (b *builder) pairs(table *value, name, first, second string, each func(x, y int, v *value, key string)) {
	if table.kind != '{' {
		b.fail(table, "%s: want an object", name)
		return
	}
	for key, v := range table.object {
		one, two, _ := strings.Cut(key, "/")
		x, ok1 := ordinal(one)
		y, ok2 := ordinal(two)
		if !ok1 || !ok2 {
			b.fail(v, "%s: key %.40q is no %s/%s", name, key, first, second)
			continue
		}
		each(x, y, v, key)
	}
}

// ordinal reads a number in the one way in which the recorder writes it.
func ordinal(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == s
}
