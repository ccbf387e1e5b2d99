package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var gdrDistance = Rule{
	ID:    "gdr-distance",
	Title: "GPUDirect RDMA is refused because GPU and HCA are too far apart",
	Doc: `Fires for pairs of GPU and HCA for which NCCL prints "GPU Direct RDMA Disabled for GPU …
/ HCA … (distance a > b)". NCCL prints that only where both can do it.

warning.

Silent where NCCL_NET_GDR_LEVEL is set: then the limit is meant.`,
	Replaces: []string{"log-gdr-off"},
	Across:   runGDRDistance,
}

func runGDRDistance(a *Across) {
	byHost := map[string][]probe.GDRPair{}
	var hosts []string
	for _, p := range a.Job.GDRPairs {
		if _, set := a.setting("NCCL_NET_GDR_LEVEL", p.Host); p.Enabled || p.Distance <= p.Limit || set {
			continue
		}
		byHost[p.Host] = append(byHost[p.Host], p)
		hosts = append(hosts, p.Host)
	}
	for _, h := range names(hosts) {
		var subjects, said []string
		var proof []Evidence
		for _, p := range byHost[h] {
			gpu, hca := a.gdrEnds(p)
			for _, s := range []string{gpu, hca} {
				if !slices.Contains(subjects, s) {
					subjects = append(subjects, s)
				}
			}
			said = append(said, fmt.Sprintf("%s to %s (distance %d > %d)", strings.TrimPrefix(gpu, h+"/"), strings.TrimPrefix(hca, h+"/"), p.Distance, p.Limit))
			proof = append(proof, evidence(p.Origins, "", "", "%sGPU Direct RDMA Disabled for GPU %s / HCA %s (distance %d > %d)", hostPrefix(h), p.GPU, p.HCA, p.Distance, p.Limit))
		}
		slices.SortFunc(subjects, compareKeys)
		a.Report(Finding{
			Severity: Warning, Subjects: append(subjects, HostKey(h)),
			Expected: "GPU and HCA below a common PCIe switch",
			Observed: hostPrefix(h) + "no GPUDirect RDMA by distance: " + listed(said),
			Evidence: few(proof),
			Fix:      "administrator: move the card under the GPU's switch, or use GPUs beside it. NCCL_NET_GDR_LEVEL=PHB takes GPUDirect RDMA over the host bridge: keep it only if a measurement shows a gain",
		})
	}
}

// gdrEnds turns what NCCL prints for a pair into keys: a bus id and the number of
// the adapter in its list.
func (a *Across) gdrEnds(p probe.GDRPair) (gpu, hca string) {
	gpu = a.Key(p.Host, "gpu:"+p.GPU)
	if addr, ok := treeAddr("GPU/" + p.GPU); ok && len(p.GPU) > 2 {
		gpu = a.Key(p.Host, "gpu:"+addr.String())
	}
	hca = a.Key(p.Host, "hca:"+p.HCA)
	_, number, found := strings.Cut(p.HCA, "-")
	if !found {
		number = p.HCA
	}
	if index, err := strconv.Atoi(number); err == nil {
		for _, d := range a.Job.Adapters {
			if d.Host == p.Host && d.Index == index {
				hca = a.Key(p.Host, "hca:"+d.Name)
			}
		}
	}
	return gpu, hca
}
