package check

import "testing"

func TestGDROneSided(t *testing.T) {
	testLog(t, "gdr-one-sided", []logCase{
		{name: "one host without", log: lines(comm("ab", 1, "COMPLETE"), ibPair("/GDRDMA", "")), want: []string{"critical sure host:b"},
			says: []string{"no connection at b carries GDRDMA", "modprobe nvidia-peermem on b", "rank 0 to 1 [receive] via NET/IB/0 without GDRDMA", "with GDRDMA"}},
		{name: "hosts not named", log: []string{" Channel 00/0 : 9[1a000] -> 2[6b000] [send] via NET/IB/0/GDRDMA", "  9[1a000] -> 2[6b000] [receive] via NET/IB/1"}, want: []string{"critical sure rank:2"}},
		{name: "both with", log: lines(comm("ab", 1, "COMPLETE"), ibPair("/GDRDMA", "/GDRDMA"))},
		{name: "both without", log: lines(comm("ab", 1, "COMPLETE"), ibPair("", ""))},
		{name: "one end in the file", log: lines(comm("ab", 1, "COMPLETE"), ibPair("/GDRDMA", "")[2:3])},
		{name: "senders read through host memory", log: lines(comm("ab", 1, "COMPLETE"), []string{
			"a0 Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0", "b0 Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0/GDRDMA",
			"b0 Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0", "a0 Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA"})},
	})
}
