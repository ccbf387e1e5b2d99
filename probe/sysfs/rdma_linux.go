package sysfs

import (
	"fmt"

	"github.com/Mellanox/rdmamap"
)

// liveRDMA asks rdmamap, which reads the real /sys and asks the kernel for the
// interface's type.
func (r *reader) liveRDMA() {
	r.attachNetDevs(func(netdev string) (device string, err error) {
		// It cuts hardware addresses and GUIDs without a look at their length.
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("rdmamap: %v", p)
			}
		}()
		return rdmamap.GetRdmaDeviceForNetdevice(netdev)
	})
}
