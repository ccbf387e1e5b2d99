package check

import "testing"

func TestSHMTooSmall(t *testing.T) {
	testLog(t, "shm-too-small", []logCase{
		{name: "posix_fallocate", log: []string{"a0!shm.h:28 Call to posix_fallocate failed: No space left on device", "a0!shm.h:48 Error while creating shared memory segment nccl-shm-recv-1 (size 9637888)"}, want: []string{"critical sure host:a"}, says: []string{"--shm-size=1g"}},
		{name: "newer text", log: []string{"a0!shmutils.cc:87 Error: failed to extend /dev/shm/nccl-Ab12Cd to 9637892 bytes"}, want: []string{"critical sure host:a"}},
		{name: "another cause", log: []string{"a0!shm.h:48 Error while creating shared memory segment nccl-shm-recv-1 (size 9637888)"}},
	})
}
