package smiquery

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/nvml"
)

const (
	uuid0 = "GPU-11111111-2222-3333-4444-555555555550"
	uuid1 = "GPU-11111111-2222-3333-4444-555555555551"
)

// shared is the folder of captures and cases that are not part of the
// repository.
const shared = "../../../shared"

func fromShared(t testing.TB, name string) []byte {
	t.Helper()
	if _, err := os.Stat(shared); err != nil {
		t.Skip("the captures are not here: ", err)
	}
	raw, err := os.ReadFile(filepath.Join(shared, name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode(t testing.TB, name, text string) *probe.Inventory {
	t.Helper()
	inv, err := Decode(name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func list(links ...string) string {
	var b strings.Builder
	for i, uuid := range []string{uuid0, uuid1} {
		fmt.Fprintf(&b, "GPU %d: NVIDIA H100 80GB HBM3 (UUID: %s)\n", i, uuid)
		for _, l := range links {
			fmt.Fprintf(&b, "\t %s\n", l)
		}
	}
	return b.String()
}

const matrix = "\t\x1b[4mGPU0\tGPU1\x1b[0m\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"

// oldXML has the names of driver 450 on a V100.
const oldXML = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">
<nvidia_smi_log>
	<timestamp>Mon Jan  4 10:00:00 2021</timestamp>
	<driver_version>450.80.02</driver_version>
	<cuda_version>11.0</cuda_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:15:00.0">
		<product_name>Tesla V100-SXM2-32GB</product_name>
		<persistence_mode>Disabled</persistence_mode>
		<mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>
		<uuid>GPU-11111111-2222-3333-4444-555555555550</uuid>
		<minor_number>3</minor_number>
		<pci>
			<pci_bus_id>00000000:15:00.0</pci_bus_id>
			<pci_gpu_link_info>
				<pcie_gen><max_link_gen>3</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
				<link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
			</pci_gpu_link_info>
			<replay_counter>7</replay_counter>
		</pci>
		<performance_state>P2</performance_state>
		<clocks_throttle_reasons>
			<clocks_throttle_reason_gpu_idle>Not Active</clocks_throttle_reason_gpu_idle>
			<clocks_throttle_reason_sw_power_cap>Active</clocks_throttle_reason_sw_power_cap>
			<clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>
			<clocks_throttle_reason_hw_thermal_slowdown>Active</clocks_throttle_reason_hw_thermal_slowdown>
			<clocks_throttle_reason_sync_boost>N/A</clocks_throttle_reason_sync_boost>
		</clocks_throttle_reasons>
		<bar1_memory_usage><total>32768 MiB</total></bar1_memory_usage>
		<compute_mode>Exclusive_Process</compute_mode>
		<utilization><gpu_util>97 %</gpu_util></utilization>
		<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Disabled</pending_ecc></ecc_mode>
		<ecc_errors>
			<volatile>
				<single_bit><device_memory>2</device_memory><total>3</total></single_bit>
				<double_bit><device_memory>0</device_memory><total>1</total></double_bit>
			</volatile>
		</ecc_errors>
		<remapped_rows>N/A</remapped_rows>
	</gpu>
</nvidia_smi_log>
`

func TestOldDriver(t *testing.T) {
	inv := decode(t, "q.xml", oldXML)
	g := inv.GPUs[0]
	want := probe.GPU{
		Index: probe.Some(0), UUID: uuid0, Addr: probe.Some(probe.MustBDF("0000:15:00.0")), Name: "Tesla V100-SXM2-32GB",
		PState: probe.Some(2), Utilization: probe.Some(97), Events: probe.Some(uint64(0x4 | 0x8 | 0x40)),
		Current: probe.LinkOfGen(1, 8), Max: probe.LinkOfGen(3, 16), Replays: probe.Some(uint64(7)),
		BAR1: probe.Some(int64(32 << 30)), ComputeMode: "exclusive process", Persistence: probe.Some(false),
		ECC: &probe.ECC{
			Enabled: probe.Some(true), Pending: probe.Some(false),
			VolatileCorrected: probe.Some(uint64(3)), VolatileUncorrected: probe.Some(uint64(1)),
		},
		Extra:   []probe.Attr{{Name: "cuda_version", Value: "11.0"}, {Name: "minor_number", Value: "3"}},
		Origins: []probe.Origin{{Source: Source, Where: "q.xml:8"}},
	}
	same(t, want, g)
	if inv.Runtime.Driver != "450.80.02" || len(inv.Gaps) > 0 {
		t.Errorf("%+v %+v", inv.Runtime, inv.Gaps)
	}
}

// same compares two GPUs by what an inventory document says of them.
func same(t *testing.T, want, got probe.GPU) {
	t.Helper()
	text := func(g probe.GPU) string {
		var b bytes.Buffer
		if err := (&probe.Inventory{GPUs: []probe.GPU{g}}).Encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if d := cmp.Diff(text(want), text(got)); d != "" {
		t.Error(d)
	}
}

func TestFabricHealth(t *testing.T) {
	text := strings.Replace(oldXML, "</gpu>", `<fabric><state>Completed</state><status>Success</status><cliqueId>32766</cliqueId><clusterUuid>c0ffee00-0000-4000-8000-000000000001</clusterUuid>
		<health><summary>Unhealthy</summary><bandwidth>Degraded</bandwidth><route_recovery_in_progress>False</route_recovery_in_progress>
		<route_unhealthy>False</route_unhealthy><access_timeout_recovery>True</access_timeout_recovery>
		<incorrect_configuration>None</incorrect_configuration><partition_assigned>N/A</partition_assigned></health></fabric></gpu>`, 1)
	want := probe.Fabric{
		State: "completed", Status: probe.Some(0), CliqueID: probe.Some(uint32(32766)), ClusterUUID: "c0ffee00-0000-4000-8000-000000000001",
		Health: "unhealthy", HealthMask: probe.Some(uint32(1 | 2<<2 | 2<<4 | 1<<6 | 1<<8)),
	}
	if got := decode(t, "q.xml", text).GPUs[0].Fabric; got == nil || *got != want {
		t.Errorf("%+v", got)
	}
}

func TestReasonsAreGaps(t *testing.T) {
	text := strings.NewReplacer(">97 %<", ">Unknown Error<", ">7<", ">Unknown Error<", ">P2<", ">[Unknown]<", ">16x<", ">[N/A]<",
		">Exclusive_Process<", ">Shared<", ">32768 MiB<", ">Requested functionality has been deprecated<").Replace(oldXML)
	inv := decode(t, "q.xml", text)
	g := inv.GPUs[0]
	if g.Utilization.Known() || g.Replays.Known() || g.PState.Known() || g.Max.Width.Known() || g.ComputeMode != "" || g.BAR1.Known() {
		t.Errorf("%+v", g)
	}
	var got []string
	for _, gap := range inv.Gaps {
		got = append(got, gap.What+": "+gap.Why+" @"+gap.Origin.Where)
	}
	want := []string{
		`gpu 0 compute_mode: nvidia-smi says "Shared" @q.xml:31`,
		`gpu 0 performance_state: nvidia-smi says "[Unknown]" @q.xml:22`,
		`gpu 0 gpu_util, gpu 0 replay_counter: nvidia-smi says "Unknown Error" @q.xml:32`,
	}
	if d := cmp.Diff(want, got, cmp.Transformer("set", func(s []string) map[string]bool {
		m := map[string]bool{}
		for _, x := range s {
			m[x] = true
		}
		return m
	})); d != "" {
		t.Error(d)
	}
}

// A restricted -q does not tell indices; a list with UUIDs does.
func TestRestrictedQuery(t *testing.T) {
	one := strings.Replace(oldXML, "<attached_gpus>1<", "<attached_gpus>2<", 1)
	inv := decode(t, "q.xml", one)
	if inv.GPUs[0].Index.Known() || len(inv.Gaps) != 1 || inv.Gaps[0].What != "gpu indices" {
		t.Errorf("%v %+v", inv.GPUs[0].Index, inv.Gaps)
	}
	for _, text := range []string{one + list(), list() + one, "== r\n" + matrix + one + list()} {
		inv := decode(t, "all.txt", text)
		if len(inv.GPUs) != 2 || inv.GPUs[0].Index != probe.Some(0) || inv.GPUs[0].Addr.Or(probe.BDF{}) != probe.MustBDF("0000:15:00.0") || inv.GPUs[0].Replays != probe.Some(uint64(7)) {
			t.Errorf("%+v", inv.GPUs)
		}
		if strings.HasPrefix(text, "==") && (len(inv.GPUs[0].Peers) != 1 || len(inv.GPUs[1].Peers) != 1) {
			t.Errorf("peers: %+v", inv.GPUs)
		}
	}
}

func TestLinks(t *testing.T) {
	inv := decode(t, "nvlink.txt", list("Link 0: 26.562 GB/s", "Link 1: <inactive>", "Link 2: 25 GB/s")+
		list("Link 0: Remote Device 00000000:C1:00.0: Link 3", "Link 0: Replay Errors: 4", "Link 2: Replay Errors: 0", "Link 0: Symbol BER: 15e-255", "Link 0: Tx packets: 5"))
	got := inv.GPUs[1].NVLinks.Or(nil)
	want := []probe.NVLink{
		{Link: 0, State: probe.LinkUp, Signal: probe.Some(probe.Rate(26_562e6)), Generation: probe.Some(4), Remote: probe.Some(probe.MustBDF("0000:c1:00.0"))},
		{Link: 1, State: probe.LinkDown},
		{Link: 2, State: probe.LinkUp, Signal: probe.Some(probe.Rate(25e9))},
	}
	same(t, probe.GPU{NVLinks: probe.Some(want)}, probe.GPU{NVLinks: probe.Some(got)})
	c := inv.GPUs[0].LinkCounts
	if c == nil || c.Replay.At(0) != probe.Some(uint64(4)) || c.Replay.At(1).Known() || c.Replay.At(2) != probe.Some(uint64(0)) || c.SymbolBER.At(0) != probe.Some(uint64(15<<8|255)) {
		t.Errorf("%+v", c)
	}
	if o := probe.OriginOf(inv.GPUs[1].Origins, "nvlinks"); o.Where != "nvlink.txt:6" {
		t.Error(o)
	}
}

// A list that may not be whole is no list.
func TestUnknownLinks(t *testing.T) {
	for _, c := range []struct{ name, text, gap string }{
		{"hole", list("Link 0: 26.562 GB/s", "Link 2: 26.562 GB/s"), "link 1 is missing"},
		{"word", list("Link 0: <sleeping>"), "neither a rate nor"},
		{"no states", list("Link 0: Replay Errors: 0"), "no state of the links"},
		{"cut", strings.TrimSuffix(list("Link 0: 26.562 GB/s", "Link 1: 26.562 GB/s"), "\t Link 1: 26.562 GB/s\n"), "the text ends after 1 links"},
		{"all down", list("NVML: Unable to retrieve NVLink information as all links are inActive"), "all links are inactive"},
		{"no label", matrix, "does not say which capability"},
		{"lost", list() + "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n", "cannot open it"},
		{"none", "No devices were found\n", "No devices were found"},
		{"no driver", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "NVIDIA-SMI has failed"},
	} {
		inv := decode(t, c.name, c.text)
		if len(inv.Gaps) == 0 || !strings.Contains(inv.Gaps[0].Why, c.gap) {
			t.Errorf("%s: %+v", c.name, inv.Gaps)
		}
		if n := len(inv.GPUs); n > 0 && inv.GPUs[n-1].NVLinks.Known() {
			t.Errorf("%s: %+v", c.name, inv.GPUs[n-1].NVLinks)
		}
	}
}

// The matrix of topo -m in the same text is another reader's.
func TestTopoMIsPassedOver(t *testing.T) {
	inv := decode(t, "x", list("Link 0: 26.562 GB/s")+" \tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-7\nGPU1\tNV18\t X \t0-7\n")
	if len(inv.Gaps) != 0 || len(inv.GPUs) == 0 || !inv.GPUs[0].NVLinks.Known() {
		t.Errorf("%+v, %+v", inv.GPUs, inv.Gaps)
	}
}

func TestPeers(t *testing.T) {
	for _, before := range []string{"$ nvidia-smi topo -p2p w\n", "== w\n", "nvidia-smi topo --p2pstatus w\n", "P2P write:\n", "root@a:~# nvidia-smi topo -p2p w\n"} {
		inv := decode(t, "p.txt", before+strings.Replace(matrix, " GPU1\tOK", " GPU1\tCNS", 1))
		want := [][]probe.PeerAccess{{{GPU: 1, Capability: "write", Status: "ok"}}, {{GPU: 0, Capability: "write", Status: "chipset not supported"}}}
		if d := cmp.Diff(want, [][]probe.PeerAccess{inv.GPUs[0].Peers, inv.GPUs[1].Peers}); d != "" || len(inv.Gaps) > 0 {
			t.Errorf("%q: %s %+v", before, d, inv.Gaps)
		}
	}
	if inv := decode(t, "topo-p2p-n.txt", matrix); inv.GPUs[0].Peers[0].Capability != "nvlink" {
		t.Errorf("%+v", inv.GPUs[0].Peers)
	}
	if inv := decode(t, "p.txt", "== r\n"+strings.ReplaceAll(matrix, "OK\t", "U\t")); len(inv.GPUs[0].Peers) > 0 {
		t.Errorf("%+v", inv.GPUs[0].Peers)
	}
}

func TestMustFail(t *testing.T) {
	deep := strings.Repeat("<a>", 40)
	for _, c := range []struct{ name, text, want string }{
		{"empty", " \n", "f: empty"},
		{"binary", "GPU\x00", "f: binary data"},
		{"other text", "hello\n", "f: holds no output of nvidia-smi"},
		{"cut XML", oldXML[:strings.Index(oldXML, "<utilization>")], "the document is cut off inside <gpu> of line 8"},
		{"wrong end", strings.Replace(oldXML, "</pci>", "</pcie>", 1), "f:21:3: </pcie> where </pci> is due (opened on line 14)"},
		{"entities", strings.Replace(oldXML, `.dtd">`, `.dtd" [<!ENTITY a "b">]>`, 1), "f:2:1: a document type with declarations"},
		{"entity use", strings.Replace(oldXML, "Tesla", "&tesla;", 1), "f:9:"},
		{"deep", strings.Replace(oldXML, "<pci>", deep+"<pci>", 1), "nested deeper than 32"},
		{"other root", "<?xml version=\"1.0\"?>\n<system/>\n", "f:2:1: root element is <system>"},
		{"generation", strings.Replace(oldXML, "<current_link_gen>1<", "<current_link_gen>9<", 1), "f:17: gpu 0: current_link_gen 9 is no PCIe generation"},
		{"width", strings.Replace(oldXML, ">8x<", ">7x<", 1), "f:18: gpu 0: current_link_width 7 is none of x1 to x32"},
		{"damaged width", strings.Replace(oldXML, ">8x<", ">8y<", 1), `"8y" is not a whole number of x`},
		{"utilisation", strings.Replace(oldXML, "97 %", "197 %", 1), "f:32: gpu 0: gpu_util 197 is above 100"},
		{"pstate", strings.Replace(oldXML, ">P2<", ">P22<", 1), `"P22" is not P0 to P15`},
		{"negative count", strings.Replace(oldXML, ">7<", ">-7<", 1), `replay_counter "-7" is not a whole number`},
		{"BAR1", strings.Replace(oldXML, "32768 MiB", "18446744073709551615 MiB", 1), "no size of a memory"},
		{"bus id", strings.ReplaceAll(oldXML, "00000000:15:00.0", "00000000:15"), "f:8: gpu bus id: PCI address"},
		{"too many", strings.Replace(oldXML, "<attached_gpus>1<", "<attached_gpus>0<", 1), "0 GPUs are attached, but 1 are listed"},
		{"attached", strings.Replace(oldXML, "<attached_gpus>1<", "<attached_gpus>x<", 1), `attached GPUs "x": not a number`},
		{"twice", strings.Replace(strings.Replace(oldXML, "<attached_gpus>1<", "<attached_gpus>2<", 1), "</gpu>", "</gpu>"+oldXML[strings.Index(oldXML, "<gpu "):strings.Index(oldXML, "</nvidia")], 1), "stands on line 8 already"},
		{"control", strings.Replace(oldXML, "Tesla", "\u202eTesla", 1), "is no plain line of text"},
		{"two drivers", oldXML + strings.Replace(oldXML, "450.80.02", "450.80.03", 1), "one text is one host"},
		{"two hosts", list() + strings.ReplaceAll(list(), "4444", "4445"), "f:3: UUID GPU-11111111-2222-3333-4445-555555555550, but the same GPU has UUID"},
		{"two indices", oldXML + strings.ReplaceAll(list(), "GPU 0:", "GPU 5:"), "index 5, but the same GPU has index 0"},
		{"lost indentation", "Attached GPUs : 1\nGPU 00000000:15:00.0\nProduct Name : X\n", "f:3: "},
		{"cut rate", list("Link 0: 26.5"), `f:2: link 0: "26.5" is neither`},
		{"link number", list("Link 99: 25 GB/s"), "f:2: link 99: the number is not below 64"},
		{"rate", list("Link 0: 1.2.3 GB/s"), "is no rate of a link"},
		{"count", list("Link 0: Replay Errors: 1x"), `f:2: link 0: Replay Errors: "1x" is no count`},
		{"capability", list("Link 0, P2P is supported: maybe"), "neither true nor false"},
		{"remotes", list("Link 0: Remote Device 00000000:C1:00.0: Link 3", "Link 0: Remote Device 00000000:C2:00.0: Link 3"), "f:3: link 0: remote device 0000:c2:00.0, but"},
		{"index", "GPU 9999: A (UUID: x)\n", "f:1: GPU 9999: the index is not below 256"},
		{"short row", "== r\n" + strings.Replace(matrix, "\tOK\t", "\t", 1), "f:3: row GPU0 has 1 of 2 cells"},
		{"state", "== r\n" + strings.Replace(matrix, "\tOK\t", "\tOOK\t", 1), `"OOK" in column GPU1 is no peer state`},
		{"diagonal", "== r\n" + strings.Replace(matrix, "X\tOK", "OK\tX", 1), "want X in its own column only"},
		{"column twice", "== r\n" + strings.Replace(matrix, "GPU0\tGPU1", "GPU0\tGPU0", 1), "column GPU0 appears twice"},
		{"row twice", "== r\n" + strings.Replace(matrix, " GPU1\tOK\tX", " GPU0\tX\tOK", 1), "row GPU0 stands on line 3 already"},
	} {
		inv, err := Decode("f", strings.NewReader(c.text))
		var syn *probe.SyntaxError
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &syn) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		oldXML: true, list("Link 0: 25 GB/s"): true, list(): true, "$ nvidia-smi topo -p2p r\n" + matrix: true,
		"==============NVSMI LOG==============\n":  true,
		"GPU 0: NVIDIA L4 (UUID: " + uuid0 + ")\n": true,
		"": false,
		"\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n": false,
		"<system version=\"1\">":                           false,
		"NCCL INFO GPU 0: x (UUID: y)\n":                   false,
	} {
		if Sniff([]byte(text)) != want {
			t.Errorf("%.60q: %v", text, !want)
		}
	}
}

// The capture's two forms of -q, nvlink and topo -p2p say the same of the GPUs
// as the recorded NVML calls. The module id and the replay counters were read
// from elsewhere and at another time.
func TestCapture(t *testing.T) {
	const dir = "captures/2xh200-vm/"
	want, err := nvml.Replay("nvml.json", fromShared(t, dir+"nvml-calls.json"))
	if err != nil {
		t.Fatal(err)
	}
	rest := "\n" + string(fromShared(t, dir+"nvlink.txt")) + string(fromShared(t, dir+"topo-p2p.txt"))
	xml, text := string(fromShared(t, dir+"nvidia-smi-q.xml")), string(fromShared(t, dir+"nvidia-smi-q.txt"))
	var docs []string
	for name, all := range map[string]string{"xml": xml + rest, "text": text + rest, "rest first": rest + text, "both": xml + text + rest} {
		inv := decode(t, "all.txt", all)
		if len(inv.Gaps) > 0 || len(inv.GPUs) != 2 || inv.Runtime.Driver != want.Runtime.Driver {
			t.Fatalf("%s: %+v %+v", name, inv.Gaps, inv.Runtime)
		}
		for i := range inv.GPUs {
			w, g := want.GPUs[i], inv.GPUs[i]
			for n, l := range g.NVLinks.Or(nil) {
				if l.Signal != probe.Some(probe.Rate(26_562e6)) || l.Caps != probe.Some(63) {
					t.Errorf("%s: gpu %d: %+v", name, i, l)
				}
				// NVML names the kind of the far end, nvidia-smi only its hidden address.
				g.NVLinks.Or(nil)[n].Signal, g.NVLinks.Or(nil)[n].Caps, g.NVLinks.Or(nil)[n].RemoteKind = probe.Opt[probe.Rate]{}, probe.Opt[int]{}, probe.RemoteSwitch
			}
			if g.LinkCounts == nil || g.LinkCounts.Replay.At(17) != probe.Some(uint64(0)) {
				t.Errorf("%s: gpu %d: %+v", name, i, g.LinkCounts)
			}
			if g.Fabric == nil || g.Fabric.State != w.Fabric.State || g.Fabric.Status != w.Fabric.Status || g.Fabric.CliqueID != w.Fabric.CliqueID {
				t.Errorf("%s: gpu %d: %+v, NVML: %+v", name, i, g.Fabric, w.Fabric)
			}
			same(t, probe.GPU{Index: w.Index, Addr: w.Addr, Name: w.Name, PState: w.PState, Events: w.Events, Current: w.Current, Max: w.Max, BoardMax: w.BoardMax, NVLinks: w.NVLinks, MIG: w.MIG, Peers: w.Peers},
				probe.GPU{Index: g.Index, Addr: g.Addr, Name: g.Name, PState: g.PState, Events: g.Events, Current: g.Current, Max: g.Max, BoardMax: g.BoardMax, NVLinks: g.NVLinks, MIG: g.MIG, Peers: g.Peers})
			inv.GPUs[i].Origins = nil
		}
		inv.Runtime.Origins, inv.Settings = nil, probe.Settings{}
		var b bytes.Buffer
		if err := inv.Encode(&b); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, b.String())
	}
	for _, d := range docs[1:] {
		if d := cmp.Diff(docs[0], d); d != "" {
			t.Error(d)
		}
	}
}

// Every output of nvidia-smi among the captures and cases reads, and nothing
// else is taken for one.
func TestShared(t *testing.T) {
	fromShared(t, "captures/README.md")
	want := map[string]int{ // file → GPUs
		"captures/2xh200-vm/nvidia-smi-q.txt": 2, "captures/2xh200-vm/nvidia-smi-q.xml": 2, "captures/2xh200-vm/nvlink.txt": 2, "captures/2xh200-vm/topo-p2p.txt": 2,
		"cases/016-h100nvl-pair-without-links/smi.xml": 2, "cases/017-h100nvl-twelve-of-eighteen/smi.xml": 2,
		"cases/023-links-active-fabric-not-registered/smi.xml": 8, "cases/040-idle-cards-at-gen1/smi.xml": 2,
	}
	found := 0
	for _, pattern := range []string{"captures/*/*", "cases/*/*", "corpus/*/*"} {
		files, err := filepath.Glob(filepath.Join(shared, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				continue // a folder
			}
			name, _ := filepath.Rel(shared, f)
			name = filepath.ToSlash(name)
			n, known := want[name]
			if sniffed := Sniff(raw[:min(len(raw), 4096)]); sniffed != known {
				if name != "corpus/logs/snip-azdiag73-v100-nvlink-inactive.log" { // nvlink -s in a log
					t.Errorf("%s: sniffed %v", name, sniffed)
				}
			}
			if !known {
				continue
			}
			found++
			inv, err := Decode(filepath.Base(f), bytes.NewReader(raw))
			if err != nil || len(inv.GPUs) != n || len(inv.Gaps) > 0 {
				t.Errorf("%s: %v %+v", name, err, inv)
			}
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d files are there", found, len(want))
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{oldXML, list("Link 0: 26.562 GB/s", "Link 0: Remote Device 00000000:C1:00.0: Link 3", "Link 0, P2P is supported: true"), "== r\n" + matrix, "Attached GPUs : 1\nGPU 00000000:15:00.0\n    Utilization\n        Gpu : 5 %\n"} {
		f.Add([]byte(s))
	}
	f.Add([]byte("== r\n" + matrix + oldXML + list("Link 0: 25 GB/s")))
	f.Fuzz(func(t *testing.T, text []byte) {
		Sniff(text)
		inv, err := Decode("f", bytes.NewReader(text))
		if (inv == nil) == (err == nil) {
			t.Fatalf("%v and %v", inv, err)
		}
		if inv != nil {
			if err := inv.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeXML(b *testing.B) { benchmark(b, "captures/2xh200-vm/nvidia-smi-q.xml") }
func BenchmarkDecodeText(b *testing.B) {
	benchmark(b, "captures/2xh200-vm/nvidia-smi-q.txt")
}
func BenchmarkDecodeLinks(b *testing.B) { benchmark(b, "captures/2xh200-vm/nvlink.txt") }

func benchmark(b *testing.B, name string) {
	raw := fromShared(b, name)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Decode("f", bytes.NewReader(raw)); err != nil {
			b.Fatal(err)
		}
	}
}
