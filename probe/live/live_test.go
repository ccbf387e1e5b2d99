package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncclmap/ncclmap/probe"
	"github.com/ncclmap/ncclmap/probe/sysfs"
)

func says(inv *probe.Inventory, err error) func() (*probe.Inventory, error) {
	return func() (*probe.Inventory, error) { return inv, err }
}

var (
	gpu    = &probe.Inventory{GPUs: []probe.GPU{{Index: probe.Some(0), Addr: probe.Some(probe.MustBDF("0000:00:06.0")), CC: probe.Some(90), Origins: []probe.Origin{{Source: probe.SourceNVML}}}}}
	kernel = &probe.Inventory{
		PCI:  []probe.PCIDevice{{Addr: probe.MustBDF("0000:00:06.0"), Root: "pci0000:00", Origins: []probe.Origin{{Source: probe.SourceSysfs}}}},
		GPUs: []probe.GPU{{Addr: probe.Some(probe.MustBDF("0000:00:06.0")), Origins: []probe.Origin{{Source: probe.SourceSysfs}}}},
	}
	names = &probe.Inventory{Product: probe.Product{Name: "box"}}
)

// Each source may be missing; the others still answer and the gap says what is
// not known and how to get it.
func TestPartialMachines(t *testing.T) {
	missing := errors.New("not here")
	for _, c := range []struct {
		what                  string
		driver, kernel, names func() (*probe.Inventory, error)
		gpus, pci             int
		gap                   string
	}{
		{"whole", says(gpu, nil), says(kernel, nil), says(names, nil), 1, 1, ""},
		{"no driver", says(nil, missing), says(kernel, nil), says(names, nil), 1, 1, "NVLinks"},
		{"container without /sys", says(gpu, nil), says(nil, missing), says(names, nil), 1, 0, "PCI tree"},
		{"no GPU", says(nil, missing), says(&probe.Inventory{}, nil), says(names, nil), 0, 0, "NVLinks"},
		{"driver broke half-way", says(gpu, missing), says(kernel, nil), says(names, nil), 1, 1, "NVLinks"},
	} {
		inv, err := read(c.driver, c.kernel, c.names)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if len(inv.GPUs) != c.gpus || len(inv.PCI) != c.pci {
			t.Errorf("%s: %d GPUs, %d PCI functions", c.what, len(inv.GPUs), len(inv.PCI))
		}
		found := c.gap == "" && len(inv.Gaps) == 0
		for _, g := range inv.Gaps {
			found = found || strings.Contains(g.What, c.gap) && g.Why == "not here" && g.How != ""
		}
		if !found {
			t.Errorf("%s: gaps %+v", c.what, inv.Gaps)
		}
	}
	if _, err := read(says(nil, missing), says(nil, missing), says(nil, missing)); err == nil {
		t.Error("nothing answers, and no error")
	}
}

// This machine answers in some way, with or without GPUs.
func TestReadThisMachine(t *testing.T) {
	inv, err := Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := inv.Validate(); err != nil {
		t.Error(err)
	}
}

func TestNoSysIsAGap(t *testing.T) {
	_, err := sysfs.Read(fstest.MapFS{"etc/hosts": {}}, sysfs.Options{Live: true})
	if err == nil {
		t.Error("a root without sys and proc is read")
	}
}
