package nvml

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/fixtures"
	"github.com/ncclmap/ncclmap/fixtures/golden"
	"github.com/ncclmap/ncclmap/probe"
)

const capture = "../../../shared/captures/2xh200-vm/nvml-calls.json"

func TestCapture(t *testing.T) {
	text, err := os.ReadFile(capture)
	if err != nil {
		t.Skipf("the recording is not here: %v", err)
	}
	checkVM(t, text)
}

func TestEmbeddedRecording(t *testing.T) { checkVM(t, embedded(t)) }

func embedded(t testing.TB) []byte {
	t.Helper()
	m, err := fixtures.Load("2xh200-vm")
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.File("nvml.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func checkVM(t *testing.T, text []byte) {
	t.Helper()
	inv, err := Replay("nvml.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.GPUs) != 2 {
		t.Fatalf("%d GPUs", len(inv.GPUs))
	}
	for i, g := range inv.GPUs {
		module, peer := []int{1, 3}[i], 1-i
		want := probe.GPU{
			Index: probe.Some(i), Addr: probe.Some(probe.BDF{Dev: uint8(6 + i)}), Name: "NVIDIA H200", CC: probe.Some(90),
			PState: probe.Some(0), Events: probe.Some(uint64(probe.ClockEventIdle)),
			Current: probe.LinkOfGen(5, 16), Max: probe.LinkOfGen(5, 16), BoardMax: probe.PCIeLink{Speed: probe.LinkOfGen(5, 16).Speed},
			Fabric: &probe.Fabric{State: "completed", Status: probe.Some(0), CliqueID: probe.Some(uint32(0)), HealthMask: probe.Some(uint32(0))},
			MIG:    probe.Some(false), ModuleID: probe.Some(module), Replays: probe.Some(uint64(1 - i)),
			Peers: []probe.PeerAccess{
				{GPU: peer, Capability: "atomics", Status: "ok"}, {GPU: peer, Capability: "nvlink", Status: "ok"},
				{GPU: peer, Capability: "pci", Status: "not supported"},
				{GPU: peer, Capability: "read", Status: "ok"}, {GPU: peer, Capability: "write", Status: "ok"},
			},
			Origins: []probe.Origin{{Source: "nvml", Where: fmt.Sprintf("nvml.json:gpu %d", i)}},
		}
		links := g.NVLinks.Or(nil)
		g.NVLinks = probe.Opt[[]probe.NVLink]{}
		var a, b bytes.Buffer
		for _, one := range []struct {
			g probe.GPU
			b *bytes.Buffer
		}{{want, &a}, {g, &b}} {
			if err := (&probe.Inventory{GPUs: []probe.GPU{one.g}}).Encode(one.b); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(a.String(), b.String()); d != "" {
			t.Errorf("gpu %d:\n%s", i, d)
		}
		if len(links) != 18 {
			t.Errorf("gpu %d: %d links", i, len(links))
		}
		for n, l := range links {
			if want := (probe.NVLink{Link: n, State: probe.LinkUp, Generation: probe.Some(4), RemoteKind: probe.RemoteSwitch}); l != want {
				t.Errorf("gpu %d: %+v", i, l)
			}
		}
	}
	if inv.Runtime.Driver != "580.159.04" || inv.Runtime.NVML != "13.580.159.04" {
		t.Errorf("%+v", inv.Runtime)
	}
	if len(inv.Gaps) != 1 || inv.Gaps[0].Why != "not recorded: UUID, utilization" {
		t.Errorf("%+v", inv.Gaps)
	}
}

// recordedVM is what Record wrote on such a machine, UUIDs replaced.
const recordedVM = "testdata/2xh200-vm.json"

func TestRecordedMachine(t *testing.T) {
	text, err := os.ReadFile(recordedVM)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := Replay("nvml.json", text)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "2xh200-vm.json", []byte(encoded(t, inv)))
	if len(inv.Gaps) > 0 {
		t.Errorf("%+v", inv.Gaps)
	}
	// The recording of another pair of GPUs in the first form says the same, as
	// far as it goes, but for what differs from board to board.
	old, err := Replay("nvml.json", embedded(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range inv.GPUs {
		a, b := inv.GPUs[i], old.GPUs[i]
		a.UUID, a.Utilization, a.Persistence, a.BAR1, a.ComputeMode, a.Recovery = "", b.Utilization, b.Persistence, b.BAR1, "", ""
		a.ECC, a.Remapped, a.PCIe, a.LinkCounts = nil, nil, nil, nil
		a.ModuleID, a.Replays = b.ModuleID, b.Replays
		links := slices.Clone(a.NVLinks.Or(nil))
		for l := range links {
			links[l].Signal, links[l].Caps = probe.Opt[probe.Rate]{}, probe.Opt[int]{}
		}
		a.NVLinks = probe.Some(links)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("gpu %d:\n%s", i, cmp.Diff(fmt.Sprintf("%+v", b), fmt.Sprintf("%+v", a)))
		}
	}
}

// one replays a recording of one GPU with the given members.
func one(t *testing.T, members string) (probe.GPU, []probe.Gap) {
	t.Helper()
	inv, err := Replay("r", []byte(`{"gpus": [{`+members+`}]}`))
	if err != nil {
		t.Fatalf("%s: %v", members, err)
	}
	return inv.GPUs[0], inv.Gaps
}

func why(gaps []probe.Gap) string {
	var out []string
	for _, g := range gaps {
		if !strings.HasPrefix(g.Why, "not recorded: ") {
			out = append(out, g.What+": "+g.Why)
		}
	}
	return strings.Join(out, "; ")
}

func TestLinkEnds(t *testing.T) {
	link := func(n int, state string) string {
		return fmt.Sprintf(`{"l": %d, "nvmlDeviceGetNvLinkState": %s}`, n, state)
	}
	fail := func(code int) string { return fmt.Sprintf(`{"error": "e", "code": %d}`, code) }
	for _, c := range []struct {
		name  string
		links []string
		want  string // states, or "unknown"
		gap   string // part of the gap
	}{
		{"no NVLink", []string{link(0, fail(3))}, "", ""},
		{"end by argument", []string{link(0, "1"), link(1, "0"), link(2, fail(2))}, "up down", ""},
		{"end by support", []string{link(0, "1"), link(1, fail(3))}, "up", ""},
		{"a sleeping link is up", []string{link(0, "2"), link(1, fail(2))}, "up", ""},
		{"bad argument on the first", []string{link(0, fail(2))}, "unknown", "gpu 0 nvlink 0 state: nvmlDeviceGetNvLinkState: NVML code 2, invalid argument"},
		{"lost GPU", []string{link(0, "1"), link(1, fail(15)), link(2, fail(2))}, "unknown", "gpu 0 nvlink 1 state: nvmlDeviceGetNvLinkState: NVML code 15, GPU is lost"},
		{"cut off", []string{link(0, "1")}, "unknown", "gpu 0 nvlink 1 state: nvmlDeviceGetNvLinkState: the call was not recorded"},
		{"a hole", []string{link(0, "1"), link(2, fail(2))}, "unknown", "gpu 0 nvlink 1 state: nvmlDeviceGetNvLinkState: the call was not recorded"},
		{"odd state", []string{link(0, "7"), link(1, fail(2))}, "unknown", "NVLink state 7"},
		{"none recorded", nil, "unknown", ""},
	} {
		g, gaps := one(t, `"links": [`+strings.Join(c.links, ", ")+`]`)
		got := "unknown"
		if l, ok := g.NVLinks.Get(); ok {
			var states []string
			for _, x := range l {
				states = append(states, x.State)
			}
			got = strings.Join(states, " ")
		}
		if w := why(gaps); got != c.want || !strings.Contains(w, c.gap) || c.gap == "" && w != "" {
			t.Errorf("%s: %q, gaps %q", c.name, got, w)
		}
	}
	var all []string
	for i := range maxLinks {
		all = append(all, link(i, "1"))
	}
	if g, gaps := one(t, `"links": [`+strings.Join(all, ", ")+`]`); len(g.NVLinks.Or(nil)) != maxLinks || why(gaps) != "" {
		t.Errorf("as many links as NVML knows: %d, %q", len(g.NVLinks.Or(nil)), why(gaps))
	}
}

func TestLinkFacts(t *testing.T) {
	g, gaps := one(t, `"links": [
		{"l": 0, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkVersion": 5, "nvmlDeviceGetNvLinkRemoteDeviceType": 0, "nvmlDeviceGetNvLinkRemotePciInfo": {"busId": "00000000:1B:00.0"}},
		{"l": 1, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkVersion": 0, "nvmlDeviceGetNvLinkRemoteDeviceType": 1, "nvmlDeviceGetNvLinkRemotePciInfo": {"busId": "00000006:00:00.1"}},
		{"l": 2, "nvmlDeviceGetNvLinkState": 0, "nvmlDeviceGetNvLinkVersion": 9, "nvmlDeviceGetNvLinkRemoteDeviceType": 255, "nvmlDeviceGetNvLinkRemotePciInfo": {"error": "Not Supported", "code": 3}},
		{"l": 3, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkVersion": 8, "nvmlDeviceGetNvLinkRemoteDeviceType": 5, "nvmlDeviceGetNvLinkRemotePciInfo": {"busId": "FFFFFFF:FF:FF.0"}},
		{"l": 4, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkRemotePciInfo": {"busId": "nowhere"}},
		{"l": 5, "nvmlDeviceGetNvLinkState": {"error": "Invalid Argument", "code": 2}}]`)
	want := []probe.NVLink{
		{Link: 0, State: "up", Generation: probe.Some(3), RemoteKind: "gpu", Remote: probe.Some(probe.MustBDF("1b:00.0"))},
		{Link: 1, State: "up", RemoteKind: "cpu", Remote: probe.Some(probe.MustBDF("0006:00:00.1"))},
		{Link: 2, State: "down"},
		{Link: 3, State: "up", Generation: probe.Some(6)},
		{Link: 4, State: "up"},
	}
	if got := g.NVLinks.Or(nil); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, part := range []string{"nvlink 2 NVLink version: NVLink version 9", "nvlink 3 NVLink remote device type", "nvlink 4 NVLink remote PCI address"} {
		if !strings.Contains(why(gaps), part) {
			t.Errorf("no gap %q in %q", part, why(gaps))
		}
	}
}

func TestLinkGenerations(t *testing.T) {
	for version, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 6, 0: 0} {
		if g, err := linkGeneration(version); err != nil || g.Or(0) != want {
			t.Errorf("version %d: %v, %v", version, g, err)
		}
	}
}

func TestFacts(t *testing.T) {
	g, gaps := one(t, `"name": "NVIDIA A100-SXM4-80GB", "nvmlDeviceGetUUID": "GPU-1",
		"nvmlDeviceGetPciInfo": {"busId": "00000000:C7:00.0"}, "nvmlDeviceGetCudaComputeCapability": [8, 0],
		"nvmlDeviceGetMigMode": [1, 1], "nvmlDeviceGetPerformanceState": 0, "nvmlDeviceGetUtilizationRates": {"gpu": 97, "memory": 40},
		"nvmlDeviceGetCurrentClocksThrottleReasons": 0, "nvmlDeviceGetCurrPcieLinkGeneration": 3, "nvmlDeviceGetMaxPcieLinkGeneration": 4,
		"nvmlDeviceGetGpuMaxPcieLinkGeneration": 4, "nvmlDeviceGetCurrPcieLinkWidth": 8, "nvmlDeviceGetMaxPcieLinkWidth": 16,
		"nvmlDeviceGetPcieReplayCounter": 18446744073709551615, "fabric_state": [2, 0], "other": {"a": [1, {"b": null}]}`)
	if g.UUID != "GPU-1" || g.Addr != probe.Some(probe.MustBDF("c7:00.0")) || g.CC != probe.Some(80) || g.MIG != probe.Some(true) || !g.Busy() ||
		g.Current != probe.LinkOfGen(3, 8) || g.Max != probe.LinkOfGen(4, 16) || g.BoardMax.Speed != probe.LinkOfGen(4, 16).Speed || g.Replays != probe.Some(uint64(1<<64-1)) {
		t.Errorf("%+v", g)
	}
	if g.Fabric == nil || g.Fabric.State != "in progress" || g.Fabric.CliqueID.Known() {
		t.Errorf("%+v", g.Fabric)
	}
	if why(gaps) != "" {
		t.Error(why(gaps))
	}
	// What a board does not have is unknown and no gap; MIG it then has not on.
	no := `{"error": "Not Supported", "code": 3}`
	g, gaps = one(t, strings.ReplaceAll(`"nvmlDeviceGetMigMode": NO, "nvmlDeviceGetModuleId": NO, "fabric_state": NO, "nvmlDeviceGetPerformanceState": NO, "nvmlDeviceGetCurrPcieLinkWidth": 0, "nvmlDeviceGetCurrPcieLinkGeneration": 0`, "NO", no))
	if g.MIG != probe.Some(false) || g.ModuleID.Known() || g.Fabric != nil || g.PState.Known() || g.Current.Speed.Known() || g.Current.Width.Known() || why(gaps) != "" {
		t.Errorf("%+v, %q", g, why(gaps))
	}
	// Values that mean nothing are gaps.
	g, gaps = one(t, `"nvmlDeviceGetMigMode": [4, 0], "nvmlDeviceGetPerformanceState": 16, "nvmlDeviceGetCurrPcieLinkWidth": 3, "nvmlDeviceGetCurrPcieLinkGeneration": 9,
		"nvmlDeviceGetCudaComputeCapability": [0, 77], "nvmlDeviceGetPciInfo": {"busId": "x"}, "nvmlDeviceGetModuleId": -1, "fabric_state": [9, 0],
		"nvmlDeviceGetUtilizationRates": {"gpu": 101}, "name": {"error": "Unknown Error", "code": 999}`)
	for _, part := range []string{"MIG mode 4", "performance state 16", "PCIe width 3", "PCIe generation 9", "compute capability 0.77", "PCI address", "module id", "fabric state 9", "utilization", "name: nvmlDeviceGetName: NVML code 999, unknown error"} {
		if !strings.Contains(why(gaps), part) {
			t.Errorf("no gap %q in %q", part, why(gaps))
		}
	}
	if g.MIG.Known() || g.CC.Known() || g.Addr.Known() || g.Fabric != nil {
		t.Errorf("%+v", g)
	}
	if g, _ := one(t, `"nvmlDeviceGetPerformanceState": 32, "fabric_state": [0, 0, 0, 0]`); g.PState.Known() || g.Fabric.State != "not supported" || g.Fabric.Status.Known() {
		t.Errorf("%+v", g)
	}
}

// TestSecondForm checks the values that only the second form holds.
func TestSecondForm(t *testing.T) {
	two := func(members string) (probe.GPU, string) {
		t.Helper()
		inv, err := Replay("r", []byte(`{"recording": 2, "gpus": [{`+members+`}]}`))
		if err != nil {
			t.Fatalf("%s: %v", members, err)
		}
		return inv.GPUs[0], why(inv.Gaps)
	}
	g, gaps := two(`"nvmlDeviceGetComputeMode": 3, "nvmlDeviceGetPersistenceMode": 0, "nvmlDeviceGetEccMode": [0, 1],
		"nvmlDeviceGetRemappedRows": [0, 513, 1, 1], "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": 0},
		"nvmlDeviceGetFieldValues": {"230/0": 3, "90/0": 0}, "nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0, "healthSummary": 3}`)
	if g.ComputeMode != "exclusive process" || g.Persistence != probe.Some(false) || g.BAR1.Known() || g.Recovery != "drain P2P" || g.Fabric.Health != "limited capacity" ||
		*g.ECC != (probe.ECC{Enabled: probe.Some(false), Pending: probe.Some(true)}) || *g.Remapped != (probe.RemappedRows{Uncorrected: 513, Pending: true, Failure: true}) || gaps != "" {
		t.Errorf("%+v %+v %+v, %s", g, g.ECC, g.Remapped, gaps)
	}
	g, gaps = two(`"nvmlDeviceGetComputeMode": 9, "nvmlDeviceGetPersistenceMode": 2, "nvmlDeviceGetEccMode": [7, 7], "nvmlDeviceGetRemappedRows": [-1, 0, 0, 0],
		"nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": 18446744073709551615}, "nvmlDeviceGetFieldValues": {"230/0": 99, "170/0": 1000, "172/0": 5, "164/0": 99999999},
		"links": [{"l": 0, "nvmlDeviceGetNvLinkState": 1}, {"l": 1, "nvmlDeviceGetNvLinkState": {"error": "", "code": 2}}],
		"nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0, "healthSummary": 9}`)
	for _, part := range []string{"compute mode 9: unknown", "persistence mode: 2: neither off nor on", "ECC mode: 7", "remapped rows: [-1 0 0 0]: negative", "BAR1 size: 18446744073709551615 bytes", "recovery action 99: unknown", "C2C links: 1000 links", "NVLink speed: 99999999 MB/s", "fabric health 9: unknown"} {
		if !strings.Contains(gaps, part) {
			t.Errorf("no gap %q in %q", part, gaps)
		}
	}
	if g.ECC != nil || g.Remapped != nil || g.BAR1.Known() || g.C2C != nil || g.NVLinks.Or(nil)[0].Signal.Known() || g.Fabric == nil {
		t.Errorf("%+v", g)
	}
	// The first form has no place for these, whatever it holds under their names.
	if g, gaps := one(t, `"nvmlDeviceGetComputeMode": [], "nvmlDeviceGetRemappedRows": 7, "nvmlDeviceGetFieldValues": 1`); g.ComputeMode != "" || g.Remapped != nil || why(gaps) != "" {
		t.Errorf("%+v, %+v", g, gaps)
	}
	// What a recording of the second form lacks is said.
	inv, err := Replay("r", []byte(`{"recording": 2, "gpus": [{}]}`))
	if err != nil || len(inv.Gaps) != 1 || !strings.Contains(inv.Gaps[0].Why, "ECC errors, ECC mode") || !strings.Contains(inv.Gaps[0].Why, "recovery action") {
		t.Errorf("%+v, %v", inv.Gaps, err)
	}
	// A refused handle is a gap and no GPU.
	inv, err = Replay("r", []byte(`{"recording": 2, "gpus": [{"error": "GPU is lost", "code": 15}, {}]}`))
	if err != nil || len(inv.GPUs) != 1 || inv.GPUs[0].Index != probe.Some(1) || !strings.Contains(why(inv.Gaps), "gpu 0 handle: nvmlDeviceGetHandleByIndex: NVML code 15, GPU is lost; nothing more was asked of it") {
		t.Errorf("%+v, %v", inv, err)
	}
}

func TestPeers(t *testing.T) {
	inv, err := Replay("", []byte(`{"gpus": [{"p2p": {"1/0": 4, "1/1": 6, "1/2": 9, "1/3": {"error": "e", "code": 999}, "1/4": 1, "1/7": 0, "5/0": 0}}, {}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []probe.PeerAccess{{GPU: 1, Capability: "pci", Status: "chipset not supported"}, {GPU: 1, Capability: "read", Status: "disabled by registry key"}}
	if got := inv.GPUs[0].Peers; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, part := range []string{"gpu 0 P2P nvlink towards gpu 1: P2P status", "gpu 0 P2P atomics towards gpu 1: nvmlDeviceGetP2PStatus: NVML code 999"} {
		if !strings.Contains(why(inv.Gaps), part) {
			t.Errorf("no gap %q in %q", part, why(inv.Gaps))
		}
	}
	if inv.GPUs[0].Origins[0].Where != "gpu 0" {
		t.Errorf("%+v", inv.GPUs[0].Origins)
	}
}

func TestMalformed(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for text, want := range map[string]string{
		``:                                "r:1:1: the document is cut off",
		`{"gpus": [`:                      "r:1:11: the document is cut off",
		"{\n \"gpus\": [}":                "r:2:11: invalid character",
		`[]`:                              "r:1:1: a recording is an object",
		`{"driver": "1"}`:                 "r:1:1: no list of gpus",
		"{\n\"gpus\": 5}":                 "r:2:9: no list of gpus",
		`{"gpus": [], "gpus": []}`:        `r:1:14: "gpus" appears twice`,
		`{"gpus": []} {}`:                 "text after the document",
		`{"gpus": [], "x": ` + deep + `}`: "nested deeper than 32 levels",
		`{"gpus": [7]}`:                   "r:1:11: a GPU is an object",
		`{"gpus": [], "driver": 580}`:     "r:1:24: driver: want a line of text",
		`{"gpus": [{"name": "a\u0007"}]}`: "r:1:20: name: want a line of text",
		"{\"gpus\": [{\n\"nvmlDeviceGetCurrPcieLinkWidth\": \"x16\"}]}":                                                                  `r:2:35: nvmlDeviceGetCurrPcieLinkWidth: want a whole number or {"error", "code"}`,
		`{"gpus": [{"nvmlDeviceGetCurrPcieLinkWidth": 1.5}]}`:                                                                            "want a whole number",
		`{"gpus": [{"nvmlDeviceGetModuleId": 1e99}]}`:                                                                                    "want a whole number",
		`{"gpus": [{"nvmlDeviceGetPcieReplayCounter": -1}]}`:                                                                             "want a count",
		`{"gpus": [{"nvmlDeviceGetMigMode": [0]}]}`:                                                                                      "want 2 whole numbers",
		`{"gpus": [{"nvmlDeviceGetPciInfo": {}}]}`:                                                                                       "want an object with busId",
		`{"gpus": [{"nvmlDeviceGetUtilizationRates": {"gpu": "a"}}]}`:                                                                    "want an object with gpu",
		`{"gpus": [{"nvmlDeviceGetModuleId": {"error": "e"}}]}`:                                                                          "want a whole number",
		`{"gpus": [{"nvmlDeviceGetModuleId": {"error": "e", "code": 0}}]}`:                                                               "want a whole number",
		`{"gpus": [{"fabric_state": [3]}]}`:                                                                                              "want a list of state",
		`{"gpus": [{"fabric_state": [3, 0, -1]}]}`:                                                                                       "want unsigned 32-bit",
		`{"gpus": [{"links": {}}]}`:                                                                                                      "links: want a list",
		`{"gpus": [{"links": [{}]}]}`:                                                                                                    "want objects with the link's number",
		`{"gpus": [{"links": [{"l": 99}]}]}`:                                                                                             "want a link number up to 36",
		`{"gpus": [{"links": [{"l": 0}]}]}`:                                                                                              "link 0 has no nvmlDeviceGetNvLinkState",
		`{"gpus": [{"links": [{"l": 0, "nvmlDeviceGetNvLinkState": 1}, {"l": 0, "nvmlDeviceGetNvLinkState": 1}]}]}`:                      "link 0 appears twice",
		`{"recording": 3, "gpus": []}`:                                                                                                   "r:1:15: recording: want a form from 1 to 2",
		`{"recording": "2", "gpus": []}`:                                                                                                 "r:1:15: recording: want a form",
		`{"recording": 2, "nvmlSystemGetConfComputeState": [0], "gpus": []}`:                                                             "want 3 whole numbers",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetTotalEccErrors": 0}]}`:                                                                 "nvmlDeviceGetTotalEccErrors: want an object",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetTotalEccErrors": {"0": 1}}]}`:                                                          `key "0" is no FIRST/SECOND`,
		`{"recording": 2, "gpus": [{"nvmlDeviceGetTotalEccErrors": {"0/0": -1}}]}`:                                                       "0/0: want a count",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetFieldValues": []}]}`:                                                                   "nvmlDeviceGetFieldValues: want an object",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetFieldValues": {"164": 1}}]}`:                                                           `key "164" is no FIELD/SCOPE`,
		`{"recording": 2, "gpus": [{"nvmlDeviceGetFieldValues": {"164/0": 1.5}}]}`:                                                       "164/0: want a count",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetBAR1MemoryInfo": 5}]}`:                                                                 "want an object with bar1Total",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetRemappedRows": [1, 2, 3]}]}`:                                                           "want 4 whole numbers",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetGpuFabricInfoV": [3, 0]}]}`:                                                            "want an object with state and status",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": "x"}}]}`:                                       "want an object with state and status",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0, "cliqueId": -1}}]}`:                         "unsigned 32-bit",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0, "clusterUuid": 1}}]}`:                       "text for clusterUuid",
		`{"recording": 2, "gpus": [{"nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0, "healthSummary": "x"}}]}`:                   "number for healthSummary",
		`{"recording": 2, "gpus": [{"links": [{"l": 0, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkCapability": [1]}]}]}`:         "nvmlDeviceGetNvLinkCapability: want an object",
		`{"recording": 2, "gpus": [{"links": [{"l": 0, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkErrorCounter": {"-1": 0}}]}]}`: `key "-1" is no number`,
		`{"gpus": [{"p2p": {"01/0": 0}}]}`:                                                                                               `key "01/0" is no PEER/CAPABILITY`,
		`{"gpus": [{"p2p": []}]}`:                                                                                                        "p2p: want an object",
		`{"gpus": [{"p2p": {"1-0": 0, "a/b": 0}}]}`:                                                                                      `r:1:27: p2p: key "1-0" is no PEER/CAPABILITY`,
		`{"gpus": [{"p2p": {"1/0": "ok"}}]}`:                                                                                             "1/0: want a whole number",
		`{"gpus": [` + strings.Repeat("{},", 1024) + `{}]}`:                                                                              "1025 GPUs",
		`{"gpus": [{"nvmlDeviceGetPciInfo": {"busId": "1:0.0"}}, {"nvmlDeviceGetPciInfo": {"busId": "0:1:0.0"}}]}`:                       "appears twice",
	} {
		_, err := Replay("r", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s\n got %v\nwant %s", text, err, want)
		}
	}
}

// smallRecording has something of everything, in few bytes: whole recordings
// keep a fuzzer busy with making them shorter.
const smallRecording = `{"recording": 2, "driver": "1", "nvml": {"error": "e", "code": 4}, "nvmlSystemGetConfComputeState": [2, 1, 0], "gpus": [
{"nvmlDeviceGetPciInfo": {"busId": "1:0.0"}, "nvmlDeviceGetTotalEccErrors": {"1/0": 5}, "nvmlDeviceGetRemappedRows": [1, 2, 0, 1], "p2p": {"1/0": 0, "1/2": {"error": "e", "code": 15}},
 "links": [{"l": 0, "nvmlDeviceGetNvLinkState": 1, "nvmlDeviceGetNvLinkVersion": 7, "nvmlDeviceGetNvLinkCapability": {"0": 1, "5": 1}, "nvmlDeviceGetNvLinkErrorCounter": {"0": 1}},
           {"l": 1, "nvmlDeviceGetNvLinkState": 0, "nvmlDeviceGetNvLinkRemotePciInfo": {"busId": "2:0.0"}, "nvmlDeviceGetNvLinkRemoteDeviceType": 2},
           {"l": 2, "nvmlDeviceGetNvLinkState": {"error": "Not Supported", "code": 3}}],
 "nvmlDeviceGetFieldValues": {"164/0": 53125, "206/0": 1, "220/0": 4095, "230/0": 3, "90/0": {"error": "e", "code": 2}, "170/0": 2, "172/0": 9},
 "nvmlDeviceGetGpuFabricInfoV": {"state": 3, "status": 0, "cliqueId": 1, "clusterUuid": "u", "healthMask": 170, "healthSummary": 1}},
{"nvmlDeviceGetUUID": {"error": "no answer in time", "code": -2}, "fabric_state": [3, 0]}, {"error": "lost", "code": 15}]}`

func FuzzReplay(f *testing.F) {
	f.Add(embedded(f))
	f.Add([]byte(smallRecording))
	f.Add([]byte(`{"driver": "1", "gpus": [{"links": [{"l": 0, "nvmlDeviceGetNvLinkState": {"error": "Not Supported", "code": 3}}], "p2p": {"1/0": 0}, "fabric_state": [3, 0]}, {}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		inv, err := Replay("f", text)
		if err != nil {
			return
		}
		if err := inv.Encode(&bytes.Buffer{}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

func BenchmarkReplay(b *testing.B) {
	text := embedded(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Replay("nvml.json", text); err != nil {
			b.Fatal(err)
		}
	}
}
