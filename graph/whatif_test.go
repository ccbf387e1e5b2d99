package graph

import (
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

func TestWhatIf(t *testing.T) {
	view := func(w WhatIf) *NCCLView {
		t.Helper()
		m := twoSwitches()
		top, err := BuildWhatIf(&m.inv, w)
		if err != nil {
			t.Fatal(err)
		}
		v, err := top.NCCL(NCCLOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := view(WhatIf{})
	if n := len(before.GPUs); n != 4 {
		t.Fatalf("%d GPUs", n)
	}
	if v := view(WhatIf{Without: []string{"GPU1"}}); len(v.GPUs) != 3 || len(v.Nets) != len(before.Nets) {
		t.Errorf("without GPU1: %d GPUs, %d NETs", len(v.GPUs), len(v.Nets))
	}
	// With a switch goes what hangs on it.
	if v := view(WhatIf{Without: []string{"pci:0000:11:00.0"}}); len(v.GPUs) != 1 || len(v.Nets) != 1 {
		t.Errorf("without the first switch: %d GPUs, %d NETs; want 1 and 1", len(v.GPUs), len(v.Nets))
	}
	const up = "gpu:0000:13:00.0--pci:0000:11:00.0"
	if p := view(WhatIf{Rates: []LinkRate{{up, probe.LinkOfGen(5, 16).Encoded().Or(0) / 2}}}).Path(0, 1); p.Class != PIX || p.GBs < 23.99 || p.GBs > 24.01 {
		t.Errorf("half of the link: %v %g GB/s, want PIX and 24", p.Class, p.GBs)
	}
	if p := view(WhatIf{Without: []string{up}}).Path(0, 1); p.Class != DIS {
		t.Errorf("without the link: %v %g GB/s", p.Class, p.GBs)
	}
	if v := view(WhatIf{Without: []string{"gpu1"}}); len(v.GPUs) != 3 {
		t.Errorf("labels count in any case: %d GPUs", len(v.GPUs))
	}
	m := twoSwitches()
	if _, err := BuildWhatIf(&m.inv, WhatIf{Without: []string{up}, Rates: []LinkRate{{up, 1e9}}}); err == nil || !strings.Contains(err.Error(), "changed already") {
		t.Errorf("gone and slower: %v", err)
	}
	for subject, want := range map[string]string{
		"GPU9": `no "GPU9"`, "GPU0--GPU3": "no link joins", "GPU0--": "the host has no", "GPU9--GPU0": "links gpu:0000:13:00.0--pci:0000:11:00.0", "mlx5_0--GPU0--GPU1": "the host has no",
	} {
		m := twoSwitches()
		if _, err := BuildWhatIf(&m.inv, WhatIf{Without: []string{subject}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", subject, err, want)
		}
	}
}
