package check

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// What was not read of devices is said, under a name that is no rule's.
func TestInventoryGaps(t *testing.T) {
	gap := func(source, what, why, how string) func(*host) {
		return func(h *host) {
			h.inv.Gaps = append(h.inv.Gaps, probe.Gap{What: what, Why: why, How: how, Origin: probe.Origin{Source: source, Where: "sys/bus/pci/devices/x"}})
		}
	}
	unlisted := func(driver string) func(*host) {
		return func(h *host) {
			h.pci(rootChild(14), h.onRoot(14, 1), "10de:2330", 0x030200, 1, gen5)
			h.dev(rootChild(14)).Driver = driver
		}
	}
	nic := func(id string, class probe.PCIClass, driver string) func(*host) {
		return func(h *host) {
			h.pci(rootChild(14), h.onRoot(14, 1), id, class, 1, gen5)
			h.dev(rootChild(14)).Driver = driver
		}
	}
	const sysfs, noGPU, noRDMA = probe.SourceSysfs, "the function is there, but no source lists the GPU", "the function is there, but no RDMA device"
	at := " pci:" + rootChild(14)
	for _, c := range []struct {
		name string
		host *host
		want string // reason and subjects
	}{
		{"healthy", h100x8(), ""},
		{"a function of a GPU that is gone", h100x8().with(gap(sysfs, "pci 0000:9c:00.0", "readlink: input/output error", "")), "the PCI function was not read: readlink: input/output error pci:0000:9c:00.0"},
		{"an attribute of a GPU", h100x8().with(gap(sysfs, "pci "+gpuAt(2)+" numa_node", "read: permission denied", "read it as root")), "numa_node was not read: read: permission denied " + gpuKey(2)},
		{"an attribute of an HCA in a topology file", h100x8().with(gap(probe.SourceNCCLXML, "pci:"+hcaAt(2)+" max_link.width", "link_width 3 is no width", "")), "max_link.width was not read: link_width 3 is no width hca:mlx5_2"},
		{"asleep: the PCIe rules say so", h100x8().with(gap(sysfs, "pci "+hcaAt(2)+" link", "the function is suspended, so its link was not read", "")), ""},
		{"what is no function", h100x8().with(gap(sysfs, "PCI functions", "sys/bus/pci was not recorded", "")).with(gap(sysfs, "pci nonsense", "bad", "")), ""},
		{"a GPU that its driver cannot open", h100x8().with(gap(probe.SourceNVML, "gpu 8 handle", "nvmlDeviceGetHandleByIndex: GPU is lost", "")), "the GPU was not read: nvmlDeviceGetHandleByIndex: GPU is lost gpu:8"},
		{"a fact of a GPU that was read: the rules say what they lack", h100x8().with(gap(probe.SourceNVML, "gpu 3 P-state", "unknown error", "")), ""},
		{"an RDMA device", h100x8().with(gap(sysfs, "hca mlx5_8", "readlink: input/output error", "")), "the RDMA device was not read: readlink: input/output error hca:mlx5_8"},
		{"a part of one that was read", h100x8().with(gap(sysfs, "hca mlx5_3", "odd", "")).with(gap(sysfs, "hca mlx5_9 ports", "odd", "")), ""},

		{"no legend in topo -m", h100x8().with(gap(probe.SourceSMITopo, "hca names", "the text has no NIC legend", "")), ""},
		{"NVIDIA function without GPU", h100x8().with(unlisted("nvidia")), noGPU + at},
		{"driver not known", h100x8().with(unlisted("")), noGPU + at},
		{"kept for a guest", h100x8().with(unlisted("vfio-pci")), ""},
		{"virtual function of a GPU", h100x8().with(unlisted("nvidia")).with(func(h *host) { h.dev(rootChild(14)).PhysFn = probe.Some(bdf(gpuAt(0))) }), ""},
		{"a GPU of unknown address may be it", h100x8().with(unlisted("nvidia")).with(func(h *host) { h.inv.GPUs[7].Addr = probe.Opt[probe.BDF]{} }), ""},
		{"management display", h100x8().with(nic("1a03:2000", 0x030000, "ast")), ""},

		{"mlx5_core without RDMA device", h100x8().with(nic("15b3:ffff", 0x020000, "mlx5_core")), noRDMA + at},
		{"InfiniBand class", h100x8().with(nic("15b3:ffff", 0x020700, "")), noRDMA + at},
		{"adapter in the table", h100x8().with(nic("15b3:1021", 0x020000, "")), noRDMA + at},
		{"a warning in a log, which no rule reads yet", h100x8().with(func(h *host) {
			h.inv.Events = []probe.Event{{Kind: probe.EventWarning, Subject: gpuKey(2), Text: "something new"}}
		}), "events in logs are read but not judged by any rule of this version " + gpuKey(2)},
		{"plain Ethernet", h100x8().with(nic("8086:1563", 0x020000, "ixgbe")), ""},
		{"kept for a guest", h100x8().with(nic("15b3:1021", 0x020000, "vfio-pci")), ""},
		{"virtual function of the host's adapter", h100x8().with(nic("15b3:101e", 0x020000, "mlx5_core")).with(func(h *host) { h.dev(rootChild(14)).PhysFn = probe.Some(bdf(hcaAt(0))) }), ""},
		{"RDMA devices not recorded", h100x8().with(nic("15b3:1021", 0x020700, "mlx5_core")).with(func(h *host) {
			h.inv.Gaps = []probe.Gap{{What: "RDMA devices", Why: "sys/class/infiniband was not recorded", Origin: probe.Origin{Source: sysfs, Where: "sys/class/infiniband"}}}
		}), ""},
		{"topology file: lists what NCCL uses", h100x8().with(func(h *host) { h.inv.HCAs = h.inv.HCAs[:7] }).asFile(), ""},
		{"second port of a bond", h100x8().with(func(h *host) {
			h.pci(hcaAt(0)[:11]+"1", downAt(0, 16), "15b3:1021", 0x020000, 0, gen5)
			h.inv.HCAs[0].Name = "mlx5_bond_0"
		}), ""},
		{"second port of a card that is no bond", h100x8().with(func(h *host) {
			h.pci(hcaAt(0)[:11]+"1", downAt(0, 16), "15b3:1021", 0x020000, 0, gen5)
		}), noRDMA + " pci:" + hcaAt(0)[:11] + "1"},
	} {
		res := Run(c.host.topology(t), All())
		complete(t, res)
		var got []string
		for _, g := range res.Gaps {
			if g.Rule == InventoryGaps {
				got = append(got, g.Reason+" "+strings.Join(g.Subjects, " "))
				if !strings.Contains(res.NotChecked(), g.Reason) {
					t.Errorf("%s: not in %s", c.name, res.NotChecked())
				}
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if _, ok := Find(InventoryGaps); ok {
		t.Error("it is a rule")
	}
}
