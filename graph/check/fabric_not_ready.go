package check

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/graph"
)

var fabricNotReady = Rule{
	ID:    "fabric-not-ready",
	Title: "GPU is not registered with the NVSwitch fabric",
	Doc: `Fires for GPUs whose registration with the NVSwitch fabric is not completed, or ended
with an error (state and status of NVML's fabric info, nvidia-smi -q Fabric). Links
read Active all the same, and collectives fail or crawl.

critical; warning while the registration is in progress, which is normal directly
after boot and wrong if it stays so.

Silent where the driver says that the board takes no part in a fabric.`,
	Run: runFabricNotReady,
}

// States of a registration, as the readers write them.
const (
	fabricNotSupported = "not supported"
	fabricCompleted    = "completed"
)

func runFabricNotReady(p *Pass) {
	type fault struct {
		severity Severity
		text     string
	}
	var faults []fault
	gpus := map[fault][]*graph.Node{}
	for _, n := range p.facts.gpus {
		f := n.GPU.Fabric
		if f == nil || f.State == fabricNotSupported {
			continue
		}
		status, known := f.Status.Get()
		var x fault
		switch {
		case f.State == "":
			p.Gap("the state of the registration with the NVSwitch fabric was not read", readLive, n.Key)
			continue
		case f.State == fabricInProgress:
			x = fault{Warning, "registration in progress"}
		case f.State != fabricCompleted:
			x = fault{Critical, "registration " + f.State}
		case !known || status == 0:
			continue
		default:
			x = fault{Critical, fmt.Sprintf("registration completed with error %d", status)}
		}
		if gpus[x] == nil {
			faults = append(faults, x)
		}
		gpus[x] = append(gpus[x], n)
	}
	slices.SortFunc(faults, func(a, b fault) int { return int(b.severity) - int(a.severity) })
	for _, x := range faults {
		nodes := gpus[x]
		var proof []Evidence
		for _, n := range nodes {
			proof = append(proof, evidence(n.GPU.Origins, "fabric", "", "fabric of %s: %s", n.Label, x.text))
		}
		p.Report(Finding{
			Severity: x.severity,
			Subjects: keys(nodes),
			Expected: "registration completed, status success",
			Observed: fmt.Sprintf("%s: %s", labels(nodes), x.text),
			Evidence: proof,
			Fix:      "administrator: start nvidia-fabricmanager of the driver's version on the host, then reset the GPUs or reboot; in a confidential or partitioned guest, have the fabric manager register it. NCCL_NVLS_ENABLE=0 is no cure",
		})
	}
}
