package model

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/graph"
	"github.com/ncclmap/ncclmap/graph/search"
	"github.com/ncclmap/ncclmap/probe/nccllog"
)

// A run of NCCL 2.28.3 on two H200.
const captureDir = "../../../shared/captures/2xh200-vm"

func captureModel(t testing.TB, o search.Options, s Settings) *Model {
	t.Helper()
	r, err := search.Compute(view(t, filepath.Join(captureDir, "topo-dump.xml"), graph.NCCLOptions{Version: 22803}), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := CommOf(r)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(c, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func captureLog(t testing.TB, name string) *nccllog.Log {
	t.Helper()
	f, err := os.Open(filepath.Join(captureDir, name))
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	log, err := nccllog.Read(name, f)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// loggedTable is the tuning table in a log, by collective, algorithm and protocol.
func loggedTable(t testing.TB, name string) map[[3]string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(captureDir, name))
	if err != nil {
		t.Skip(err)
	}
	out := map[[3]string]string{}
	var algos []string
	for line := range strings.Lines(string(raw)) {
		_, row, ok := strings.Cut(line, "NCCL INFO ")
		cells := strings.Split(row, "|")
		what := strings.TrimSpace(cells[0])
		switch {
		case !ok:
		case what == "Algorithm":
			algos = cells[1 : len(cells)-1]
		case slices.Contains(Modelled(), what) && len(cells) > 3:
			for i, cell := range cells[1 : len(cells)-1] {
				out[[3]string{what, strings.TrimSpace(algos[i/3]), protocolNames[i%3]}] = strings.ReplaceAll(cell, " ", "")
			}
		}
	}
	return out
}

// The tuning table that NCCL printed, one decimal, and its choices with the
// channels that carry data.
func TestAgainstLog(t *testing.T) {
	m := captureModel(t, search.Options{NoNVLS: true}, Settings{})
	ours := map[[3]string]string{}
	printed := func(us, gbs float64) string { return fmt.Sprintf("%.1f/%.1f", us, gbs) }
	for _, x := range m.Tuning() {
		ours[[3]string{x.Collective, x.Algo, x.Proto}] = printed(x.LatencyUS, x.BWGBs)
	}
	var cells, choices tally
	for key, want := range loggedTable(t, "ar-debug-info.txt") {
		got, filled := ours[key]
		if !filled {
			got = printed(0, 0)
		}
		cells.cell(t, got == want, "%v: %s, NCCL %s", key, got, want)
	}
	seen := map[int64]bool{}
	for _, name := range []string{"ar-debug-info.txt", "ar-debug-all.txt"} {
		for _, want := range captureLog(t, name).Choices {
			if seen[want.Bytes] {
				continue
			}
			seen[want.Bytes] = true
			got, ok := m.Choose(want.Func, want.Bytes)
			choices.cell(t, ok && got.Algo == want.Algo && got.Proto == want.Proto && got.ChannelsUsed == want.Hi.Or(-1)+1, "%s %d bytes: %+v, NCCL %+v", want.Func, want.Bytes, got, want)
		}
	}
	t.Logf("%v cells of the table, %v choices", cells, choices)
	if cells != (tally{105, 105}) || choices != (tally{24, 24}) {
		t.Errorf("%v cells of the table and %v choices equal NCCL's", cells, choices)
	}
}
