package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
)

var ncclCUDAMismatch = Rule{
	ID:    "nccl-cuda-mismatch",
	Title: "NCCL is built for a newer CUDA than the driver has",
	Doc: `Fires for hosts whose NCCL is built with a CUDA of a newer major version than the driver
offers (cudaDriverVersion in the log, else the driver: CUDA 13 needs 580, CUDA 12 525).

critical.

Silent for a newer minor of the same major. Forward-compatibility libraries count: with
them cudaDriverVersion is theirs.`,
	Across: runNCCLCUDAMismatch,
}

// driverFor is the first driver of each CUDA major (docs.nvidia.com/deploy/cuda-compatibility).
var driverFor = []struct{ cuda, driver int }{{13, 580}, {12, 525}, {11, 450}}

func runNCCLCUDAMismatch(a *Across) {
	var done []string
	for _, v := range a.Job.Versions {
		major, err := strconv.Atoi(strings.SplitN(v.CUDA, ".", 2)[0])
		if err != nil || slices.Contains(done, v.Host) {
			continue
		}
		has, fact, known := a.cudaOf(v)
		if !known || major <= has {
			continue
		}
		done = append(done, v.Host)
		a.Report(Finding{
			Severity: Critical, Subjects: []string{HostKey(v.Host)},
			Expected: fmt.Sprintf("a driver for CUDA %d (%d or newer)", major, driverOf(major)),
			Observed: fmt.Sprintf("%sNCCL %s is built with CUDA %s, the driver offers CUDA %d", hostPrefix(v.Host), v.NCCL, v.CUDA, has),
			Evidence: []Evidence{evidence(v.Origins, "", "", "NCCL version %s+cuda%s", v.NCCL, v.CUDA), fact},
			Fix:      "administrator: update the driver; or the user: install NCCL for the driver's CUDA (nvidia-nccl-cu12). The wheels nvidia-nccl-cu12 and -cu13 overwrite each other in one folder: keep one",
		})
	}
}

// cudaOf returns the CUDA major that the driver of a version line's host offers.
func (a *Across) cudaOf(v probe.NCCLSeen) (major int, fact Evidence, known bool) {
	if d, ok := v.Driver.Get(); ok {
		return d / 1000, evidence(v.Origins, "", "", "cudaDriverVersion %d", d), true
	}
	h := a.Host(v.Host)
	if h == nil {
		return 0, fact, false
	}
	driver, err := strconv.Atoi(strings.SplitN(h.Inv.Runtime.Driver, ".", 2)[0])
	if err != nil {
		return 0, fact, false
	}
	for _, d := range driverFor {
		if driver >= d.driver {
			return d.cuda, evidence(h.Inv.Runtime.Origins, "driver", "", "driver %s", h.Inv.Runtime.Driver), true
		}
	}
	return 0, fact, false
}

func driverOf(cuda int) int {
	for _, d := range driverFor {
		if d.cuda <= cuda {
			return d.driver
		}
	}
	return 0
}
