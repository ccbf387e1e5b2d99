package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclmap/ncclmap/probe"
)

// root writes a small machine into a folder.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	inv := Read(root(t, map[string]string{
		"sys/class/dmi/id/sys_vendor":                              "NVIDIA",
		"sys/class/dmi/id/product_name":                            "DGXH100",
		"sys/class/dmi/id/board_vendor":                            "NVIDIA",
		"sys/class/dmi/id/board_name":                              "DGXH100 board",
		"sys/devices/system/cpu/cpu0/topology/core_id":             "0",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
		"proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\ncpu family\t: 6\nmodel\t\t: 143\n",
		"proc/meminfo": "MemTotal:       2097152 kB\nMemFree: 1 kB",
	}))
	if inv.Product.Vendor != "NVIDIA" || inv.Product.Name != "DGXH100" || inv.Product.Board != "NVIDIA DGXH100 board" {
		t.Errorf("product %+v", inv.Product)
	}
	if len(inv.CPUs) != 1 || inv.CPUs[0].Name != "Intel(R) Xeon(R) Platinum 8480C" || inv.CPUs[0].Vendor != "GenuineIntel" {
		t.Errorf("cpus %+v", inv.CPUs)
	}
	if inv.Memory == nil || inv.Memory.Bytes != probe.Some(int64(2<<30)) {
		t.Errorf("memory %+v", inv.Memory)
	}
	if err := inv.Validate(); err != nil {
		t.Error(err)
	}
	// sysfs is believed first; what only ghw knows is added.
	sys := &probe.Inventory{CPUs: []probe.CPU{{Package: 0, Arch: "x86_64", Vendor: "GenuineIntel", Origins: []probe.Origin{{Source: probe.SourceSysfs}}}}}
	got, err := probe.Merge(inv, sys)
	if err != nil || len(got.CPUs) != 1 || got.CPUs[0].Arch != "x86_64" || !strings.Contains(got.CPUs[0].Name, "8480C") || len(got.Conflicts) != 0 {
		t.Errorf("%v %+v %v", err, got.CPUs, got.Conflicts)
	}
}

// An empty root gives an empty, valid inventory, whatever ghw makes of it.
func TestNothingThere(t *testing.T) {
	inv := Read(t.TempDir())
	if inv.Product.Name != "" || len(inv.CPUs) != 0 {
		t.Errorf("%+v", inv)
	}
	if err := inv.Validate(); err != nil {
		t.Error(err)
	}
}
