package graph

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

// NCCLLocalGBs is the bandwidth of what costs nothing: a GPU to itself, a
// virtual NIC to its CPU (LOC_BW, NCCL 2.30.7 topo.h:17).
const NCCLLocalGBs = 5000

// ncclPCIeLane is NCCL's figure per lane in units of 1/80 GB/s, by PCIe
// generation (kvDictPciGen, NCCL 2.30.7 topo.cc:545-557): about 80 % of the
// encoded rate.
var ncclPCIeLane = [...]float64{1: 15, 2: 30, 3: 60, 4: 120, 5: 240, 6: 480}

// What NCCL takes where speed or width are not known (topo.cc:545-557, 656).
const (
	ncclDefaultGen   = 3
	ncclDefaultWidth = 16
)

// NCCLPCIeGBs is NCCL's bandwidth of a PCIe link in GB/s: width × lane / 80
// (NCCL 2.30.7 topo.cc:656). assumed names what was not known and replaced by
// NCCL's default, "" if nothing.
func NCCLPCIeGBs(l probe.PCIeLink) (gbs float64, assumed string) {
	var what []string
	gen := l.Speed.Or(0).Gen()
	if gen == 0 {
		gen = ncclDefaultGen
		what = append(what, fmt.Sprintf("link speed unknown: NCCL takes Gen%d", gen))
	}
	width := l.Width.Or(0)
	if width <= 0 {
		width = ncclDefaultWidth
		what = append(what, fmt.Sprintf("link width unknown: NCCL takes x%d", width))
	}
	return float64(width) * ncclPCIeLane[gen] / 80, strings.Join(what, "; ")
}

// NCCLNVLinkGBs is NCCL's bandwidth of one NVLink in GB/s by compute capability
// ×10 (NCCL 2.30.7 topo.h:17-39): about 80 % of the data sheet's. Blackwell has
// figures of its own since 2.25, first 40.0, from 2.27.5 on 40.1.
func NCCLNVLinkGBs(cc int, v NCCLVersion) float64 {
	switch {
	case cc >= 100 && v.AtLeast(27, 5):
		return 40.1
	case cc >= 100 && v.AtLeast(25, 0):
		return 40.0
	case cc >= 90 && v.AtLeast(20, 0):
		return 20.6
	case cc == 86:
		return 12.0
	case cc >= 70:
		return 20.0
	case cc >= 60:
		return 18.0
	}
	return 20.0 // below sm_60 NCCL falls through to its sm_80 value
}

// nvlinkCC stands for an unknown compute capability: one whose NVLinks are of
// the generation.
var nvlinkCC = [...]int{1: 60, 2: 70, 3: 80, 4: 90, 5: 100, 6: 100}

// ncclProcessor classes a processor (constants NCCL 2.30.7 topo.h:17-39, Intel
// and Zhaoxin models topo.cc:744-751; Sapphire and Emerald Rapids are classes of
// their own since 2.26). assumed says what was not known.
func ncclProcessor(c probe.CPU, v NCCLVersion) (p NCCLProcessor, assumed string) {
	p.Arch = c.Arch
	family, model := c.Family.Or(0), c.Model.Or(0)
	switch {
	case c.Arch == "arm64" || c.Arch == "aarch64":
		p.Name, p.GBs = "Arm", 6
	case strings.HasPrefix(c.Arch, "ppc64"):
		p.Name, p.GBs = "POWER", 32
	case c.Vendor == "GenuineIntel":
		p.Intel = true
		p.Name, p.GBs = "Intel Broadwell or older", 6
		switch {
		case !c.Family.Known() || !c.Model.Known():
			assumed = "processor family or model unknown: NCCL's lowest Intel class, 6 GB/s between NUMA nodes, is taken"
			p.Name = "Intel"
		case family != 6:
		case model >= 0xcf && v.AtLeast(26, 0):
			p.Name, p.GBs = "Intel Emerald Rapids or newer", 40
		case model >= 0x8f && v.AtLeast(26, 0):
			p.Name, p.GBs = "Intel Sapphire Rapids", 22
		case model >= 0x55:
			p.Name, p.GBs = "Intel Skylake or newer", 10
			if v.AtLeast(26, 0) {
				p.Name = "Intel Skylake to Ice Lake"
			}
		}
	case c.Vendor == "AuthenticAMD":
		p.AMD = true
		p.Name, p.GBs = "AMD", 16
	case c.Vendor == "CentaurHauls" || strings.TrimSpace(c.Vendor) == "Shanghai":
		p.Name, p.GBs = "Zhaoxin", 6
		if family == 7 && model == 0x5b {
			p.Name, p.GBs = "Zhaoxin Yongfeng", 9
		}
	case c.Vendor == "":
		p.Name, p.GBs = "unknown", 6
		assumed = "processor vendor unknown: 6 GB/s between NUMA nodes, the least that NCCL gives any, is taken"
	default:
		p.Name, p.GBs = c.Vendor, NCCLLocalGBs // NCCL does not bound other x86 vendors
	}
	return p, assumed
}
