package check

import (
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestSourceConflict(t *testing.T) {
	nvml := probe.Origin{Source: probe.SourceNVML, Where: "device 0"}
	sysfs := probe.Origin{Source: probe.SourceSysfs, Where: "sys/bus/pci/devices/0000:18:00.0"}
	conflict := func(subject, field, used, other string) func(*host) {
		return func(h *host) {
			h.inv.Conflicts = append(h.inv.Conflicts, probe.Conflict{Subject: subject, Field: field, Values: []probe.ConflictValue{{Value: used, Origin: nvml}, {Value: other, Origin: sysfs}}})
		}
	}
	// topo -m beside the devices: cells of h100x8, where a pair's can be changed.
	cells := func(change map[[2]string]string) func(*host) {
		return func(h *host) {
			topo := h.topology(t)
			gpus, hcas := topo.Of("gpu"), topo.Of("hca")
			all := append(gpus, hcas...)
			for i, a := range all {
				for _, b := range all[i+1:] {
					code := topo.SMICode(a, b)
					if code == "NVB" {
						code = "SYS" // how nvidia-smi shows a relay
					}
					if c := change[[2]string{a.Label, b.Label}]; c != "" {
						code = c
					}
					h.inv.Relations = append(h.inv.Relations, probe.Relation{A: a.Label, B: b.Label, Code: code, Origins: []probe.Origin{{Source: probe.SourceSMITopo, Where: "topo.txt:3"}}})
				}
			}
		}
	}
	noLists := func(h *host) {
		for i := range h.inv.GPUs {
			h.inv.GPUs[i].NVLinks = probe.Opt[[]probe.NVLink]{}
		}
	}
	testRule(t, "source-conflict", []ruleCase{
		{name: "two fields of one function, a GPU's", host: h100x8().with(conflict("pci:"+gpuAt(0), "numa", "0", "1")).with(conflict("gpu:"+gpuAt(0), "uuid", "GPU-a", "GPU-b")),
			want: []string{"info sure " + gpuKey(0)},
			says: []string{"numa: 0 is used (nvml device 0), sysfs sys/bus/pci/devices/0000:18:00.0 says 1; uuid: GPU-a is used", "one value from every source"}},
		{name: "an HCA's function and the HCA", host: h100x8().with(conflict("pci:"+hcaAt(2), "driver", "a", "b")).with(conflict("hca:mlx5_2", "firmware", "28.1", "28.2")).with(conflict("hca:mlx5_2 ports:1", "state", "ACTIVE", "DOWN")),
			want: []string{"warning likely hca:mlx5_2"}, says: []string{"ports:1 state: ACTIVE is used"}},
		{name: "a bridge", host: h100x8().with(conflict("pci:"+upAt(0), "device", "0xc030", "0xc010")), want: []string{"info sure " + switchKey(0)}},
		{name: "a GPU without an address", host: h100x8().with(conflict("gpu:3", "name", "H100", "H200")), want: []string{"info sure " + gpuKey(3)}},
		{name: "the host", host: h100x8().with(conflict("runtime", "driver", "580.1", "570.2")).with(conflict("cpu:0", "vendor", "GenuineIntel", "AuthenticAMD")),
			want: []string{"info sure host:gx07"}, says: []string{"runtime driver: 580.1 is used", "cpu:0 vendor: GenuineIntel is used"}},
		{name: "two tables of topo -m", host: h100x8().with(conflict("relation:GPU0 mlx5_1", "code", "NODE", "SYS")), want: []string{"info sure " + gpuKey(0) + " hca:mlx5_1"}},
		{name: "two objects", host: h100x8().with(conflict("gpu:"+gpuAt(7), "name", "H100", "H200")).with(conflict("gpu:"+gpuAt(0), "name", "H100", "H200")),
			want: []string{"info sure " + gpuKey(0), "info sure " + gpuKey(7)}},
		{name: "a subject that is no node", host: (&host{}).with(conflict("gpu:9", "name", "H100", "H200")), want: []string{"info sure gpu:9"}},
		{name: "load and counters at two moments", host: h100x8().with(conflict("gpu:"+gpuAt(0), "utilization", "97", "3")).with(conflict("gpu:"+gpuAt(0), "pcie_counters.correctable", "0", "1")).
			with(conflict("pci:"+gpuAt(0), "current_link.speed_gts", "32", "2.5"))},
		{name: "link width of a GPU", host: h100x8().with(conflict("pci:"+gpuAt(0), "current_link.width", "16", "8")), want: []string{"warning likely " + gpuKey(0)}},

		{name: "topo -m agrees", host: h100x8().with(cells(nil))},
		{name: "cube mesh: a relay shows as its PCIe path", host: v100x8().with(cells(nil))},
		{name: "one cell of another class", host: h100x8().with(cells(map[[2]string]string{{"GPU0", "mlx5_0"}: "SYS"})),
			want: []string{"info sure " + gpuKey(0) + " hca:mlx5_0"}, says: []string{"GPU0-mlx5_0: PIX by the devices, which is used; topo -m says SYS"}},
		{name: "another number of NVLinks: the GPU that all pairs share first", host: h100x8().with(cells(map[[2]string]string{{"GPU0", "GPU3"}: "NV16", {"GPU1", "GPU3"}: "NV16", {"GPU3", "GPU6"}: "NV16"})),
			want: []string{"info sure " + gpuKey(3) + " " + gpuKey(0) + " " + gpuKey(1) + " " + gpuKey(6)}, says: []string{"GPU0-GPU3, GPU1-GPU3, GPU3-GPU6: NV18 by the devices", "topo -m says NV16"}},
		{name: "no NVLink by topo -m", host: h100x8().with(cells(map[[2]string]string{{"GPU0", "GPU1"}: "NODE"})), want: []string{"info sure " + gpuKey(0) + " " + gpuKey(1)}},
		{name: "differences of two kinds", host: h100x8().with(cells(map[[2]string]string{{"GPU0", "mlx5_0"}: "SYS", {"GPU5", "mlx5_5"}: "NODE"})),
			want: []string{"info sure " + gpuKey(0) + " hca:mlx5_0", "info sure " + gpuKey(5) + " hca:mlx5_5"}},
		{name: "NVLinks from topo -m alone, beside sysfs", host: h100x8().with(cells(nil)).with(noLists)},
		{name: "they cannot contradict themselves", host: h100x8().with(cells(map[[2]string]string{{"GPU0", "GPU3"}: "NV16"})).with(noLists)},
		{name: "PCIe classes are compared even so", host: bridged("10de:26b9", 89, 0).with(noLists).with(func(h *host) {
			h.inv.Relations = matrix(2, nil, "X SYS", "- X").inv.Relations
		}), want: []string{"info sure gpu:0000:11:00.0 gpu:0000:21:00.0"}, says: []string{"NODE by the devices"}},
		{name: "NODE and PHB are one class to the devices", host: bridged("10de:26b9", 89, 0).with(func(h *host) {
			h.inv.Relations = matrix(2, nil, "X PHB", "- X").inv.Relations
		})},
		{name: "flat guest, cells PHB", host: flatVM().with(func(h *host) {
			h.hca("mlx5_0", "0000:00:08.0", "", "15b3:101e", -1, probe.PCIeLink{}, 400)
			h.inv.Relations = matrix(2, []string{"mlx5_0"}, "X NV18 PHB", "- X PHB", "- - X").inv.Relations
		})},
		{name: "matrix alone", host: matrix(2, []string{"mlx5_0"}, "X NV4 PIX", "- X SYS", "- - X")},
		{name: "two functions on one root port", host: (&host{}).with(func(h *host) {
			h.numa(1)
			rp := h.onRoot(0, 0)
			h.hca("mlx5_0", "0000:11:00.0", rp, "15b3:101d", 0, gen4, 100)
			h.hca("mlx5_1", "0000:11:00.1", rp, "15b3:101d", 0, gen4, 100)
			h.inv.Relations = []probe.Relation{{A: "mlx5_0", B: "mlx5_1", Code: "PIX"}}
		})},
		{name: "a name that is no device here", host: h100x8().with(func(h *host) {
			h.inv.Relations = []probe.Relation{{A: "GPU9", B: "mlx5_0", Code: "PIX"}}
		})},
		{name: "a topology file beside the host claims for itself", host: h100x8().with(func(h *host) {
			h.claims("topo.xml", func(c *host) { c.pci(gpuAt(0), "", "10de:2330", 0x030200, 1, gen4) })
		})},
	})
}
