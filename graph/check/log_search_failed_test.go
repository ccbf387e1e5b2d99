package check

import "testing"

func TestLogSearchFailed(t *testing.T) {
	testLog(t, "log-search-failed", []logCase{
		{name: "ring", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 Could not find a path for pattern 4, falling back to simple order", "a0 Pattern 4, crossNic 0, nChannels 1, bw 0.100000/0.100000, type SYS/SYS, sameChannels 1"}),
			want: []string{"warning sure host:a"}, says: []string{"ring search: 1 channel of 0.1/0.1 GB/s"}},
		{name: "as a warning, up to 2.26", log: []string{"a0!graph/search.cc:1 Could not find a path for pattern 4, falling back to simple order"}, want: []string{"warning sure host:a"}},
		{name: "no NVLS channel", log: lines(comm("a", 2, "COMPLETE"), []string{"a0 Pattern 5, crossNic 0, nChannels 0, bw 0.000000/0.000000, type NVL/PIX, sameChannels 0"})},
	})
}
