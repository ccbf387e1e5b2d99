package nvml

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/ncclmap/ncclmap/probe"
)

// Record reads this machine like [Read] and writes every call with its answer to
// w, in the form that [Replay] reads: the recording's inventory is the one that
// Record returns, but for the file's name in its origins. UUIDs are part of it.
func Record(ctx context.Context, w io.Writer, o Options) (*probe.Inventory, error) {
	var rec *recorder
	inv, err := readDriver(ctx, o, openDriver, func(lib library) library {
		rec = newRecorder(lib)
		return rec
	})
	if err != nil {
		return nil, err
	}
	text, err := rec.document()
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("write the recording: %w", err)
	}
	return inv, nil
}

// recorder keeps the answers of a library.
type recorder struct {
	lib   library
	calls map[question]answer
	count int

	mu   sync.Mutex // GPUs are opened side by side
	gpus map[int]*recorderGPU
}

// recorderGPU keeps the answers of a GPU. One goroutine at a time asks it.
type recorderGPU struct {
	device
	answers
	s status
}

func newRecorder(lib library) *recorder {
	return &recorder{lib: lib, calls: map[question]answer{}, gpus: map[int]*recorderGPU{}}
}

func (r *recorder) ask(q question) (any, status) {
	v, s := r.lib.ask(q)
	if q.function == deviceCount.function && s == success {
		r.count, _ = v.(int)
		return v, s
	}
	keep(r.calls, q, v, s)
	return v, s
}

// keep notes an answer; what a recording has no answer for stays without one.
func keep(calls map[question]answer, q question, v any, s status) {
	if s != notRecorded && s != notAsked {
		calls[q] = answer{v, s}
	}
}

func (r *recorder) open(i int) (device, status) {
	d, s := r.lib.open(i)
	g := &recorderGPU{device: d, s: s, answers: answers{calls: map[question]answer{}, values: map[field]fieldAnswer{}}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gpus[i] = g
	if s != success {
		return nil, s
	}
	return g, s
}

func (g *recorderGPU) ask(q question) (any, status) {
	v, s := g.device.ask(q)
	keep(g.calls, q, v, s)
	return v, s
}

func (g *recorderGPU) fields(ids []field) []fieldAnswer {
	out := g.device.fields(ids)
	for i, id := range ids {
		if a := out[i]; a.s != notRecorded && a.s != notAsked {
			g.values[id] = a
		}
	}
	return out
}

// document writes what was kept as a recording.
func (r *recorder) document() ([]byte, error) {
	gpus := make([]any, r.count)
	for i := range gpus {
		g := r.gpus[i]
		switch {
		case g == nil:
			gpus[i] = failure(noAnswer)
		case g.s != success:
			gpus[i] = failure(g.s)
		default:
			gpus[i] = g.object()
		}
	}
	doc := map[string]any{"recording": lastForm, "gpus": gpus}
	put(doc, r.calls, systemCalls(), question{})
	compact, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write the recording: %w", err)
	}
	return probe.FormatJSON(compact), nil
}

func (g *recorderGPU) object() map[string]any {
	out := map[string]any{}
	put(out, g.calls, gpuCalls(), question{})
	for _, c := range pairCalls() {
		table := map[string]any{}
		for q, a := range g.calls {
			if q.function == c.name() {
				table[pairKey(q.a, q.b)] = written(a, c)
			}
		}
		if len(table) > 0 {
			out[c.place()] = table
		}
	}
	if len(g.values) > 0 {
		table := map[string]any{}
		for f, a := range g.values {
			if a.s != success {
				table[pairKey(f.id, f.scope)] = failure(a.s)
			} else {
				table[pairKey(f.id, f.scope)] = a.value
			}
		}
		out[fieldsFunction] = table
	}
	if links := g.links(); len(links) > 0 {
		out["links"] = links
	}
	return out
}

func (g *recorderGPU) links() []any {
	var numbers []int
	for q := range g.calls {
		if q.function == linkStateOf.function {
			numbers = append(numbers, q.a)
		}
	}
	slices.Sort(numbers)
	out := make([]any, len(numbers))
	for i, n := range numbers {
		l := map[string]any{"l": n}
		put(l, g.calls, linkCalls(), question{a: n})
		for _, c := range linkPairCalls() {
			table := map[string]any{}
			for q, a := range g.calls {
				if q.function == c.name() && q.a == n {
					table[strconv.Itoa(q.b)] = written(a, c)
				}
			}
			if len(table) > 0 {
				l[c.place()] = table
			}
		}
		out[i] = l
	}
	return out
}

// put writes the answers to calls with the given arguments into an object.
func put(object map[string]any, answers map[question]answer, calls []anyCall, args question) {
	for _, c := range calls {
		args.function = c.name()
		if a, ok := answers[args]; ok {
			object[c.place()] = written(a, c)
		}
	}
}

func written(a answer, c anyCall) any {
	if a.s != success {
		return failure(a.s)
	}
	return c.write(a.value)
}

func pairKey(a, b int) string { return strconv.Itoa(a) + "/" + strconv.Itoa(b) }
