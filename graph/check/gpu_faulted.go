package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/probe"
)

var gpuFaulted = Rule{
	ID:    "gpu-faulted",
	Title: "GPU has a hardware fault",
	Doc: `Fires for GPUs with an Xid of hardware or fabric in the kernel log (48, 64, 74, 79, 95, 119,
120, 136, 137, 140, 143 to 150, 154, 155), with uncorrected memory errors since the driver
was loaded, with a failed or pending row remapping, or for which the driver asks for a
reset or reboot (recovery action).

critical; warning for a pending remapping, for Xid 137, and for 144 to 150 that the
driver calls nonfatal.

Silent for Xids of the application (13, 31, 43, 45) and for corrected errors.`,
	Replaces: []string{"gpu-missing"},
	Run:      runGPUFaulted,
}

// xid is what an Xid says of the GPU (NVIDIA's Xid catalogue, DCGM's health
// checks; NVLink 5 codes from docs.nvidia.com/deploy/xid-errors).
type xid struct {
	first, last int
	what        string
	severity    Severity
	fix         string
}

const (
	fixReset  = "reset the GPU (nvidia-smi --gpu-reset) or reboot; if it returns, replace the board"
	fixReboot = "drain the host and reboot it: the NVLink fabric stays wedged until then; if it returns, replace the board"
	fixCycle  = "drain the host and power-cycle it; then reseat or replace the board"
)

var xids = []xid{
	{48, 48, "double-bit memory error", Critical, fixReset},
	{64, 64, "row remapping failed to be recorded", Critical, fixReset},
	{74, 74, "NVLink error", Critical, fixReset},
	{79, 79, "fell off the bus", Critical, fixCycle},
	{95, 95, "uncontained memory error", Critical, fixReset},
	{119, 120, "the GPU's system processor (GSP) does not answer", Critical, fixReset},
	{136, 136, "link training failed", Critical, fixReset},
	{137, 137, "NVLink privilege error", Warning, fixReset},
	{140, 140, "unrecovered memory error", Critical, fixReset},
	{143, 143, "GPU initialisation failed", Critical, fixReset},
	{144, 150, "NVLink 5 or fabric error", Critical, fixReboot},
	{154, 154, "recovery action asked for", Critical, fixReset},
	{155, 155, "NVLink system error, GPU degraded", Critical, fixReboot},
}

// firstFabricXid and lastFabricXid are those that come in a fatal and a nonfatal
// kind.
const firstFabricXid, lastFabricXid = 144, 150

func xidOf(code int) (xid, bool) {
	for _, x := range xids {
		if code >= x.first && code <= x.last {
			return x, true
		}
	}
	return xid{}, false
}

// gpuFault is one sign of a fault.
type gpuFault struct {
	severity Severity
	what     string
	fix      string
	proof    Evidence
}

func runGPUFaulted(p *Pass) {
	var keys []string
	faults := map[string][]gpuFault{}
	add := func(key string, f gpuFault) {
		if faults[key] == nil {
			keys = append(keys, key)
		}
		faults[key] = append(faults[key], f)
	}
	for _, n := range p.facts.gpus {
		for _, f := range driverFaults(n) {
			add(n.Key, f)
		}
	}
	for _, e := range p.Job.Events {
		code, ok := e.Code.Get()
		x, known := xidOf(code)
		if !ok || !known || e.Kind != probe.EventXid || !p.Here(e.Host) {
			continue
		}
		if code >= firstFabricXid && code <= lastFabricXid && strings.Contains(strings.ToLower(e.Text), "nonfatal") {
			x.severity = Warning
		}
		key := e.Subject
		if addr, err := probe.ParseBDF(strings.TrimPrefix(strings.TrimPrefix(key, "gpu:"), "pci:")); err == nil {
			if key = p.keyOf(addr); strings.HasPrefix(key, "pci:") {
				key = "gpu:" + addr.String() // an Xid is a GPU's, listed or not
			}
		}
		if key == "" {
			key = p.Host()
		}
		add(key, gpuFault{x.severity, fmt.Sprintf("Xid %d, %s", code, x.what), x.fix, evidence(e.Origins, "", "", "%s", e.Text)})
	}
	for _, key := range keys {
		list := faults[key]
		slices.SortStableFunc(list, func(a, b gpuFault) int { return int(b.severity) - int(a.severity) })
		var what []string
		var proof []Evidence
		for _, f := range list {
			if !slices.Contains(what, f.what) {
				what = append(what, f.what)
			}
			proof = append(proof, f.proof)
		}
		p.Report(Finding{
			Severity: list[0].severity,
			Subjects: []string{key},
			Expected: "no Xid of hardware, no uncorrected memory error, no recovery action",
			Observed: strings.Join(what, "; "),
			Evidence: proof,
			Fix:      "administrator: " + list[0].fix,
		})
	}
}

// driverFaults lists what the driver itself reports of a GPU.
func driverFaults(n *graph.Node) []gpuFault {
	var out []gpuFault
	g := n.GPU
	if e := g.ECC; e != nil && e.VolatileUncorrected.Or(0) > 0 {
		what := fmt.Sprintf("%d uncorrected memory errors since the driver was loaded", e.VolatileUncorrected.Or(0))
		out = append(out, gpuFault{Critical, what, fixReset, evidence(g.Origins, "ecc", "", "%s", what)})
	}
	if r := g.Remapped; r != nil && r.Failure {
		out = append(out, gpuFault{Critical, "a row of memory could not be remapped", "replace the board", evidence(g.Origins, "remapped_rows", "", "remapping failure")})
	}
	if r := g.Remapped; r != nil && r.Pending {
		out = append(out, gpuFault{Warning, "a row remapping is pending", "reset the GPU (nvidia-smi --gpu-reset) when it is idle", evidence(g.Origins, "remapped_rows", "", "remapping pending")})
	}
	if a := g.Recovery; a != "" && !strings.EqualFold(a, "none") {
		out = append(out, gpuFault{Critical, "the driver asks for a recovery action: " + a, recoveryFix(a), evidence(g.Origins, "recovery_action", "", "recovery action %s", a)})
	}
	return out
}

func recoveryFix(action string) string {
	if strings.Contains(strings.ToLower(action), "p2p") {
		return "NVLink is in trouble: stop the jobs that use this GPU, then reset it; if it returns, replace the board"
	}
	if strings.Contains(strings.ToLower(action), "reboot") {
		return fixReboot
	}
	return fixReset
}
