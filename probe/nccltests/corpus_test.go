package nccltests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shared = "../../../shared"

// refused are the corpus files of the folder that are no output of the tool.
var refused = map[string]string{
	"nccl1801-gb200-ring-vs-tree.txt":       "a table retyped by hand with columns of its own",
	"xxrjun-cluster00-pairwise-summary.csv": "a summary of many runs", // see ReadSummary
	"xxrjun-singlenode-summary.md":          "a summary of many runs",
}

// TestShared tries published outputs and recordings that lie beside the
// checkout.
func TestShared(t *testing.T) {
	var files []string
	for _, g := range []string{"corpus/nccl-tests/*", "corpus/logs/*", "captures/2xh200-vm/*.txt", "captures/2xh200-vm/ar-default.json", "cases/*/*.txt", "cases/*/*.log"} {
		m, _ := filepath.Glob(filepath.Join(shared, g))
		files = append(files, m...)
	}
	if len(files) == 0 {
		t.Skip("no corpus beside the checkout")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(f)
		sniffed := Sniff(raw)
		mine := strings.Contains(f, "corpus/nccl-tests/") && refused[name] == ""
		o, err := Read(name, bytes.NewReader(raw))
		switch {
		case mine && (err != nil || !sniffed):
			t.Errorf("%s: recognised %v, %v", f, sniffed, err)
		case refused[name] != "" && (err == nil || sniffed):
			t.Errorf("%s: accepted, although %s", f, refused[name])
		case sniffed && err != nil:
			t.Errorf("%s: recognised, then %v", f, err)
		case err == nil && !sniffed:
			t.Errorf("%s: not recognised, then read", f)
		}
		if err != nil {
			continue
		}
		inv := o.Inventories()[0]
		if err := inv.Validate(); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		rows := bytes.Count(raw, []byte("float     sum")) + bytes.Count(raw, []byte("float    none")) + bytes.Count(raw, []byte("double     sum")) + bytes.Count(raw, []byte("double    none"))
		got := 0
		for _, tb := range o.Tables {
			got += len(tb.Rows)
			for _, r := range tb.Rows {
				if len(r.Notes) > 0 {
					t.Errorf("%s:%d: %v", f, r.Line, r.Notes)
				}
			}
		}
		if !o.JSON && got+o.Torn != rows {
			t.Errorf("%s: %d rows and %d torn of %d", f, got, o.Torn, rows)
		}
		if testing.Verbose() {
			gaps := map[string]int{}
			for _, g := range inv.Gaps {
				gaps[g.Why]++
			}
			t.Logf("%s: %d tables, %d rows, torn %d, %d samples, %d gpus, host %q, gaps %v, events %d", f, len(o.Tables), got, o.Torn, len(inv.Samples), len(inv.GPUs), inv.Host.Name, gaps, len(inv.Events))
			if len(o.Tables) > 0 {
				x := o.Tables[0]
				t.Logf("   %s %s nccl %s tests %s ranks %v nodes %v launch %q inferred %v settings %v notes %v", x.Program, x.Collective, x.NCCL, x.Tests, x.Ranks, x.Nodes, x.Launch, x.Inferred, x.Settings, x.Notes)
			}
		}
	}
}

// TestSharedSummaries reads published summaries: figures as INDEX.tsv tells them.
func TestSharedSummaries(t *testing.T) {
	for name, want := range map[string]string{
		"xxrjun-cluster00-pairwise-summary.csv": "810 runs, last SendRecv 2x8 [cnode2-016 cnode2-017] 33554432 17179869184 15.1267 15.16 of line 811",
		"xxrjun-singlenode-summary.md":          "100 runs, last SendRecv 1x8 [cnode3-011] 33554432 68719476736 279.967 367.02 of line 102",
	} {
		raw, err := os.ReadFile(filepath.Join(shared, "corpus/nccl-tests", name))
		if err != nil {
			t.Skip("no corpus beside the checkout")
		}
		inv, err := ReadSummary(name, bytes.NewReader(raw))
		if err != nil || !SniffSummary(raw) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := len(inv.Summaries)
		s := inv.Summaries[n-1]
		got := fmt.Sprintf("%d runs, last %s %dx%d %v %v %v %v %v of line %s", n, s.Collective, s.Nodes, s.GPUs, s.Hosts, s.MinBytes, s.MaxBytes, s.MeanBusBW, s.PeakBusBW,
			strings.TrimPrefix(s.Origins[0].Where, name+":"))
		if got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
