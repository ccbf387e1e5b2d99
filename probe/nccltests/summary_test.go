package nccltests

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const summaryCSV = `file,test,N,G,nodes,minBytes,maxBytes,avg_bus_bw_GBs,peak_busbw_GBs
a.log,alltoall_perf,2,1,"gx[01,03]",33554432,17179869184,13.4689,13.6
b.log,all_reduce_perf,4,8,"gx[09-11],login",8,1048576,,
`

const summaryMD = `| file | test | N | G | nodes | minBytes | maxBytes | AvgBusBW (GB/s) | PeakBusBW (GB/s) |
|---|:--|---|---|---|---|---|---|---|
| a.log | alltoall_perf | 2 | 1 | gx[01,03] | 32.0MiB | 16.0GiB | 13.4689 | 13.6 |
| b.log | all_reduce_perf | 4 | 8 | gx[09-11],login | 8 | 1.0MiB |  |  |
`

func TestSummary(t *testing.T) {
	for name, text := range map[string]string{
		"CSV": summaryCSV, "CRLF": strings.ReplaceAll(summaryCSV, "\n", "\r\n"), "BOM": "\xef\xbb\xbf" + summaryCSV, "Markdown": summaryMD,
		"another column": strings.Replace(strings.ReplaceAll(summaryCSV, "log,", "log,x,"), "file,", "file,run,", 1),
	} {
		if !SniffSummary([]byte(text)) {
			t.Errorf("%s: not recognised", name)
		}
		inv, err := ReadSummary("s", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, s := range inv.Summaries {
			got = append(got, fmt.Sprint(s.Log, s.Collective, s.Nodes, s.GPUs, s.Hosts, s.MinBytes, s.MaxBytes, s.MeanBusBW, s.PeakBusBW))
		}
		want := "[a.logAllToAll2 1 [gx01 gx03] 33554432 17179869184 13.4689 13.6 b.logAllReduce4 8 [gx09 gx10 gx11 login] 8 1048576 unknown unknown]"
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSummaryRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"minBytes", "bytes", "s:1: not the columns of a summary"},
		{"alltoall_perf", "hpl", `s:2: test "hpl" is none of nccl-tests`},
		{",2,1,", ",0,1,", `s:2: n "0": not a count`},
		{"33554432", "many", `s:2: minbytes "many": not a size`},
		{"13.6", "NaN", `s:2: peakbusbwgbs "NaN": not a bandwidth`},
		{"gx[01,03]", "gx[01-99999999]", `s:2: nodes "gx[01-99999999]": not a list of hosts`},
		{",13.4689,13.6", "", "s:2: 7 cells, want 9: the line is cut"},
		{`"gx`, `gx"`, "s:2: no line of CSV"},
	} {
		if !strings.Contains(summaryCSV, c.old) {
			t.Fatalf("%q is not in the text", c.old)
		}
		inv, err := ReadSummary("s", strings.NewReader(strings.Replace(summaryCSV, c.old, c.new, 1)))
		if err == nil || inv != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v\nwant %s", c.new, err, c.want)
		}
	}
	if _, err := ReadSummary("s", strings.NewReader(strings.SplitAfter(summaryCSV, "\n")[0])); err == nil || err.Error() != "s: a summary of no run" {
		t.Error(err)
	}
}

func FuzzSummary(f *testing.F) {
	f.Add([]byte(summaryCSV))
	f.Fuzz(func(t *testing.T, text []byte) {
		SniffSummary(text)
		inv, err := ReadSummary("f", bytes.NewReader(text))
		if (err == nil) != (inv != nil) {
			t.Fatalf("inventory %v with error %v", inv, err)
		}
		if err == nil {
			if err := inv.Encode(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
