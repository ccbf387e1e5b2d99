package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// rail describes a host of 8 GPUs behind NVSwitches: below each PCIe switch some
// GPUs and some NICs.
type rail struct {
	gpus, cc, links int // links: NVLinks per GPU
	perSwitch       int // GPUs below one switch
	nics            int // below one switch
	gbps            int
	pcie            string
	cpu             string
}

const (
	intelSPR = `arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"`
	amdRome  = `arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"`
)

func (h rail) xml() string {
	var b strings.Builder
	b.WriteString(`<system version="1">`)
	gpu, nic, bus := 0, 0, 1
	pci := func(class string) string {
		bus++
		return fmt.Sprintf(`<pci busid="0000:%02x:00.0" class="%s" link_speed="%s" link_width="16">`, bus, class, h.pcie)
	}
	for numa := range 2 {
		fmt.Fprintf(&b, `<cpu numaid="%d" %s>`, numa, h.cpu)
		for range max(1, h.gpus/h.perSwitch/2) {
			if gpu == h.gpus {
				break
			}
			b.WriteString(pci("0x060400"))
			for range h.perSwitch {
				fmt.Fprintf(&b, `%s<gpu dev="%d" sm="%d" rank="%d" gdr="1"><nvlink target="0000:f0:00.0" count="%d" tclass="0x068000"/></gpu></pci>`, pci("0x030200"), gpu, h.cc, gpu, h.links)
				gpu++
			}
			for range h.nics {
				fmt.Fprintf(&b, `%s<nic><net name="mlx5_%d" dev="%d" speed="%d" port="1" guid="0x%d" gdr="1"/></nic></pci>`, pci("0x020700"), nic, nic, h.gbps*1000, nic+1)
				nic++
			}
			b.WriteString(`</pci>`)
		}
		b.WriteString(`</cpu>`)
	}
	b.WriteString(`</system>`)
	return b.String()
}

// Results that an independent re-implementation gave and that were checked
// against public logs: search.md 11 and NVIDIA/nccl issue 1189 (the H20).
func TestWorkedResultsOverNetwork(t *testing.T) {
	const gen4, gen5 = "16.0 GT/s PCIe", "32.0 GT/s PCIe"
	line := func(g Graph) string {
		return fmt.Sprintf("p%d %d×%g/%g %v/%v cross %d", g.Number, g.Channels, g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC)
	}
	for _, c := range []struct {
		name             string
		host             rail
		view             graph.NCCLOptions
		o                Options
		ring, tree, nvls string
		channels         int
	}{
		{
			"H100, a NIC each", rail{8, 90, 18, 1, 1, 400, gen5, intelSPR}, graph.NCCLOptions{}, Options{},
			"p4 8×48/48 NVL/PIX cross 2", "p3 8×48/48 NVL/PIX cross 0", "p5 8×40/48 NVL/PIX cross 0", 16,
		},
		{
			"H800, a NIC each", rail{8, 90, 8, 1, 1, 400, gen5, intelSPR}, graph.NCCLOptions{}, Options{},
			"p4 8×22/22 NVL/PIX cross 2", "p3 8×22/22 NVL/PIX cross 0", "p5 8×17.5/40 NVL/PIX cross 0", 16,
		},
		{
			"H100, two GPUs and a NIC per switch", rail{8, 90, 18, 2, 1, 400, gen5, intelSPR}, graph.NCCLOptions{}, Options{},
			"p4 8×24/24 NVL/PIX cross 0", "p1 8×48/24 NVL/PIX cross 0", "p5 4×48/48 NVL/PIX cross 0", 16,
		},
		{
			"A100, two GPUs and two NICs per switch", rail{8, 80, 12, 2, 2, 200, gen4, amdRome}, graph.NCCLOptions{}, Options{},
			"p4 8×24/24 NVL/PIX cross 0", "p1 8×30/24 NVL/PIX cross 0", "", 16,
		},
		{
			"A100, a NIC each", rail{8, 80, 12, 1, 1, 200, gen4, amdRome}, graph.NCCLOptions{}, Options{},
			"p4 8×24/24 NVL/PXN cross 0", "p1 8×24/24 NVL/PHB cross 0", "", 16,
		},
		{
			"two H20, NCCL_CROSS_NIC=1, no PXN", rail{2, 90, 18, 1, 1, 400, gen5, intelSPR}, graph.NCCLOptions{NoPXN: true}, Options{CrossNIC: probe.Some(1)},
			"p4 4×24/24 NVL/PIX cross 1", "", "", 8,
		},
	} {
		c.o.Hosts = 2
		r, err := Compute(viewOf(t, decode(t, "topo.xml", strings.NewReader(c.host.xml())), c.view), c.o)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		checkResult(t, r)
		for p, want := range map[Pattern]string{Ring: c.ring, Tree: c.tree, NVLS: c.nvls} {
			if g, ok := r.Graph(p); want != "" && (!ok || line(g) != want) {
				t.Errorf("%s: %v %s, want %s", c.name, p, line(g), want)
			}
		}
		if r.Channels != c.channels {
			t.Errorf("%s: %d channels, want %d", c.name, r.Channels, c.channels)
		}
	}
}
