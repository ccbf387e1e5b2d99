package check

import (
	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

// Form is how a GPU board is built, which decides how its NVLinks are joined.
type Form string

// The forms.
const (
	FormSXM       Form = "SXM"       // module on a base board: NVSwitch or wired mesh
	FormPCIe      Form = "PCIe"      // card: bridges that may be left out, or no NVLink
	FormNVL       Form = "NVL"       // card sold in bridged groups
	FormSuperchip Form = "superchip" // GPU and CPU joined by NVLink-C2C
)

// Board is a GPU board that a PCI device id of vendor 10de stands for.
type Board struct {
	Device  probe.PCIID
	Name    string
	Form    Form
	NVLinks int  // per GPU when complete, bridges fitted; 0 = the board has none
	OnChip  bool // data reaches the CPU over a chip-to-chip link; PCIe is a token link
	Source  string
}

// Sources of the board table's link counts. Ids are from pci.ids (2026-08-22)
// and DCGM 4.6.0 diag-skus.yaml.in. The count is by board, not by chip: an H100
// NVL uses 12 of its chip's 18 links, an A800 8 of 12.
const (
	srcSXM     = "NVIDIA data sheets; stas00/ml-engineering network table"
	srcHealth  = "docs.nvidia.com/health-validation checks/nvlink: 18 links"
	srcBridge  = "NVIDIA NVLink bridge data sheets"
	srcExport  = "NVIDIA/nccl#412, NVIDIA/nccl#1374: 8 links"
	srcNVL     = "NVIDIA H100 NVL data sheet; Azure/azurehpc-health-checks#162: 12 links"
	srcNone    = "NVIDIA data sheets: no NVLink"
	srcV100    = "alibabacloud.com/help/doc-detail/190482.htm: 6 links"
	srcA100Two = "NVIDIA/nccl-tests#178: NV12 with three bridges"
)

// boards is sorted by generation. An id that may stand for boards of different
// link counts, or whose count no source states, is left out: it is not judged.
var boards = []Board{
	// Pascal
	{0x15f9, "P100 SXM2", FormSXM, 4, false, srcSXM},
	// Volta
	{0x1db1, "V100 SXM2 16GB", FormSXM, 6, false, srcV100},
	{0x1df5, "V100 SXM2 16GB", FormSXM, 6, false, srcV100},
	{0x1db5, "V100 SXM2 32GB", FormSXM, 6, false, srcV100},
	{0x1db8, "V100 SXM3 32GB", FormSXM, 6, false, srcSXM},
	{0x1db4, "V100 PCIe 16GB", FormPCIe, 0, false, srcNone},
	{0x1db6, "V100 PCIe 32GB", FormPCIe, 0, false, srcNone},
	{0x1df6, "V100S PCIe 32GB", FormPCIe, 0, false, srcNone},
	// Turing
	{0x1e02, "Titan RTX", FormPCIe, 2, false, srcBridge},
	{0x1e04, "RTX 2080 Ti", FormPCIe, 2, false, srcBridge},
	{0x1e07, "RTX 2080 Ti", FormPCIe, 2, false, srcBridge},
	{0x1e30, "Quadro RTX 6000/8000", FormPCIe, 2, false, srcBridge},
	{0x1e36, "Quadro RTX 6000", FormPCIe, 2, false, srcBridge},
	{0x1e78, "Quadro RTX 6000/8000", FormPCIe, 2, false, srcBridge},
	{0x1eb8, "T4", FormPCIe, 0, false, srcNone},
	{0x1eb4, "T4G", FormPCIe, 0, false, srcNone},
	// Ampere
	{0x20b0, "A100 SXM4 40GB", FormSXM, 12, false, srcSXM},
	{0x20b2, "A100 SXM4 80GB", FormSXM, 12, false, srcSXM},
	{0x20b3, "A100 SXM4 64GB", FormSXM, 12, false, srcSXM},
	{0x20b1, "A100 PCIe 40GB", FormPCIe, 12, false, srcA100Two},
	{0x20f1, "A100 PCIe 40GB", FormPCIe, 12, false, srcA100Two},
	{0x20b5, "A100 PCIe 80GB", FormPCIe, 12, false, srcA100Two},
	{0x20bd, "A800 SXM4 40GB", FormSXM, 8, false, srcExport},
	{0x20f3, "A800 SXM4 80GB", FormSXM, 8, false, srcExport},
	{0x20f5, "A800 PCIe 80GB", FormPCIe, 8, false, srcExport},
	{0x20f6, "A800 PCIe 40GB", FormPCIe, 8, false, srcExport},
	{0x20b7, "A30", FormPCIe, 4, false, srcBridge},
	{0x2235, "A40", FormPCIe, 4, false, srcBridge},
	{0x2230, "RTX A6000", FormPCIe, 4, false, srcBridge},
	{0x2231, "RTX A5000", FormPCIe, 4, false, srcBridge},
	{0x2204, "RTX 3090", FormPCIe, 4, false, srcBridge},
	{0x2236, "A10", FormPCIe, 0, false, srcNone},
	{0x2237, "A10G", FormPCIe, 0, false, srcNone},
	{0x25b6, "A16 or A2", FormPCIe, 0, false, srcNone},
	// Ada
	{0x26b5, "L40", FormPCIe, 0, false, srcNone},
	{0x26b9, "L40S", FormPCIe, 0, false, srcNone},
	{0x26b7, "L20", FormPCIe, 0, false, srcNone},
	{0x26ba, "L20", FormPCIe, 0, false, srcNone},
	{0x27b8, "L4", FormPCIe, 0, false, srcNone},
	{0x26b1, "RTX 6000 Ada", FormPCIe, 0, false, srcNone},
	{0x2684, "RTX 4090", FormPCIe, 0, false, srcNone},
	{0x2685, "RTX 4090 D", FormPCIe, 0, false, srcNone},
	// Hopper
	{0x2330, "H100 SXM5 80GB", FormSXM, 18, false, srcHealth},
	{0x2336, "H100 SXM5", FormSXM, 18, false, srcHealth},
	{0x2337, "H100 SXM5 64GB", FormSXM, 18, false, srcHealth},
	{0x2338, "H100 SXM5", FormSXM, 18, false, srcHealth},
	{0x2339, "H100 SXM5 94GB", FormSXM, 18, false, srcHealth},
	{0x2331, "H100 PCIe", FormPCIe, 12, false, srcBridge},
	{0x2321, "H100 NVL 94GB", FormNVL, 12, false, srcNVL},
	{0x2324, "H800 SXM5", FormSXM, 8, false, srcExport},
	{0x2329, "H20 SXM5", FormSXM, 18, false, srcSXM},
	{0x232c, "H20 SXM5 HBM3e", FormSXM, 18, false, srcSXM},
	{0x2335, "H200 SXM5", FormSXM, 18, false, srcSXM},
	{0x233b, "H200 NVL", FormNVL, 18, false, srcBridge},
	{0x2342, "GH200", FormSuperchip, 18, true, srcSXM},
	{0x2345, "GH200", FormSuperchip, 18, true, srcSXM},
	{0x2348, "GH200 144GB", FormSuperchip, 18, true, srcSXM},
	// Blackwell
	{0x2920, "B100 or B200 SXM6", FormSXM, 18, false, srcSXM},
	{0x29bc, "B100 or B200 SXM6", FormSXM, 18, false, srcSXM},
	{0x2901, "B200 SXM6", FormSXM, 18, false, srcSXM},
	{0x2909, "B200 SXM6 168GB", FormSXM, 18, false, srcSXM},
	{0x3182, "B300 SXM6", FormSXM, 18, false, srcSXM},
	{0x2941, "GB200", FormSuperchip, 18, true, srcHealth},
	{0x31c2, "GB300", FormSuperchip, 18, true, srcHealth},
	{0x31c3, "GB300", FormSuperchip, 18, true, srcHealth},
	{0x31a1, "GB300", FormSuperchip, 18, true, srcHealth},
	{0x2b85, "RTX 5090", FormPCIe, 0, false, srcNone},
	{0x2bb1, "RTX PRO 6000 Workstation", FormPCIe, 0, false, srcNone},
	{0x2bb4, "RTX PRO 6000 Max-Q", FormPCIe, 0, false, srcNone},
	{0x2bb5, "RTX PRO 6000 Server", FormPCIe, 0, false, srcNone},
	{0x2e12, "GB10", FormSuperchip, 0, true, "NVIDIA/dgx-spark-playbooks: no NVLink, C2C inside"},
}

// BoardOf returns the GPU board of a PCI function; ok is false for one that is
// not in the table.
func BoardOf(d *probe.PCIDevice) (board Board, ok bool) {
	if d == nil || d.Vendor.Or(0) != probe.VendorNVIDIA || !d.Device.Known() {
		return Board{}, false
	}
	return boardByID(d.Device.Or(0))
}

// BoardOfGPU returns a GPU's board by its PCI function, or where the bus was not
// seen by the device id that its driver states.
func BoardOfGPU(n *graph.Node) (board Board, ok bool) {
	if n.PCI == nil && n.GPU != nil && n.GPU.Device.Known() {
		return boardByID(n.GPU.Device.Or(0))
	}
	return BoardOf(n.PCI)
}

func boardByID(id probe.PCIID) (Board, bool) {
	for _, b := range boards {
		if b.Device == id {
			return b, true
		}
	}
	return Board{}, false
}

// onChip reports a GPU whose data reaches the CPU over a chip-to-chip link or
// NVLink (Grace, GB10, POWER): its PCIe link is a token and not judged.
func onChip(n *graph.Node) bool {
	if n.GPU.C2C != nil {
		return true
	}
	links, _ := n.GPU.NVLinks.Get()
	for _, l := range links {
		if l.RemoteKind == probe.RemoteCPU {
			return true
		}
	}
	b, ok := BoardOfGPU(n)
	return ok && b.OnChip
}

// Adapter is an RDMA adapter that a PCI id stands for.
type Adapter struct {
	Vendor, Device probe.PCIID
	Name           string
	Fastest        probe.Rate // of one port; 0 = whatever the physical function has
	VF             bool       // a virtual function
	Source         string
}

const (
	srcPCIIDs = "pci.ids 2026-08-22, NVIDIA adapter data sheets"
	srcVendor = "pci.ids 2026-08-22, the vendor's adapter data sheet"
)

var adapters = []Adapter{
	{0x15b3, 0x1013, "ConnectX-4", probe.Mbps(100e3), false, srcPCIIDs},
	{0x15b3, 0x1014, "ConnectX-4 VF", 0, true, srcPCIIDs},
	{0x15b3, 0x1015, "ConnectX-4 Lx", probe.Mbps(50e3), false, srcPCIIDs},
	{0x15b3, 0x1016, "ConnectX-4 Lx VF", 0, true, srcPCIIDs},
	{0x15b3, 0x1017, "ConnectX-5", probe.Mbps(100e3), false, srcPCIIDs},
	{0x15b3, 0x1018, "ConnectX-5 VF", 0, true, srcPCIIDs},
	{0x15b3, 0x1019, "ConnectX-5 Ex", probe.Mbps(100e3), false, srcPCIIDs},
	{0x15b3, 0x101a, "ConnectX-5 Ex VF", 0, true, srcPCIIDs},
	{0x15b3, 0x101b, "ConnectX-6", probe.Mbps(200e3), false, srcPCIIDs},
	{0x15b3, 0x101c, "ConnectX-6 VF", 0, true, srcPCIIDs},
	{0x15b3, 0x101d, "ConnectX-6 Dx", probe.Mbps(200e3), false, srcPCIIDs},
	{0x15b3, 0x101e, "ConnectX VF", 0, true, srcPCIIDs},
	{0x15b3, 0x101f, "ConnectX-6 Lx", probe.Mbps(50e3), false, srcPCIIDs},
	{0x15b3, 0x1021, "ConnectX-7", probe.Mbps(400e3), false, srcPCIIDs},
	{0x15b3, 0x1023, "ConnectX-8", probe.Mbps(800e3), false, srcPCIIDs},
	{0x15b3, 0xa2d2, "BlueField", probe.Mbps(100e3), false, srcPCIIDs},
	{0x15b3, 0xa2d6, "BlueField-2", probe.Mbps(200e3), false, srcPCIIDs},
	{0x15b3, 0xa2d9, "BlueField-3 Lx", probe.Mbps(400e3), false, srcPCIIDs},
	{0x15b3, 0xa2dc, "BlueField-3", probe.Mbps(400e3), false, srcPCIIDs},
	{0x14e4, 0x1750, "Broadcom BCM57508", probe.Mbps(200e3), false, srcVendor},
	{0x14e4, 0x1760, "Broadcom BCM57608", probe.Mbps(400e3), false, srcVendor},
	{0x8086, 0x1591, "Intel E810", probe.Mbps(100e3), false, srcVendor},
	{0x8086, 0x1592, "Intel E810", probe.Mbps(100e3), false, srcVendor},
	{0x8086, 0x12d2, "Intel E830", probe.Mbps(200e3), false, srcVendor},
	{0x17db, 0x0501, "HPE Slingshot 200", probe.Mbps(200e3), false, srcVendor},
	{0x434e, 0x0001, "Cornelis CN5000", probe.Mbps(400e3), false, srcVendor},
}

// AdapterOf returns the RDMA adapter of a PCI function; ok is false for one
// that is not in the table.
func AdapterOf(d *probe.PCIDevice) (adapter Adapter, ok bool) {
	if d == nil || !d.Vendor.Known() || !d.Device.Known() {
		return Adapter{}, false
	}
	for _, a := range adapters {
		if a.Vendor == d.Vendor.Or(0) && a.Device == d.Device.Or(0) {
			return a, true
		}
	}
	return Adapter{}, false
}
