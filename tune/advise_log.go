package tune

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/ncclmap/ncclmap/graph/check"
	"github.com/ncclmap/ncclmap/probe"
)

func (f *facts) setNVLS() (Variable, bool) {
	fault, ok := f.finding("log-nvls-failed")
	return Variable{
		Value: "0", Why: fault.Observed + ". Stop-gap: the repair is the fabric manager of the driver's version, then a reset of the GPUs or a reboot.",
		Evidence: fault.Evidence, Risk: "the switches no longer reduce; remove it after the repair", Since: "2.17.1",
		Verify: "the job starts, and NCCL_DEBUG=INFO prints 0 nvls channels",
	}, ok
}

func (f *facts) setDMABUF() (Variable, bool) {
	fault, ok := f.finding("log-dmabuf-failed")
	return Variable{
		Value: "0", Why: fault.Observed + ". Stop-gap: the repair is a newer NCCL or InfiniBand stack.",
		Evidence: fault.Evidence, Risk: "GPUDirect RDMA then needs nvidia-peermem; remove it after the repair", Since: "2.13.4",
		Verify: "channel lines \"via NET/IB\" still end in /GDRDMA",
	}, ok
}

// leaveOut excludes HCAs of the link layer that is not the network's.
func (f *facts) leaveOut(fault check.Finding) (Variable, bool) {
	var names []string
	for _, n := range f.hcas {
		for _, s := range fault.Subjects {
			if host, key := check.SplitSubject(s); key == n.Key && (host == "" || probe.SameHostName(host, f.inv.Host.Name)) {
				names = append(names, n.HCA.Name)
			}
		}
	}
	return Variable{
		Value: "^=" + strings.Join(names, ","), Why: fault.Observed + ". Connections between the two kinds fail, and the fewer are left out.",
		Evidence: fault.Evidence, Risk: "names may differ on other hosts, and after a change of hardware", Since: "2.0",
		Verify: "NCCL_DEBUG=INFO lists only the others behind \"NET/IB : Using\"",
	}, len(names) > 0
}

// qpEnds are the two ends of a queue pair in NCCL's warning.
var qpEnds = regexp.MustCompile(`on dev ([\w+-]+):\d+.*local GID ([0-9a-fA-F:.]+), remote GID ([0-9a-fA-F:.]+)`)

// setCrossNIC keeps rings and trees on one rail where connections failed between
// rails, and only there. A rail is told by the device's name, where all hosts of the
// job have the same ones.
func (f *facts) setCrossNIC() (Variable, bool) {
	fault, ok := f.finding("log-qp-failed")
	if !ok || !f.sameAdapters() {
		return Variable{}, false
	}
	device := map[string]string{} // by GID
	var ends [][]string
	for _, e := range f.job.Events {
		if m := qpEnds.FindStringSubmatch(e.Text); m != nil {
			device[m[2]] = m[1]
			ends = append(ends, m)
		}
	}
	var across []string
	for _, m := range ends {
		switch peer := device[m[3]]; peer {
		case "": // the other end did not print
		case m[1]:
			return Variable{}, false // the same rail fails too
		default:
			across = append(across, m[1]+" to "+peer)
		}
	}
	if len(across) == 0 {
		return Variable{}, false
	}
	return Variable{
		Value: "0", Why: fmt.Sprintf("connections between rails failed (%s), and none on one rail did: the rails do not reach each other.", across[0]),
		Evidence: fault.Evidence, Risk: "a ring can no longer enter and leave a host by different NICs; remove it if the rails are joined", Since: "2.5.6",
		Verify: "NCCL_DEBUG_SUBSYS=GRAPH prints crossNic 0, and no connection fails",
	}, true
}

// sameAdapters reports that the hosts of the job use adapters of the same names.
func (f *facts) sameAdapters() bool {
	byHost := map[string]string{}
	for _, a := range f.job.Adapters {
		byHost[a.Host] += " " + a.Name
	}
	for _, names := range byHost {
		if names != byHost[f.job.Adapters[0].Host] {
			return false
		}
	}
	return len(byHost) > 1
}
