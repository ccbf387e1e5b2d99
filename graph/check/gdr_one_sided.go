package check

import (
	"fmt"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var gdrOneSided = Rule{
	ID:    "gdr-one-sided",
	Title: "One host of a job lacks GPUDirect RDMA",
	Doc: `Fires for the host none of whose network connections, receiving ones among them,
carries /GDRDMA while ends at other hosts of the communicator do. Where the log does
not name hosts, for the rank.

critical.

Silent where the ends of one host alone are in the log. A sender without GPUDirect RDMA
is no fault by itself: NCCL reads from the GPU directly only where NVLink or the GPU's
generation makes it worth while (NCCL_NET_GDR_READ).`,
	Replaces: []string{"log-gdr-off"},
	Across:   runGDROneSided,
}

func runGDROneSided(a *Across) {
	for i := range a.Job.Comms {
		c := &a.Job.Comms[i]
		// ends are the network connections of a host, or of a rank whose host is not
		// known.
		type ends struct {
			with, receives int
			without        []Evidence
		}
		at := map[string]*ends{}
		var places []string
		var other []Evidence // one that has it
		for _, k := range c.Conns {
			gdr, known := k.GDR.Get()
			if k.Via != probe.ViaNET || k.Network == "Socket" || !known || k.Side == "" {
				continue
			}
			rank, word := k.From, "without"
			if k.Side == probe.SideReceive {
				rank = k.To
			}
			place := memberKey(c, rank)
			if h := hostOfRank(c, rank); h != "" {
				place = HostKey(h)
			}
			e := at[place]
			if e == nil {
				e = &ends{}
				at[place] = e
				places = append(places, place)
			}
			if gdr {
				word = "with"
			}
			fact := evidence(k.Origins, "", "", "rank %d to %d [%s] via NET/%s/%d %s GDRDMA", k.From, k.To, k.Side, k.Network, k.Device.Or(0), word)
			switch {
			case gdr:
				e.with++
				other = []Evidence{fact}
			default:
				e.without = append(e.without, fact)
			}
			if k.Side == probe.SideReceive {
				e.receives++
			}
		}
		var guilty, said []string
		var proof []Evidence
		for _, p := range names(places) {
			if e := at[p]; e.with == 0 && e.receives > 0 && other != nil {
				guilty = append(guilty, p)
				said = append(said, strings.Replace(strings.TrimPrefix(p, "host:"), "rank:", "the host of rank ", 1))
				proof = append(proof, e.without...)
			}
		}
		if len(guilty) == 0 {
			continue
		}
		a.Report(Finding{
			Severity: Critical, Subjects: guilty,
			Expected: "GPUDirect RDMA at both ends of each connection",
			Observed: fmt.Sprintf("no connection at %s carries GDRDMA, those at other hosts do", listed(said)),
			Evidence: append(few(proof), other...),
			Fix:      "administrator: modprobe nvidia-peermem on " + listed(said) + ", at boot too, or open kernel modules with DMA-BUF as on the other hosts",
		})
	}
}
