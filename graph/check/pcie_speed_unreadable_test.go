package check

import "testing"

func TestPCIeSpeedUnreadableInLog(t *testing.T) {
	testLog(t, "pcie-speed-unreadable", []logCase{
		{name: "replaced", log: []string{"a0 Topology detection : could not read /sys/devices/pci0000:03/0000:03:01.0/../max_link_speed, ignoring", "a0 KV Convert to int : could not find value of '' in dictionary, falling back to 60"},
			want: []string{"info sure pci:0000:03:01.0"}, says: []string{"Gen3 x16 (12 GB/s in its model)"}},
		{name: "a GPU of Gen4", log: []string{"a0 Topology detection : could not read /sys/devices/pci0000:1b/0000:1b:00.0/../max_link_speed, ignoring", "a0 KV Convert to int : could not find value of '' in dictionary, falling back to 60",
			"a0 comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1b000 commId 0x1 - Init COMPLETE"}, hosts: []*host{nvlinkPair("NVIDIA A100")}, want: []string{"warning sure gpu:0000:1b:00.0"}},
		{name: "device not named", log: []string{"a0 KV Convert to int : could not find value of '' in dictionary, falling back to 60"}, want: []string{"info sure host:a"}},
		{name: "only the bridge above is unreadable", log: []string{"a0 Topology detection : could not read /sys/devices/pci0000:00/0000:00:06.0/../max_link_speed, ignoring"}},
		{name: "a file states it", log: []string{"a0 NCCL_TOPO_FILE set by environment to /x.xml", "a0 KV Convert to int : could not find value of '' in dictionary, falling back to 60"}},
	})
}
