package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var fabricUnhealthy = Rule{
	ID:    "fabric-unhealthy",
	Title: "NVLink fabric reports a fault of a GPU's route",
	Doc: `Fires for GPUs whose fabric health mask (the driver's fabric info, "MNNVL busId …
healthMask" in a log) says degraded bandwidth, route recovery in progress, route
unhealthy, access timeout recovery in progress, or an incorrect configuration.

critical.

Silent for 0xaa, which says that none of them is the case, and for 0x0, which is: not
reported.`,
	Run:    runFabricUnhealthy,
	Across: acrossFabricUnhealthy,
}

// healthFields are the two-bit fields of the mask: 1 is true, 2 false, 0 not
// supported (NVML nvmlGpuFabricInfo_v2_t).
var healthFields = []string{"degraded bandwidth", "route recovery in progress", "route unhealthy", "access timeout recovery in progress"}

// misconfigured are the values of bits 8 to 11; 0 is not supported, 1 none
// (NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*).
var misconfigured = []string{
	"", "", "incorrect system GUID", "incorrect chassis serial number", "no partition", "insufficient NVLinks",
	"incompatible GPU firmware", "invalid location", "invalid GPU state",
}

// healthFaults puts a mask into words.
func healthFaults(mask uint64) []string {
	var out []string
	for i, name := range healthFields {
		if mask>>(2*i)&3 == 1 {
			out = append(out, name)
		}
	}
	if v := mask >> 8 & 0xf; v > 1 && v < uint64(len(misconfigured)) {
		out = append(out, misconfigured[v])
	}
	return out
}

func runFabricUnhealthy(p *Pass) {
	for _, n := range p.facts.gpus {
		if n.GPU.Fabric == nil {
			continue
		}
		mask, ok := n.GPU.Fabric.HealthMask.Get()
		if faults := healthFaults(uint64(mask)); ok && len(faults) > 0 {
			p.unhealthy(n.Key, n.Label, faults, evidence(n.GPU.Origins, "fabric", "", "fabric health mask of %s: %#x", n.Label, mask))
		}
	}
}

func acrossFabricUnhealthy(a *Across) {
	for _, f := range a.Job.Fabrics {
		faults := healthFaults(f.HealthMask)
		if len(faults) == 0 {
			continue
		}
		key, name := HostKey(f.Host), "a GPU"
		if addr, ok := f.GPU.Get(); ok {
			key, name = a.Key(f.Host, "gpu:"+addr.String()), "GPU "+addr.String()
		}
		if a.maskKnown(f) {
			continue // the driver's own report says it already
		}
		a.unhealthy(key, hostPrefix(f.Host)+name, faults, evidence(f.Origins, "", "", "healthMask %#x, state %d", f.HealthMask, f.State))
	}
}

// maskKnown reports a GPU whose mask the driver states too.
func (a *Across) maskKnown(f probe.FabricSeen) bool {
	h := a.Host(f.Host)
	if h == nil {
		return false
	}
	n := h.Node("gpu:" + f.GPU.Or(probe.BDF{}).String())
	return n != nil && n.GPU.Fabric != nil && n.GPU.Fabric.HealthMask.Or(0) != 0
}

func (p reporter) unhealthy(key, name string, faults []string, proof Evidence) {
	p.Report(Finding{
		Severity: Critical, Subjects: []string{key},
		Expected: "no fault in the fabric's health mask (0xaa)",
		Observed: fmt.Sprintf("%s: %s", name, strings.Join(faults, ", ")),
		Evidence: []Evidence{proof},
		Fix:      "administrator: look at the logs of the fabric manager or NMX controller and repair what they name. Across racks NCCL_MNNVL_ENABLE=0 lets the job run over the network until then",
	})
}
