package probe

import (
	"fmt"
	"testing"
)

func TestSweeps(t *testing.T) {
	tree := Some([]EnvSetting{{Name: "NCCL_ALGO", Value: "Tree"}})
	none := Some([]EnvSetting{})
	sample := func(run string, bytes int64, us float64) Sample {
		return Sample{Run: run, Collective: "AllReduce", Bytes: bytes, TimeUS: us, BusBW: 10, InPlaceUS: Some(2 * us), Origins: []Origin{{Source: SourceNCCLTests, Where: run}}}
	}
	j := Job{
		Runs: []Run{
			{ID: "a.txt:1", File: "a.txt", Settings: none}, {ID: "a.txt:5", File: "a.txt", Settings: none}, {ID: "a.txt:9", File: "a.txt", Settings: tree},
			{ID: "a.txt:1#2", File: "a.txt#2", Settings: none},
		},
		Samples: []Sample{
			sample("a.txt:1", 16, 3), sample("a.txt:1", 8, 1), sample("a.txt:5", 16, 2), // one run for each size, one repeated
			sample("a.txt:9", 8, 1), {Collective: "AllReduce", Bytes: 8, TimeUS: 1, Origins: []Origin{{Where: "b.txt:7"}}}, sample("a.txt:1#2", 8, 1),
		},
	}
	var got []string
	for _, s := range j.Sweeps() {
		text := fmt.Sprintf("%s [%s]", s.Run.File, s.Run.SettingsText())
		for _, p := range s.Points {
			text += fmt.Sprintf(" %d:%d:%g", p.Bytes, len(p.Samples), p.Fastest().TimeUS)
		}
		got = append(got, text)
	}
	want := []string{"a.txt [] 8:1:1 16:2:2", "a.txt [NCCL_ALGO=Tree] 8:1:1", "b.txt [unknown] 8:1:1", "a.txt#2 [] 8:1:1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if bw, ok := j.Samples[0].InPlaceBusBW(); !ok || bw != 5 {
		t.Error(bw, ok)
	}
}

func TestSizeText(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 8: "8 B", 1 << 10: "1 KiB", 1000 << 10: "1000 KiB", 1<<30 - 64: "1 GiB", 64 << 20: "64 MiB", 2717908992: "2.53 GiB", 16 << 40: "16 TiB"} {
		if got := SizeText(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
}
