//go:build !linux

package sysfs

// liveRDMA has nothing to ask: only Linux has RDMA devices in sys/.
func (r *reader) liveRDMA() {}
