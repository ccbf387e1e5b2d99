package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/ncclenv"
)

// Set takes an NCCL setting over; known is false for one that does not change
// what NCCL sees of a host. An error tells that NCCL cannot read the value.
func (o *NCCLOptions) Set(name, value string) (known bool, err error) {
	switch name {
	case "NCCL_P2P_LEVEL":
		return true, setLevel(&o.P2PLevel, name, value)
	case "NCCL_NET_GDR_LEVEL":
		return true, setLevel(&o.GDRLevel, name, value)
	case "NCCL_NET_MERGE_LEVEL":
		return true, setLevel(&o.MergeLevel, name, value)
	case "NCCL_IB_HCA":
		o.HCAs = ncclenv.ParseDevices(value)
		return true, nil
	case "NCCL_NETDEVS_POLICY":
		return true, o.setPolicy(value)
	}
	flags := map[string]struct {
		to   *bool
		when bool // the value that sets it
	}{
		"NCCL_SHM_DISABLE": {&o.NoSHM, true}, "NCCL_NET_DISABLE_INTRA": {&o.NoNetIntra, true}, "NCCL_NVB_DISABLE": {&o.NoNVB, true},
		"NCCL_PXN_DISABLE": {&o.NoPXN, true}, "NCCL_PXN_C2C": {&o.NoPXNC2C, false}, "NCCL_NET_GDR_C2C": {&o.NoGDRC2C, false},
		"NCCL_MNNVL_ENABLE": {&o.NoMNNVL, false},
	}
	f, known := flags[name]
	if !known && name != "NCCL_P2P_DISABLE" && name != "NCCL_NET_GDR_READ" {
		return false, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(value), 0, 64)
	if err != nil {
		return true, fmt.Errorf("%s=%q: not a number", name, probe.Excerpt(value))
	}
	switch name {
	case "NCCL_P2P_DISABLE":
		if n == 1 {
			o.P2PLevel = LOC
		}
	case "NCCL_NET_GDR_READ":
		o.GDRRead = probe.Some(n != 0)
	default:
		*f.to = (n != 0) == f.when
	}
	return true, nil
}

// oldLevels are the levels that NCCL wrote as numbers before 2.4 and still reads
// (NCCL 2.30.7 paths.cc:243); greater numbers are SYS.
var oldLevels = [...]PathClass{LOC, PIX, PXB, PHB, SYS}

func setLevel(to *PathClass, name, value string) error {
	if n, err := strconv.Atoi(value); err == nil && n >= 0 {
		*to = oldLevels[min(n, len(oldLevels)-1)]
		return nil
	}
	if value == "PORT" && name == "NCCL_NET_MERGE_LEVEL" {
		*to = Unknown // its default
		return nil
	}
	for c := LOC; c <= SYS; c++ {
		if c.String() == value {
			*to = c
			return nil
		}
	}
	if name == "NCCL_NET_MERGE_LEVEL" {
		*to = LOC
		return fmt.Errorf("%s=%q: not a path class, which NCCL takes as LOC", name, probe.Excerpt(value))
	}
	return fmt.Errorf("%s=%q: not a path class, which NCCL ignores", name, probe.Excerpt(value))
}

func (o *NCCLOptions) setPolicy(value string) error {
	n, limited := strings.CutPrefix(value, "MAX:")
	switch {
	case value == "AUTO":
		o.NetsPerGPU = 0
	case value == "ALL":
		o.NetsPerGPU = -1
	case limited:
		v, err := strconv.Atoi(n)
		if err != nil || v <= 0 {
			return fmt.Errorf("NCCL_NETDEVS_POLICY=%q: not MAX:N with N above 0", probe.Excerpt(value))
		}
		o.NetsPerGPU = v
	default:
		return fmt.Errorf("NCCL_NETDEVS_POLICY=%q: not AUTO, ALL or MAX:N", probe.Excerpt(value))
	}
	return nil
}
