package check

import "testing"

func TestLogVersionMixed(t *testing.T) {
	testLog(t, "log-version-mixed", []logCase{
		{name: "one host of three", log: lines(comm("abc", 1, "START"), []string{"a0 NCCL version 2.20.5+cuda12.4", "b0 NCCL version 2.19.3+cuda12.3", "c0 NCCL version 2.19.3+cuda12.3"}),
			want: []string{"critical sure host:a"}, says: []string{"NCCL 2.20.5 on a, NCCL 2.19.3 on b, c"}},
		{name: "NCCL says it", log: []string{"a0!init.cc:1 Mismatched NCCL version detected : rank 0 version 22005 rank 1 version 21903"}, want: []string{"critical sure host:a"}},
		{name: "one version", log: lines(comm("ab", 1, "COMPLETE"), []string{"a0 NCCL version 2.20.5+cuda12.4", "b0 NCCL version 2.20.5+cuda12.4"})},
		{name: "rank 0 alone prints it", log: lines(comm("ab", 1, "COMPLETE"), []string{" NCCL version 2.20.5+cuda12.4"})},
		{name: "two runs in one file", log: []string{"a0 comm 0x1 rank 0 nranks 1 cudaDev 0 busId 1000 commId 0x1 - Init COMPLETE", "a0 NCCL version 2.20.5+cuda12.4",
			"b0 comm 0x2 rank 0 nranks 1 cudaDev 0 busId 1000 commId 0x2 - Init COMPLETE", "b0 NCCL version 2.19.3+cuda12.4"}},
	})
}
