package nvml

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ncclmap/ncclmap/probe"
)

const (
	// maxLinks is NVML_NVLINK_MAX_LINKS of current headers; 18 before NVLink 6.
	maxLinks = 36
	maxGPUs  = 1024 // far more than an inventory holds
)

// read asks a library everything that the inventory has a place for. where is
// the prefix of the origins, "" or a file name and a colon. each runs the reading
// of n GPUs.
func read(lib library, where string, each func(n int, gpu func(i int))) *probe.Inventory {
	inv := &probe.Inventory{Schema: probe.Schema}
	sys := newReader(where)
	rt := &inv.Runtime
	rt.Driver = ask(sys, lib, "", driverVersion)
	rt.NVML = ask(sys, lib, "", nvmlVersion)
	if rt.Driver != "" || rt.NVML != "" {
		rt.Origins = []probe.Origin{sys.origin("")}
	}
	if sys.ended {
		// The driver did not answer for its own version: no GPU would.
		sys.fold()
		inv.Gaps = sys.gaps
		inv.Normalize()
		return inv
	}
	gpus := make([]gpuReader, min(max(ask(sys, lib, "", deviceCount), 0), maxGPUs))
	var present roll
	each(len(gpus), func(i int) {
		gpus[i] = gpuReader{reader: newReader(where), index: i, object: objectOf(i)}
		gpus[i].run(lib, &present)
	})
	join(gpus)
	for i := range gpus {
		g := &gpus[i]
		if g.found {
			inv.GPUs = append(inv.GPUs, g.gpu)
		}
		g.fold()
		sys.join(g.reader)
	}
	if cc, s := answerOf(lib, confCompute); s == notSupported {
		// What has no confidential computing cannot have it on.
		inv.Settings.CC = probe.Some(false)
	} else {
		inv.Settings.CC = judge(sys, "", confCompute.what, confCompute.function, cc, s, confidential)
	}
	if inv.Settings.CC.Known() {
		inv.Settings.Origins = []probe.Origin{sys.origin("")}
	}
	sys.fold()
	inv.Gaps = append(sys.gaps, sys.absent()...)
	inv.NVSwitches = switches(inv.GPUs)
	inv.Normalize()
	return inv
}

// inOrder reads GPUs one after the other, for a library that answers at once.
func inOrder(n int, gpu func(i int)) {
	for i := range n {
		gpu(i)
	}
}

// sideBySide gives each GPU a goroutine of its own, so that one that is slow to
// answer delays nobody else.
func sideBySide(n int, gpu func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { gpu(i) })
	}
	wg.Wait()
}

// switches lists the NVSwitches at the other ends of the links. NVML has no list
// of its own.
func switches(gpus []probe.GPU) []probe.NVSwitch {
	seen := map[probe.BDF]bool{}
	var out []probe.NVSwitch
	for _, g := range gpus {
		links, _ := g.NVLinks.Get()
		for _, l := range links {
			if at, ok := l.Remote.Get(); ok && l.RemoteKind == probe.RemoteSwitch && !seen[at] {
				seen[at] = true
				out = append(out, probe.NVSwitch{Addr: at, Origins: g.Origins})
			}
		}
	}
	return out
}

// reader gathers what could not be read while it asks.
type reader struct {
	where   string
	gaps    []probe.Gap
	failed  []failed
	missing map[string]bool // calls that the recording lacks
	unknown map[string]bool // calls that the driver lacks
	ended   bool            // lost or silent: nothing more is asked
}

// failed is a call with an error that says something about this GPU.
type failed struct {
	what, object, function, more string
	s                            status
}

func newReader(where string) *reader {
	return &reader{where: where, missing: map[string]bool{}, unknown: map[string]bool{}}
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
	r.gaps = append(r.gaps, probe.Gap{What: what, Why: err.Error(), Origin: r.origin(object)})
}

func (r *reader) join(o *reader) {
	r.gaps = append(r.gaps, o.gaps...)
	maps.Copy(r.missing, o.missing)
	maps.Copy(r.unknown, o.unknown)
}

// How to learn more about a GPU that does not answer.
const howSilent = "look for Xid lines in the kernel log (dmesg | grep NVRM), then read again"

// foldFrom is the number of calls with one error from which they are one gap: a
// GPU that refuses everything should not fill a page.
const foldFrom = 8

// fold turns the failed calls into gaps.
func (r *reader) fold() {
	times := map[status]int{}
	for _, f := range r.failed {
		times[f.s]++
	}
	said := map[failed]bool{}
	for _, f := range r.failed {
		n := times[f.s]
		if n == 0 || said[f] {
			continue // in the gap of an earlier one
		}
		said[f] = true
		g := probe.Gap{What: strings.TrimSpace(f.object + " " + f.what), Why: f.function + ": " + f.s.Error() + f.more, Origin: r.origin(f.object)}
		if n >= foldFrom {
			times[f.s] = 0
			object, _, _ := strings.Cut(f.object, " nvlink ")
			g.What = strings.TrimSpace(object + " facts")
			g.Why = fmt.Sprintf("%s and %d more calls: %v", f.function, n-1, f.s)
			g.Origin = r.origin(object)
		}
		if f.s.ends() {
			g.How = howSilent
		}
		r.gaps = append(r.gaps, g)
	}
	r.failed = nil
}

// absent returns the gaps for calls that the recording or the driver lacks, one
// each for all GPUs.
func (r *reader) absent() []probe.Gap {
	var out []probe.Gap
	for _, a := range []struct {
		calls    map[string]bool
		why, how string
	}{
		{r.missing, "not recorded: ", "record these calls too"},
		{r.unknown, "not known to this driver: ", "a newer driver knows them"},
	} {
		if len(a.calls) > 0 {
			out = append(out, probe.Gap{
				What: "GPU facts", Why: a.why + strings.Join(slices.Sorted(maps.Keys(a.calls)), ", "),
				How: a.how, Origin: r.origin(""),
			})
		}
	}
	return out
}

// known reports success, and notes what the status of anything else means.
func (r *reader) known(what, object, function string, s status) bool {
	ok, bad := r.classify(what, s)
	if bad {
		r.fail(failed{what: what, object: object, function: function, s: s})
	}
	return ok
}

// classify tells success from what is bad. What the GPU or driver does not
// support is neither: it is unknown and no gap; calls that a recording or a
// driver lacks are gathered.
func (r *reader) classify(what string, s status) (ok, bad bool) {
	switch s {
	case success:
		return true, false
	case notSupported, notAsked:
	case notRecorded:
		r.missing[what] = true
	case functionNotFound, argumentVersion, deprecated:
		r.unknown[what] = true
	default:
		return false, true
	}
	return false, false
}

// fail notes a failed call and whether it was the last.
func (r *reader) fail(f failed) {
	if f.s.ends() {
		r.ended = true
		f.more += "; nothing more was asked of it"
	}
	r.failed = append(r.failed, f)
}

// ask makes a call and returns its value, or the zero value where that means
// unknown. A GPU that has ended is not asked.
func ask[T any](r *reader, from asker, object string, c call[T], args ...int) T {
	v, _ := try(r, from, object, c, args...)
	return v
}

func try[T any](r *reader, from asker, object string, c call[T], args ...int) (v T, ok bool) {
	if r.ended {
		return v, false
	}
	answer, s := answerOf(from, c, args...)
	if !r.known(c.what, object, c.function, s) {
		return v, false
	}
	return answer, true
}

// fact is a call's answer, if valid takes it.
func fact[T, U any](r *reader, from asker, object string, c call[T], valid func(T) (probe.Opt[U], error), args ...int) probe.Opt[U] {
	v, ok := try(r, from, object, c, args...)
	if !ok {
		return probe.Opt[U]{}
	}
	return judge(r, object, c.what, c.function, v, success, valid)
}

// judge is a value that a call answered with a status, if valid takes it.
func judge[T, U any](r *reader, object, what, function string, v T, s status, valid func(T) (probe.Opt[U], error)) probe.Opt[U] {
	if !r.known(what, object, function, s) {
		return probe.Opt[U]{}
	}
	out, err := valid(v)
	if err != nil {
		r.gap(what, object, err)
	}
	return out
}

// roll lists the GPUs that have been read to their end.
type roll struct {
	mu      sync.Mutex
	present []int
}

// enter adds a GPU and returns those that were there before it, so that of every
// two GPUs the later one meets the earlier one.
func (r *roll) enter(gpu int) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := slices.Clone(r.present)
	r.present = append(r.present, gpu)
	slices.Sort(before)
	return before
}

func objectOf(gpu int) string { return fmt.Sprintf("gpu %d", gpu) }

// gpuReader reads one GPU.
type gpuReader struct {
	*reader
	index  int
	object string // "gpu 0"
	dev    device
	found  bool
	gpu    probe.GPU
	asked  []probe.PeerAccess // with the GPUs that were read before
	pairs  []pairFailed
}

// pairFailed is a call about two GPUs that failed, whichever of them was asked.
type pairFailed struct {
	low, high, capability int
	failed
}

// run reads a GPU and its P2P status with those that are read already: such a
// call touches two GPUs and must not be waiting for one that is gone. A GPU
// whose handle is refused is left out: only its index is known, and what the
// kernel knows of it would stand beside that as a second GPU. The gap says so.
func (g *gpuReader) run(lib library, present *roll) {
	dev, s := lib.open(g.index)
	if !g.known("handle", g.object, openFunction, s) {
		return
	}
	g.dev = dev
	// Its identity first: it is worth most if the GPU is lost meanwhile.
	g.gpu = probe.GPU{
		Index:   probe.Some(g.index),
		Addr:    fact(g.reader, dev, g.object, busAddress, busID),
		UUID:    ask(g.reader, dev, g.object, uuid),
		Origins: []probe.Origin{g.origin(g.object)},
	}
	// The same as for a refused handle holds for one that is gone already.
	g.found = !g.ended || g.gpu.UUID != "" || g.gpu.Addr.Known()
	// Those who wait for other GPUs take from this mode how long is long.
	g.gpu.Persistence = fact(g.reader, dev, g.object, persistence, enabled)
	dev.inTurn(func() {
		g.read()
		if !g.ended {
			g.peers(present.enter(g.index))
		}
	})
}

func (g *gpuReader) read() {
	r, d, at, gpu := g.reader, g.dev, g.object, &g.gpu
	gpu.Name = ask(r, d, at, productName)
	gpu.CC = fact(r, d, at, computeCap, capability)
	gpu.PState = fact(r, d, at, performance, pState)
	gpu.Utilization = fact(r, d, at, utilization, percent)
	g.events()
	gpu.Current = g.pcie(currentGeneration, currentWidth)
	gpu.Max = g.pcie(maxGeneration, maxWidth)
	// NVML has no width of the board alone.
	gpu.BoardMax.Speed = fact(r, d, at, boardGeneration, pcieSpeed)
	gpu.Replays = fact(r, d, at, pcieReplays, same)
	gpu.ModuleID = fact(r, d, at, moduleID, natural)
	gpu.BAR1 = fact(r, d, at, bar1, bytesOf)
	gpu.ComputeMode = fact(r, d, at, computeModeOf, computeMode).Or("")
	g.mig()
	g.memory()
	g.links()
	g.fabric()
	g.figures()
}

func (g *gpuReader) pcie(generation, width call[int]) probe.PCIeLink {
	return probe.PCIeLink{
		Speed: fact(g.reader, g.dev, g.object, generation, pcieSpeed),
		Width: fact(g.reader, g.dev, g.object, width, pcieWidth),
	}
}

// events reads the clocks' event reasons under either of their names.
func (g *gpuReader) events() {
	if g.ended {
		return
	}
	v, s := answerOf(g.dev, eventReasons)
	if s == functionNotFound || s == notRecorded {
		v, s = answerOf(g.dev, throttleReasons)
	}
	g.gpu.Events = judge(g.reader, g.object, eventReasons.what, eventReasons.function, v, s, same)
}

func (g *gpuReader) mig() {
	if g.ended {
		return
	}
	v, s := answerOf(g.dev, migModes)
	if s == notSupported {
		// A GPU without MIG cannot have it switched on.
		g.gpu.MIG = probe.Some(false)
		return
	}
	g.gpu.MIG = judge(g.reader, g.object, migModes.what, migModes.function, v, s, migMode)
}

// memory reads what the GPU's memory protection has caught.
func (g *gpuReader) memory() {
	const corrected, uncorrected, volatile, aggregate = 0, 1, 0, 1
	var e probe.ECC
	if modes, ok := try(g.reader, g.dev, g.object, eccModes); ok {
		e.Enabled = judge(g.reader, g.object, eccModes.what, eccModes.function, modes[0], success, enabled)
		if modes[1] != modes[0] {
			e.Pending = judge(g.reader, g.object, eccModes.what, eccModes.function, modes[1], success, enabled)
		}
	}
	for _, c := range []struct {
		total         *probe.Opt[uint64]
		kind, counter int
	}{
		{&e.VolatileCorrected, corrected, volatile},
		{&e.VolatileUncorrected, uncorrected, volatile},
		{&e.AggregateCorrected, corrected, aggregate},
		{&e.AggregateUncorrected, uncorrected, aggregate},
	} {
		*c.total = fact(g.reader, g.dev, g.object, eccErrors, same, c.kind, c.counter)
	}
	if e != (probe.ECC{}) {
		g.gpu.ECC = &e
	}
	if rows, ok := try(g.reader, g.dev, g.object, remappedRows); ok {
		if slices.Min(rows) < 0 {
			g.gap(remappedRows.what, g.object, fmt.Errorf("%v: negative", rows))
			return
		}
		g.gpu.Remapped = &probe.RemappedRows{Corrected: rows[0], Uncorrected: rows[1], Pending: rows[2] != 0, Failure: rows[3] != 0}
	}
}

// links walks a GPU's NVLinks. NVML has no count for them: the first link that
// is not supported, or no valid argument, is the end, and on link 0 "not
// supported" says that the GPU has none. A state that could not be read would
// make the list look shorter than it is, so then the whole list is unknown. All
// states come before any detail, so that a GPU lost between them keeps them.
func (g *gpuReader) links() {
	links := []probe.NVLink{}
	for i := range maxLinks {
		if g.ended {
			return
		}
		at := g.link(i)
		n, s := answerOf(g.dev, linkStateOf, i)
		if s == notSupported || s == invalidArgument && i > 0 {
			break
		}
		if i == 0 && (s == notRecorded || s == functionNotFound) {
			g.known("NVLink state", at, linkStateOf.function, s)
			return
		}
		const unknown = "; so the GPU's links are unknown"
		if s != success {
			g.fail(failed{what: linkStateOf.what, object: at, function: linkStateOf.function, s: s, more: unknown})
			return
		}
		state, err := linkState(n)
		if err != nil {
			g.gap(linkStateOf.what, at, fmt.Errorf("%w%s", err, unknown))
			return
		}
		links = append(links, probe.NVLink{Link: i, State: state})
	}
	for i := range links {
		g.linkFacts(&links[i])
	}
	g.gpu.LinkCounts = columns(g.counters(links))
	g.gpu.NVLinks = probe.Some(links)
}

func (g *gpuReader) link(i int) string { return fmt.Sprintf("%s nvlink %d", g.object, i) }

func (g *gpuReader) linkFacts(l *probe.NVLink) {
	d, at, i := g.linkAsker(l), g.link(l.Link), l.Link
	l.Generation = fact(g.reader, d, at, linkVersion, linkGeneration, i)
	l.RemoteKind = fact(g.reader, d, at, linkRemote, remoteKind, i).Or("")
	l.Remote = fact(g.reader, d, at, linkRemoteAt, remoteBusID, i)
	caps := 0
	for c := range linkCaps {
		v, ok := try(g.reader, d, at, linkCapability, i, c)
		if !ok {
			return // a part of the bits would read as the rest being off
		}
		if v != 0 {
			caps |= 1 << c
		}
	}
	l.Caps = probe.Some(caps)
}

// linkAsker returns what to ask about a link. Of one that is down, a driver
// calls some questions invalid; there is no answer then, and nothing is amiss.
func (g *gpuReader) linkAsker(l *probe.NVLink) asker {
	if l.State == probe.LinkDown {
		return downLink{g.dev}
	}
	return g.dev
}

type downLink struct{ asker }

func (d downLink) ask(q question) (any, status) {
	v, s := d.asker.ask(q)
	if s == invalidArgument {
		s = notSupported
	}
	return v, s
}

// peers reads the driver's P2P status with other GPUs. It is one status for a
// pair of GPUs, and each question a trip to the GPU (1.6 ms on an H200), so each
// pair is asked once.
func (g *gpuReader) peers(others []int) {
	for _, other := range others {
		low, high := min(g.index, other), max(g.index, other)
		for c, name := range p2pCapabilities() {
			n, s := answerOf(g.dev, p2pStatusOf, other, c)
			f := failed{what: fmt.Sprintf("P2P %s towards gpu %d", name, high), object: objectOf(low), function: p2pStatusOf.function, s: s}
			if s.ends() {
				f.what, f.more = fmt.Sprintf("P2P towards gpu %d", high), "; one of the two does not answer"
			}
			ok, bad := g.classify(p2pStatusOf.what, s)
			if bad {
				g.pairs = append(g.pairs, pairFailed{low, high, c, f})
			}
			if s.ends() {
				break // Which of the two is gone is not said, so the next pair is tried.
			}
			if !ok {
				continue
			}
			if status := judge(g.reader, f.object, f.what, f.function, n, s, p2pStatus).Or(""); status != "" {
				g.asked = append(g.asked, probe.PeerAccess{GPU: other, Capability: name, Status: status})
			}
		}
	}
}

// join gives what was learnt about pairs of GPUs to both, and what was not to
// the lower one.
func join(gpus []gpuReader) {
	var bad []pairFailed
	for i := range gpus {
		for _, p := range gpus[i].asked {
			other := &gpus[p.GPU].gpu
			other.Peers = append(other.Peers, probe.PeerAccess{GPU: i, Capability: p.Capability, Status: p.Status})
		}
		gpus[i].gpu.Peers = append(gpus[i].gpu.Peers, gpus[i].asked...)
		bad = append(bad, gpus[i].pairs...)
	}
	slices.SortFunc(bad, func(a, b pairFailed) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), cmp.Compare(a.capability, b.capability))
	})
	for _, f := range bad {
		gpus[f.low].failed = append(gpus[f.low].failed, f.failed)
	}
}

func (g *gpuReader) fabric() {
	if g.ended {
		return
	}
	f, s := answerOf(g.dev, fabricV)
	if s == notRecorded || s == notAsked {
		f, s = answerOf(g.dev, fabricList)
	}
	if !g.known(fabricV.what, g.object, fabricV.function, s) {
		return
	}
	state, ok := judge(g.reader, g.object, fabricV.what, fabricV.function, f.state, success, fabricState).Get()
	if !ok {
		return
	}
	g.gpu.Fabric = &probe.Fabric{State: state}
	if f.state == fabricNotSupported {
		// The other members say nothing then.
		return
	}
	g.gpu.Fabric = &probe.Fabric{
		State: state, Status: probe.Some(f.status), ClusterUUID: f.cluster,
		CliqueID: f.clique, HealthMask: f.health,
	}
	if n, ok := f.summary.Get(); ok {
		g.gpu.Fabric.Health = judge(g.reader, g.object, fabricV.what, fabricV.function, n, success, fabricHealth).Or("")
	}
}
