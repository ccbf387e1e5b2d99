package graph

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestNCCLSettings(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        NCCLOptions
		known       bool
		err         string
	}{
		{"NCCL_P2P_LEVEL", "PHB", NCCLOptions{P2PLevel: PHB}, true, ""},
		{"NCCL_P2P_LEVEL", "2", NCCLOptions{P2PLevel: PXB}, true, ""},
		{"NCCL_P2P_LEVEL", "9", NCCLOptions{P2PLevel: SYS}, true, ""},
		{"NCCL_P2P_LEVEL", "far", NCCLOptions{}, true, `NCCL_P2P_LEVEL="far": not a path class`},
		{"NCCL_P2P_DISABLE", "1", NCCLOptions{P2PLevel: LOC}, true, ""},
		{"NCCL_P2P_DISABLE", "0", NCCLOptions{}, true, ""},
		{"NCCL_NET_GDR_LEVEL", "PHB", NCCLOptions{GDRLevel: PHB}, true, ""},
		{"NCCL_NET_GDR_READ", "0", NCCLOptions{GDRRead: probe.Some(false)}, true, ""},
		{"NCCL_NET_GDR_C2C", "0", NCCLOptions{NoGDRC2C: true}, true, ""},
		{"NCCL_NET_GDR_C2C", "1", NCCLOptions{}, true, ""},
		{"NCCL_PXN_DISABLE", "0x1", NCCLOptions{NoPXN: true}, true, ""},
		{"NCCL_NET_MERGE_LEVEL", "LOC", NCCLOptions{MergeLevel: LOC}, true, ""},
		{"NCCL_NET_MERGE_LEVEL", "PORT", NCCLOptions{}, true, ""},
		{"NCCL_NETDEVS_POLICY", "MAX:2", NCCLOptions{NetsPerGPU: 2}, true, ""},
		{"NCCL_NETDEVS_POLICY", "ALL", NCCLOptions{NetsPerGPU: -1}, true, ""},
		{"NCCL_NETDEVS_POLICY", "MAX:0", NCCLOptions{}, true, "not MAX:N"},
		{"NCCL_SHM_DISABLE", "yes", NCCLOptions{}, true, "not a number"},
		{"NCCL_ALGO", "Ring", NCCLOptions{}, false, ""},
	} {
		var o NCCLOptions
		known, err := o.Set(c.name, c.value)
		if known != c.known || !reflect.DeepEqual(o, c.want) || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s=%s: %+v, %v, %v", c.name, c.value, o, known, err)
		}
	}
}

func TestNCCLVersion(t *testing.T) {
	for text, want := range map[string]NCCLVersion{"2.30.7": 23007, "2.28.3+cuda13.0": 22803, "2.21.5-1": 22105, "2.27": 22700} {
		if v, err := ParseNCCLVersion(text); v != want || err != nil {
			t.Errorf("%s: %d, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "2", "1.3.5", "2.x.1", "2.3.4.5", "2.-1.0"} {
		if v, err := ParseNCCLVersion(text); err == nil {
			t.Errorf("%q: %v", text, v)
		}
	}
	if v := NCCLVersion(0); v.String() != "2.30.7" || !v.AtLeast(30, 7) || NCCLVersion(22105).AtLeast(22, 0) {
		t.Errorf("zero is %v", v)
	}
}

// Constants that changed between versions: hardware.md 1.2 and topology.md 4.
func TestNCCLConstantsByVersion(t *testing.T) {
	for _, c := range []struct {
		cc      int
		version NCCLVersion
		gbs     float64
	}{{90, 21903, 20}, {90, 22003, 20.6}, {100, 22304, 20.6}, {100, 22602, 40}, {100, 22707, 40.1}} {
		if got := NCCLNVLinkGBs(c.cc, c.version); got != c.gbs {
			t.Errorf("sm_%d with %v: %g GB/s, want %g", c.cc, c.version, got, c.gbs)
		}
	}
	cpu := probe.CPU{Arch: "x86_64", Vendor: "GenuineIntel", Family: probe.Some(6), Model: probe.Some(143)}
	if p, _ := ncclProcessor(cpu, 22507); p.GBs != 10 {
		t.Errorf("Sapphire Rapids before 2.26: %g GB/s, want 10", p.GBs)
	}
}

// Two functions of one card: NCCL joins them since 2.24, unless told not to.
func TestNCCLJoinedPorts(t *testing.T) {
	const link = `link_speed="32.0 GT/s PCIe" link_width="16"`
	nic := func(fn int) string {
		return fmt.Sprintf(`<pci busid="0000:1a:00.%d" class="0x020700" %s><nic><net name="mlx5_%d" dev="%d" speed="200000" port="1" guid="0x%d" gdr="1"/></nic></pci>`, fn, link, fn, fn, fn+1)
	}
	file := `<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"><pci busid="0000:15:00.0" class="0x060400" ` + link + `>` +
		`<pci busid="0000:18:00.0" class="0x030200" ` + link + `><gpu dev="0" sm="90" rank="0" gdr="1"/></pci>` + nic(0) + nic(1) + `</pci></cpu></system>`
	view := func(o NCCLOptions) *NCCLView { return viewOf(t, decode(t, "topo.xml", strings.NewReader(file)), o) }
	v := view(NCCLOptions{})
	if len(v.Nets) != 1 || v.Nodes[v.Nets[0]].Net.Name != "mlx5_0+mlx5_1" || v.Nodes[v.Nets[0]].ID != 2 || len(v.Nodes[v.Nets[0]].Net.Joined) != 2 {
		t.Errorf("%d NETs, %+v", len(v.Nets), v.Nodes[v.Nets[0]].Net)
	}
	if p := v.PathToNet(0, 0); p.Class != PIX || p.GBs != 48 {
		t.Errorf("%v %g GB/s, want PIX and the card's 48", p.Class, p.GBs)
	}
	for _, o := range []NCCLOptions{{MergeLevel: LOC}, {Version: 22304}} {
		if v := view(o); len(v.Nets) != 2 || v.PathToNet(0, 0).GBs != 25 {
			t.Errorf("%+v: %d NETs", o, len(v.Nets))
		}
	}
}

// GPUDirect RDMA goes as far as the level; what it does not reach goes through
// host memory.
func TestNCCLGDRLevel(t *testing.T) {
	m := twoSwitches()
	class := func(o NCCLOptions) PathClass { return viewOf(t, &m.inv, o).PathToNet(0, 0).Class }
	if near, far := class(NCCLOptions{}), class(NCCLOptions{GDRLevel: LOC}); near != PIX || far != PHB {
		t.Errorf("%v by default and %v with NCCL_NET_GDR_LEVEL=LOC, want PIX and PHB", near, far)
	}
}
