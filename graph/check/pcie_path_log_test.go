package check

import "testing"

func TestPCIePathInLog(t *testing.T) {
	// A NIC on the CPU or below the switch of a GPU, by NCCL's figures.
	tree := func(uplink, nic, net string) []string {
		return []string{"a0 === System : maxBw 1.0 totalBw 1.0 ===", "a0 CPU/0-0 (1/2/-1)", "a0 + PCI[" + uplink + "] - PCI/0-15000 (1000c0101000a096)",
			"a0               + PCI[48.0] - GPU/0-1b000 (0)", "a0               + PCI[" + nic + "] - NIC/0-1c000", "a0                             + NET[" + net + "] - NET/0-0 (abc/1/50.0)",
			"a0 ==========================================", "a0 Using network IB"}
	}
	testLog(t, "pcie-path-bottleneck", []logCase{
		{name: "400 Gb/s at Gen4 x16", log: tree("48.0", "24.0", "50.0"), want: []string{"critical likely pci:0000:1c:00.0 net:NET/0-0"}, says: []string{"PCI[24.0] at NIC/0-1c000 above NET[50.0], 48 %", "job.log:5", "job.log:6"}},
		{name: "200 Gb/s at Gen3 x16", log: tree("48.0", "12.0", "20.0"), want: []string{"warning likely pci:0000:1c:00.0 net:NET/0-0"}},
		{name: "48 under 50 is normal", log: tree("48.0", "48.0", "50.0")},
		{name: "24 under 25 is normal", log: tree("48.0", "24.0", "25.0")},
		{name: "the uplink does not count below the GPU's switch", log: tree("6.0", "48.0", "50.0")},
		{name: "a speed that NCCL assumed", log: append(tree("48.0", "12.0", "25.0"), "a0 KV Convert to int : could not find value of '' in dictionary, falling back to 60")},
		{name: "another source shows the host", log: tree("48.0", "24.0", "50.0"), hosts: []*host{h100x8().named("a")}},
	})
}
