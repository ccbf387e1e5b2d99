package sysfs

import (
	"fmt"
	"slices"

	"github.com/ncclmap/ncclmap/probe"
)

// attachNetDevs asks for the RDMA device of every interface that may have one
// and adds the interface to it. Only hardware interfaces and those that a GID
// names (a bond is virtual) are asked for, since one answer reads every GID of
// the host.
func (r *reader) attachNetDevs(deviceOf func(netdev string) (string, error)) {
	if len(r.inv.HCAs) == 0 {
		return
	}
	for _, n := range r.inv.NetDevs {
		named := slices.ContainsFunc(r.inv.HCAs, func(h probe.HCA) bool { return slices.Contains(h.NetDevs, n.Name) })
		if !n.Addr.Known() && !named {
			continue
		}
		name, err := deviceOf(n.Name)
		if err != nil {
			// Most interfaces have none, and the library does not tell that
			// from a fault; where the kernel's files name a device, it is one.
			if named {
				r.gap("RDMA device of net "+n.Name, netFolder+"/"+n.Name, err)
			}
			continue
		}
		i := slices.IndexFunc(r.inv.HCAs, func(h probe.HCA) bool { return h.Name == name })
		if i < 0 {
			if name != "" {
				r.gap("RDMA device of net "+n.Name, rdmaFolder, fmt.Errorf("rdmamap names %.60q, which the kernel does not list", name))
			}
			continue
		}
		h := &r.inv.HCAs[i]
		h.NetDevs = netNames(append(h.NetDevs, n.Name))
	}
}
