package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var topoNetAttributes = Rule{
	ID:    "topo-net-attributes",
	Title: "Topology file describes RDMA adapters wrongly",
	Doc: `Fires for the <net> elements of RDMA adapters in an NCCL topology file: without a speed
(NCCL takes 10 Gb/s) or with more than the adapter has; without gdr="1" or a guid while
others have it; three or more functions with one guid and port, which NCCL takes for one
adapter that they share.

warning; critical where adapters are taken for one.

Silent for elements that give only name and dev, which NCCL completes at run time, for two
functions of one adapter, and for socket interfaces.`,
	Replaces: []string{"hca-functions-share-port"},
	Run:      runTopoNetAttributes,
}

func runTopoNetAttributes(p *Pass) {
	c, ok := p.claims()
	if !ok {
		return
	}
	var nets []*probe.HCA
	sameGUID := map[string][]string{}
	gdr, guid := false, false
	for i := range c.HCAs {
		h := &c.HCAs[i]
		if !fromTopoFile(h.Origins) || bareNet(h) {
			continue
		}
		nets = append(nets, h)
		gdr, guid = gdr || h.GDR.Or(false), guid || h.SysImageGUID != ""
		for _, port := range h.Ports {
			if h.SysImageGUID != "" {
				k := fmt.Sprintf("%s port %d", h.SysImageGUID, port.Port)
				sameGUID[k] = append(sameGUID[k], h.Name)
			}
		}
	}
	f := Finding{Severity: Warning, Expected: "the real port speed, a guid of its own, its port and gdr=\"1\" for each adapter"}
	var observed []string
	for _, h := range nets {
		var faults []string
		for _, port := range h.Ports {
			rate, known := port.Rate.Get()
			var fastest probe.Rate
			if addr, ok := h.Addr.Get(); ok {
				a, _ := AdapterOf(c.at[addr])
				fastest = a.Fastest
			}
			switch {
			case !known:
				faults = append(faults, "no speed: NCCL takes 10 Gb/s")
			case fastest > 0 && rate > fastest:
				faults = append(faults, fmt.Sprintf("speed %s, and no port of this adapter does more than %s", rate.Gbps(), fastest.Gbps()))
			}
			if k := fmt.Sprintf("%s port %d", h.SysImageGUID, port.Port); h.SysImageGUID != "" && len(sameGUID[k]) > 2 {
				faults = append(faults, fmt.Sprintf("guid and port of %d adapters: NCCL takes them for one", len(sameGUID[k])))
				f.Severity = Critical
			}
		}
		if gdr && !h.GDR.Or(false) {
			faults = append(faults, `no gdr="1", which others have`)
		}
		if guid && h.SysImageGUID == "" {
			faults = append(faults, "no guid, which others have")
		}
		if len(faults) == 0 {
			continue
		}
		f.Subjects = append(f.Subjects, "hca:"+h.Name)
		f.Evidence = append(f.Evidence, evidence(h.Origins, "", "", "<net> of %s: %s", h.Name, strings.Join(faults, "; ")))
		for _, s := range faults {
			if !slices.Contains(observed, s) {
				observed = append(observed, s)
			}
		}
	}
	if len(f.Subjects) == 0 {
		return
	}
	f.Observed = fmt.Sprintf("%s: %s", strings.Join(f.Subjects, ", "), strings.Join(observed, "; "))
	f.Subjects = append(f.Subjects, c.key())
	f.Fix = fmt.Sprintf("whoever keeps %s: write each adapter's real speed in Mb/s, its own guid (sys_image_guid), port=\"1\" and gdr=\"1\"; or drop the <net> elements, and NCCL fills them in", c.file)
	p.Report(f)
}

// bareNet reports a <net> that leaves what it describes to NCCL.
func bareNet(h *probe.HCA) bool {
	return h.SysImageGUID == "" && !h.GDR.Known() && len(h.Ports) == 1 && !h.Ports[0].Rate.Known() && h.Ports[0].Port == 0
}
