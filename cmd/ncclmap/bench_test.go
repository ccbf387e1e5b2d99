package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ncclmap/ncclmap/probe/open"
)

// peakKiB is the most memory that a process held; 0 where the system does not
// say.
func peakKiB(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss
	}
	return 0
}

// A cluster of 1,250 hosts with 8 GPUs each: read, joined, every host checked
// and compared with the others.
func BenchmarkCluster(b *testing.B) {
	dir := b.TempDir()
	inv, err := open.ReadHost("example:h100x8")
	if err != nil {
		b.Fatal(err)
	}
	for h := range 1250 {
		one := *inv
		one.Host.Name = fmt.Sprintf("gx%04d", h)
		one.GPUs = slices.Clone(inv.GPUs)
		for g := range one.GPUs {
			one.GPUs[g].UUID = fmt.Sprintf("GPU-%08x-0000-0000-0000-%012x", h, g)
		}
		f, err := os.Create(filepath.Join(dir, one.Host.Name))
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(one.Encode(f), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
	exe := filepath.Join(bin, "ncclmap")
	var peak int64
	for b.Loop() {
		cmd := exec.Command(exe, "check", dir)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "no findings\n" {
			b.Fatalf("%v\n%s", err, out)
		}
		peak = max(peak, peakKiB(cmd.ProcessState))
	}
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
}

// Whole processes, as a user feels them. lstopo, where it is installed, runs
// beside them on an XML of its own: absolute times are noisy, so
// compare within one run.
func BenchmarkProcess(b *testing.B) {
	dir := b.TempDir()
	exe := filepath.Join(bin, "ncclmap")
	xml, svg := filepath.Join(dir, "h100x8.xml"), filepath.Join(dir, "out.svg")
	cache := filepath.Join(dir, "cache")
	env := append(os.Environ(), "XDG_CACHE_HOME="+cache)
	exec1 := func(b *testing.B, name string, args ...string) {
		b.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	exec1(b, exe, "convert", "example:h100x8", "-o", xml)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"version", []string{"version"}},
		{"check-8gpu-xml", []string{"check", xml}},
		{"model-8gpu-xml", []string{"model", xml}},
		{"render-dot", []string{"render", xml, "-o", filepath.Join(dir, "out.dot")}},
		{"render-svg-warm", []string{"render", xml, "-o", svg}},
		{"report-warm", []string{"report", xml, "-d", filepath.Join(dir, "report")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			exec1(b, exe, c.args...) // fills the layout engine's cache
			for b.Loop() {
				exec1(b, exe, c.args...)
			}
		})
	}
	b.Run("render-svg-cold", func(b *testing.B) {
		for b.Loop() {
			if err := os.RemoveAll(cache); err != nil {
				b.Fatal(err)
			}
			exec1(b, exe, "render", xml, "-o", svg)
		}
	})
	lstopo, err := exec.LookPath("lstopo-no-graphics")
	if err != nil {
		return
	}
	// A public 8-GPU machine where it is at hand, else this machine.
	hwloc := "../../../shared/corpus/hwloc/aws-g4dnmetal-t4x8.xml"
	if _, err := os.Stat(hwloc); err != nil {
		hwloc = filepath.Join(dir, "hwloc.xml")
		exec1(b, lstopo, hwloc)
	}
	for name, args := range map[string][]string{
		"lstopo-version": {"--version"},
		"lstopo-xml":     {"-i", hwloc, "--of", "console"},
		"lstopo-xml-svg": {"-i", hwloc, "--of", "svg", "--force", filepath.Join(dir, "hwloc.svg")},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				exec1(b, lstopo, args...)
			}
		})
	}
}
