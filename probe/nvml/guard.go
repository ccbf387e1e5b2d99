package nvml

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// guard stands between the reader and the driver and bounds every call. A call
// into a driver that waits for a dead GPU cannot be cancelled: its goroutine and
// its thread stay until the kernel lets go of them, by necessity (and a thread
// that the kernel holds can delay the end of the process). All that the guard
// can do is to stop waiting, to ask that GPU nothing more, and to let the others
// go on.
type guard struct {
	ctx     context.Context
	lib     library
	o       Options      // with defaults
	waiting atomic.Int64 // calls that have not returned
	modes   modes
	turn    chan struct{} // holds one element: the turn
}

func newGuard(ctx context.Context, lib library, o Options) *guard {
	g := &guard{ctx: ctx, lib: lib, o: o.withDefaults(), modes: modes{news: make(chan struct{})}, turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

// handOver is how long a GPU that has the turn may keep a call waiting before
// the next GPU gets it. The driver makes one call at a time, whatever GPU it is
// about, and a call costs about twice as much when the one before was about
// another GPU (2 × H200, driver 580.159.04: 0.15 and 0.36 ms); so the GPUs are
// read one after the other as long as they answer.
const handOver = 50 * time.Millisecond

// longestTurn ends the turn of a GPU whose calls are all slow: a healthy one
// takes about 50 ms.
const longestTurn = 250 * time.Millisecond

// start runs f in a goroutine of its own, which outlives a caller that stops
// waiting.
func start[T any](g *guard, f func() T) <-chan T {
	done := make(chan T, 1)
	g.waiting.Add(1)
	go func() {
		v := f()
		g.waiting.Add(-1)
		done <- v
	}()
	return done
}

// within waits for f no longer than limit, and calls late when it has waited for
// some time.
func within[T any](g *guard, limit time.Duration, f func() T, late func()) (v T, ok bool) {
	done := start(g, f)
	t := time.NewTimer(min(limit, handOver))
	defer t.Stop()
	select {
	case v = <-done:
		return v, true
	case <-g.ctx.Done():
		return v, false
	case <-t.C:
	}
	late()
	t.Reset(limit - min(limit, handOver))
	select {
	case v = <-done:
		return v, true
	case <-g.ctx.Done():
	case <-t.C:
	}
	return v, false
}

func (g *guard) ask(q question) (any, status) {
	a, ok := within(g, g.o.Call, func() answer { v, s := g.lib.ask(q); return answer{v, s} }, func() {})
	if !ok {
		return nil, noAnswer
	}
	return a.value, a.s
}

// opened is the answer of library.open.
type opened struct {
	dev device
	s   status
}

// open attaches a GPU, which takes seconds when its driver state is not kept
// (persistence mode off) and nobody uses it. So the limit is long, unless GPUs
// that are open already say that the mode is on: then a GPU that takes longer
// than a call is as silent as one that does not answer it.
func (g *guard) open(i int) (device, status) {
	done := start(g, func() opened { d, s := g.lib.open(i); return opened{d, s} })
	limit := time.NewTimer(g.o.Open)
	defer limit.Stop()
	patience := time.NewTimer(g.o.Call)
	defer patience.Stop()
	for late := false; ; {
		kept, news := g.modes.kept()
		if late && kept {
			return nil, noAnswer
		}
		select {
		case o := <-done:
			if o.s != success {
				return nil, o.s
			}
			return &guardedGPU{g: g, dev: o.dev, left: g.o.Total}, success
		case <-patience.C:
			late = true
		case <-news:
		case <-limit.C:
			return nil, noAnswer
		case <-g.ctx.Done():
			return nil, noAnswer
		}
	}
}

// modes gathers the persistence modes of the GPUs that are open.
type modes struct {
	mu      sync.Mutex
	on, off int
	news    chan struct{} // closed and replaced when one more is known
}

func (m *modes) add(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if on {
		m.on++
	} else {
		m.off++
	}
	close(m.news)
	m.news = make(chan struct{})
}

// kept reports that the mode is on wherever it is known, and what is closed when
// that may change.
func (m *modes) kept() (bool, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on > 0 && m.off == 0, m.news
}

// guardedGPU bounds the calls of one GPU: each by Options.Call, all of them
// together by Options.Total, and none any more after one without an answer.
type guardedGPU struct {
	g      *guard
	dev    device
	left   time.Duration // of Options.Total
	silent bool
	turn   bool // it has the turn
	since  time.Time
}

// inTurn waits for the turn and runs f. A GPU that keeps a call waiting, or the
// others for long, goes on without the turn.
func (d *guardedGPU) inTurn(f func()) {
	if !d.silent {
		<-d.g.turn
		d.turn, d.since = true, time.Now()
	}
	f()
	d.pass()
}

// pass gives the turn to another GPU.
func (d *guardedGPU) pass() {
	if d.turn {
		d.turn = false
		d.g.turn <- struct{}{}
	}
}

// bounded makes one call of a GPU.
func bounded[T any](d *guardedGPU, f func() T) (v T, ok bool) {
	if d.silent || d.left <= 0 {
		return v, false
	}
	begin := time.Now()
	v, ok = within(d.g, min(d.g.o.Call, d.left), f, d.pass)
	d.left -= time.Since(begin)
	d.silent = !ok
	if d.turn && time.Since(d.since) > longestTurn {
		d.pass()
	}
	return v, ok
}

func (d *guardedGPU) ask(q question) (any, status) {
	dev := d.dev
	a, ok := bounded(d, func() answer { v, s := dev.ask(q); return answer{v, s} })
	if !ok {
		return nil, noAnswer
	}
	if on, isNumber := a.value.(int); q.function == persistence.function && a.s == success && isNumber {
		d.g.modes.add(on == 1)
	}
	return a.value, a.s
}

func (d *guardedGPU) fields(ids []field) []fieldAnswer {
	dev := d.dev
	out, ok := bounded(d, func() []fieldAnswer { return dev.fields(ids) })
	if !ok {
		out = make([]fieldAnswer, len(ids))
		for i := range out {
			out[i].s = noAnswer
		}
	}
	return out
}
