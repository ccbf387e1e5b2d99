package check

import "testing"

func TestLogSHMFallback(t *testing.T) {
	testLog(t, "log-shm-fallback", []logCase{
		{name: "NVLink by NCCL's own print-out", log: lines(comm("a", 2, "COMPLETE"), shmPair("NVL")), want: []string{"warning sure gpu:0000:1b:00.0 rank:0 gpu:0000:1c:00.0 rank:1"},
			says: []string{"rank 0 to 1 (NVL)", "GPU/0-1b000 to GPU/0-1c000 is NVL", "ACS"}},
		{name: "one switch", log: lines(comm("a", 2, "COMPLETE"), shmPair("PXB")), want: []string{"warning sure gpu:0000:1b:00.0 rank:0 gpu:0000:1c:00.0 rank:1"}},
		{name: "host bridge: the default", log: lines(comm("a", 2, "COMPLETE"), shmPair("PHB"))},
		{name: "sockets apart", log: lines(comm("a", 2, "COMPLETE"), shmPair("SYS"))},
		{name: "path not known", log: lines(comm("a", 2, "COMPLETE"), shmPair("")), gap: "the path between their GPUs is not known"},
		{name: "path from another source", log: lines(comm("a", 2, "COMPLETE"), shmPair("")), hosts: []*host{nvlinkPair("NVIDIA A100")}, want: []string{"warning sure gpu:0000:1b:00.0 rank:0 gpu:0000:1c:00.0 rank:1"}},
		{name: "GeForce", log: lines(comm("a", 2, "COMPLETE"), shmPair("")), hosts: []*host{nvlinkPair("NVIDIA GeForce RTX 3090")}},
		{name: "P2P off by setting", log: lines(comm("a", 2, "COMPLETE"), shmPair("NVL"), []string{"a0 NCCL_P2P_DISABLE set by environment to 1."})},
		{name: "P2P level by setting", log: lines(comm("a", 2, "COMPLETE"), shmPair("NVL"), []string{"a0 NCCL_P2P_LEVEL set by environment to LOC"})},
	})
}

// shmPair is two ranks that talk through host memory, and the path of their GPUs as
// NCCL prints it; "" = it does not.
func shmPair(class string) []string {
	out := []string{"a0 Channel 00 : 0[0] -> 1[1] via SHM/direct/direct", "a1 Channel 00 : 1[1] -> 0[0] via SHM/direct/direct"}
	if class == "" {
		return out
	}
	return append(out, "a0 === System : maxBw 24.0 totalBw 24.0 ===", "a0 CPU/0-0 (1/2/-1)", "a0 + PCI[24.0] - GPU/0-1b000 (0)", "a0 + PCI[24.0] - GPU/0-1c000 (1)",
		"a0 ==========================================",
		"a0 GPU/0-1b000 :GPU/0-1b000 (0/5000.0/LOC) GPU/0-1c000 (2/24.0/"+class+") CPU/0-0 (1/24.0/PHB) ")
}

// nvlinkPair is host a with two GPUs joined by NVLink.
func nvlinkPair(product string) *host {
	h := (&host{}).named("a")
	h.numa(1)
	h.gpu("0000:1b:00.0", h.bridge("0000:1a:00.0", "", "8086:352a", 0, gen4), "10de:20b5", 80, 0, gen4, toGPU("0000:1c:00.0", 0, 12)...)
	h.gpu("0000:1c:00.0", h.bridge("0000:1a:01.0", "", "8086:352a", 0, gen4), "10de:20b5", 80, 0, gen4, toGPU("0000:1b:00.0", 0, 12)...)
	for i := range h.inv.GPUs {
		h.inv.GPUs[i].Name = product
	}
	return h
}
