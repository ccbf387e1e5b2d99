package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

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
