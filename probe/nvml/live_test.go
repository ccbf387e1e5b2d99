package nvml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
)

// hgx is a recording of a made-up machine of n H200 on four NVSwitches, with
// counters as large as they get, for the tests and benchmarks of this file.
func hgx(n int) map[string]any {
	gpus := make([]any, n)
	for i := range gpus {
		gpus[i] = h200(i, n)
	}
	return map[string]any{
		"recording": 2, "driver": "580.159.04", "nvml": "13.580.159.04",
		"nvmlSystemGetConfComputeState": []int{0, 0, 0}, "gpus": gpus,
	}
}

func h200(i, n int) map[string]any {
	g := map[string]any{
		"nvmlDeviceGetPciInfo": map[string]any{"busId": fmt.Sprintf("00000000:%02X:00.0", 0x17+0x11*i)},
		"nvmlDeviceGetUUID":    fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i), "nvmlDeviceGetPersistenceMode": 1,
		"name": "NVIDIA H200", "nvmlDeviceGetCudaComputeCapability": []int{9, 0}, "nvmlDeviceGetPerformanceState": 0,
		"nvmlDeviceGetUtilizationRates": map[string]any{"gpu": 97}, "nvmlDeviceGetCurrentClocksEventReasons": 4,
		"nvmlDeviceGetCurrPcieLinkGeneration": 5, "nvmlDeviceGetMaxPcieLinkGeneration": 5, "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
		"nvmlDeviceGetCurrPcieLinkWidth": 16, "nvmlDeviceGetMaxPcieLinkWidth": 16, "nvmlDeviceGetPcieReplayCounter": 2,
		"nvmlDeviceGetMigMode": []int{0, 0}, "nvmlDeviceGetModuleId": i + 1, "nvmlDeviceGetComputeMode": 0,
		"nvmlDeviceGetBAR1MemoryInfo": map[string]any{"bar1Total": 274877906944}, "nvmlDeviceGetEccMode": []int{1, 1},
		"nvmlDeviceGetTotalEccErrors": map[string]any{"0/0": 1, "0/1": 12, "1/0": 0, "1/1": 3},
		"nvmlDeviceGetRemappedRows":   []int{1, 2, 0, 0},
		"nvmlDeviceGetGpuFabricInfoV": map[string]any{"state": 3, "status": 0, "cliqueId": 0, "clusterUuid": "00000000-0000-0000-0000-0000000000c1", "healthMask": 0xaa, "healthSummary": 1},
	}
	fields := map[string]any{"90/0": failure(notSupported), "170/0": failure(notSupported), "172/0": failure(notSupported),
		"173/0": 4, "179/0": 0, "180/0": 0, "197/0": 4294967295, "198/0": 12, "230/0": 0}
	links := []any{}
	for l := range 18 {
		links = append(links, map[string]any{
			"l": l, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkVersion": 6, "nvmlDeviceGetNvLinkRemoteDeviceType": 2,
			"nvmlDeviceGetNvLinkRemotePciInfo": map[string]any{"busId": fmt.Sprintf("00000000:%02X:00.0", 5+l%4)},
			"nvmlDeviceGetNvLinkCapability":    map[string]any{"0": 1, "1": 1, "2": 1, "3": 1, "4": 0, "5": 1},
		})
		fields[pairKey(164, l)], fields[pairKey(161, l)], fields[pairKey(162, l)], fields[pairKey(163, l)] = 26562, 0, 0, 12345
		for id := 138; id <= 141; id++ {
			fields[pairKey(id, l)] = uint64(98765432109876) + uint64(100*id+l)
		}
		for id := 206; id <= 222; id++ {
			fields[pairKey(id, l)] = failure(notSupported)
		}
	}
	g["links"] = append(links, map[string]any{"l": 18, "nvmlDeviceGetNvLinkState": failure(invalidArgument)})
	g["nvmlDeviceGetFieldValues"] = fields
	p2p := map[string]any{}
	for peer := range n {
		for c, status := range []int{0, 0, 0, 0, 5} {
			if peer != i {
				p2p[pairKey(peer, c)] = status
			}
		}
	}
	g["p2p"] = p2p
	return g
}

func textOf(t testing.TB, machine map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(machine)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fake is a driver that answers from a recording, late or never, or with an
// error.
type fake struct {
	*recording
	late   func(gpu int, q question) time.Duration // gpu -1 is the machine
	fail   func(gpu int, q question) status
	stuck  func(gpu int, q question) bool
	freed  chan struct{} // closed at the end of a test, so that stuck calls return
	closed atomic.Bool

	mu    sync.Mutex
	calls int
}

func newFake(t testing.TB, machine map[string]any) *fake {
	t.Helper()
	doc, root, err := parseJSON("fake", textOf(t, machine))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := newRecording(doc, root)
	if err != nil {
		t.Fatal(err)
	}
	return fakeOf(t, rec)
}

func fakeOf(t testing.TB, rec *recording) *fake {
	f := &fake{recording: rec, freed: make(chan struct{})}
	t.Cleanup(func() { close(f.freed) })
	return f
}

// meet delays or fails a call.
func (f *fake) meet(gpu int, q question) status {
	f.mu.Lock()
	f.calls++
	f.mu.Unlock()
	if f.late != nil {
		time.Sleep(f.late(gpu, q))
	}
	if f.stuck != nil && f.stuck(gpu, q) {
		<-f.freed
		return gpuLost
	}
	if f.fail != nil {
		return f.fail(gpu, q)
	}
	return success
}

func (f *fake) close() { f.closed.Store(true) }

func (f *fake) ask(q question) (any, status) {
	if s := f.meet(-1, q); s != success {
		return nil, s
	}
	return f.recording.ask(q)
}

func (f *fake) open(i int) (device, status) {
	if s := f.meet(i, question{function: openFunction}); s != success {
		return nil, s
	}
	d, s := f.recording.open(i)
	return &fakeGPU{d, f, i}, s
}

type fakeGPU struct {
	device
	f *fake
	i int
}

func (g *fakeGPU) ask(q question) (any, status) {
	if s := g.f.meet(g.i, q); s != success {
		return nil, s
	}
	return g.device.ask(q)
}

func (g *fakeGPU) fields(ids []field) []fieldAnswer {
	if s := g.f.meet(g.i, question{function: fieldsFunction, a: ids[0].id}); s != success {
		return slices.Repeat([]fieldAnswer{{s: s}}, len(ids))
	}
	return g.device.fields(ids)
}

// look reads the fake and records it, and demands that the recording says the
// same.
func (f *fake) look(t testing.TB, ctx context.Context, o Options) *probe.Inventory {
	t.Helper()
	var rec *recorder
	inv, err := readDriver(ctx, o, func() (session, *Unavailable) { return f, nil }, func(l library) library {
		rec = newRecorder(l)
		return rec
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := rec.document()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Replay("", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if d := cmp.Diff(encoded(t, inv), encoded(t, again)); d != "" {
		t.Errorf("the recording reads differently (-live +recording):\n%s", d)
	}
	return inv
}

func encoded(t testing.TB, inv *probe.Inventory) string {
	t.Helper()
	var b bytes.Buffer
	if err := inv.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLive(t *testing.T) {
	f := newFake(t, hgx(8))
	inv := f.look(t, t.Context(), Options{})
	if !f.closed.Load() {
		t.Error("not closed")
	}
	if len(inv.GPUs) != 8 || len(inv.NVSwitches) != 4 || inv.Settings.CC != probe.Some(false) {
		t.Errorf("%d GPUs, %d NVSwitches, cc %v", len(inv.GPUs), len(inv.NVSwitches), inv.Settings.CC)
	}
	if len(inv.Gaps) > 0 {
		t.Errorf("%+v", inv.Gaps)
	}
	g := inv.GPUs[3]
	if g.UUID != "GPU-00000000-0000-0000-0000-000000000003" || g.Addr != probe.Some(probe.MustBDF("4a:00.0")) || g.BAR1 != probe.Some(int64(256<<30)) ||
		g.Persistence != probe.Some(true) || g.ComputeMode != "default" || g.Recovery != "none" || len(g.Peers) != 35 || g.Fabric.Health != "healthy" {
		t.Errorf("%+v", g)
	}
	l := g.NVLinks.Or(nil)[17]
	if want := (probe.NVLink{
		Link: 17, State: "up", Generation: probe.Some(4), Signal: probe.Some(probe.Rate(26562e6)), RemoteKind: "nvswitch",
		Remote: probe.Some(probe.MustBDF("06:00.0")), Caps: probe.Some(probe.LinkCapValid | probe.LinkCapP2P | probe.LinkCapSysmem | probe.LinkCapP2PAtomics | probe.LinkCapSysmemAtomics),
	}); l != want {
		t.Errorf("%+v", l)
	}
	if c := g.LinkCounts; len(c.CRCFlit) != 1 || c.CRCFlit.At(4) != probe.Some(uint64(12345)) || len(c.DataTX) != 18 || c.DataTX.At(17) != probe.Some(uint64(98765432109876+13817)) || c.Malformed != nil {
		t.Errorf("%+v", c)
	}
	ecc := probe.ECC{Enabled: probe.Some(true), VolatileCorrected: probe.Some(uint64(1)), VolatileUncorrected: probe.Some(uint64(0)), AggregateCorrected: probe.Some(uint64(12)), AggregateUncorrected: probe.Some(uint64(3))}
	if *g.ECC != ecc || *g.Remapped != (probe.RemappedRows{Corrected: 1, Uncorrected: 2}) || g.PCIe.Correctable != probe.Some(uint64(4)) {
		t.Errorf("%+v %+v %+v", g.ECC, g.Remapped, g.PCIe)
	}
	// Reviews pass inventories on; they should stay of a size to look at.
	if n := len(encoded(t, inv)); n >= 64<<10 {
		t.Errorf("%d bytes of JSON", n)
	} else {
		t.Logf("%d bytes of JSON", n)
	}
}

// everyCall lists what is asked of a GPU of the recording, in order; of the links
// the first, one in the middle and the last.
func everyCall(t *testing.T) []question {
	t.Helper()
	f := newFake(t, hgx(2))
	var asked []question
	var mu sync.Mutex
	f.fail = func(gpu int, q question) status {
		mu.Lock()
		defer mu.Unlock()
		if q.function == p2pStatusOf.function {
			gpu, q.a = 0, 1 // either of the two is asked
		}
		if gpu == 0 && !slices.Contains(asked, q) {
			asked = append(asked, q)
		}
		return success
	}
	f.look(t, t.Context(), Options{})
	return slices.DeleteFunc(asked, func(q question) bool {
		return strings.Contains(q.function, "NvLink") && !slices.Contains([]int{0, 7, 17, 18}, q.a)
	})
}

// TestSilentGPU lets one of eight GPUs hang in each of its calls in turn.
func TestSilentGPU(t *testing.T) {
	machine := newFake(t, hgx(8))
	whole := machine.look(t, t.Context(), Options{})
	for _, hang := range everyCall(t) {
		synctest.Test(t, func(t *testing.T) {
			name := fmt.Sprintf("%s(%d, %d)", hang.function, hang.a, hang.b)
			f := fakeOf(t, machine.recording)
			pair := hang.function == p2pStatusOf.function
			f.late = func(int, question) time.Duration { return 100 * time.Microsecond }
			f.stuck = func(gpu int, q question) bool {
				if pair { // GPUs 3 and 6, whoever asks
					return q.function == hang.function && q.b == hang.b && min(gpu, q.a) == 3 && max(gpu, q.a) == 6
				}
				return gpu == 3 && q == hang
			}
			begin := time.Now()
			inv := f.look(t, t.Context(), Options{})
			if d := time.Since(begin); d >= time.Second {
				t.Errorf("%s: took %v", name, d)
			}
			if f.closed.Load() {
				t.Errorf("%s: closed under a call", name)
			}
			var gaps []string
			for _, g := range inv.Gaps {
				gaps = append(gaps, g.What+": "+g.Why)
				about := strings.HasPrefix(g.What, "gpu 3") || pair && strings.Contains(g.What, "P2P towards gpu")
				if !about || !strings.Contains(g.Why, hang.function) || !strings.Contains(g.Why, "no answer in time") || g.How == "" {
					t.Errorf("%s: gap %+v", name, g)
				}
			}
			if len(gaps) == 0 || len(gaps) > 1 && !pair {
				t.Errorf("%s: gaps %q", name, gaps)
			}
			lost := hang.function == openFunction || hang.function == busAddress.function
			if n := len(inv.GPUs); n != 8 && !lost || n != 7 && lost {
				t.Fatalf("%s: %d GPUs", name, n)
			}
			for _, g := range inv.GPUs {
				i := g.Index.Or(-1)
				want := whole.GPUs[i]
				if i == 3 {
					if g.Addr != want.Addr {
						t.Errorf("%s: forgot what it knew: %+v", name, g)
					}
					continue
				}
				if pair {
					// Which of the two was asked, and with whom before, is open.
					want.Peers, g.Peers = nil, nil
				}
				want.Peers = slices.DeleteFunc(slices.Clone(want.Peers), func(p probe.PeerAccess) bool { return p.GPU == 3 })
				if len(want.Peers) == 0 {
					want.Peers = nil
				}
				if !reflect.DeepEqual(g, want) {
					t.Errorf("%s: gpu %d differs:\n%s", name, i, cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", g)))
				}
			}
		})
	}
}

// TestLostGPU is the same with NVML's own word for it, and with errors that do
// not end the GPU.
func TestLostGPU(t *testing.T) {
	machine := newFake(t, hgx(2))
	for _, s := range []status{gpuLost, timedOut, noPermission, 16, unknownError} {
		for _, q := range everyCall(t) {
			name := fmt.Sprintf("%s(%d, %d) answers %d", q.function, q.a, q.b, s)
			f := fakeOf(t, machine.recording)
			f.fail = func(gpu int, x question) status {
				if x == q && gpu == 0 || x.function == q.function && x.b == q.b && q.function == p2pStatusOf.function {
					return s
				}
				return success
			}
			inv := f.look(t, t.Context(), Options{})
			if len(inv.Gaps) == 0 {
				t.Errorf("%s: no gap", name)
			}
			for _, g := range inv.Gaps {
				if !strings.HasPrefix(g.What, "gpu 0") || !strings.Contains(g.Why, q.function) || !strings.Contains(g.Why, fmt.Sprintf("NVML code %d,", s)) {
					t.Errorf("%s: gap %+v", name, g)
				}
			}
			gone := q.function == openFunction || s.ends() && q.function == busAddress.function
			if n := len(inv.GPUs); n != 2 && !gone || n != 1 && gone {
				t.Errorf("%s: %d GPUs", name, n)
			}
		}
	}
}

// TestNotSupported: what a board does not have is unknown, and nothing is amiss.
func TestNotSupported(t *testing.T) {
	f := newFake(t, hgx(2))
	f.fail = func(gpu int, q question) status {
		if q.function == openFunction || q.function == busAddress.function || q.function == deviceCount.function {
			return success
		}
		return notSupported
	}
	inv := f.look(t, t.Context(), Options{})
	if len(inv.Gaps) > 0 {
		t.Errorf("%+v", inv.Gaps)
	}
	want := probe.GPU{
		Index: probe.Some(0), Addr: probe.Some(probe.MustBDF("17:00.0")), MIG: probe.Some(false), NVLinks: probe.Some([]probe.NVLink{}),
		Origins: []probe.Origin{{Source: "nvml", Where: "gpu 0"}},
	}
	if g := inv.GPUs[0]; !reflect.DeepEqual(g, want) {
		t.Errorf("%+v", g)
	}
	if inv.Settings.CC != probe.Some(false) {
		t.Errorf("%+v", inv.Settings)
	}
}

// TestOldDriver: calls that the library lacks are one gap for all GPUs.
func TestOldDriver(t *testing.T) {
	m := hgx(8)
	for _, g := range m["gpus"].([]any) {
		g.(map[string]any)["nvmlDeviceGetCurrentClocksThrottleReasons"] = 1
	}
	f := newFake(t, m)
	f.fail = func(_ int, q question) status {
		switch q.function {
		case eventReasons.function, moduleID.function, fabricV.function, confCompute.function:
			return functionNotFound
		}
		return success
	}
	inv := f.look(t, t.Context(), Options{})
	if len(inv.Gaps) != 1 || inv.Gaps[0].Why != "not known to this driver: confidential computing, fabric state, module id" {
		t.Errorf("%+v", inv.Gaps)
	}
	if inv.GPUs[7].Events != probe.Some(uint64(1)) {
		t.Errorf("%+v", inv.GPUs[7])
	}
	// A field that the driver does not know is an invalid argument to it.
	f = newFake(t, hgx(2))
	for i := range f.gpus {
		maps.DeleteFunc(f.gpus[i].values, func(id field, _ fieldAnswer) bool { return id.id == fieldNVLinkSpeed })
		f.gpus[i].values[field{id: fieldRecoveryAction}] = fieldAnswer{s: invalidArgument}
		f.gpus[i].values[field{id: fieldNVLinkSpeedCommon}] = fieldAnswer{value: 25781}
		for l := range 18 {
			f.gpus[i].values[field{fieldNVLinkSpeed, l}] = fieldAnswer{s: invalidArgument}
		}
	}
	inv = f.look(t, t.Context(), Options{})
	if len(inv.Gaps) != 1 || inv.Gaps[0].Why != "not known to this driver: recovery action" {
		t.Errorf("%+v", inv.Gaps)
	}
	if l := inv.GPUs[1].NVLinks.Or(nil)[5]; l.Signal != probe.Some(probe.Rate(25781e6)) {
		t.Errorf("%+v", l)
	}
}

// TestManyErrors: a GPU that refuses everything is one gap for each code.
func TestManyErrors(t *testing.T) {
	f := newFake(t, hgx(2))
	f.fail = func(gpu int, q question) status {
		if gpu == 1 && q.function != openFunction && q.function != busAddress.function && q.function != p2pStatusOf.function {
			return 16
		}
		return success
	}
	inv := f.look(t, t.Context(), Options{})
	var what []string
	for _, g := range inv.Gaps {
		what = append(what, g.What+": "+g.Why)
	}
	if len(inv.Gaps) != 1 || inv.Gaps[0].What != "gpu 1 facts" || !strings.Contains(inv.Gaps[0].Why, "more calls: NVML code 16, reset required") {
		t.Errorf("%q", what)
	}
	if g := inv.GPUs[1]; !g.Addr.Known() || g.NVLinks.Known() {
		t.Errorf("%+v", g)
	}
}

func TestDownLinks(t *testing.T) {
	m := hgx(2)
	for _, l := range m["gpus"].([]any)[0].(map[string]any)["links"].([]any)[9:18] {
		l := l.(map[string]any)
		l["nvmlDeviceGetNvLinkState"] = 0
		for _, call := range []string{"nvmlDeviceGetNvLinkVersion", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkRemotePciInfo"} {
			l[call] = failure(invalidArgument)
		}
	}
	fields := m["gpus"].([]any)[0].(map[string]any)["nvmlDeviceGetFieldValues"].(map[string]any)
	for l := 9; l < 18; l++ {
		fields[pairKey(138, l)] = failure(invalidArgument)
		for id := range 300 {
			if id >= 206 && id <= 222 {
				fields[pairKey(id, l)] = failure(invalidArgument) // asked, since the generation is not known
			}
		}
	}
	inv := newFake(t, m).look(t, t.Context(), Options{})
	if len(inv.Gaps) > 0 {
		t.Errorf("%+v", inv.Gaps)
	}
	links := inv.GPUs[0].NVLinks.Or(nil)
	if len(links) != 18 || links[8].State != "up" || links[9].State != "down" || links[9].Signal.Known() || links[9].Generation.Known() || !links[9].Caps.Known() {
		t.Errorf("%+v", links)
	}
	if c := inv.GPUs[0].LinkCounts; c.DataTX.At(9).Known() || !c.DataTX.At(8).Known() || !c.Replay.At(9).Known() {
		t.Errorf("%+v", c)
	}
}

// TestBlackwell: generation 5 has other counters, and Grace a link to the CPU.
func TestBlackwell(t *testing.T) {
	m := hgx(1)
	g := m["gpus"].([]any)[0].(map[string]any)
	fields := g["nvmlDeviceGetFieldValues"].(map[string]any)
	fields["170/0"], fields["172/0"] = 10, 44712
	for _, l := range g["links"].([]any)[:18] {
		l := l.(map[string]any)
		l["nvmlDeviceGetNvLinkVersion"] = 7
		n := l["l"].(int)
		for id := 206; id <= 222; id++ {
			fields[pairKey(id, n)] = id
		}
		for id := 161; id <= 163; id++ {
			fields[pairKey(id, n)] = failure(notSupported)
		}
		fields[pairKey(220, n)], fields[pairKey(222, n)] = 0xfff, 3<<8|14
	}
	inv := newFake(t, m).look(t, t.Context(), Options{})
	if len(inv.Gaps) > 0 {
		t.Errorf("%+v", inv.Gaps)
	}
	gpu := inv.GPUs[0]
	if *gpu.C2C != (probe.C2C{Links: 10, PerLink: 44712e6}) {
		t.Errorf("%+v", gpu.C2C)
	}
	c := gpu.LinkCounts
	if c.Replay != nil || c.CRCFlit != nil || c.Malformed.At(17) != probe.Some(uint64(206)) || c.RecoveryFailed.At(0) != probe.Some(uint64(214)) || c.SymbolErrors.At(3) != probe.Some(uint64(221)) {
		t.Errorf("%+v", c)
	}
	if _, _, ok := probe.NVLinkBER(c.EffectiveBER.At(0).Or(0)); ok {
		t.Error("15e-255 is no error rate")
	}
	if m, e, ok := probe.NVLinkBER(c.SymbolBER.At(0).Or(0)); m != 3 || e != 14 || !ok {
		t.Errorf("%de-%d, %v", m, e, ok)
	}
}

// TestAmpere: up to generation 3 the error counters are calls of their own.
func TestAmpere(t *testing.T) {
	m := hgx(1)
	g := m["gpus"].([]any)[0].(map[string]any)
	for _, l := range g["links"].([]any)[:18] {
		l := l.(map[string]any)
		l["nvmlDeviceGetNvLinkVersion"] = 5
		l["nvmlDeviceGetNvLinkErrorCounter"] = map[string]any{"0": 1, "1": 2, "2": 3, "3": 4 + l["l"].(int)}
	}
	inv := newFake(t, m).look(t, t.Context(), Options{})
	if len(inv.Gaps) > 0 {
		t.Errorf("%+v", inv.Gaps)
	}
	c := inv.GPUs[0].LinkCounts
	if c.Replay.At(17) != probe.Some(uint64(1)) || c.Recovery.At(0) != probe.Some(uint64(2)) || c.CRCFlit.At(5) != probe.Some(uint64(3)) || c.CRCData.At(5) != probe.Some(uint64(9)) {
		t.Errorf("%+v", c)
	}
}

// TestColumns holds the list of columns against the struct and the reader's
// table against the list.
func TestColumns(t *testing.T) {
	var c probe.NVLinkCounts
	v := reflect.ValueOf(&c).Elem()
	i := 0
	names := map[string]bool{}
	for name, column := range c.Columns() {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if v.Field(i).Addr().Interface() != any(column) || tag != name {
			t.Errorf("column %d: %s is not field %s", i, name, tag)
		}
		names[name] = false
		i++
	}
	if i != v.NumField() {
		t.Errorf("%d columns of %d", i, v.NumField())
	}
	for _, l := range linkCounters() {
		if _, ok := names[l.name]; !ok {
			t.Errorf("%s is no column", l.name)
		}
		names[l.name] = true
	}
	for name, filled := range names {
		if !filled {
			t.Errorf("nothing fills %s", name)
		}
	}
}

func TestOpening(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		name       string
		mode       int              // persistence mode of the machine
		takes      [3]time.Duration // to attach
		found      string
		atLeast    time.Duration
		lessThan   time.Duration
		canceledAt time.Duration
	}{
		{"at once", 1, [3]time.Duration{}, "0 1 2", 0, 10 * time.Millisecond, 0},
		{"one hangs while the others keep their state", 1, [3]time.Duration{0, never, 0}, "0 2", DefaultCall, time.Second, 0},
		{"two hang", 1, [3]time.Duration{never, never, 0}, "2", DefaultCall, time.Second, 0},
		{"without persistence mode attaching takes its time", 0, [3]time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second}, "0 1 2", 6 * time.Second, 7 * time.Second, 0},
		{"one is in use, the others attach", 0, [3]time.Duration{0, 2 * time.Second, 2 * time.Second}, "0 1 2", 2 * time.Second, 3 * time.Second, 0},
		{"without persistence mode one hangs", 0, [3]time.Duration{0, never, time.Second}, "0 2", defaultOpen, defaultOpen + time.Second, 0},
		{"all hang", 1, [3]time.Duration{never, never, never}, "", defaultOpen, defaultOpen + time.Second, 0},
		{"the first word comes late", 1, [3]time.Duration{2 * time.Second, never, never}, "0", 2 * time.Second, 3 * time.Second, 0},
		{"the caller gives up", 0, [3]time.Duration{never, never, 0}, "2", 3 * time.Second, 3*time.Second + time.Millisecond, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := hgx(3)
			for _, g := range m["gpus"].([]any) {
				g.(map[string]any)["nvmlDeviceGetPersistenceMode"] = c.mode
			}
			f := newFake(t, m)
			f.stuck = func(gpu int, q question) bool { return q.function == openFunction && c.takes[gpu] == never }
			f.late = func(gpu int, q question) time.Duration {
				if q.function != openFunction || c.takes[gpu] == never {
					return 0
				}
				return c.takes[gpu]
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if c.canceledAt > 0 {
				time.AfterFunc(c.canceledAt, stop)
			}
			begin := time.Now()
			inv := f.look(t, ctx, Options{})
			if d := time.Since(begin); d < c.atLeast || d >= c.lessThan {
				t.Errorf("%s: took %v", c.name, d)
			}
			var found []string
			for _, g := range inv.GPUs {
				found = append(found, g.Index.String())
			}
			if got := strings.Join(found, " "); got != c.found {
				t.Errorf("%s: found %q", c.name, got)
			}
		})
	}
}

// TestSlowGPU: a GPU that answers every call, but late, is given up as well.
func TestSlowGPU(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, hgx(2))
		f.late = func(gpu int, q question) time.Duration {
			if gpu == 1 && q.function != openFunction {
				return 700 * time.Millisecond
			}
			return 0
		}
		begin := time.Now()
		inv := f.look(t, t.Context(), Options{})
		if d := time.Since(begin); d > defaultTotal {
			t.Errorf("took %v", d)
		}
		if g := inv.GPUs[1]; g.Name != "NVIDIA H200" || g.NVLinks.Known() || len(inv.Gaps) != 1 {
			t.Errorf("%+v, %+v", g, inv.Gaps)
		}
		// What one GPU does not say is not missing from the other.
		if g := inv.GPUs[0]; len(g.NVLinks.Or(nil)) != 18 {
			t.Errorf("%+v", g)
		}
		time.Sleep(time.Second) // for the call that was left behind
	})
}

// TestTurns: a slow GPU gives its turn to the others, and GPUs that answer are
// read one after the other.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name   string
		late   time.Duration // each call of GPU 0
		within time.Duration // the others are through
	}{
		{"quick", 100 * time.Microsecond, 200 * time.Millisecond},
		{"sluggish", 40 * time.Millisecond, longestTurn + 500*time.Millisecond},
		{"slow", 400 * time.Millisecond, handOver + 700*time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t, hgx(4))
			begin := time.Now()
			var mu sync.Mutex
			last := map[int]time.Duration{}
			most, running := 0, map[int]bool{}
			f.late = func(gpu int, q question) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				last[gpu] = time.Since(begin)
				if q.function == productName.function {
					running[gpu] = true
					most = max(most, len(running))
				}
				if q.function == fieldsFunction && q.a == fieldNVLinkSpeedCommon {
					delete(running, gpu)
				}
				switch {
				case gpu > 0 && q.function == openFunction:
					return time.Millisecond // so that GPU 0 has the first turn
				case gpu == 0 && !slices.Contains([]string{openFunction, busAddress.function, uuid.function, persistence.function}, q.function):
					return c.late
				}
				return 100 * time.Microsecond
			}
			f.look(t, t.Context(), Options{})
			for i := 1; i < 4; i++ {
				if last[i] > c.within {
					t.Errorf("%s: gpu %d was asked until %v", c.name, i, last[i])
				}
			}
			if side := most > 1; side != (c.late > time.Millisecond) {
				t.Errorf("%s: %d GPUs side by side", c.name, most)
			}
			time.Sleep(time.Second)
		})
	}
}

// TestSilentDriver: the machine's own calls hang.
func TestSilentDriver(t *testing.T) {
	for _, c := range []struct {
		call anyCall
		gpus int
	}{{driverVersion, 0}, {deviceCount, 0}, {confCompute, 2}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(t, hgx(2))
			f.stuck = func(_ int, q question) bool { return q.function == c.call.name() }
			inv := f.look(t, t.Context(), Options{})
			if len(inv.GPUs) != c.gpus || len(inv.Gaps) != 1 || !strings.Contains(inv.Gaps[0].Why, c.call.name()+": no answer in time") {
				t.Errorf("%s: %d GPUs, %+v", c.call.name(), len(inv.GPUs), inv.Gaps)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		begin := time.Now()
		_, err := readDriver(t.Context(), Options{}, func() (session, *Unavailable) { <-free; return nil, unavailable(unknownError) }, nil)
		if err == nil || !strings.Contains(err.Error(), "nvmlInit_v2: no answer in time") || time.Since(begin) != defaultOpen {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		close(free)
	})
}

func TestCountFails(t *testing.T) {
	f := newFake(t, hgx(2))
	f.fail = func(gpu int, q question) status {
		if q.function == deviceCount.function {
			return unknownError
		}
		return success
	}
	inv := f.look(t, t.Context(), Options{})
	if len(inv.GPUs) != 0 || len(inv.Gaps) != 1 || inv.Gaps[0].What != "GPU count" || inv.Gaps[0].Why != "nvmlDeviceGetCount: NVML code 999, unknown error" {
		t.Errorf("%+v", inv)
	}
}

func TestUnavailable(t *testing.T) {
	for s, want := range map[status]string{
		libraryNotFound: "nvmlInit_v2: NVML code 12, library not found: libnvidia-ml.so.1 cannot be loaded",
		driverNotLoaded: "nvmlInit_v2: NVML code 9, driver not loaded: the kernel module is not there",
		versionsDiffer:  "nvmlInit_v2: NVML code 18, driver and library versions differ: the kernel module and libnvidia-ml.so.1 are of different releases",
		noPermission:    "nvmlInit_v2: NVML code 4, no permission: /dev/nvidiactl cannot be used",
		operatingSystem: "nvmlInit_v2: NVML code 17, blocked by the operating system: /dev/nvidiactl cannot be used",
		noAnswer:        "nvmlInit_v2: no answer in time",
		unknownError:    "nvmlInit_v2: NVML code 999, unknown error",
		4711:            "nvmlInit_v2: NVML code 4711, an error without a name here",
	} {
		_, err := readDriver(t.Context(), Options{}, func() (session, *Unavailable) { return nil, unavailable(s) }, nil)
		var u *Unavailable
		if !errors.As(err, &u) || err.Error() != want || u.How == "" || u.NoDriver() != (s == libraryNotFound || s == driverNotLoaded) {
			t.Errorf("%d: %v, %+v", s, err, u)
			continue
		}
		if g := u.Gap(); g.Why != want || g.What == "" || g.Origin.Source != "nvml" {
			t.Errorf("%+v", g)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Read(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestThisMachine asks the driver of the machine that runs the test, or, as in
// most places, learns that there is none.
func TestThisMachine(t *testing.T) {
	var b bytes.Buffer
	inv, err := Record(t.Context(), &b, Options{})
	var u *Unavailable
	if errors.As(err, &u) {
		if b.Len() > 0 || inv != nil {
			t.Errorf("wrote %q", b.Bytes())
		}
		t.Logf("%v (%s)", err, u.How)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := Replay("", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(encoded(t, inv), encoded(t, again)); d != "" {
		t.Errorf("the recording reads differently:\n%s", d)
	}
}

// TestHangingInRealTime is TestSilentGPU by the clock on the wall.
func TestHangingInRealTime(t *testing.T) {
	f := newFake(t, hgx(8))
	f.late = func(int, question) time.Duration { return 20 * time.Microsecond }
	f.stuck = func(gpu int, q question) bool { return gpu == 5 && q.function == linkVersion.function && q.a == 7 }
	begin := time.Now()
	inv := f.look(t, t.Context(), Options{})
	d := time.Since(begin)
	t.Logf("%v", d)
	// The rest of the machine that runs the test may be busy; a GPU waited for
	// without end would take for ever.
	if d > 3*time.Second {
		t.Errorf("took %v", d)
	}
	if g := inv.GPUs[5]; len(inv.GPUs) != 8 || len(g.NVLinks.Or(nil)) != 18 || !g.NVLinks.Or(nil)[6].Generation.Known() || g.NVLinks.Or(nil)[7].Generation.Known() {
		t.Errorf("%+v", g)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(smallRecording))
	f.Add([]byte(`{"recording": 2, "gpus": [{"links": [{"l": 0, "nvmlDeviceGetNvLinkState": 0}], "nvmlDeviceGetFieldValues": {"230/0": 1, "164/0": {"error": "", "code": 2}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, root, err := parseJSON("f", text)
		if err != nil {
			return
		}
		rec, err := newRecording(doc, root)
		if err != nil || rec.form != lastForm || len(rec.gpus) > 16 {
			return
		}
		r := newRecorder(rec)
		first := read(r, "", inOrder)
		again, err := r.document()
		if err != nil {
			t.Fatal(err)
		}
		if first.Validate() != nil {
			return
		}
		second, err := Replay("", again)
		if err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
		if d := cmp.Diff(encoded(t, first), encoded(t, second)); d != "" {
			t.Errorf("the recording of a recording reads differently:\n%s", d)
		}
	})
}

func benchmarkRead(b *testing.B, stuck func(int, question) bool, o Options) {
	f := newFake(b, hgx(8))
	f.stuck = stuck
	b.ReportAllocs()
	for b.Loop() {
		inv, err := readDriver(b.Context(), o, func() (session, *Unavailable) { return f, nil }, func(l library) library { return l })
		if err != nil || len(inv.GPUs) != 8 {
			b.Fatal(len(inv.GPUs), err)
		}
	}
}

// BenchmarkRead is our own share of reading 8 GPUs.
func BenchmarkRead(b *testing.B) { benchmarkRead(b, nil, Options{}) }

// BenchmarkReadHanging waits 50 ms for one GPU that hangs.
func BenchmarkReadHanging(b *testing.B) {
	benchmarkRead(b, func(gpu int, q question) bool { return gpu == 2 && q.function == performance.function }, Options{Call: 50 * time.Millisecond})
}

func BenchmarkReplayHGX(b *testing.B) {
	text := textOf(b, hgx(8))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Replay("nvml.json", text); err != nil {
			b.Fatal(err)
		}
	}
}
